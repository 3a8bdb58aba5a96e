//! [`MetricsSheet`]: a page of metrics, in Prometheus' text format or in OpenMetrics.

use std::fmt::{Display, Write};

use crate::BoundedHistogram;

/// How a page is written. Both formats hold the same series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// `text/plain; version=0.0.4`
    Text,
    /// `application/openmetrics-text; version=1.0.0`
    OpenMetrics,
}

/// A page that is being written, family by family.
#[derive(Debug)]
pub struct MetricsSheet {
    out: String,
    format: MetricsFormat,
}

impl MetricsSheet {
    /// An empty page, with room for this many bytes.
    pub fn new(format: MetricsFormat, capacity: usize) -> Self {
        Self { out: String::with_capacity(capacity), format }
    }

    /// Begins a family.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        // In OpenMetrics a counter is named without what its samples end in.
        let name = match self.format {
            MetricsFormat::OpenMetrics if kind == "counter" => {
                name.strip_suffix("_total").unwrap_or(name)
            }
            _ => name,
        };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the family, with labels made by [`metrics_label`] and joined by commas, or none.
    pub fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.out, "{name} {value}"),
            labels => writeln!(self.out, "{name}{{{labels}}} {value}"),
        };
    }

    /// A counter or, by its name, a gauge, with one sample.
    pub fn single(&mut self, name: &str, help: &str, value: impl Display) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.family(name, kind, help);
        self.line(name, "", value);
    }

    /// All samples of a histogram with these labels.
    pub fn histogram(&mut self, name: &str, labels: &str, histogram: &BoundedHistogram) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.cumulative_counts() {
            // With a point in both formats: one series must not become two.
            self.line(&bucket, &format!("{labels},le=\"{bound:?}\""), count);
        }
        self.line(&bucket, &format!("{labels},le=\"+Inf\""), histogram.count());
        self.line(&format!("{name}_sum"), labels, histogram.sum());
        self.line(&format!("{name}_count"), labels, histogram.count());
    }

    /// The whole page.
    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

/// A label, its text as the formats want it.
pub fn metrics_label(name: &str, text: &str) -> String {
    let mut out = format!("{name}=\"");
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
