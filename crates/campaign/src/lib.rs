//! *Many runs*: what to run next, as a pure function of what has been measured so far.

mod calibration;

pub use calibration::{Calibration, Kind, Level, ceiling, next_level};
