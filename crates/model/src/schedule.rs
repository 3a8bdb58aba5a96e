//! *When*: the scheduled instants of an open loop ([`ArrivalSequence`]) and the phases of a run
//! ([`RunTimeline`]).
//!
//! Pure and seeded: no clock is read here. Instants are offsets from the run's epoch.

mod arrivals;
mod shaped;
mod timeline;

pub use arrivals::ArrivalSequence;
pub use timeline::{PlacedSession, RunTimeline};
