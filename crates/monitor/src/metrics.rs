//! `--metrics-listen`: the runs of one use of a verb as Prometheus metrics, while they go on.
//!
//! Workers are not touched. Counters are those of the engine; what a request says in the end is
//! added up on the collector's thread; pages are made on the thread of the scraper's connection.

mod bounds;
mod observed;
mod page;
mod server;
mod tally;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_clock::now;
use goodput_lab::{Observation, RunHandle, RunSink, UpcomingRun};
use goodput_model::{Load, MetricsFormat, Nanos, RequestRecord, escape_control};

use crate::course::{PlanProgress, RunPosition, planned_load};
use observed::LatestReadings;
use page::RunSnapshot;
pub use page::new_sheet;
pub use tally::MetricsTally;

/// Runs on the page at most, in addition to the current ones: a comparison has hundreds.
const MOST_RUNS: usize = 16;

/// How long a client may take for its question, and for the answer.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// The page, from here to the end of the process.
#[derive(Debug, Clone, Default)]
pub struct Listen(Arc<Mutex<MetricsRuns>>);

#[derive(Debug, Default)]
struct MetricsRuns {
    /// In the order of their beginnings.
    shown: Vec<Arc<MetricsRun>>,
    /// How often each pair of target and run was there: two series must not share a name.
    names: BTreeMap<(String, String), u32>,
}

/// A run on the page.
#[derive(Debug)]
struct MetricsRun {
    facts: RunLabels,
    handle: RunHandle,
    state: Mutex<MetricsState>,
}

#[derive(Debug)]
struct MetricsState {
    tally: MetricsTally,
    readings: LatestReadings,
    course: PlanProgress,
    /// The run's first instant on our clock, once something was seen of it.
    epoch: Option<Nanos>,
    /// How long it took, once it is over.
    ended: Option<Nanos>,
}

/// What does not change during a run.
#[derive(Debug, Clone)]
pub(crate) struct RunLabels {
    target: String,
    run: String,
    /// What the progress line calls it.
    label: String,
    model: String,
    folder: String,
    stream: bool,
    load: Load,
}

impl RunLabels {
    fn new(run: &UpcomingRun<'_>) -> Self {
        // The rest of a label is how long it may still take.
        let label = run.label.split(" · ").next().unwrap_or_default().trim();
        // Among others a run is named by its folder, which also tells the sides of a block apart.
        let name = run.folder.file_name().filter(|_| !label.is_empty());
        let name = name.map_or_else(|| "run".into(), |name| name.to_string_lossy());
        Self {
            target: escape_control(run.target),
            run: escape_control(&name),
            label: escape_control(label),
            model: escape_control(run.model),
            folder: escape_control(&run.folder.display().to_string()),
            stream: run.plan.target.stream,
            load: run.plan.load.clone(),
        }
    }
}

impl Listen {
    /// Shows a run from here on; it is over when the result is dropped.
    pub fn follow(&self, run: &UpcomingRun<'_>) -> MeteredRun {
        self.follow_handle(RunLabels::new(run), run.handle)
    }

    fn follow_handle(&self, mut facts: RunLabels, handle: &RunHandle) -> MeteredRun {
        let state = MetricsState {
            tally: MetricsTally::new(facts.stream),
            readings: LatestReadings::default(),
            course: PlanProgress::new(&facts.load),
            epoch: None,
            ended: None,
        };
        let mut runs = lock_ignoring_poison(&self.0);
        let times = runs.names.entry((facts.target.clone(), facts.run.clone())).or_default();
        *times += 1;
        if *times > 1 {
            facts.run = format!("{} ({times})", facts.run);
        }
        let handle = handle.clone();
        let shown = Arc::new(MetricsRun { facts, handle, state: Mutex::new(state) });
        runs.shown.push(Arc::clone(&shown));
        let excess = runs.shown.len().saturating_sub(MOST_RUNS);
        let over = runs.shown.iter().filter(|run| run.is_over()).take(excess);
        let over: Vec<_> = over.map(Arc::as_ptr).collect();
        runs.shown.retain(|run| !over.contains(&Arc::as_ptr(run)));
        MeteredRun(shown)
    }

    /// The page as it is now.
    pub fn render_page(&self, format: MetricsFormat) -> String {
        let shown = lock_ignoring_poison(&self.0).shown.clone();
        let looks: Vec<RunSnapshot> = shown.iter().map(|run| run.snapshot(now())).collect();
        page::render_page(&looks, format)
    }
}

/// Serves a page at `/metrics` until the process ends; where it listens.
pub fn serve_metrics(
    address: SocketAddr,
    page: impl Fn(MetricsFormat) -> String + Send + Sync + 'static,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let chosen = listener.local_addr()?;
    server::start_server(page, PATIENCE, listener)?;
    Ok(chosen)
}

impl MetricsRun {
    fn is_over(&self) -> bool {
        lock_ignoring_poison(&self.state).ended.is_some()
    }

    fn snapshot(&self, at: Nanos) -> RunSnapshot {
        let seen = self.handle.live.snapshot();
        let mut state = lock_ignoring_poison(&self.state);
        let since = state.epoch.map_or(Nanos::ZERO, |epoch| at - epoch);
        let elapsed = state.ended.unwrap_or(since);
        state.course.update(elapsed, seen.started);
        let is_sent = self.handle.control.is_stopping() || self.handle.control.is_draining();
        let stand = if state.ended.is_some() {
            RunPosition::Ended
        } else if is_sent {
            RunPosition::Drain
        } else {
            state.course.position(elapsed)
        };
        RunSnapshot {
            facts: self.facts.clone(),
            seen,
            tally: state.tally.clone(),
            readings: state.readings.clone(),
            stand,
            elapsed,
            offered: planned_load(&self.facts.load.mode, elapsed),
        }
    }
}

/// A run that is shown while it lasts. To be dropped as soon as its last answer is there: what
/// follows, a profile that is written or answers that are judged, does not belong to the run.
#[derive(Debug)]
pub struct MeteredRun(Arc<MetricsRun>);

impl RunSink for MeteredRun {
    fn record(&mut self, record: &RequestRecord) {
        lock_ignoring_poison(&self.0.state).tally.add(record);
    }

    fn observe(&mut self, seen: &Observation<'_>) {
        let Observation { at, beats, .. } = *seen;
        let started = self.0.handle.live.snapshot().started;
        let mut state = lock_ignoring_poison(&self.0.state);
        state.epoch = Some(now() - at);
        state.course.update(at, started);
        state.tally.observe(at, beats);
        state.readings.observe(seen);
    }
}

impl Drop for MeteredRun {
    fn drop(&mut self) {
        let mut state = lock_ignoring_poison(&self.0.state);
        let took = state.epoch.map_or(Nanos::ZERO, |epoch| now() - epoch);
        state.ended = Some(took);
        // What the server says after the run is not seen any more.
        state.readings = LatestReadings::default();
    }
}

/// What a thread that panicked has left is still counters.
fn lock_ignoring_poison<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
