//! Every metric by what requests have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_model::{Mode, Nanos, Phase, Plan, Planned, RequestRecord, Shape};

use super::summary::{Breakdown, Slice};
use crate::cuts::Cuts;
use crate::flow::{Flow, input_tokens};
use crate::metrics::Metrics;
use crate::window::Window;

/// Values of numbered dimensions that stand for themselves; those above are one slice.
const NUMBERED: u32 = 20;

/// In what the measured requests differ: found by a first pass, so that a plain run keeps no sample
/// twice.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    classes: BTreeSet<Arc<str>>,
    turns: bool,
    constraints: bool,
    images: BTreeSet<u32>,
}

impl Differences {
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        if record.phase != Phase::Measured {
            return;
        }
        let Planned { class, turn, constraint, images, .. } = &record.planned;
        if !self.classes.contains(class) {
            self.classes.insert(class.clone());
        }
        self.turns |= *turn > 0;
        self.constraints |= constraint.is_some();
        if self.images.len() < 2 {
            self.images.insert(*images);
        }
    }

    fn dimensions(&self) -> Vec<Dimension> {
        let each = [
            (Dimension::Class, self.classes.len() > 1),
            (Dimension::Turn, self.turns),
            (Dimension::Constraint, self.constraints),
            (Dimension::Images, self.images.len() > 1),
        ];
        each.into_iter().filter_map(|(dimension, differs)| differs.then_some(dimension)).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Dimension {
    Class,
    Turn,
    Constraint,
    Images,
}

impl Dimension {
    fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Turn => "turn",
            Self::Constraint => "constraint",
            Self::Images => "images",
        }
    }

    fn value(self, planned: &Planned) -> String {
        let numbered = |number: u32| {
            if number > NUMBERED { format!("{}+", NUMBERED + 1) } else { number.to_string() }
        };
        match self {
            Self::Class => planned.class.to_string(),
            Self::Turn => numbered(planned.turn.saturating_add(1)),
            Self::Constraint => planned.constraint.map_or("none", |kind| kind.name()).to_owned(),
            Self::Images => numbered(planned.images),
        }
    }
}

/// The slices of a run.
#[derive(Debug)]
pub(super) struct BreakdownTally {
    window: Window,
    stream: bool,
    dimensions: Vec<(Dimension, BTreeMap<String, SliceTally>)>,
    /// Stages of the load in order of time.
    stages: Vec<StageTally>,
}

#[derive(Debug, Default)]
struct SliceTally {
    scheduled: u64,
    ok: u64,
    input: u64,
    output: u64,
    counted: u64,
    metrics: Metrics,
    flow: Flow,
}

#[derive(Debug)]
struct StageTally {
    label: String,
    /// Where it ends; the last one holds all that follows.
    end: Nanos,
    /// Its part of the window.
    window: Window,
    slice: SliceTally,
}

impl BreakdownTally {
    pub(super) fn new(plan: &Plan, differences: &Differences, window: Window) -> Self {
        let dimensions = differences.dimensions();
        Self {
            window,
            stream: plan.target.stream,
            dimensions: dimensions.into_iter().map(|d| (d, BTreeMap::new())).collect(),
            stages: stages(&plan.load.mode, window),
        }
    }

    /// Takes a request of any phase; `counts` is whether what arrives of it belongs to the window.
    pub(super) fn add(&mut self, record: &RequestRecord, counts: bool, cuts: &Cuts) {
        let is_measured = record.phase == Phase::Measured;
        for (dimension, slices) in &mut self.dimensions {
            let slice = slices.entry(dimension.value(&record.planned)).or_default();
            if counts {
                slice.flow.add(record, self.window);
            }
            if is_measured {
                slice.add(record, self.stream, cuts);
            }
        }
        let last = self.stages.len().saturating_sub(1);
        let due = self.stages.iter().position(|stage| record.scheduled < stage.end).unwrap_or(last);
        for (place, stage) in self.stages.iter_mut().enumerate() {
            // A rate belongs to the time of the stage, whoever was answered in it.
            if counts
                && stage.window.overlap(record.scheduled, record.end() + Nanos(1)) > Nanos::ZERO
            {
                stage.slice.flow.add(record, stage.window);
            }
            if is_measured && place == due {
                stage.slice.add(record, self.stream, cuts);
            }
        }
    }

    pub(super) fn finish(self) -> Breakdown {
        let window = self.window;
        let dimension = |(dimension, slices): (Dimension, BTreeMap<String, SliceTally>)| {
            let slices = slices.into_iter().filter(|(_, slice)| slice.scheduled > 0);
            let slices = slices.map(|(value, slice)| (value, slice.finish(window))).collect();
            (dimension.name().to_owned(), slices)
        };
        let mut breakdown: Breakdown = self.dimensions.into_iter().map(dimension).collect();
        let stages = self.stages.into_iter().filter(|stage| stage.slice.scheduled > 0);
        let stages: BTreeMap<_, _> =
            stages.map(|stage| (stage.label, stage.slice.finish(stage.window))).collect();
        if !stages.is_empty() {
            breakdown.insert("stage".to_owned(), stages);
        }
        breakdown
    }
}

/// The stages of a load that has them, each with its part of the window.
fn stages(mode: &Mode, window: Window) -> Vec<StageTally> {
    let Mode::Shaped { shape: Shape::Stages(stages), .. } = mode else { return Vec::new() };
    let mut start = Nanos::ZERO;
    let stage = |(place, stage): (usize, &goodput_model::LoadStage)| {
        let begin = start;
        start += Nanos::from(stage.length);
        let part = Window {
            start: begin.max(window.start).min(window.end),
            end: start.min(window.end),
            ..window
        };
        StageTally {
            label: format!("{}: {}", place + 1, Shape::Stages(vec![*stage])),
            end: start,
            window: part,
            slice: SliceTally::default(),
        }
    };
    stages.iter().enumerate().map(stage).collect()
}

impl SliceTally {
    /// Takes a measured request.
    fn add(&mut self, record: &RequestRecord, stream: bool, cuts: &Cuts) {
        self.scheduled += 1;
        self.metrics.add(record, stream, cuts);
        if record.is_ok() {
            self.ok += 1;
            self.input += u64::from(input_tokens(record).n);
            if let Some(count) = record.exchange.output_tokens {
                self.output += u64::from(count.n);
                self.counted += 1;
            }
        }
    }

    fn finish(self, window: Window) -> Slice {
        let mean = |sum: u64, n: u64| (n > 0).then(|| sum as f64 / n as f64);
        let rates = self.flow.rates(window);
        let [ttft_ms, tpot_ms, itl_ms, e2e_ms] = self.metrics.spreads();
        Slice {
            scheduled: self.scheduled,
            ok: self.ok,
            failed: self.scheduled - self.ok,
            input_tokens_mean: mean(self.input, self.ok),
            output_tokens_mean: mean(self.output, self.counted),
            ttft_ms,
            tpot_ms,
            itl_ms,
            e2e_ms,
            output_tps: rates.output_tokens_per_s,
            rps: rates.requests_per_s,
        }
    }
}
