//! *When*: the due instants of an open loop ([`Arrivals`]) and the phases of a run ([`Timeline`]).
//!
//! Pure and seeded: no clock is read here. Instants are offsets from the run's epoch.

mod arrivals;
mod shaped;
mod timeline;

pub use arrivals::Arrivals;
pub use timeline::{Placed, Timeline};
