//! Traffic against replicas, hour by hour.

use serde::{Deserialize, Serialize};

use super::fleet::replicas_needed;
use super::{Basis, FitPoint, Fitted, Played, Question, Traffic};

/// Rates of a replica that are simulated at most.
const MOST_LEVELS: usize = 20;
/// Stretches of a level; a level that missed the first this many all is not played on.
pub const STRETCHES: u64 = 12;
const SETTLED: u64 = 4;
/// Below this share of the confirmed rate nothing is simulated again: the risk is not higher there.
const LOWEST: f64 = 0.5;

/// The state of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HourState {
    /// Its load was confirmed to keep the SLO.
    Fine,
    /// It lies above the confirmed rate.
    AtRisk,
    /// It lies above the rejected rate.
    Misses,
}

/// One hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hour {
    /// From 0, since the beginning.
    pub hour: u32,
    /// Mean rate.
    pub mean_rps: f64,
    /// Highest rate over five minutes.
    pub peak_rps: f64,
    /// That peak as a share of what the replicas were confirmed to carry.
    pub load: f64,
    /// Its state.
    pub state: HourState,
    /// Probability that a stretch of it misses the SLO; none if it was not simulated.
    pub p_miss: Option<f64>,
    /// Share of its requests that keep the limits; none if it was not simulated.
    pub good_share: Option<f64>,
    /// Replicas that its peak needs.
    pub replicas_needed: u64,
}

/// How often the model misses the SLO at one rate of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LevelRisk {
    /// Requests per second of the replica.
    pub rps: f64,
    /// Stretches simulated.
    pub stretches: u64,
    /// Length of each in seconds.
    pub stretch_s: f64,
    /// Those that missed the SLO.
    pub missed: u64,
    /// Mean share of good requests.
    pub good_share: f64,
}

impl LevelRisk {
    /// Adds up the stretches of a level.
    pub fn from_played(rps: f64, stretch_s: f64, played: &[Played]) -> Self {
        let missed = played.iter().filter(|each| each.missed).count() as u64;
        let good: f64 = played.iter().map(|each| each.good_share).sum();
        let good_share = good / played.len().max(1) as f64;
        Self { rps, stretches: played.len() as u64, stretch_s, missed, good_share }
    }

    fn miss_probability(&self) -> f64 {
        self.missed as f64 / self.stretches.max(1) as f64
    }
}

/// What the model says at these rates, from the highest down: below a rate at which no stretch
/// missed the SLO nothing more is simulated, since less load is not worse. `play` is given a rate and
/// the numbers of its stretches, and may share them out among processors.
pub fn play_levels(
    fitted: &Fitted,
    rates: &[f64],
    mut play: impl FnMut(f64, std::ops::Range<u64>) -> Vec<Played>,
) -> Vec<LevelRisk> {
    let mut levels = Vec::new();
    for &rps in rates.iter().rev() {
        let mut played = play(rps, 0..SETTLED);
        if !played.iter().all(|each| each.missed) {
            played.extend(play(rps, SETTLED..STRETCHES));
        }
        let level = LevelRisk::from_played(rps, fitted.stretch_s(rps), &played);
        levels.push(level);
        if level.missed == 0 {
            break;
        }
    }
    levels.reverse();
    levels
}

/// What was simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Why nothing is stated; none if something is.
    pub refused: Option<String>,
    /// Where the lengths of prompts and answers come from.
    pub sizes: String,
    /// The measured points, next to the model's.
    pub points: Vec<FitPoint>,
    /// Medians of the relative errors of TTFT p50, TTFT p99 and TPOT p50.
    pub errors: [Option<f64>; 3],
    /// Step times were multiplied by this to meet the measured limit.
    pub slowness: Option<f64>,
    /// Sequences at once.
    pub max_num_seqs: Option<u32>,
    /// Milliseconds of a prefill token.
    pub prefill_ms_per_token: Option<f64>,
    /// The model as a profile of the simulated engine.
    pub profile: Option<String>,
    /// The rates that were simulated.
    pub levels: Vec<LevelRisk>,
}

impl Simulation {
    /// Nothing was simulated, for this reason.
    pub fn refused(because: impl Into<String>, sizes: impl Into<String>) -> Self {
        Self {
            refused: Some(because.into()),
            sizes: sizes.into(),
            points: Vec::new(),
            errors: [None; 3],
            slowness: None,
            max_num_seqs: None,
            prefill_ms_per_token: None,
            profile: None,
            levels: Vec::new(),
        }
    }

    /// These levels were.
    pub fn new(fitted: &Fitted, sizes: impl Into<String>, levels: Vec<LevelRisk>) -> Self {
        Self {
            refused: None,
            sizes: sizes.into(),
            points: fitted.points.clone(),
            errors: fitted.errors,
            slowness: Some(fitted.slowness),
            max_num_seqs: Some(fitted.max_num_seqs),
            prefill_ms_per_token: Some(fitted.prefill_ms_per_token),
            profile: fitted.profile_toml(),
            levels,
        }
    }
}

/// Hours by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hours {
    /// All of them.
    pub all: u32,
    /// Above the confirmed rate, at least for five minutes.
    pub at_risk: u32,
    /// Of these, above the rejected rate.
    pub missing: u32,
}

/// The number of replicas at which no hour is at risk, and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Enough {
    /// How many.
    pub replicas: u64,
    /// Their GPUs.
    pub gpus: Option<u64>,
    /// Replicas times hours, always all of them.
    pub fixed_replica_hours: f64,
    /// Replicas times hours, if each hour has only the replicas that its peak needs.
    pub scaled_replica_hours: f64,
    /// Cost of the first over the whole time.
    pub fixed_cost: Option<f64>,
    /// Cost of the second.
    pub scaled_cost: Option<f64>,
}

/// Traffic against some replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrafficPlan {
    /// The traffic in words.
    pub about: String,
    /// Mean rate.
    pub mean_rps: f64,
    /// Highest rate over five minutes.
    pub peak_rps: f64,
    /// The replicas that the hours are compared with.
    pub replicas: u64,
    /// Hour by hour.
    pub hours: Vec<Hour>,
    /// Counted.
    pub counts: Hours,
    /// How many replicas are enough.
    pub enough: Enough,
    /// The probability of missing the SLO.
    pub simulation: Simulation,
}

/// The rates of a replica at which the model has to be asked, ascending.
pub fn rates_to_simulate(basis: &Basis, traffic: &Traffic, replicas: u64) -> Vec<f64> {
    let shares: Vec<f64> =
        traffic.slots.iter().map(|slot| slot.rps / replicas.max(1) as f64).collect();
    let floor = basis.confirmed_rps * LOWEST;
    // What lies above what a replica carries at most misses.
    let ceiling = basis.most_rps().unwrap_or(basis.confirmed_rps);
    let highest = shares.iter().copied().filter(|rps| *rps <= ceiling).fold(0.0, f64::max);
    let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    if highest <= 0.0 {
        return Vec::new();
    }
    let (low, high) = (lowest.clamp(floor, ceiling), highest.max(floor));
    if high <= low * 1.001 {
        return vec![high];
    }
    // Closer together where it matters: steps get smaller toward the top.
    let steps = MOST_LEVELS as f64 - 1.0;
    let place = |number: usize| {
        let rest = 1.0 - number as f64 / steps;
        high - (high - low) * rest * rest
    };
    (0..MOST_LEVELS).map(place).collect()
}

/// Traffic against this many replicas, with what was simulated.
pub fn plan_for_traffic(
    basis: &Basis,
    question: &Question,
    traffic: &Traffic,
    replicas: u64,
    simulation: Simulation,
) -> TrafficPlan {
    let replicas = replicas.max(1);
    let curve = MissCurve::from_levels(&simulation.levels, basis);
    let hours: Vec<Hour> = traffic
        .hours()
        .into_iter()
        .map(|(hour, slots)| {
            let seconds: f64 = slots.iter().map(|slot| slot.seconds).sum();
            let mean = |of: &dyn Fn(f64) -> f64| {
                slots.iter().map(|slot| slot.seconds * of(slot.rps)).sum::<f64>() / seconds
            };
            let peak_rps = slots.iter().map(|slot| slot.rps).fold(0.0, f64::max);
            let each = |rps: f64| rps / replicas as f64;
            let stated = curve.as_ref();
            Hour {
                hour,
                mean_rps: mean(&|rps| rps),
                peak_rps,
                load: each(peak_rps) / basis.confirmed_rps,
                state: hour_state(basis, each(peak_rps)),
                p_miss: stated.map(|curve| mean(&|rps| curve.p_miss(each(rps)))),
                good_share: stated.and_then(|curve| curve.good_share(&slots, replicas)),
                replicas_needed: replicas_needed(peak_rps, basis.confirmed_rps),
            }
        })
        .collect();
    let count = |wanted: &[HourState]| {
        hours.iter().filter(|hour| wanted.contains(&hour.state)).count() as u32
    };
    let counts = Hours {
        all: hours.len() as u32,
        at_risk: count(&[HourState::AtRisk, HourState::Misses]),
        missing: count(&[HourState::Misses]),
    };
    TrafficPlan {
        about: traffic.about.clone(),
        mean_rps: traffic.mean_rps(),
        peak_rps: traffic.peak_rps(),
        replicas,
        enough: replicas_enough(basis, question, traffic, &hours),
        hours,
        counts,
        simulation,
    }
}

fn hour_state(basis: &Basis, rps: f64) -> HourState {
    let above = |limit: f64| rps > limit * (1.0 + 1e-9);
    if basis.most_rps().is_some_and(above) {
        HourState::Misses
    } else if above(basis.confirmed_rps) {
        HourState::AtRisk
    } else {
        HourState::Fine
    }
}

fn replicas_enough(
    basis: &Basis,
    question: &Question,
    traffic: &Traffic,
    hours: &[Hour],
) -> Enough {
    let replicas = replicas_needed(traffic.peak_rps(), basis.confirmed_rps);
    let fixed = replicas as f64 * traffic.seconds() / 3600.0;
    // The last hour may be a part of one.
    let lengths = traffic
        .hours()
        .into_iter()
        .map(|(_, slots)| slots.iter().map(|slot| slot.seconds).sum::<f64>() / 3600.0);
    let scaled =
        hours.iter().zip(lengths).map(|(hour, length)| hour.replicas_needed as f64 * length).sum();
    let gpus = question.gpus_per_replica;
    let cost = |replica_hours: f64| {
        question
            .price_per_gpu_hour
            .zip(gpus)
            .map(|(price, gpus)| price * f64::from(gpus) * replica_hours)
    };
    Enough {
        replicas,
        gpus: gpus.map(|gpus| replicas.saturating_mul(u64::from(gpus))),
        fixed_replica_hours: fixed,
        scaled_replica_hours: scaled,
        fixed_cost: cost(fixed),
        scaled_cost: cost(scaled),
    }
}

/// The chance of a miss over the rate of a replica.
struct MissCurve {
    /// Rate, chance, share of good requests; made monotone.
    points: Vec<(f64, f64, f64)>,
    /// Beyond this rate it is certain.
    most: f64,
}

impl MissCurve {
    fn from_levels(levels: &[LevelRisk], basis: &Basis) -> Option<Self> {
        let mut points: Vec<(f64, f64, f64)> = levels
            .iter()
            .map(|level| (level.rps, level.miss_probability(), level.good_share))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // More load is never better: chance exceptions are smoothed upwards.
        let (mut worst, mut good) = (0.0f64, 1.0f64);
        for (_, p, share) in &mut points {
            worst = worst.max(*p);
            good = good.min(*share);
            (*p, *share) = (worst, good);
        }
        let most = basis.most_rps()?;
        (!points.is_empty()).then_some(Self { points, most })
    }

    fn miss_and_good_at(&self, rps: f64) -> (f64, f64) {
        let above = self.points.partition_point(|point| point.0 < rps);
        let get = |place: usize| self.points.get(place).copied();
        match (above.checked_sub(1).and_then(get), get(above)) {
            (Some(low), Some(high)) => {
                let part = (rps - low.0) / (high.0 - low.0);
                (low.1 + (high.1 - low.1) * part, low.2 + (high.2 - low.2) * part)
            }
            (Some(one), None) | (None, Some(one)) => (one.1, one.2),
            (None, None) => (1.0, 0.0),
        }
    }

    fn p_miss(&self, rps: f64) -> f64 {
        if rps > self.most { 1.0 } else { self.miss_and_good_at(rps).0 }
    }

    /// Of all requests of these stretches; none if one of them lies above what was simulated.
    fn good_share(&self, slots: &[super::TrafficSlot], replicas: u64) -> Option<f64> {
        let (mut good, mut all) = (0.0, 0.0);
        for slot in slots {
            let each = slot.rps / replicas as f64;
            if each > self.most {
                return None;
            }
            let requests = slot.rps * slot.seconds;
            good += requests * self.miss_and_good_at(each).1;
            all += requests;
        }
        (all > 0.0).then(|| good / all)
    }
}
