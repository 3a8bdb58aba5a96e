//! [`EndpointFollower`]: one endpoint, look after look, with totals that survive a restart of the
//! server.

mod histogram;
mod ledger;
mod servers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::{Buckets, ServerReading, Signal, SignalKind, SignalValue};

use crate::dialect::{DIALECTS, EngineNames, FigureSource, MetricsMap, SeriesIndex, SeriesRef};
use crate::text::ParsedPage;
use ledger::CounterLedger;
use servers::Servers;

/// Follows one endpoint.
#[derive(Debug, Default)]
pub struct EndpointFollower {
    map: Option<Arc<MetricsMap>>,
    /// The dialect of the last page that had one.
    dialect: Option<usize>,
    /// Where each figure was last found, and how far it has come.
    found: BTreeMap<Signal, PageFigure>,
    ledger: CounterLedger,
    /// Whether there was a look already: what appears from now on counts from zero.
    has_looked: bool,
    servers: Servers,
}

/// A figure that was on a page.
#[derive(Debug)]
struct PageFigure {
    /// Which of its places: kept as long as it is there, so that totals are of one source.
    place: PlaceId,
    /// What came together since the first look.
    total: Buckets,
}

/// The map's place, or the place of a dialect.
type PlaceId = (Option<usize>, usize);

/// What a scrape found, apart from figures.
#[derive(Debug, Default, Clone, Copy)]
struct Troubles {
    resets: u32,
    malformed: u32,
}

impl Troubles {
    fn count_reset(&mut self) {
        self.resets = self.resets.saturating_add(1);
    }

    fn count_malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
    }
}

impl EndpointFollower {
    /// Begins with the first look. With a map, its figures are read where it says, and all others
    /// by the names that we know.
    pub fn new(map: Option<Arc<MetricsMap>>) -> Self {
        Self { map, ..Self::default() }
    }

    /// The next look: totals count from the first one.
    pub fn read(&mut self, page: &str) -> ServerReading {
        let page = ParsedPage::parse(page);
        let index = SeriesIndex::new(&page);
        self.dialect = EngineNames::detect(&index).or(self.dialect);
        let map = self.map.clone();
        let places = all_sources(map.as_deref(), self.dialect);
        let mut troubles = Troubles { resets: 0, malformed: page.malformed };
        let mut values = BTreeMap::new();
        for signal in Signal::ALL {
            let Some((id, place)) = self.choose_source(*signal, &places, &index) else { continue };
            let value = if signal.kind() == SignalKind::Gauge {
                read_gauge(place, &index, &mut troubles)
            } else {
                self.total_growth(id, place, &index, &mut troubles)
            };
            if *signal == Signal::KvUsage && value.is_some() {
                // A mean hides the one engine that has no room left.
                let fullest = index.largest_share(place).map(SignalValue::Number);
                values.extend(fullest.map(|fullest| (Signal::KvUsageMax, fullest)));
            }
            values.extend(value.map(|value| (*signal, value)));
        }
        // An empty page cannot be the first scrape: the totals of the next would all count as new.
        self.has_looked |= !values.is_empty();
        let of_several = self.servers.are_several(&index, troubles.resets > 0);
        values.retain(|signal, _| !of_several || signal.kind() == SignalKind::Gauge);
        ServerReading { values, resets: troubles.resets, malformed: troubles.malformed, of_several }
    }

    /// Whose names the page uses; empty until they are known.
    pub fn engine(&self) -> &str {
        let known = || self.dialect.and_then(|dialect| DIALECTS.get(dialect));
        match &self.map {
            Some(map) => &map.name,
            None => known().map_or("", |dialect| dialect.name),
        }
    }

    /// The place to read a figure from: the one of the look before, or else the first that is there.
    fn choose_source<'p, 'a>(
        &self,
        signal: Signal,
        places: &'p [(PlaceId, FigureSource<'a>)],
        index: &SeriesIndex<'_>,
    ) -> Option<(PlaceId, &'p FigureSource<'a>)> {
        let before = self.found.get(&signal).map(|found| found.place);
        let mut there = places
            .iter()
            .filter(|(_, place)| place.signal == signal && index.has_figure(place))
            .map(|(id, place)| (*id, place));
        let first = there.next()?;
        let again = std::iter::once(first).chain(there).find(|(id, _)| Some(*id) == before);
        Some(again.unwrap_or(first))
    }

    /// A counter or a distribution, since the first look.
    fn total_growth(
        &mut self,
        id: PlaceId,
        place: &FigureSource<'_>,
        index: &SeriesIndex<'_>,
        troubles: &mut Troubles,
    ) -> Option<SignalValue> {
        // What another source has counted so far is not of this run; what was not there at all is.
        let is_known = self.found.get(&place.signal).is_some_and(|found| found.place == id);
        let is_other = self.found.contains_key(&place.signal) && !is_known;
        self.ledger.from_zero = self.has_looked && !is_other;
        let found = self
            .found
            .entry(place.signal)
            .or_insert_with(|| PageFigure { place: id, total: Buckets::default() });
        found.place = id;
        let total = &mut found.total;
        if place.signal.kind() == SignalKind::Counter {
            total.sum += sum_growth(place.parts(), place, index, &mut self.ledger, troubles)?;
            return Some(SignalValue::Number(total.sum));
        }
        if let Some(count) = place.count {
            let count = sum_growth([count].into_iter(), place, index, &mut self.ledger, troubles);
            let sum = sum_growth(place.parts(), place, index, &mut self.ledger, troubles);
            total.count += count?;
            total.sum += sum? * place.scale;
        } else if !histogram::add_histogram(place, index, total, &mut self.ledger, troubles) {
            return None;
        }
        Some(SignalValue::Buckets(total.clone()))
    }
}

/// All places in order of preference. What the map has is not looked for elsewhere.
fn all_sources<'m>(
    map: Option<&'m MetricsMap>,
    dialect: Option<usize>,
) -> Vec<(PlaceId, FigureSource<'m>)> {
    let mut places: Vec<(PlaceId, FigureSource<'m>)> = map
        .into_iter()
        .flat_map(MetricsMap::sources)
        .enumerate()
        .map(|(number, place)| ((None, number), place))
        .collect();
    let mapped: Vec<Signal> = places.iter().map(|(_, place)| place.signal).collect();
    let known = dialect.and_then(|dialect| DIALECTS.get(dialect)).into_iter();
    let known = known.flat_map(|known| known.places).enumerate();
    let known = known.filter(|(_, place)| !mapped.contains(&place.signal));
    places.extend(known.map(|(number, place)| ((dialect, number), *place)));
    places
}

fn read_gauge(
    place: &FigureSource<'_>,
    index: &SeriesIndex<'_>,
    troubles: &mut Troubles,
) -> Option<SignalValue> {
    let value = index.gauge(place);
    if value.is_err() {
        troubles.count_malformed();
    }
    value.ok()?.map(SignalValue::Number)
}

/// What came to the series of some parts since the look before; none if none of them is a number.
fn sum_growth<'a>(
    parts: impl Iterator<Item = SeriesRef<'a>>,
    place: &FigureSource<'_>,
    index: &SeriesIndex<'_>,
    ledger: &mut CounterLedger,
    troubles: &mut Troubles,
) -> Option<f64> {
    let mut sum = None;
    let scale = if place.signal.kind() == SignalKind::Counter { place.scale } else { 1.0 };
    for series in parts.flat_map(|part| index.find_series(&part, "")) {
        let key = ledger::series_key(place.signal, &series.name, &series.labels);
        if let Some(added) = ledger.growth(key, series.value, troubles) {
            sum = Some(sum.unwrap_or_default() + added * scale);
        }
    }
    sum
}
