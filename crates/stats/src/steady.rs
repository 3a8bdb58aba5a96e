//! Is the run steady, and from when on?
//!
//! MSER-5 over four series says where a warm-up ends; trends and a level shift in the rest say
//! whether what follows is one state. Each needs significance *and* practical size: a long run
//! proves differences that do not matter, a short one shows differences that chance made.

mod mser;
pub(crate) mod trend;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

use crate::series::{Medians, Series};

pub use crate::summary::Slope;
pub use crate::summary::steady::{Cut, SeriesCut, Shift, Steadiness, SteadyAnswer, Trend};
pub use mser::{Mser, mser5};
pub(crate) use trend::{MOST_POINTS, average_neighbors, median_of};
pub use trend::{MannKendall, Pettitt, least_squares, mann_kendall, pettitt, theil_sen};

/// Fewer bins say nothing about steadiness: ten batches of five.
const FEWEST_BINS: usize = 50;
/// A trend or shift below this share of the median is of no account.
pub(crate) const PRACTICAL: f64 = 0.05;
/// Values before a cut that differ by less than this share from those after it are not a cold start.
const COLD: f64 = 0.10;
/// Chance at which a test for a trend or shift fires. Several series are tested twice each, so it
/// is well below the one in a hundred that a steady run may be accused.
const ALPHA: f64 = 0.002;
/// Points of those tests: averages of neighbors depend less on each other.
const BLOCKS: usize = 60;
/// A server that delivers less than this share of what it delivered at first does not warm up.
const FADED: f64 = 0.5;
/// Standard deviations by which something must exceed what chance makes of a steady queue.
const BEYOND: f64 = 4.0;
/// The same for TPOT relative to its own noise: it does not queue.
const BEYOND_NOISE: f64 = 2.0;
/// A window must be this many times as long as a request takes: in less, a server fills up and
/// empties, and nothing else is seen.
pub(crate) const LEAST_ANSWERS: f64 = 5.0;
/// What a run must be able to show, as a share, before nothing seen means steady.
const VISIBLE: f64 = 1.0;
/// A step of this many standard deviations of its surroundings is not an effect of dependence. A change
/// that takes a fifth of the window makes as many, a straight line three and a half.
const PLAIN_STEP: f64 = 8.0;

fn ratio_or_zero(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole.abs() }
}

/// Half of the bins have a value of their own: values held in between are not observations.
fn is_dense(medians: &Medians) -> bool {
    medians.values.is_empty() || medians.filled_bins() * 2 >= medians.counts.len()
}

/// The series in bins long enough for few requests, as far as enough bins are left.
fn densify(series: &Series) -> Cow<'_, Series> {
    let is_dense = |series: &Series| is_dense(&series.ttft) && is_dense(&series.tpot);
    if is_dense(series) {
        return Cow::Borrowed(series);
    }
    let doubled = |factor: &usize| factor.checked_mul(2);
    let factors = std::iter::successors(Some(2), doubled);
    let most = series.len() / FEWEST_BINS;
    let mut coarser =
        factors.take_while(|factor| *factor <= most).map(|factor| series.merge_bins(factor));
    coarser.find(is_dense).map_or(Cow::Borrowed(series), Cow::Owned)
}

/// Which series are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JudgedSeries {
    All,
    /// TTFT and TPOT only: every load of other tools finds an empty server, which is not a fault of
    /// the latencies.
    Latencies,
}

/// The series by name, without those that have too few values.
fn named_series(series: &Series, judged: JudgedSeries) -> Vec<(&'static str, &[f64])> {
    let mut named = match judged {
        JudgedSeries::All => vec![
            ("in_flight", &series.in_flight[..]),
            ("output_tokens_per_s", &series.tokens_per_s),
        ],
        JudgedSeries::Latencies => Vec::new(),
    };
    for (name, medians) in [("ttft", &series.ttft), ("tpot", &series.tpot)] {
        if is_dense(medians) {
            named.push((name, &medians.values));
        }
    }
    named.retain(|(_, values)| values.len() >= FEWEST_BINS);
    named
}

/// What MSER-5 asks to leave out at the beginning, and which of that is clear.
pub fn find_cut(series: &Series) -> Cut {
    let mut cut = cut_of_series(&densify(series), JudgedSeries::All);
    if is_fading(series, cut.cut_s) {
        cut.cut_s = 0.0;
    }
    cut
}

/// Whether the server delivers less than half as many tokens after this time as before: it did not
/// warm up, it fails or slows down, and what it could do at first is part of the result.
fn is_fading(series: &Series, cut_s: f64) -> bool {
    let bins = (cut_s / series.bin.as_secs()).round() as usize;
    let (before, after) = series.tokens_per_s.split_at(bins.min(series.tokens_per_s.len()));
    !before.is_empty() && mean_of(after) < FADED * mean_of(before)
}

fn cut_of_series(series: &Series, judged: JudgedSeries) -> Cut {
    let mut cut = Cut::default();
    let bin = series.bin.as_secs();
    let chance = Chance::from_series(series);
    for (name, values) in named_series(series, judged) {
        let Some(found) = mser5(values) else { continue };
        let (before, after) = values.split_at(found.cut.min(values.len()));
        let mean_after = mean_of(after);
        let clear = clear_batches(before, after, chance.for_series(name));
        let is_queue = name == "ttft"
            && (clear * mser::BATCH <= unknown_bins(chance, judged)
                || is_queueing(series, found.cut, chance, judged));
        let clear = if is_queue { 0 } else { clear };
        let one = SeriesCut {
            asked_s: found.cut as f64 * bin,
            cut_s: (clear * mser::BATCH) as f64 * bin,
            at_limit: found.at_limit,
            before: if before.is_empty() { mean_after } else { mean_of(before) },
            after: mean_after,
        };
        cut.asked_s = cut.asked_s.max(one.asked_s);
        if !one.is_stuck() {
            cut.cut_s = cut.cut_s.max(one.cut_s);
        }
        cut.series.insert(name.to_owned(), one);
    }
    cut
}

/// How many batches at the beginning are unlike the rest: by a tenth or more on average, and from the
/// first on by more than chance makes of a steady queue, or because the server was empty at first.
/// What MSER-5 cuts from the first batch on that lies in the range of the rest is given back.
fn clear_batches(before: &[f64], after: &[f64], chance: Option<Chance>) -> usize {
    let level = mean_of(after);
    let difference = mean_of(before) - level;
    let floor = chance.map_or(0.0, |chance| {
        level * level * (chance.mean_variance(before.len()) + chance.mean_variance(after.len()))
    });
    // For a mean, times its length; long series by means of neighbors.
    let (blocks, step) = average_neighbors(after, MOST_POINTS);
    let spread = dependence_inflation(&blocks) * variance_of(&blocks) * step as f64;
    let error = spread / before.len() as f64 + spread / after.len() as f64;
    let excess = |batch: &f64| (batch - level) * difference.signum();
    let most = mser::batch_means(after).iter().map(excess).fold(0.0, f64::max);
    let batches: Vec<f64> = mser::batch_means(before).iter().map(excess).collect();
    let is_beyond = difference.abs() >= BEYOND * error.max(floor).sqrt()
        && batches.first().is_some_and(|first| *first > 2.0 * most);
    let is_empty = chance.zip(before.first()).is_some_and(|(chance, first)| {
        ratio_or_zero(level - first, level) >= BEYOND * chance.mean_variance(1).sqrt()
    });
    let unlike = batches.iter().take_while(|batch| **batch > most).count();
    // MSER-5 may cut far beyond the time that an empty server takes to fill.
    let of_these = mean_of(batches.get(..unlike).unwrap_or_default());
    let is_clear = (is_beyond && ratio_or_zero(difference, level).abs() >= COLD)
        || (is_empty && ratio_or_zero(of_these, level) >= COLD);
    if is_clear { unlike } else { 0 }
}

/// Bins at the start with an unknown number of requests in flight: a file may leave out those
/// that were sent before its first request, and two residence times later little of that is left.
/// Within them the end of a queue looks like a cold start.
fn unknown_bins(chance: Chance, judged: JudgedSeries) -> usize {
    match judged {
        JudgedSeries::All => 0,
        JudgedSeries::Latencies => (2.0 * chance.residence) as usize,
    }
}

/// The waits before the cut are what a queue makes of the number in flight: either the rest has
/// waits like that where as many were in flight, or it never had as many. Not where that number
/// itself is beyond chance.
fn is_queueing(series: &Series, cut: usize, chance: Chance, judged: JudgedSeries) -> bool {
    let (before, after) = series.in_flight.split_at(cut.min(series.len()));
    let unknown = unknown_bins(chance, judged).min(before.len());
    let before = before.get(unknown..).unwrap_or_default();
    let error = (chance.mean_variance(before.len()) + chance.mean_variance(after.len())).sqrt();
    if ratio_or_zero(mean_of(before) - mean_of(after), mean_of(after)) >= BEYOND * error {
        return false;
    }
    let waits = series.ttft.values.get(cut..).unwrap_or_default();
    let as_many = after.iter().zip(waits).filter(|(there, _)| **there >= mean_of(before));
    let waits: Vec<f64> = as_many.map(|(_, wait)| *wait).collect();
    let waited = mean_of(series.ttft.values.get(unknown..cut).unwrap_or_default());
    waits.len() < mser::BATCH || waited < (1.0 + COLD) * mean_of(&waits)
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How a steady open loop fluctuates: the number in flight has the variance of its mean, and
/// forgets within the time that a request takes.
#[derive(Debug, Clone, Copy)]
struct Chance {
    in_flight: f64,
    /// Mean time in flight, in bins.
    residence: f64,
}

impl Chance {
    fn from_series(series: &Series) -> Self {
        let ends: f64 = series.completions.iter().map(|count| f64::from(*count)).sum();
        let in_flight = mean_of(&series.in_flight);
        // Little's law.
        let residence = in_flight * series.len() as f64 / ends.max(1.0);
        Self { in_flight, residence }
    }

    /// That of a series; none for medians, whose requests are mostly not the same.
    fn for_series(self, name: &str) -> Option<Self> {
        matches!(name, "in_flight" | "output_tokens_per_s").then_some(self)
    }

    /// Variance of the mean of this many bins, as a share of the square of the mean.
    fn mean_variance(self, bins: usize) -> f64 {
        let shares = (2.0 * self.residence / bins.max(1) as f64).min(1.0);
        shares / self.in_flight.max(1.0)
    }

    /// Standard deviation of the drift that a straight line finds in this many bins, as a share.
    fn drift_sd(self, bins: usize) -> f64 {
        (12.0 * self.mean_variance(bins)).sqrt()
    }
}

fn variance_of(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / values.len().saturating_sub(1).max(1) as f64
}

/// By how much dependence inflates the variance of a mean: twice the sum of the autocorrelations up
/// to the first that noise would make, and one.
fn dependence_inflation(values: &[f64]) -> f64 {
    let (n, mean) = (values.len(), mean_of(values));
    let power: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let limit = 2.0 / (n as f64).sqrt();
    let lag = |lag: usize| {
        let later = values.get(lag..).unwrap_or_default();
        values.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / power
    };
    1.0 + 2.0 * (1..n / 2).map(lag).take_while(|r| *r > limit).sum::<f64>()
}

/// Judges a span from the beginning of the load (or the end of its warm-up) to the end of the
/// window.
pub fn judge_steadiness(series: &Series) -> Steadiness {
    judge_series(series, JudgedSeries::All)
}

/// The same by TTFT and TPOT alone.
pub(crate) fn judge_latencies(series: &Series) -> Steadiness {
    judge_series(series, JudgedSeries::Latencies)
}

fn judge_series(series: &Series, judged: JudgedSeries) -> Steadiness {
    let series = &*densify(series);
    let cut = cut_of_series(series, judged);
    let named = named_series(series, judged);
    if named.is_empty() {
        return Steadiness { state: SteadyAnswer::TooShort, cut, ..Steadiness::default() };
    }
    let chance = Chance::from_series(series);
    let never = cut.series.iter().find(|(_, one)| one.is_stuck()).map(|(name, _)| name.clone());
    // Where no cut helps, the whole is looked at.
    let from_s = if never.is_some() { 0.0 } else { cut.cut_s };
    let from = (from_s / series.bin.as_secs()).round() as usize;
    let mut found: Vec<SeriesCourse> = Vec::new();
    for (name, values) in &named {
        let rest = values.get(from..).unwrap_or_default();
        let start_s = series.start.as_secs() + from as f64 * series.bin.as_secs();
        let beyond = if *name == "tpot" { BEYOND_NOISE } else { BEYOND };
        let place =
            SeriesStart { name, start_s, bin_s: series.bin.as_secs(), beyond: Some(beyond) };
        found.extend(SeriesCourse::from_values(rest, place, chance.for_series(name)));
    }
    // Every series could double and still pass for chance.
    let is_blind = !found.iter().any(SeriesCourse::can_see);
    let mut verdict = steadiness_verdict(cut, never.as_deref(), found);
    let is_latency = |(name, _): &(&str, &[f64])| matches!(*name, "ttft" | "tpot");
    let has_latencies = !series.ttft.values.is_empty() || !series.tpot.values.is_empty();
    // Latencies of so few requests that most bins have none cannot be tested.
    let is_sparse = has_latencies && !named.iter().any(is_latency);
    if is_sparse || is_blind || (series.len() as f64) < LEAST_ANSWERS * chance.residence {
        verdict.mark_unseen();
    }
    verdict
}

/// The worst that was found decides.
fn steadiness_verdict(cut: Cut, never: Option<&str>, mut found: Vec<SeriesCourse>) -> Steadiness {
    // TPOT is the mandatory one: it is named first among equals.
    found.sort_by_key(|course| (course.trend.metric != "tpot", course.trend.metric.clone()));
    let wrong = found.iter().find(|course| course.shifts || course.drifts);
    let stuck = never.and_then(|name| found.iter().find(|course| course.trend.metric == name));
    let seen = found.iter().find(|course| course.can_see());
    let shown = stuck.or(wrong).or(seen).or(found.first());
    let state = match (never.is_some(), shown) {
        (_, Some(course)) if course.shifts => SteadyAnswer::Shifted,
        (true, _) => SteadyAnswer::NeverSteady,
        (false, Some(course)) if course.drifts => SteadyAnswer::Drifting,
        _ => SteadyAnswer::Steady,
    };
    Steadiness {
        state,
        cut,
        trend: shown.map(|course| course.trend.clone()),
        shift: shown.filter(|course| course.shifts).and_then(|course| course.shift.clone()),
    }
}

/// Which series, and where it begins.
#[derive(Clone, Copy)]
struct SeriesStart<'a> {
    name: &'a str,
    start_s: f64,
    bin_s: f64,
    /// Standard deviations of its surroundings that a change must exceed; by the dependence that the
    /// values show where it is unknown.
    beyond: Option<f64>,
}

/// How a column of numbers goes, of which nothing is known but their order. Places are counted in
/// values.
pub(crate) fn judge_column(values: &[f64]) -> Option<SeriesCourse> {
    SeriesCourse::from_values(
        values,
        SeriesStart { name: "column", start_s: 0.0, bin_s: 1.0, beyond: None },
        None,
    )
}

/// How a series goes: a straight line or two levels, whichever fits better, where either is beyond
/// chance and large enough to matter.
pub(crate) struct SeriesCourse {
    pub(crate) trend: Trend,
    pub(crate) test: MannKendall,
    pub(crate) shift: Option<Shift>,
    /// Where two levels differ most, with the chance of it in dependent values.
    pub(crate) pettitt: Option<Pettitt>,
    pub(crate) drifts: bool,
    pub(crate) shifts: bool,
    /// The smallest drift that would be beyond chance, as a share.
    least: f64,
}

impl SeriesCourse {
    fn can_see(&self) -> bool {
        self.least <= VISIBLE
    }

    fn from_values(values: &[f64], place: SeriesStart<'_>, chance: Option<Chance>) -> Option<Self> {
        let (blocks, step) = average_neighbors(values, BLOCKS);
        let level = median_of(&blocks)?;
        let test = mann_kendall(&blocks)?;
        let slope = theil_sen(&blocks)?;
        let drift = slope * (blocks.len() - 1) as f64;
        let line = |i: usize| slope * (i as f64 - (blocks.len() - 1) as f64 / 2.0);
        let around_line: Vec<f64> =
            blocks.iter().enumerate().map(|(i, value)| value - level - line(i)).collect();
        let least =
            PRACTICAL.max(chance.map_or(0.0, |chance| BEYOND * chance.drift_sd(values.len())));
        let drift_share = ratio_or_zero(drift, level);
        let trend = Trend { metric: place.name.to_owned(), drift_share, p: test.p };
        // Either measure of dependence comes from a short series, and may miss it.
        let beyond = |factor: f64, around: &[f64]| {
            let factor = factor.max(dependence_inflation(around)).max(1.0);
            place.beyond.unwrap_or(BEYOND_NOISE * factor.sqrt())
        };
        let noise = beyond(test.factor, &around_line) * variance_of(&around_line).sqrt();
        let drifts = test.p < ALPHA && drift_share.abs() >= least && drift.abs() >= noise;
        let least = least.max(ratio_or_zero(noise, level));

        let place_of = pettitt(&blocks)?;
        let (before, after) = blocks.split_at(place_of.at);
        let levels = median_of(before).zip(median_of(after));
        let Some((low, high)) = levels.filter(|_| before.len() >= 3 && after.len() >= 3) else {
            let none =
                Self { trend, test, shift: None, pettitt: None, drifts, shifts: false, least };
            return Some(none);
        };
        let around_step: Vec<f64> =
            before.iter().map(|value| value - low).chain(after.iter().map(|v| v - high)).collect();
        let is_plain = (high - low).abs() >= PLAIN_STEP * variance_of(&around_step).sqrt();
        let factor = if is_plain { 1.0 } else { trend::hamed_rao(&around_step).max(1.0) };
        let p = trend::pettitt_p(place_of.k / factor.sqrt(), blocks.len() as f64);
        let share = ratio_or_zero(high - low, low);
        let at_s = place.start_s + (place_of.at * step) as f64 * place.bin_s;
        let shift = Shift { metric: place.name.to_owned(), at_s, before: low, after: high, p };
        let half = chance.map_or(0.0, |chance| {
            BEYOND
                * (chance.mean_variance(before.len() * step)
                    + chance.mean_variance(after.len() * step))
                .sqrt()
        });
        let is_step = p < ALPHA
            && share.abs() >= PRACTICAL.max(half)
            && (high - low).abs()
                >= beyond(factor, &around_step) * variance_of(&around_step).sqrt();
        let shifts = is_step && variance_of(&around_step) < variance_of(&around_line);
        let pettitt = Some(Pettitt { p, ..place_of });
        let drifts = drifts && !shifts;
        Some(Self { trend, test, shift: Some(shift), pettitt, drifts, shifts, least })
    }
}
