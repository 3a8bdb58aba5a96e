//! The figures of a running shadow, for display.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use goodput_campaign::compare::{CompareFacts, CompareState};
use goodput_campaign::shadow::ShadowFacts;
use goodput_clock::now;
use goodput_model::Nanos;

use super::half::HalfSender;
use super::mirror::{MirrorStanding, MirrorTally};
use super::store::ShadowPlan;
use crate::proxy::Tally;

/// Counters of a shadow; each is true by itself at any time.
#[derive(Debug)]
pub struct ShadowFigures {
    /// When it began.
    pub began: Nanos,
    /// What passed.
    pub proxy: Arc<Tally>,
    /// What the candidate was sent.
    pub mirror: Arc<MirrorTally>,
    pub(super) halves: HalfSender,
    pub(super) pairs: AtomicU64,
    pub(super) unpaired: AtomicU64,
    pub(super) unjudged: AtomicU64,
}

impl ShadowFigures {
    /// Requests of which both sides are known.
    pub fn pair_count(&self) -> u64 {
        self.pairs.load(Ordering::Relaxed)
    }

    /// Requests that the candidate answered and that have no pair.
    pub fn unpaired_count(&self) -> u64 {
        self.unpaired.load(Ordering::Relaxed)
    }

    /// Requests whose answers say nothing.
    pub fn inconclusive_count(&self) -> u64 {
        self.unjudged.load(Ordering::Relaxed)
    }

    /// Answers of the candidate that the collector could not take.
    pub fn lost_count(&self) -> u64 {
        self.halves.lost_count()
    }

    /// What is known in addition to the pairs.
    pub(super) fn comparison_facts(
        &self,
        plan: &ShadowPlan,
        state: CompareState,
    ) -> (CompareFacts, ShadowFacts) {
        let tally = &self.mirror;
        let dropped = tally.dropped().chain([
            // Sent, and in no pair all the same.
            ("cut", tally.cut()),
            ("unpaired", self.unpaired_count()),
            ("unjudged", self.inconclusive_count()),
            ("lost", self.lost_count()),
        ]);
        let dropped = dropped.filter(|(_, count)| *count > 0);
        let shadow = ShadowFacts {
            share: plan.share,
            passed: tally.passed(),
            chosen: tally.chosen(),
            mirrored: tally.sent(),
            pairs: self.pair_count(),
            dropped: dropped.map(|(reason, count)| (reason.to_owned(), count)).collect(),
            ended: match tally.standing() {
                MirrorStanding::Going => None,
                MirrorStanding::SwitchedOff => Some("turned off by SIGUSR1".to_owned()),
                MirrorStanding::Paused => {
                    Some("too many of the candidate's answers failed".to_owned())
                }
            },
        };
        let facts = CompareFacts {
            version: plan.version.clone(),
            started: plan.started.clone(),
            state,
            workload: format!("live traffic, {} of it mirrored", percent_text(plan.share)),
            took_s: (now() - self.began).as_secs(),
            ..CompareFacts::default()
        };
        (facts, shadow)
    }
}

/// `5 %`
pub fn percent_text(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}
