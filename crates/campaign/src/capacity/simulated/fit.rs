//! Fitting the model to measured points.
//!
//! What a step takes by its batch comes from TPOT over the requests in it; what a prefill token and
//! the way to the queue take, from TTFT at the lowest load. How the two mix, and how many sequences
//! there may be at once, shows in no single figure: of a few candidates the one is taken that comes
//! closest to all points, after a last number (sequences at once, or the speed of all steps) was
//! set such that the model crosses the SLO where the server does.

use goodput_model::{MetricName, Slo};
use goodput_sim::JobOutcome;

use super::limits::{outcome_value, quantile};
use super::{FitPoint, Fitted, Parameters, Sizes, Stretch, StretchLimits, simulate_stretch};
use crate::capacity::{Basis, MeasuredLevel};

/// Points that a fit needs, and how far apart the lowest and the highest must lie.
const LEAST_POINTS: usize = 3;
const LEAST_RANGE: f64 = 2.0;
/// Sequences at once where nothing limits them.
const UNLIMITED: u32 = 4096;
/// Medians of relative errors of TTFT p50, TTFT p99 and TPOT p50 beyond which nothing is stated.
const WORST: [f64; 3] = [0.25, 0.4, 0.15];
/// Steps may be made slower or faster by this much, not more.
const SLOWNESS: [f64; 2] = [0.75, 1.33];
/// The mean over points and figures of |ln(simulated / measured)| beyond which nothing is stated.
const WORST_MEAN: f64 = 0.3;
/// Above this share of the limit chance rules the queue, and a point says little.
const NEAR: f64 = 0.93;
/// Load before what is judged, at most, in seconds.
const MOST_BURN_IN_S: f64 = 60.0;
/// The model's limit must lie this close to the measured one: what a search can resolve.
const RESOLUTION: f64 = 0.06;

/// The model that behaves as the measured replica did, or why there is none.
pub fn calibrate_model(basis: &Basis, sizes: &Sizes) -> Result<Fitted, String> {
    let slo = basis.parse_slo().ok_or("there is no SLO to judge simulated requests by")?;
    let limits = StretchLimits::from_slo(&slo, basis.attainment_target)?;
    let most = basis
        .most_rps()
        .ok_or("no upper limit of a replica is known, so the model cannot be fitted to it")?;
    let limit_rps = basis
        .crossing_rps
        .map(|at| at.max(basis.confirmed_rps))
        .filter(|at| *at <= most)
        .unwrap_or((basis.confirmed_rps * most).sqrt());
    let points = fit_samples(basis, most)?;
    let burn_in_s = points.iter().map(|point| 3.0 * point.e2e_ms / 1e3).fold(10.0, f64::max);
    let burn_in_s = burn_in_s.min(MOST_BURN_IN_S);
    let bench = FitBench { sizes, slo: &slo, limits, points: &points, limit_rps, burn_in_s };
    let best = bench.best_candidate()?;
    bench.accept_model(&best)
}

/// A measured point, as far as the fit needs it.
struct FitSample {
    rps: f64,
    /// Sequences in a step.
    batch: f64,
    tpot_ms: f64,
    ttft_p50_ms: f64,
    ttft_p99_ms: Option<f64>,
    e2e_ms: f64,
}

fn fit_sample(level: &MeasuredLevel) -> Option<FitSample> {
    let figures = &level.figures;
    if !level.is_open || figures.over_saturated == Some(true) || figures.failed * 20 > figures.ok {
        return None;
    }
    let positive = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
    let tpot_ms = positive(figures.tpot_ms.p50?.value)?;
    let ttft_p50_ms = positive(figures.ttft_ms.p50?.value)?;
    let e2e_ms = positive(figures.e2e_ms.mean.or(figures.e2e_ms.p50.map(|p50| p50.value))?)?;
    let before = figures.ttft_ms.mean.unwrap_or(ttft_p50_ms);
    // By Little's law, who has a first token and not the last.
    let decoding = level.rps * ((e2e_ms - before) / 1e3).max(0.0);
    let batch = figures.batch.and_then(positive).unwrap_or(decoding);
    let ttft_p99_ms = figures.ttft_ms.p99.and_then(|p99| positive(p99.value));
    Some(FitSample { rps: level.rps, batch, tpot_ms, ttft_p50_ms, ttft_p99_ms, e2e_ms })
}

/// The points that were in balance, up to the first rate that is too much.
fn fit_samples(basis: &Basis, rejected: f64) -> Result<Vec<FitSample>, String> {
    let all = basis.levels.iter().filter(|level| level.rps <= rejected * 1.001);
    let mut points: Vec<FitSample> = all.filter_map(fit_sample).collect();
    points.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    let mut rates: Vec<f64> = points.iter().map(|point| point.rps).collect();
    rates.dedup_by(|b, a| *b <= *a * 1.005);
    if rates.len() < LEAST_POINTS {
        return Err(format!(
            "{} open-loop rates up to the limit have TTFT and TPOT; a fit needs {}",
            rates.len(),
            LEAST_POINTS
        ));
    }
    match (rates.first(), rates.last()) {
        (Some(low), Some(high)) if high / low >= LEAST_RANGE => Ok(points),
        _ => {
            Err("the measured rates are too close together: a fit needs a factor of two".to_owned())
        }
    }
}

/// Everything that candidates are compared with.
struct FitBench<'a> {
    sizes: &'a Sizes,
    slo: &'a Slo,
    limits: StretchLimits,
    points: &'a [FitSample],
    limit_rps: f64,
    burn_in_s: f64,
}

impl FitBench<'_> {
    /// The candidate that comes closest to the points.
    fn best_candidate(&self) -> Result<Parameters, String> {
        let candidates = self.candidates()?;
        let mut scored: Vec<(f64, Parameters)> =
            candidates.into_iter().map(|each| (self.score_candidate(&each, 2), each)).collect();
        scored.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A second one is worth being tuned only where it is about as close.
        let closest = scored.first().map_or(f64::INFINITY, |(score, _)| *score);
        let near = scored.into_iter().take(2).filter(|(score, _)| *score <= closest * 1.25);
        let tuned = near.flat_map(|(_, each)| self.tune_limit(&self.refine_step_times(each)));
        let best = tuned
            .map(|each| (self.score_candidate(&each, 1), each))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, each)| each).ok_or_else(|| {
            format!(
                "no setting of the model reaches the SLO limit at {:.3} requests/s with steps \
                 within a third of what was measured",
                self.limit_rps
            )
        })
    }

    /// Ways to read the figures at the lowest load.
    fn candidates(&self) -> Result<Vec<Parameters>, String> {
        let Some(lowest) = self.points.first() else { return Err("no points".to_owned()) };
        let input = self.sizes.mean_input();
        let base = self.points.iter().map(|point| point.tpot_ms).fold(f64::INFINITY, f64::min);
        // A request that arrives during a step waits for its end, half a step on average.
        let busy = 1.0 - (-lowest.batch).exp();
        let rest = (lowest.ttft_p50_ms - base * (1.0 + 0.5 * busy)).max(0.0);
        let mut all = Vec::new();
        for share in [1.0, 0.6, 0.3, 0.1] {
            for overlap in [0.0, 1.0] {
                let prefill_ms = share * rest / input;
                let decode = self.decode_step_times(prefill_ms * (1.0 - overlap), &[]);
                all.push(Parameters {
                    decode,
                    prefill_ms,
                    frontend_ms: (1.0 - share) * rest,
                    overlap,
                    max_seqs: UNLIMITED,
                    slowness: 1.0,
                });
            }
        }
        Ok(all)
    }

    /// Step time by batch: rising, less what the prefill of others takes of it, and corrected for
    /// each point by a factor.
    fn decode_step_times(&self, prefill_ms: f64, corrections: &[f64]) -> Vec<(u32, f64)> {
        let input = self.sizes.mean_input();
        let corrections = corrections.iter().copied().chain(std::iter::repeat(1.0));
        let mut steps: Vec<(u32, f64)> = self
            .points
            .iter()
            .zip(corrections)
            .map(|(point, correction)| {
                let share = (point.rps * input * prefill_ms / 1e3).min(0.8);
                let batch = point.batch.round().clamp(1.0, 1e6) as u32;
                (batch, (point.tpot_ms * (1.0 - share) * correction).max(1e-3))
            })
            .collect();
        steps.sort_by_key(|(batch, _)| *batch);
        pool_rising(&steps)
    }

    /// The candidate with step times at which its TPOT comes closer to the measured one: the median
    /// over requests is not the mean over steps. Slower steps mean larger batches and these slower
    /// steps still, by about the ratio of a step to one of an empty engine; each round corrects by
    /// so much less. Close to the limit batches depend on how many may run at once, which is not
    /// known yet: the points there get the correction of the one before.
    fn refine_step_times(&self, from: Parameters) -> Parameters {
        let base = self.points.first().map_or(1.0, |point| point.tpot_ms);
        let mut corrections = vec![1.0; self.points.len()];
        let mut refined = from;
        for _ in 0..2 {
            let mut last = 1.0;
            for (correction, point) in corrections.iter_mut().zip(self.points) {
                if point.rps <= NEAR * self.limit_rps {
                    let [.., tpot] = self.model_figures(&refined, point);
                    let seen = tpot.map_or(1.0, |tpot| (point.tpot_ms / tpot).clamp(0.8, 1.25));
                    last = *correction * seen.powf((base / point.tpot_ms).clamp(0.2, 1.0));
                }
                *correction = last;
            }
            let paid = refined.prefill_ms * (1.0 - refined.overlap);
            refined = Parameters { decode: self.decode_step_times(paid, &corrections), ..refined };
        }
        refined
    }

    /// The candidate with its limit where it was measured: by fewer sequences at once, and by
    /// slower or faster steps.
    fn tune_limit(&self, from: &Parameters) -> Vec<Parameters> {
        let slower = |slowness: f64| Parameters { slowness, ..from.clone() };
        let mut tuned = Vec::new();
        let [fastest, slowest] = SLOWNESS;
        if let Some(slowness) =
            bisect(fastest, slowest, 6, |slowness| self.excess_at_limit(&slower(slowness)) > 1.0)
        {
            tuned.push(slower(slowness));
        }
        if self.excess_at_limit(from) < 1.0 {
            let fewer = |seqs: f64| Parameters { max_seqs: seqs.round() as u32, ..from.clone() };
            let batch = self.points.last().map_or(1.0, |point| point.batch.max(1.0));
            let most = (batch * 4.0).min(f64::from(UNLIMITED));
            // Fewer sequences keep more waiting: the first of these factors that misses.
            let times =
                bisect(1.0, 8.0, 7, |times| self.excess_at_limit(&fewer(most / times)) > 1.0);
            tuned.extend(times.map(|times| fewer((most / times).max(1.0))));
        }
        tuned
    }

    /// How far the model at the measured limit lies from the SLO.
    fn excess_at_limit(&self, parameters: &Parameters) -> f64 {
        self.excess_at(parameters, self.limit_rps)
    }

    fn excess_at(&self, parameters: &Parameters, rps: f64) -> f64 {
        let Ok(profile) = parameters.profile() else { return f64::INFINITY };
        let seconds = (6_000.0 / rps).clamp(60.0, 600.0);
        let stretch = Stretch { rps, burn_in_s: self.burn_in_s, seconds, seed: 77 };
        self.limits.judge(&simulate_stretch(&profile, self.sizes, stretch), self.slo).excess
    }

    /// Mean of |ln(simulated / measured)| over figures and every so manyth point. At the limit the
    /// queue of two runs differs by more than any model could.
    fn score_candidate(&self, parameters: &Parameters, every: usize) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        let calm = |point: &&FitSample| point.rps <= NEAR * self.limit_rps;
        for point in self.points.iter().filter(calm).step_by(every) {
            let [ttft_p50, ttft_p99, tpot_p50] = self.model_figures(parameters, point);
            let pairs = [
                (Some(point.ttft_p50_ms), ttft_p50, 1.0),
                (point.ttft_p99_ms, ttft_p99, 0.5),
                (Some(point.tpot_ms), tpot_p50, 1.0),
            ];
            for (measured, simulated, counts) in pairs {
                let Some((measured, simulated)) = measured.zip(simulated) else { continue };
                sum += counts * (simulated / measured).ln().abs();
                weight += counts;
            }
        }
        if weight > 0.0 && f64::is_finite(sum) { sum / weight } else { f64::INFINITY }
    }

    /// TTFT p50, TTFT p99 and TPOT p50 of the model at a point.
    fn model_figures(&self, parameters: &Parameters, point: &FitSample) -> [Option<f64>; 3] {
        let Ok(profile) = parameters.profile() else { return [None; 3] };
        let seconds = (1_500.0 / point.rps).clamp(20.0, 900.0);
        let burn_in_s = (2e-3 * point.e2e_ms).min(self.burn_in_s);
        let stretch = Stretch { rps: point.rps, burn_in_s, seconds, seed: 7 };
        let outcomes = simulate_stretch(&profile, self.sizes, stretch);
        let at = |metric, share| outcome_statistic(&outcomes, metric, share);
        [at(MetricName::Ttft, 0.5), at(MetricName::Ttft, 0.99), at(MetricName::Tpot, 0.5)]
    }

    /// The model, if it is close enough to be believed.
    fn accept_model(&self, best: &Parameters) -> Result<Fitted, String> {
        let points: Vec<FitPoint> = self
            .points
            .iter()
            .map(|point| {
                let [ttft_p50, ttft_p99, tpot_p50] = self.model_figures(best, point);
                FitPoint {
                    rps: point.rps,
                    ttft_p50_ms: [Some(point.ttft_p50_ms), ttft_p50],
                    ttft_p99_ms: [point.ttft_p99_ms, ttft_p99],
                    tpot_p50_ms: [Some(point.tpot_ms), tpot_p50],
                }
            })
            .collect();
        let errors = [
            median_error(points.iter().map(|point| point.ttft_p50_ms)),
            median_error(points.iter().map(|point| point.ttft_p99_ms)),
            median_error(points.iter().map(|point| point.tpot_p50_ms)),
        ];
        for ((name, error), worst) in
            ["TTFT p50", "TTFT p99", "TPOT p50"].iter().zip(errors).zip(WORST)
        {
            if error.is_some_and(|error| error > worst) {
                return Err(format!(
                    "the best fit misses the measured {name} by {:.0} % at the median, more than \
                     {:.0} %",
                    error.unwrap_or(0.0) * 100.0,
                    worst * 100.0
                ));
            }
        }
        let mean = self.score_candidate(best, 1);
        if mean > WORST_MEAN {
            return Err(format!(
                "the best fit is off from the measured points by a factor of {:.2} on average",
                mean.exp()
            ));
        }
        let keeps = self.excess_at(best, self.limit_rps * (1.0 - RESOLUTION)) <= 1.0;
        let misses = self.excess_at(best, self.limit_rps * (1.0 + RESOLUTION)) > 1.0;
        if !(keeps && misses) {
            return Err(format!(
                "the model does not cross the SLO within 6 % of the measured {:.3} requests/s",
                self.limit_rps
            ));
        }
        Ok(Fitted {
            profile: best.profile()?,
            sizes: self.sizes.clone(),
            slo: self.slo.clone(),
            limits: self.limits,
            burn_in_s: self.burn_in_s,
            slowness: best.slowness,
            max_num_seqs: best.max_seqs,
            prefill_ms_per_token: best.prefill_ms * best.slowness,
            limit_rps: self.limit_rps,
            points,
            errors,
        })
    }
}

/// The place between two where a condition that holds from there on begins to hold, on a geometric
/// scale; none if it holds at the lower one already, or not at the upper one.
fn bisect(low: f64, high: f64, steps: u32, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(low) || !holds(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    for _ in 0..steps {
        let middle = (low * high).sqrt();
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((low * high).sqrt())
}

fn outcome_statistic(outcomes: &[JobOutcome], metric: MetricName, share: f64) -> Option<f64> {
    let values: Vec<f64> = outcomes.iter().filter_map(|each| outcome_value(each, metric)).collect();
    (values.len() >= 20).then(|| quantile(values, share))
}

fn median_error(pairs: impl Iterator<Item = [Option<f64>; 2]>) -> Option<f64> {
    let errors: Vec<f64> = pairs
        .filter_map(|[measured, simulated]| Some((simulated? / measured? - 1.0).abs()))
        .collect();
    (!errors.is_empty()).then(|| quantile(errors, 0.5))
}

/// The same points, none lower than the one before (pooled where they are), each batch once.
fn pool_rising(steps: &[(u32, f64)]) -> Vec<(u32, f64)> {
    // Each pool: sum of times, number of points, its batches.
    let mut pools: Vec<(f64, f64, Vec<u32>)> = Vec::new();
    for (batch, ms) in steps {
        let mut pool = (*ms, 1.0, vec![*batch]);
        while let Some(last) = pools.pop() {
            let is_same = last.2.last() == pool.2.first();
            if !is_same && last.0 / last.1 <= pool.0 / pool.1 {
                pools.push(last);
                break;
            }
            let mut batches = last.2;
            batches.extend(pool.2);
            pool = (last.0 + pool.0, last.1 + pool.1, batches);
        }
        pools.push(pool);
    }
    let mut table: Vec<(u32, f64)> = Vec::new();
    for (sum, count, batches) in pools {
        for batch in batches {
            if table.last().is_none_or(|(last, _)| *last < batch) {
                table.push((batch, sum / count));
            }
        }
    }
    table
}
