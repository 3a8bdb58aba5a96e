//! What a sweep says in words: the answer, the knee, the long run, the shape.

use goodput_campaign::curve::{Kneedle, Usl, by_level};
use goodput_campaign::sweep::{
    Axis, Goodput, GoodputState, PointStanding, Sustained, SweepSummary,
};
use goodput_model::Verdict;

use super::kept;
use super::{axis_unit, level_value_text, points_on_curve, standing_text};
use goodput_document::number::{amount, cell_number, count, percent};
use goodput_document::number::{duration, range_in_brackets};
use goodput_model::escape_control;

/// Answer, knee and sustained test, as names and texts; what goes on with the text before it has no name.
pub(crate) fn answer_words(summary: &SweepSummary) -> Vec<(&'static str, String)> {
    let mut words = vec![("Goodput", answer_text(summary))];
    words.extend(summary.goodput.as_ref().and_then(fitted_limit).map(|more| ("", more)));
    words.extend(kept::tokens_line(summary).map(|text| ("In tokens", text)));
    words.extend(kept::terms_line(summary).map(|text| ("Each term", text)));
    words.extend(kept::judged_afterwards_note(summary).map(|text| ("Judged", text)));
    words.push(("Knee", knee_text(summary)));
    words.extend(ttft_bend(summary).map(|text| ("TTFT bend", text)));
    let sustained = summary.sustained.as_ref();
    words.extend(sustained.map(|long| ("Sustained", sustained_text(long, summary.plan.axis))));
    words
}

/// Why there is not an answer.
pub(crate) fn no_search_reason(summary: &SweepSummary) -> &'static str {
    match summary.plan.slo {
        None => "not searched for: no --slo was given",
        Some(_) => "not searched for",
    }
}

/// The answer, or why there is none.
pub(crate) fn answer_text(summary: &SweepSummary) -> String {
    let found = summary.goodput.as_ref();
    found.map_or_else(
        || no_search_reason(summary).to_owned(),
        |goodput| goodput_sentence(goodput, summary.verdict),
    )
}

/// The answer in one sentence.
pub(crate) fn goodput_sentence(goodput: &Goodput, verdict: Verdict) -> String {
    let slo = escape_control(&goodput.slo);
    let known = || match goodput.state {
        GoodputState::Measured => measured_text(goodput),
        _ => confirmed_text(goodput),
    };
    let answer = unknown_reason(goodput, &slo).unwrap_or_else(known);
    match verdict {
        // A void result has no good news.
        Verdict::Void => format!("NOT SHOWN: these numbers are void: {answer}"),
        Verdict::Suspect => format!("{answer} (suspect: read the caveats)"),
        Verdict::Valid => answer,
    }
}

/// Why the goodput is unknown; none if it is known.
pub(crate) fn unknown_reason(goodput: &Goodput, slo: &str) -> Option<String> {
    match goodput.state {
        GoodputState::Found | GoodputState::AtLeast | GoodputState::Measured => None,
        GoodputState::Unreachable => {
            Some(format!("no load keeps {slo}{}", reason_text(goodput, ": ")))
        }
        GoodputState::Unclear => {
            let known = match goodput.confirmed {
                Some(level) => format!(
                    "; {} {} was confirmed",
                    level_value_text(goodput.axis, level),
                    axis_unit(goodput.axis)
                ),
                None => String::new(),
            };
            let why = reason_text(goodput, ", because ");
            Some(format!("undecided what load keeps {slo}{why}{known}"))
        }
    }
}

/// Why, after these words; nothing if no reason is given.
fn reason_text(goodput: &Goodput, before: &str) -> String {
    match goodput.because.as_str() {
        "" => String::new(),
        why => format!("{before}{}", escape_control(why)),
    }
}

fn confirmed_text(goodput: &Goodput) -> String {
    let axis = goodput.axis;
    let number = |level: Option<f64>| level.map_or("–".to_owned(), |v| level_value_text(axis, v));
    let level = number(goodput.confirmed);
    let ends = match goodput.state {
        GoodputState::AtLeast if goodput.because.is_empty() => {
            format!("({level} confirmed, nothing above it was over the limit)")
        }
        GoodputState::AtLeast => format!("({level} confirmed{})", reason_text(goodput, "; ")),
        _ => match goodput.rejected {
            Some(_) => format!("({level} confirmed, {} over the limit)", number(goodput.rejected)),
            None => format!("({level} confirmed, no load above it missed beyond doubt)"),
        },
    };
    let least = if goodput.state == GoodputState::AtLeast { "at least " } else { "" };
    let rate = match (axis, goodput.confirmed_rps) {
        (Axis::Concurrency, Some(rate)) => format!("{} req/s, ", amount(rate)),
        _ => String::new(),
    };
    let share = goodput.attainment.map_or("unknown".to_owned(), |share| {
        let ends = range_in_brackets(goodput.attainment_low, goodput.attainment_high, bare_percent);
        format!("{}{ends}", percent(share))
    });
    let risk = match (goodput.state, goodput.over_claim_risk) {
        (GoodputState::Found, Some(risk)) => {
            format!(
                "; the limit is more than 3 % below it with a probability of {}",
                percent_text(risk)
            )
        }
        (GoodputState::Found, None) => {
            "; the probability that the limit is below it is unknown".to_owned()
        }
        _ => String::new(),
    };
    let runs = if goodput.runs == 1 { "run" } else { "runs" };
    // Without a fit there is only what was seen.
    let seen = goodput.seen_attainment.filter(|seen| goodput.attainment != Some(*seen));
    let seen = seen.map_or(String::new(), |share| format!(" by the fit, {}", percent(share)));
    format!(
        "{least}{level} {} {ends} with {}: {rate}attainment {share}{seen} in {} {runs} with {} requests{risk}",
        axis_unit(axis),
        escape_control(&goodput.slo),
        goodput.runs,
        count(goodput.requests)
    )
}

/// A load that was measured to keep the SLO, without independent runs that confirm it.
fn measured_text(goodput: &Goodput) -> String {
    let axis = goodput.axis;
    let number = |level: Option<f64>| level.map_or("–".to_owned(), |v| level_value_text(axis, v));
    let over = match goodput.rejected {
        Some(_) => format!("{} over the limit", number(goodput.rejected)),
        None => "no load above it missed beyond doubt".to_owned(),
    };
    let share = goodput.attainment.map_or("unknown".to_owned(), |share| {
        let ends = range_in_brackets(goodput.attainment_low, goodput.attainment_high, bare_percent);
        format!("{}{ends}", percent(share))
    });
    let rate = match (axis, goodput.rps()) {
        (Axis::Concurrency, Some(rate)) => format!("{} req/s, ", amount(rate)),
        _ => String::new(),
    };
    let runs = if goodput.runs == 1 { "run" } else { "runs" };
    format!(
        "{} {} as measured (not confirmed by independent runs; {over}) with {}: {rate}attainment \
         {share} in {} {runs} with {} requests",
        number(goodput.level()),
        axis_unit(axis),
        escape_control(&goodput.slo),
        goodput.runs,
        count(goodput.requests)
    )
}

/// A chance in whole percent: more digits would promise too much.
pub(crate) fn percent_text(chance: f64) -> String {
    match chance.clamp(0.0, 1.0) * 100.0 {
        percent if percent < 1.0 => "below 1 %".to_owned(),
        percent => format!("about {percent:.0} %"),
    }
}

/// A share in percent without its unit.
pub(crate) fn bare_percent(share: f64) -> String {
    percent(share).trim_end_matches(" %").to_owned()
}

/// What limits the answer, and where a fit puts it.
fn fitted_limit(goodput: &Goodput) -> Option<String> {
    let limit = match (goodput.state, goodput.because.as_str()) {
        (GoodputState::Found | GoodputState::Measured, why) if !why.is_empty() => {
            Some(escape_control(why))
        }
        _ => None,
    };
    let crossing = goodput.crossing.map(|at| {
        let number = |value: f64| level_value_text(goodput.axis, value);
        let ends = range_in_brackets(at.low, at.high, number);
        format!(
            "a fit through the points near it puts the limit at {}{ends} {}",
            number(at.value),
            axis_unit(goodput.axis)
        )
    });
    let all: Vec<String> = limit.into_iter().chain(crossing).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

pub(crate) fn knee_text(summary: &SweepSummary) -> String {
    let axis = summary.plan.axis;
    match summary.curve.knee {
        _ if axis == Axis::Concurrency => match summary.curve.users_knee {
            Some(users) => format!(
                "{} users give at least 95 % of the highest measured throughput; with more, answers \
                 take longer and hardly more of them complete",
                level_value_text(axis, users)
            ),
            None => "none: the highest number of users still gives more throughput".to_owned(),
        },
        None => match short_levels_text(summary) {
            Some(levels) => format!("undecided: {levels} were too short to judge"),
            None => "none found: no level delivered 99 %".to_owned(),
        },
        Some(knee) => {
            let beyond = match (knee.beyond, short_levels_text(summary)) {
                (Some(beyond), _) => format!("; not at {}", level_value_text(axis, beyond)),
                (None, Some(levels)) => format!("; {levels} were too short to judge"),
                (None, None) => "; no level was above it".to_owned(),
            };
            format!(
                "{} req/s is the highest rate that the server delivers (99 %) without a growing \
                 queue{beyond}",
                level_value_text(axis, knee.level)
            )
        }
    }
}

/// Where the median TTFT bends upward; none if it does not.
fn ttft_bend(summary: &SweepSummary) -> Option<String> {
    let axis = summary.plan.axis;
    let level = summary.curve.ttft_bend?;
    Some(format!(
        "the median TTFT bends upward at {} {} (Kneedle; a description)",
        level_value_text(axis, level),
        axis_unit(axis)
    ))
}

/// Levels next to the knee of which too little was seen; none if there are none.
fn short_levels_text(summary: &SweepSummary) -> Option<String> {
    let number = |level: &f64| level_value_text(summary.plan.axis, *level);
    let levels: Vec<String> = summary.curve.too_short.iter().map(number).collect();
    match levels.split_last()? {
        (last, []) => Some(last.clone()),
        (last, rest) => Some(format!("{} and {last}", rest.join(", "))),
    }
}

pub(crate) fn sustained_text(sustained: &Sustained, axis: Axis) -> String {
    let outcome = match &sustained.standing {
        PointStanding::Met => "kept the SLO".to_owned(),
        other => standing_text(other),
    };
    let drift = if sustained.drift.is_empty() {
        "no drift".to_owned()
    } else {
        sustained.drift.iter().map(|text| escape_control(text)).collect::<Vec<_>>().join("; ")
    };
    format!(
        "{} at {} {}: {outcome}; {drift}",
        duration(sustained.seconds),
        level_value_text(axis, sustained.level),
        axis_unit(axis)
    )
}

/// Kneedle and USL, as descriptions: names and texts.
pub(crate) fn shape_words(summary: &SweepSummary) -> [(&'static str, String); 2] {
    let used = points_on_curve(&summary.points);
    let levels = by_level(&used).len();
    let kneedle = match &summary.curve.kneedle {
        Some(found) => kneedle_text(found, summary.plan.axis),
        None if levels < 5 => format!("needs 5 levels, has {levels}"),
        None => format!("no bend in throughput over {levels} levels"),
    };
    let most = used.iter().filter_map(|point| point.point.figures.in_flight).max_by(f64::total_cmp);
    let usl = match &summary.curve.usl {
        Some(usl) => usl_text(usl, most.unwrap_or(f64::INFINITY)),
        None => "no fit: it needs 6 levels at which the server keeps up".to_owned(),
    };
    [("Kneedle", kneedle), ("USL", usl)]
}

fn kneedle_text(found: &Kneedle, axis: Axis) -> String {
    let number = |value: f64| level_value_text(axis, value);
    let few = if found.points < 8 { ", unstable below 8" } else { "" };
    format!(
        "throughput bends at {}{} {} (a description, from {} levels{few})",
        number(found.level.value),
        range_in_brackets(found.level.low, found.level.high, number),
        axis_unit(axis),
        found.points
    )
}

fn usl_text(usl: &Usl, most: f64) -> String {
    let peak = match usl.peak {
        None => "no peak near what was measured".to_owned(),
        Some(peak) => {
            let beyond = if peak.value > most { ", beyond what was measured" } else { "" };
            let ends = range_in_brackets(peak.low, peak.high, amount);
            format!("peak at {}{ends} in flight{beyond}", amount(peak.value))
        }
    };
    format!(
        "γ {} req/s, α {:.4}, β {:.6}: {peak} (a description, from {} points, R² {:.2})",
        cell_number(usl.gamma),
        usl.alpha,
        usl.beta,
        usl.points,
        usl.r2
    )
}
