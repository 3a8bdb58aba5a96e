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

use crate::clip::clip;
use crate::document::{
    Answer, Block, Case, Cell, Column, Document, Fact, Failure, Fault, Formats, Look, Section,
    Suite, Suites, Table, Tone,
};
use crate::number::{amount, cell, count, percent};
use crate::render;
use crate::svg::TONES;
use crate::sweep::browser::{confirmed, named_level, promise};
use crate::sweep::{
    Latency, bare, level, level_number, marked, on_curve, pooled, stands, suite, unit,
};
use goodput_model::plain;

/// Columns of a configuration's name in a table on a terminal.
const NAME: usize = 22;

/// The page of several configurations, for a terminal.
pub fn sweeps_text(sweeps: &Sweeps) -> String {
    render::text::page(&document(sweeps))
}

/// The page of several configurations, for a pull request or a job summary.
pub fn sweeps_markdown(sweeps: &Sweeps) -> String {
    render::markdown::page(&document(sweeps))
}

/// The page of several configurations, for a browser.
pub fn sweeps_html(sweeps: &Sweeps) -> String {
    render::html::page(&document(sweeps))
}

/// Test cases of the sweep of each configuration; one that could not be measured is an error.
pub fn sweeps_junit(sweeps: &Sweeps) -> String {
    render::junit::page(&document(sweeps))
}

pub(crate) fn document(sweeps: &Sweeps) -> Document {
    let all = &sweeps.configurations;
    let first = all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| &sweep.sweep);
    let judgement = Block::judgement(sweeps.verdict, &[]);
    let mut sections = vec![
        Section::bare()
            .with_on(Formats::MARKDOWN, Block::Strong(format!("Best: {}", best(sweeps))))
            .with_on(Formats::LONG, Block::Facts(facts(sweeps)))
            .with(judgement),
        Section::new("caveats", "Caveats").with_on(Formats::HTML, Block::Caveats(caveats(all))),
        configurations(sweeps),
    ];
    if !is_fixed(all) {
        sections.extend([
            Section::charts("latency", "Latency", "Latency over load", charts::latencies(all)),
            Section::charts(
                "throughput",
                "Throughput",
                "Throughput against latency",
                charts::fronts(all),
            ),
            Section::charts("goodput", "Goodput", "Goodput over load", charts::goodputs(all)),
            Section::charts("users", "Users", "Speed for each user", charts::users(all)),
        ]);
    }
    let mut failed = Section::named("failed", "Failed", "What failed");
    failed.blocks.extend(all.iter().filter_map(failure).map(|block| (Formats::ALL, block)));
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
        heading: format!("Sweeps of {} configurations", all.len()),
        answer: Some(Answer::new(sentence(sweeps), sweeps.verdict)),
        sections,
        suites: Suites { name: "goodput sweep", suites: suites(all) },
        ..Document::default()
    }
}

fn facts(sweeps: &Sweeps) -> Vec<Fact> {
    let all = &sweeps.configurations;
    let first = all.iter().find_map(|one| one.sweep.as_ref());
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let failed = all.iter().filter(|one| one.failed.is_some()).count();
    let varied = format!("{} configurations: {swept} measured, {failed} failed", all.len());
    let workload = first.map(|sweep| Fact::new("Workload", sweep.sweep.workload.clone()));
    let rest = [Fact::new("Varied", varied), Fact::new("Best", best(sweeps))];
    workload.into_iter().chain(rest).collect()
}

/// The best one and its answer, without the verdict.
fn sentence(sweeps: &Sweeps) -> String {
    let found = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let goodput = found.and_then(|one| {
        let sweep = one.sweep.as_ref()?;
        let goodput = sweep.goodput.as_ref()?;
        let slo = promise(sweep.plan.slo.as_ref(), &goodput.slo);
        Some(format!("{} is best: {} with {slo}", name(one), confirmed(goodput)))
    });
    goodput.unwrap_or_else(|| match sweeps.because.as_str() {
        "" => "None of these configurations is called best".to_owned(),
        why => format!("None of these configurations is called best: {why}"),
    })
}

/// Its values as one writes them, harmless.
pub(crate) fn name(configuration: &Configuration) -> String {
    let values: Vec<String> = configuration
        .values
        .iter()
        .map(|(name, value)| format!("{}={}", plain(name), plain(value)))
        .collect();
    if values.is_empty() { plain(&configuration.folder) } else { values.join(" ") }
}

/// Which one, by how much.
fn best(sweeps: &Sweeps) -> String {
    let found = sweeps.best.and_then(|place| sweeps.configurations.get(place));
    let Some(found) = found else {
        let why = plain(&sweeps.because);
        return if why.is_empty() { "none".to_owned() } else { format!("none: {why}") };
    };
    let answer = found.sweep.as_ref().and_then(|sweep| {
        let goodput = sweep.goodput.as_ref()?;
        Some(format!("{} {} with {}", answer(sweep), unit(goodput.axis), plain(&goodput.slo)))
    });
    let answer = answer.map_or(String::new(), |answer| format!(", {answer}"));
    format!("{}{answer}: {}", name(found), plain(&sweeps.because))
}

/// The interval of the answer.
fn answer(sweep: &SweepSummary) -> String {
    let Some(goodput) = &sweep.goodput else { return "–".to_owned() };
    let Goodput { state, axis, confirmed, rejected, .. } = goodput;
    let number = |level: Option<f64>| level.map_or("–".to_owned(), |v| level_number(*axis, v));
    match state {
        _ if sweep.verdict == Verdict::Void => "void".to_owned(),
        GoodputState::Found => format!("{}–{}", number(*confirmed), number(*rejected)),
        GoodputState::AtLeast => format!("≥ {}", number(*confirmed)),
        GoodputState::Unreachable => "none".to_owned(),
        GoodputState::Unclear => "unclear".to_owned(),
    }
}

/// Whether each configuration has one point of a load that was given.
fn is_fixed(all: &[Configuration]) -> bool {
    let mut sweeps = all.iter().filter_map(|one| one.sweep.as_ref()).peekable();
    sweeps.peek().is_some()
        && sweeps.all(|sweep| sweep.goodput.is_none() && on_curve(&sweep.points).len() <= 1)
}

/// Time from start to ready, and to the first token of an idle server.
fn start(one: &Configuration) -> [String; 2] {
    let ready = one.start.map(|start| format!("{:.1} s", start.ready_s));
    let token =
        one.start.and_then(|start| start.first_token_ms).map(|ms| format!("{} ms", cell(ms)));
    [ready, token].map(|text| text.unwrap_or("–".to_owned()))
}

/// Output tokens per second at the answer.
fn there(sweep: &SweepSummary) -> Option<f64> {
    let confirmed = sweep.goodput.as_ref()?.confirmed?;
    pooled(&on_curve(&sweep.points), |point| bare(point.point.figures.output_tps))
        .into_iter()
        .find(|(level, _)| (level - confirmed).abs() <= 1e-6 * confirmed)
        .map(|(_, found)| found.value)
}

/// Those of every sweep, each with the name of its configuration; the worst first.
fn caveats(all: &[Configuration]) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    for one in all {
        for caveat in one.sweep.iter().flat_map(|sweep| &sweep.caveats) {
            let message = format!("{}: {}", name(one), caveat.message);
            caveats.push(Caveat { message, ..caveat.clone() });
        }
    }
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    caveats
}

/// All of them in a table, and on a terminal the curve of each.
fn configurations(sweeps: &Sweeps) -> Section {
    let all = &sweeps.configurations;
    let section = Section::named("configurations", "Configurations", "All configurations");
    let section = if is_fixed(all) {
        let axis = axis(all).unwrap_or(Axis::Rate);
        let text = format!("in {}; latencies in ms, ~ without an interval", unit(axis));
        section.with(Block::Table(fixed(all))).with_on(Formats::TEXT, Block::fact("load", text))
    } else {
        let section = section.with(Block::Table(searched(sweeps)));
        match charts::curves(all) {
            Some(plot) => {
                section.with_on(Formats::TEXT, Block::Gap).with_on(Formats::TEXT, Block::Plot(plot))
            }
            None => section,
        }
    };
    section.with_on(Formats::TEXT, Block::Facts(no_room(all)))
}

fn axis(all: &[Configuration]) -> Option<Axis> {
    all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| sweep.plan.axis)
}

/// What a terminal has no room for: curves, and names in the table.
fn no_room(all: &[Configuration]) -> Vec<Fact> {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let curves = format!("of the first {TONES} configurations only");
    let is_cut = swept > TONES && !is_fixed(all);
    let cut = is_cut.then(|| Fact::new("Curves", curves));
    let named = all.iter().enumerate().filter(|(_, one)| name(one).width() > NAME);
    let named = named.map(|(place, one)| Fact::new((place + 1).to_string(), name(one)));
    cut.into_iter().chain(named).collect()
}

/// The number of a configuration, on a terminal, and its name, which leads to its page.
fn named(place: usize, one: &Configuration) -> Vec<Cell> {
    let name = name(one);
    let short = clip(&name, NAME);
    let folder = one.sweep.is_some().then_some(one.folder.as_str());
    vec![(place + 1).to_string().into(), Cell::from(name).short(short).leads_to(folder)]
}

fn name_columns() -> Vec<Column> {
    vec![Column::right("", 2).on(Formats::TEXT), Column::left("configuration", NAME).gap(1)]
}

/// What each configuration can carry.
fn searched(sweeps: &Sweeps) -> Table {
    let all = &sweeps.configurations;
    let unit = axis(all).map_or("req/s", unit);
    let mut columns = name_columns();
    columns.extend([
        Column::right("start to ready", 8).short("start to\nready"),
        Column::right("first token", 9).short("first\ntoken"),
        Column::right(format!("keeps the SLO, {unit}"), 13)
            .short(format!("keeps the\nSLO, {unit}")),
        Column::right("good there", 8).short("good\nthere"),
        Column::right("output tok/s", 9).short("output\ntok/s"),
        Column::right("per GPU", 9).on(Formats::HTML),
        Column::right("knee, req/s", 8).short("knee\nreq/s"),
        Column::right("points", 7).on(Formats::HTML),
        Column::words("verdict", 2).on(Formats::WIDE),
    ]);
    let row = |(place, one): (usize, &Configuration)| {
        let mut row = named(place, one);
        row.extend(start(one).map(Cell::from));
        if let Some(sweep) = &one.sweep {
            row.extend(figures(sweep, sweeps.best == Some(place)));
        } else {
            row.push(Cell::from("failed").tone(Tone::Bad));
            row.extend((0..5).map(|_| Cell::from("–").short("")));
            row.push(Cell::from("failed").tone(Tone::Bad));
        }
        row
    };
    let caption = "In the order measured, each with a way to the page of its sweep; output at the load \
                   that keeps the SLO.";
    let rows = all.iter().enumerate().map(row).collect();
    let table = Table::new("Configurations", caption, columns).with_rows(rows);
    Table { look: Look::Links, ..table }
}

fn figures(sweep: &SweepSummary, is_best: bool) -> [Cell; 7] {
    let share = sweep.goodput.as_ref().and_then(|goodput| goodput.attainment);
    let each = sweep.sweep.gpus.filter(|gpus| *gpus > 0);
    let keeps = answer(sweep);
    [
        if is_best {
            Cell::from(format!("best: {keeps}")).short(keeps).tone(Tone::Best)
        } else {
            keeps.into()
        },
        Cell::number(share, percent),
        Cell::number(there(sweep), amount),
        Cell::number(there(sweep).zip(each), |(tps, gpus)| amount(tps / f64::from(gpus))),
        Cell::number(sweep.curve.knee, |knee| level_number(Axis::Rate, knee.level)),
        on_curve(&sweep.points).len().to_string().into(),
        sweep.verdict.name().into(),
    ]
}

/// A load that was given: one row for each configuration.
fn fixed(all: &[Configuration]) -> Table {
    let first =
        |one: &Configuration| on_curve(&one.sweep.as_ref()?.points).first().copied().cloned();
    let points: Vec<Option<PointSummary>> = all.iter().map(first).collect();
    // A terminal has room for one latency and the median of another.
    let main = Latency::choose(None, &points.iter().flatten().collect::<Vec<_>>());
    let second = if main == Latency::Ttft { Latency::Tpot } else { Latency::E2e };
    let is_judged =
        all.iter().any(|one| one.sweep.as_ref().is_some_and(|sweep| sweep.plan.slo.is_some()));
    let on = |is_shown: bool| if is_shown { Formats::ALL } else { Formats::WIDE };
    let mut columns = name_columns();
    columns.extend([Column::right("load", 8), Column::right("requests", 7).short("n")]);
    for latency in Latency::ALL {
        let name = latency.name();
        let width = if latency == main { 9 } else { 8 };
        let column = |percent: &str| {
            Column::right(format!("{name} {percent}"), width).short(format!("{name}\n{percent}"))
        };
        columns.push(column("p50").on(on(latency == main || latency == second)));
        columns.push(column("p99").on(on(latency == main)));
    }
    columns.push(Column::right("output tok/s", 8).short("output\ntok/s"));
    columns.push(Column::words("the SLO", 2).on(on(is_judged)));
    let row = |(place, (one, point)): (usize, (&Configuration, &Option<PointSummary>))| {
        let mut row = named(place, one);
        if let Some(point) = point {
            row.extend(given(point));
        } else {
            let why = if one.failed.is_some() { "failed" } else { "nothing measured" };
            row.push(Cell::from(why).tone(Tone::Bad));
            row.extend((0..9).map(|_| Cell::from("–").short("")));
        }
        row
    };
    let rows = all.iter().zip(&points).enumerate().map(row).collect();
    let caption = "In the order measured; latencies in ms, ~ without an interval";
    let table = Table::new("Configurations", caption, columns).with_rows(rows);
    Table { look: Look::Links, ..table }
}

fn given(point: &PointSummary) -> Vec<Cell> {
    let figures = &point.point.figures;
    let at = point.point.ask.level;
    let mut row =
        vec![Cell::from(named_level(at)).short(level(at)), count(figures.requests).into()];
    for latency in Latency::ALL {
        let spread = latency.of(figures);
        row.extend([spread.p50, spread.p99].map(|figure| Cell::from(marked(figure))));
    }
    row.extend([Cell::number(figures.output_tps, cell), stands(point).into()]);
    row
}

/// Why there is no sweep, and the last that the server said.
fn failure(one: &Configuration) -> Option<Block> {
    let mut lines = one.failed.as_ref()?.lines();
    let why = lines.next().unwrap_or("no reason is known").to_owned();
    let log = lines.map(str::to_owned).collect();
    Some(Block::Failure(Failure { name: name(one), why, log }))
}

fn suites(all: &[Configuration]) -> Vec<Suite> {
    let one = |one: &Configuration| {
        let name = name(one);
        one.sweep.as_ref().map_or_else(
            || {
                let why = one.failed.as_deref().unwrap_or("no reason is known");
                let fault = Some(Fault::Error("failed"));
                Suite {
                    name: name.clone(),
                    class: vec!["sweep".to_owned(), name.clone()],
                    cases: vec![Case::new("configuration", why, fault)],
                    ..Suite::default()
                }
            },
            |sweep| suite(sweep, Some(&name)),
        )
    };
    let mut suites: Vec<Suite> = all.iter().map(one).collect();
    if suites.is_empty() {
        let fault = Some(Fault::Error("no_verdict"));
        let cases = vec![Case::new("configurations", "there is none", fault)];
        suites.push(Suite { name: "sweeps".to_owned(), cases, ..Suite::default() });
    }
    suites
}
