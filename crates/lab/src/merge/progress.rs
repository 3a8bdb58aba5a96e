//! How far a merge is: a line now and then, of one that takes longer than a moment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use super::check::ShardFolder;
use crate::events::Observer;

/// When the first line comes, and how often another.
const FIRST: Duration = Duration::from_secs(2);
const EVERY: Duration = Duration::from_secs(5);

/// The log that takes longest.
const LOG: &str = "requests.log";

/// Tells how far it is from a thread of its own, until the result is dropped.
pub(super) fn report_progress<'scope>(
    scope: &'scope Scope<'scope, '_>,
    ranks: &[ShardFolder],
    out: &'scope Path,
    is_merged: &'scope AtomicBool,
    observer: &'scope dyn Observer,
) -> Sender<()> {
    let size = |path: &Path| std::fs::metadata(path.join(LOG)).map_or(0, |file| file.len());
    let all: u64 = ranks.iter().map(|rank| size(rank.folder.path())).sum();
    let folders = ranks.len();
    let (going, over) = channel::<()>();
    let tell = move || {
        let mut wait = FIRST;
        while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(wait) {
            wait = EVERY;
            let done = (!is_merged.load(Ordering::Relaxed)).then(|| size(out));
            observer.note(progress_line(folders, done, all));
        }
    };
    // Without a thread nothing is told, and nothing else is missing.
    let _ = std::thread::Builder::new().name("progress".to_owned()).spawn_scoped(scope, tell);
    going
}

/// Bytes that are merged, while they are, of all.
fn progress_line(folders: usize, done: Option<u64>, all: u64) -> String {
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
    use super::progress_line;

    #[test]
    fn what_is_done_is_a_share_of_all() {
        let said = "merging 4 folders with 2.0 MB of records: 25 %";
        assert_eq!(progress_line(4, Some(500_000), 2_000_000), said);
        assert!(progress_line(4, Some(2_100_000), 2_000_000).ends_with(": 99 %"));
        assert!(progress_line(4, Some(0), 0).ends_with(": 0 %"));
        assert!(progress_line(4, None, 0).starts_with("computing the figures of 4 folders"));
    }
}
