//! The page of a capacity plan.

pub(crate) mod cells;

use std::fmt::{Error, Write};

use goodput_campaign::capacity::{
    Capacity, Cost, EnergyPlan, Expected, FanOut, NoteKind, TrafficPlan,
};

use crate::number::count;
use crate::plain::plain;
use crate::text::field;

/// The page of a capacity plan.
pub fn capacity_text(capacity: &Capacity) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, capacity);
    page
}

fn write_page(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    for (label, text) in cells::basis(capacity) {
        field(page, label, &text);
    }
    fleets(page, capacity)?;
    rates(page, capacity)?;
    latencies(page, &capacity.expected)?;
    if let Some(cost) = &capacity.cost {
        costs(page, cost)?;
    }
    if let Some(energy) = &capacity.energy {
        energies(page, energy)?;
    }
    if let Some(traffic) = &capacity.traffic {
        hours(page, traffic)?;
    }
    if let Some(fan_out) = &capacity.fan_out {
        steps(page, fan_out)?;
    }
    writeln!(page)?;
    for note in &capacity.notes {
        let label = match note.kind {
            NoteKind::Assumed => "Assumed",
            NoteKind::Extrapolated => "Beyond",
            NoteKind::Missing => "Unknown",
            NoteKind::Doubt => "Doubtful",
        };
        field(page, label, &plain(&note.text));
    }
    Ok(())
}

fn fleets(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<22}{:>9}{:>7}{:>9}{:>10}{:>11}{:>12}",
        "", "replicas", "GPUs", "load", "one lost", "range", "cost/hour"
    )?;
    for (name, [replicas, gpus, load, lost, best, cost]) in cells::fleets(capacity) {
        writeln!(page, "{name:<22}{replicas:>9}{gpus:>7}{load:>9}{lost:>10}{best:>11}{cost:>12}")?;
    }
    if let Some(month) = capacity.fleets.with_headroom.cost_per_month {
        let text = format!("{} for 730 hours with headroom", cells::money(month));
        field(page, "Month", &text);
    }
    Ok(())
}

fn rates(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<22}{:>10}{:>16}{:>16}{:>16}",
        "Throughput", "req/s", "input tok/s", "output tok/s", "total tok/s"
    )?;
    for (name, [requests, input, output, total]) in cells::rates(capacity) {
        writeln!(page, "{name:<22}{requests:>10}{input:>16}{output:>16}{total:>16}")?;
    }
    Ok(())
}

fn latencies(page: &mut String, expected: &[Expected]) -> Result<(), Error> {
    if expected.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\n{:<17}{:>8}{:>9}{:>9}{:>9}{:>9}",
        "Latency, ms", "req/s", "TTFT p50", "p99", "TPOT p50", "p99"
    )?;
    for one in expected {
        let [name, rate, ttft, ttft_p99, tpot, tpot_p99, footing] = cells::latency(one);
        writeln!(
            page,
            "{name:<17}{rate:>8}{ttft:>9}{ttft_p99:>9}{tpot:>9}{tpot_p99:>9}  {footing}"
        )?;
    }
    Ok(())
}

fn costs(page: &mut String, cost: &Cost) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "Cost", "1M input", "1M output", "1M total", "1M good out", "1000 req"
    )?;
    for (name, [input, output, total, good, requests]) in cells::costs(cost) {
        writeln!(page, "{name:<20}{input:>12}{output:>12}{total:>12}{good:>12}{requests:>12}")?;
    }
    field(page, "", cells::WHOLE);
    Ok(())
}

fn energies(page: &mut String, energy: &EnergyPlan) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<20}{:>12}{:>16}{:>12}{:>12}",
        "Energy of GPUs", "J/output tok", "kWh/1M output", "kWh/day", "W"
    )?;
    for (name, [joules, kwh, day, power]) in cells::energies(energy) {
        writeln!(page, "{name:<20}{joules:>12}{kwh:>16}{day:>12}{power:>12}")?;
    }
    Ok(())
}

fn hours(page: &mut String, traffic: &TrafficPlan) -> Result<(), Error> {
    writeln!(page)?;
    field(page, "Traffic", &plain(&traffic.about));
    writeln!(
        page,
        "{:>4}{:>12}{:>12}{:>9}{:>10}{:>9}{:>8}   on {} replicas",
        "hour",
        "mean req/s",
        "peak 5 min",
        "load",
        "P(miss)",
        "good",
        "needs",
        count(traffic.replicas)
    )?;
    let shown = cells::shown_hours(traffic);
    for hour in &shown {
        let [hour, mean, peak, load, miss, good, needs, state] = cells::hour(hour);
        let row = format!(
            "{hour:>4}{mean:>12}{peak:>12}{load:>9}{miss:>10}{good:>9}{needs:>8}   {state}"
        );
        writeln!(page, "{}", row.trim_end())?;
    }
    let left_out = traffic.hours.len() - shown.len();
    if left_out > 0 {
        let text = format!("{} hours with less load are left out here", count(left_out as u64));
        field(page, "", &text);
    }
    for (label, text) in cells::fares(traffic).iter().chain(&cells::simulated(traffic)) {
        field(page, label, text);
    }
    Ok(())
}

fn steps(page: &mut String, fan_out: &FanOut) -> Result<(), Error> {
    writeln!(page, "\n{}", cells::step_title(fan_out))?;
    for figure in &fan_out.metrics {
        let [metric, p50, p99, step_p50, step_p99] = cells::step_row(figure);
        let text =
            format!("one call p50 {p50}, p99 {p99}; the step p50 {step_p50}, p99 {step_p99}");
        field(page, &metric, &text);
    }
    Ok(())
}
