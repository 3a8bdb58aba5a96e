//! The answer in one sentence, whether to believe it, and the figures behind it.

use goodput_model::Severity;
use goodput_stats::{Metric, SloState, SloSummary, Summary};

use super::super::markup::Html;
use super::super::pieces::{answer, cards, fields};
use super::super::view::RunView;
use super::{gpus, is_void};
use crate::latency::figure;
use crate::number::{amount, cell, count, percent};
use crate::slo::range;
use crate::text::{Fields, facts};

/// What of the run's facts is needed to read the answer.
const NEEDED: [&str; 6] = ["Shard", "Workload", "Load", "Window", "Steady", "Requests"];

pub(super) fn fill(html: &mut Html, view: &RunView<'_>) {
    let summary = view.summary;
    answer(html, &sentence(summary), summary.verdict);
    if !is_void(summary) {
        cards(html, &figures(summary));
    }
    fields(html, |found| {
        let mut all = Vec::new();
        facts(&mut all, summary);
        for (label, prose) in all.iter().filter(|(label, _)| NEEDED.contains(&label.as_str())) {
            found.field(label, prose);
        }
    });
}

/// The answer. A void result has none.
pub(super) fn sentence(summary: &Summary) -> String {
    if is_void(summary) {
        let worst = summary.caveats.iter().find(|caveat| caveat.severity == Severity::Void);
        let why = worst.map_or(String::new(), |caveat| format!(": {}", caveat.message));
        return format!("No result: these numbers are void{why}");
    }
    let sentence = match &summary.slo {
        Some(slo) => promised(slo),
        None => carried(summary),
    };
    // A number and its unit stay together.
    sentence.replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms").replace(" req/s", "\u{a0}req/s")
}

fn promised(slo: &SloSummary) -> String {
    let ends = |low: Option<f64>, high: Option<f64>, text: fn(f64) -> String| match (low, high) {
        (None, None) => String::new(),
        (low, high) => format!(" ({})", range(low, high, text)),
    };
    let rate = slo.goodput_rps.map_or("–".to_owned(), amount);
    let share = slo.attainment.map_or("–".to_owned(), percent);
    let state = match slo.state {
        SloState::Met => "met",
        SloState::Missed => "missed",
        SloState::Undecided => "undecided, too little was measured to tell",
        SloState::Reported => "nothing to judge",
    };
    format!(
        "{rate} req/s{} of goodput with {}: {state}; {share}{} of {} requests were good",
        ends(slo.goodput_rps_low, slo.goodput_rps_high, amount),
        slo.slo,
        ends(slo.attainment_low, slo.attainment_high, percent),
        count(slo.scheduled.saturating_sub(slo.undetermined)),
    )
}

fn carried(summary: &Summary) -> String {
    let rate = summary.throughput.requests_per_s.map_or("–".to_owned(), amount);
    let tails: Vec<_> = [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")]
        .into_iter()
        .filter_map(|(name, label)| tail(summary.metrics.get(name)?, label))
        .take(2)
        .collect();
    let with =
        if tails.is_empty() { String::new() } else { format!(" with {}", tails.join(" and ")) };
    format!("{rate} req/s carried{with}")
}

/// The highest of these percentiles that can be given, with its interval.
fn tail(metric: &Metric, label: &str) -> Option<String> {
    ["99", "90", "50"].into_iter().find_map(|percent| {
        let (text, note) = percentile(metric, percent)?;
        let unit = if text.ends_with("limit") { "" } else { " ms" };
        let ends = if note.is_empty() { note } else { format!(" ({note})") };
        Some(format!("p{percent} {label} {text}{unit}{ends}"))
    })
}

/// A percentile as the table has it, and its interval; none where it cannot be given.
fn percentile(metric: &Metric, percent: &str) -> Option<(String, String)> {
    let found = metric.percentiles.get(percent).filter(|_| metric.n > 0)?;
    let text = figure(percent, metric.n, found);
    let note = interval(found.low, found.high, found.high_is_censored);
    (text != "n/e" && text != "–").then_some((text, note))
}

/// From where to where; empty where nobody knows.
pub(super) fn interval(low: Option<f64>, high: Option<f64>, is_censored: bool) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}", cell(low), cell(high)),
        (Some(low), None) if is_censored => format!("{}–>limit", cell(low)),
        _ => String::new(),
    }
}

fn figures(summary: &Summary) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    let mut add =
        |name: &str, figure: String, note: String| all.push((name.to_owned(), figure, note));
    let rates = &summary.throughput;
    if let Some(rate) = rates.requests_per_s {
        let due = summary.load.scheduled_rps;
        let due = due.map_or(String::new(), |due| format!("{} due", amount(due)));
        add("Requests/s", amount(rate), due);
    }
    if let Some(rate) = rates.output_tokens_per_s {
        let each = gpus(summary)
            .map_or(String::new(), |n| format!("{} per GPU", amount(rate / f64::from(n))));
        add("Output tokens/s", amount(rate), each);
    }
    for (name, label) in [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")] {
        let Some(metric) = summary.metrics.get(name) else { continue };
        for percent in ["50", "99"] {
            let Some((text, note)) = percentile(metric, percent) else { continue };
            add(&format!("{label} p{percent}, ms"), text, note);
        }
    }
    if summary.requests.scheduled > 0 {
        let share = summary.requests.failed as f64 / summary.requests.scheduled as f64;
        let of =
            format!("{} of {}", count(summary.requests.failed), count(summary.requests.scheduled));
        add("Failed", percent(share), of);
    }
    all
}
