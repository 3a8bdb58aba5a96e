//! Every parser that reads foreign bytes, against inputs that are a little wrong.
//!
//! An input is a function of target, seed and number, so a finding is repeated by three words on a
//! command line, on any machine. A target fails by a panic (overflow checks and debug assertions are
//! on), by a property that does not hold (bytes cut elsewhere, written and read again), by holding more
//! memory than it may, or by taking longer than it may, in CPU time of its thread.

mod memory;
mod mutate;
mod run;
mod scratch;
mod targets;
mod watch;

pub use memory::Counting;
pub use run::{Extent, FuzzFinding, FuzzSettings, TargetOutcome, repeat_input, run};
pub use scratch::clean_up_after;
pub use targets::{FuzzTarget, all_targets, sieve_target};
pub use watch::{died_at, journal_paths};
