//! The page of several configurations: which is best, how sure that is, and the curve of each.

#[cfg(test)]
pub(crate) mod tests;

use std::fmt::{Error, Write};

use goodput_campaign::sweep::{
    Axis, Bounded, Configuration, Goodput, GoodputState, PointSummary, SweepSummary, Sweeps,
};
use goodput_model::Verdict;
use unicode_width::UnicodeWidthStr;

use crate::chart::{Chart, Dot, MARKS, Series, draw};
use crate::clip::{clip, fit, left, right};
use crate::number::{amount, cell, count, percent};
use crate::plain::plain;
use crate::sweep::{
    Latency, level, level_axis, level_number, marked, on_curve, pooled, stands, unit,
};
use crate::text::{WIDTH, field, judgement};

/// Columns of a configuration's name in a table.
const NAME: usize = 22;
/// Last lines of what failed.
const LAST: usize = 12;

/// The page of several configurations.
pub fn sweeps_text(sweeps: &Sweeps) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, sweeps);
    fit(&page, WIDTH)
}

fn write_page(page: &mut String, sweeps: &Sweeps) -> Result<(), Error> {
    let all = &sweeps.configurations;
    if let Some(sweep) = all.iter().find_map(|one| one.sweep.as_ref()) {
        let facts = &sweep.sweep;
        writeln!(page, "{}", plain(&facts.target))?;
        let (model, started) = (plain(&facts.model), plain(&facts.started));
        writeln!(page, "model {model} · {started} · goodput {}\n", plain(&facts.version))?;
        field(page, "Workload", &plain(&facts.workload));
    }
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let failed = all.iter().filter(|one| one.failed.is_some()).count();
    let text = format!("{} configurations: {swept} measured, {failed} failed", all.len());
    field(page, "Varied", &text);
    field(page, "Best", &best(sweeps));
    judgement(page, sweeps.verdict, &[]);
    if is_fixed(all) {
        fixed(page, all)?;
    } else {
        table(page, all)?;
        curves(page, all);
    }
    long_names(page, all);
    failures(page, all)
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
pub(crate) fn best(sweeps: &Sweeps) -> String {
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
pub(crate) fn answer(sweep: &SweepSummary) -> String {
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
pub(crate) fn is_fixed(all: &[Configuration]) -> bool {
    let mut sweeps = all.iter().filter_map(|one| one.sweep.as_ref()).peekable();
    sweeps.peek().is_some()
        && sweeps.all(|sweep| sweep.goodput.is_none() && on_curve(&sweep.points).len() <= 1)
}

fn line(first: (usize, &str), cells: &[String], widths: &[usize]) -> String {
    let number = if first.0 == 0 { String::new() } else { first.0.to_string() };
    let cells: String = cells.iter().zip(widths).map(|(text, n)| right(text, *n)).collect();
    let line = format!("{} {}{cells}", right(&number, 2), left(first.1, NAME));
    line.trim_end().to_owned()
}

fn table(page: &mut String, all: &[Configuration]) -> Result<(), Error> {
    let axis = all.iter().find_map(|one| one.sweep.as_ref()).map_or(Axis::Rate, |s| s.plan.axis);
    let widths = [8, 9, 13, 8, 9, 8];
    let heads = ["start to", "first", "keeps the", "good", "output", "knee"].map(str::to_owned);
    writeln!(page, "\n{}", line((0, ""), &heads, &widths))?;
    let heads = ["ready", "token", &format!("SLO, {}", unit(axis)), "there", "tok/s", "req/s"];
    writeln!(page, "{}", line((0, "configuration"), &heads.map(str::to_owned), &widths))?;
    for (place, one) in all.iter().enumerate() {
        let mut cells = start(one).to_vec();
        match &one.sweep {
            None => cells.push("failed".to_owned()),
            Some(sweep) => {
                let share = sweep.goodput.as_ref().and_then(|goodput| goodput.attainment);
                let knee = sweep.curve.knee.map(|knee| level_number(Axis::Rate, knee.level));
                cells.extend([
                    answer(sweep),
                    share.map_or("–".to_owned(), percent),
                    there(sweep).map_or("–".to_owned(), amount),
                    knee.unwrap_or("–".to_owned()),
                ]);
            }
        }
        writeln!(page, "{}", line((place + 1, &name(one)), &cells, &widths))?;
    }
    Ok(())
}

/// Time from start to ready, and to the first token of an idle server.
pub(crate) fn start(one: &Configuration) -> [String; 2] {
    let ready = one.start.map(|start| format!("{:.1} s", start.ready_s));
    let token =
        one.start.and_then(|start| start.first_token_ms).map(|ms| format!("{} ms", cell(ms)));
    [ready, token].map(|text| text.unwrap_or("–".to_owned()))
}

/// Output tokens per second at the answer.
pub(crate) fn there(sweep: &SweepSummary) -> Option<f64> {
    let confirmed = sweep.goodput.as_ref()?.confirmed?;
    let plain = |value: Option<f64>| value.map(|value| Bounded { value, low: None, high: None });
    pooled(&on_curve(&sweep.points), |point| plain(point.point.figures.output_tps))
        .into_iter()
        .find(|(level, _)| (level - confirmed).abs() <= 1e-6 * confirmed)
        .map(|(_, found)| found.value)
}

/// One curve for each configuration.
fn curves(page: &mut String, all: &[Configuration]) {
    let sweeps: Vec<(String, &SweepSummary)> =
        all.iter().filter_map(|one| Some((name(one), one.sweep.as_ref()?))).collect();
    let Some((_, first)) = sweeps.first() else { return };
    let points: Vec<&PointSummary> =
        sweeps.iter().flat_map(|(_, sweep)| on_curve(&sweep.points)).collect();
    let slo = first.plan.slo.as_ref();
    let latency = Latency::choose(slo, &points);
    let (over, log_x) = level_axis(first.plan.axis, &points);
    let series: Vec<Series> = sweeps
        .iter()
        .zip(MARKS)
        .map(|((name, sweep), mark)| {
            let figures =
                pooled(&on_curve(&sweep.points), |point| latency.of(&point.point.figures).p99);
            // Intervals of several curves would hide each other.
            let dot = |(x, found): (f64, Bounded)| Dot { x, y: found.value, low: None, high: None };
            Series { name: clip(name, 40), mark, dots: figures.into_iter().map(dot).collect() }
        })
        .collect();
    let chart = Chart {
        title: format!("p99 {} in ms (logarithmic) over {over}", latency.name()),
        log_x,
        log_y: true,
        series,
        line: latency.line(slo),
        place: None,
        rows: 14,
    };
    page.push('\n');
    page.push_str(&draw(&chart));
    if sweeps.len() > MARKS.len() {
        let text = format!("of the first {} configurations only", MARKS.len());
        field(page, "Curves", &text);
    }
}

/// A load that was given: one row for each value.
fn fixed(page: &mut String, all: &[Configuration]) -> Result<(), Error> {
    let points =
        all.iter().filter_map(|one| on_curve(&one.sweep.as_ref()?.points).first().copied());
    let latency = Latency::choose(None, &points.collect::<Vec<_>>());
    let widths = [8, 7, 9, 9, 8, 8];
    let name_of = latency.name();
    let second = if latency == Latency::Ttft { Latency::Tpot } else { Latency::E2e };
    let heads = ["", "", name_of, name_of, second.name(), "output"].map(str::to_owned);
    writeln!(page, "\n{}", line((0, ""), &heads, &widths))?;
    let heads = ["load", "n", "p50", "p99", "p50", "tok/s"].map(str::to_owned);
    let judged =
        all.iter().any(|one| one.sweep.as_ref().is_some_and(|sweep| sweep.plan.slo.is_some()));
    let slo = if judged { "  the SLO" } else { "" };
    writeln!(page, "{}{slo}", line((0, "configuration"), &heads, &widths))?;
    for (place, one) in all.iter().enumerate() {
        let name = name(one);
        let point = one.sweep.as_ref().and_then(|sweep| on_curve(&sweep.points).first().copied());
        let Some(point) = point else {
            let why = if one.failed.is_some() { "failed" } else { "nothing measured" };
            writeln!(page, "{}  {why}", line((place + 1, &name), &[], &widths))?;
            continue;
        };
        let figures = &point.point.figures;
        let cells = [
            level(point.point.ask.level),
            count(figures.requests),
            marked(latency.of(figures).p50),
            marked(latency.of(figures).p99),
            marked(second.of(figures).p50),
            figures.output_tps.map_or("–".to_owned(), cell),
        ];
        let standing = if judged { format!("  {}", stands(point)) } else { String::new() };
        writeln!(page, "{}{standing}", line((place + 1, &name), &cells, &widths))?;
    }
    let axis = all.iter().find_map(|one| one.sweep.as_ref()).map_or(Axis::Rate, |s| s.plan.axis);
    field(page, "load", &format!("in {}; latencies in ms, ~ without an interval", unit(axis)));
    Ok(())
}

/// Names that the table had no room for.
fn long_names(page: &mut String, all: &[Configuration]) {
    for (place, one) in all.iter().enumerate() {
        let name = name(one);
        if name.width() > NAME {
            field(page, &(place + 1).to_string(), &name);
        }
    }
}

fn failures(page: &mut String, all: &[Configuration]) -> Result<(), Error> {
    for one in all {
        let Some(failed) = &one.failed else { continue };
        writeln!(page, "\n{} failed:", name(one))?;
        let mut lines = failed.lines();
        // The first says why; the last ones are what the server left.
        writeln!(page, "  {}", plain(lines.next().unwrap_or("no reason is known")))?;
        let rest: Vec<&str> = lines.collect();
        let skipped = rest.len().saturating_sub(LAST);
        if skipped > 0 {
            writeln!(page, "  … {skipped} lines left out")?;
        }
        for line in rest.iter().skip(skipped) {
            writeln!(page, "  {}", plain(line))?;
        }
    }
    Ok(())
}
