//! What has become of the requests so far, for everybody who asks.

use std::sync::atomic::AtomicBool;

use crate::proxy::TallyCounter;

/// Why a request has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
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
    pub const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Queue, "queue", "too many rows were waiting to be written"),
        (Self::Length, "length", "their bodies were too long"),
        (Self::Disk, "disk", "the disk could not be written to"),
        (Self::Unanswered, "unanswered", "their answers were still in flight when the file ended"),
    ];
}

/// Counters; adding never blocks.
#[derive(Debug, Default)]
pub struct RecordCounts {
    /// Requests to an API that came whole while recording went on.
    pub asked: TallyCounter,
    /// Requests to other paths.
    pub other: TallyCounter,
    /// Requests that `--share` left out.
    pub left_out: TallyCounter,
    /// Rows on disk.
    pub rows: TallyCounter,
    /// Bytes on disk.
    pub bytes: TallyCounter,
    /// Files begun.
    pub files: TallyCounter,
    lost: [TallyCounter; 4],
    /// A limit was reached: nothing more is recorded.
    pub is_over: AtomicBool,
    /// The disk refuses at present.
    pub is_refused: AtomicBool,
}

impl RecordCounts {
    /// Requests that have no row for this reason.
    pub fn lost_by(&self, why: Lost) -> u64 {
        self.lost[why as usize].get()
    }

    /// Requests that should have a row and have none.
    pub fn lost_count(&self) -> u64 {
        self.lost.iter().map(TallyCounter::get).sum()
    }

    pub(super) fn add_lost(&self, why: Lost, requests: u64) {
        self.lost[why as usize].add(requests);
    }
}
