//! How much time goes into what, by effort.

use super::super::{Effort, Purpose, SweepPlan};

/// Users of the warm-up, and requests in it.
pub(super) const WARM_UP_USERS: u32 = 16;
pub(super) const WARM_UP_REQUESTS: u64 = 64;

/// The measures of an effort.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EffortMeasures {
    /// Measured seconds of a point at least.
    pub(super) least_s: f64,
    /// And this many times p99 of E2E, up to `longest_s`.
    pub(super) times_p99: f64,
    /// Load before the measured part, in times of mean E2E, up to `longest_burn_s`.
    pub(super) times_mean: f64,
    /// No point lasts longer, the sustained run aside.
    pub(super) longest_s: f64,
    pub(super) longest_burn_s: f64,
    /// The warm-up ends by then.
    pub(super) warm_up_s: f64,
    /// Factor from one level of the bracket to the next.
    pub(super) growth: f64,
    /// The bracket is closed at this ratio.
    pub(super) close: f64,
    /// Requests of a coarse probe, of a run near the limit, and of a confirming run.
    pub(super) coarse: f64,
    pub(super) focus: f64,
    pub(super) confirm: f64,
    /// Runs near the limit: at least, as stated, at most.
    pub(super) focus_runs: [usize; 3],
    /// Confirming runs.
    pub(super) confirms: usize,
    /// Levels that are tried until one is confirmed, as a rule.
    pub(super) tries: f64,
    /// The long run.
    pub(super) sustained_s: f64,
    /// The answer lies below the estimated limit by this share at least.
    pub(super) margin: f64,
    /// And by this many standard errors.
    pub(super) errors: f64,
    /// And by this much for runs as long as a mean answer; less for longer ones.
    pub(super) kindness: f64,
    /// Steps down after a failed confirmation, as the estimate has it between these two factors;
    /// other ones from the fifth on.
    pub(super) steps: [(f64, f64); 2],
}

impl EffortMeasures {
    pub(super) fn from_effort(effort: Effort) -> Self {
        let standard = Self {
            least_s: 60.0,
            times_p99: 5.0,
            times_mean: 5.0,
            longest_s: 600.0,
            longest_burn_s: 300.0,
            warm_up_s: 120.0,
            growth: 2.0,
            close: 1.06,
            coarse: 400.0,
            focus: 2500.0,
            confirm: 2500.0,
            focus_runs: [2, 3, 10],
            confirms: 2,
            tries: 1.5,
            sustained_s: 300.0,
            margin: 0.008,
            errors: 0.2,
            kindness: 0.0,
            steps: [(0.975, 0.99), (0.96, 0.98)],
        };
        match effort {
            Effort::Quick => Self {
                least_s: 0.0,
                times_p99: 2.0,
                times_mean: 3.0,
                longest_s: 90.0,
                longest_burn_s: 90.0,
                warm_up_s: 30.0,
                growth: 3.0,
                close: 1.2,
                coarse: 200.0,
                focus: 1500.0,
                confirm: 1000.0,
                focus_runs: [1, 2, 6],
                tries: 1.15,
                sustained_s: 20.0,
                margin: 0.02,
                kindness: 0.6,
                steps: [(0.96, 0.98), (0.93, 0.96)],
                ..standard
            },
            Effort::Standard => standard,
            Effort::Certified => Self {
                least_s: 600.0,
                longest_s: 1800.0,
                longest_burn_s: 600.0,
                warm_up_s: 300.0,
                focus: 5000.0,
                confirm: 5000.0,
                sustained_s: 600.0,
                ..standard
            },
        }
    }

    /// Requests that a point should have.
    pub(super) fn requests_for(&self, purpose: Purpose) -> f64 {
        match purpose {
            Purpose::Focus => self.focus,
            Purpose::Confirm => self.confirm,
            _ => self.coarse,
        }
    }

    /// Length of the long run.
    pub(super) fn sustained_s(&self, plan: &SweepPlan) -> f64 {
        let asked = plan.sustained_s.filter(|seconds| seconds.is_finite());
        asked.unwrap_or(self.sustained_s).clamp(0.0, 86_400.0)
    }
}
