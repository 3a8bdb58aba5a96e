//! *The run*: requests are prepared ahead, let go at their instants, sent by workers, and handed
//! to the caller as records.
//!
//! ```text
//! feeder ──prepared──► pacer ──due──► worker ┐
//!   (bodies built        (open loop)   worker ├──records──► collector (the caller's sink)
//!    before they         closed loop:  worker ┘
//!    are due)            feeder ──► worker, each user waiting for its answer
//! ```
//!
//! One thread each for feeder, pacer and collector, and one current-thread runtime per worker.
//! Nothing between a due instant and the socket takes a lock or builds a body; a slow sink delays
//! no dispatch.

mod control;
mod feeder;
mod heart;
mod limits;
mod live;
mod pacer;
mod run;
mod worker;

pub use control::Control;
pub use heart::Canary;
pub use limits::{FdLimit, raise_fd_limit};
pub use live::{Live, Snapshot};
pub use pacer::Pacing;
pub use run::{Ended, EngineError, Run, Sink, run};
