//! *Many runs*: what to run next, as a pure function of what has been measured so far, and what the
//! runs say together.

mod calibration;
pub mod capacity;
pub mod compare;
mod profile_curve;
pub mod saved;
pub mod shadow;
mod shadow_report;
pub mod sweep;

pub use calibration::{Calibration, CalibrationLevel, ClimbKind, measured_ceiling, next_level};
pub use profile_curve::{ProfileLoad, ProfilePoint, profile_point};
pub use sweep::curve;
