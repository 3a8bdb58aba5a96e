//! How long something takes: fixed or drawn.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use goodput_model::Nanos;
use goodput_random::Stream;

/// A time, or a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Evenly between two.
    Uniform(Duration, Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Log-normal with this median and standard deviation of the logarithm.
    LogNormal(Duration, f64),
}

impl Delay {
    pub(crate) fn draw(self, stream: &mut Stream) -> Nanos {
        match self {
            Self::Fixed(time) => time.into(),
            Self::Uniform(low, high) => {
                let span = high.saturating_sub(low).as_secs_f64();
                Nanos::from(low) + Nanos::from_secs_f64(span * stream.unit())
            }
            Self::Exponential(mean) => {
                Nanos::from_secs_f64(mean.as_secs_f64() * stream.exponential())
            }
            Self::LogNormal(median, sigma) => {
                Nanos::from_secs_f64(stream.log_normal(median.as_secs_f64(), sigma))
            }
        }
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a delay: write `50ms`, `uniform:40ms:60ms`, `exp:50ms` or \
                 `lognormal:50ms:0.5`"
            )
        };
        let time = |text: &str| humantime::parse_duration(text).map_err(|_| wrong());
        match text.split(':').collect::<Vec<_>>().as_slice() {
            ["0"] => Ok(Self::Fixed(Duration::ZERO)),
            [fixed] => Ok(Self::Fixed(time(fixed)?)),
            ["uniform", low, high] => match (time(low)?, time(high)?) {
                (low, high) if low <= high => Ok(Self::Uniform(low, high)),
                _ => Err(wrong()),
            },
            ["exp", mean] => Ok(Self::Exponential(time(mean)?)),
            ["lognormal", median, sigma] => {
                let sigma = sigma.parse::<f64>().map_err(|_| wrong())?;
                if (0.0..=5.0).contains(&sigma) {
                    Ok(Self::LogNormal(time(median)?, sigma))
                } else {
                    Err(wrong())
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Duration| humantime::format_duration(*time);
        match self {
            Self::Fixed(fixed) => write!(f, "{}", time(fixed)),
            Self::Uniform(low, high) => write!(f, "uniform:{}:{}", time(low), time(high)),
            Self::Exponential(mean) => write!(f, "exp:{}", time(mean)),
            Self::LogNormal(median, sigma) => write!(f, "lognormal:{}:{sigma}", time(median)),
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_random::Domain;

    use super::*;

    #[test]
    fn delays_have_a_text_form() {
        for text in ["50ms", "uniform:40ms:60ms", "exp:1s", "lognormal:50ms:0.5"] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        for bad in ["", "50", "uniform:60ms:40ms", "lognormal:50ms:9", "gauss:1s", "exp:1s:2s"] {
            assert!(bad.parse::<Delay>().is_err(), "{bad}");
        }
    }

    #[test]
    fn draws_stay_where_they_belong() {
        let mut stream = Stream::new(1, Domain::Service, 0);
        let delay: Delay = "uniform:40ms:60ms".parse().unwrap();
        assert!((0..1000).all(|_| (40_000_000..=60_000_000).contains(&delay.draw(&mut stream).0)));
    }
}
