//! Requests that were chosen and never sent: what that leaves of figures and gates.

use super::ShadowFacts;
use crate::compare::{FigureOutcome, Finding, GateResult, LevelComparison};

/// Share of the chosen requests beyond which a candidate that was left alone because it failed is worse.
const FAILING: f64 = 0.01;

/// Share of the chosen requests beyond which those that it was in time for do not tell how slow it is.
const SLOW: f64 = 0.05;

/// Reasons of a candidate that is too slow for what it is sent, or is held back.
const BEHIND: [&str; 3] = ["waited", "queue_full", "queue_bytes"];

/// Requests that were chosen and never sent, where they are too many to leave them out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unsent {
    /// Because the candidate was failing: how many, and their share.
    pub(super) failing: Option<(u64, f64)>,
    /// Because it was behind.
    pub(super) behind: Option<(u64, f64)>,
}

impl Unsent {
    pub(super) fn from_facts(facts: &ShadowFacts) -> Self {
        let count = |names: &[&str]| -> u64 {
            names.iter().filter_map(|name| facts.dropped.get(*name)).sum()
        };
        let beyond = |count: u64, most: f64| {
            let share = count as f64 / facts.chosen.max(count).max(1) as f64;
            (share > most).then_some((count, share))
        };
        Self { failing: beyond(count(&["errors"]), FAILING), behind: beyond(count(&BEHIND), SLOW) }
    }

    /// Counts those that were not sent to a failing candidate as its failures; takes good news about
    /// latencies back where it was behind.
    pub(super) fn mark_findings(&self, findings: &mut [Finding]) {
        for finding in findings {
            if finding.metric == ERRORS {
                if let Some((_, share)) = self.failing {
                    let more = share * (1.0 - finding.candidate);
                    finding.candidate += more;
                    finding.change += more;
                    finding.low = finding.low.map(|low| low + more);
                    finding.high = finding.high.map(|high| (high + more).min(1.0));
                    // The tests are of pairs.
                    (finding.p, finding.wilcoxon_p, finding.hodges_lehmann) = (None, None, None);
                    (finding.outcome, finding.further_blocks) = (FigureOutcome::Worse, None);
                    finding.is_doubtful = false;
                }
            } else if self.behind.is_some() && is_good(finding.outcome) {
                // More blocks of that kind say no more.
                (finding.outcome, finding.further_blocks) = (FigureOutcome::Inconclusive, None);
            }
        }
    }

    /// What that leaves of gates.
    pub(super) fn judge_gates(&self, gates: &mut [GateResult]) {
        for judged in gates {
            if judged.gate.metric == ERRORS {
                if self.failing.is_some() {
                    judged.outcome = FigureOutcome::Worse;
                }
            } else if self.behind.is_some() && is_good(judged.outcome) {
                judged.outcome = FigureOutcome::Inconclusive;
            }
        }
    }

    /// The table has the errors that the findings have.
    pub(super) fn show_in_tables(&self, levels: &mut [LevelComparison], findings: &[Finding]) {
        let Some(errors) = findings.iter().find(|finding| finding.metric == ERRORS) else { return };
        let rows = levels.iter_mut().flat_map(|level| &mut level.rows);
        for row in rows.filter(|row| self.failing.is_some() && row.figure == ERRORS) {
            if let Some(value) = row.values.get_mut(errors.side as usize) {
                *value = Some(errors.candidate);
            }
        }
    }
}

const ERRORS: &str = "error_share";

fn is_good(outcome: FigureOutcome) -> bool {
    matches!(outcome, FigureOutcome::Better | FigureOutcome::Equivalent)
}
