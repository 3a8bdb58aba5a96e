//! Whether one server answers, or several in turn behind one URL.

use crate::dialect::SeriesIndex;

/// When the process behind a page began, in seconds since 1970: most servers tell.
const STARTED: &str = "process_start_time_seconds";
/// Servers work this instant out again for each page, and may come out this many seconds apart.
const APART: f64 = 2.0;
/// This many looks at which totals went down are not one server that starts again.
const FALLS: u32 = 3;

/// What looks say about who answers.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// The latest start that was seen.
    started: Option<f64>,
    /// Looks at which totals went down, and no later start says why.
    falls: u32,
    are_several: bool,
}

impl Servers {
    /// With the next look. Once known, it stays so.
    pub(super) fn are_several(&mut self, index: &SeriesIndex<'_>, has_fallen: bool) -> bool {
        let started = index.single_value(STARTED);
        let since = started.zip(self.started).map(|(now, before)| now - before);
        // The start of one server only moves on: an earlier one is another's.
        self.are_several |= since.is_some_and(|since| since < -APART);
        let is_restart = since.is_some_and(|since| since > APART);
        self.falls = self.falls.saturating_add(u32::from(has_fallen && !is_restart));
        self.are_several |= self.falls >= FALLS;
        self.started = started.into_iter().chain(self.started).reduce(f64::max);
        self.are_several
    }
}
