//! What the points of a sweep say together: knee, shape, front, peak.

mod bend;
mod best;
mod bootstrap;
mod isotonic;
mod knee;
mod kneedle;
mod pareto;
#[cfg(test)]
mod tests;
mod usl;

pub use best::best_configuration;
pub use knee::delivered_share;
pub(super) use knee::has_fallen_behind;
pub use pareto::FrontLatency;

use std::collections::BTreeMap;

use goodput_model::{EndedBy, Verdict};
use serde::{Deserialize, Serialize};

use crate::sweep::{Bounded, PointStanding, PointSummary, Purpose, Unclear};

/// What the points show together. Places are those in the list of points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Curve {
    /// The knee by rule: the highest level that is delivered and not over-saturated.
    pub knee: Option<Knee>,
    /// Levels above the knee (all, without a knee) that were too short to tell whether they are
    /// delivered.
    #[serde(default)]
    pub too_short: Vec<f64>,
    /// The knee by the shape of throughput over load (Kneedle); a description.
    pub kneedle: Option<Kneedle>,
    /// Where the median TTFT bends upward over load (Kneedle, mirrored); a description. None without a
    /// bend, and below five levels.
    #[serde(default)]
    pub ttft_bend: Option<f64>,
    /// The knee of a closed loop: the fewest users whose throughput is at least 95 % of the highest
    /// measured; none where that is the highest number of users.
    #[serde(default)]
    pub users_knee: Option<f64>,
    /// The universal scalability law through throughput over concurrency; a description.
    pub usl: Option<Usl>,
    /// Places of the points on the front of throughput against `front`.
    pub pareto: Vec<usize>,
    /// The latency of that front: median TPOT, or median E2E where fewer points have a TPOT, unless
    /// another one was chosen.
    #[serde(default)]
    pub front: FrontLatency,
    /// The fronts of throughput against every latency; nothing in files of older versions.
    #[serde(default)]
    pub fronts: BTreeMap<FrontLatency, Vec<usize>>,
    /// Place of the point with the highest goodput.
    pub peak: Option<usize>,
    /// Attainment over level, made monotone (isotonic regression): level and share.
    pub attainment: Vec<(f64, f64)>,
}

/// The knee by rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The highest level that is delivered (at least 99 %) and not over-saturated.
    pub level: f64,
    /// The lowest level above it that is not delivered; none without one.
    pub beyond: Option<f64>,
}

/// Kneedle's knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Kneedle {
    /// Its level, with a bootstrap interval if possible.
    pub level: Bounded,
    /// Points that it rests on; unstable below 8.
    pub points: u32,
}

/// The universal scalability law, X(N) = γN / (1 + α(N−1) + βN(N−1)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Throughput of one.
    pub gamma: f64,
    /// Contention.
    pub alpha: f64,
    /// Coherence.
    pub beta: f64,
    /// Where throughput peaks, with its interval; none if it does not.
    pub peak: Option<Bounded>,
    /// Points that it rests on.
    pub points: u32,
    /// Share of the variance that it explains.
    pub r2: f64,
}

impl Curve {
    /// The same with the front of another latency.
    #[must_use]
    pub fn with_front(self, front: FrontLatency) -> Self {
        let pareto = self.fronts.get(&front).cloned().unwrap_or_default();
        Self { pareto, front, ..self }
    }
}

/// What these points say together. Warm-up, closed-loop twins, and points that say nothing about
/// the server are left out ([`is_on_curve`]).
pub fn fit_curve(points: &[PointSummary]) -> Curve {
    let used: Vec<&PointSummary> = points.iter().filter(|point| is_on_curve(point)).collect();
    let (knee, too_short) = knee::find_knee(&used);
    let front = pareto::default_front_latency(points);
    let fronts = pareto::all_fronts(points, knee);
    Curve {
        knee,
        too_short,
        kneedle: kneedle::find_kneedle(&used),
        ttft_bend: bend::ttft_bend(&used),
        users_knee: bend::fewest_users_at_peak(&used),
        usl: usl::fit_usl(&used),
        pareto: fronts.get(&front).cloned().unwrap_or_default(),
        front,
        fronts,
        peak: pareto::peak_goodput(points),
        attainment: isotonic::monotone_attainment(&used),
    }
}

/// Whether a point belongs to the curve: it is neither warm-up nor twin, and neither the client, a
/// server that was away nor the user spoiled it, nor was it given up too early.
pub fn is_on_curve(point: &PointSummary) -> bool {
    let figures = &point.point.figures;
    let is_spoiled = matches!(
        point.standing,
        PointStanding::Unclear(
            Unclear::Client | Unclear::ServerGone | Unclear::Interrupted | Unclear::GivenUpTooEarly
        )
    );
    !matches!(point.point.ask.purpose, Purpose::WarmUp | Purpose::Twin)
        && point.point.ask.level.value().is_finite()
        && figures.verdict != Verdict::Void
        && figures.ended_by != Some(EndedBy::User)
        && figures.window_s.is_finite()
        && figures.window_s > 0.0
        && !is_spoiled
}

/// Points of equal level, levels ascending.
pub fn by_level<'a>(points: &[&'a PointSummary]) -> Vec<(f64, Vec<&'a PointSummary>)> {
    let mut levels: Vec<(f64, Vec<&PointSummary>)> = Vec::new();
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| level_value(a).total_cmp(&level_value(b)));
    for point in sorted {
        let at = level_value(point);
        match levels.last_mut() {
            // Levels pass through files and products; a different last digit is the same level.
            Some((last, together)) if (at - *last).abs() <= 1e-9 * last.abs() => {
                together.push(point);
            }
            _ => levels.push((at, vec![point])),
        }
    }
    levels
}

fn level_value(point: &PointSummary) -> f64 {
    point.point.ask.level.value()
}

/// A number that can be divided by.
fn positive_value(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value > 0.0)
}
