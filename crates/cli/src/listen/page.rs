//! The page, in Prometheus' text format or in OpenMetrics. Both hold the same series.

use std::fmt::{Display, Write};

use goodput_engine::Snapshot;
use goodput_model::{BoundedHistogram, Nanos};

use super::Facts;
use super::course::{Offered, Stand};
use super::tally::Tally;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `text/plain; version=0.0.4`
    Text,
    OpenMetrics,
}

/// One look at a run.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) facts: Facts,
    pub(super) seen: Snapshot,
    pub(super) tally: Tally,
    pub(super) stand: Stand,
    pub(super) elapsed: Nanos,
    pub(super) offered: Offered,
}

/// Name, type and meaning of a family.
type Family = (&'static str, &'static str, &'static str);

/// A page that is being written, family by family.
pub(crate) struct Sheet {
    out: String,
    format: Format,
}

impl Sheet {
    /// An empty page, with the version of goodput.
    pub(crate) fn new(format: Format, capacity: usize) -> Self {
        let mut sheet = Self { out: String::with_capacity(capacity), format };
        sheet.family(("goodput_build_info", "gauge", "The version of goodput"));
        sheet.line("goodput_build_info", &label("version", VERSION), 1);
        sheet
    }

    /// Begins a family: name, type and meaning.
    pub(crate) fn family(&mut self, (name, kind, help): Family) {
        // In OpenMetrics a counter is named without what its samples end in.
        let name = match self.format {
            Format::OpenMetrics if kind == "counter" => name.strip_suffix("_total").unwrap_or(name),
            _ => name,
        };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the family, with labels made by [`label`] and joined by commas, or none.
    pub(crate) fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.out, "{name} {value}"),
            labels => writeln!(self.out, "{name}{{{labels}}} {value}"),
        };
    }

    /// The whole page.
    pub(crate) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

pub(super) fn render(looks: &[Look], format: Format) -> String {
    // A run takes some 12 kB.
    let sheet = Sheet::new(format, (looks.len() + 1) << 14);
    let mut page = Page { sheet, runs: looks.iter().map(|look| (labels(look), look)).collect() };
    page.runs_themselves();
    page.requests();
    page.latencies();
    page.client();
    page.sheet.finish()
}

struct Page<'a> {
    sheet: Sheet,
    /// With the labels that all of its series have.
    runs: Vec<(String, &'a Look)>,
}

impl Page<'_> {
    fn runs_themselves(&mut self) {
        self.several(
            ("goodput_run_info", "gauge", "A run: what is measured, by whom, and where it is kept"),
            |look| {
                let Facts { model, label: what, folder, .. } = &look.facts;
                let labels = [
                    ("model", model.as_str()),
                    ("label", what),
                    ("folder", folder),
                    ("version", VERSION),
                ];
                let labels: Vec<String> =
                    labels.iter().map(|(name, text)| label(name, text)).collect();
                vec![(labels.join(","), 1)]
            },
        );
        self.several(
            (
                "goodput_run_phase",
                "gauge",
                "1 for the part of its plan that a run is in, 0 for others",
            ),
            |look| {
                let all = Stand::ALL.iter();
                all.map(|(stand, name)| (label("phase", name), u8::from(*stand == look.stand)))
                    .collect()
            },
        );
        self.single(
            ("goodput_run_elapsed_seconds", "gauge", "Since the first instant of the run"),
            |look| Some(look.elapsed.as_secs()),
        );
        self.single(
            (
                "goodput_offered_requests_per_second",
                "gauge",
                "What the schedule asks for now; not there where no schedule has a rate",
            ),
            |look| match look.offered {
                Offered::PerSecond(rate) if look.stand.is_loaded() => Some(rate),
                Offered::PerSecond(_) => Some(0.0),
                Offered::Users(_) | Offered::Otherwise => None,
            },
        );
        self.single(
            ("goodput_users", "gauge", "Users of a closed loop, each waiting for its answer"),
            |look| match look.offered {
                Offered::Users(users) if look.stand.is_loaded() => Some(users),
                Offered::Users(_) => Some(0),
                Offered::PerSecond(_) | Offered::Otherwise => None,
            },
        );
    }

    fn requests(&mut self) {
        self.single(
            ("goodput_requests_scheduled_total", "counter", "Requests that have become due"),
            |look| Some(look.seen.started),
        );
        self.single(
            (
                "goodput_requests_sent_total",
                "counter",
                "Requests of which a byte was written, counted at their end",
            ),
            |look| Some(look.tally.requests.sent),
        );
        self.single(
            (
                "goodput_requests_in_flight",
                "gauge",
                "Requests that are due and not over, those that a cap holds back included",
            ),
            |look| Some(look.seen.in_flight()),
        );
        self.single(("goodput_requests_ok_total", "counter", "Requests that ended well"), |look| {
            Some(look.seen.ok)
        });
        self.several(
            ("goodput_requests_failed_total", "counter", "Requests that failed, by class of error"),
            |look| {
                let classes = look.tally.requests.failed.iter();
                classes.map(|(class, n)| (label("class", &class.to_string()), *n)).collect()
            },
        );
        self.single(
            ("goodput_output_tokens_total", "counter", "Tokens of answers, counted at their end"),
            |look| Some(look.seen.tokens),
        );
        self.single(
            (
                "goodput_prompt_tokens_total",
                "counter",
                "Tokens of prompts as the server counts them, or as planned; counted at the end",
            ),
            |look| Some(look.tally.requests.prompt_tokens),
        );
    }

    fn latencies(&mut self) {
        self.histogram(
            ("goodput_ttft_seconds", "Time to the first token from the instant a request was due"),
            |look| &look.tally.requests.ttft,
        );
        self.histogram(("goodput_itl_seconds", "Gaps between the chunks of an answer"), |look| {
            &look.tally.requests.itl
        });
        self.histogram(
            ("goodput_e2e_seconds", "Time to the last token from the instant a request was due"),
            |look| &look.tally.requests.e2e,
        );
    }

    fn client(&mut self) {
        self.histogram(
            (
                "goodput_schedule_slip_seconds",
                "How late requests were sent by the client's own fault",
            ),
            |look| &look.tally.requests.slip,
        );
        self.histogram(
            (
                "goodput_client_lag_seconds",
                "How late the loops of the client's workers were called",
            ),
            |look| &look.tally.lag,
        );
        self.single(
            ("goodput_client_lag_max_seconds", "gauge", "The largest such lag of the last 15 s"),
            |look| Some(look.tally.largest_lag().as_secs()),
        );
        self.single(
            (
                "goodput_records_lost_total",
                "counter",
                "Requests that are in no record because the collector could not keep up",
            ),
            |look| Some(look.seen.lost),
        );
    }

    /// One sample of each run that has one.
    fn single<T: Display>(&mut self, family: Family, value: impl Fn(&Look) -> Option<T>) {
        self.several(family, |look| {
            value(look).map(|value| (String::new(), value)).into_iter().collect()
        });
    }

    /// Samples of each run with labels of their own. A family without any is left out.
    fn several<T: Display>(&mut self, family: Family, samples: impl Fn(&Look) -> Vec<(String, T)>) {
        let runs = std::mem::take(&mut self.runs);
        let mut is_open = false;
        for (common, look) in &runs {
            for (own, value) in samples(look) {
                if !std::mem::replace(&mut is_open, true) {
                    self.sheet.family(family);
                }
                let comma = if own.is_empty() { "" } else { "," };
                self.sheet.line(family.0, &format!("{common}{comma}{own}"), value);
            }
        }
        self.runs = runs;
    }

    fn histogram(
        &mut self,
        (name, help): (&'static str, &'static str),
        of: impl Fn(&Look) -> &BoundedHistogram,
    ) {
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            self.sheet.family((name, "histogram", help));
        }
        let bucket = format!("{name}_bucket");
        for (common, look) in &runs {
            let histogram = of(look);
            for (bound, count) in histogram.up_to() {
                // With a point in both formats: one series must not become two.
                self.sheet.line(&bucket, &format!("{common},le=\"{bound:?}\""), count);
            }
            self.sheet.line(&bucket, &format!("{common},le=\"+Inf\""), histogram.count());
            self.sheet.line(&format!("{name}_sum"), common, histogram.sum());
            self.sheet.line(&format!("{name}_count"), common, histogram.count());
        }
        self.runs = runs;
    }
}

fn labels(look: &Look) -> String {
    let Facts { target, run, .. } = &look.facts;
    format!("{},{}", label("target", target), label("run", run))
}

/// A label, its text as the formats want it.
pub(crate) fn label(name: &str, text: &str) -> String {
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
