//! A shadow: what is known of its pairs, and how far it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::Pair;
use goodput_clock::now;
use goodput_live::MirrorStanding;
use goodput_live::shadow::ShadowFigures;
use goodput_model::{MetricsFormat, Nanos};

use super::shadow_page;
use crate::latest_snapshot::RunTally;
use crate::metrics::MetricsTally;
use crate::view::{LatencyView, LiveRunView, RunPhase};

/// Changes on the progress line at most.
const MOST_CHANGES: usize = 3;

/// The pairs of a shadow so far, in the forms in which they are shown.
#[derive(Debug)]
pub struct ShadowProgress(Mutex<ShadowState>);

#[derive(Debug)]
struct ShadowState {
    /// For the page of metrics.
    pairs: PairFigures,
    /// Both sides with percentiles, for a screen.
    tallies: [RunTally; 2],
    /// What the pairs say so far, for the line.
    in_words: String,
}

/// What the page of metrics says of the pairs: the primary's side and the candidate's.
#[derive(Debug, Clone)]
pub(super) struct PairFigures {
    pub(super) sides: [MetricsTally; 2],
    pub(super) so_far: Option<Arc<Comparison>>,
}

impl Default for ShadowProgress {
    fn default() -> Self {
        let sides = [MetricsTally::new(true), MetricsTally::new(true)];
        Self(Mutex::new(ShadowState {
            pairs: PairFigures { sides, so_far: None },
            tallies: [RunTally::new(true), RunTally::new(true)],
            in_words: String::new(),
        }))
    }
}

impl ShadowProgress {
    fn lock_state(&self) -> MutexGuard<'_, ShadowState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is one more pair.
    pub fn add(&self, pair: &Pair) {
        let mut state = self.lock_state();
        for (side, record) in [&pair.primary, &pair.candidate].into_iter().enumerate() {
            state.pairs.sides[side].add(record);
            state.tallies[side].add(record);
        }
    }

    /// What the pairs say so far.
    pub fn set_comparison(&self, comparison: &Arc<Comparison>) {
        let rows = goodput_report::compare_so_far(comparison).into_iter().flat_map(|one| one.rows);
        let rows = rows.filter(|row| row.figure.starts_with("p50")).take(MOST_CHANGES);
        let words: Vec<_> = rows.map(|row| format!("{} {}", row.figure, row.change)).collect();
        let mut state = self.lock_state();
        state.in_words = words.join(", ");
        state.pairs.so_far = Some(Arc::clone(comparison));
    }

    /// The page of metrics as it is now.
    pub fn metrics_page(&self, figures: &ShadowFigures, format: MetricsFormat) -> String {
        let pairs = self.lock_state().pairs.clone();
        shadow_page::shadow_metrics_page(figures, pairs, format)
    }

    /// The progress line as it is now.
    pub fn progress_line(&self, figures: &ShadowFigures) -> String {
        shadow_line(figures, &self.lock_state().in_words)
    }

    /// The same for a screen: what passes, with the latencies of both sides.
    pub fn live_view(&self, figures: &ShadowFigures) -> LiveRunView {
        shadow_live_view(figures, |elapsed| self.latency_views(elapsed))
    }

    /// Latencies of both sides, so long after the beginning.
    fn latency_views(&self, at: Nanos) -> Vec<LatencyView> {
        let of = |name: &'static str, tally: &RunTally| {
            let own = tally.latency_views(at).into_iter();
            own.map(move |one| LatencyView { name: format!("{} {name}", one.name), ..one })
        };
        let state = self.lock_state();
        let [primary, candidate] = &state.tallies;
        of("primary", primary).zip(of("candidate", candidate)).flat_map(|(a, b)| [a, b]).collect()
    }
}

/// What is said when mirroring stops or goes on.
pub fn standing_text(standing: MirrorStanding) -> &'static str {
    match standing {
        MirrorStanding::Going => "mirroring continues",
        MirrorStanding::SwitchedOff => "mirroring is switched off (SIGUSR1 switches it on again)",
        MirrorStanding::Paused => {
            "warning: mirroring paused: too many of the candidate's last answers failed; one \
             request will try it again later (--stop-at-errors, --retry-after)"
        }
    }
}

fn shadow_line(figures: &ShadowFigures, so_far: &str) -> String {
    let tally = &figures.mirror;
    let dropped: u64 = tally.dropped().map(|(_, count)| count).sum();
    let mut line = format!(
        "{:6.1} s · {} passed · {} mirrored · {} pairs · {dropped} dropped · {} candidate errors",
        (now() - figures.began).as_secs(),
        tally.passed(),
        tally.sent(),
        figures.pair_count(),
        tally.failed(),
    );
    match tally.standing() {
        MirrorStanding::Going => {}
        MirrorStanding::SwitchedOff => line.push_str(" · switched off"),
        MirrorStanding::Paused => line.push_str(" · paused"),
    }
    if !so_far.is_empty() {
        line.push_str(" · so far ");
        line.push_str(so_far);
    }
    line
}

fn shadow_live_view(
    figures: &ShadowFigures,
    latencies: impl FnOnce(Nanos) -> Vec<LatencyView>,
) -> LiveRunView {
    let elapsed = now() - figures.began;
    let tally = &figures.mirror;
    LiveRunView {
        label: "live traffic".to_owned(),
        phase: RunPhase::Measured,
        elapsed_s: elapsed.as_secs(),
        in_flight: figures.proxy.in_flight.get(),
        sent: tally.passed(),
        ok: tally.ok(),
        failed: tally.failed(),
        latencies: latencies(elapsed),
        ..LiveRunView::default()
    }
}
