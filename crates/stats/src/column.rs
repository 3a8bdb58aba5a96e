//! The statistics of a run for any column of numbers.

use serde::{Deserialize, Serialize};

use crate::estimate::lag1_correlation;
use crate::modes::{TwoModes, find_two_modes};
use crate::sample::{Sample, Wanted};
use crate::steady::{self, MannKendall, Mser, Pettitt, mser5};
use crate::summary::Metric;

/// The statistics of a column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberColumn {
    /// `goodput.column/1`
    pub schema: String,
    /// The distribution, with intervals.
    pub metric: Metric,
    /// MSER-5 over the values in their order; none for fewer than five values, or if one is
    /// infinite.
    pub mser5: Option<Mser>,
    /// Mann–Kendall with Hamed and Rao's correction, over at most 60 means of neighbors.
    pub trend: Option<ColumnTrend>,
    /// Pettitt's test over the same means.
    pub shift: Option<ColumnShift>,
    /// Two groups of values, if there are two.
    pub two_modes: Option<TwoModes>,
}

/// A trend in a column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ColumnTrend {
    /// The test.
    pub test: MannKendall,
    /// Change from beginning to end by the Theil–Sen slope, as a share of the median.
    pub drift_share: Option<f64>,
    /// It is large, and beyond chance for values that depend on their neighbors as these do.
    #[serde(default)]
    pub is_clear: bool,
}

/// A level that changed once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ColumnShift {
    /// The test, over means of neighbors; its p-value takes Hamed and Rao's factor into account.
    pub test: Pettitt,
    /// The value (from 0) with which the second level begins, to within a mean.
    pub at_value: u64,
    /// It is large, fits better than a straight line, and is beyond chance for values that depend
    /// on their neighbors as these do.
    #[serde(default)]
    pub is_clear: bool,
}

impl NumberColumn {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.column/1";

    /// The statistics of these values, in the order in which they were measured. An infinite one was
    /// never reached.
    pub fn from_values(values: &[f64], percentiles: &[f64], early_stopping: bool) -> Self {
        let mut sample = Sample::from_series(values);
        sample.sort();
        let shape = sample.some_sorted(values.len());
        let mut metric =
            sample.into_metric("", Wanted { early_stopping, ..Wanted::new(percentiles) });
        let is_finite = values.iter().all(|value| value.is_finite());
        let ordered = if is_finite { values } else { &[] };
        metric.lag1 = lag1_correlation(ordered.iter().copied());
        let course = steady::judge_column(ordered);
        let has_level = shape.get(shape.len().saturating_sub(1) / 2).is_some_and(|m| *m != 0.0);
        let trend = course.as_ref().map(|course| ColumnTrend {
            test: course.test,
            drift_share: has_level.then_some(course.trend.drift_share),
            is_clear: course.drifts,
        });
        let shift = course.as_ref().and_then(|course| {
            let at_value = course.shift.as_ref()?.at_s as u64;
            Some(ColumnShift { test: course.pettitt?, at_value, is_clear: course.shifts })
        });
        Self {
            schema: Self::SCHEMA.to_owned(),
            metric,
            mser5: mser5(ordered),
            trend,
            shift,
            two_modes: find_two_modes(&shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_by_hand() {
        // A start that is ten times as high, then forty values in turn.
        let values: Vec<f64> =
            (0..440).map(|i| f64::from(100 + i % 40) / if i < 40 { 1.0 } else { 10.0 }).collect();
        let column = NumberColumn::from_values(&values, &[50.0, 99.9], false);
        assert_eq!((column.metric.n, column.metric.percentiles["50"].value), (440, Some(12.1)));
        assert_eq!(column.metric.percentiles["99.9"].value, Some(139.0));
        let modes = column.two_modes.unwrap();
        assert_eq!((modes.low_share, modes.high_median), (400.0 / 440.0, 119.0));
    }

    #[test]
    fn a_start_is_cut_where_it_ends() {
        // Every five values after the start have the same mean, so nothing is left to gain.
        let values: Vec<f64> =
            (0..440).map(|i| if i < 40 { 100.0 } else { f64::from(10 + i % 5) }).collect();
        assert_eq!(NumberColumn::from_values(&values, &[], false).mser5.unwrap().cut, 40);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        for values in [&[][..], &[5.0], &[f64::INFINITY, 1.0]] {
            let column = NumberColumn::from_values(values, &[50.0, 99.0], true);
            assert_eq!((column.mser5, column.trend, column.two_modes), (None, None, None));
            assert_eq!(column.metric.n, values.len() as u64);
        }
    }
}
