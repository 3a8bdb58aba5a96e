//! [`Until`]: how sure a figure must be before a run may end, as `--until` says it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::MetricName;
use crate::parse::{ParseError, parse_error};

/// What must be known, and how exactly: `p95 ttft ±10%`; several with commas must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Until(pub Vec<Goal>);

/// One figure and how exactly it must be known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Which figure of the metric.
    pub figure: StopFigure,
    /// Of what.
    pub metric: MetricName,
    /// Half of its interval in proportion to it: 0.1 is ±10 %.
    pub within: f64,
}

/// A figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StopFigure {
    /// The mean.
    Mean,
    /// A percentile, in (0, 100).
    Percentile(f64),
}

/// What ended the sending of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Its time, its number of requests, or the end of its workload.
    Plan,
    /// The rule of `--until` was met.
    Until,
    /// A point of a sweep: the server could not recover.
    Hopeless,
    /// A point of a sweep: whether it keeps the SLO was clear enough.
    Decided,
    /// The user.
    User,
}

/// Which of several runs of one plan this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// From 1.
    pub number: u32,
    /// How many were requested.
    pub of: u32,
}

const EXPECTED: &str = "a rule such as `p95 ttft ±10%` or `mean tpot +-5%`: a percentile or `mean`, \
                        a metric (ttft, ttfa, tpot, max_gap, e2e, normalized_latency or \
                        request_tokens_per_s), and a width between 0.1% and 100%";

/// Bounds of a sensible rule.
const MOST: usize = 8;

impl FromStr for Until {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let goals: Vec<Goal> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if goals.len() > MOST { Err(parse_error(text, "at most 8 rules")) } else { Ok(Self(goals)) }
    }
}

impl FromStr for Goal {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_goal(text).ok_or_else(|| parse_error(text, EXPECTED))
    }
}

fn parse_goal(text: &str) -> Option<Goal> {
    let sign = ["±", "+-", "+/-"].into_iter().find(|sign| text.contains(sign))?;
    let (what, width) = text.split_once(sign)?;
    let (figure, metric) = what.trim().split_once(char::is_whitespace)?;
    let figure = match figure.to_ascii_lowercase().as_str() {
        "mean" => StopFigure::Mean,
        other => {
            let percent = other.strip_prefix('p')?.parse::<f64>().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(StopFigure::Percentile(percent))?
        }
    };
    let percent: f64 = width.trim().strip_suffix('%')?.trim().parse().ok()?;
    let metric: MetricName = metric.parse().ok()?;
    // A request has many gaps; its pace and its largest gap are one figure each.
    let is_meant = (0.1..=100.0).contains(&percent) && metric != MetricName::Itl;
    is_meant.then_some(Goal { figure, metric, within: percent / 100.0 })
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, goal) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{goal}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ±{}%", self.figure, self.metric, self.percent())
    }
}

impl Goal {
    /// The figure as people name it: `p95 TTFT`.
    pub fn title(&self) -> String {
        let metric = match self.metric {
            MetricName::Ttft => "TTFT",
            MetricName::Ttfa => "TTFA",
            MetricName::Tpot => "TPOT",
            MetricName::Itl => "ITL",
            MetricName::MaxGap => "max gap",
            MetricName::E2e => "E2E",
            MetricName::NormalizedLatency => "E2E/token",
            MetricName::TokensPerS => "tok/s each",
        };
        format!("{} {metric}", self.figure)
    }

    /// The width in percent, without what binary fractions add to it.
    pub fn percent(&self) -> f64 {
        (self.within * 1e8).round() / 1e6
    }
}

impl fmt::Display for StopFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(figure: StopFigure, metric: MetricName, within: f64) -> Goal {
        Goal { figure, metric, within }
    }

    #[test]
    fn rules_read_and_show() {
        let p95 = goal(StopFigure::Percentile(95.0), MetricName::Ttft, 0.1);
        for text in ["p95 ttft ±10%", " P95  ttft  +-10 % ", "p95.0 TTFT+/-10%", "p95 ttft±10%"] {
            assert_eq!(text.parse(), Ok(Until(vec![p95])), "{text}");
        }
        let both: Until = "p95 ttft ±10%, mean tpot ±0.7%".parse().unwrap();
        assert_eq!(both.0[1], goal(StopFigure::Mean, MetricName::Tpot, 0.7 / 100.0));
        assert_eq!(both.to_string(), "p95 ttft ±10%, mean tpot ±0.7%");
        for tenths in 1..=1000 {
            let until: Until = format!("p99.9 e2e ±{}%", f64::from(tenths) / 10.0).parse().unwrap();
            assert_eq!(until.to_string().parse(), Ok(until));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let bad = [
            "",
            "p95 ttft",
            "p95 ttft 10%",
            "p95 ttft ±10",
            "p95 ttft ±0%",
            "p95 ttft ±nan%",
            "p95 ttft ±101%",
            "p100 ttft ±5%",
            "p0 ttft ±5%",
            "pnan ttft ±5%",
            "median ttft ±5%",
            "p95 speed ±5%",
            "p95 itl ±5%",
            "p95 ttft ±10%,",
            "p95 ttft ±10% p99 ttft ±10%",
        ];
        for text in bad {
            assert!(text.parse::<Until>().is_err(), "{text}");
        }
        assert!(["p95 ttft ±10%"; 9].join(",").parse::<Until>().is_err());
    }
}
