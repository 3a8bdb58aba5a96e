//! [`ReadBudget`]: how much one connection may read before the others of its thread have theirs.

use std::task::{Context, Poll};

/// Most bytes of one turn: some hundred events, well below a millisecond of work.
const TURN: usize = 32 << 10;

/// What a read costs in addition to its bytes, so that empty reads use up the budget too.
const READ: usize = 64;

/// What was read without waiting. The runtime's own budget would allow a megabyte: with many busy
/// connections on a thread, limits and stops would be heard late.
#[derive(Debug, Default)]
pub(crate) struct ReadBudget {
    taken: usize,
}

impl ReadBudget {
    /// Whether the turn goes on; if not, the task is woken again after the others.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.taken < TURN {
            return Poll::Ready(());
        }
        self.taken = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// So much was read; `None` where there was nothing to read, which is a pause of its own.
    pub(crate) fn note_read(&mut self, bytes: Option<usize>) {
        self.taken = bytes.map_or(0, |bytes| self.taken + bytes + READ);
    }
}
