//! Distributions with buckets, summed over their series.

use std::borrow::Cow;
use std::collections::BTreeMap;

use goodput_model::Buckets;

use super::Troubles;
use super::ledger::{self, CounterLedger};
use crate::dialect::{FigureSource, SeriesIndex, SeriesRef};
use crate::text::ParsedSeries;

/// One series of a distribution, as it stands on a page.
#[derive(Debug, Default)]
struct Child {
    /// By upper bound, the number of values up to it.
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
}

/// Adds what came to a place's series since the look before; whether there was any to add.
pub(super) fn add_histogram(
    place: &FigureSource<'_>,
    index: &SeriesIndex<'_>,
    total: &mut Buckets,
    ledger: &mut CounterLedger,
    troubles: &mut Troubles,
) -> bool {
    let mut is_there = false;
    for part in place.parts() {
        for (labels, child) in histogram_children(&part, index, troubles) {
            let key = ledger::series_key(place.signal, part.name, &labels);
            let Some((bounds, values)) = child.bounds_and_values(place.scale) else {
                troubles.count_malformed();
                continue;
            };
            if total.bounds.is_empty() && total.count == 0.0 {
                total.cumulative = vec![0.0; bounds.len()];
                total.bounds = bounds;
            } else if total.bounds != bounds {
                troubles.count_malformed();
                continue;
            }
            let Some(added) = ledger.growth_of_all(key, values, troubles) else { continue };
            let [buckets @ .., sum, count] = added.as_slice() else { continue };
            for (into, more) in total.cumulative.iter_mut().zip(buckets) {
                *into += more;
            }
            total.sum += sum * place.scale;
            total.count += count;
            is_there = true;
        }
    }
    is_there
}

type Labels<'p> = Vec<(Cow<'p, str>, Cow<'p, str>)>;

/// The series of a part, by their labels without the bound.
fn histogram_children<'p>(
    part: &SeriesRef<'_>,
    index: &SeriesIndex<'p>,
    troubles: &mut Troubles,
) -> BTreeMap<Labels<'p>, Child> {
    let mut children: BTreeMap<Labels<'p>, Child> = BTreeMap::new();
    for series in index.find_series(part, "_bucket") {
        match series.label("le").parse::<f64>() {
            Ok(bound) if !bound.is_nan() => {
                let child = children.entry(labels_without_bound(series)).or_default();
                child.buckets.push((bound, series.value));
            }
            _ => troubles.count_malformed(),
        }
    }
    for series in index.find_series(part, "_sum") {
        children.entry(series.labels.clone()).or_default().sum = Some(series.value);
    }
    for series in index.find_series(part, "_count") {
        children.entry(series.labels.clone()).or_default().count = Some(series.value);
    }
    children
}

fn labels_without_bound<'p>(series: &'p ParsedSeries<'p>) -> Labels<'p> {
    series.labels.iter().filter(|(key, _)| key != "le").cloned().collect()
}

impl Child {
    /// Its bounds, and then its buckets, sum and count in a row; none if it is not whole.
    fn bounds_and_values(mut self, scale: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        self.buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        self.buckets.dedup_by(|(one, _), (other, _)| one == other);
        let (bounds, mut values): (Vec<f64>, Vec<f64>) = self.buckets.into_iter().unzip();
        let mut bounds: Vec<f64> = bounds.into_iter().map(|bound| bound * scale).collect();
        let count = self.count.or(values.last().copied())?;
        if bounds.last().is_some_and(|bound| bound.is_finite()) {
            bounds.push(f64::INFINITY);
            values.push(count);
        }
        values.extend([self.sum?, count]);
        Some((bounds, values))
    }
}
