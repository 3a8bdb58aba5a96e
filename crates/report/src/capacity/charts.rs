//! Charts of a capacity plan.

use goodput_campaign::capacity::{Capacity, Hour, LevelRisk, MeasuredLevel, TrafficPlan};
use goodput_campaign::sweep::Bounded;

use super::cells::rate;
use goodput_document::number::{cell, count, percent};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};

/// Latency of a replica over its rate, as measured, with the rates of the plan.
pub(super) fn latency(plan: &Capacity) -> Chart {
    let basis = &plan.basis;
    let series = |name: &str, tone, of: fn(&MeasuredLevel) -> Option<Bounded>| {
        let dot = |level: &MeasuredLevel| {
            let found = of(level)?;
            let note = format!("{} ms at {} req/s", cell(found.value), rate(level.rps));
            Some(Dot::noted(level.rps, found.value, note).within(found.low, found.high))
        };
        let dots = basis.levels.iter().filter_map(dot).collect();
        ChartSeries::new(name, Shape::Points, tone, dots)
    };
    let series = vec![
        series("TTFT p50", 0, |level| level.figures.ttft_ms.p50),
        series("TTFT p99", 1, |level| level.figures.ttft_ms.p99),
        series("TPOT p50", 2, |level| level.figures.tpot_ms.p50),
        series("TPOT p99", 3, |level| level.figures.tpot_ms.p99),
    ];
    let target = plan.question.target_rps / plan.fleets.with_headroom.replicas.max(1) as f64;
    let mut rules = vec![
        Rule::Place(target, format!("target {}", rate(target))),
        Rule::Place(basis.confirmed_rps, format!("confirmed {}", rate(basis.confirmed_rps))),
    ];
    rules.extend(
        basis.rejected_rps.map(|rps| Rule::Place(rps, format!("over the limit {}", rate(rps)))),
    );
    let rejected = basis
        .rejected_rps
        .map_or_else(String::new, |rps| format!(", {} are over the limit", rate(rps)));
    Chart::new("expected", "Latency of one replica over its load, as measured")
        .says(format!(
            "With headroom each replica gets {} req/s; {} are confirmed{rejected}.",
            rate(target),
            rate(basis.confirmed_rps)
        ))
        .over("req/s of one replica", ChartAxis::log("ms"))
        .series(series)
        .rules(rules)
}

/// The load of each hour, and what the replicas carry.
pub(super) fn hours(plan: &Capacity, traffic: &TrafficPlan) -> Chart {
    let replicas = traffic.replicas as f64;
    let series = |name: &str, tone, of: fn(&Hour) -> f64| {
        let dot = |hour: &Hour| {
            let note = format!("hour {}: {} req/s", hour.hour, rate(of(hour)));
            Dot::noted(f64::from(hour.hour), of(hour), note)
        };
        let mut dots: Vec<Dot> = traffic.hours.iter().map(dot).collect();
        // The last hour lasts as well.
        if let Some(last) = dots.last().cloned() {
            dots.push(Dot { x: last.x + 1.0, ..last });
        }
        ChartSeries::new(name, Shape::Steps, tone, dots)
    };
    let line = |rps: f64, word: &str| {
        let text =
            format!("{word} for {} replicas: {}", count(traffic.replicas), rate(rps * replicas));
        Rule::Height(rps * replicas, text)
    };
    let basis = &plan.basis;
    let mut rules = vec![line(basis.confirmed_rps, "confirmed")];
    rules.extend(basis.rejected_rps.map(|rps| line(rps, "over the limit")));
    let counts = &traffic.counts;
    let says = format!(
        "Traffic of {} req/s on average and {} at its peak against {} req/s that {} replicas were \
             confirmed to carry: {} of {} hours are at risk, {} will miss.",
        rate(traffic.mean_rps),
        rate(traffic.peak_rps),
        rate(basis.confirmed_rps * replicas),
        count(traffic.replicas),
        counts.at_risk,
        counts.all,
        counts.missing
    );
    Chart::new("hours", "Load and capacity")
        .says(says)
        .over("hour", "req/s")
        .series([
            series("highest 5 minutes", 1, |hour| hour.peak_rps),
            series("mean", 0, |hour| hour.mean_rps),
        ])
        .rules(rules)
}

/// How often the model misses the SLO at this rate.
pub(super) fn chance(level: &LevelRisk) -> f64 {
    level.missed as f64 / level.stretches.max(1) as f64
}

/// How often the model misses the SLO over the rate of a replica.
pub(super) fn chances(plan: &Capacity, traffic: &TrafficPlan) -> Chart {
    let levels = &traffic.simulation.levels;
    let dot = |level: &LevelRisk| {
        let note = format!("{} at {} req/s", percent(chance(level)), rate(level.rps));
        Dot::noted(level.rps, chance(level) * 100.0, note)
    };
    let mut dots: Vec<Dot> = levels.iter().map(dot).collect();
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let basis = &plan.basis;
    let mut rules = vec![Rule::Place(basis.confirmed_rps, "confirmed".to_owned())];
    rules.extend(basis.rejected_rps.map(|rps| Rule::Place(rps, "rejected".to_owned())));
    let said: Vec<String> = dots.iter().map(|dot| dot.note.clone()).collect();
    Chart::new("chances", "Stretches that miss the SLO, according to the engine model")
        .says(format!("{}.", said.join("; ")))
        .over(ChartAxis::between("req/s of one replica"), "% missed")
        .series([ChartSeries::new("probability of a miss", Shape::Points, 5, dots)])
        .rules(rules)
}
