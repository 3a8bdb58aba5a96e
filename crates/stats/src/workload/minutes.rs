//! The minutes of a window, or longer parts of a long one.

use goodput_model::Nanos;

use crate::window::Window;

/// Parts at most; a longer window has longer parts.
const MOST: u64 = 120;
/// Lengths of a part in minutes, the first that fits.
const LENGTHS: [u64; 10] = [1, 2, 5, 10, 15, 30, 60, 120, 360, 1440];

/// Equal parts of a window of two minutes or more; the last may be shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Minutes {
    window: Window,
    /// Length of a part, in minutes.
    each: u64,
    count: u64,
}

impl Minutes {
    /// None if the window has no two minutes.
    pub(crate) fn from_window(window: Window) -> Option<Self> {
        let whole = (window.end - window.start).0;
        let minute = Nanos::from_millis(60_000).0;
        if whole < 2 * minute {
            return None;
        }
        let parts = |each: u64| whole.div_ceil(each.saturating_mul(minute));
        let fits = LENGTHS.into_iter().find(|each| parts(*each) <= MOST);
        // Beyond those, days of months: whatever gives this many.
        let each = fits.unwrap_or(whole.div_ceil(MOST * minute));
        Some(Self { window, each, count: parts(each) })
    }

    pub(crate) fn count(self) -> u64 {
        self.count
    }

    pub(crate) fn part_length(self) -> Nanos {
        Nanos(self.each.saturating_mul(Nanos::from_millis(60_000).0))
    }

    /// The part that an instant belongs to; what lies outside belongs to the nearest.
    pub(crate) fn part_index(self, at: Nanos) -> u64 {
        ((at - self.window.start).0 / self.part_length().0.max(1)).min(self.count - 1)
    }

    /// A part as a window of its own.
    pub(crate) fn part_window(self, place: u64) -> Window {
        let start = self.window.start + Nanos(place.saturating_mul(self.part_length().0));
        Window { start, end: (start + self.part_length()).min(self.window.end), ..self.window }
    }

    /// `3`, or `11–15` where parts are longer than a minute.
    pub(crate) fn label(self, place: u64) -> String {
        let (first, last) = (place * self.each + 1, (place + 1) * self.each);
        if self.each == 1 { first.to_string() } else { format!("{first}–{last}") }
    }
}
