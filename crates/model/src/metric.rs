//! The metrics by name, as `--slo`, `--until` and `summary.json` say them.

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseError, parse_error};

/// What is measured of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricName {
    /// Time to the first token, from schedule.
    Ttft,
    /// Time to the first token of the answer itself.
    Ttfa,
    /// Time per output token after the first.
    Tpot,
    /// Gap between chunks.
    Itl,
    /// The largest gap of a request.
    MaxGap,
    /// Time to the last token, from schedule.
    E2e,
    /// The same per output token.
    NormalizedLatency,
    /// Output tokens per second, as one user sees it.
    TokensPerS,
}

impl MetricName {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Ttft,
        Self::Ttfa,
        Self::Tpot,
        Self::Itl,
        Self::MaxGap,
        Self::E2e,
        Self::NormalizedLatency,
        Self::TokensPerS,
    ];

    /// The name in `summary.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Ttfa => "ttfa",
            Self::Tpot => "tpot",
            Self::Itl => "itl",
            Self::MaxGap => "max_gap",
            Self::E2e => "e2e",
            Self::NormalizedLatency => "normalized_latency",
            Self::TokensPerS => "request_tokens_per_s",
        }
    }

    /// Whether a larger value is a better one.
    pub fn is_better_high(self) -> bool {
        self == Self::TokensPerS
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MetricName {
    type Err = ParseError;
    /// Also by the names that other tools have for them.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let name = text.trim().to_ascii_lowercase().replace('-', "_");
        let other = match name.as_str() {
            "time_to_first_token" => Self::Ttft,
            "tbt" | "inter_token_latency" => Self::Itl,
            "e2el" | "latency" | "request_latency" => Self::E2e,
            "tokens_per_s" | "tps" => Self::TokensPerS,
            _ => {
                const EXPECTED: &str = "a metric: ttft, ttfa, tpot, itl, max_gap, e2e, \
                                        normalized_latency or request_tokens_per_s";
                let known = Self::ALL.into_iter().find(|metric| metric.name() == name);
                return known.ok_or_else(|| parse_error(text, EXPECTED));
            }
        };
        Ok(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for metric in MetricName::ALL {
            assert_eq!(metric.name().parse::<MetricName>().unwrap(), metric);
        }
        assert_eq!(" E2EL ".parse::<MetricName>().unwrap(), MetricName::E2e);
        assert_eq!("max-gap".parse::<MetricName>().unwrap(), MetricName::MaxGap);
        assert!("speed".parse::<MetricName>().is_err());
    }
}
