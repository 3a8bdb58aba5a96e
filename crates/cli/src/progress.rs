//! The progress line: rewritten in place on a terminal, a plain line every few seconds elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_engine::{Live, Snapshot};
use goodput_model::Nanos;

/// Shows progress on stderr until it is dropped.
pub(crate) struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(250);
const PLAIN: Nanos = Nanos::from_millis(5_000);

impl Progress {
    /// Starts, unless the user wants quiet.
    pub(crate) fn start(live: &Arc<Live>, quiet: bool) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (live, flag) = (Arc::clone(live), Arc::clone(&done));
        let thread = (!quiet)
            .then(|| {
                std::thread::Builder::new()
                    .name("progress".to_owned())
                    .spawn(move || show(&live, &flag))
            })
            // Without a thread there is no progress line, and nothing else is missing.
            .and_then(Result::ok);
        Self { done, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn show(live: &Live, done: &AtomicBool) {
    let is_terminal = std::io::stderr().is_terminal();
    let every = if is_terminal { TERMINAL } else { PLAIN };
    let begin = now();
    let mut earlier = (begin, live.snapshot());
    let mut next = begin + every;
    while !done.load(Ordering::Relaxed) {
        pause(Nanos::from_millis(20));
        let present = now();
        if present < next {
            continue;
        }
        next = present + every;
        let snapshot = live.snapshot();
        let text = line(present - begin, present - earlier.0, &snapshot, &earlier.1);
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

fn line(elapsed: Nanos, since: Nanos, now: &Snapshot, before: &Snapshot) -> String {
    let rate = |now: u64, before: u64| (now - before) as f64 / since.as_secs().max(0.001);
    let ttft = match now.ttft_count {
        0 => String::new(),
        n => format!(" · TTFT {:.0} ms", Nanos(now.ttft_sum_ns / n).as_ms()),
    };
    format!(
        "{:6.1} s · {} sent · {} in flight · {} ok · {} failed · {:.1} ok/s{ttft}",
        elapsed.as_secs(),
        now.started,
        now.in_flight(),
        now.ok,
        now.failed,
        rate(now.ok, before.ok),
    )
}
