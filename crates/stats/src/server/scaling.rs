//! How the number of replicas followed the load, where a metrics page states it.

use goodput_model::{LoadShape, Mode, Signal};

use super::points::CombinedPoint;
use crate::summary::{ReplicaChange, ScalingSummary};

/// Changes that are kept.
const MOST_CHANGES: usize = 120;

/// When the load of a plan rises, in seconds since the first instant: where a stage begins that is
/// higher than the one before it or that climbs. One level of load rises once, at the beginning.
pub(super) fn load_rises(mode: &Mode) -> Vec<f64> {
    let stages = match mode {
        Mode::Open { .. } | Mode::Closed { .. } => return vec![0.0],
        Mode::Shaped { shape: LoadShape::Stages(stages), .. } => stages,
        Mode::Shaped { .. } | Mode::Replay { .. } => return Vec::new(),
    };
    let (mut rises, mut begun_s, mut rate) = (Vec::new(), 0.0, 0.0);
    for stage in stages {
        if stage.from > rate || stage.to > stage.from {
            rises.push(begun_s);
        }
        begun_s += stage.length.as_secs_f64();
        rate = stage.to;
    }
    rises
}

/// The number of replicas over the run, and how long after a rise of the load more of them were
/// there. None if no page states it.
pub(super) fn scaling(points: &[CombinedPoint], rises: &[f64]) -> Option<ScalingSummary> {
    let known = points
        .iter()
        .filter_map(|point| Some((point.at.as_secs(), *point.levels.get(&Signal::Replicas)?)));
    let known: Vec<(f64, f64)> = known.collect();
    let (first, last) = (known.first()?.1, known.last()?.1);
    let changes = known.windows(2).filter_map(|pair| {
        let [(before_s, from), (at_s, to)] = *pair else { return None };
        let load_rise_s = rises.iter().copied().rfind(|rise| to > from && *rise < at_s);
        (from != to).then(|| ReplicaChange {
            at_s,
            after_s: before_s,
            from,
            to,
            load_rise_s,
            lag_s: load_rise_s.map(|rise| at_s - rise),
        })
    });
    Some(ScalingSummary {
        first,
        most: known.iter().fold(first, |most, (_, replicas)| most.max(*replicas)),
        last,
        changes: changes.take(MOST_CHANGES).collect(),
    })
}
