//! What has become of the requests so far, for everybody who asks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a request has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// Too much was waiting to be written.
    Queue,
    /// Its body was longer than what is kept.
    Length,
    /// The disk did not take it.
    Disk,
    /// Its answer was not over when its file was.
    Unanswered,
}

impl Lost {
    /// All of them, each with its name and what it means.
    pub(super) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Queue, "queue", "too many were waiting to be written"),
        (Self::Length, "length", "their bodies were too long to be kept"),
        (Self::Disk, "disk", "the disk did not take them"),
        (Self::Unanswered, "unanswered", "their answers were not over at the end of the file"),
    ];
}

/// Counters; whoever adds to them never waits.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Requests to an API that came whole while recording went on.
    pub(super) asked: AtomicU64,
    /// Requests to other paths.
    pub(super) other: AtomicU64,
    /// Requests that `--share` left out.
    pub(super) left_out: AtomicU64,
    /// Rows on disk.
    pub(super) rows: AtomicU64,
    /// Bytes on disk.
    pub(super) bytes: AtomicU64,
    /// Files begun.
    pub(super) files: AtomicU64,
    lost: [AtomicU64; 4],
    /// A limit was reached: nothing more is recorded.
    pub(super) is_over: AtomicBool,
    /// The disk refuses at present.
    pub(super) is_refused: AtomicBool,
}

impl Counts {
    /// Requests that have no row for this reason.
    pub(super) fn lost_by(&self, why: Lost) -> u64 {
        get(&self.lost[why as usize])
    }

    /// Requests that should have a row and have none.
    pub(super) fn lost(&self) -> u64 {
        self.lost.iter().map(get).sum()
    }

    pub(super) fn lose(&self, why: Lost, requests: u64) {
        add(&self.lost[why as usize], requests);
    }
}

pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

pub(super) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
