//! [`Counting`]: an allocator that knows how much each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use goodput_clock::pause;
use goodput_model::Nanos;

/// A thread that holds more than this ends the process: the machine must survive a finding.
const MOST: isize = 1 << 30;

/// Whether a watcher looks for threads that ran out of memory.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Whether a thread waits for its end.
static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread of the bytes it holds and of its peak.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counting;

/// The allocator of every program that links this crate: a limit that is not counted holds for nothing.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Begins a count at what the thread holds now.
pub(crate) fn start_measuring() -> isize {
    let held = HELD.get();
    PEAK.set(held);
    held
}

/// The most bytes that the thread held beyond `begun`.
pub(crate) fn peak_since(begun: isize) -> usize {
    usize::try_from(PEAK.get() - begun).unwrap_or(0)
}

/// From now on a thread that holds too much waits for the watch instead of ending the process.
pub(crate) fn enable_limit() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Whether a thread has run out of memory and waits.
pub(crate) fn is_exhausted() -> bool {
    IS_EXHAUSTED.load(Ordering::Relaxed)
}

/// Notes a change of what the thread holds; whether it may be.
fn count_change(change: isize) -> bool {
    // A thread that is about to end has no count any more.
    let held = HELD.try_with(|held| {
        held.set(held.get().saturating_add(change));
        held.get()
    });
    let held = held.unwrap_or_default();
    let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held)));
    if change <= 0 || held <= MOST {
        return true;
    }
    if IS_WATCHED.load(Ordering::Relaxed) {
        IS_EXHAUSTED.store(true, Ordering::Relaxed);
        loop {
            // The watch ends the process; an allocator must not unwind, and nothing is to be done here.
            pause(Nanos::from_millis(1000));
        }
    }
    false
}

fn to_signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts")]
// SAFETY: every call goes to the system's allocator with the arguments that came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if count_change(to_signed(layout.size())) {
            unsafe { System.alloc(layout) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if count_change(to_signed(layout.size())) {
            unsafe { System.alloc_zeroed(layout) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count_change(-to_signed(layout.size()));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if count_change(to_signed(size).saturating_sub(to_signed(layout.size()))) {
            unsafe { System.realloc(pointer, layout, size) }
        } else {
            std::ptr::null_mut()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_counted_and_what_was_held_before_is_not() {
        let before = vec![0u8; 100_000];
        let begun = start_measuring();
        drop(vec![0u8; 50_000]);
        let after = vec![0u8; 20_000];
        let peak = peak_since(begun);
        assert!((50_000..60_000).contains(&peak), "{peak}");
        drop((before, after));
    }
}
