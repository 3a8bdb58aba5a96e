//! The noise floor of this rig, kept from one comparison to the next.

use std::path::PathBuf;

use goodput_campaign::compare::{
    ComparedMetric, Design, Floor, Gate, MetricScale, Quantity, find_metric, tested_metrics,
    text_fingerprint,
};
use goodput_campaign::sweep::Level;

use crate::calibrate::{self, read_state, state_folder};
use crate::error::Failed;
use crate::events::Observer;
use crate::saved::to_json;

/// The floor that was measured from this machine on this target (URL without secrets, model), if
/// any.
fn load_floor(target: &str, model: &str, observer: &dyn Observer) -> Option<Floor> {
    let machine = calibrate::machine_text();
    let path = rig_file(&machine, target, model)?;
    let bytes = read_state(&path)?;
    let ignored = |why: &str| {
        let path = path.display();
        observer.warn(format!("ignoring the noise floor in {path}: {why}"));
    };
    let mut floor = serde_json::from_slice::<Floor>(&bytes)
        .map_err(|error| ignored(&error.to_string()))
        .ok()?;
    if floor.schema != Floor::SCHEMA {
        ignored("another version wrote it");
        return None;
    }
    if (&*floor.machine, &*floor.target, &*floor.model) != (&*machine, target, model) {
        ignored("it belongs to another target or machine");
        return None;
    }
    floor.sd.retain(|_, sd| sd.is_finite() && *sd >= 0.0);
    Some(floor)
}

/// Keeps it for later comparisons; in which file.
pub(super) fn save_floor(floor: &Floor) -> Result<PathBuf, Failed> {
    let path = floor_path(floor)?;
    // What a link leads to is replaced, not the link.
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let (folder, name) = (path.parent(), path.file_name().and_then(|name| name.to_str()));
    let written = folder.zip(name).map_or(Ok(()), |(folder, name)| {
        goodput_record::replace_in_folder(folder, name, to_json(floor).as_bytes())
    });
    written.map_err(|error| Failed::usage(error.to_string()))?;
    Ok(path)
}

/// The file that keeps it, in a folder that is there.
fn floor_path(floor: &Floor) -> Result<PathBuf, Failed> {
    let path = rig_file(&floor.machine, &floor.target, &floor.model).ok_or_else(|| {
        Failed::usage("cannot save the noise floor: neither XDG_STATE_HOME nor HOME is set")
            .hint("set one of them")
    })?;
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.map_err(|error| Failed::usage(format!("cannot write `{}`: {error}", path.display())))?;
    Ok(path)
}

/// A file for each rig.
fn rig_file(machine: &str, target: &str, model: &str) -> Option<PathBuf> {
    let rig = [machine, target, model].join("\n");
    // Two rigs of one fingerprint would take each other's file, and tell by what it holds.
    Some(state_folder()?.join(format!("floor-{}.json", text_fingerprint(&rig))))
}

/// What is measured, as far as chance depends on it; load and time are the design's.
pub struct Rig<'a> {
    /// URL without secrets.
    pub target: &'a str,
    /// The model that answers.
    pub model: &'a str,
    /// In one line.
    pub workload: &'a str,
    /// Whether goodput and attainment are known.
    pub has_slo: bool,
    /// Whether the user chose the margin.
    pub is_margin_chosen: bool,
}

/// The noise floor of this rig, if it was measured like this comparison. Margins that the user did
/// chose rise to it; margins that the user chose, and gates, are refused below it.
pub fn apply_known_floor(
    design: &mut Design,
    rig: &Rig<'_>,
    observer: &dyn Observer,
) -> Result<Option<Floor>, Failed> {
    let Some(floor) = load_floor(rig.target, rig.model, observer) else { return Ok(None) };
    if let Some(why) = floor_mismatch(&floor, design, rig.workload) {
        observer.notice(format!("ignoring the noise floor of this rig: {why}"));
        return Ok(None);
    }
    // A gate is not a margin: default margins rise with and without gates.
    if let Some(raised) = raise_margins(design, &floor, rig.has_slo, rig.is_margin_chosen) {
        observer.notice(raised);
    }
    check_margins(design, &floor, rig.has_slo)?;
    Ok(Some(floor))
}

/// The load of a floor, in one line.
pub fn loads_text(levels: &[Level]) -> String {
    let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
    levels.join(", ")
}

/// Why a noise floor does not apply to this comparison.
fn floor_mismatch(floor: &Floor, design: &Design, workload: &str) -> Option<String> {
    let is_given = !design.levels.is_empty() || design.quantity == Quantity::Goodput;
    if !is_given {
        return Some(format!(
            "it was measured at {}, and this comparison has no fixed load",
            floor.load
        ));
    }
    let load = loads_text(&design.levels);
    if load != floor.load {
        return Some(format!("it was measured at {}, and this is {load}", floor.load));
    }
    if workload != floor.workload {
        return Some(format!("it was measured with {}, and this is {workload}", floor.workload));
    }
    // The same requests do not take quite the same time twice. A tenth of the time is a twentieth of
    // the spread, and a floor is not known that well.
    let is_as_long = (floor.run_s / design.run_s).ln().abs() <= 0.1;
    (!is_as_long).then(|| {
        format!(
            "it was measured in runs of {} s, and these runs take {} s",
            floor.run_s, design.run_s
        )
    })
}

/// Raises default margins to the floors of their metrics; none if all lie above.
fn raise_margins(
    design: &mut Design,
    floor: &Floor,
    has_slo: bool,
    is_chosen: bool,
) -> Option<String> {
    let mut raised = Vec::new();
    for metric in metrics_to_test(design, has_slo) {
        let margin = design.margin_of(&metric.name);
        let is_choice = is_chosen && margin == design.margin;
        let noise = floor.change_of(&metric.name).filter(|noise| !is_choice && margin < *noise);
        let Some(noise) = noise else { continue };
        // To a tenth of a percent, and always above what was found. No file holds what is infinite.
        let margin = (((noise * 1e3).floor() + 1.0) / 1e3).min(10.0);
        raised.push(format!("{} {:.1} {}", metric.title, margin * 100.0, unit_text(&metric)));
        design.margins.insert(metric.name, margin);
    }
    (!raised.is_empty()).then(|| {
        format!(
            "margins set to the noise floor of this rig: {} ({}); --margin sets one for all metrics",
            raised.join(", "),
            floor_age_text(floor)
        )
    })
}

/// Refuses margins and gates that this rig cannot tell from chance.
fn check_margins(design: &Design, floor: &Floor, has_slo: bool) -> Result<(), Failed> {
    let margin = |metric: ComparedMetric| {
        let margin = design.margin_of(&metric.name);
        let what = format!("a margin of {:.2} {}", 100.0 * margin, unit_text(&metric));
        (metric, margin, what)
    };
    let limit =
        |gate: &Gate| Some((find_metric(&gate.metric)?, gate.change, format!("the gate `{gate}`")));
    let margins = metrics_to_test(design, has_slo).into_iter().map(margin);
    let asked = design.gates.iter().filter_map(limit).chain(margins);
    let below = |(metric, limit, what): (ComparedMetric, f64, String)| {
        let noise = floor.change_of(&metric.name).filter(|noise| limit.abs() < *noise)?;
        Some((noise, metric, what))
    };
    // The largest says what would do for all.
    let worst = asked.filter_map(below).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((noise, metric, what)) = worst else { return Ok(()) };
    let message = format!(
        "{what} is below the noise floor of {} on this rig: two measurements of one server differ by {:.2} {} by chance ({})",
        metric.title,
        100.0 * noise,
        unit_text(&metric),
        floor_age_text(floor)
    );
    let hint = format!(
        "use {:.1} % or more, or measure longer runs (--duration) and their noise floor with --aa; more blocks do not lower it",
        ((1e3 * noise).floor() + 1.0) / 10.0
    );
    Err(Failed::usage(message).hint(hint))
}

fn unit_text(metric: &ComparedMetric) -> &'static str {
    match metric.scale {
        MetricScale::Ratio => "%",
        MetricScale::Difference => "points",
    }
}

/// What is tested of runs like these.
fn metrics_to_test(design: &Design, has_slo: bool) -> Vec<ComparedMetric> {
    let is_there = |name: &String| has_slo || !["goodput_rps", "attainment"].contains(&&**name);
    tested_metrics(design)
        .iter()
        .filter(|name| is_there(name))
        .filter_map(|name| find_metric(name))
        .collect()
}

fn floor_age_text(floor: &Floor) -> String {
    format!("measured {} over {} blocks of {} s", floor.date, floor.blocks, floor.run_s)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use goodput_campaign::compare::Limit;

    use super::*;

    fn floor(sd: &[(&str, f64)]) -> Floor {
        Floor {
            schema: Floor::SCHEMA.to_owned(),
            date: "2026-11-14T10:00:00Z".to_owned(),
            machine: "m".to_owned(),
            target: "http://a:8000".to_owned(),
            model: "x".to_owned(),
            load: String::new(),
            workload: String::new(),
            blocks: 8,
            run_s: 30.0,
            suspect_runs: 0,
            sd: sd.iter().map(|(name, sd)| ((*name).to_owned(), *sd)).collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn a_margin_below_the_floor_is_refused_and_above_it_is_not() {
        let design = Design { margin: 0.03, ..Design::default() };
        // ln 1.03 is 0.02956.
        check_margins(&design, &floor(&[("ttft_p99", 0.0295)]), false).unwrap();
        assert!(check_margins(&design, &floor(&[("ttft_p99", 0.0297)]), false).is_err());
        // What is not tested may be as noisy as it likes.
        check_margins(&design, &floor(&[("e2e_p99", 0.5)]), false).unwrap();
        let refused =
            check_margins(&design, &floor(&[("ttft_p50", 0.04), ("ttft_p99", 0.041)]), false)
                .unwrap_err();
        let said = refused.to_string();
        for part in ["3.00 %", "4.19 %", "p99 TTFT", "2026-11-14", "8 blocks of 30 s"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_gate_is_held_against_the_floor_of_its_own_metric() {
        let gate = |change| Gate { metric: "ttft_p99".to_owned(), limit: Limit::Below, change };
        let noisy = floor(&[("ttft_p99", 0.04), ("tpot_p99", 0.9)]);
        // Default margins lie above the floor by then.
        let with = |change| {
            let mut design = Design { gates: vec![gate(change)], ..Design::default() };
            assert!(
                raise_margins(&mut design, &noisy, false, false)
                    .unwrap()
                    .contains("p99 TTFT 4.1 %")
            );
            assert_eq!(design.margins, [("ttft_p99".to_owned(), 0.041)].into());
            design
        };
        check_margins(&with(0.05), &noisy, false).unwrap();
        check_margins(&with(-0.05), &noisy, false).unwrap();
        assert!(check_margins(&with(0.03), &noisy, false).is_err());
        assert!(check_margins(&with(-0.03), &noisy, false).is_err());
        // As a change it is e^0.04 - 1, which is 4.08 %.
        assert!(check_margins(&with(0.0405), &noisy, false).is_err());
        check_margins(&with(0.041), &noisy, false).unwrap();
        // A margin that the user chose is refused next to a gate too.
        assert!(check_margins(&Design { margins: [].into(), ..with(0.5) }, &noisy, false).is_err());
    }

    #[test]
    fn a_noisy_metric_raises_its_own_margin_and_no_other() {
        let mut design = Design { margin: 0.03, ..Design::default() };
        let noisy = floor(&[
            ("ttft_p99", 0.2),
            ("ttft_p50", 0.05),
            ("tpot_p50", 0.01),
            ("e2e_p99", 0.9),
            ("attainment", 0.9),
        ]);
        let said = raise_margins(&mut design, &noisy, false, false).unwrap();
        // e^0.2 - 1 is 22.14 %, e^0.05 - 1 is 5.127 %.
        let expected = [("ttft_p50", 0.052), ("ttft_p99", 0.222)];
        assert_eq!(design.margins, expected.map(|(name, at)| (name.to_owned(), at)).into());
        assert_eq!((design.margin, design.margin_of("tpot_p50")), (0.03, 0.03));
        assert!(said.contains("p99 TTFT 22.2 %") && said.contains("p50 TTFT 5.2 %"), "{said}");
        // What was raised lies above the floor, and is not raised twice.
        check_margins(&design, &noisy, false).unwrap();
        assert_eq!(raise_margins(&mut design, &noisy, false, false), None);
        // What the user chose is refused instead.
        let mut chosen = Design { margin: 0.03, ..Design::default() };
        assert_eq!(raise_margins(&mut chosen, &noisy, false, true), None);
        assert!(check_margins(&chosen, &noisy, false).is_err());
        // The margin of failures is fixed at one point.
        let failing = floor(&[("error_share", 0.02)]);
        raise_margins(&mut chosen, &failing, false, true).unwrap();
        assert_eq!((chosen.margin_of("error_share"), chosen.margin_of("ttft_p99")), (0.021, 0.03));
        check_margins(&chosen, &failing, false).unwrap();
    }

    #[test]
    fn a_raised_margin_is_never_below_its_floor() {
        for thousandth in 1..700 {
            for sd in [f64::from(thousandth) / 1e3, (f64::from(thousandth) / 1e3).ln_1p()] {
                let mut design = Design { margin: 1e-6, ..Design::default() };
                let noisy = floor(&[("ttft_p99", sd), ("attainment", sd)]);
                raise_margins(&mut design, &noisy, true, false).unwrap();
                check_margins(&design, &noisy, true).unwrap();
            }
        }
    }

    #[test]
    fn a_floor_of_something_else_is_left_out() {
        let here = Floor {
            load: "8/s".to_owned(),
            workload: "chat".to_owned(),
            ..floor(&[("ttft_p99", 0.2)])
        };
        let design = |levels: &[f64], run_s| Design {
            levels: levels.iter().map(|rate| Level::Rate(*rate)).collect(),
            run_s,
            ..Design::default()
        };
        assert_eq!(floor_mismatch(&here, &design(&[8.0], 30.0), "chat"), None);
        assert_eq!(floor_mismatch(&here, &design(&[8.0], 30.2), "chat"), None);
        for (levels, run_s, workload, says) in [
            (&[16.0][..], 30.0, "chat", "16/s"),
            (&[8.0, 16.0], 30.0, "chat", "8/s, 16/s"),
            (&[], 30.0, "chat", "no fixed load"),
            (&[8.0], 30.0, "code", "code"),
            (&[8.0], 60.0, "chat", "60 s"),
            (&[8.0], 0.0, "chat", "0 s"),
        ] {
            let why = floor_mismatch(&here, &design(levels, run_s), workload).unwrap();
            assert!(why.contains(says), "{says}: {why}");
        }
        // Searches have no load of their own.
        let search = Design { quantity: Quantity::Goodput, ..design(&[], 30.0) };
        let of_search = Floor { load: String::new(), ..here.clone() };
        assert_eq!(floor_mismatch(&of_search, &search, "chat"), None);
        assert!(floor_mismatch(&of_search, &design(&[], 30.0), "chat").is_some());
        assert!(floor_mismatch(&here, &search, "chat").is_some());
    }
}
