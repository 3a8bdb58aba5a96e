//! What a sweep will do, before it is done.

use goodput_campaign::sweep::{
    Axis, Effort, PointAsk, Purpose, SweepPlan, SweepRehearsal, rehearse_sweep,
};
use goodput_document::number::{duration, trimmed_text};
use goodput_document::render::text::write_field;
use goodput_model::escape_control;

use super::{axis_unit, sweep_estimate};

/// Levels, order, points, SLO, search, and time of a sweep, as `--dry-run` prints them.
pub fn sweep_design(plan: &SweepPlan) -> String {
    let mut page = String::new();
    let SweepRehearsal { points, estimate } = rehearse_sweep(plan);
    write_field(&mut page, "Load", &load_text(plan));
    write_field(&mut page, "Order", &order_text(plan, &points));
    write_field(&mut page, "Points", &lengths_text(plan, &points));
    if let Some(slo) = &plan.slo {
        write_field(&mut page, "SLO", &escape_control(&slo.to_string()));
    }
    write_field(&mut page, "Search", &search_text(plan));
    let time = estimate.map_or_else(
        || "known after the warm-up".to_owned(),
        |estimate| {
            format!(
                "{}, if an answer takes 1 s and the server keeps up; the warm-up tells more",
                sweep_estimate(&estimate)
            )
        },
    );
    write_field(&mut page, "Time", &time);
    page
}

fn load_text(plan: &SweepPlan) -> String {
    let all: Vec<String> = plan.levels.iter().map(|value| trimmed_text(*value)).collect();
    let bounds = [("at least", plan.least), ("at most", plan.most)];
    let bounds = bounds.into_iter().filter_map(|(word, bound)| {
        bound.map(|bound| format!(", {word} {} {}", trimmed_text(bound), axis_unit(plan.axis)))
    });
    let bounds: String = bounds.collect();
    if all.is_empty() {
        let what = match plan.axis {
            Axis::Rate => "rates",
            Axis::Concurrency => "numbers of users",
        };
        return format!("{what} chosen from what is measured{bounds}");
    }
    format!("{} {}", all.join(", "), axis_unit(plan.axis))
}

fn order_text(plan: &SweepPlan, points: &[PointAsk]) -> String {
    let one = |ask: &PointAsk| {
        let at = format!("{} {}", trimmed_text(ask.level.value()), axis_unit(ask.level.axis()));
        match ask.purpose {
            Purpose::WarmUp => format!("warm-up with {at}"),
            Purpose::Anchor => format!("{at} again"),
            Purpose::Twin => format!("{at} as a closed loop"),
            _ => at,
        }
    };
    let mut all: Vec<String> = points.iter().map(one).collect();
    if plan.search {
        all.push("the search".to_owned());
    }
    all.join(", ")
}

fn lengths_text(plan: &SweepPlan, points: &[PointAsk]) -> String {
    let longest = points.iter().filter(|ask| ask.purpose != Purpose::WarmUp);
    let longest = longest.map(|ask| ask.seconds).reduce(f64::max);
    let window = match (plan.point_s, longest) {
        (Some(seconds), _) => duration(seconds),
        (None, Some(seconds)) => format!("{} at most", duration(seconds)),
        (None, None) => "as long as the SLO needs".to_owned(),
    };
    let before = match plan.burn_in_s {
        Some(seconds) => format!("{} s of its load", trimmed_text(seconds)),
        None => "5 x the mean E2E of its load".to_owned(),
    };
    format!("{window} each, after {before}, with {} s of pause", trimmed_text(plan.settle_s))
}

fn search_text(plan: &SweepPlan) -> String {
    let effort = match plan.effort {
        Effort::Quick => "quick",
        Effort::Standard => "standard",
        Effort::Certified => "certified",
    };
    match (plan.search, &plan.slo) {
        (false, _) => "none: only the given levels are measured".to_owned(),
        (true, None) => format!("{effort}: up to the load that the server no longer keeps up with"),
        (true, Some(_)) => {
            let sustained = match plan.sustained_s {
                Some(0.0) => "",
                _ => ", then one sustained run",
            };
            format!(
                "{effort}: bracket, bisect, and confirm the highest load that keeps the \
                 SLO{sustained}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_states_levels_order_and_time() {
        let plan = SweepPlan {
            levels: vec![10.0, 20.0, 30.0],
            search: false,
            point_s: Some(60.0),
            burn_in_s: Some(5.0),
            ..SweepPlan::default()
        };
        let page = sweep_design(&plan);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines[0], "Load        10, 20, 30 req/s");
        let order =
            "Order       warm-up with 16 users, 10 req/s, 30 req/s, 20 req/s, 20 req/s again";
        assert_eq!(lines[1], order);
        assert_eq!(lines[2], "Points      60 s each, after 5 s of its load, with 1 s of pause");
        assert_eq!(lines[3], "Search      none: only the given levels are measured");
        assert!(lines[4].starts_with("Time        about "), "{page}");
        assert!(page.contains("points: given levels"), "{page}");
    }

    #[test]
    fn a_search_says_what_it_looks_for() {
        let slo = Some("p99 ttft < 500ms".parse().unwrap());
        let page = sweep_design(&SweepPlan { slo, most: Some(64.0), ..SweepPlan::default() });
        assert!(page.contains("rates chosen from what is measured, at most 64"), "{page}");
        assert!(page.contains("standard: bracket, bisect, and confirm"), "{page}");
        assert!(page.contains("SLO         p99 ttft < 500ms"), "{page}");
    }
}
