//! How many replicas.

use serde::{Deserialize, Serialize};

use super::{Basis, MONTH_HOURS, Question, Refused};

/// More is a slip of the keyboard.
const MOST: f64 = 1e6;

/// Some replicas under the target load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// How many.
    pub replicas: u64,
    /// Their GPUs.
    pub gpus: Option<u64>,
    /// The target as a share of what they were confirmed to carry.
    pub utilisation: f64,
    /// The same with one replica lost; none if it is the only one.
    pub one_lost: Option<f64>,
    /// If the replica carries as much as the upper end of the limit's interval (for a given figure:
    /// just below the rejected rate); none if nothing bounds it.
    pub best_case: Option<BestCase>,
    /// If the replica carries no more than the lower end; none if that is unknown.
    #[serde(default)]
    pub worst_case: Option<BestCase>,
    /// What they cost.
    pub cost_per_hour: Option<f64>,
    /// For a month of 730 hours.
    pub cost_per_month: Option<f64>,
}

/// The fewest or the most that it could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BestCase {
    /// How many.
    pub replicas: u64,
    /// Their GPUs.
    pub gpus: Option<u64>,
}

/// The answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fleets {
    /// Just enough.
    pub bare: Fleet,
    /// With headroom.
    pub with_headroom: Fleet,
    /// One more than just enough: any one may fail.
    pub with_spare: Fleet,
    /// The given number.
    pub asked: Option<Fleet>,
}

/// Replicas that carry a load: the ceiling of the quotient, where a rounding error of it is no
/// replica.
pub(super) fn replicas_needed(load: f64, each: f64) -> u64 {
    let exact = load / each;
    (exact * (1.0 - 1e-12) - 1e-12).ceil().clamp(1.0, 1e18) as u64
}

impl Fleets {
    pub(super) fn new(basis: &Basis, question: &Question) -> Result<Self, Refused> {
        let target = question.target_rps;
        let padded = target * (1.0 + question.headroom);
        if padded / basis.confirmed_rps > MOST {
            let what = format!(
                "{target} requests/s would take more than a million replicas of {} requests/s",
                basis.confirmed_rps
            );
            return Err(Refused::new(what).hint("both are in requests per second: check the units"));
        }
        let fleet = |replicas: u64, range| Fleet::new(basis, question, replicas, range);
        let range = |load: f64, more: u64| {
            [basis.most_rps(), basis.least_rps()]
                .map(|each| each.map(|each| replicas_needed(load, each) + more))
        };
        let bare = replicas_needed(target, basis.confirmed_rps);
        Ok(Self {
            bare: fleet(bare, range(target, 0)),
            with_headroom: fleet(replicas_needed(padded, basis.confirmed_rps), range(padded, 0)),
            with_spare: fleet(bare + 1, range(target, 1)),
            asked: question.replicas.map(|replicas| fleet(replicas, [None; 2])),
        })
    }

    /// The largest of them.
    pub(super) fn most_replicas(&self) -> u64 {
        let all = [Some(self.bare), Some(self.with_headroom), Some(self.with_spare), self.asked];
        all.iter().flatten().map(|fleet| fleet.replicas).max().unwrap_or(1)
    }
}

impl Fleet {
    fn new(basis: &Basis, question: &Question, replicas: u64, range: [Option<u64>; 2]) -> Self {
        let gpus = |replicas: u64| {
            question.gpus_per_replica.map(|gpus| replicas.saturating_mul(u64::from(gpus)))
        };
        let load = |replicas: u64| question.target_rps / (replicas as f64 * basis.confirmed_rps);
        let cost = question
            .price_per_gpu_hour
            .zip(gpus(replicas))
            .map(|(price, gpus)| price * gpus as f64);
        let [best_case, worst_case] =
            range.map(|end| end.map(|replicas| BestCase { replicas, gpus: gpus(replicas) }));
        Self {
            replicas,
            gpus: gpus(replicas),
            utilisation: load(replicas),
            one_lost: (replicas > 1).then(|| load(replicas - 1)),
            best_case,
            worst_case,
            cost_per_hour: cost,
            cost_per_month: cost.map(|cost| cost * MONTH_HOURS),
        }
    }
}
