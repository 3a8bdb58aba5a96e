//! [`Nanos`]: the one unit of time on the measuring path.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point or a span on the run's one monotonic clock, in nanoseconds.
///
/// Subtraction saturates at zero: stamps are ordered by construction, and a negative latency must
/// never appear in a report.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of the clock, or no time at all.
    pub const ZERO: Self = Self(0);

    /// Whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// Seconds, rounded to the nearest nanosecond; negative and not-a-number give zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// Milliseconds with fraction, for people.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds with fraction, for rates.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Microseconds, rounded to the nearest: the grain of chunk instants in the request log.
    pub const fn as_micros_rounded(self) -> u64 {
        (self.0 + 500) / 1_000
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Nanos::from_secs_f64(0.1), Nanos(100_000_000));
        assert_eq!(Nanos::from_secs_f64(1e-9 * 0.6), Nanos(1));
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
    }

    #[test]
    fn subtraction_never_goes_below_zero() {
        assert_eq!(Nanos(5) - Nanos(7), Nanos::ZERO);
    }
}
