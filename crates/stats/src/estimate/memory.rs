//! Whether requests remember each other, and for how long.
//!
//! A queue is rare and lasts: while it is there all requests are slow, and a run that met none of it
//! looks like independent requests. The misses of such a run cannot tell, for there are none. Its
//! latencies can: they are alike long before any of them is too long (docs/design/012).

use super::Contention;

/// Slices of the window in which likeness is looked for: 32 to a batch.
pub(crate) const SLICES: u16 = 640;

/// A correlation is summed over this many times its own length (Sokal).
const FOLLOWED: f64 = 5.0;
/// A likeness counts from this many of its standard errors above one, and from this factor on: of the
/// worst tenth, and of the values themselves, which few large ones decide.
const ERRORS: f64 = 3.0;
const LEAST_OF_TENTH: f64 = 1.5;
const LEAST_OF_VALUES: f64 = 2.5;
/// A tail that is this much more alike than the median is a queue's.
const GROWS: f64 = 1.5;
/// Values that spread less than this around their mean do not show a queue, however alike neighbors are.
const SMALL: f64 = 0.1;
/// With fewer independent waits than this a run is short for what it remembers, whatever its tail.
const LONG: f64 = 100.0;
/// A likeness that a latency has from its wait spoils its middle from this factor on.
const CARRIED: f64 = 4.0;
/// The same of what is expected from how full the server is.
const EXPECTED: f64 = 2.0;
/// By this many independent waits a run is too kind to the latency that a wait is a part of.
const SHORT_OF_WHOLE: f64 = 300.0;

/// With a smaller share of requests that wait for others, waits decide no figure.
const FEW_WAIT: f64 = 0.02;
/// The same of those that found the server full in this run: more are a spell of slow answers.
const FEW_MET: f64 = 0.04;
/// A queue must have had time to build up and drain this many times before its waits are known.
const PERIODS: f64 = 100.0;

/// What a part of the distribution asks of a run whose requests are alike.
#[derive(Debug, Clone, Copy)]
struct MemoryPart {
    /// The quantiles up to this one.
    up_to: f64,
    /// How much of the likeness it has.
    share: f64,
    /// By this many independent waits a run is too kind to its own likeness.
    short: f64,
    /// With fewer independent waits a run may just have met no queue.
    waits: f64,
    /// Independent values that its interval needs.
    worth: f64,
}

/// Chosen on simulated queues (docs/design/012), which are not those of the published table.
const PARTS: [MemoryPart; 3] = [
    MemoryPart { up_to: 0.5, share: 0.6, short: 150.0, waits: 8.0, worth: 8.0 },
    MemoryPart { up_to: 0.95, share: 1.0, short: 1_500.0, waits: 350.0, worth: 15.0 },
    MemoryPart { up_to: 1.0, share: 1.0, short: 450.0, waits: 450.0, worth: 40.0 },
];

/// By how much more the sum of values varies than that of independent ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Inflation {
    pub(crate) factor: f64,
    /// Slices over which values were found alike.
    lags: usize,
}

impl Inflation {
    /// Of slices whose sums deviate so much from what their numbers of values would have; the squares
    /// of independent values add up to `independent`.
    pub(crate) fn from_deviations(deviations: &[f64], independent: f64) -> Self {
        let own: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
        if independent.is_nan() || independent <= 0.0 || own <= 0.0 || !own.is_finite() {
            return Self { factor: 1.0, lags: 1 };
        }
        let product = |lag: usize| -> f64 {
            deviations.iter().zip(deviations.iter().skip(lag)).map(|(one, other)| one * other).sum()
        };
        let (mut sum, mut lags) = (own, 1);
        while lags < deviations.len() / 3 {
            sum += 2.0 * product(lags);
            if lags as f64 >= FOLLOWED * (sum / own).max(0.2) {
                break;
            }
            lags += 1;
        }
        Self { factor: sum / independent, lags }
    }

    /// Whether chance alone would hardly make it so large.
    pub(crate) fn is_significant(self, least: f64, errors: f64) -> bool {
        let error = (2.0 * (2.0 * self.lags as f64 + 1.0) / f64::from(SLICES)).sqrt();
        self.factor > least && self.factor - 1.0 > errors * error
    }
}

/// What the values of a run say about how much its requests remember of each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Memory {
    n: f64,
    /// The likeness of the worst tenth, and of the far tail; 1 where values are taken for independent.
    tenth: f64,
    tail: f64,
    /// The likeness of the values themselves, as it was found.
    pub(crate) of_values: f64,
    /// The likeness that values have from a wait they are made of; 0 without one.
    carried: f64,
    /// Whether requests wait for one another, which a run this short knows too little about.
    contention: Option<Contention>,
}

impl Memory {
    /// Of `n` values with this standard deviation in proportion to their mean, and the likeness of the
    /// values, of those beyond their median and of those in their worst tenth.
    pub(crate) fn new(n: u64, spread: f64, [values, median, tenth]: [Inflation; 3]) -> Self {
        let n = n as f64;
        let factor = |found: Inflation, least: f64| {
            let is_queue = found.factor > GROWS * median.factor || n / found.factor < LONG;
            let is_sure = found.is_significant(least, ERRORS) && is_queue && spread > SMALL;
            if is_sure { found.factor } else { 1.0 }
        };
        let tenth = factor(tenth, LEAST_OF_TENTH);
        let tail = tenth.max(factor(values, LEAST_OF_VALUES));
        // Where a run holds few waits, nothing of its distribution is better known than its tail.
        let tenth = if n / tail < LONG { tail } else { tenth };
        Self { n, tenth, tail, of_values: values.factor.max(0.0), carried: 0.0, contention: None }
    }

    /// Of values that are taken for independent.
    pub(crate) fn none(n: u64) -> Self {
        Self { n: n as f64, tenth: 1.0, tail: 1.0, of_values: 1.0, carried: 0.0, contention: None }
    }

    /// The same of waits at a server that makes requests wait for one another.
    pub(crate) fn with_contention(self, contention: Option<Contention>) -> Self {
        let is_rare = |found: Contention| {
            found.waiting_share() < FEW_WAIT && found.met_full < FEW_MET && found.explains_memory()
        };
        if contention.is_some_and(is_rare) {
            // What is alike are waits, and they are too rare to decide a figure.
            return Self { tenth: 1.0, tail: 1.0, contention, ..self };
        }
        Self { contention, ..self }
    }

    /// The same where a wait with this memory makes this share of the values' variance (in ms²).
    pub(crate) fn with_wait(self, wait: Self, share: f64, variance: f64) -> Self {
        let seen = if wait.tail > 1.0 {
            share * widen_factor(wait.n, wait.tail, SHORT_OF_WHOLE)
        } else {
            0.0
        };
        let expected = wait.contention.map_or(0.0, |found| found.mean_inflation(variance / 1e6));
        Self { carried: seen.max(expected * CARRIED / EXPECTED), ..self }
    }

    /// Whether requests wait for one another more often than a run this short can tell.
    fn is_contended(self) -> bool {
        let is_short = |found: Contention| {
            found.waiting_share() >= FEW_WAIT && found.relaxation_periods() < PERIODS
        };
        self.contention.is_some_and(is_short)
    }

    /// The one that requests remember longer by.
    pub(crate) fn longer_of(self, other: Self) -> Self {
        let strength = |of: Self| (of.is_contended(), of.tail.max(of.carried));
        if strength(other) > strength(self) { other } else { self }
    }

    /// The likeness at quantile `q`, counted from the good side, and what it asks for.
    fn inflation_at(self, q: f64) -> (f64, MemoryPart) {
        let [middle, near, far] = PARTS;
        match q {
            q if q <= middle.up_to => (self.tenth, middle),
            q if q <= near.up_to => (self.tenth, near),
            _ => (self.tail, far),
        }
    }

    /// By how much more the share of values beyond quantile `q`, counted from the good side, varies.
    pub(crate) fn share_inflation(self, q: f64) -> f64 {
        let (factor, part) = self.inflation_at(q);
        let seen = part.share * widen_factor(self.n, factor, part.short);
        let is_middle = q <= PARTS[0].up_to;
        let expected =
            self.contention.filter(|_| is_middle).map_or(1.0, Contention::median_inflation);
        let own = seen.max(expected);
        // A wait moves the middle of what it is a part of more than its tail.
        own.max(1.0 + self.carried * 4.0 * q * (1.0 - q))
    }

    /// By how much more the mean varies.
    pub(crate) fn mean_inflation(self) -> f64 {
        let far = widen_factor(self.n, self.tail, PARTS[2].short);
        self.of_values.max(far).max(1.0 + self.carried)
    }

    /// Whether the bad side of the interval of this quantile can be trusted from values that are worth
    /// this many independent ones.
    pub(crate) fn trusts_quantile(self, q: f64, worth: f64) -> bool {
        let (factor, part) = self.inflation_at(q);
        let is_middle = q <= PARTS[0].up_to;
        let is_spoiled = if is_middle { self.carried >= CARRIED } else { self.is_contended() };
        let is_independent = factor <= 1.0;
        !is_spoiled && (is_independent || (self.n / factor >= part.waits && worth >= part.worth))
    }

    /// Whether the mean's bad side can: a mean rests on the longest waits, so that the least likeness
    /// is a doubt.
    pub(crate) fn trusts_mean(self) -> bool {
        const SLIGHT: f64 = 1.25;
        const MANY: f64 = 2_000.0;
        let is_slight = self.of_values > SLIGHT && self.n / self.of_values < MANY;
        !is_slight && self.carried < CARRIED && !self.is_contended()
    }
}

/// A factor that was found in `n` values as a longer run would find it.
fn widen_factor(n: f64, factor: f64, short: f64) -> f64 {
    if factor > 1.0 { factor * (1.0 + short * factor / n) } else { 1.0 }
}
