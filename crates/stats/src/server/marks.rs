//! What happened when, and levels over the whole run.

use std::collections::BTreeMap;

use goodput_model::{HealthSample, Nanos, Signal};

use super::looks::ServerLooks;
use super::points::CombinedPoint;
use crate::summary::{Mark, TimelinePoint};

/// A KV cache as full as this leaves no room for the next request.
pub(crate) const KV_FULL: f64 = 0.95;
/// Points of a timeline, and marks of a kind.
const MOST: usize = 120;
/// A queue that is gone for no more looks than this is the same queue.
const GONE: usize = 3;

/// What one look, or the time from the look before, says about a mark.
type Step = (Nanos, Nanos, Option<f64>);

/// In order of their beginnings.
pub(super) fn find_marks(looks: &ServerLooks<'_>, points: &[CombinedPoint]) -> Vec<Mark> {
    let level = |of: fn(&CombinedPoint) -> Option<f64>| {
        points.iter().map(move |point| (point.at, point.at, of(point)))
    };
    let full = |point: &CombinedPoint| point.fullest.filter(|usage| *usage >= KV_FULL);
    let waiting = |point: &CombinedPoint| {
        point.levels.get(&Signal::Waiting).copied().filter(|waiting| *waiting > 0.0)
    };
    let mut marks = join_neighbors("kv_pressure", level(full), 0, f64::max);
    marks.extend(join_neighbors("queue", level(waiting), GONE, f64::max));
    let counted = [("preemptions", Signal::Preemptions), ("rejections", Signal::Rejections)];
    for (kind, signal) in counted {
        marks.extend(join_neighbors(kind, growth_steps(points, signal), 0, |a, b| a + b));
    }
    for endpoint in looks.asked_endpoints() {
        let asked = looks.scrapes_of(endpoint).iter();
        let failed = asked
            .clone()
            .map(|scrape| (scrape.at, scrape.at, scrape.outcome.is_err().then_some(1.0)));
        marks.extend(join_neighbors("no_answer", failed, 0, |a, b| a + b));
        let anew = asked.filter(|_| !looks.is_mixed(endpoint)).filter_map(|scrape| {
            let resets = scrape.outcome.as_ref().ok()?.resets;
            Some((scrape.at, scrape.at, (resets > 0).then(|| f64::from(resets))))
        });
        marks.extend(join_neighbors("restart", anew, 0, |a, b| a + b));
    }
    marks.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    marks
}

/// The growth of a total from each point to the next.
fn growth_steps(points: &[CombinedPoint], signal: Signal) -> impl Iterator<Item = Step> {
    points.windows(2).filter_map(move |pair| {
        let [before, after] = pair else { return None };
        let total = |point: &CombinedPoint| point.totals.get(&signal).copied().unwrap_or(0.0);
        let grown = total(after) - total(before);
        Some((before.at, after.at, (grown > 0.0).then_some(grown)))
    })
}

/// Neighbors with at most this many steps between them become one mark; so do marks that are closer
/// than a timeline can show.
fn join_neighbors(
    kind: &str,
    steps: impl Iterator<Item = Step>,
    between: usize,
    with: impl Fn(f64, f64) -> f64,
) -> Vec<Mark> {
    let (mut marks, mut passed) = (Vec::<Mark>::new(), 0);
    for (start, end, value) in steps {
        let Some(value) = value else {
            passed += 1;
            continue;
        };
        match marks.last_mut().filter(|_| passed <= between) {
            Some(mark) => (mark.end_s, mark.value) = (end.as_secs(), with(mark.value, value)),
            None => marks.push(Mark {
                kind: kind.to_owned(),
                start_s: start.as_secs(),
                end_s: end.as_secs(),
                value,
            }),
        }
        passed = 0;
    }
    thin_marks(marks, with)
}

fn thin_marks(marks: Vec<Mark>, with: impl Fn(f64, f64) -> f64) -> Vec<Mark> {
    let ends = marks.first().zip(marks.last());
    let apart = ends.map_or(0.0, |(first, last)| (last.end_s - first.start_s) / MOST as f64);
    if marks.len() <= MOST {
        return marks;
    }
    let mut fewer: Vec<Mark> = Vec::new();
    for mark in marks {
        match fewer.last_mut().filter(|last| mark.start_s - last.end_s <= apart) {
            Some(last) => (last.end_s, last.value) = (mark.end_s, with(last.value, mark.value)),
            None => fewer.push(mark),
        }
    }
    fewer
}

/// Levels over the whole run: means, and the longest queue.
pub(super) fn level_timeline(
    points: &[CombinedPoint],
    samples: &[HealthSample],
) -> Vec<TimelinePoint> {
    let powers = power_by_gpu(samples);
    let mut timeline = Vec::new();
    let mut before: Option<&CombinedPoint> = None;
    for bin in points.chunks(points.len().div_ceil(MOST).max(1)) {
        let (Some(first), Some(last)) = (bin.first(), bin.last()) else { continue };
        let levels =
            |signal| bin.iter().filter_map(move |point| point.levels.get(&signal).copied());
        let mean = |signal| {
            let n = levels(signal).count();
            (n > 0).then(|| levels(signal).sum::<f64>() / n as f64)
        };
        let from = before.map_or(Nanos::ZERO, |before| before.at);
        timeline.push(TimelinePoint {
            at_s: f64::midpoint(first.at.as_secs(), last.at.as_secs()),
            running: mean(Signal::Running),
            waiting: levels(Signal::Waiting).max_by(f64::total_cmp),
            kv_usage: mean(Signal::KvUsage),
            generation_per_s: before.and_then(|before| generation_rate(before, last)),
            power_w: total_power(&powers, from, last.at),
        });
        before = Some(last);
    }
    timeline
}

fn generation_rate(before: &CombinedPoint, after: &CombinedPoint) -> Option<f64> {
    let total = |point: &CombinedPoint| point.totals.get(&Signal::GenerationTokens).copied();
    let seconds = (after.at - before.at).as_secs();
    let grown = (total(after)? - total(before).unwrap_or(0.0)).max(0.0);
    (seconds > 0.0).then(|| grown / seconds)
}

/// By GPU, in order of time.
fn power_by_gpu(samples: &[HealthSample]) -> BTreeMap<u32, Vec<(Nanos, f64)>> {
    let mut powers: BTreeMap<u32, Vec<(Nanos, f64)>> = BTreeMap::new();
    for sample in samples.iter().flat_map(|sample| &sample.gpus) {
        if let Some(power) = sample.power_w.filter(|power| power.is_finite()) {
            powers.entry(sample.gpu).or_default().push((sample.at, power));
        }
    }
    for looks in powers.values_mut() {
        looks.sort_by_key(|(at, _)| *at);
    }
    powers
}

/// Mean power of each GPU in an interval, added up; none if one of them does not tell.
fn total_power(powers: &BTreeMap<u32, Vec<(Nanos, f64)>>, from: Nanos, to: Nanos) -> Option<f64> {
    let of_one = |looks: &Vec<(Nanos, f64)>| {
        let first = looks.partition_point(|(at, _)| *at < from);
        let last = looks.partition_point(|(at, _)| *at <= to);
        let inside = looks.get(first..last).filter(|inside| !inside.is_empty())?;
        Some(inside.iter().map(|(_, power)| power).sum::<f64>() / inside.len() as f64)
    };
    powers.values().map(of_one).sum::<Option<f64>>().filter(|_| !powers.is_empty())
}
