//! [`FlowTimer`]: one stream of a client's connection of HTTP/2, as far as its client must take something.
//!
//! Such a client holds an answer up by opening no window for it. The socket stays writable then, and
//! nothing asks the answer for more: only who looks from outside can notice.

use std::cell::Cell;
use std::rc::Rc;

use goodput_clock::now;
use goodput_model::Nanos;
use tokio::sync::Notify;

/// A stream, and since when its client has taken nothing although there is something.
#[derive(Default)]
pub(crate) struct FlowTimer {
    /// When a frame was handed out behind which none was asked for.
    handed: Cell<Option<Nanos>>,
    end: Notify,
}

tokio::task_local! {
    static FLOW: Rc<FlowTimer>;
}

impl FlowTimer {
    /// That of the stream whose task this is; a connection of HTTP/1.1 has none.
    pub(crate) fn of_current_task() -> Option<Rc<Self>> {
        FLOW.try_with(Rc::clone).ok()
    }

    /// A frame is handed out, or all there was has been taken.
    pub(crate) fn frame_handed_out(&self, is_frame: bool) {
        self.handed.set(is_frame.then(now));
    }

    /// Ends it where its client has taken nothing for so long, which is what it returns.
    pub(crate) fn end_if_stalled(&self, limit: Nanos, present: Nanos) -> bool {
        let is_deaf = self.handed.get().is_some_and(|since| present - since > limit);
        if is_deaf {
            self.handed.set(None);
            self.end.notify_one();
        }
        is_deaf
    }

    /// Runs what serves the stream on the worker's own thread, until the stream is ended.
    pub(crate) fn spawn<F: Future + 'static>(self: Rc<Self>, future: F) {
        let ended = Rc::clone(&self);
        tokio::task::spawn_local(FLOW.scope(self, async move {
            tokio::select! {
                biased;
                () = ended.end.notified() => {}
                _ = future => {}
            }
        }));
    }
}
