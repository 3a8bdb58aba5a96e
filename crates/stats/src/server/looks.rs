//! Looks at the server's pages, endpoint by endpoint, and what grew between two of them.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::{Buckets, HealthSample, Nanos, Scrape, ServerReading, Signal, SignalValue};

/// Larger figures count nothing: a page may claim what it likes.
const LARGEST: f64 = 1e18;

/// All questions of a run.
#[derive(Debug, Default)]
pub(super) struct ServerLooks<'a> {
    /// In order of time.
    by_endpoint: BTreeMap<u32, Vec<&'a Scrape>>,
    /// Endpoints at which several servers answered in turn: their totals belong to no single server.
    mixed: BTreeSet<u32>,
}

/// What was last said of each figure.
pub(super) type Said<'a> = BTreeMap<Signal, &'a SignalValue>;

/// Two looks at one endpoint, and everything that it had said by then.
#[derive(Debug)]
pub(super) struct Between<'a> {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    before: Said<'a>,
    after: Said<'a>,
}

impl<'a> ServerLooks<'a> {
    pub(super) fn from_samples(samples: &'a [HealthSample]) -> Self {
        let mut looks = Self::default();
        for scrape in samples.iter().flat_map(|sample| &sample.scrapes) {
            looks.by_endpoint.entry(scrape.endpoint).or_default().push(scrape);
            if scrape.outcome.as_ref().is_ok_and(|reading| reading.of_several) {
                looks.mixed.insert(scrape.endpoint);
            }
        }
        looks.by_endpoint.values_mut().for_each(|asked| asked.sort_by_key(|scrape| scrape.at));
        looks
    }

    /// This endpoint alone.
    pub(super) fn of_endpoint(&self, endpoint: u32) -> Self {
        let asked = self.by_endpoint.get(&endpoint).cloned();
        let mixed = self.mixed.clone();
        Self { by_endpoint: asked.map(|asked| (endpoint, asked)).into_iter().collect(), mixed }
    }

    /// Whether several servers answered there in turn. Their totals before that was known are no
    /// better than those after it.
    pub(super) fn is_mixed(&self, endpoint: u32) -> bool {
        self.mixed.contains(&endpoint)
    }

    /// Endpoints that were asked.
    pub(super) fn asked_endpoints(&self) -> impl Iterator<Item = u32> {
        self.by_endpoint.keys().copied()
    }

    /// Endpoints that answered at least once.
    pub(super) fn answering_endpoints(&self) -> impl Iterator<Item = u32> {
        let answers = |asked: &[&Scrape]| asked.iter().any(|scrape| scrape.outcome.is_ok());
        self.by_endpoint
            .iter()
            .filter(move |(_, asked)| answers(asked))
            .map(|(endpoint, _)| *endpoint)
    }

    /// All questions to an endpoint.
    pub(super) fn scrapes_of(&self, endpoint: u32) -> &[&'a Scrape] {
        self.by_endpoint.get(&endpoint).map_or(&[], Vec::as_slice)
    }

    /// Everything that any endpoint said, in order of time.
    pub(super) fn readings(&self) -> Vec<(Nanos, u32, &'a ServerReading)> {
        let all = self.by_endpoint.values().flatten();
        let mut said: Vec<_> = all
            .filter_map(|scrape| Some((scrape.at, scrape.endpoint, scrape.outcome.as_ref().ok()?)))
            .collect();
        said.sort_by_key(|(at, ..)| *at);
        said
    }

    /// The first and the last look of each endpoint that answered; none for one that has no two of
    /// them, or is several servers. Of looks before the first request, which are all at zero, the last is the first.
    pub(super) fn between_looks(
        &self,
        is_inside: impl Fn(Nanos) -> bool,
    ) -> Vec<Option<Between<'a>>> {
        let of = |endpoint| {
            let asked = Some(self.scrapes_of(endpoint)).filter(|_| !self.is_mixed(endpoint))?;
            between_first_and_last(asked, &is_inside)
        };
        self.answering_endpoints().map(of).collect()
    }
}

fn between_first_and_last<'a>(
    asked: &[&'a Scrape],
    is_inside: impl Fn(Nanos) -> bool,
) -> Option<Between<'a>> {
    let is_look = |scrape: &&Scrape| scrape.outcome.is_ok() && is_inside(scrape.at);
    let last = asked.iter().rposition(is_look)?;
    let to = asked.get(last)?.at;
    let mut after = Said::new();
    let mut first: Option<(Nanos, Said<'a>)> = None;
    for scrape in asked.iter().take(last + 1) {
        let Ok(reading) = &scrape.outcome else { continue };
        after.extend(reading.values.iter().map(|(signal, value)| (*signal, value)));
        let is_first = |(at, _): &(Nanos, _)| *at == Nanos::ZERO && scrape.at == Nanos::ZERO;
        if is_inside(scrape.at) && first.as_ref().is_none_or(is_first) {
            first = Some((scrape.at, after.clone()));
        }
    }
    let (from, before) = first?;
    (from < to).then_some(Between { from, to, before, after })
}

impl Between<'_> {
    pub(super) fn seconds(&self) -> f64 {
        (self.to - self.from).as_secs()
    }

    /// By how much a total grew. What was not there at first counts from zero.
    pub(super) fn growth_of(&self, signal: Signal) -> Option<f64> {
        let total = |said: &Said<'_>| said.get(&signal).and_then(|value| valid_number(value));
        let after = total(&self.after)?;
        Some((after - total(&self.before).unwrap_or(0.0)).max(0.0))
    }

    /// What came into a distribution.
    pub(super) fn distribution_of(&self, signal: Signal) -> Option<Buckets> {
        let all = |said: &Said<'_>| match said.get(&signal) {
            Some(SignalValue::Buckets(buckets)) if are_valid(buckets) => Some(buckets.clone()),
            _ => None,
        };
        let after = all(&self.after)?;
        match all(&self.before).filter(|before| before.count > 0.0) {
            Some(before) => Some(combine_buckets(&after, &before, |after, before| after - before)),
            None => Some(after),
        }
    }
}

/// A figure that can be one.
pub(super) fn valid_number(value: &SignalValue) -> Option<f64> {
    match value {
        SignalValue::Number(number) => Some(*number).filter(|number| is_possible(*number)),
        SignalValue::Buckets(_) => None,
    }
}

fn is_possible(value: f64) -> bool {
    value.is_finite() && value.abs() <= LARGEST
}

fn are_valid(buckets: &Buckets) -> bool {
    let Buckets { bounds, cumulative, sum, count } = buckets;
    let mut figures = cumulative.iter().chain([sum, count]);
    figures.all(|figure| is_possible(*figure)) && !bounds.iter().any(|bound| bound.is_nan())
}

/// Two distributions as one, by the bounds that they share.
pub(super) fn combine_buckets(a: &Buckets, b: &Buckets, by: fn(f64, f64) -> f64) -> Buckets {
    let of_b = |bound: f64| {
        let place = b.bounds.partition_point(|other| *other < bound);
        b.bounds.get(place).filter(|other| **other == bound)?;
        b.cumulative.get(place)
    };
    let shared = a.bounds.iter().zip(&a.cumulative);
    let shared = shared.filter_map(|(bound, of_a)| Some((*bound, by(*of_a, *of_b(*bound)?))));
    let (bounds, cumulative) = shared.unzip();
    Buckets { bounds, cumulative, sum: by(a.sum, b.sum), count: by(a.count, b.count) }
}
