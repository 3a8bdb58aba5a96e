//! A page by names.

use std::collections::HashMap;

use super::{FigureSource, SeriesRef, is_average, is_nothing_at_zero, is_share, is_valid_amount};
use crate::text::{ParsedPage, ParsedSeries};

/// How much above one a share may come out by rounding.
const ROUNDING: f64 = 1e-3;

/// The series of a page, found by name.
#[derive(Debug)]
pub(crate) struct SeriesIndex<'p> {
    by_name: HashMap<&'p str, Vec<&'p ParsedSeries<'p>>>,
}

/// What stands there cannot be what the figure is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nonsense;

impl<'p> SeriesIndex<'p> {
    pub(crate) fn new(page: &'p ParsedPage<'p>) -> Self {
        let mut by_name: HashMap<&str, Vec<&ParsedSeries<'_>>> = HashMap::new();
        for series in &page.series {
            by_name.entry(series.name.as_ref()).or_default().push(series);
        }
        Self { by_name }
    }

    /// The series of a part; of a histogram those whose name ends so.
    pub(crate) fn find_series<'i>(
        &'i self,
        part: &SeriesRef<'i>,
        end: &str,
    ) -> impl Iterator<Item = &'p ParsedSeries<'p>> + use<'i, 'p> {
        let series = match end {
            "" => self.by_name.get(part.name),
            end => self.by_name.get(format!("{}{end}", part.name).as_str()),
        };
        let labels = part.labels;
        let series = series.map(Vec::as_slice).unwrap_or_default();
        series.iter().copied().filter(move |series| labels.matches(series))
    }

    /// The value of a name that one series has.
    pub(crate) fn single_value(&self, name: &str) -> Option<f64> {
        match self.by_name.get(name)?.as_slice() {
            [series] => Some(series.value).filter(|value| is_valid_amount(*value)),
            _ => None,
        }
    }

    /// Whether something of a place is there.
    pub(crate) fn has_figure(&self, place: &FigureSource<'_>) -> bool {
        let is_there =
            |part: &SeriesRef<'_>, end: &str| self.find_series(part, end).next().is_some();
        let is_whole = |part: SeriesRef<'_>| {
            if part.is_minus {
                false
            } else if place.is_histogram() {
                is_there(&part, "_bucket") || (is_there(&part, "_sum") && is_there(&part, "_count"))
            } else {
                is_there(&part, "")
            }
        };
        place.parts().any(is_whole) && place.count.is_none_or(|count| is_there(&count, ""))
    }

    /// The largest share of a place that has several series.
    pub(crate) fn largest_share(&self, place: &FigureSource<'_>) -> Option<f64> {
        let values = || {
            let series = place.parts().flat_map(|part| self.find_series(&part, ""));
            series.map(|series| series.value * place.scale).filter(|value| is_valid_amount(*value))
        };
        let largest = values().max_by(f64::total_cmp).filter(|_| values().count() > 1)?;
        (largest <= 1.0 + ROUNDING).then(|| largest.min(1.0))
    }

    /// The value of a gauge: the sum over its series, or their mean where it is a share. None if it
    /// says nothing.
    pub(crate) fn gauge(&self, place: &FigureSource<'_>) -> Result<Option<f64>, Nonsense> {
        let signal = place.signal;
        let values = place.parts().flat_map(|part| {
            let sign = if part.is_minus { -1.0 } else { 1.0 };
            self.find_series(&part, "").map(move |series| (sign, series.value * place.scale))
        });
        if is_average(signal) {
            let values: Vec<f64> =
                values.map(|(_, value)| value).filter(|value| is_valid_amount(*value)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let is_silent = values.is_empty() || (mean == 0.0 && is_nothing_at_zero(signal));
            return match mean {
                _ if is_silent => Ok(None),
                share if is_share(signal) && share > 1.0 + ROUNDING => Err(Nonsense),
                share if is_share(signal) => Ok(Some(share.min(1.0))),
                mean => Ok(Some(mean)),
            };
        }
        let mut sum = None;
        for (sign, value) in values {
            // Without this one the sum of the others would be a guess.
            if !is_valid_amount(value) {
                return Err(Nonsense);
            }
            sum = Some(sum.unwrap_or_default() + sign * value);
        }
        // Gauges of one page are not of one instant: a difference may slip below zero.
        Ok(sum.map(|sum| f64::max(sum, 0.0)))
    }
}
