//! Counters of a mirror, live.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a request that was chosen was not sent, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// There were too many to look at.
    Unseen,
    /// Its body was longer than what is kept.
    TooLong,
    /// Its body was packed, or not of the API's shape.
    Unreadable,
    /// The queue was full, by number.
    QueueFull,
    /// The queue was full, by bytes.
    QueueBytes,
    /// It waited too long for its turn: caps on requests in flight and on the rate.
    Waited,
    /// Mirroring was switched off by the user.
    SwitchedOff,
    /// Mirroring paused because of too many failures.
    Errors,
    /// Mirroring was over.
    Ending,
}

impl Dropped {
    /// All of them with their words in files and on pages.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Unseen, "unseen"),
        (Self::TooLong, "too_long"),
        (Self::Unreadable, "unreadable"),
        (Self::QueueFull, "queue_full"),
        (Self::QueueBytes, "queue_bytes"),
        (Self::Waited, "waited"),
        (Self::SwitchedOff, "switched_off"),
        (Self::Errors, "errors"),
        (Self::Ending, "ending"),
    ];
}

/// Whether requests are mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MirrorStanding {
    /// They are.
    Going,
    /// The user has switched it off.
    SwitchedOff,
    /// Too many failed; after a while one tries again.
    Paused,
}

impl MirrorStanding {
    /// All of them with their words.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Going, "going"), (Self::SwitchedOff, "switched_off"), (Self::Paused, "paused")];
}

/// Counters of a mirror; each is true by itself at any time.
#[derive(Debug, Default)]
pub struct MirrorTally {
    pub(super) passed: AtomicU64,
    pub(super) chosen: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) ok: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) queued: AtomicU64,
    pub(super) held_bytes: AtomicU64,
    pub(super) in_flight: AtomicU64,
    pub(super) pauses: AtomicU64,
    pub(super) dropped: [AtomicU64; Dropped::ALL.len()],
    pub(super) is_off: AtomicBool,
    /// When the candidate is tried again; 0 while it is not left alone.
    pub(super) open_until: AtomicU64,
}

pub(super) fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl MirrorTally {
    /// Requests of clients that came whole, of the paths that can be mirrored.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Requests that were chosen.
    pub fn chosen(&self) -> u64 {
        self.chosen.load(Ordering::Relaxed)
    }

    /// Those that were sent to the candidate.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Those that it answered well.
    pub fn ok(&self) -> u64 {
        self.ok.load(Ordering::Relaxed)
    }

    /// Those that failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Those that we gave up because mirroring was switched off or over.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Those that wait.
    pub fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that are held for the candidate.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Times that mirroring paused because of failures.
    pub fn pauses(&self) -> u64 {
        self.pauses.load(Ordering::Relaxed)
    }

    /// Chosen ones that were not sent, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.dropped.iter().map(|count| count.load(Ordering::Relaxed));
        Dropped::ALL.iter().map(|(_, name)| *name).zip(counts)
    }

    /// Whether requests are mirrored.
    pub fn standing(&self) -> MirrorStanding {
        if self.is_off.load(Ordering::Relaxed) {
            MirrorStanding::SwitchedOff
        } else if self.open_until.load(Ordering::Relaxed) > 0 {
            MirrorStanding::Paused
        } else {
            MirrorStanding::Going
        }
    }

    pub(super) fn drop_one(&self, why: Dropped) {
        let place = Dropped::ALL.iter().position(|(one, _)| *one == why);
        if let Some(count) = place.and_then(|place| self.dropped.get(place)) {
            increment(count);
        }
    }
}
