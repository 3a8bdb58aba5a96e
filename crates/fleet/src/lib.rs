//! *Many machines*: the rendezvous at which the ranks of one run meet.
//!
//! Rank 0 is the [`Coordinator`]: it listens, the others ([`JoinedRank`]) join. It sends an order (a plan, as
//! text), hears who is ready, says at which instant all begin, each on its own clock, hears live
//! counts, and takes the files that each leaves. What an order means, what is in the files and how
//! counts are shown is not known here.
//!
//! Every connection is TLS 1.3, in which both ends prove that they have a [`Token`] that never crosses
//! the wire. All that a peer may send is bounded. The protocol is written down in
//! docs/design/019-fleet.md.
//!
//! [`SlurmJob`], [`KubernetesJob`] and [`RayJob`] start such ranks; [`detect_rank`] says which one this
//! process is.

mod burst;
mod channel;
mod coordinator;
mod detect;
mod error;
mod frame;
mod launch;
mod message;
mod rank;
mod rendezvous;
#[cfg(test)]
mod tests;
mod token;
mod totals;

pub use coordinator::{Coordinator, CoordinatorSettings, Go, PeerLimits, RankPhase, RankState};
pub use detect::{DetectedRank, detect_rank};
pub use error::{FleetError, LaunchError, Refusal};
pub use frame::{LARGEST_MESSAGE, LARGEST_PIECE};
pub use launch::{
    JobObserver, KubernetesJob, RankCommand, RayJob, SlurmJob, StopRequest, job_name, object_name,
    secret_key,
};
pub use message::{Order, OrderKind, UPLOADED};
pub use rank::{JoinedRank, NextOrder, RankSettings, Start};
pub use rendezvous::with_port;
pub use token::Token;
pub use totals::Totals;

/// The version of the protocol; both ends must speak the same.
pub const PROTOCOL: u32 = 2;

/// Reads both clocks of a machine: the monotonic one, and Unix time.
pub type Clocks = fn() -> (goodput_model::Nanos, goodput_model::Nanos);
