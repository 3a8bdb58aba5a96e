//! What a capacity plan says, cell by cell.

use goodput_campaign::capacity::{
    Capacity, Expected, FanOut, Fleet, Footing, Hour, Origin, StepLatency, TrafficPlan,
};

use goodput_document::number::{cell_number, count, known_or_dash};
use goodput_model::escape_control;

/// Hours in a table at most.
const HOURS: usize = 48;

/// A rate, exact enough to be typed again.
pub(super) fn rate_text(rps: f64) -> String {
    let text = if rps.abs() < 1000.0 { format!("{rps:.3}") } else { format!("{rps:.1}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn money_text(value: f64) -> String {
    if value < 9999.5 { format!("{value:.2}") } else { count(value.round() as u64) }
}

pub(super) fn share_text(share: f64) -> String {
    format!("{} %", rate_text(share * 100.0))
}

/// Replicas by both ends of the interval in which the limit of one lies.
pub(super) fn replica_range(fleet: &Fleet) -> String {
    let end = |end: Option<u64>| end.map_or_else(|| "…".to_owned(), count);
    let (best, worst) =
        (fleet.best_case.map(|best| best.replicas), fleet.worst_case.map(|worst| worst.replicas));
    match (best, worst) {
        (None, None) => "–".to_owned(),
        (best, worst) if best == worst => end(best),
        _ => format!("{}–{}", end(best), end(worst)),
    }
}

pub(super) fn load_text(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn footing_text(expected: &Expected) -> String {
    let points: Vec<String> = expected.points_rps.iter().map(|rps| rate_text(*rps)).collect();
    match expected.footing {
        Footing::Measured => "measured".to_owned(),
        Footing::Interpolated => format!("between {}", points.join(" and ")),
        Footing::BelowMeasured => format!("lowest: {}", points.join("")),
        Footing::AboveMeasured | Footing::Nothing => "not measured".to_owned(),
    }
}

/// What costs of tokens are.
pub(super) const WHOLE: &str = "each kind of token priced as if it carried the whole cost";

/// With four decimals while it is small.
pub(super) fn unit_price_text(value: f64) -> String {
    if value < 100.0 { format!("{value:.4}") } else { cell_number(value) }
}

/// The hours that a table shows: of too many, those with the highest load.
pub(super) fn shown_hours(traffic: &TrafficPlan) -> Vec<&Hour> {
    let mut shown: Vec<&Hour> = traffic.hours.iter().collect();
    if shown.len() > HOURS {
        shown.sort_by(|a, b| b.peak_rps.total_cmp(&a.peak_rps));
        shown.truncate(HOURS);
        shown.sort_by_key(|hour| hour.hour);
    }
    shown
}

/// How the traffic fares: labels and texts.
pub(super) fn traffic_facts(traffic: &TrafficPlan) -> Vec<(&'static str, String)> {
    let counts = &traffic.counts;
    let at_risk = format!(
        "{} of {} hours above the confirmed rate, {} of them over the limit",
        counts.at_risk, counts.all, counts.missing
    );
    let enough = &traffic.enough;
    let gpus = enough.gpus.map_or_else(String::new, |gpus| format!(" ({} GPUs)", count(gpus)));
    let replicas = format!("{} replicas{gpus}: no hour is at risk", count(enough.replicas));
    let paid = |cost: Option<f64>| {
        cost.map_or_else(String::new, |cost| format!(" for {}", money_text(cost)))
    };
    let less = 1.0 - enough.scaled_replica_hours / enough.fixed_replica_hours.max(1e-9);
    let scaling = format!(
        "{} replica-hours{} if fixed, {}{} if scaled every hour ({} less)",
        rate_text(enough.fixed_replica_hours),
        paid(enough.fixed_cost),
        rate_text(enough.scaled_replica_hours),
        paid(enough.scaled_cost),
        load_text(less)
    );
    vec![("At risk", at_risk), ("Enough", replicas), ("Scaling", scaling)]
}

/// Where the chance of a miss comes from: labels and texts.
pub(super) fn simulation_facts(traffic: &TrafficPlan) -> Vec<(&'static str, String)> {
    let simulation = &traffic.simulation;
    if let Some(because) = &simulation.refused {
        return vec![("P(miss)", format!("not stated: {}", escape_control(because)))];
    }
    let stretch = simulation.levels.iter().map(|level| level.stretch_s).fold(0.0, f64::max);
    let most = simulation.levels.iter().map(|level| level.stretches).max().unwrap_or(0);
    let chance = format!(
        "share of {stretch:.0} s stretches that miss the SLO, according to the engine model; 0 % \
         means none of {most}"
    );
    let error =
        |place: usize| known_or_dash(simulation.errors.get(place).copied().flatten(), load_text);
    let model = format!(
        "fitted to {} points: median error of TTFT p50 {}, TTFT p99 {}, TPOT p50 {}; {} \
             sequences at once, step times × {:.3}; lengths: {}",
        simulation.points.len(),
        error(0),
        error(1),
        error(2),
        simulation.max_num_seqs.unwrap_or(0),
        simulation.slowness.unwrap_or(1.0),
        escape_control(&simulation.sizes)
    );
    vec![("P(miss)", chance), ("Model", model)]
}

/// The head of the table below it.
pub(super) fn step_title(fan_out: &FanOut) -> String {
    format!(
        "A step of {} calls at once waits for the slowest (ms, at {} req/s a replica)",
        fan_out.calls,
        rate_text(fan_out.at_rps)
    )
}

pub(super) fn step_latency_text(latency: &StepLatency) -> String {
    let about = if latency.interpolated { "about " } else { "" };
    match latency.ms {
        Some(ms) => {
            format!("{about}{} (p{:.2} of one)", cell_number(ms), latency.single_percentile)
        }
        None => format!("unknown (p{:.2} of one)", latency.single_percentile),
    }
}

/// What one replica carries, and what is asked: labels and texts.
pub(super) fn basis_facts(capacity: &Capacity) -> Vec<(&'static str, String)> {
    let Capacity { basis, question, .. } = capacity;
    let above = basis.rejected_rps.map_or_else(
        || "no rate above it was over the limit".to_owned(),
        |rejected| format!("{} over the limit", rate_text(rejected)),
    );
    let limit = basis.crossing_rps.map_or_else(String::new, |at| {
        let ends = goodput_document::number::range_in_brackets(
            basis.crossing_low_rps,
            basis.crossing_high_rps,
            rate_text,
        );
        format!("; the limit is at {}{ends} by the fit", rate_text(at))
    });
    let how = match basis.origin {
        Origin::Given => "given",
        Origin::Run | Origin::Sweep if basis.is_measured_only => "as measured",
        Origin::Run | Origin::Sweep => "confirmed",
    };
    let mut all = vec![(
        "Replica",
        format!("{} req/s {how}, {above}{limit}", rate_text(basis.confirmed_rps)),
    )];
    if let Some(slo) = &basis.slo {
        all.push(("SLO", escape_control(slo)));
    }
    if !basis.path.is_empty() {
        all.push((
            "Measured",
            format!("{} ({})", escape_control(&basis.about), escape_control(&basis.path)),
        ));
    }
    all.push(("Target", format!("{} req/s", rate_text(question.target_rps))));
    all
}
