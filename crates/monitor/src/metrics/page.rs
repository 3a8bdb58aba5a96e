//! The page, in Prometheus' text format or in OpenMetrics. Both hold the same series.

use std::fmt::Display;

use goodput_engine::Snapshot;
use goodput_model::{BoundedHistogram, MetricsFormat, MetricsSheet, Nanos, metrics_label};

use super::RunLabels;
use super::observed::{GPU, LatestReadings, SERVER};
use super::tally::MetricsTally;
use crate::course::{PlannedLoad, RunPosition};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One look at a run.
#[derive(Debug)]
pub(super) struct RunSnapshot {
    pub(super) facts: RunLabels,
    pub(super) seen: Snapshot,
    pub(super) tally: MetricsTally,
    pub(super) readings: LatestReadings,
    pub(super) stand: RunPosition,
    pub(super) elapsed: Nanos,
    pub(super) offered: PlannedLoad,
}

/// Name, type and meaning of a family.
type Family = (&'static str, &'static str, &'static str);

/// An empty page, with the version of goodput.
pub fn new_sheet(format: MetricsFormat, capacity: usize) -> MetricsSheet {
    let mut sheet = MetricsSheet::new(format, capacity);
    sheet.family("goodput_build_info", "gauge", "The version of goodput");
    sheet.line("goodput_build_info", &metrics_label("version", VERSION), 1);
    sheet
}

pub(super) fn render_page(looks: &[RunSnapshot], format: MetricsFormat) -> String {
    // A run takes some 12 kB.
    let sheet = new_sheet(format, (looks.len() + 1) << 14);
    let mut page =
        MetricsPage { sheet, runs: looks.iter().map(|look| (run_labels(look), look)).collect() };
    page.write_runs();
    page.write_requests();
    page.write_latencies();
    page.write_client();
    page.server();
    page.sheet.finish()
}

struct MetricsPage<'a> {
    sheet: MetricsSheet,
    /// With the labels that all of its series have.
    runs: Vec<(String, &'a RunSnapshot)>,
}

impl MetricsPage<'_> {
    fn write_runs(&mut self) {
        self.write_several(
            (
                "goodput_run_info",
                "gauge",
                "Labels of a run: what it measures, from where, and its folder",
            ),
            |look| {
                let RunLabels { model, label: what, folder, .. } = &look.facts;
                let labels = [
                    ("model", model.as_str()),
                    ("label", what),
                    ("folder", folder),
                    ("version", VERSION),
                ];
                let labels: Vec<String> =
                    labels.iter().map(|(name, text)| metrics_label(name, text)).collect();
                vec![(labels.join(","), 1)]
            },
        );
        self.write_several(
            ("goodput_run_phase", "gauge", "1 for the current phase of the run, 0 for the others"),
            |look| {
                let all = RunPosition::ALL.iter();
                all.map(|(stand, name)| {
                    (metrics_label("phase", name), u8::from(*stand == look.stand))
                })
                .collect()
            },
        );
        self.write_single(
            ("goodput_run_elapsed_seconds", "gauge", "Seconds since the start of the run"),
            |look| Some(look.elapsed.as_secs()),
        );
        self.write_single(
            (
                "goodput_offered_requests_per_second",
                "gauge",
                "Current rate of the schedule; absent if the schedule has no rate",
            ),
            |look| match look.offered {
                PlannedLoad::PerSecond(rate) if look.stand.is_loaded() => Some(rate),
                PlannedLoad::PerSecond(_) => Some(0.0),
                PlannedLoad::Users(_) | PlannedLoad::Otherwise => None,
            },
        );
        self.write_single(
            ("goodput_users", "gauge", "Users of a closed loop, each waiting for its answer"),
            |look| match look.offered {
                PlannedLoad::Users(users) if look.stand.is_loaded() => Some(users),
                PlannedLoad::Users(_) => Some(0),
                PlannedLoad::PerSecond(_) | PlannedLoad::Otherwise => None,
            },
        );
    }

    fn write_requests(&mut self) {
        self.write_single(
            ("goodput_requests_scheduled_total", "counter", "Requests scheduled so far"),
            |look| Some(look.seen.started),
        );
        self.write_single(
            (
                "goodput_requests_sent_total",
                "counter",
                "Requests of which at least one byte was written, counted when they end",
            ),
            |look| Some(look.tally.requests.sent),
        );
        self.write_single(
            (
                "goodput_requests_in_flight",
                "gauge",
                "Scheduled requests that have not ended, including those that a cap holds back",
            ),
            |look| Some(look.seen.in_flight()),
        );
        self.write_single(("goodput_requests_ok_total", "counter", "Completed requests"), |look| {
            Some(look.seen.ok)
        });
        self.write_several(
            ("goodput_requests_failed_total", "counter", "Requests that failed, by class of error"),
            |look| {
                let classes = look.tally.requests.failed.iter();
                classes.map(|(class, n)| (metrics_label("class", &class.to_string()), *n)).collect()
            },
        );
        self.write_single(
            ("goodput_output_tokens_total", "counter", "Output tokens, counted when answers end"),
            |look| Some(look.seen.tokens),
        );
        self.write_single(
            (
                "goodput_prompt_tokens_total",
                "counter",
                "Prompt tokens as the server counts them, or as planned; counted when answers end",
            ),
            |look| Some(look.tally.requests.prompt_tokens),
        );
    }

    fn write_latencies(&mut self) {
        self.write_histogram(
            "goodput_ttft_seconds",
            "Time to the first token from the scheduled instant of the request",
            |look| &look.tally.requests.ttft,
        );
        self.write_histogram(
            "goodput_itl_seconds",
            "Time between the chunks of an answer",
            |look| &look.tally.requests.itl,
        );
        self.write_histogram(
            "goodput_e2e_seconds",
            "Time to the last token from the scheduled instant of the request",
            |look| &look.tally.requests.e2e,
        );
    }

    fn write_client(&mut self) {
        self.write_histogram(
            "goodput_schedule_slip_seconds",
            "How late requests were sent because of the client",
            |look| &look.tally.requests.slip,
        );
        self.write_histogram(
            "goodput_client_lag_seconds",
            "How late the event loops of the client's workers ran",
            |look| &look.tally.lag,
        );
        self.write_single(
            ("goodput_client_lag_max_seconds", "gauge", "Largest client lag of the last 15 s"),
            |look| Some(look.tally.largest_lag().as_secs()),
        );
        self.write_single(
            (
                "goodput_records_lost_total",
                "counter",
                "Requests without a record because the collector could not keep up",
            ),
            |look| Some(look.seen.lost),
        );
    }

    /// What the server's metrics pages and its GPUs said last, during the run.
    fn server(&mut self) {
        let up = "1 if the last scrape of the server's metrics page succeeded, else 0";
        self.write_several(("goodput_server_scrape_success", "gauge", up), |look| {
            look.readings.up()
        });
        for (signal, name, help) in SERVER {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            self.write_several((name, kind, help), |look| look.readings.signal(signal));
        }
        for (name, help, value) in GPU {
            self.write_several((name, "gauge", help), |look| look.readings.gpu(value));
        }
    }

    /// One sample of each run that has one.
    fn write_single<T: Display>(
        &mut self,
        family: Family,
        value: impl Fn(&RunSnapshot) -> Option<T>,
    ) {
        self.write_several(family, |look| {
            value(look).map(|value| (String::new(), value)).into_iter().collect()
        });
    }

    /// Samples of each run with labels of their own. A family without any is left out.
    fn write_several<T: Display>(
        &mut self,
        family: Family,
        samples: impl Fn(&RunSnapshot) -> Vec<(String, T)>,
    ) {
        let runs = std::mem::take(&mut self.runs);
        let mut is_open = false;
        for (common, look) in &runs {
            for (own, value) in samples(look) {
                if !std::mem::replace(&mut is_open, true) {
                    self.sheet.family(family.0, family.1, family.2);
                }
                let comma = if own.is_empty() { "" } else { "," };
                self.sheet.line(family.0, &format!("{common}{comma}{own}"), value);
            }
        }
        self.runs = runs;
    }

    fn write_histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        of: impl Fn(&RunSnapshot) -> &BoundedHistogram,
    ) {
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            self.sheet.family(name, "histogram", help);
        }
        for (common, look) in &runs {
            self.sheet.histogram(name, common, of(look));
        }
        self.runs = runs;
    }
}

fn run_labels(look: &RunSnapshot) -> String {
    let RunLabels { target, run, .. } = &look.facts;
    format!("{},{}", metrics_label("target", target), metrics_label("run", run))
}
