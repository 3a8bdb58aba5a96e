//! Writing the text format of Prometheus.

use std::fmt::Write;

use goodput_model::BoundedHistogram;

/// Labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page under construction.
pub(super) struct Page<'a> {
    out: String,
    /// On every sample, before those of its own.
    common: Labels<'a>,
    /// `1.0` as Python writes it, or `1`.
    has_point: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(common: Labels<'a>, has_point: bool) -> Self {
        // A page of vLLM has some 35 kB.
        Self { out: String::with_capacity(1 << 16), common, has_point }
    }

    /// From here on with other labels on every sample.
    pub(super) fn with(&mut self, common: Labels<'a>) {
        self.common = common;
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A counter with one sample.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    /// A gauge with one sample.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// Opens a family; its samples follow.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.out.push_str(name);
        let mut all: Vec<(&str, &str)> = self.common.iter().chain(labels).copied().collect();
        all.sort_unstable();
        for (index, (label, text)) in all.into_iter().enumerate() {
            self.out.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.out, "{label}=\"{}\"", Escaped(text));
        }
        if !(self.common.is_empty() && labels.is_empty()) {
            self.out.push('}');
        }
        let number = self.number(value);
        let _ = writeln!(self.out, " {number}");
    }

    /// A whole histogram, with these of its bounds.
    pub(super) fn histogram(&mut self, name: &str, help: &str, of: (&BoundedHistogram, &[f64])) {
        let (histogram, bounds) = of;
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for bound in bounds {
            let le = self.number(*bound);
            self.sample(&bucket, &[("le", &le)], histogram.count_up_to(*bound) as f64);
        }
        let count = histogram.count() as f64;
        self.sample(&bucket, &[("le", "+Inf")], count);
        self.sample(&format!("{name}_count"), &[], count);
        self.sample(&format!("{name}_sum"), &[], histogram.sum());
    }

    fn number(&self, value: f64) -> String {
        if self.has_point { format!("{value:?}") } else { format!("{value}") }
    }
}

/// A label's text as the format wants it.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}
