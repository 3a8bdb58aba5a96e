//! Pages as engines write theirs: sorted labels, numbers with or without a point.

use goodput_model::{BoundedHistogram, MetricsFormat, MetricsSheet, metrics_label};

/// Labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A page under construction.
pub(super) struct MetricsWriter<'a> {
    sheet: MetricsSheet,
    /// On every sample, before those of its own.
    common: Labels<'a>,
    /// `1.0` as Python writes it, or `1`.
    has_point: bool,
}

impl<'a> MetricsWriter<'a> {
    pub(super) fn new(common: Labels<'a>, has_point: bool) -> Self {
        // A page of vLLM has some 35 kB.
        Self { sheet: MetricsSheet::new(MetricsFormat::Text, 1 << 16), common, has_point }
    }

    /// From here on with other labels on every sample.
    pub(super) fn set_labels(&mut self, common: Labels<'a>) {
        self.common = common;
    }

    pub(super) fn finish(self) -> String {
        self.sheet.finish()
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
        self.sheet.family(name, kind, help);
    }

    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        let mut all: Vec<(&str, &str)> = self.common.iter().chain(labels).copied().collect();
        all.sort_unstable();
        let all: Vec<String> = all.iter().map(|(name, text)| metrics_label(name, text)).collect();
        let number = self.number_text(value);
        self.sheet.line(name, &all.join(","), number);
    }

    /// A whole histogram, with these of its bounds.
    pub(super) fn histogram(&mut self, name: &str, help: &str, of: (&BoundedHistogram, &[f64])) {
        let (histogram, bounds) = of;
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for bound in bounds {
            let le = self.number_text(*bound);
            self.sample(&bucket, &[("le", &le)], histogram.count_up_to(*bound) as f64);
        }
        let count = histogram.count() as f64;
        self.sample(&bucket, &[("le", "+Inf")], count);
        self.sample(&format!("{name}_count"), &[], count);
        self.sample(&format!("{name}_sum"), &[], histogram.sum());
    }

    fn number_text(&self, value: f64) -> String {
        if self.has_point { format!("{value:?}") } else { format!("{value}") }
    }
}
