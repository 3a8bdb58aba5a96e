//! The answer in one sentence, what stands next to it, and what a user and a GPU get there.

use goodput_campaign::sweep::{Figures, Goodput, GoodputState, SweepSummary};
use goodput_model::{Slo, SloMetric, SloStatistic, Verdict};

use crate::sweep::{
    axis_unit, gpus_and_label, level_value_text, no_search_reason, points_on_curve, pool_by_level,
    unknown_reason, without_interval,
};
use goodput_document::number::range_in_brackets;
use goodput_document::number::{amount, cell_number};
use goodput_model::escape_control;

/// The answer in one sentence, without its verdict.
pub(crate) fn answer_sentence(summary: &SweepSummary) -> String {
    let Some(goodput) = &summary.goodput else {
        return match summary.curve.knee {
            Some(knee) => format!(
                "{} req/s is the highest rate that the server delivers without a growing queue; \
                 goodput was {}",
                level_value_text(summary.plan.axis, knee.level),
                no_search_reason(summary)
            ),
            None => format!("Goodput was {}", no_search_reason(summary)),
        };
    };
    capitalize(&answer_in_sentence(summary, goodput))
}

/// The answer to what was asked, as it stands inside a sentence.
pub(super) fn answer_in_sentence(summary: &SweepSummary, goodput: &Goodput) -> String {
    let slo = slo_text(summary.plan.slo.as_ref(), &goodput.slo);
    let answer = unknown_reason(goodput, &slo)
        .unwrap_or_else(|| format!("{} with {slo}", confirmed_level_text(goodput)));
    match summary.verdict {
        // A void result has no good news.
        Verdict::Void => format!("these numbers are void: {answer}"),
        _ => answer,
    }
}

/// The level, and the interval in which the limit lies: `22.4 req/s (21.6–23.1)`.
pub(crate) fn confirmed_level_text(goodput: &Goodput) -> String {
    let number = |value: f64| level_value_text(goodput.axis, value);
    let least = if goodput.state == GoodputState::AtLeast { "at least " } else { "" };
    let ends = limit_interval(goodput)
        .map_or(String::new(), |(low, high)| range_in_brackets(low, high, number));
    let level = goodput.level().map_or("–".to_owned(), number);
    let rate = match goodput.rps() {
        Some(rate) if axis_unit(goodput.axis) != "req/s" => format!(", {} req/s,", amount(rate)),
        _ => String::new(),
    };
    let how = if goodput.state == GoodputState::Measured { " as measured" } else { "" };
    format!("{least}{level} {}{ends}{rate}{how}", axis_unit(goodput.axis))
}

/// Where the limit lies: the interval of the crossing, else from what was confirmed to what was
/// rejected.
pub(super) fn limit_interval(goodput: &Goodput) -> Option<(Option<f64>, Option<f64>)> {
    if goodput.state != GoodputState::Found {
        return None;
    }
    let seen = || Some((Some(goodput.confirmed?), Some(goodput.rejected?)));
    goodput.crossing.map(|at| (at.low, at.high)).or_else(seen)
}

/// What was promised, as people write it: `p99 TTFT < 500 ms and p99 TPOT < 50 ms`.
pub(crate) fn slo_text(slo: Option<&Slo>, text: &str) -> String {
    let Some(slo) = slo else { return escape_control(text) };
    let terms: Vec<String> = slo
        .terms
        .iter()
        .map(|term| {
            let text = term.to_string();
            // Values and units apart, names as everywhere on the page.
            let (what, limit) = text.rsplit_once(' ').unwrap_or(("", &text));
            if term.limit.is_linear() {
                return escape_control(&text);
            }
            let name = term.metric.name();
            let shown = match term.metric {
                SloMetric::Request(_) => name.to_uppercase(),
                _ => name.to_owned(),
            };
            let sign = what.rsplit_once(' ').map_or("", |(_, sign)| sign);
            let statistic = match term.statistic {
                SloStatistic::Plain => String::new(),
                SloStatistic::Mean => "mean ".to_owned(),
                SloStatistic::Percentile(percent) => format!("p{percent} "),
            };
            let digits = limit.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
            let suffix = &limit[digits.len()..];
            let gap = if suffix.is_empty() { "" } else { " " };
            format!("{statistic}{shown} {sign} {digits}{gap}{suffix}")
        })
        .collect();
    match terms.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => escape_control(text),
    }
}

/// What a user and a GPU get at the answer.
pub(crate) fn speeds_at_answer(summary: &SweepSummary) -> Option<String> {
    let confirmed = summary.goodput.as_ref()?.level()?;
    let points = points_on_curve(&summary.points);
    let at = |of: fn(&Figures) -> Option<f64>| {
        pool_by_level(&points, |point| without_interval(of(&point.point.figures)))
            .into_iter()
            .find(|(level, _)| (level - confirmed).abs() <= 1e-6 * confirmed)
            .map(|(_, found)| found.value)
    };
    let (gpus, per) = gpus_and_label(summary);
    let mut parts = Vec::new();
    if let Some(tps) = at(|figures| figures.output_tps) {
        parts.push(format!("{} output tok/s, {} {per}", amount(tps), amount(tps / gpus)));
    }
    let figure = |text: Option<f64>, before: &str, unit: &str| {
        text.map(|value| format!("{before}{} {unit}", cell_number(value)))
    };
    parts.extend(figure(
        at(|figures| figures.user_tps.p50.map(|p50| p50.value)),
        "",
        "tok/s for each user (median)",
    ));
    parts.extend(figure(at(|figures| figures.in_flight), "", "requests in flight"));
    parts.extend(figure(
        at(|figures| figures.joules_per_output_token),
        "",
        "J for each output token",
    ));
    (!parts.is_empty()).then(|| parts.join("; "))
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
