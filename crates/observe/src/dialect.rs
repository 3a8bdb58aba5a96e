//! Names of engines, mapped onto ours. Where they come from stands in docs/server-names.md.

mod engines;
mod index;
mod map;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use goodput_model::{Signal, SignalKind};

pub(crate) use engines::DIALECTS;
pub(crate) use index::SeriesIndex;
pub use map::{MappedSignal, MetricsMap};

use crate::text::ParsedSeries;

/// One engine's names.
#[derive(Debug)]
pub(crate) struct EngineNames {
    /// The engine, as reports call it.
    pub(crate) name: &'static str,
    /// Where our figures stand. Of several places of one figure the first that is there counts.
    pub(crate) places: &'static [FigureSource<'static>],
}

/// Where one figure stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FigureSource<'a> {
    pub(crate) signal: Signal,
    parts: Parts<'a>,
    /// Of a distribution of which only the sum is told: where the number of values stands.
    pub(crate) count: Option<SeriesRef<'a>>,
    /// What its values are multiplied with.
    pub(crate) scale: f64,
}

/// The series of a place; those that are there are added up.
#[derive(Debug, Clone, Copy)]
enum Parts<'a> {
    Known(&'static [SeriesRef<'static>]),
    Mapped(&'a MappedSignal),
}

/// Series of one name; of a histogram the name without `_bucket`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeriesRef<'a> {
    pub(crate) name: &'a str,
    labels: Labels<'a>,
    /// Whether it is taken away instead of added; for gauges only.
    pub(crate) is_minus: bool,
}

/// Labels that pick some of the series of a name.
#[derive(Debug, Clone, Copy)]
enum Labels<'a> {
    Known(&'static [(&'static str, &'static str)]),
    Mapped(&'a BTreeMap<String, String>),
}

impl Labels<'_> {
    /// Whether a series has them; an empty value also picks those without the label.
    fn matches(self, series: &ParsedSeries<'_>) -> bool {
        match self {
            Self::Known(labels) => labels.iter().all(|(key, value)| series.label(key) == *value),
            Self::Mapped(labels) => labels.iter().all(|(key, value)| series.label(key) == value),
        }
    }
}

impl EngineNames {
    /// Whose names a page uses: the first dialect of which something is there.
    pub(crate) fn detect(index: &SeriesIndex<'_>) -> Option<usize> {
        DIALECTS
            .iter()
            .position(|dialect| dialect.places.iter().any(|place| index.has_figure(place)))
    }

    /// A gauge of a page, from this dialect alone.
    pub(crate) fn gauge(&self, signal: Signal, index: &SeriesIndex<'_>) -> Option<f64> {
        let place =
            self.places.iter().find(|place| place.signal == signal && index.has_figure(place))?;
        index.gauge(place).ok()?
    }
}

/// Whether a value can be an amount of something.
pub(crate) fn is_valid_amount(value: f64) -> bool {
    (0.0..9e18).contains(&value)
}

/// Whether engines side by side are averaged instead of added up.
pub(crate) fn is_average(signal: Signal) -> bool {
    is_share(signal) || signal == Signal::SpeculativeLength
}

/// Whether a figure lies between zero and one.
pub(crate) fn is_share(signal: Signal) -> bool {
    use Signal::{KvUsage, KvUsageMax, PrefixHitRate, SpeculativeAcceptance};
    matches!(signal, KvUsage | KvUsageMax | PrefixHitRate | SpeculativeAcceptance)
}

/// Whether zero says that there is nothing to say: engines show these without speculation too.
pub(crate) fn is_nothing_at_zero(signal: Signal) -> bool {
    matches!(signal, Signal::SpeculativeAcceptance | Signal::SpeculativeLength)
}

impl<'a> FigureSource<'a> {
    /// Its series.
    pub(crate) fn parts(&self) -> impl Iterator<Item = SeriesRef<'a>> + use<'a> {
        let (known, mapped) = match self.parts {
            Parts::Known(parts) => (parts, None),
            Parts::Mapped(mapped) => (Default::default(), Some(mapped)),
        };
        let mapped = mapped.into_iter().flat_map(|mapped| {
            let labels = Labels::Mapped(&mapped.labels);
            mapped.series.iter().map(move |name| SeriesRef { name, labels, is_minus: false })
        });
        known.iter().copied().chain(mapped)
    }

    /// Whether it is a distribution with names of its own for buckets, sum and count.
    pub(crate) fn is_histogram(&self) -> bool {
        self.signal.kind() == SignalKind::Histogram && self.count.is_none()
    }
}
