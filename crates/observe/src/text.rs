//! A page of metrics in Prometheus' text form (0.0.4, and its names in quotes) or OpenMetrics' (1.0),
//! read line by line.
//!
//! Lines stand for themselves: one that cannot be read is counted and the next is read. Comments
//! (`# HELP`, `# TYPE`, `# UNIT`, `# EOF` and any other), time stamps and exemplars say nothing that
//! is used here.

mod line;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

/// What a page holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedPage<'a> {
    /// Its series, in order. A series that stands there twice is here once: the last counts.
    pub series: Vec<ParsedSeries<'a>>,
    /// Lines that could not be read.
    pub malformed: u32,
}

/// One series at one instant. What the page says about the instant is not used: clocks of two
/// machines differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSeries<'a> {
    /// Its name, colons and all.
    pub name: Cow<'a, str>,
    /// Its labels, with escapes undone, sorted by name: their order on the page means nothing.
    pub labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Its value; may be infinite or not a number.
    pub value: f64,
}

impl<'a> ParsedPage<'a> {
    /// Reads a page; whatever it is, there is an answer.
    pub fn parse(text: &'a str) -> Self {
        let mut page = Self::default();
        for line in text.split('\n') {
            match line::parse_line(line.strip_suffix('\r').unwrap_or(line)) {
                Ok(series) => page.series.extend(series),
                Err(line::Malformed) => page.malformed = page.malformed.saturating_add(1),
            }
        }
        page.drop_repeated_series();
        page
    }

    /// Drops series that stand there again further down.
    fn drop_repeated_series(&mut self) {
        let mut seen = HashSet::with_capacity(self.series.len());
        let again: Vec<bool> = self
            .series
            .iter()
            .rev()
            .map(|series| !seen.insert((&series.name, &series.labels)))
            .collect();
        if again.contains(&true) {
            let mut again = again.into_iter().rev();
            self.series.retain(|_| again.next() != Some(true));
        }
    }
}

impl ParsedSeries<'_> {
    /// The value of a label; empty if there is none, which the formats do not tell apart.
    pub fn label(&self, name: &str) -> &str {
        let label = self.labels.iter().find(|(key, _)| key == name);
        label.map_or("", |(_, value)| value)
    }
}
