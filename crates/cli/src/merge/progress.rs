//! How far a merge is: a line now and then, of one that takes longer than a moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use super::check::Client;
use crate::output;

/// When the first line comes, how often another, and how soon an end is noticed.
const FIRST: Nanos = Nanos::from_millis(2_000);
const EVERY: Nanos = Nanos::from_millis(5_000);
const LOOK: Nanos = Nanos::from_millis(20);

/// The log that takes longest.
const LOG: &str = "requests.log";

/// Says on stderr how far it is, until it is dropped.
pub(super) struct Telling {
    over: Arc<AtomicBool>,
    merged: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    /// Of these folders, into this one.
    pub(super) fn start(clients: &[Client], out: &Path) -> Self {
        let size = |path: &Path| std::fs::metadata(path.join(LOG)).map_or(0, |file| file.len());
        let all: u64 = clients.iter().map(|client| size(client.folder.path())).sum();
        let (folders, out) = (clients.len(), out.to_owned());
        let (over, merged) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (is_over, is_merged) = (Arc::clone(&over), Arc::clone(&merged));
        let tell = move || {
            let mut next = now() + FIRST;
            while !is_over.load(Ordering::Relaxed) {
                if now() >= next {
                    next = now() + EVERY;
                    let done = (!is_merged.load(Ordering::Relaxed)).then(|| size(&out));
                    output::note(&line(folders, done, all));
                }
                pause(LOOK);
            }
        };
        // Without a thread nothing is said, and nothing else is missing.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(tell).ok();
        Self { over, merged, thread }
    }

    /// All records are in one log: what follows is arithmetic.
    pub(super) fn merged(&self) {
        self.merged.store(true, Ordering::Relaxed);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Bytes that are merged, while they are, of all.
fn line(folders: usize, done: Option<u64>, all: u64) -> String {
    let size = format!("{folders} folders with {:.1} MB of records", all as f64 / 1e6);
    match done {
        // Numbers of workers are added to records.
        Some(done) => {
            let percent = (done as f64 / all.max(1) as f64 * 100.0).min(99.0);
            format!("merging {size}: {percent:.0} %")
        }
        None => format!("computing the figures of {size}"),
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn what_is_done_is_a_share_of_all() {
        let said = "merging 4 folders with 2.0 MB of records: 25 %";
        assert_eq!(line(4, Some(500_000), 2_000_000), said);
        assert!(line(4, Some(2_100_000), 2_000_000).ends_with(": 99 %"));
        assert!(line(4, Some(0), 0).ends_with(": 0 %"));
        assert!(line(4, None, 0).starts_with("computing the figures of 4 folders"));
    }
}
