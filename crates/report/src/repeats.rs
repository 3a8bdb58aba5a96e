//! Several runs of one plan, as a document.

use goodput_model::Verdict;
use goodput_stats::{Headline, OneRun, Repeats, RunFacts, RunState};

use crate::run::{about_line, workload_name};
use goodput_document::number::{cell_number, count};
use goodput_document::render;
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};
use goodput_document::{
    Answer, Block, Cell, Column, Detail, Document, Fact, Fault, Formats, Section, Suite, Suites,
    Table, TestCase, Tone, void_answer,
};

/// The page of several runs, for a terminal.
pub fn repeats_text(repeats: &Repeats, detail: Detail) -> String {
    render::text::render_page(&repeats_document(repeats), detail)
}

/// The page of several runs, for a pull request or a job summary.
pub fn repeats_markdown(repeats: &Repeats) -> String {
    render::markdown::render_page(&repeats_document(repeats))
}

/// The page of several runs, for a browser.
pub fn repeats_html(repeats: &Repeats) -> String {
    render::html::render_page(&repeats_document(repeats))
}

/// A test case for each run: one that the figures do not rest on, or that is void, is an error.
pub fn repeats_junit(repeats: &Repeats) -> String {
    render::junit::render_page(&repeats_document(repeats))
}

/// The rows of the table: headline, label, and what its unit is multiplied by.
pub(crate) const ROWS: [(&str, &str, f64); 14] = [
    ("requests_per_s", "req/s", 1.0),
    ("output_tokens_per_s", "output tok/s", 1.0),
    ("ttft_p50", "TTFT p50, ms", 1.0),
    ("ttft_p90", "TTFT p90, ms", 1.0),
    ("ttft_p99", "TTFT p99, ms", 1.0),
    ("tpot_p50", "TPOT p50, ms", 1.0),
    ("tpot_p99", "TPOT p99, ms", 1.0),
    ("itl_p50", "ITL p50, ms", 1.0),
    ("itl_p99", "ITL p99, ms", 1.0),
    ("e2e_p50", "E2E p50, ms", 1.0),
    ("e2e_p99", "E2E p99, ms", 1.0),
    ("error_share", "errors, %", 100.0),
    ("attainment", "attainment, %", 100.0),
    ("goodput_rps", "goodput, req/s", 1.0),
];

const NOTHING: &str = "Nothing to compare: no run ended as planned with a completed request";

pub(crate) fn repeats_document(repeats: &Repeats) -> Document {
    let run = repeats.run.as_ref();
    let title = run.map_or("Repeated runs".to_owned(), |run| {
        format!("{} at {}, {} runs", run.model, run.target, repeats.used)
    });
    let caveats = || repeats.caveats.clone();
    let both = Formats::ALL.with_short();
    let nothing = repeats.headlines.is_empty().then(|| Block::note(format!("{NOTHING}.")));
    Document {
        title,
        about: run.map(|run| about_line(run, streaming_text(run))).unwrap_or_default(),
        head: run.map(head_lines).unwrap_or_default(),
        headline: target_headline(repeats),
        heading: format!("Repeated runs: {}", repeats.verdict.name()),
        answer: Some(Answer::new(figures_sentence(repeats), repeats.verdict)),
        sections: vec![
            Section::untitled().with_on(both, Block::Facts(repeats_facts(repeats))),
            Section::new("caveats", "Caveats").with_on(Formats::HTML, Block::Caveats(caveats())),
            Section::new("figures", "Figures over runs")
                .with_some(Formats::FLAT.with_short(), nothing)
                .with_some(both, figures_table(repeats).into_block()),
            Section::new("charts", "Run by run").with(Block::Charts(repeats_charts(repeats))),
            spread_section(repeats),
            Section::new("runs", "Each run").with_on(both, Block::Table(runs_table(repeats))),
            Section::untitled()
                .with_on(Formats::MARKDOWN, Block::Heading("How far to trust it".to_owned()))
                .with_on(both, Block::verdict_block(repeats.verdict, &repeats.caveats)),
        ],
        suites: Suites { name: "goodput repeats", suites: vec![repeats_suite(repeats)] },
        ..Document::default()
    }
}

/// Where requests were sent.
fn target_headline(repeats: &Repeats) -> String {
    let run = repeats.run.as_ref();
    run.map_or("repeated runs".to_owned(), |run| format!("{} · {}", run.target, run.model))
}

/// What was asked, when, by which version; each run has its own seed.
fn head_lines(run: &RunFacts) -> Vec<String> {
    let RunFacts { model, api, started, version, .. } = run;
    let streaming = streaming_text(run);
    let about = format!("model {model} · {api}, {streaming} · {started} · goodput {version}");
    vec![run.target.clone(), about]
}

/// How answers were asked for; how they came is on the page of each run.
fn streaming_text(run: &RunFacts) -> &'static str {
    if run.stream { "streaming" } else { "not streaming" }
}

fn repeats_facts(repeats: &Repeats) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(run) = &repeats.run {
        let made = format!("goodput {}, {}", run.version, run.started);
        facts.extend([
            // Elsewhere they are at the head of the page.
            Fact::new("Target", run.target.clone()).on(Formats::MARKDOWN),
            Fact::new("Model", run.model.clone()).on(Formats::MARKDOWN),
            Fact::new("Workload", workload_name(run)),
            Fact::new("Measured with", made).on(Formats::MARKDOWN),
        ]);
    }
    let always =
        [Fact::new("Load", repeats.load.clone()), Fact::new("Runs", used_runs_text(repeats))];
    facts.extend(always.map(Fact::also_in_short));
    facts
}

fn used_runs_text(repeats: &Repeats) -> String {
    format!("{} of {} requested runs are in these figures", repeats.used, repeats.asked)
}

/// The main figures with their intervals over runs. A void result has none.
fn figures_sentence(repeats: &Repeats) -> String {
    if repeats.verdict == Verdict::Void {
        return void_answer(&repeats.caveats);
    }
    let one = |(name, words, unit): (&str, &str, &str)| {
        let found = repeats.headlines.get(name)?;
        Some(format!("{words}{}{unit}{}", signed_text(found.mean), interval_text(found, 1.0)))
    };
    let rate = if repeats.headlines.contains_key("goodput_rps") {
        ("goodput_rps", "", " req/s of goodput")
    } else {
        ("requests_per_s", "", " req/s")
    };
    let tails = [("ttft_p99", "TTFT p99 ", " ms"), ("tpot_p99", "TPOT p99 ", " ms")];
    let all: Vec<_> = [rate].into_iter().chain(tails).filter_map(one).collect();
    if all.is_empty() {
        return NOTHING.to_owned();
    }
    format!("{}; means over {} runs", all.join(", "), repeats.used)
}

fn interval_text(found: &Headline, times: f64) -> String {
    let ends = found.low.zip(found.high);
    ends.map_or(String::new(), |(low, high)| {
        format!(" ({}–{})", signed_text(low * times), signed_text(high * times))
    })
}

/// The least and the most, where they differ.
fn range_text(found: &Headline) -> String {
    if found.min == found.max {
        return String::new();
    }
    format!(", from {} to {}", signed_text(found.min), signed_text(found.max))
}

/// Few runs that spread by much have intervals that reach below zero.
fn signed_text(value: f64) -> String {
    if value < 0.0 { format!("-{}", cell_number(-value)) } else { cell_number(value) }
}

fn figures_table(repeats: &Repeats) -> Table {
    let rows = ROWS
        .into_iter()
        .filter_map(|(name, label, times)| Some((label, times, repeats.headlines.get(name)?)));
    let value = |of: fn(&Headline) -> f64| {
        move |(_, times, found): &(&str, f64, &Headline)| signed_text(of(found) * times)
    };
    let known = |of: fn(&Headline) -> Option<f64>| {
        move |(_, times, found): &(&str, f64, &Headline)| {
            Cell::number(of(found), |value| signed_text(value * times))
        }
    };
    let caption = "Over runs: the run is the unit, intervals by Student's t";
    Table::from_subjects("Over runs", caption, rows)
        .left("over runs", 14, |(label, ..)| *label)
        .right("mean", 9, value(|found| found.mean))
        .right("95 % low", 9, known(|found| found.low))
        .right("high", 9, known(|found| found.high))
        .right("SD", 9, known(|found| found.sd))
        .right("CV, %", 9, |(_, _, found)| {
            Cell::number(found.cv, |cv| format!("{:.1}", cv * 100.0))
        })
        .right("min", 9, value(|found| found.min))
        .right("max", 9, value(|found| found.max))
        .with(Column::right("runs", 9).on(Formats::WIDE), |(_, _, found)| count(found.n.into()))
        .table
}

/// Between runs, against what each of them says of itself.
fn spread_section(repeats: &Repeats) -> Section {
    let rows = ROWS.into_iter().filter_map(|(name, label, _)| {
        let found = repeats.headlines.get(name)?;
        Some((label, [found.sd?, found.within_sd?, found.ratio?], found.differs))
    });
    let caption = "How much runs differ, and how much their own intervals explain";
    let table = Table::from_subjects("Between and within", caption, rows)
        .left("", 14, |(label, ..)| *label)
        .right("SD between", 13, |(_, [sd, ..], _)| cell_number(*sd))
        .right("SD within", 13, |(_, [_, own, _], _)| cell_number(*own))
        .right("ratio", 9, |(_, [.., ratio], _)| format!("{ratio:.2}"))
        .with(Column::words("runs", 2), |(.., differs)| match differs {
            true => Cell::from("differ").tone(Tone::Doubt),
            false => Cell::from("alike"),
        })
        .table;
    let remark = "A ratio of about 1 is chance; where runs differ, a single run looks more certain \
                  than it is.";
    let section = Section::new("spread", "Between and within");
    match table.into_block() {
        None => section,
        Some(table) => section.with(table).with_on(Formats::WIDE, Block::remark_note(remark)),
    }
}

/// Why a run is not in the figures; empty if it is.
fn exclusion_reason(run: &OneRun) -> &'static str {
    match run.state {
        _ if run.is_used => "",
        RunState::Complete => ", not used: nothing measured",
        RunState::Interrupted => ", not used: stopped early",
        RunState::Unfinished => ", not used: killed or still running",
    }
}

fn runs_table(repeats: &Repeats) -> Table {
    let figure = |name: &'static str| {
        move |run: &&OneRun| Cell::number(run.figures.get(name), |value| cell_number(*value))
    };
    let caption = "Each run has its own page in its folder; latencies in ms";
    Table::from_subjects("Each run", caption, &repeats.runs)
        .left("run", 14, |run| format!("repeat-{}", run.number))
        .right("seed", 7, |run| run.seed.to_string())
        .right("window", 9, |run| format!("{:.1} s", run.window_s))
        .right("ok", 9, |run| count(run.ok))
        .right("req/s", 9, figure("requests_per_s"))
        .right("TTFT p50", 10, figure("ttft_p50"))
        .right("TTFT p99", 10, figure("ttft_p99"))
        .with(Column::words("verdict", 2), |run| {
            let tone = match run.verdict {
                Verdict::Valid => Tone::Plain,
                other => Tone::from(other),
            };
            let (verdict, state) = (run.verdict.name(), exclusion_reason(run));
            // A terminal has no room for it in the row.
            let short = format!("{verdict}{}", state.replacen(", ", "\n  ", 1));
            Cell::from(format!("{verdict}{state}")).short(short).tone(tone)
        })
        .table
}

fn repeats_suite(repeats: &Repeats) -> Suite {
    let run = repeats.run.as_ref();
    let text = |of: fn(&RunFacts) -> &String| run.map(of).cloned().unwrap_or_default();
    let mut cases: Vec<TestCase> = repeats.runs.iter().map(run_case).collect();
    if cases.is_empty() {
        cases.push(TestCase::new("runs", "no runs", Some(Fault::Error("no_verdict"))));
    }
    let mut suite = Suite {
        name: format!("{} on {}", text(|run| &run.workload), text(|run| &run.target)),
        class: vec!["repeats".to_owned()],
        seconds: repeats.runs.iter().map(|run| run.window_s).sum(),
        started: text(|run| &run.started),
        properties: vec![
            ("goodput", text(|run| &run.version)),
            ("verdict", repeats.verdict.name().to_owned()),
            ("model", text(|run| &run.model)),
        ],
        cases,
        said: used_runs_text(repeats),
    };
    if repeats.verdict == Verdict::Void {
        suite.mark_void("verdict", &repeats.caveats);
    }
    suite
}

fn run_case(run: &OneRun) -> TestCase {
    let why = exclusion_reason(run);
    let text = format!(
        "{}{why}; seed {}, {} of {} requests ok",
        run.verdict.name(),
        run.seed,
        count(run.ok),
        count(run.scheduled)
    );
    let fault = match run.verdict {
        Verdict::Void => Some(Fault::Error("void")),
        _ if !run.is_used => Some(Fault::Error("not_used")),
        _ => None,
    };
    TestCase::new(format!("repeat-{}", run.number), text, fault)
}

/// Figures that are drawn run by run, and the names of their charts.
const DRAWN: [(&str, &str); 6] = [
    ("requests_per_s", "runs-requests"),
    ("output_tokens_per_s", "runs-tokens"),
    ("ttft_p50", "runs-ttft-p50"),
    ("ttft_p99", "runs-ttft-p99"),
    ("tpot_p99", "runs-tpot-p99"),
    ("goodput_rps", "runs-goodput"),
];

/// A chart for each figure that is drawn.
fn repeats_charts(repeats: &Repeats) -> Vec<Chart> {
    let label = |name: &str| ROWS.iter().find(|(row, _, _)| *row == name).map_or("", |row| row.1);
    let chart = |(name, file): (&str, &'static str)| {
        let found = repeats.headlines.get(name)?;
        let dots: Vec<Dot> = repeats
            .runs
            .iter()
            .filter_map(|run| {
                let value = *run.figures.get(name)?;
                let note = format!(
                    "{} in run {}{}",
                    cell_number(value),
                    run.number,
                    exclusion_reason(run)
                );
                Some(Dot::with_note(f64::from(run.number), value, note))
            })
            .collect();
        let (first, last) = (dots.first()?.x, dots.last()?.x);
        let (from, to) = if last > first { (first, last) } else { (first - 0.5, first + 0.5) };
        let mean = |x| Dot { low: found.low, high: found.high, ..Dot::new(x, found.mean) };
        let label = label(name);
        Some(
            Chart::new(file, format!("{label}, run by run"))
                .with_caption(format!(
                    "Mean {}{}{}.",
                    signed_text(found.mean),
                    interval_text(found, 1.0),
                    range_text(found)
                ))
                .with_axes(ChartAxis::between("run"), label)
                .with_series([
                    ChartSeries::new(
                        "mean over runs, 95 %",
                        Shape::Line,
                        1,
                        vec![mean(from), mean(to)],
                    ),
                    ChartSeries::new("run", Shape::Marks, 0, dots),
                ]),
        )
    };
    DRAWN.into_iter().filter_map(chart).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
    use goodput_stats::{Headline, OneRun, Repeats, RunState};

    use super::*;

    /// Two runs, of which one was stopped.
    pub(crate) fn example() -> Repeats {
        let run = |number, is_used| OneRun {
            number,
            seed: 41 + u64::from(number),
            state: if is_used { RunState::Complete } else { RunState::Interrupted },
            verdict: Verdict::Valid,
            is_used,
            window_s: 60.0,
            scheduled: 1200,
            ok: 1199,
            figures: BTreeMap::from([("ttft_p99".to_owned(), 212.0)]),
        };
        let figure = Headline {
            n: 2,
            mean: 200.0,
            sd: Some(40.0),
            cv: Some(0.2),
            low: Some(-159.4),
            high: Some(559.4),
            min: 171.7,
            max: 228.3,
            within_sd: Some(10.0),
            ratio: Some(4.0),
            differs: true,
        };
        let caveat = Caveat::new(CaveatCode::RunsDiffer, Severity::Warn, "ttft_p99 \x1b[2J");
        Repeats {
            schema: Repeats::SCHEMA.to_owned(),
            verdict: Verdict::Suspect,
            caveats: vec![caveat],
            asked: 3,
            used: 1,
            run: None,
            load: "open loop, 20 offered per second".to_owned(),
            runs: vec![run(1, true), run(2, false)],
            headlines: BTreeMap::from([("ttft_p99".to_owned(), figure)]),
        }
    }

    #[test]
    fn the_page_of_two_runs() {
        let page = repeats_text(&example(), Detail::Full);
        let has = |line: &str| assert!(page.contains(line), "{line:?} is not in\n{page}");
        has("1 of 3 requested runs");
        has("TTFT p99, ms      200.0   -159.4    559.4    40.00     20.0    171.7    228.3\n");
        has("TTFT p99, ms          40.00        10.00     4.00  differ\n");
        has(
            "repeat-2           43   60.0 s    1,199        –         –     212.0  valid\n  not used",
        );
        has("Verdict     SUSPECT");
        assert!(!page.contains('\x1b'));
    }
}
