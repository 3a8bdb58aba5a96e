//! The page of a sweep: the answer, then the curves, then every point.

mod answer;
mod charts;
mod live;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use live::{
    SweepAxes, sweep_axes, sweep_before, sweep_live, sweep_so_far, sweep_step, sweep_words,
};

pub(crate) use answer::{
    answer, bare_percent, knee, long_run, not_asked, shape_words, unknown, words,
};
pub(crate) use charts::{
    Latency, Pair, batch_medians, level_axis, loops, pairs, peak, per_gpu, user_speeds,
};
pub(crate) use tables::{front, good_share, marked, number, standing, stands, within};

use std::fmt::{Error, Write};

use goodput_campaign::curve::{by_level, is_on_curve};
use goodput_campaign::sweep::{
    Axis, Bounded, Level, PointSummary, Purpose, SweepState, SweepSummary,
};
use goodput_stats::about;

use crate::clip::fit;
use crate::number::amount;
use crate::plain::plain;
use crate::text::{WIDTH, field, judgement};

/// The page of a sweep.
pub fn sweep_text(summary: &SweepSummary) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, summary);
    // Foreign words may be longer than a line.
    fit(&page, WIDTH)
}

fn write_page(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    head(page, summary)?;
    answer::block(page, summary);
    judgement(page, summary.verdict, &summary.caveats);
    charts::all(page, summary);
    tables::throughput(page, summary)?;
    charts::users(page, summary);
    charts::batches(page, summary);
    charts::twins(page, summary)?;
    tables::points(page, summary)?;
    page.push('\n');
    answer::shapes(page, summary);
    field(page, "Time", &took(summary));
    Ok(())
}

fn head(page: &mut String, summary: &SweepSummary) -> Result<(), Error> {
    let facts = &summary.sweep;
    writeln!(page, "{}", plain(&facts.target))?;
    writeln!(
        page,
        "model {} · {} · goodput {}\n",
        plain(&facts.model),
        plain(&facts.started),
        plain(&facts.version)
    )?;
    field(page, "Workload", &plain(&facts.workload));
    field(page, "Sweep", &swept(summary));
    if let Some(state) = state(summary) {
        field(page, "State", &state);
    }
    Ok(())
}

/// How many points of what.
pub(crate) fn swept(summary: &SweepSummary) -> String {
    let what = match summary.plan.axis {
        Axis::Rate => "open-loop rates",
        Axis::Concurrency => "users of a closed loop",
    };
    format!("{} points over {what}", on_curve(&summary.points).len())
}

/// How it ended; nothing of one that is complete.
pub(crate) fn state(summary: &SweepSummary) -> Option<String> {
    let state = match summary.sweep.state {
        SweepState::Complete => return None,
        SweepState::Interrupted => "stopped by the user",
        SweepState::TargetLost => "ended because the target went away and did not come back",
        SweepState::NoGoodAnswer => "ended because the target answered, but no request ended well",
        SweepState::Unfinished => "still running, or killed",
    };
    Some(format!("{state}: this is what was measured so far; --resume goes on"))
}

/// How long it took, and how long it was said to take.
pub(crate) fn took(summary: &SweepSummary) -> String {
    let took = duration(summary.sweep.took_s);
    match &summary.sweep.estimated {
        Some(said) if (summary.sweep.took_s / said.seconds).is_finite() => format!(
            "{took}; said before: {} ({:+.0} %)",
            about(said.seconds),
            (summary.sweep.took_s / said.seconds - 1.0) * 100.0
        ),
        _ => took,
    }
}

/// A length of time that was measured.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "–".to_owned(),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A level on its axis: whole users, rates with their digits.
pub(crate) fn level_number(axis: Axis, value: f64) -> String {
    match axis {
        _ if !value.is_finite() || value < 0.0 => "–".to_owned(),
        Axis::Concurrency => format!("{value:.0}"),
        // Steps of a search are small.
        Axis::Rate if value < 9.995 => format!("{value:.2}"),
        Axis::Rate => amount(value),
    }
}

pub(crate) fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    }
}

/// The level of a point, without its unit.
pub(crate) fn level(level: Level) -> String {
    level_number(level.axis(), level.value())
}

/// The same in a column of this axis: levels of the other one are marked.
pub(crate) fn level_on(axis: Axis, of: Level) -> String {
    match of {
        _ if of.axis() == axis => level(of),
        // The column has no room for more.
        Level::Users(users) => format!("C{users}"),
        Level::Rate(_) => format!("{}/s", level(of)),
    }
}

pub(crate) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::WarmUp => "warm-up",
        Purpose::Grid => "grid",
        Purpose::Anchor => "anchor",
        Purpose::Bracket => "bracket",
        Purpose::Bisect => "bisect",
        Purpose::Focus => "focus",
        Purpose::Confirm => "confirm",
        Purpose::Sustain => "sustain",
        Purpose::Twin => "twin",
    }
}

/// An interval in brackets, with a blank before it; nothing where it is not known.
pub(crate) fn range(low: Option<f64>, high: Option<f64>, text: impl Fn(f64) -> String) -> String {
    let end = |value: Option<f64>| value.map_or("…".to_owned(), &text);
    match (low, high) {
        (None, None) => String::new(),
        _ => format!(" ({}–{})", end(low), end(high)),
    }
}

/// A figure by level: the mean of its runs by their requests, inside all of their intervals.
pub(crate) fn pooled(
    points: &[&PointSummary],
    of: impl Fn(&PointSummary) -> Option<Bounded>,
) -> Vec<(f64, Bounded)> {
    let one = |(level, points): (f64, Vec<&PointSummary>)| {
        let runs: Vec<(f64, Bounded)> = points
            .iter()
            .filter_map(|point| Some((point.point.figures.requests.max(1) as f64, of(point)?)))
            .collect();
        let weight: f64 = runs.iter().map(|run| run.0).sum();
        let value = runs.iter().map(|run| run.0 * run.1.value).sum::<f64>() / weight;
        let ends =
            |end: fn(&Bounded) -> Option<f64>| runs.iter().filter_map(move |run| end(&run.1));
        let low = ends(|run| run.low).min_by(f64::total_cmp);
        let high = ends(|run| run.high).max_by(f64::total_cmp);
        (!runs.is_empty()).then_some((level, Bounded { value, low, high }))
    };
    by_level(points).into_iter().filter_map(one).collect()
}

/// The points of the curve.
pub(crate) fn on_curve(points: &[PointSummary]) -> Vec<&PointSummary> {
    points.iter().filter(|point| is_on_curve(point)).collect()
}
