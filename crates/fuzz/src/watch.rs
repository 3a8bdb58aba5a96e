//! Who works on what: for inputs that never end, that take all memory, or that end the process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use goodput_clock::pause;
use goodput_model::Nanos;

use crate::memory;

/// CPU time after which an input is taken for one that never ends: far beyond every target's limit.
const HANG: Duration = Duration::from_mins(1);

const BETWEEN_LOOKS: Nanos = Nanos::from_millis(20);

/// Looks between two at the CPU time: files in `/proc` are not for every look.
const LOOKS: u32 = 50;

/// Nothing is worked on.
const IDLE: u64 = u64::MAX;

/// Watches the threads of one target.
pub(crate) struct ThreadWatch {
    places: Vec<WatchedThread>,
}

/// One thread.
pub(crate) struct WatchedThread {
    target: &'static str,
    seed: u64,
    journal: Option<File>,
    thread: AtomicU64,
    index: AtomicU64,
}

/// What was seen of a thread at an earlier look.
#[derive(Clone, Copy)]
struct ThreadProgress {
    index: u64,
    cpu: Duration,
}

impl ThreadWatch {
    pub(crate) fn new(
        target: &'static str,
        seed: u64,
        threads: u64,
        journals: Option<&Path>,
    ) -> io::Result<Self> {
        let place = |thread: u64| {
            let journal = journals.map(|folder| File::create(journal_path(folder, thread)));
            let (thread, index) = (AtomicU64::new(0), AtomicU64::new(IDLE));
            Ok(WatchedThread { target, seed, journal: journal.transpose()?, thread, index })
        };
        memory::enable_limit();
        Ok(Self { places: (0..threads).map(place).collect::<io::Result<_>>()? })
    }

    pub(crate) fn watched_threads(&self) -> &[WatchedThread] {
        &self.places
    }

    /// Looks after the threads until it is over. An input that cannot be ended ends the process, whose
    /// parent finds out which it was.
    #[expect(clippy::print_stderr, reason = "the last words of the process")]
    pub(crate) fn watch_until(&self, is_over: impl Fn() -> bool) {
        let mut seen: Vec<Option<ThreadProgress>> = vec![None; self.places.len()];
        let mut looks = 0;
        while !is_over() {
            pause(BETWEEN_LOOKS);
            looks += 1;
            let mut hangs = false;
            if looks % LOOKS == 0 {
                for (place, seen) in self.places.iter().zip(&mut seen) {
                    hangs |= place.is_hanging(seen);
                }
            }
            if memory::is_exhausted() || hangs {
                let why =
                    if hangs { "an input does not terminate" } else { "an input takes all memory" };
                for place in &self.places {
                    let index = place.index.load(Ordering::Relaxed);
                    eprintln!(
                        "{why}: --target {} --seed {} --index {index}",
                        place.target, place.seed
                    );
                }
                std::process::exit(EXIT_STUCK);
            }
        }
    }
}

/// The exit code of a process that could not end an input.
const EXIT_STUCK: i32 = 70;

impl WatchedThread {
    /// The thread that works here says so.
    pub(crate) fn note_thread(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.thread.store(u64::try_from(id).unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn begin_input(&self, index: u64) {
        self.index.store(index, Ordering::Relaxed);
        if let Some(journal) = &self.journal {
            let line = format!("{} {} {index:020}\n", self.target, self.seed);
            // Without it a crash is only harder to repeat.
            let _ = journal.write_at(line.as_bytes(), 0);
        }
    }

    pub(crate) fn end_input(&self) {
        self.index.store(IDLE, Ordering::Relaxed);
    }

    /// Whether it works on the same input for too long.
    fn is_hanging(&self, seen: &mut Option<ThreadProgress>) -> bool {
        let index = self.index.load(Ordering::Relaxed);
        let Some(cpu) = cpu_of(self.thread.load(Ordering::Relaxed)) else { return false };
        match seen {
            Some(seen) if seen.index == index && index != IDLE => {
                cpu.saturating_sub(seen.cpu) > HANG
            }
            _ => {
                *seen = Some(ThreadProgress { index, cpu });
                false
            }
        }
    }
}

/// CPU time of a thread of this process, by the kernel's ticks of 10 ms.
fn cpu_of(thread: u64) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name in parentheses may hold anything; user and system time are fields 14 and 15.
    let (_, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(Duration::from_millis(ticks * 10))
}

fn journal_path(folder: &Path, thread: u64) -> PathBuf {
    folder.join(format!("running-{thread}"))
}

/// The journals of this many threads.
pub fn journal_paths(folder: &Path, threads: u64) -> Vec<PathBuf> {
    (0..threads).map(|thread| journal_path(folder, thread)).collect()
}

/// What a thread worked on last: target, seed, number.
pub fn died_at(journal: &Path) -> Option<(String, u64, u64)> {
    let text = fs::read_to_string(journal).ok()?;
    let mut words = text.lines().next()?.split(' ');
    let target = words.next()?.to_owned();
    let seed = words.next()?.parse().ok()?;
    Some((target, seed, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_thread_is_found() {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(cpu_of(u64::try_from(id).unwrap()).is_some());
        assert!(cpu_of(0).is_none());
    }

    #[test]
    fn a_journal_says_what_ran() {
        let folder = std::env::temp_dir().join(format!("goodput-fuzz-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let watch = ThreadWatch::new("sse", 7, 2, Some(&folder)).unwrap();
        watch.watched_threads()[1].begin_input(12);
        let found: Vec<_> = journal_paths(&folder, 2).iter().map(|path| died_at(path)).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [None, Some(("sse".to_owned(), 7, 12))]);
    }
}
