//! The progress line: rewritten in place on a terminal, a plain line every few seconds elsewhere.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_engine::{Control, Live, Snapshot};
use goodput_model::{Extent, Load, Nanos};
use goodput_report::{Sending, confidence_live};

use crate::run::Board;
use crate::screen::Progress;

/// Shows progress on stderr until it is dropped.
pub(crate) struct ProgressLine {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(250);
const PLAIN: Nanos = Nanos::from_millis(5_000);

/// Columns of the line: a terminal that is narrower wraps it.
const WIDTH: usize = 100;

/// What is shown.
struct Shown {
    live: Arc<Live>,
    board: Board,
    load: Load,
    control: Control,
    /// What stands before the line.
    label: String,
    /// Whether the line is rewritten.
    is_rewritten: bool,
}

impl ProgressLine {
    /// Starts, where progress is to be shown.
    pub(crate) fn start(
        (live, board): (&Arc<Live>, Board),
        (load, control): (&Load, &Control),
        label: &str,
        how: &Progress,
    ) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        // A screen that could not be had leaves the terminal to the line.
        let is_rewritten = matches!(how, Progress::Line | Progress::Screen(_));
        let shown = Shown {
            live: Arc::clone(live),
            board,
            load: load.clone(),
            control: control.clone(),
            label: label.to_owned(),
            is_rewritten,
        };
        let flag = Arc::clone(&done);
        let spawn = || {
            std::thread::Builder::new()
                .name("progress".to_owned())
                .spawn(move || show(&shown, &flag))
                // Without a thread there is no progress line, and nothing else is missing.
                .ok()
        };
        let thread = if matches!(how, Progress::None) { None } else { spawn() };
        Self { done, thread }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn show(shown: &Shown, done: &AtomicBool) {
    let live = &shown.live;
    let is_terminal = shown.is_rewritten;
    let every = if is_terminal { TERMINAL } else { PLAIN };
    let begin = now();
    let mut earlier = (begin, live.of_all());
    let mut next = begin + every;
    while !done.load(Ordering::Relaxed) {
        pause(Nanos::from_millis(20));
        let present = now();
        if present < next {
            continue;
        }
        next = present + every;
        let snapshot = live.of_all();
        let parts = parts(present - begin, present - earlier.0, &snapshot, &earlier.1);
        let sending = sending(&shown.load, &shown.control, present - begin);
        let text = line(&shown.label, parts, &confidence_live(&shown.board.read(), sending));
        let mut err = std::io::stderr().lock();
        // A terminal that went away must not end the run.
        let _ = if is_terminal {
            write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{text}")
        };
        if present - earlier.0 > Nanos::from_millis(900) {
            earlier = (present, snapshot);
        }
    }
    if is_terminal {
        let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
    }
}

/// What of a load is still to be sent so long after it began.
pub(crate) fn sending(load: &Load, control: &Control, elapsed: Nanos) -> Sending {
    if control.is_draining() || control.is_stopping() {
        return Sending::Over;
    }
    let warmup_s = match load.warmup {
        Extent::Time(time) => Some(time.as_secs_f64()),
        Extent::Requests(0) | Extent::Auto => Some(0.0),
        Extent::Requests(_) => None,
    };
    match (load.duration, load.num_requests, warmup_s) {
        (Some(duration), None, Some(warmup_s)) => {
            let duration_s = duration.as_secs_f64();
            Sending::Timed { left_s: warmup_s + duration_s - elapsed.as_secs(), duration_s }
        }
        _ => Sending::Open,
    }
}

/// Parts of the line, each with how soon it is left out where there is no room: 0 never.
fn parts(elapsed: Nanos, since: Nanos, now: &Snapshot, before: &Snapshot) -> Vec<(u8, String)> {
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
fn line(label: &str, mut parts: Vec<(u8, String)>, known: &str) -> String {
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
        let parts = || parts(Nanos::from_millis(123_400), Nanos::from_millis(1000), &now, &now);
        let plain = line("", parts(), "");
        assert_eq!(
            plain,
            " 123.4 s · 24680 sent · 180 in flight · 24500 ok · 0 failed · 0.0 ok/s · TTFT 212 ms"
        );
        let known = " · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min";
        let repeat = "repeat 2 of 5 · ";
        let full = line(repeat, parts(), known);
        assert!(full.chars().count() < WIDTH, "{full}");
        assert!(full.starts_with("repeat 2 of 5 ·  123.4 s") && full.ends_with(known), "{full}");
        let worst = line(repeat, parts(), &format!("{known} · queue grows by 31.4/s"));
        assert!(worst.contains("24500 ok") && worst.ends_with("31.4/s"), "{worst}");
    }
}
