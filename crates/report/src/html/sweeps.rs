//! The page of sweeps under several configurations: which is best, by how much, and the curves of all.

use goodput_campaign::sweep::{Configuration, PointSummary, SweepSummary, Sweeps};
use goodput_model::Caveat;

#[cfg(test)]
mod tests;

use super::markup::Html;
use super::page::Page;
use super::pieces::{self, Cell};
use super::sweep::{Body, Row, confirmed, dots, front_latency, linked, named_level, over, promise};
use crate::number::{amount, cell, count, percent};
use crate::svg::{Axis, Chart, Dot, Rule, Series, Shape, TONES};
use crate::sweep::{
    Latency, level_number, marked, number, on_curve, per_gpu, stands, unit, user_speeds,
};
use crate::sweeps::{answer, best, is_fixed, name, start, there};

/// Last lines of what failed.
const LAST: usize = 40;

/// The page of sweeps under several configurations.
pub fn sweeps_html(sweeps: &Sweeps) -> String {
    let all = &sweeps.configurations;
    let mut body = Body::default();
    pieces::answer(&mut body.html, &sentence(sweeps), sweeps.verdict);
    pieces::facts(&mut body.html, &[("Best".to_owned(), best(sweeps)), varied(all)]);
    pieces::caveats(&mut body.html, &caveats(all));
    body.sections.extend([("answer", "Answer"), ("caveats", "Caveats")]);
    if is_fixed(all) {
        body.section("configurations", ("Configurations", "All configurations"), |html| {
            fixed(html, all);
        });
    } else {
        body.section("configurations", ("Configurations", "All configurations"), |html| {
            configurations(html, sweeps);
        });
        body.drawn("latency", ("Latency", "Latency over load"), &latencies(all));
        body.drawn("throughput", ("Throughput", "Throughput against latency"), &fronts(all));
        body.drawn("goodput", ("Goodput", "Goodput over load"), &goodputs(all));
        body.drawn("users", ("Users", "Speed for each user"), &users(all));
    }
    body.section("failed", ("Failed", "What failed"), |html| failures(html, all));
    let first = all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| &sweep.sweep);
    let (title, about) = first.map_or_else(
        || ("Sweeps".to_owned(), String::new()),
        |facts| {
            let about = format!(
                "model {} · {} · {} · goodput {}",
                facts.model, facts.workload, facts.started, facts.version
            );
            (format!("Sweeps of {}", facts.target), about)
        },
    );
    Page { title: &title, about: &about, sections: &body.sections, body: body.html }.into_string()
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

fn varied(all: &[Configuration]) -> (String, String) {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    let failed = all.iter().filter(|one| one.failed.is_some()).count();
    let text = format!("{} configurations: {swept} measured, {failed} failed", all.len());
    ("Varied".to_owned(), text)
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

fn configurations(html: &mut Html, sweeps: &Sweeps) {
    let all = &sweeps.configurations;
    let axis = all.iter().find_map(|one| one.sweep.as_ref()).map(|sweep| sweep.plan.axis);
    let keeps = format!("keeps the SLO, {}", axis.map_or("req/s", unit));
    let heads = [
        "configuration",
        keeps.as_str(),
        "good there",
        "output tok/s",
        "per GPU",
        "knee, req/s",
        "verdict",
        "points",
        "start to ready",
        "first token",
    ];
    let row = |(place, one): (usize, &Configuration)| {
        let mut cells = match &one.sweep {
            None => std::iter::once(Cell { text: "failed".to_owned(), class: "bad" })
                .chain((0..6).map(|_| Cell::from("–")))
                .collect(),
            Some(sweep) => figures(sweep),
        };
        if let Some(first) = cells.first_mut().filter(|_| sweeps.best == Some(place)) {
            *first = Cell { text: format!("best: {}", first.text), class: "best" };
        }
        cells.extend(start(one).map(Cell::from));
        let (folder, has_page) = (one.folder.clone(), one.sweep.is_some());
        Row { name: name(one), cells, folder, has_page }
    };
    let rows: Vec<Row> = all.iter().enumerate().map(row).collect();
    let caption = "In the order measured, each with a way to the page of its sweep; output at the load \
                   that keeps the SLO.";
    linked(html, caption, &heads, &rows);
}

fn figures(sweep: &SweepSummary) -> Vec<Cell> {
    let share = sweep.goodput.as_ref().and_then(|goodput| goodput.attainment);
    let knee = sweep.curve.knee.map(|knee| level_number(sweep.plan.axis, knee.level));
    let each = sweep.sweep.gpus.filter(|gpus| *gpus > 0);
    let per_gpu = there(sweep).zip(each).map(|(tps, gpus)| amount(tps / f64::from(gpus)));
    let dash = || "–".to_owned();
    let texts = [
        answer(sweep),
        share.map_or_else(dash, percent),
        there(sweep).map_or_else(dash, amount),
        per_gpu.unwrap_or_else(dash),
        knee.unwrap_or_else(dash),
        sweep.verdict.name().to_owned(),
        on_curve(&sweep.points).len().to_string(),
    ];
    texts.map(Cell::from).to_vec()
}

/// A load that was given: one row for each configuration.
fn fixed(html: &mut Html, all: &[Configuration]) {
    let heads = [
        "configuration",
        "load",
        "requests",
        "TTFT p50",
        "TTFT p99",
        "TPOT p50",
        "TPOT p99",
        "E2E p50",
        "E2E p99",
        "output tok/s",
        "the SLO",
    ];
    let row = |one: &Configuration| {
        let mut cells: Vec<Cell> = Vec::new();
        let point = one.sweep.as_ref().and_then(|sweep| on_curve(&sweep.points).first().copied());
        if let Some(point) = point {
            let figures = &point.point.figures;
            cells.push(named_level(point.point.ask.level).into());
            cells.push(count(figures.requests).into());
            let spreads = [figures.ttft_ms, figures.tpot_ms, figures.e2e_ms];
            let both = spreads.iter().flat_map(|spread| [spread.p50, spread.p99]);
            cells.extend(both.map(|figure| Cell::from(marked(figure))));
            cells.push(number(figures.output_tps).into());
            cells.push(stands(point).into());
        } else {
            let why = if one.failed.is_some() { "failed" } else { "nothing measured" };
            cells.push(Cell { text: why.to_owned(), class: "bad" });
            cells.extend((0..9).map(|_| Cell::from("–")));
        }
        Row { name: name(one), cells, folder: one.folder.clone(), has_page: one.sweep.is_some() }
    };
    let rows: Vec<Row> = all.iter().map(row).collect();
    linked(html, "In the order measured; latencies in ms, ~ without an interval", &heads, &rows);
}

/// Sweeps that are drawn: as many as can be told apart.
fn drawn(all: &[Configuration]) -> Vec<(String, &SweepSummary)> {
    let swept = all.iter().filter_map(|one| Some((name(one), one.sweep.as_ref()?)));
    swept.take(TONES).collect()
}

/// What stands below each chart.
fn says(all: &[Configuration], text: &str) -> String {
    let swept = all.iter().filter(|one| one.sweep.is_some()).count();
    if swept > TONES {
        format!("{text} Of the first {TONES} configurations only.")
    } else {
        text.to_owned()
    }
}

fn points_of<'a>(sweeps: &[(String, &'a SweepSummary)]) -> Vec<&'a PointSummary> {
    sweeps.iter().flat_map(|(_, sweep)| on_curve(&sweep.points)).collect()
}

fn series(
    sweeps: &[(String, &SweepSummary)],
    shape: Shape,
    dots: impl Fn(&SweepSummary) -> Vec<Dot>,
) -> Vec<Series> {
    let one = |(tone, (name, sweep)): (usize, &(String, &SweepSummary))| Series {
        name: name.clone(),
        shape,
        tone,
        dots: dots(sweep),
    };
    sweeps.iter().enumerate().map(one).collect()
}

/// The 99th percentile of each latency that was measured.
fn latencies(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    let points = points_of(&sweeps);
    let chart = |latency: Latency| {
        let rules = latency.line(first.plan.slo.as_ref());
        let name = match latency {
            Latency::Ttft => "ttft-over-load",
            Latency::Tpot => "tpot-over-load",
            Latency::E2e => "e2e-over-load",
        };
        Chart {
            name,
            title: format!("p99 {} of each configuration", latency.name()),
            says: says(all, "Lower and further to the right is better. Bars are 95 % intervals."),
            x: over(first.plan.axis, &points),
            y: Axis::log("ms"),
            series: series(&sweeps, Shape::Points, |sweep| {
                let used = on_curve(&sweep.points);
                dots(sweep.plan.axis, &used, |figures| latency.of(figures).p99, "ms")
            }),
            rules: rules.into_iter().map(|(limit, text)| Rule::Height(limit, text)).collect(),
        }
    };
    Latency::ALL.map(chart).into_iter().filter(|chart| !chart.is_empty()).collect()
}

/// The front of each configuration.
fn fronts(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let latency = front_latency(&points_of(&sweeps));
    let front = |sweep: &SweepSummary| {
        let dot = |place: &usize| {
            let point = &sweep.points.get(*place)?.point;
            let (x, y) = (point.figures.output_tps?, latency.of(&point.figures).p50?.value);
            let at = named_level(point.ask.level);
            Some(Dot { note: format!("{at}, {} tok/s, {} ms", cell(x), cell(y)), ..Dot::new(x, y) })
        };
        let mut dots: Vec<Dot> = sweep.curve.pareto.iter().filter_map(dot).collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        dots
    };
    vec![Chart {
        name: "throughput-latency",
        title: format!("Median {} over output tok/s: the front of each", latency.name()),
        says: says(all, "Lower and further to the right is better."),
        x: Axis::linear("output tok/s of the server"),
        y: Axis::linear("ms"),
        series: series(&sweeps, Shape::Points, front),
        rules: Vec::new(),
    }]
}

fn goodputs(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    vec![Chart {
        name: "goodput-over-load",
        title: "Good requests per second of each configuration".to_owned(),
        says: says(all, "Higher is better. Bars are 95 % intervals."),
        x: over(first.plan.axis, &points_of(&sweeps)),
        y: Axis::linear("good requests per second"),
        series: series(&sweeps, Shape::Points, |sweep| {
            let used = on_curve(&sweep.points);
            dots(sweep.plan.axis, &used, |figures| figures.goodput_rps, "good req/s")
        }),
        rules: Vec::new(),
    }]
}

fn users(all: &[Configuration]) -> Vec<Chart> {
    let sweeps = drawn(all);
    let Some((_, first)) = sweeps.first() else { return Vec::new() };
    let (_, per) = per_gpu(first);
    let speeds = |sweep: &SweepSummary| {
        let (gpus, _) = per_gpu(sweep);
        let mut all = user_speeds(&on_curve(&sweep.points), gpus);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let dot = |(user, each, point): (f64, f64, &PointSummary)| {
            let at = named_level(point.point.ask.level);
            let note = format!("{at}, {} tok/s per user, {} tok/s", cell(user), cell(each));
            Dot { note, ..Dot::new(user, each) }
        };
        all.into_iter().map(dot).collect()
    };
    vec![Chart {
        name: "user-against-gpu",
        title: format!("Output tok/s {per} over tok/s per user (median)"),
        says: says(all, "Up is cheaper, to the right is faster for each user."),
        x: Axis::linear("tok/s per user (median)"),
        y: Axis::linear(format!("output tok/s {per}")),
        series: series(&sweeps, Shape::Marks, speeds),
        rules: Vec::new(),
    }]
}

/// Why there is no sweep, and the last that the server said.
fn failures(html: &mut Html, all: &[Configuration]) {
    for one in all {
        let Some(failed) = &one.failed else { continue };
        html.leaf("h3", &[], &name(one));
        let mut lines = failed.lines();
        html.leaf("p", &[], lines.next().unwrap_or("no reason is known"));
        let rest: Vec<&str> = lines.collect();
        if rest.is_empty() {
            continue;
        }
        let skipped = rest.len().saturating_sub(LAST);
        html.element("pre", &[("tabindex", "0")], |html| {
            if skipped > 0 {
                html.text(&format!("… {skipped} lines left out")).ours("\n");
            }
            for line in rest.iter().skip(skipped) {
                html.text(line).ours("\n");
            }
        });
    }
}
