//! How long something takes, and how long a text is: fixed or drawn.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::random::RandomStream;
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A time, or a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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
    /// The next time.
    pub fn draw(self, stream: &mut RandomStream) -> Nanos {
        match self {
            Self::Fixed(time) => time.into(),
            Self::Uniform(low, high) => {
                let span = high.saturating_sub(low).as_secs_f64();
                Nanos::from(low) + Nanos::from_secs_f64(span * stream.next_unit())
            }
            Self::Exponential(mean) => {
                Nanos::from_secs_f64(mean.as_secs_f64() * stream.draw_exponential())
            }
            Self::LogNormal(median, sigma) => {
                Nanos::from_secs_f64(stream.draw_log_normal(median.as_secs_f64(), sigma))
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
                Ok(Self::LogNormal(time(median)?, parse_log_sd(sigma).ok_or_else(wrong)?))
            }
            _ => Err(wrong()),
        }
    }
}

/// A standard deviation of logarithms; beyond 5 no real quantity is so spread.
fn parse_log_sd(text: &str) -> Option<f64> {
    text.parse().ok().filter(|sigma| (0.0..=5.0).contains(sigma))
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

impl TryFrom<String> for Delay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Delay> for String {
    fn from(delay: Delay) -> Self {
        delay.to_string()
    }
}

/// A number of tokens, or a distribution of such numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LengthDistribution {
    /// Always the same.
    Fixed(u32),
    /// Evenly between two, both included.
    Uniform(u32, u32),
    /// Exponential with this mean.
    Exponential(u32),
    /// Normal with this mean and standard deviation, clipped.
    Normal(f64, f64, Clip),
    /// Log-normal with this median and standard deviation of the logarithm, clipped.
    LogNormal(f64, f64, Clip),
    /// Between the two ends with a probability that falls with this power of the length.
    Zipf(f64, Clip),
}

/// The least and the greatest value; what is drawn beyond them is moved onto them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    /// The least.
    pub low: u32,
    /// The greatest.
    pub high: u32,
}

impl Clip {
    /// Everything that a length can be.
    pub const NONE: Self = Self { low: 1, high: MOST };
}

/// More tokens than any context holds.
const MOST: u32 = 10_000_000;

impl LengthDistribution {
    /// The next length: at least one token.
    pub fn draw(self, stream: &mut RandomStream) -> u32 {
        let clipped = |value: f64, clip: Clip| (value as u32).clamp(clip.low, clip.high);
        match self {
            Self::Fixed(tokens) => tokens,
            Self::Uniform(low, high) => {
                let span = u64::from(high.saturating_sub(low)) + 1;
                low.saturating_add(stream.next_below(span) as u32)
            }
            Self::Exponential(mean) => {
                clipped((f64::from(mean) * stream.draw_exponential()).round(), Clip::NONE)
            }
            Self::Normal(mean, sd, clip) => {
                clipped((mean + sd * stream.draw_normal()).round(), clip)
            }
            // Whole tokens by cutting, as seed 003 has it.
            Self::LogNormal(median, sigma, clip) => {
                clipped(stream.draw_log_normal(median, sigma), clip)
            }
            Self::Zipf(exponent, clip) => {
                let span = u64::from(clip.high - clip.low) + 1;
                clip.low + (stream.draw_zipf(span, exponent) - 1) as u32
            }
        }
    }
}

impl LengthDistribution {
    /// What is seldom exceeded.
    pub fn typical_most(self) -> f64 {
        match self {
            Self::Fixed(tokens) => tokens.into(),
            Self::Uniform(_, high) => high.into(),
            Self::Exponential(mean) => 3.0 * f64::from(mean),
            Self::Normal(mean, sd, clip) => (mean + 2.0 * sd).min(clip.high.into()),
            Self::LogNormal(median, sigma, clip) => {
                (median * (2.0 * sigma).exp()).min(clip.high.into())
            }
            Self::Zipf(_, clip) => clip.high.into(),
        }
    }
}

impl FromStr for LengthDistribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a length: write `200`, `uniform:50:400`, `exp:200`, \
                 `normal:200:50[:MIN:MAX]`, `lognormal:200:0.8[:MIN:MAX]` (median, sigma) or \
                 `zipf:1.2:MIN:MAX`"
            )
        };
        let tokens =
            |text: &str| text.parse().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(wrong);
        let clip = |low: &str, high: &str| match (tokens(low)?, tokens(high)?) {
            (low, high) if low <= high => Ok(Clip { low, high }),
            _ => Err(wrong()),
        };
        let real = |text: &str, most: f64| {
            text.parse::<f64>().ok().filter(|x| (0.0..=most).contains(x)).ok_or_else(wrong)
        };
        let most = f64::from(MOST);
        match text.split(':').collect::<Vec<_>>().as_slice() {
            [fixed] => Ok(Self::Fixed(tokens(fixed)?)),
            ["uniform", low, high] => clip(low, high).map(|c| Self::Uniform(c.low, c.high)),
            ["exp", mean] => Ok(Self::Exponential(tokens(mean)?)),
            ["normal", mean, sd] => {
                Ok(Self::Normal(real(mean, most)?, real(sd, most)?, Clip::NONE))
            }
            ["normal", mean, sd, low, high] => {
                Ok(Self::Normal(real(mean, most)?, real(sd, most)?, clip(low, high)?))
            }
            ["lognormal", median, sigma] => {
                let sigma = parse_log_sd(sigma).ok_or_else(wrong)?;
                Ok(Self::LogNormal(tokens(median)?.into(), sigma, Clip::NONE))
            }
            ["lognormal", median, sigma, low, high] => {
                let sigma = parse_log_sd(sigma).ok_or_else(wrong)?;
                Ok(Self::LogNormal(tokens(median)?.into(), sigma, clip(low, high)?))
            }
            ["zipf", exponent, low, high] => {
                Ok(Self::Zipf(real(exponent, 10.0)?, clip(low, high)?))
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for LengthDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clip = match *self {
            Self::Normal(.., clip) | Self::LogNormal(.., clip) if clip != Clip::NONE => {
                format!(":{}:{}", clip.low, clip.high)
            }
            _ => String::new(),
        };
        match self {
            Self::Fixed(tokens) => write!(f, "{tokens}"),
            Self::Uniform(low, high) => write!(f, "uniform:{low}:{high}"),
            Self::Exponential(mean) => write!(f, "exp:{mean}"),
            Self::Normal(mean, sd, _) => write!(f, "normal:{mean}:{sd}{clip}"),
            Self::LogNormal(median, sigma, _) => write!(f, "lognormal:{median}:{sigma}{clip}"),
            Self::Zipf(exponent, clip) => write!(f, "zipf:{exponent}:{}:{}", clip.low, clip.high),
        }
    }
}

impl TryFrom<String> for LengthDistribution {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<LengthDistribution> for String {
    fn from(length: LengthDistribution) -> Self {
        length.to_string()
    }
}

#[cfg(test)]
mod tests {
    use crate::random::Domain;

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
        let mut stream = RandomStream::new(1, Domain::Service, 0);
        let delay: Delay = "uniform:40ms:60ms".parse().unwrap();
        assert!((0..1000).all(|_| (40_000_000..=60_000_000).contains(&delay.draw(&mut stream).0)));
    }

    #[test]
    fn lengths_have_a_text_form_and_are_never_zero() {
        for text in [
            "200",
            "uniform:50:400",
            "exp:200",
            "normal:200:12.5",
            "normal:200:50:10:400",
            "lognormal:200:0.8",
            "lognormal:500:0.8:50:4000",
            "zipf:1.2:16:4096",
        ] {
            assert_eq!(text.parse::<LengthDistribution>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "0",
            "uniform:9:3",
            "lognormal:200",
            "lognormal:200:-1",
            "exp:1ms",
            "zipf:1:9:3",
            "normal:nan:1",
            "normal:200:50:10",
        ] {
            assert!(bad.parse::<LengthDistribution>().is_err(), "{bad}");
        }
        let mut stream = RandomStream::new(1, Domain::Service, 0);
        let lengths: Vec<u32> =
            (0..1000).map(|_| LengthDistribution::Exponential(1).draw(&mut stream)).collect();
        assert_eq!(lengths.iter().min(), Some(&1));
        let (low, high) = (0..1000)
            .map(|_| LengthDistribution::Uniform(3, 5).draw(&mut stream))
            .fold((9, 0), |(low, high), n| (low.min(n), high.max(n)));
        assert_eq!((low, high), (3, 5));
    }
}
