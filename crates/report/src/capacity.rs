//! The page of a capacity plan.

use std::fmt::{Error, Write};

use goodput_campaign::capacity::{
    Basis, Capacity, Cost, EnergyPlan, Expected, FanOut, Fleet, Footing, Hour, HourState, NoteKind,
    Origin, Price, Question, Rates, StepLatency, TrafficPlan, UnitCost,
};

use crate::number::{amount, cell, count, percent};
use crate::plain::plain;
use crate::text::field;

/// Hours in the table at most; of more, those with the highest load.
const HOURS: usize = 48;

/// The page of a capacity plan.
pub fn capacity_text(capacity: &Capacity) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, capacity);
    page
}

fn write_page(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    head(page, &capacity.basis, &capacity.question);
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

fn head(page: &mut String, basis: &Basis, question: &Question) {
    let above = basis.rejected_rps.map_or_else(
        || "nothing above it is known".to_owned(),
        |rejected| format!("{} rejected", rate(rejected)),
    );
    let how = match basis.origin {
        Origin::Given => "given",
        Origin::Run | Origin::Sweep => "confirmed",
    };
    field(page, "Replica", &format!("{} req/s {how}, {above}", rate(basis.confirmed_rps)));
    if let Some(slo) = &basis.slo {
        field(page, "SLO", &plain(slo));
    }
    if !basis.path.is_empty() {
        field(page, "Measured", &format!("{} ({})", plain(&basis.about), plain(&basis.path)));
    }
    field(page, "Target", &format!("{} req/s", rate(question.target_rps)));
}

/// A rate, exact enough to be typed again.
fn rate(rps: f64) -> String {
    let text = if rps.abs() < 1000.0 { format!("{rps:.3}") } else { format!("{rps:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

fn money(value: f64) -> String {
    if value < 9999.5 { format!("{value:.2}") } else { count(value.round() as u64) }
}

fn fleets(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    let fleets = &capacity.fleets;
    writeln!(
        page,
        "\n{:<22}{:>9}{:>7}{:>9}{:>10}{:>11}{:>12}",
        "", "replicas", "GPUs", "load", "one lost", "best case", "cost/hour"
    )?;
    let headroom = format!("with {} headroom", share(capacity.question.headroom));
    let rows = [
        ("just enough", Some(&fleets.bare)),
        (headroom.as_str(), Some(&fleets.with_headroom)),
        ("any one may fail", Some(&fleets.with_spare)),
        ("as asked", fleets.asked.as_ref()),
    ];
    for (name, fleet) in rows {
        let Some(fleet) = fleet else { continue };
        writeln!(page, "{name:<22}{}", fleet_row(fleet))?;
    }
    if let Some(month) = fleets.with_headroom.cost_per_month {
        let text = format!("{} for 730 hours with headroom", money(month));
        field(page, "Month", &text);
    }
    Ok(())
}

fn share(share: f64) -> String {
    format!("{} %", rate(share * 100.0))
}

fn fleet_row(fleet: &Fleet) -> String {
    let whole = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), count);
    format!(
        "{:>9}{:>7}{:>9}{:>10}{:>11}{:>12}",
        count(fleet.replicas),
        whole(fleet.gpus),
        load(fleet.utilisation),
        optional(fleet.one_lost, load),
        whole(fleet.best_case.map(|best| best.replicas)),
        optional(fleet.cost_per_hour, money)
    )
}

fn load(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn rates(page: &mut String, capacity: &Capacity) -> Result<(), Error> {
    let throughput = &capacity.throughput;
    writeln!(
        page,
        "\n{:<22}{:>10}{:>16}{:>16}{:>16}",
        "Throughput", "req/s", "input tok/s", "output tok/s", "total tok/s"
    )?;
    let row = |name: &str, rates: &Rates| {
        let tokens = |value: Option<f64>| optional(value, amount);
        format!(
            "{name:<22}{:>10}{:>16}{:>16}{:>16}",
            rate(rates.requests_per_s),
            tokens(rates.input_tps),
            tokens(rates.output_tps),
            tokens(rates.total_tps)
        )
    };
    if let Some(gpu) = &throughput.gpu {
        writeln!(page, "{}", row("a GPU, confirmed", gpu))?;
    }
    writeln!(page, "{}", row("a replica, confirmed", &throughput.replica))?;
    writeln!(page, "{}", row("all, at the target", &throughput.total))
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
        let name = match one.about.as_str() {
            "confirmed" => "confirmed rate",
            "target" => "target, headroom",
            "one lost" => "with one lost",
            other => other,
        };
        let ms = |value: Option<f64>| optional(value, cell);
        writeln!(
            page,
            "{name:<17}{:>8}{:>9}{:>9}{:>9}{:>9}  {}",
            rate(one.at_rps),
            ms(one.ttft_p50_ms),
            ms(one.ttft_p99_ms),
            ms(one.tpot_p50_ms),
            ms(one.tpot_p99_ms),
            footing(one)
        )?;
    }
    Ok(())
}

fn footing(expected: &Expected) -> String {
    let points: Vec<String> = expected.points_rps.iter().map(|rps| rate(*rps)).collect();
    match expected.footing {
        Footing::Measured => "measured".to_owned(),
        Footing::Interpolated => format!("between {}", points.join(" and ")),
        Footing::BelowMeasured => format!("lowest: {}", points.join("")),
        Footing::AboveMeasured | Footing::Nothing => "not measured".to_owned(),
    }
}

fn costs(page: &mut String, cost: &Cost) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "Cost", "1M input", "1M output", "1M total", "1M good out", "1000 req"
    )?;
    let rows = [("at full use", &cost.full_use), ("target, headroom", &cost.at_target)];
    for (name, units) in rows {
        writeln!(page, "{name:<20}{}", cost_row(units, |price| Some(price.value)))?;
        if units.per_1000_requests.best_case.is_some() {
            writeln!(page, "{:<20}{}", "  at best", cost_row(units, |price| price.best_case))?;
        }
    }
    field(page, "", "each kind of token as if it bore the whole cost");
    Ok(())
}

fn cost_row(units: &UnitCost, of: impl Fn(Price) -> Option<f64>) -> String {
    let price = |price: Option<Price>| optional(price.and_then(&of), unit_price);
    format!(
        "{:>12}{:>12}{:>12}{:>12}{:>12}",
        price(units.per_million_input),
        price(units.per_million_output),
        price(units.per_million_total),
        price(units.per_million_good_output),
        price(Some(units.per_1000_requests))
    )
}

fn energies(page: &mut String, energy: &EnergyPlan) -> Result<(), Error> {
    writeln!(
        page,
        "\n{:<20}{:>12}{:>16}{:>12}{:>12}",
        "Energy of GPUs", "J/output tok", "kWh/1M output", "kWh/day", "W"
    )?;
    let rows =
        [("at full use", Some(&energy.full_use)), ("target, headroom", energy.at_target.as_ref())];
    for (name, used) in rows {
        let Some(used) = used else { continue };
        writeln!(
            page,
            "{name:<20}{:>12}{:>16}{:>12}{:>12}",
            optional(used.joules_per_output_token, unit_price),
            optional(used.kwh_per_million_output, unit_price),
            amount(used.kwh_per_day),
            amount(used.gpu_power_w)
        )?;
    }
    Ok(())
}

/// With four decimals while it is small.
fn unit_price(value: f64) -> String {
    if value < 100.0 { format!("{value:.4}") } else { cell(value) }
}

fn hours(page: &mut String, traffic: &TrafficPlan) -> Result<(), Error> {
    writeln!(page)?;
    field(page, "Traffic", &plain(&traffic.about));
    let mut shown: Vec<&Hour> = traffic.hours.iter().collect();
    let left_out = shown.len().saturating_sub(HOURS);
    if left_out > 0 {
        shown.sort_by(|a, b| b.peak_rps.total_cmp(&a.peak_rps));
        shown.truncate(HOURS);
        shown.sort_by_key(|hour| hour.hour);
    }
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
    for hour in shown {
        let state = match hour.state {
            HourState::Fine => "",
            HourState::AtRisk => "at risk",
            HourState::Misses => "WILL MISS",
        };
        let row = format!(
            "{:>4}{:>12}{:>12}{:>9}{:>10}{:>9}{:>8}   {state}",
            hour.hour,
            rate(hour.mean_rps),
            rate(hour.peak_rps),
            load(hour.load),
            optional(hour.p_miss, percent),
            optional(hour.good_share, percent),
            count(hour.replicas_needed)
        );
        writeln!(page, "{}", row.trim_end())?;
    }
    if left_out > 0 {
        let text = format!("{} hours with less load are left out here", count(left_out as u64));
        field(page, "", &text);
    }
    verdict(page, traffic);
    simulated(page, traffic);
    Ok(())
}

fn verdict(page: &mut String, traffic: &TrafficPlan) {
    let counts = &traffic.counts;
    let text = format!(
        "{} of {} hours above the confirmed rate, {} of them above the rejected one",
        counts.at_risk, counts.all, counts.missing
    );
    field(page, "At risk", &text);
    let enough = &traffic.enough;
    let gpus = enough.gpus.map_or_else(String::new, |gpus| format!(" ({} GPUs)", count(gpus)));
    field(
        page,
        "Enough",
        &format!("{} replicas{gpus}: no hour is at risk", count(enough.replicas)),
    );
    let paid =
        |cost: Option<f64>| cost.map_or_else(String::new, |cost| format!(" for {}", money(cost)));
    let less = 1.0 - enough.scaled_replica_hours / enough.fixed_replica_hours.max(1e-9);
    let text = format!(
        "{} replica-hours{} if fixed, {}{} if scaled every hour ({} less)",
        rate(enough.fixed_replica_hours),
        paid(enough.fixed_cost),
        rate(enough.scaled_replica_hours),
        paid(enough.scaled_cost),
        load(less)
    );
    field(page, "Scaling", &text);
}

fn simulated(page: &mut String, traffic: &TrafficPlan) {
    let simulation = &traffic.simulation;
    if let Some(because) = &simulation.refused {
        field(page, "P(miss)", &format!("not stated: {}", plain(because)));
        return;
    }
    let stretch = simulation.levels.iter().map(|level| level.stretch_s).fold(0.0, f64::max);
    let most = simulation.levels.iter().map(|level| level.stretches).max().unwrap_or(0);
    field(
        page,
        "P(miss)",
        &format!(
            "share of stretches of {stretch:.0} s that miss the SLO, by the engine model in place \
             of a replica; 0 % is none of {most}"
        ),
    );
    let error = |place: usize| optional(simulation.errors.get(place).copied().flatten(), load);
    field(
        page,
        "Model",
        &format!(
            "fitted to {} points: median error of TTFT p50 {}, TTFT p99 {}, TPOT p50 {}; {} \
             sequences at once, step times × {:.3}; lengths: {}",
            simulation.points.len(),
            error(0),
            error(1),
            error(2),
            simulation.max_num_seqs.unwrap_or(0),
            simulation.slowness.unwrap_or(1.0),
            plain(&simulation.sizes)
        ),
    );
}

fn steps(page: &mut String, fan_out: &FanOut) -> Result<(), Error> {
    writeln!(
        page,
        "\nA step of {} calls at once waits for the slowest (ms, at {} req/s a replica)",
        fan_out.calls,
        rate(fan_out.at_rps)
    )?;
    for figure in &fan_out.metrics {
        let text = format!(
            "one call p50 {}, p99 {}; the step p50 {}, p99 {}",
            optional(figure.single_p50_ms, cell),
            optional(figure.single_p99_ms, cell),
            step(&figure.p50),
            step(&figure.p99)
        );
        field(page, &plain(&figure.metric).to_uppercase(), &text);
    }
    Ok(())
}

fn step(latency: &StepLatency) -> String {
    let about = if latency.interpolated { "about " } else { "" };
    match latency.ms {
        Some(ms) => format!("{about}{} (p{:.2} of one)", cell(ms), latency.single_percentile),
        None => format!("not known (p{:.2} of one)", latency.single_percentile),
    }
}
