//! [`Slo`]: what users were promised, term by term, as `--slo` says it.
//!
//! A term limits a figure of each request (`ttft < 500ms`), a statistic over requests
//! (`p99 ttft < 500ms`, `mean tpot < 50ms`) or a figure of the whole run (`errors < 1%`). The text
//! form reads back what it writes; presets are written out as their terms. `docs/slo.md` has the
//! grammar.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::MetricName;

pub use parse::SloError;

/// The whole SLO. All terms must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// At least one; no two about the same figure.
    pub terms: Vec<SloTerm>,
}

/// One promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SloTerm {
    /// What is limited.
    pub metric: SloMetric,
    /// Of which requests.
    pub statistic: SloStatistic,
    /// On which side of the limit it must lie.
    pub relation: SloRelation,
    /// The limit.
    pub limit: SloLimit,
}

/// What a term limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SloMetric {
    /// A latency or the speed of a request; ms, or tokens/s.
    Request(MetricName),
    /// The fluidity index of a request, 0 to 1.
    Fluidity,
    /// The share of requests that fail, in percent.
    Errors,
    /// Requests that end well, per second.
    Rps,
    /// Output tokens per second.
    OutputTps,
}

/// How a term looks at requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SloStatistic {
    /// Each one by itself, or the run as a whole: the figure as it is.
    Plain,
    /// Their mean.
    Mean,
    /// This percentile, in (0, 100).
    Percentile(f64),
}

/// On which side of its limit a figure must lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SloRelation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// A limit, in the unit of its metric. It may grow with the prompt: a fixed limit on TTFT means
/// little where prompts differ in length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SloLimit {
    /// For a prompt without tokens.
    pub base: f64,
    /// More for each token of the prompt.
    pub per_token: f64,
}

/// The presets by name.
const PRESETS: [(&str, &str); 8] = [
    ("interactive", "ttft < 500ms, tpot < 50ms, errors < 1%"),
    ("batch", "ttft < 2s, e2e < 2m, errors < 1%"),
    ("mlperf-llama2-70b", "p99 ttft < 2000ms, p99 tpot < 200ms"),
    ("mlperf-llama2-70b-interactive", "p99 ttft < 450ms, p99 tpot < 40ms"),
    ("mlperf-llama3.1-8b", "p99 ttft < 2000ms, p99 tpot < 100ms"),
    ("mlperf-llama3.1-8b-interactive", "p99 ttft < 500ms, p99 tpot < 30ms"),
    ("mlperf-deepseek-r1", "p99 ttft < 2000ms, p99 tpot < 80ms"),
    ("mlperf-deepseek-r1-interactive", "p99 ttft < 1500ms, p99 tpot < 15ms"),
];

impl Slo {
    /// Names of the presets with their terms.
    pub const PRESETS: &'static [(&'static str, &'static str)] = &PRESETS;

    /// Percentiles of metrics that its terms name.
    pub fn percentiles(&self) -> impl Iterator<Item = f64> + '_ {
        self.terms.iter().filter_map(|term| match (term.metric, term.statistic) {
            (SloMetric::Request(_), SloStatistic::Percentile(percent)) => Some(percent),
            _ => None,
        })
    }

    /// The limit on a metric, that of each request before those of statistics.
    pub fn limit_on(&self, metric: MetricName) -> Option<SloLimit> {
        let mut about = self.terms.iter().filter(|term| term.metric == SloMetric::Request(metric));
        let first = about.clone().next();
        let each = about.find(|term| term.statistic == SloStatistic::Plain);
        each.or(first).map(|term| term.limit)
    }

    /// Time from one token to the next that it allows: the limit on TPOT, else on ITL.
    pub fn token_limit_ms(&self) -> Option<f64> {
        let limit = self.limit_on(MetricName::Tpot).or_else(|| self.limit_on(MetricName::Itl));
        limit.map(|limit| limit.base)
    }
}

impl SloTerm {
    /// Whether it is about each request by itself.
    pub fn is_per_request(&self) -> bool {
        !self.metric.is_run_wide() && self.statistic == SloStatistic::Plain
    }

    /// Whether this value of a request with this many prompt tokens keeps it.
    pub fn holds(&self, value: f64, prompt_tokens: u32) -> bool {
        self.relation.holds(value, self.limit.limit_for(prompt_tokens))
    }
}

impl SloMetric {
    /// The name in a term.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request(metric) => metric.name(),
            Self::Fluidity => "fluidity",
            Self::Errors => "errors",
            Self::Rps => "rps",
            Self::OutputTps => "output_tps",
        }
    }

    /// The unit of its values and limits.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Request(MetricName::TokensPerS) | Self::OutputTps => "tokens/s",
            Self::Request(_) => "ms",
            Self::Fluidity => "",
            Self::Errors => "%",
            Self::Rps => "req/s",
        }
    }

    /// Whether it is a figure of the whole run.
    pub fn is_run_wide(self) -> bool {
        matches!(self, Self::Errors | Self::Rps | Self::OutputTps)
    }

    /// Whether it is about when tokens came, which only a stream tells.
    pub fn needs_stream(self) -> bool {
        use MetricName::{Itl, MaxGap, Tpot, Ttfa, Ttft};
        matches!(self, Self::Fluidity | Self::Request(Ttft | Ttfa | Tpot | Itl | MaxGap))
    }

    /// Whether a larger value is a better one.
    pub fn is_better_high(self) -> bool {
        match self {
            Self::Request(metric) => metric.is_better_high(),
            Self::Fluidity | Self::Rps | Self::OutputTps => true,
            Self::Errors => false,
        }
    }

    /// Whether the prompt's length is in it, so that a limit may grow with it.
    pub fn depends_on_prompt(self) -> bool {
        use MetricName::{E2e, Ttfa, Ttft};
        matches!(self, Self::Request(Ttft | Ttfa | E2e))
    }
}

impl SloRelation {
    /// Whether a value lies on the right side of the limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    /// Whether the limit is a floor.
    pub fn is_floor(self) -> bool {
        matches!(self, Self::Above | Self::AtLeast)
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl SloLimit {
    /// For a prompt of this many tokens.
    pub fn limit_for(self, prompt_tokens: u32) -> f64 {
        self.base + self.per_token * f64::from(prompt_tokens)
    }

    /// Whether it grows with the prompt.
    pub fn is_linear(self) -> bool {
        self.per_token > 0.0
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SloTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.statistic {
            SloStatistic::Plain => {}
            SloStatistic::Mean => f.write_str("mean ")?,
            SloStatistic::Percentile(percent) => write!(f, "p{percent} ")?,
        }
        let (name, sign, limit) = (self.metric.name(), self.relation.sign(), self.limit);
        write!(f, "{name} {sign} ")?;
        match self.metric.unit() {
            "ms" => write_times(f, limit),
            "%" => write!(f, "{}%", limit.base),
            _ => write!(f, "{}", limit.base),
        }
    }
}

fn write_times(f: &mut fmt::Formatter<'_>, limit: SloLimit) -> fmt::Result {
    if limit.is_linear() && limit.base == 0.0 {
        return write!(f, "{}ms/token", limit.per_token);
    }
    // Whole seconds, where it makes no difference to a single bit.
    if limit.base >= 1e3 && limit.base % 1e3 == 0.0 {
        write!(f, "{}s", limit.base / 1e3)?;
    } else {
        write!(f, "{}ms", limit.base)?;
    }
    if limit.is_linear() {
        write!(f, " + {}ms/token", limit.per_token)?;
    }
    Ok(())
}

impl Serialize for Slo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Slo {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
