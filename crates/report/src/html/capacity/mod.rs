//! The page of a capacity plan.

mod charts;
#[cfg(test)]
mod tests;

use goodput_campaign::capacity::{Capacity, HourState, NoteKind, TrafficPlan};

use super::markup::Html;
use super::page::Page;
use super::pieces::{Cell, answer, facts, figure, section, table};
use crate::capacity::cells;
use crate::number::{amount, count, percent};

/// The page of a capacity plan.
pub fn capacity_html(plan: &Capacity) -> String {
    let parts = parts(plan);
    let mut body = Html::default();
    said(&mut body, plan);
    for (id, title, html) in &parts {
        section(&mut body, id, title, |body| {
            body.add(html);
        });
    }
    let sections: Vec<(&'static str, &'static str)> =
        parts.iter().map(|(id, title, _)| (*id, *title)).collect();
    let about =
        if plan.basis.about.is_empty() { "a figure that was typed" } else { &plan.basis.about };
    let title = format!("Capacity plan for {} req/s", cells::rate(plan.question.target_rps));
    Page { title: &title, about, sections: &sections, body }.into_string()
}

/// Id, title and contents of each section that there is.
fn parts(plan: &Capacity) -> Vec<(&'static str, &'static str, Html)> {
    let all = [
        ("basis", "What one replica carries", Html::of(|html| basis(html, plan))),
        ("capacity", "Capacity", Html::of(|html| fleets(html, plan))),
        ("latency", "Latency to expect", Html::of(|html| latency(html, plan))),
        ("cost", "Cost", Html::of(|html| cost(html, plan))),
        ("energy", "Energy", Html::of(|html| energy(html, plan))),
        ("traffic", "Traffic hour by hour", Html::of(|html| traffic(html, plan))),
        ("risk", "Chance of missing the SLO", Html::of(|html| risk(html, plan))),
        ("fan-out", "Steps of several calls", Html::of(|html| fan_out(html, plan))),
        ("assumptions", "What it rests on", Html::of(|html| notes(html, plan))),
    ];
    all.into_iter().filter(|(_, _, html)| *html != Html::default()).collect()
}

/// The answer, and whether to believe what it rests on.
fn said(html: &mut Html, plan: &Capacity) {
    match plan.basis.verdict {
        Some(verdict) => answer(html, &sentence(plan), verdict),
        None => {
            html.element("div", &[("id", "answer"), ("class", "suspect")], |html| {
                html.leaf("p", &[("class", "sentence")], &sentence(plan));
                html.leaf(
                    "p",
                    &[("class", "verdict")],
                    "the rate of a replica was given, not measured here",
                );
            });
        }
    }
    let doubts = plan.notes.iter().filter(|note| note.kind == NoteKind::Doubt).count();
    if doubts > 0 {
        html.element("p", &[("class", "doubt")], |html| {
            let text = if doubts == 1 { "One doubt" } else { "Doubts" };
            html.text(&format!("{text} about the measurement: "));
            html.leaf("a", &[("href", "#assumptions")], "what it rests on").text(".");
        });
    }
}

/// `6 replicas (48 GPUs) carry 100 req/s with 20 % headroom: 120.00 an hour, 87,600 a month`
fn sentence(plan: &Capacity) -> String {
    let fleet = &plan.fleets.with_headroom;
    let gpus = fleet.gpus.map_or_else(String::new, |gpus| format!(" ({} GPUs)", count(gpus)));
    let mut parts = Vec::new();
    if let Some(hour) = fleet.cost_per_hour {
        parts.push(format!("{} an hour", cells::money(hour)));
    }
    if let Some(month) = fleet.cost_per_month {
        parts.push(format!("{} a month", cells::money(month)));
    }
    let energy = plan.energy.and_then(|energy| energy.at_target);
    if let Some(energy) = energy {
        parts.push(format!("{} kWh a day", amount(energy.kwh_per_day)));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let (replicas, carry) = match fleet.replicas {
        1 => ("replica", "carries"),
        _ => ("replicas", "carry"),
    };
    let hours = plan.traffic.as_ref().map_or_else(String::new, |traffic| {
        let counts = &traffic.counts;
        let are = if counts.at_risk == 1 { "is" } else { "are" };
        let on = count(traffic.replicas);
        format!("; of {} hours {} {are} at risk on {on} replicas", counts.all, counts.at_risk)
    });
    format!(
        "{} {replicas}{gpus} {carry} {} req/s with {} headroom{parts}{hours}",
        count(fleet.replicas),
        cells::rate(plan.question.target_rps),
        cells::share(plan.question.headroom)
    )
}

fn owned(all: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    all.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

/// Rows with their names in front.
fn named<const N: usize>(
    rows: impl IntoIterator<Item = (impl Into<String>, [String; N])>,
) -> Vec<Vec<Cell>> {
    let row = |(name, cells): (_, [String; N])| {
        let name: String = Into::into(name);
        std::iter::once(Cell::from(name.trim())).chain(cells.map(Cell::from)).collect()
    };
    rows.into_iter().map(row).collect()
}

fn basis(html: &mut Html, plan: &Capacity) {
    facts(html, &owned(cells::basis(plan)));
}

fn fleets(html: &mut Html, plan: &Capacity) {
    let head = ["", "replicas", "GPUs", "load", "one lost", "range", "cost/hour"];
    table(html, "Replicas by how much is to be spare", &head, &named(cells::fleets(plan)));
    html.leaf(
        "p",
        &[("class", "about")],
        "load: the target as a share of what the replicas were confirmed to carry; one lost: the same \
         with one replica down; range: replicas by the ends of the interval in which the limit of one lies.",
    );
    let head = ["", "req/s", "input tok/s", "output tok/s", "total tok/s"];
    table(html, "Throughput", &head, &named(cells::rates(plan)));
}

fn latency(html: &mut Html, plan: &Capacity) {
    if !plan.expected.is_empty() {
        let head =
            ["", "req/s a replica", "TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "rests on"];
        let row = |cells: [String; 7]| cells.map(Cell::from).to_vec();
        let rows: Vec<Vec<Cell>> =
            plan.expected.iter().map(|one| row(cells::latency(one))).collect();
        table(html, "Milliseconds", &head, &rows);
    }
    figure(html, &charts::latency(plan));
}

fn cost(html: &mut Html, plan: &Capacity) {
    let Some(cost) = &plan.cost else { return };
    let each = |name: &str, hour: f64, month: f64| {
        vec![name.into(), cells::money(hour).into(), cells::money(month).into()]
    };
    let rows = vec![
        each("one replica", cost.full_use.per_hour, cost.full_use.per_month),
        each("target, headroom", cost.at_target.per_hour, cost.at_target.per_month),
    ];
    let price = format!("At {} for a GPU and hour", cells::rate(cost.price_per_gpu_hour));
    table(html, &price, &["", "an hour", "a month (730 hours)"], &rows);
    let head = ["", "1M input", "1M output", "1M total", "1M good output", "1000 requests"];
    table(html, "What a unit costs", &head, &named(cells::costs(cost)));
    html.leaf("p", &[("class", "about")], cells::WHOLE);
}

fn energy(html: &mut Html, plan: &Capacity) {
    let Some(energy) = &plan.energy else { return };
    let head = ["", "J an output token", "kWh 1M output", "kWh a day", "W"];
    table(html, "Energy of the GPUs", &head, &named(cells::energies(energy)));
}

fn traffic(html: &mut Html, plan: &Capacity) {
    let Some(traffic) = &plan.traffic else { return };
    html.leaf("p", &[], &traffic.about);
    facts(html, &owned(cells::fares(traffic)));
    figure(html, &charts::hours(plan, traffic));
    hours(html, traffic);
}

fn hours(html: &mut Html, traffic: &TrafficPlan) {
    let head =
        ["hour", "mean req/s", "peak 5 min", "load", "P(miss)", "good", "replicas needed", "state"];
    let shown = cells::shown_hours(traffic);
    let row = |hour: &&goodput_campaign::capacity::Hour| {
        let mut row = cells::hour(hour).map(Cell::from).to_vec();
        if let Some(state) = row.last_mut() {
            state.class = match hour.state {
                HourState::Fine => "good",
                HourState::AtRisk => "doubt",
                HourState::Misses => "bad",
            };
            if hour.state == HourState::Fine {
                "fine".clone_into(&mut state.text);
            }
        }
        row
    };
    let rows: Vec<Vec<Cell>> = shown.iter().map(row).collect();
    let title = format!("On {} replicas", count(traffic.replicas));
    table(html, &title, &head, &rows);
    let left_out = traffic.hours.len().saturating_sub(shown.len());
    if left_out > 0 {
        let text = format!("{} hours with less load are left out here", count(left_out as u64));
        html.leaf("p", &[("class", "about")], &text);
    }
}

fn risk(html: &mut Html, plan: &Capacity) {
    let Some(traffic) = &plan.traffic else { return };
    facts(html, &owned(cells::simulated(traffic)));
    let levels = &traffic.simulation.levels;
    if levels.is_empty() {
        return;
    }
    figure(html, &charts::chances(plan, traffic));
    let head = ["req/s a replica", "stretches", "of seconds", "missed", "P(miss)", "good"];
    let row = |level: &goodput_campaign::capacity::LevelRisk| {
        let chance = level.missed as f64 / level.stretches.max(1) as f64;
        vec![
            cells::rate(level.rps).into(),
            count(level.stretches).into(),
            cells::rate(level.stretch_s).into(),
            count(level.missed).into(),
            percent(chance).into(),
            percent(level.good_share).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = levels.iter().map(row).collect();
    table(html, "Rates of a replica that were simulated", &head, &rows);
}

fn fan_out(html: &mut Html, plan: &Capacity) {
    let Some(fan_out) = &plan.fan_out else { return };
    let head = ["", "a call p50", "a call p99", "the step p50", "the step p99"];
    let row = |cells: [String; 5]| cells.map(Cell::from).to_vec();
    let rows: Vec<Vec<Cell>> =
        fan_out.metrics.iter().map(|figure| row(cells::step_row(figure))).collect();
    table(html, &cells::step_title(fan_out), &head, &rows);
}

/// What it rests on, what is doubtful first.
fn notes(html: &mut Html, plan: &Capacity) {
    let kinds = [
        (NoteKind::Doubt, "Doubtful: the measurement itself"),
        (NoteKind::Extrapolated, "Beyond what was measured"),
        (NoteKind::Assumed, "Assumed: it holds only if this does"),
        (NoteKind::Missing, "Not known"),
    ];
    for (kind, title) in kinds {
        let own: Vec<_> = plan.notes.iter().filter(|note| note.kind == kind).collect();
        if own.is_empty() {
            continue;
        }
        html.leaf("h3", &[], title);
        html.element("ul", &[("class", "kinds")], |html| {
            for note in own {
                html.leaf("li", &[], &note.text);
            }
        });
    }
}
