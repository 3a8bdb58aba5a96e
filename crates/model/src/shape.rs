//! [`LoadShape`]: a rate that changes over time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::parse::parse_error;
use crate::{Nanos, ParseError, parse_duration};

/// A rate that changes over time.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadShape {
    /// One stage after another, then the end.
    Stages(Vec<Stage>),
    /// A wave around a mean: the day, or the hour.
    Sine {
        /// Requests per second on average.
        mean: f64,
        /// How far the rate goes above and below it; at most the mean.
        amplitude: f64,
        /// From crest to crest.
        period: Duration,
    },
    /// This many at once, again and again.
    Bursts {
        /// Requests at one instant.
        size: u32,
        /// From one instant to the next.
        every: Duration,
    },
}

/// A part of a schedule, with a rate that is constant or changes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// How long it lasts.
    pub length: Duration,
    /// Requests per second at its beginning; 0 is a rest.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
}

const EXPECTED: &str = "a schedule: stages `60s@5,30s@5..20,60s@20` (time@rate, `..` for a ramp), \
                        `sine:MEAN:AMPLITUDE:PERIOD`, or `bursts:N/TIME`";

/// Requests per second, at most: what nanoseconds can tell apart.
const MOST: f64 = 1e9;

impl LoadShape {
    /// How long it lasts, where it ends by itself.
    pub fn length(&self) -> Option<Duration> {
        match self {
            Self::Stages(stages) => Some(stages.iter().map(|stage| stage.length).sum()),
            Self::Sine { .. } | Self::Bursts { .. } => None,
        }
    }

    /// Arrivals to expect from `from` to just before `to`, counted from where the shape begins. A
    /// wave begins at its mean and rises; the first burst is at the beginning.
    pub fn expected_arrivals(&self, from: Nanos, to: Nanos) -> f64 {
        if from >= to {
            return 0.0;
        }
        match self {
            Self::Stages(stages) => {
                let mut start = Nanos::ZERO;
                let mut sum = 0.0;
                for stage in stages {
                    let end = start + Nanos::from(stage.length);
                    let (begin, finish) = (from.max(start), to.min(end));
                    sum += stage.expected_arrivals(begin - start, finish - start);
                    start = end;
                }
                sum
            }
            Self::Sine { mean, amplitude, period } => {
                let period = period.as_secs_f64();
                // Below a full turn the cosine is exact enough after any number of periods.
                let until = |at: Nanos| {
                    let turn = (at.as_secs() / period).fract() * std::f64::consts::TAU;
                    amplitude * period / std::f64::consts::TAU * (1.0 - turn.cos())
                };
                mean * (to - from).as_secs() + until(to) - until(from)
            }
            Self::Bursts { size, every } => {
                let every = Nanos::from(*every).0.max(1);
                let before = |at: Nanos| at.0.div_ceil(every);
                f64::from(*size) * (before(to) - before(from)) as f64
            }
        }
    }
}

impl Stage {
    /// Arrivals to expect between two instants since its beginning.
    fn expected_arrivals(&self, from: Nanos, to: Nanos) -> f64 {
        let length = self.length.as_secs_f64();
        let rate = |at: Nanos| self.from + (self.to - self.from) * (at.as_secs() / length);
        f64::midpoint(rate(from), rate(to)) * (to - from).as_secs()
    }
}

fn parse_rate(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate| (0.0..=MOST).contains(rate))
}

fn parse_time(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|time| !time.is_zero())
}

fn parse_stage(text: &str) -> Option<Stage> {
    let (length, rates) = text.trim().split_once('@')?;
    let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
    Some(Stage { length: parse_time(length)?, from: parse_rate(from)?, to: parse_rate(to)? })
}

impl FromStr for LoadShape {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let read = || {
            if let Some(sine) = text.strip_prefix("sine:") {
                let (mean, rest) = sine.split_once(':')?;
                let (amplitude, period) = rest.split_once(':')?;
                let (mean, amplitude) = (parse_rate(mean)?, parse_rate(amplitude)?);
                let is_whole = mean > 0.0 && amplitude <= mean;
                return is_whole.then_some(Self::Sine {
                    mean,
                    amplitude,
                    period: parse_time(period)?,
                });
            }
            if let Some(bursts) = text.strip_prefix("bursts:") {
                let (size, every) = bursts.split_once('/')?;
                let size = size.parse().ok().filter(|size| *size > 0)?;
                return Some(Self::Bursts { size, every: parse_time(every)? });
            }
            let stages: Vec<Stage> = text.split(',').map(parse_stage).collect::<Option<_>>()?;
            stages.iter().any(|stage| stage.from + stage.to > 0.0).then_some(Self::Stages(stages))
        };
        read().ok_or_else(|| parse_error(text, EXPECTED))
    }
}

impl fmt::Display for LoadShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Duration| humantime::format_duration(*time).to_string().replace(' ', "");
        match self {
            Self::Stages(stages) => {
                for (place, stage) in stages.iter().enumerate() {
                    let comma = if place == 0 { "" } else { "," };
                    write!(f, "{comma}{}@{}", time(&stage.length), stage.from)?;
                    if stage.from != stage.to {
                        write!(f, "..{}", stage.to)?;
                    }
                }
                Ok(())
            }
            Self::Sine { mean, amplitude, period } => {
                write!(f, "sine:{mean}:{amplitude}:{}", time(period))
            }
            Self::Bursts { size, every } => write!(f, "bursts:{size}/{}", time(every)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_a_text_form() {
        for text in ["1m@5,2m@20,1m@5", "30s@0..50,1m30s500ms@7.5", "sine:5:4:10m", "bursts:50/30s"]
        {
            assert_eq!(text.parse::<LoadShape>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "60s",
            "60s@",
            "0s@5",
            "60s@-1",
            "60s@0",
            "60s@nan",
            "60s@5,",
            "sine:5:6:10m",
            "sine:0:0:1s",
            "bursts:0/1s",
            "bursts:5/0s",
            "60s@1e99",
        ] {
            assert!(bad.parse::<LoadShape>().is_err(), "{bad}");
        }
    }

    #[test]
    fn arrivals_to_expect_are_the_area_under_the_rate() {
        let expected = |shape: &str, from: u64, to: u64| {
            let at = |s: u64| Nanos::from_millis(s * 1000);
            shape.parse::<LoadShape>().unwrap().expected_arrivals(at(from), at(to))
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        let stages = "10s@5,10s@5..25,10s@0";
        // 50, then a mean of 15 for 10 s, then a rest, then nothing.
        close(expected(stages, 0, 100), 200.0);
        close(expected(stages, 5, 10), 25.0);
        // Half the ramp: from 15 to 25.
        close(expected(stages, 15, 30), 100.0);
        close(expected(stages, 30, 40), 0.0);
        close(expected(stages, 10, 10), 0.0);
        // A full wave is its mean; the rising half has amplitude·period/π on top.
        close(expected("sine:5:4:100s", 0, 100), 500.0);
        close(expected("sine:5:4:100s", 100, 150), 250.0 + 400.0 / std::f64::consts::PI);
        // At 0, 10 and 20 s; the end does not belong to it.
        close(expected("bursts:7/10s", 0, 21), 21.0);
        close(expected("bursts:7/10s", 0, 20), 14.0);
        close(expected("bursts:7/10s", 1, 10), 0.0);
    }

    #[test]
    fn stages_end_by_themselves() {
        let stages: LoadShape = "60s@5,90s@5..20".parse().unwrap();
        assert_eq!(stages.length(), Some(Duration::from_secs(150)));
        assert_eq!("bursts:5/1s".parse::<LoadShape>().unwrap().length(), None);
    }
}
