//! The answer in one sentence, and the figures behind it.

use goodput_stats::{Metric, SloState, SloSummary, Summary};

use super::is_void;
use super::latency::{interval_text, percentile_text};
use super::reproduce::gpu_count;
use super::slo::{is_bounded_one_side, range_text};
use goodput_document::number::{amount, count, known_or_dash, percent};
use goodput_document::render::pieces::Card;
use goodput_document::void_answer;

/// The answer. A void result has none.
pub(super) fn answer_sentence(summary: &Summary) -> String {
    if is_void(summary) {
        return void_answer(&summary.caveats);
    }
    let sentence = match &summary.slo {
        Some(slo) => slo_sentence(summary, slo),
        None => throughput_sentence(summary),
    };
    // A number and its unit stay together.
    sentence.replace(" %", "\u{a0}%").replace(" ms", "\u{a0}ms").replace(" req/s", "\u{a0}req/s")
}

fn slo_sentence(summary: &Summary, slo: &SloSummary) -> String {
    let ends = |low: Option<f64>, high: Option<f64>, text: fn(f64) -> String| match (low, high) {
        (None, None) => String::new(),
        (low, high) => format!(" ({})", range_text(low, high, text)),
    };
    let rate = known_or_dash(slo.goodput_rps, amount);
    let share = known_or_dash(slo.attainment, percent);
    let state = match slo.state {
        SloState::Met => "met",
        SloState::Missed => "missed",
        SloState::Undecided if summary.requests.is_partly_whole() => {
            "undecided (answers came whole, so the times of their tokens are unknown)"
        }
        SloState::Undecided if is_bounded_one_side(slo) => {
            "undecided (neighbors are alike: a run this short cannot show it)"
        }
        SloState::Undecided => "undecided (too little was measured to tell)",
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

fn throughput_sentence(summary: &Summary) -> String {
    let rate = known_or_dash(summary.throughput.requests_per_s, amount);
    let tails: Vec<_> = [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")]
        .into_iter()
        .filter_map(|(name, label)| tail_text(summary.metrics.get(name)?, label))
        .take(2)
        .collect();
    let with =
        if tails.is_empty() { String::new() } else { format!(" with {}", tails.join(" and ")) };
    format!("{rate} req/s carried{with}")
}

/// The highest of these percentiles whose interval is known, with that; where there is none, the
/// median and what it rests on.
fn tail_text(metric: &Metric, label: &str) -> Option<String> {
    let is_known = |percent: &&str| {
        metric.percentiles.get(*percent).is_some_and(|found| found.quality.has_interval())
    };
    let known = ["99", "90", "50"].into_iter().filter(is_known).find_map(|percent| {
        let (text, ends) = percentile_and_interval(metric, percent)?;
        let ends = if ends.is_empty() { ends } else { format!(" ({ends})") };
        Some(format!("p{percent} {label} {}{ends}", with_ms(&text)))
    });
    known.or_else(|| {
        let (text, _) = percentile_and_interval(metric, "50")?;
        Some(format!("median {label} {} ({} requests)", with_ms(&text), count(metric.n)))
    })
}

fn with_ms(text: &str) -> String {
    if text.ends_with("limit") { text.to_owned() } else { format!("{text} ms") }
}

/// A percentile as the table has it, and its interval; none if it cannot be given.
fn percentile_and_interval(metric: &Metric, percent: &str) -> Option<(String, String)> {
    let found = metric.percentiles.get(percent).filter(|_| metric.n > 0)?;
    let text = percentile_text(found);
    let note = interval_text(found.low, found.high, found.high_is_censored);
    (text != "n/e" && text != "–").then_some((text, note))
}

/// The figures that stand out.
pub(super) fn figure_cards(summary: &Summary) -> Vec<Card> {
    let mut all = Vec::new();
    let mut add = |name: &str, figure: String, note: String| {
        all.push(Card { name: name.to_owned(), figure, note });
    };
    let rates = &summary.throughput;
    if let Some(rate) = rates.requests_per_s {
        let due = summary.load.scheduled_rps;
        let due = due.map_or(String::new(), |due| format!("{} scheduled", amount(due)));
        add("Requests/s", amount(rate), due);
    }
    if let Some(rate) = rates.output_tokens_per_s {
        let each = gpu_count(summary)
            .map_or(String::new(), |n| format!("{} per GPU", amount(rate / f64::from(n))));
        add("Output tokens/s", amount(rate), each);
    }
    for (name, label) in [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")] {
        let Some(metric) = summary.metrics.get(name) else { continue };
        for percents in [&["50"][..], &["99", "95", "90"]] {
            let known = |percent: &&'static str| {
                Some((*percent, percentile_and_interval(metric, percent)?))
            };
            let Some((percent, (text, note))) = percents.iter().find_map(known) else { continue };
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
