//! What users were promised, and what they got.

use goodput_model::Verdict;
use goodput_stats::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, Summary};

use super::facts::throughput_text;
use super::{HTML, MARKDOWN, is_void};
use goodput_document::markup::Html;
use goodput_document::number::{amount, cell_number, count, known_or_dash, percent};
use goodput_document::{
    Block, Cell, Column, Fact, Fault, Section, Suite, Table, TableStyle, TestCase, Tone,
};

/// Why one end of an interval is not known.
const ALIKE: &str = "; neighbors are alike: a run this short cannot show it";

/// The SLO term by term, goodput with what could flatter it, and fluidity.
pub(super) fn slo_facts(summary: &Summary) -> Vec<Fact> {
    let Some(slo) = &summary.slo else { return Vec::new() };
    let state = state_text(summary, slo).to_owned();
    let mut all =
        Fact::several("SLO", std::iter::once(state).chain(slo.terms.iter().map(term_line)));
    all.extend(more_facts(slo));
    all
}

/// Its state, its terms, and goodput, a line each.
pub(super) fn slo_lines(summary: &Summary) -> Vec<Fact> {
    let goodput = |fact: &Fact| fact.label == "Goodput";
    let is_first = |fact: &Fact| fact.label == "SLO" || fact.label.is_empty();
    let mut all = slo_facts(summary);
    let place = all.iter().position(goodput).unwrap_or(all.len());
    all.truncate(place + 1);
    all.retain(|fact| goodput(fact) || is_first(fact));
    all
}

/// The terms, and what could flatter them, above everything else that is measured.
pub(super) fn short_slo_section(summary: &Summary) -> Section {
    let Some(slo) = &summary.slo else { return Section::untitled() };
    Section::untitled()
        .with_on(MARKDOWN, Block::Table(terms_table(slo, is_void(summary))))
        .with_on(MARKDOWN, Block::note(misses_text(slo)))
}

pub(super) fn slo_section(summary: &Summary) -> Section {
    let section = Section::with_name("slo", "SLO", "SLO, term by term");
    let Some(slo) = &summary.slo else { return section };
    let head = Html::from_fn(|html| {
        html.element("p", &[], |html| {
            html.text_element("strong", &[], state_text(summary, slo)).text(": ");
            html.text_element("code", &[], &slo.slo);
        });
    });
    section
        .with_on(HTML, Block::Widget(head))
        .with_on(HTML, Block::Table(terms_table(slo, is_void(summary))))
        .with_on(HTML, Block::Facts(more_facts(slo)))
}

/// What was promised, and what came of it.
fn terms_table(slo: &SloSummary, is_void: bool) -> Table {
    let outcome = |state: SloState, vacuous: u64| {
        let tone = match state {
            // A void result has no good news.
            SloState::Met if is_void => return Cell::from("not shown: void"),
            SloState::Met => Tone::Good,
            SloState::Missed => Tone::Bad,
            SloState::Undecided => Tone::Doubt,
            SloState::Reported => Tone::Plain,
        };
        let vacuous = match vacuous {
            0 => String::new(),
            n => format!("; does not apply to {} answers", count(n)),
        };
        Cell::from(format!("{}{vacuous}", state.name())).tone(tone)
    };
    let inside =
        |share: Option<f64>, low, high| Cell::number(share, |of| with_range(of, low, high));
    let mut table = Table::from_subjects("SLO", "Terms", &slo.terms)
        .left("term", 0, |term| term.term.clone())
        .right("measured", 0, |term| term_figure(term))
        .with(Column::right("requests within", 0).on(HTML), |term| {
            inside(term.attainment, term.attainment_low, term.attainment_high)
        })
        .left("outcome", 0, |term| outcome(term.state, term.vacuous))
        .table;
    table.rows.push(vec![
        "all together".into(),
        goodput_text(slo).into(),
        inside(slo.attainment, slo.attainment_low, slo.attainment_high),
        outcome(slo.attainment_state, 0),
    ]);
    Table { look: TableStyle::Words, ..table }
}

/// What came of it all.
pub(super) fn state_text(summary: &Summary, slo: &SloSummary) -> &'static str {
    match slo.state {
        // A void result has no good news.
        SloState::Met if summary.verdict == Verdict::Void => {
            "NOT SHOWN: the terms are met in these numbers, but these numbers are void"
        }
        SloState::Met => "MET",
        SloState::Missed => "MISSED",
        SloState::Undecided if summary.requests.is_partly_whole() => {
            "UNDECIDED: answers came whole, so the times of their tokens are unknown"
        }
        SloState::Undecided if is_bounded_one_side(slo) => {
            "UNDECIDED; neighbors are alike: a run this short cannot show it"
        }
        SloState::Undecided => "UNDECIDED: too little was measured to tell",
        SloState::Reported => "nothing to judge: add --attainment 99%",
    }
}

/// Whether what is undecided has only one end that is sure: its requests depend on each other.
pub(super) fn is_bounded_one_side(slo: &SloSummary) -> bool {
    let is_one = |low: Option<f64>, high: Option<f64>| low.is_some() != high.is_some();
    let undecided = |state: SloState| state == SloState::Undecided;
    // Of a figure an end may also lie beyond the time limit; that of a share does not.
    let mut terms = slo.terms.iter().filter(|term| undecided(term.state));
    terms.any(|term| is_one(term.attainment_low, term.attainment_high))
        || (undecided(slo.attainment_state) && is_one(slo.attainment_low, slo.attainment_high))
}

/// Goodput, fluidity, and how TTFT grows with the prompt.
fn more_facts(slo: &SloSummary) -> Vec<Fact> {
    let mut all = vec![Fact::new("Goodput", goodput_text(slo)), Fact::new("", misses_text(slo))];
    all.extend(slo.fluidity.as_ref().map(|found| Fact::new("Fluidity", fluidity_text(found))));
    all.extend(slo.ttft_fit.as_ref().map(|fit| {
        let text = format!(
            "{} ms + {:.4} ms per prompt token (median line of {} requests)",
            cell_number(fit.a_ms),
            fit.b_ms_per_token,
            count(fit.n)
        );
        Fact::new("TTFT fit", text)
    }));
    all
}

fn term_line(term: &SloTermSummary) -> String {
    let state = match term.state {
        SloState::Reported => String::new(),
        state => format!(", {}", state.name()),
    };
    let vacuous = match term.vacuous {
        0 => String::new(),
        n => format!(" (does not apply to {} answers)", count(n)),
    };
    format!("{}: {}{state}{vacuous}", term.term, term_figure(term))
}

/// What was measured of a term.
fn term_figure(term: &SloTermSummary) -> String {
    let unit = match term.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    match (term.kind.as_str(), term.value) {
        ("request", _) => format!("{} of requests", share_text(term)),
        (_, None) => "no figure".to_owned(),
        ("run", Some(value)) => format!("{}{unit}", cell_number(value)),
        (_, Some(value)) => {
            let of_prompt =
                if term.term.contains("/token") { " less the prompt's share" } else { "" };
            let range = match (term.low, term.high) {
                (None, None) => " (no interval)".to_owned(),
                (low, high) => format!(" ({})", range_text(low, high, cell_number)),
            };
            format!("{}{unit}{of_prompt}{range}", cell_number(value))
        }
    }
}

fn share_text(term: &SloTermSummary) -> String {
    let share = |share| with_range(share, term.attainment_low, term.attainment_high);
    term.attainment.map_or("–".to_owned(), share)
}

fn with_range(share: f64, low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (None, None) => percent(share),
        (low, high) => format!("{} ({})", percent(share), range_text(low, high, percent)),
    }
}

/// An interval, or the one end of it that is sure.
pub(super) fn range_text(
    low: Option<f64>,
    high: Option<f64>,
    text: impl Fn(f64) -> String,
) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{}–{}", text(low), text(high)),
        (Some(low), None) => format!("≥ {}", text(low)),
        (None, Some(high)) => format!("≤ {}", text(high)),
        (None, None) => "–".to_owned(),
    }
}

pub(super) fn goodput_text(slo: &SloSummary) -> String {
    let rate = |value: Option<f64>| known_or_dash(value, amount);
    let ends = match (slo.goodput_rps_low, slo.goodput_rps_high) {
        (None, None) => String::new(),
        (low, high) => format!(" ({})", range_text(low, high, amount)),
    };
    let target = match slo.target {
        None => String::new(),
        Some(target) => {
            let share = match (slo.attainment_low, slo.attainment_high) {
                (None, Some(_)) | (Some(_), None) => {
                    let end = range_text(slo.attainment_low, slo.attainment_high, percent);
                    let why = if is_bounded_one_side(slo) { ALIKE } else { "" };
                    format!(" (attainment {end}{why})")
                }
                _ => String::new(),
            };
            format!("; {} required: {}{share}", percent(target), slo.attainment_state.name())
        }
    };
    let judged = match slo.judged_by.as_str() {
        "percentile_limits" => ", by the limits of the percentiles",
        "success" => ", that completed",
        _ => "",
    };
    format!(
        "{} req/s{ends}, {} of {} requests{judged}{target}; {} output tok/s",
        rate(slo.goodput_rps),
        known_or_dash(slo.attainment, percent),
        count(slo.scheduled.saturating_sub(slo.undetermined)),
        rate(slo.goodput_output_tps)
    )
}

/// What could flatter goodput, and what is missing from it.
fn misses_text(slo: &SloSummary) -> String {
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
    let failed = known_or_dash(slo.failed_share, percent);
    let gap = slo.max_gap_p99_ms.map_or(String::new(), |gap| {
        format!("; largest gap of a request p99 {} ms", cell_number(gap))
    });
    let spoiled = match slo.undetermined {
        0 => String::new(),
        n => format!("; {} that the client distorted count neither way", count(n)),
    };
    format!("misses: {missed}; {failed} failed{gap}{spoiled}")
}

fn fluidity_text(fluidity: &FluiditySummary) -> String {
    let FluiditySummary { p1, p10, p50, .. } = fluidity;
    let rate = match fluidity.fluid_token_rate {
        Some(rate) if rate > 0.0 => format!("fluid token rate {} tok/s", amount(rate)),
        None => "no fluid token rate: no answer has a token rate".to_owned(),
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

/// The test cases of a run.
pub(super) fn slo_suite(summary: &Summary) -> Suite {
    let run = &summary.run;
    let mut suite = Suite {
        name: format!("{} on {}", run.workload, run.target),
        class: vec!["run".to_owned()],
        seconds: summary.window.end_s - summary.window.start_s,
        started: run.started.clone(),
        properties: vec![
            ("goodput", run.version.clone()),
            ("verdict", summary.verdict.name().to_owned()),
            ("model", run.model.clone()),
            ("seed", run.seed.to_string()),
        ],
        cases: summary.slo.as_ref().map(slo_cases).unwrap_or_default(),
        said: match &summary.slo {
            Some(promise) => {
                format!("{}; goodput {}", state_text(summary, promise), goodput_text(promise))
            }
            None => throughput_text(summary),
        },
    };
    if is_void(summary) {
        suite.mark_void("verdict", &summary.caveats);
    } else if suite.cases.is_empty() {
        // A file without a case would say nothing.
        let text = format!("{}; no SLO was given", summary.verdict.name());
        suite.cases.push(TestCase::new("verdict", text, None));
    }
    suite
}

fn slo_cases(promise: &SloSummary) -> Vec<TestCase> {
    let one = |(place, term): (usize, &SloTermSummary)| {
        // Cases of one name are one case to a CI.
        let twin = promise.terms.iter().take(place).any(|other| other.term == term.term);
        let name = if twin { format!("{} ({})", term.term, place + 1) } else { term.term.clone() };
        TestCase::new(name, format!("{}: {}", term.term, term_figure(term)), slo_fault(term.state))
    };
    let mut all: Vec<TestCase> = promise.terms.iter().enumerate().map(one).collect();
    if promise.target.is_some() {
        all.push(TestCase::new(
            "attainment",
            goodput_text(promise),
            slo_fault(promise.attainment_state),
        ));
    }
    all
}

fn slo_fault(state: SloState) -> Option<Fault> {
    match state {
        // What was only asked to be reported cannot fail.
        SloState::Met | SloState::Reported => None,
        SloState::Missed => Some(Fault::Failure("missed")),
        SloState::Undecided => Some(Fault::Error("undecided")),
    }
}
