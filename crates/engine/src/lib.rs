//! *The run*: sessions are prepared ahead, begun at their instants, played by workers, and every
//! request is handed to the caller as a record.
//!
//! ```text
//! feeder ──sessions──► worker ┐ ◄─┐ steps still to come:
//!   (first bodies      worker ├───┘ built after an answer, sent after a pause
//!    built before      worker ┴──records──► collector (the caller's sink)
//!    they are due)
//! ```
//!
//! A session ([`goodput_model::Session`]) is what arrives; most have one step with one request. In
//! a closed loop each user of a worker plays one session after another. In an open loop sessions arrive whatever the server does, and each then waits for its own answers
//! between its steps. One that fails at a step is over, and what it would have asked is counted
//! ([`RunEnd::cut_requests`]).
//!
//! One thread each for feeder and collector, and one current-thread runtime per worker. A
//! session stays with its worker. Nothing between a scheduled instant and the socket takes a lock
//! or builds a body; a slow sink delays no dispatch.
//!
//! Sessions built ahead are bounded in number and bytes. A burst is not: all of it must be in memory
//! at its instant.

mod arrivals;
mod collector;
mod control;
mod feeder;
mod fingerprint;
mod limits;
mod live;
mod pacing;
mod play;
mod run;
mod self_check;
mod senders;
mod session;
mod users;
mod work;
mod worker;

pub use collector::Sink;
pub use control::RunControl;
pub use feeder::SessionSource;
pub use limits::{FdLimit, raise_fd_limit};
pub use live::{LiveCounters, Snapshot};
pub use pacing::TimerMode;
pub use run::{Begin, EngineError, EngineRun, RunEnd, run};
pub use self_check::Canary;
