//! Charts of a capacity plan.

use goodput_campaign::capacity::{Capacity, Hour, LevelRisk, MeasuredLevel, TrafficPlan};
use goodput_campaign::sweep::Bounded;

use super::cells::rate_text;
use goodput_document::number::{cell_number, count, percent};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Rule, Shape};

/// Latency of a replica over its rate, as measured, with the rates of the plan.
pub(super) fn latency_chart(plan: &Capacity) -> Chart {
    let basis = &plan.basis;
    let series = |name: &str, tone, of: fn(&MeasuredLevel) -> Option<Bounded>| {
        let dot = |level: &MeasuredLevel| {
            let found = of(level)?;
            let note = format!("{} ms at {} req/s", cell_number(found.value), rate_text(level.rps));
            Some(Dot::with_note(level.rps, found.value, note).with_interval(found.low, found.high))
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
        Rule::Place(target, format!("target {}", rate_text(target))),
        Rule::Place(basis.confirmed_rps, format!("confirmed {}", rate_text(basis.confirmed_rps))),
    ];
    rules.extend(
        basis
            .rejected_rps
            .map(|rps| Rule::Place(rps, format!("over the limit {}", rate_text(rps)))),
    );
    let rejected = basis
        .rejected_rps
        .map_or_else(String::new, |rps| format!(", {} are over the limit", rate_text(rps)));
    Chart::new("expected", "Latency of one replica over its load, as measured")
        .with_caption(format!(
            "With headroom each replica gets {} req/s; {} are confirmed{rejected}.",
            rate_text(target),
            rate_text(basis.confirmed_rps)
        ))
        .with_axes("req/s of one replica", ChartAxis::log("ms"))
        .with_series(series)
        .with_rules(rules)
}

/// The load of each hour, and what the replicas carry.
pub(super) fn hours_chart(plan: &Capacity, traffic: &TrafficPlan) -> Chart {
    let replicas = traffic.replicas as f64;
    let series = |name: &str, tone, of: fn(&Hour) -> f64| {
        let dot = |hour: &Hour| {
            let note = format!("hour {}: {} req/s", hour.hour, rate_text(of(hour)));
            Dot::with_note(f64::from(hour.hour), of(hour), note)
        };
        let mut dots: Vec<Dot> = traffic.hours.iter().map(dot).collect();
        // The last hour lasts as well.
        if let Some(last) = dots.last().cloned() {
            dots.push(Dot { x: last.x + 1.0, ..last });
        }
        ChartSeries::new(name, Shape::Steps, tone, dots)
    };
    let line = |rps: f64, word: &str| {
        let text = format!(
            "{word} for {} replicas: {}",
            count(traffic.replicas),
            rate_text(rps * replicas)
        );
        Rule::Height(rps * replicas, text)
    };
    let basis = &plan.basis;
    let mut rules = vec![line(basis.confirmed_rps, "confirmed")];
    rules.extend(basis.rejected_rps.map(|rps| line(rps, "over the limit")));
    let counts = &traffic.counts;
    let says = format!(
        "Traffic of {} req/s on average and {} at its peak against {} req/s that {} replicas were \
             confirmed to carry: {} of {} hours are at risk, {} will miss.",
        rate_text(traffic.mean_rps),
        rate_text(traffic.peak_rps),
        rate_text(basis.confirmed_rps * replicas),
        count(traffic.replicas),
        counts.at_risk,
        counts.all,
        counts.missing
    );
    Chart::new("hours", "Load and capacity")
        .with_caption(says)
        .with_axes("hour", "req/s")
        .with_series([
            series("highest 5 minutes", 1, |hour| hour.peak_rps),
            series("mean", 0, |hour| hour.mean_rps),
        ])
        .with_rules(rules)
}

/// How often the model misses the SLO at this rate.
pub(super) fn miss_chance(level: &LevelRisk) -> f64 {
    level.missed as f64 / level.stretches.max(1) as f64
}

/// How often the model misses the SLO over the rate of a replica.
pub(super) fn miss_chance_chart(plan: &Capacity, traffic: &TrafficPlan) -> Chart {
    let levels = &traffic.simulation.levels;
    let dot = |level: &LevelRisk| {
        let note = format!("{} at {} req/s", percent(miss_chance(level)), rate_text(level.rps));
        Dot::with_note(level.rps, miss_chance(level) * 100.0, note)
    };
    let mut dots: Vec<Dot> = levels.iter().map(dot).collect();
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let basis = &plan.basis;
    let mut rules = vec![Rule::Place(basis.confirmed_rps, "confirmed".to_owned())];
    rules.extend(basis.rejected_rps.map(|rps| Rule::Place(rps, "rejected".to_owned())));
    let said: Vec<String> = dots.iter().map(|dot| dot.note.clone()).collect();
    Chart::new("chances", "Stretches that miss the SLO, according to the engine model")
        .with_caption(format!("{}.", said.join("; ")))
        .with_axes(ChartAxis::between("req/s of one replica"), "% missed")
        .with_series([ChartSeries::new("probability of a miss", Shape::Points, 5, dots)])
        .with_rules(rules)
}
