//! What is known of the current runs, and the view of the present instant made from it.
//!
//! Workers are not touched. Counters are those of the engine; what a request says in the end is
//! added up on the collector's thread; a few times a second the screen's thread looks at both.

mod campaign;
mod series;
mod tally;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_clock::now;
use goodput_lab::{ExpectedEnd, Interrupt, Observation, RunHandle, RunSink};
use goodput_model::{Load, LoadExtent, Nanos, Plan, RequestRecord, escape_control};
use goodput_report::live_confidence_text;

use crate::course::{self, PlanProgress, RunPosition};
use crate::keys::Keys;
use crate::progress::load_to_send;
use crate::view::{CampaignView, LiveRunView as RunView, OfferedView, RunPhase, ScreenView};
pub use tally::RunTally;

/// What is shown. Clones share it.
#[derive(Debug, Clone)]
pub struct LatestSnapshot(Arc<BoardShown>);

#[derive(Debug)]
struct BoardShown {
    verb: &'static str,
    interrupt: Interrupt,
    state: Mutex<BoardState>,
}

#[derive(Debug, Default)]
struct BoardState {
    /// The current run, or the last one.
    run: Option<Arc<BoardRun>>,
    campaign: Option<CampaignView>,
    /// When a sweep should end.
    end: Option<ExpectedEnd>,
    /// A title and what stands in the place of a run, where the traffic is not ours.
    traffic: Option<(String, RunView)>,
}

/// A run on the screen.
#[derive(Debug)]
struct BoardRun {
    facts: RunSetup,
    handle: RunHandle,
    seen: Mutex<LiveFigures>,
}

/// A run that is shown while it lasts.
#[derive(Debug)]
pub struct ScreenRun(Arc<BoardRun>);

impl LatestSnapshot {
    /// For the runs of one verb.
    pub fn new(verb: &'static str, interrupt: &Interrupt) -> Self {
        let state = Mutex::default();
        Self(Arc::new(BoardShown { verb, interrupt: interrupt.clone(), state }))
    }

    /// Shows a run from here on.
    pub fn follow(&self, run: &goodput_lab::UpcomingRun<'_>) -> ScreenRun {
        let run = Arc::new(BoardRun {
            facts: RunSetup::new(run),
            handle: run.handle.clone(),
            seen: Mutex::new(LiveFigures::new(run.plan)),
        });
        lock_ignoring_poison(&self.0.state).run = Some(Arc::clone(&run));
        ScreenRun(run)
    }

    /// Shows traffic that is not ours as it is now.
    pub fn set_traffic(&self, title: String, run: RunView) {
        lock_ignoring_poison(&self.0.state).traffic = Some((title, run));
    }

    /// The user's wish to stop.
    pub fn interrupt(&self) -> &Interrupt {
        &self.0.interrupt
    }

    /// What the runs are a part of.
    pub fn set_campaign(&self, campaign: CampaignView) {
        lock_ignoring_poison(&self.0.state).campaign = Some(campaign);
    }

    /// Everything at this instant, with the lines that were said.
    pub fn view(&self, keys: &Keys, at: Nanos, notes: Vec<String>, color: bool) -> ScreenView {
        let shown = &self.0;
        let (run, mut campaign, traffic, end) = {
            let state = lock_ignoring_poison(&shown.state);
            (state.run.clone(), state.campaign.clone(), state.traffic.clone(), state.end)
        };
        if let (Some(CampaignView::Sweep(sweep)), Some(end)) = (&mut campaign, end) {
            sweep.left = end.time_left_text(at);
        }
        let (own, in_stead) = traffic.unzip();
        let title = run.as_ref().map_or_else(String::new, |run| {
            format!("goodput {} · {} · {}", shown.verb, run.facts.target, run.facts.model)
        });
        ScreenView {
            title: own.unwrap_or(title),
            pane: keys.pane,
            help: keys.help,
            color,
            run: in_stead.or_else(|| run.map(|run| run.view(at, shown.interrupt.is_interrupted()))),
            campaign,
            notes,
        }
    }
}

impl RunSink for ScreenRun {
    fn record(&mut self, record: &RequestRecord) {
        lock_ignoring_poison(&self.0.seen).tally.add(record);
    }

    fn observe(&mut self, seen: &Observation<'_>) {
        let Observation { at, beats, scrapes, gpus } = *seen;
        let handle = &self.0.handle;
        let snapshot = handle.live.total_snapshot();
        let mut seen = lock_ignoring_poison(&self.0.seen);
        seen.tally.set_others(at, &lock_ignoring_poison(&handle.others));
        seen.epoch = Some(now() - at);
        seen.course.update(at, snapshot.started);
        seen.tally.add_server_samples(scrapes, gpus);
        seen.tally.tick(at, beats, snapshot);
    }
}

impl Drop for ScreenRun {
    fn drop(&mut self) {
        let mut seen = lock_ignoring_poison(&self.0.seen);
        seen.took = seen.epoch.map(|epoch| now() - epoch);
        seen.is_over = true;
    }
}

/// What a thread that panicked has left can still be shown.
fn lock_ignoring_poison<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What does not change during a run. Foreign text in it is harmless.
#[derive(Debug)]
struct RunSetup {
    target: String,
    model: String,
    label: String,
    load: Load,
}

impl RunSetup {
    fn new(run: &goodput_lab::UpcomingRun<'_>) -> Self {
        // The rest of a label is how long it may still take.
        let label = run.label.split(" · ").next().unwrap_or_default().trim();
        Self {
            target: escape_control(run.target),
            model: escape_control(run.model),
            label: escape_control(label),
            load: run.plan.load.clone(),
        }
    }
}

/// What changes, and is told by the collector.
#[derive(Debug)]
struct LiveFigures {
    tally: RunTally,
    course: PlanProgress,
    /// The run's first instant on our clock, once something was seen of it.
    epoch: Option<Nanos>,
    /// How long it took, once it is over.
    took: Option<Nanos>,
    is_over: bool,
}

impl LiveFigures {
    fn new(plan: &Plan) -> Self {
        Self {
            tally: RunTally::new(plan.target.stream),
            course: PlanProgress::new(&plan.load),
            epoch: None,
            took: None,
            is_over: false,
        }
    }
}

impl BoardRun {
    fn view(&self, at: Nanos, is_stopped: bool) -> RunView {
        let snapshot = self.handle.live.total_snapshot();
        let mut seen = lock_ignoring_poison(&self.seen);
        let since = seen.epoch.map_or(Nanos::ZERO, |epoch| at - epoch);
        let elapsed = seen.took.unwrap_or(since);
        seen.course.update(elapsed, snapshot.started);
        let phase = self.run_phase(&seen, elapsed, is_stopped);
        let rates = seen.tally.recent_rates((elapsed, snapshot)).filter(|_| !seen.is_over);
        let (tokens, under_way) = seen.tally.recent_history();
        let total_s = planned_load_s(&self.facts.load);
        let done = share_done(&self.facts.load, total_s, elapsed.as_secs(), snapshot.started);
        let left_s = done.filter(|done| *done > 0.0).map(|done| match total_s {
            Some(total) => (total - elapsed.as_secs()).max(0.0),
            // By count: as fast as so far.
            None => elapsed.as_secs() / done * (1.0 - done),
        });
        RunView {
            label: self.facts.label.clone(),
            phase,
            elapsed_s: elapsed.as_secs(),
            total_s,
            done,
            left_s,
            offered: offered_view(&self.facts.load, elapsed),
            sent_per_s: rates.map(|rates| rates.sent),
            ok_per_s: rates.map(|rates| rates.ok),
            tokens_per_s: rates.map(|rates| rates.tokens),
            in_flight: snapshot.in_flight(),
            sent: snapshot.started,
            ok: snapshot.ok,
            failed: snapshot.failed,
            confidence: live_confidence_text(
                &self.handle.last_look(),
                load_to_send(&self.facts.load, &self.handle.control, elapsed),
            ),
            latencies: seen.tally.latency_views(elapsed),
            tokens,
            under_way,
            errors: seen.tally.frequent_errors(),
            client: seen.tally.client_view(elapsed, snapshot.lost),
            server: seen.tally.server_view(),
        }
    }

    fn run_phase(&self, seen: &LiveFigures, elapsed: Nanos, is_stopped: bool) -> RunPhase {
        let is_sent = self.handle.control.is_draining() || self.handle.control.is_stopping();
        match seen.course.position(elapsed) {
            _ if seen.is_over => RunPhase::Ended,
            _ if is_sent && is_stopped => RunPhase::Stopping,
            _ if is_sent => RunPhase::Drain,
            _ if seen.epoch.is_none() => RunPhase::Starting,
            RunPosition::Warmup => RunPhase::Warmup,
            RunPosition::Measured => RunPhase::Measured,
            RunPosition::Cooldown => RunPhase::Cooldown,
            RunPosition::Drain | RunPosition::Ended => RunPhase::Drain,
        }
    }
}

fn offered_view(load: &Load, at: Nanos) -> OfferedView {
    match course::planned_load(&load.mode, at) {
        course::PlannedLoad::PerSecond(rate) => OfferedView::PerSecond(rate),
        course::PlannedLoad::Users(users) => OfferedView::Users(users),
        course::PlannedLoad::Otherwise => OfferedView::Otherwise,
    }
}

/// Seconds of load, where they are planned.
fn planned_load_s(load: &Load) -> Option<f64> {
    let measured = load.duration?.as_secs_f64();
    let warmup = match load.warmup {
        LoadExtent::Time(time) => time.as_secs_f64(),
        LoadExtent::Requests(_) | LoadExtent::Auto => 0.0,
    };
    load.num_requests.is_none().then_some(warmup + measured + load.cooldown.as_secs_f64())
}

/// Share of the load that was sent.
fn share_done(load: &Load, total_s: Option<f64>, elapsed_s: f64, started: u64) -> Option<f64> {
    let warmup = match load.warmup {
        LoadExtent::Requests(requests) => requests,
        LoadExtent::Time(_) | LoadExtent::Auto => 0,
    };
    let share = match (total_s, load.num_requests) {
        (Some(total), _) => elapsed_s / total,
        (None, Some(requests)) => started as f64 / requests.saturating_add(warmup) as f64,
        (None, None) => return None,
    };
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}
