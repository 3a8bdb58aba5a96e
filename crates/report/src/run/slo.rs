//! What users were promised, and what they got.

use goodput_model::Verdict;
use goodput_stats::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, Summary};

use crate::number::{amount, cell, count, percent};
use crate::render::text::{Fields, field};
use goodput_model::plain;

/// Why one end of an interval is not known.
const ALIKE: &str = "; neighbors are alike: a run this short cannot show it";

/// The SLO term by term, goodput with what could flatter it, and fluidity.
pub(crate) fn block(page: &mut impl Fields, summary: &Summary) {
    let Some(slo) = &summary.slo else { return };
    field(page, "SLO", state(summary, slo));
    for term in &slo.terms {
        field(page, "", &line(term));
    }
    rest(page, slo);
}

/// What came of it all.
pub(crate) fn state(summary: &Summary, slo: &SloSummary) -> &'static str {
    match slo.state {
        // A void result has no good news.
        SloState::Met if summary.verdict == Verdict::Void => {
            "NOT SHOWN: its terms hold in these numbers, and these numbers are void"
        }
        SloState::Met => "MET",
        SloState::Missed => "MISSED",
        SloState::Undecided if summary.requests.is_partly_whole() => {
            "UNDECIDED: answers came whole, so when their tokens were made is not known"
        }
        SloState::Undecided if is_alike(slo) => {
            "UNDECIDED; neighbors are alike: a run this short cannot show it"
        }
        SloState::Undecided => "UNDECIDED: too little was measured to tell",
        SloState::Reported => "nothing to judge: add --attainment 99%",
    }
}

/// Whether what is undecided has only one end that is sure: its requests depend on each other.
pub(crate) fn is_alike(slo: &SloSummary) -> bool {
    let is_one = |low: Option<f64>, high: Option<f64>| low.is_some() != high.is_some();
    let undecided = |state: SloState| state == SloState::Undecided;
    // Of a figure an end may also lie beyond the time limit; that of a share does not.
    let mut terms = slo.terms.iter().filter(|term| undecided(term.state));
    terms.any(|term| is_one(term.attainment_low, term.attainment_high))
        || (undecided(slo.attainment_state) && is_one(slo.attainment_low, slo.attainment_high))
}

/// Goodput, fluidity, and how TTFT grows with the prompt.
pub(crate) fn rest(page: &mut impl Fields, slo: &SloSummary) {
    field(page, "Goodput", &goodput(slo));
    field(page, "", &beside(slo));
    if let Some(fluidity) = &slo.fluidity {
        field(page, "Fluidity", &fluency(fluidity));
    }
    if let Some(fit) = &slo.ttft_fit {
        let text = format!(
            "{} ms + {:.4} ms per prompt token (median line of {} requests)",
            cell(fit.a_ms),
            fit.b_ms_per_token,
            count(fit.n)
        );
        field(page, "TTFT fit", &text);
    }
}

fn line(term: &SloTermSummary) -> String {
    let state = match term.state {
        SloState::Reported => String::new(),
        state => format!(", {}", state.name()),
    };
    let vacuous = match term.vacuous {
        0 => String::new(),
        n => format!(" ({} answers it says nothing about)", count(n)),
    };
    format!("{}: {}{state}{vacuous}", plain(&term.term), figure(term))
}

/// What was measured of a term.
pub(crate) fn figure(term: &SloTermSummary) -> String {
    let unit = match term.unit.as_str() {
        "" => String::new(),
        unit => format!(" {}", plain(unit)),
    };
    match (term.kind.as_str(), term.value) {
        ("request", _) => format!("{} of requests", share(term)),
        (_, None) => "no figure".to_owned(),
        ("run", Some(value)) => format!("{}{unit}", cell(value)),
        (_, Some(value)) => {
            let of_prompt =
                if term.term.contains("/token") { " less the prompt's share" } else { "" };
            let range = match (term.low, term.high) {
                (None, None) => " (no interval)".to_owned(),
                (low, high) => format!(" ({})", range(low, high, cell)),
            };
            format!("{}{unit}{of_prompt}{range}", cell(value))
        }
    }
}

fn share(term: &SloTermSummary) -> String {
    let Some(share) = term.attainment else { return "–".to_owned() };
    match (term.attainment_low, term.attainment_high) {
        (None, None) => percent(share),
        (low, high) => format!("{} ({})", percent(share), range(low, high, percent)),
    }
}

/// An interval, or the one end of it that is sure.
pub(crate) fn range(low: Option<f64>, high: Option<f64>, text: impl Fn(f64) -> String) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}", text(low), text(high)),
        (Some(low), None) => format!("≥ {}", text(low)),
        (None, Some(high)) => format!("≤ {}", text(high)),
        (None, None) => "–".to_owned(),
    }
}

pub(crate) fn goodput(slo: &SloSummary) -> String {
    let rate = |value: Option<f64>| value.map_or("–".to_owned(), amount);
    let ends = match (slo.goodput_rps_low, slo.goodput_rps_high) {
        (None, None) => String::new(),
        (low, high) => format!(" ({})", range(low, high, amount)),
    };
    let target = match slo.target {
        None => String::new(),
        Some(target) => {
            let share = match (slo.attainment_low, slo.attainment_high) {
                (None, Some(_)) | (Some(_), None) => {
                    let end = range(slo.attainment_low, slo.attainment_high, percent);
                    let why = if is_alike(slo) { ALIKE } else { "" };
                    format!(" (attainment {end}{why})")
                }
                _ => String::new(),
            };
            format!("; {} asked for: {}{share}", percent(target), slo.attainment_state.name())
        }
    };
    let judged = match slo.judged_by.as_str() {
        "percentile_limits" => ", by the limits of the percentiles",
        "success" => ", that ended well",
        _ => "",
    };
    format!(
        "{} req/s{ends}, {} of {} requests{judged}{target}; {} output tok/s",
        rate(slo.goodput_rps),
        slo.attainment.map_or("–".to_owned(), percent),
        count(slo.scheduled.saturating_sub(slo.undetermined)),
        rate(slo.goodput_output_tps)
    )
}

/// What could flatter goodput, and what is missing from it.
pub(crate) fn beside(slo: &SloSummary) -> String {
    let SloMisses { failed, timed_out, empty, truncated, limits } = slo.misses;
    let all = [
        (failed, "failed"),
        (timed_out, "timed out"),
        (empty, "empty"),
        (truncated, "truncated"),
        (limits, "outside a limit"),
    ];
    let missed: Vec<String> = all
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", count(*n)))
        .collect();
    let missed = if missed.is_empty() { "none".to_owned() } else { missed.join(", ") };
    let failed = slo.failed_share.map_or("–".to_owned(), percent);
    let gap = slo
        .max_gap_p99_ms
        .map_or(String::new(), |gap| format!("; largest gap of a request p99 {} ms", cell(gap)));
    let spoilt = match slo.undetermined {
        0 => String::new(),
        n => format!("; {} that the client spoilt count neither way", count(n)),
    };
    format!("misses: {missed}; {failed} failed{gap}{spoilt}")
}

fn fluency(fluidity: &FluiditySummary) -> String {
    let FluiditySummary { p1, p10, p50, .. } = fluidity;
    let rate = match fluidity.fluid_token_rate {
        Some(rate) if rate > 0.0 => format!("fluid token rate {} tok/s", amount(rate)),
        None => "no fluid token rate: answers have no pace".to_owned(),
        _ => "no fluid token rate: more than 1 % of the requests are not fluent at any".to_owned(),
    };
    format!(
        "index 0.9 or more for {} of {} requests at {} ms per token (p1 {p1:.2}, p10 {p10:.2}, p50 \
         {p50:.2}); {rate}",
        percent(fluidity.fluid_share),
        count(fluidity.n),
        fluidity.token_deadline_ms
    )
}
