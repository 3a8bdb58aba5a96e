//! Sweeps under several configurations, as a document: which is best, how sure that is, and the curve of
//! each.

mod charts;
#[cfg(test)]
mod page_tests;
#[cfg(test)]
pub(crate) mod tests;

use goodput_campaign::sweep::{
    Axis, Configuration, Goodput, GoodputState, PointSummary, SweepSummary, Sweeps,
};
use goodput_model::{Caveat, Verdict};
use unicode_width::UnicodeWidthStr;

use crate::sweep::browser::{confirmed_level_text, named_level, slo_text};
use crate::sweep::{
    Latency, axis_unit, level_text, level_value_text, marked_value, point_standing_text,
    points_on_curve, pool_by_level, sweep_suite, without_interval,
};
use goodput_document::clip::clip;
use goodput_document::number::{amount, cell_number, count, percent};
use goodput_document::render;
use goodput_document::svg::TONES;
use goodput_document::{
    Answer, Block, Cell, Column, Detail, Document, Fact, FailureLog, Fault, Formats, Rows, Section,
    Suite, Suites, Table, TableStyle, TestCase, Tone,
};
use goodput_model::escape_control;

/// Columns of a configuration's name in a table on a terminal.
const NAME: usize = 22;

/// The page of several configurations, for a terminal.
pub fn sweeps_text(sweeps: &Sweeps, detail: Detail) -> String {
    render::text::render_page(&sweeps_document(sweeps), detail)
}

/// The page of several configurations, for a pull request or a job summary.
pub fn sweeps_markdown(sweeps: &Sweeps) -> String {
    render::markdown::render_page(&sweeps_document(sweeps))
}

/// The page of several configurations, for a browser.
pub fn sweeps_html(sweeps: &Sweeps) -> String {
    render::html::render_page(&sweeps_document(sweeps))
}

/// Test cases of the sweep of each configuration; one that could not be measured is an error.
pub fn sweeps_junit(sweeps: &Sweeps) -> String {
    render::junit::render_page(&sweeps_document(sweeps))
}

pub(crate) fn sweeps_document(sweeps: &Sweeps) -> Document {
    let all = &sweeps.configurations;
    let first = all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| &sweep.sweep);
    let judgement = Block::verdict_block(sweeps.verdict, &[]);
    let why = |one: &Configuration| {
        Some(format!("{}: {}", configuration_name(one), one.failed.as_ref()?.lines().next()?))
    };
    let failures = Fact::several("Failed", all.iter().filter_map(why));
    let failures = failures.into_iter().map(Fact::also_in_short).collect();
    let mut sections = vec![
        Section::untitled()
            .with_on(Formats::MARKDOWN, Block::Strong(format!("Best: {}", best_text(sweeps))))
            .with_on(Formats::SHORT, Block::note(best_sentence(sweeps)))
            .with_on(Formats::LONG, Block::Facts(sweeps_facts(sweeps)))
            .with_on(Formats::SHORT, Block::Facts(failures))
            .with_on(Formats::ALL.with_short(), judgement),
        Section::new("caveats", "Caveats")
            .with_on(Formats::HTML, Block::Caveats(sweeps_caveats(all))),
        configurations_section(sweeps),
    ];
    if !is_fixed_load(all) {
        sections.extend([
            Section::charts("latency", "Latency", "Latency over load", charts::latency_charts(all)),
            Section::charts(
                "throughput",
                "Throughput",
                "Throughput against latency",
                charts::front_charts(all),
            ),
            Section::charts("goodput", "Goodput", "Goodput over load", charts::goodput_charts(all)),
            Section::charts("users", "Users", "Speed for each user", charts::user_charts(all)),
        ]);
    }
    let mut failed = Section::with_name("failed", "Failed", "What failed");
    failed.blocks.extend(all.iter().filter_map(failure_block).map(|block| (Formats::ALL, block)));
    sections.push(failed);
    Document {
        title: first.map_or("Sweeps".to_owned(), |facts| format!("Sweeps of {}", facts.target)),
        about: first.map_or(String::new(), |facts| {
            let (model, workload) = (&facts.model, &facts.workload);
            format!("model {model} · {workload} · {} · goodput {}", facts.started, facts.version)
        }),
        head: first.map_or(Vec::new(), |facts| {
            let (model, started, version) = (&facts.model, &facts.started, &facts.version);
            let about = format!("model {model} · {started} · goodput {version}");
            vec![facts.target.clone(), about]
        }),
        headline: first.map_or("sweeps".to_owned(), |of| format!("{} · {}", of.target, of.model)),
        heading: format!("Sweeps of {} configurations", all.len()),
        answer: Some(Answer::new(best_sentence(sweeps), sweeps.verdict)),
        sections,
        suites: Suites { name: "goodput sweep", suites: sweeps_suites(all) },
        ..Document::default()
    }
}

fn sweeps_facts(sweeps: &Sweeps) -> Vec<Fact> {
    let all = &sweeps.configurations;
    let first = all.iter().find_map(|one| one.sweep.as_ref());
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let failed = all.iter().filter(|one| one.failed.is_some()).count();
    let varied = format!("{} configurations: {swept} measured, {failed} failed", all.len());
    let workload = first.map(|sweep| Fact::new("Workload", sweep.sweep.workload.clone()));
    let rest = [Fact::new("Varied", varied), Fact::new("Best", best_text(sweeps))];
    workload.into_iter().chain(rest).collect()
}

/// The best one and its answer, without the verdict.
fn best_sentence(sweeps: &Sweeps) -> String {
    let found = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let goodput = found.and_then(|one| {
        let sweep = one.sweep.as_ref()?;
        let goodput = sweep.goodput.as_ref()?;
        let slo = slo_text(sweep.plan.slo.as_ref(), &goodput.slo);
        Some(format!(
            "{} is best: {} with {slo}",
            configuration_name(one),
            confirmed_level_text(goodput)
        ))
    });
    goodput.unwrap_or_else(|| match sweeps.because.as_str() {
        "" => "None of these configurations is called best".to_owned(),
        why => format!("None of these configurations is called best: {why}"),
    })
}

/// Its values as one writes them, harmless.
pub(crate) fn configuration_name(configuration: &Configuration) -> String {
    let values: Vec<String> = configuration
        .values
        .iter()
        .map(|(name, value)| format!("{}={}", escape_control(name), escape_control(value)))
        .collect();
    if values.is_empty() { escape_control(&configuration.folder) } else { values.join(" ") }
}

/// Which one, by how much.
fn best_text(sweeps: &Sweeps) -> String {
    let found = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let Some(found) = found else {
        let why = escape_control(&sweeps.because);
        return if why.is_empty() { "none".to_owned() } else { format!("none: {why}") };
    };
    let answer = found.sweep.as_ref().and_then(|sweep| {
        let goodput = sweep.goodput.as_ref()?;
        Some(format!(
            "{} {} with {}",
            interval_text(sweep),
            axis_unit(goodput.axis),
            escape_control(&goodput.slo)
        ))
    });
    let answer = answer.map_or(String::new(), |answer| format!(", {answer}"));
    format!("{}{answer}: {}", configuration_name(found), escape_control(&sweeps.because))
}

/// The interval of the answer.
fn interval_text(sweep: &SweepSummary) -> String {
    let Some(goodput) = &sweep.goodput else { return "–".to_owned() };
    let Goodput { state, axis, confirmed, rejected, .. } = goodput;
    let number =
        |level: Option<f64>| level.map_or("–".to_owned(), |v| level_value_text(*axis, v));
    match state {
        _ if sweep.verdict == Verdict::Void => "void".to_owned(),
        GoodputState::Found => format!("{}–{}", number(*confirmed), number(*rejected)),
        GoodputState::AtLeast => format!("≥ {}", number(*confirmed)),
        GoodputState::Measured => format!("{} as measured", number(goodput.level())),
        GoodputState::Unreachable => "none".to_owned(),
        GoodputState::Unclear => "unclear".to_owned(),
    }
}

/// Whether each configuration has one point of a load that was given.
fn is_fixed_load(all: &[Configuration]) -> bool {
    let mut sweeps = all.iter().filter_map(|one| one.sweep.as_ref()).peekable();
    sweeps.peek().is_some()
        && sweeps.all(|sweep| {
            let is_searched = sweep.goodput.is_some() && sweep.plan.search;
            !is_searched && points_on_curve(&sweep.points).len() <= 1
        })
}

/// Output tokens per second at the answer.
fn output_tps_at_answer(sweep: &SweepSummary) -> Option<f64> {
    let confirmed = sweep.goodput.as_ref()?.level()?;
    pool_by_level(&points_on_curve(&sweep.points), |point| {
        without_interval(point.point.figures.output_tps)
    })
    .into_iter()
    .find(|(level, _)| (level - confirmed).abs() <= 1e-6 * confirmed)
    .map(|(_, found)| found.value)
}

/// Those of every sweep, each with the name of its configuration; the worst first.
fn sweeps_caveats(all: &[Configuration]) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    for one in all {
        for caveat in one.sweep.iter().flat_map(|sweep| &sweep.caveats) {
            let message = format!("{}: {}", configuration_name(one), caveat.message);
            caveats.push(Caveat { message, ..caveat.clone() });
        }
    }
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

/// All of them in a table, and on a terminal the curve of each.
fn configurations_section(sweeps: &Sweeps) -> Section {
    let all = &sweeps.configurations;
    let (both, terminal) = (Formats::ALL.with_short(), Formats::TEXT.with_short());
    let section = Section::with_name("configurations", "Configurations", "All configurations");
    let section = if is_fixed_load(all) {
        let axis = common_axis(all).unwrap_or(Axis::Rate);
        let text = format!("in {}; latencies in ms, ~ without an interval", axis_unit(axis));
        section
            .with_on(both, Block::Table(fixed_load_table(all)))
            .with_on(Formats::TEXT, Block::fact("load", text))
    } else {
        let section = section.with_on(both, Block::Table(searched_table(sweeps)));
        match charts::curves_plot(all) {
            Some(plot) => {
                section.with_on(terminal, Block::Gap).with_on(terminal, Block::Plot(plot))
            }
            None => section,
        }
    };
    section.with_on(Formats::TEXT, Block::Facts(left_out_facts(all)))
}

fn common_axis(all: &[Configuration]) -> Option<Axis> {
    all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| sweep.plan.axis)
}

/// What a terminal has no room for: curves, and names in the table.
fn left_out_facts(all: &[Configuration]) -> Vec<Fact> {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let curves = format!("of the first {TONES} configurations only");
    let is_cut = swept > TONES && !is_fixed_load(all);
    let cut = is_cut.then(|| Fact::new("Curves", curves));
    let named = all.iter().enumerate().filter(|(_, one)| configuration_name(one).width() > NAME);
    let named =
        named.map(|(place, one)| Fact::new((place + 1).to_string(), configuration_name(one)));
    cut.into_iter().chain(named).collect()
}

/// A row for each configuration: its number, on a terminal, and its name, which leads to its page.
fn configuration_rows<'a>(
    caption: &str,
    all: &'a [Configuration],
) -> Rows<(usize, &'a Configuration)> {
    Table::from_subjects("Configurations", caption, all.iter().enumerate())
        .with(Column::right("", 2).on(Formats::TEXT), |(place, _)| (place + 1).to_string())
        .with(Column::left("configuration", NAME).gap(1), |(_, one)| {
            let folder = one.sweep.is_some().then_some(one.folder.as_str());
            Cell::from(configuration_name(one))
                .short(clip(&configuration_name(one), NAME))
                .with_link(folder)
        })
}

/// Where there is nothing to show, which a terminal shows as such.
fn empty_cell() -> Cell {
    Cell::from("–").short("")
}

/// What each configuration can carry.
fn searched_table(sweeps: &Sweeps) -> Table {
    let all = &sweeps.configurations;
    let unit = common_axis(all).map_or("req/s", axis_unit);
    let keeps = format!("keeps the SLO, {unit}");
    let failed = || Cell::from("failed").tone(Tone::Bad);
    let of = |of: fn(&SweepSummary) -> Cell| {
        move |(_, one): &(usize, &Configuration)| one.sweep.as_ref().map_or_else(empty_cell, of)
    };
    let caption = "In the order measured, each with a link to the page of its sweep; output at the \
                   load that keeps the SLO.";
    let table = configuration_rows(caption, all)
        .with(Column::right("start to ready", 8).short("start to\nready"), |(_, one)| {
            Cell::number(one.start, |start| format!("{:.1} s", start.ready_s))
        })
        .with(Column::right("first token", 9).short("first\ntoken"), |(_, one)| {
            let first = one.start.and_then(|start| start.first_token_ms);
            Cell::number(first, |ms| format!("{} ms", cell_number(ms)))
        })
        .with(Column::right(keeps, 13).short(format!("keeps the\nSLO, {unit}")), |(place, one)| {
            match one.sweep.as_ref().map(interval_text) {
                None => failed(),
                Some(keeps) if sweeps.best == Some(*place) => {
                    Cell::from(format!("best: {keeps}")).short(keeps).tone(Tone::Best)
                }
                Some(keeps) => keeps.into(),
            }
        })
        .with(
            Column::right("good there", 8).short("good\nthere"),
            of(|sweep| Cell::number(sweep.goodput.as_ref().and_then(|it| it.attainment), percent)),
        )
        .with(
            Column::right("output tok/s", 9).short("output\ntok/s"),
            of(|sweep| Cell::number(output_tps_at_answer(sweep), amount)),
        )
        .with(
            Column::right("per GPU", 9).on(Formats::HTML),
            of(|sweep| {
                Cell::number(
                    output_tps_at_answer(sweep).and_then(|tps| tps_per_gpu(tps, sweep)),
                    amount,
                )
            }),
        )
        .with(
            Column::right("knee, req/s", 8).short("knee\nreq/s"),
            of(|sweep| Cell::number(sweep.curve.knee, |it| level_value_text(Axis::Rate, it.level))),
        )
        .with(
            Column::right("points", 7).on(Formats::HTML),
            of(|sweep| points_on_curve(&sweep.points).len().to_string().into()),
        )
        .with(Column::words("verdict", 2).on(Formats::WIDE), |(_, one)| {
            one.sweep.as_ref().map_or_else(failed, |sweep| sweep.verdict.name().into())
        })
        .table;
    Table { look: TableStyle::Links, ..table }
}

fn tps_per_gpu(tps: f64, sweep: &SweepSummary) -> Option<f64> {
    sweep.sweep.gpus.filter(|gpus| *gpus > 0).map(|gpus| tps / f64::from(gpus))
}

/// The point of a load that was given.
fn given_point(one: &Configuration) -> Option<&PointSummary> {
    points_on_curve(&one.sweep.as_ref()?.points).first().copied()
}

/// A load that was given: one row for each configuration.
fn fixed_load_table(all: &[Configuration]) -> Table {
    // A terminal has room for one latency and the median of another.
    let main = Latency::choose(None, &all.iter().filter_map(given_point).collect::<Vec<_>>());
    let second = if main == Latency::Ttft { Latency::Tpot } else { Latency::E2e };
    let is_judged =
        all.iter().any(|one| one.sweep.as_ref().is_some_and(|sweep| sweep.plan.slo.is_some()));
    let on = |is_shown: bool| if is_shown { Formats::ALL } else { Formats::WIDE };
    let of = |of: fn(&PointSummary) -> Cell| {
        move |(_, one): &(usize, &Configuration)| given_point(one).map_or_else(empty_cell, of)
    };
    let latencies = Latency::ALL.into_iter().flat_map(|of| [(of, "p50"), (of, "p99")]);
    let caption = "In the order measured; latencies in ms, ~ without an interval";
    let table = configuration_rows(caption, all)
        .right("load", 8, |(_, one)| match given_point(one) {
            Some(point) => {
                let at = point.point.ask.level;
                Cell::from(named_level(at)).short(level_text(at))
            }
            None if one.failed.is_some() => Cell::from("failed").tone(Tone::Bad),
            None => Cell::from("nothing measured").tone(Tone::Bad),
        })
        .with(
            Column::right("requests", 7).short("n"),
            of(|point| count(point.point.figures.requests).into()),
        )
        .each(
            latencies,
            |(latency, percent)| {
                let (name, is_main) = (latency.title(), *latency == main);
                let is_shown = is_main || (*latency == second && *percent == "p50");
                Column::right(format!("{name} {percent}"), if is_main { 9 } else { 8 })
                    .short(format!("{name}\n{percent}"))
                    .on(on(is_shown))
            },
            |(_, one), (latency, percent)| {
                given_point(one).map_or_else(empty_cell, |point| {
                    let spread = latency.spread_of(&point.point.figures);
                    marked_value(if *percent == "p50" { spread.p50 } else { spread.p99 }).into()
                })
            },
        )
        .with(
            Column::right("output tok/s", 8).short("output\ntok/s"),
            of(|point| Cell::number(point.point.figures.output_tps, cell_number)),
        )
        .with(
            Column::words("the SLO", 2).on(on(is_judged)),
            of(|point| point_standing_text(point).into()),
        )
        .table;
    Table { look: TableStyle::Links, ..table }
}

/// Why a sweep failed, and the last lines of the server.
fn failure_block(one: &Configuration) -> Option<Block> {
    let mut lines = one.failed.as_ref()?.lines();
    let why = lines.next().unwrap_or("unknown reason").to_owned();
    let log = lines.map(str::to_owned).collect();
    Some(Block::Failure(FailureLog { name: configuration_name(one), why, log }))
}

fn sweeps_suites(all: &[Configuration]) -> Vec<Suite> {
    let one = |one: &Configuration| {
        let name = configuration_name(one);
        one.sweep.as_ref().map_or_else(
            || {
                let why = one.failed.as_deref().unwrap_or("unknown reason");
                let fault = Some(Fault::Error("failed"));
                Suite {
                    name: name.clone(),
                    class: vec!["sweep".to_owned(), name.clone()],
                    cases: vec![TestCase::new("configuration", why, fault)],
                    ..Suite::default()
                }
            },
            |sweep| sweep_suite(sweep, Some(&name)),
        )
    };
    let mut suites: Vec<Suite> = all.iter().map(one).collect();
    if suites.is_empty() {
        let fault = Some(Fault::Error("no_verdict"));
        let cases = vec![TestCase::new("configurations", "none", fault)];
        suites.push(Suite { name: "sweeps".to_owned(), cases, ..Suite::default() });
    }
    suites
}
