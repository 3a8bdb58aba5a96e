//! The progress line of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_engine::{RunControl, Snapshot};
use goodput_lab::{ExpectedEnd, RunHandle, RunSink, UpcomingRun};
use goodput_model::{Load, LoadExtent, Nanos, RequestRecord};
use goodput_report::{Sending, live_confidence_text};

use crate::ticker::Ticker;

/// Shows progress on stderr until it is dropped.
pub struct ProgressLine {
    done: Arc<AtomicBool>,
    shown: Option<ShownProgress>,
    thread: Option<JoinHandle<()>>,
}

/// Columns of the line: a terminal that is narrower wraps it.
const WIDTH: usize = 100;

/// What is shown.
struct ShownProgress {
    handle: RunHandle,
    load: Load,
    /// What stands before the line.
    label: String,
    /// When everything that the run is part of should end.
    end: Option<ExpectedEnd>,
    /// Whether the line is rewritten.
    is_rewritten: bool,
}

impl ProgressLine {
    /// Of a run that is about to begin.
    pub fn new(run: &UpcomingRun<'_>, is_rewritten: bool) -> Self {
        let shown = ShownProgress {
            handle: run.handle.clone(),
            load: run.plan.load.clone(),
            label: run.label.to_owned(),
            end: run.end,
            is_rewritten,
        };
        Self { done: Arc::default(), shown: Some(shown), thread: None }
    }
}

impl RunSink for ProgressLine {
    fn begin(&mut self) {
        let Some(shown) = self.shown.take() else { return };
        let done = Arc::clone(&self.done);
        let thread = std::thread::Builder::new().name("progress".to_owned());
        // Without a thread only the progress line is missing.
        self.thread = thread.spawn(move || show_progress(&shown, &done)).ok();
    }

    fn record(&mut self, _: &RequestRecord) {}
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn show_progress(shown: &ShownProgress, done: &AtomicBool) {
    let live = &shown.handle.live;
    let begin = now();
    let mut earlier = (begin, live.total_snapshot());
    let mut ticker = Ticker::for_line(false, shown.is_rewritten, |_| {});
    while !done.load(Ordering::Relaxed) {
        pause(Nanos::from_millis(20));
        if !ticker.is_due() {
            continue;
        }
        let present = now();
        let snapshot = live.total_snapshot();
        let parts = line_parts(present - begin, present - earlier.0, &snapshot, &earlier.1);
        let sending = load_to_send(&shown.load, &shown.handle.control, present - begin);
        let label = label_with_end(&shown.label, shown.end, present);
        ticker.show(&fit_line(
            &label,
            parts,
            &live_confidence_text(&shown.handle.last_look(), sending),
        ));
        if present - earlier.0 > Nanos::from_millis(900) {
            earlier = (present, snapshot);
        }
    }
    ticker.clear();
}

/// A label such as `6 search 20/s · ` with how long everything still takes.
fn label_with_end(label: &str, end: Option<ExpectedEnd>, at: Nanos) -> String {
    end.map_or_else(|| label.to_owned(), |end| format!("{label}{} · ", end.time_left_text(at)))
}

/// What of a load is still to be sent so long after it began.
pub(crate) fn load_to_send(load: &Load, control: &RunControl, elapsed: Nanos) -> Sending {
    if control.is_draining() || control.is_stopping() {
        return Sending::Over;
    }
    let warmup_s = match load.warmup {
        LoadExtent::Time(time) => Some(time.as_secs_f64()),
        LoadExtent::Requests(0) | LoadExtent::Auto => Some(0.0),
        LoadExtent::Requests(_) => None,
    };
    match (load.duration, load.num_requests, warmup_s) {
        (Some(duration), None, Some(warmup_s)) => {
            let duration_s = duration.as_secs_f64();
            Sending::Timed { left_s: warmup_s + duration_s - elapsed.as_secs(), duration_s }
        }
        _ => Sending::Open,
    }
}

/// Parts of the line, each with how soon it is left out if space is short: 0 never.
fn line_parts(
    elapsed: Nanos,
    since: Nanos,
    now: &Snapshot,
    before: &Snapshot,
) -> Vec<(u8, String)> {
    let rate = (now.ok - before.ok) as f64 / since.as_secs().max(0.001);
    let mut parts = vec![
        (0, format!("{:6.1} s", elapsed.as_secs())),
        (4, format!(" · {} sent", now.started)),
        (1, format!(" · {} in flight", now.in_flight())),
        (0, format!(" · {} ok", now.ok)),
        (if now.failed > 0 { 0 } else { 3 }, format!(" · {} failed", now.failed)),
        (2, format!(" · {rate:.1} ok/s")),
    ];
    if let Some(mean) = now.ttft_sum_ns.checked_div(now.ttft_count) {
        parts.push((5, format!(" · TTFT {:.0} ms", Nanos(mean).as_ms())));
    }
    parts
}

/// The line, with the parts that fit.
fn fit_line(label: &str, mut parts: Vec<(u8, String)>, known: &str) -> String {
    loop {
        let all: String = parts.iter().map(|part| part.1.as_str()).collect();
        let line = format!("{label}{all}{known}");
        let soonest = parts.iter().map(|part| part.0).max().unwrap_or(0);
        if soonest == 0 || line.chars().count() < WIDTH {
            return line;
        }
        parts.retain(|part| part.0 != soonest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits() {
        let now = Snapshot {
            started: 24_680,
            ok: 24_500,
            ttft_sum_ns: 24_500 * 212_000_000,
            ttft_count: 24_500,
            ..Snapshot::default()
        };
        let parts =
            || line_parts(Nanos::from_millis(123_400), Nanos::from_millis(1000), &now, &now);
        let plain = fit_line("", parts(), "");
        assert_eq!(
            plain,
            " 123.4 s · 24680 sent · 180 in flight · 24500 ok · 0 failed · 0.0 ok/s · TTFT 212 ms"
        );
        let known = " · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min";
        let repeat = "repeat 2 of 5 · ";
        let full = fit_line(repeat, parts(), known);
        assert!(full.chars().count() < WIDTH, "{full}");
        assert!(full.starts_with("repeat 2 of 5 ·  123.4 s") && full.ends_with(known), "{full}");
        let worst = fit_line(repeat, parts(), &format!("{known} · queue grows by 31.4/s"));
        assert!(worst.contains("24500 ok") && worst.ends_with("31.4/s"), "{worst}");
    }
}
