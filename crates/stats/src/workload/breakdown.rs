//! Every metric by what requests have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goodput_model::{
    LoadShape, MetricName, Mode, Nanos, Phase, Plan, Planned, RequestRecord, TokenSource,
};

use super::minutes::Minutes;
use crate::cuts::Cuts;
use crate::flow::{Flow, input_tokens};
use crate::metrics::Metrics;
use crate::request::Latencies;
use crate::sample::Sample;
use crate::slo::Judge;
use crate::summary::{Breakdown, Slice, Slices, Spread};
use crate::window::Window;

/// Values of numbered dimensions that stand for themselves; those above are one slice.
const NUMBERED: u32 = 20;
/// Buckets of lengths at most; those below the smallest of them are one slice.
const BUCKETS: u32 = 12;

/// In what the measured requests differ: found by a first pass, so that a plain run keeps no sample
/// twice.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    classes: BTreeSet<Arc<str>>,
    turns: bool,
    constraints: bool,
    images: BTreeSet<u32>,
    workers: BTreeSet<u32>,
    input: Range,
    output: Range,
    /// Answers that a tokenizer of ours may count in the second pass.
    is_output_open: bool,
}

/// The smallest and the largest of some lengths.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    ends: Option<(u32, u32)>,
}

impl Range {
    fn add(&mut self, n: u32) {
        let (low, high) = self.ends.unwrap_or((n, n));
        self.ends = Some((low.min(n), high.max(n)));
    }

    /// Whether the longest is twice the shortest: less is one length with noise.
    fn is_wide(self) -> bool {
        self.ends.is_some_and(|(low, high)| u64::from(high) >= 2 * u64::from(low.max(1)))
    }

    /// The lowest bucket that stands for itself.
    fn lowest_bucket(self) -> u32 {
        self.ends.map_or(0, |(_, high)| length_bucket(high).saturating_sub(BUCKETS - 1))
    }
}

/// Lengths by powers of two: 0, 1, 2 to 3, 4 to 7, …
fn length_bucket(n: u32) -> u32 {
    n.checked_ilog2().map_or(0, |power| power + 1)
}

fn bucket_label(place: u32, floor: u32) -> String {
    let last = (1u64 << place) - 1;
    match place {
        _ if place == floor && floor > 1 => format!("0–{last}"),
        0 | 1 => last.to_string(),
        _ => format!("{}–{last}", 1u64 << (place - 1)),
    }
}

/// Output tokens as counted; of those that failed, as planned.
fn output_tokens(record: &RequestRecord) -> Option<u32> {
    match record.exchange.output_tokens {
        Some(count) if record.is_ok() => Some(count.n),
        _ if record.is_ok() => None,
        _ => record.planned.output_tokens,
    }
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
        if self.workers.len() < 2 {
            self.workers.insert(record.worker);
        }
        if record.is_ok() {
            self.input.add(input_tokens(record).n);
            let counted = record.exchange.output_tokens;
            match counted.filter(|count| count.source != TokenSource::Events) {
                Some(count) => self.output.add(count.n),
                None => self.is_output_open = true,
            }
        }
    }

    fn dimensions(&self, minutes: Option<Minutes>) -> Vec<Dimension> {
        let output_floor = if self.is_output_open { 0 } else { self.output.lowest_bucket() };
        let output = self.output.is_wide() || self.is_output_open;
        let each = [
            (Dimension::Class, self.classes.len() > 1),
            (Dimension::Turn, self.turns),
            (Dimension::Constraint, self.constraints),
            (Dimension::Images, self.images.len() > 1),
            (Dimension::Input { floor: self.input.lowest_bucket() }, self.input.is_wide()),
            (Dimension::Output { floor: output_floor }, output),
            (Dimension::Worker, self.workers.len() > 1),
        ];
        let differing =
            each.into_iter().filter_map(|(dimension, differs)| differs.then_some(dimension));
        differing.chain(minutes.map(Dimension::Minute)).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Dimension {
    Class,
    Turn,
    Constraint,
    Images,
    Input { floor: u32 },
    Output { floor: u32 },
    Worker,
    Minute(Minutes),
}

/// A value of a dimension: numbers in their order, then names in theirs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum DimensionValue {
    Number(u64),
    Name(Arc<str>),
}

impl Dimension {
    fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Turn => "turn",
            Self::Constraint => "constraint",
            Self::Images => "images",
            Self::Input { .. } => "input_tokens",
            Self::Output { .. } => "output_tokens",
            Self::Worker => "worker",
            Self::Minute(_) => "minute",
        }
    }

    /// Those that nearly every run has keep one sample a request, not every gap.
    fn keeps_gaps(self) -> bool {
        matches!(self, Self::Class | Self::Turn | Self::Constraint | Self::Images)
    }

    fn key_of(self, record: &RequestRecord) -> DimensionValue {
        let planned = &record.planned;
        let numbered = |number: u32| DimensionValue::Number(number.min(NUMBERED + 1).into());
        match self {
            Self::Class => DimensionValue::Name(planned.class.clone()),
            Self::Turn => numbered(planned.turn.saturating_add(1)),
            Self::Constraint => DimensionValue::Name(Arc::from(
                planned.constraint.map_or("none", |kind| kind.name()),
            )),
            Self::Images => numbered(planned.images),
            Self::Input { floor } => {
                DimensionValue::Number(length_bucket(input_tokens(record).n).max(floor).into())
            }
            Self::Output { floor } => output_tokens(record).map_or_else(
                || DimensionValue::Name(Arc::from("unknown")),
                |n| DimensionValue::Number(length_bucket(n).max(floor).into()),
            ),
            Self::Worker => DimensionValue::Number(record.worker.into()),
            Self::Minute(minutes) => DimensionValue::Number(minutes.part_index(record.scheduled)),
        }
    }

    fn label(self, key: &DimensionValue) -> String {
        let number = match key {
            DimensionValue::Name(name) => return name.to_string(),
            DimensionValue::Number(number) => *number,
        };
        match self {
            Self::Turn | Self::Images if number > NUMBERED.into() => format!("{}+", NUMBERED + 1),
            Self::Input { floor } | Self::Output { floor } => bucket_label(number as u32, floor),
            Self::Minute(minutes) => minutes.label(number),
            _ => number.to_string(),
        }
    }

    /// The time that the rates of a value are of.
    fn window_of(self, key: &DimensionValue, window: Window) -> Window {
        match (self, key) {
            (Self::Minute(minutes), DimensionValue::Number(place)) => minutes.part_window(*place),
            _ => window,
        }
    }
}

/// The slices of a run.
#[derive(Debug)]
pub(super) struct BreakdownTally {
    window: Window,
    stream: bool,
    /// Where limits were promised for each request.
    judge: Option<Judge>,
    dimensions: Vec<(Dimension, BTreeMap<DimensionValue, SliceTally>)>,
    /// Output lengths that were known in the second pass.
    output: Range,
    /// Stages of the load in order of time.
    stages: Vec<StageTally>,
}

#[derive(Debug)]
struct SliceTally {
    scheduled: u64,
    ok: u64,
    input: u64,
    output: u64,
    counted: u64,
    /// Good requests by the SLO, and all that count.
    good: (u64, u64),
    samples: Samples,
    flow: Flow,
}

/// What is kept of the latencies.
#[derive(Debug)]
enum Samples {
    /// Everything.
    Full(Box<Metrics>),
    /// TTFT, TPOT and E2E: three numbers a request.
    Light(Box<[Sample; 3]>),
}

const LIGHT: [MetricName; 3] = [MetricName::Ttft, MetricName::Tpot, MetricName::E2e];

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
        let dimensions = differences.dimensions(Minutes::from_window(window));
        Self {
            window,
            stream: plan.target.stream,
            judge: Judge::new(plan).filter(Judge::is_per_request),
            dimensions: dimensions.into_iter().map(|d| (d, BTreeMap::new())).collect(),
            output: Range::default(),
            stages: stage_tallies(&plan.load.mode, window),
        }
    }

    /// Takes a request of any phase; `counts` is whether what arrives of it belongs to the window.
    pub(super) fn add(&mut self, record: &RequestRecord, counts: bool, cuts: &Cuts) {
        let is_measured = record.phase == Phase::Measured;
        if let Some(n) = output_tokens(record).filter(|_| is_measured) {
            self.output.add(n);
        }
        let judge = self.judge.as_ref().filter(|_| is_measured);
        let is_good = judge.and_then(|judge| judge.is_good(record, cuts));
        for (dimension, slices) in &mut self.dimensions {
            let dimension = *dimension;
            let key = dimension.key_of(record);
            match dimension {
                _ if !counts => {}
                Dimension::Minute(minutes) => {
                    // A rate belongs to its minute, whichever request was answered in it.
                    let (first, last) =
                        (minutes.part_index(record.scheduled), minutes.part_index(record.end()));
                    for place in first..=last {
                        slice_of(slices, dimension, DimensionValue::Number(place))
                            .flow
                            .add(record, minutes.part_window(place));
                    }
                }
                _ => slice_of(slices, dimension, key.clone()).flow.add(record, self.window),
            }
            if is_measured {
                slice_of(slices, dimension, key).add(record, self.stream, cuts, is_good);
            }
        }
        self.add_stage(record, counts, cuts, is_good);
    }

    fn add_stage(
        &mut self,
        record: &RequestRecord,
        counts: bool,
        cuts: &Cuts,
        is_good: Option<bool>,
    ) {
        let last = self.stages.len().saturating_sub(1);
        let due = self.stages.iter().position(|stage| record.scheduled < stage.end).unwrap_or(last);
        for (place, stage) in self.stages.iter_mut().enumerate() {
            // A rate belongs to the time of the stage, whichever request was answered in it.
            if counts
                && stage.window.overlap(record.scheduled, record.end() + Nanos(1)) > Nanos::ZERO
            {
                stage.slice.flow.add(record, stage.window);
            }
            if record.phase == Phase::Measured && place == due {
                stage.slice.add(record, self.stream, cuts, is_good);
            }
        }
    }

    pub(super) fn finish(self) -> Breakdown {
        let window = self.window;
        let dimension = |(dimension, slices): (Dimension, BTreeMap<DimensionValue, SliceTally>)| {
            let slices = slices.into_iter().filter(|(_, slice)| slice.scheduled > 0);
            let slices: Slices = slices
                .map(|(key, slice)| {
                    (dimension.label(&key), slice.finish(dimension.window_of(&key, window)))
                })
                .collect();
            (dimension.name().to_owned(), slices)
        };
        let mut breakdown: Breakdown = self.dimensions.into_iter().map(dimension).collect();
        // The first pass could not know what a tokenizer of ours would count.
        if !self.output.is_wide() {
            breakdown.remove("output_tokens");
        }
        let stages = self.stages.into_iter().filter(|stage| stage.slice.scheduled > 0);
        let stages: Slices =
            stages.map(|stage| (stage.label, stage.slice.finish(stage.window))).collect();
        if !stages.is_empty() {
            breakdown.insert("stage".to_owned(), stages);
        }
        breakdown
    }
}

/// The slice of a value, begun where there is none.
fn slice_of(
    slices: &mut BTreeMap<DimensionValue, SliceTally>,
    dimension: Dimension,
    key: DimensionValue,
) -> &mut SliceTally {
    slices.entry(key).or_insert_with(|| SliceTally::new(dimension.keeps_gaps()))
}

/// The stages of a load that has them, each with its part of the window.
fn stage_tallies(mode: &Mode, window: Window) -> Vec<StageTally> {
    let Mode::Shaped { shape: LoadShape::Stages(stages), .. } = mode else { return Vec::new() };
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
            label: format!("{}: {}", place + 1, LoadShape::Stages(vec![*stage])),
            end: start,
            window: part,
            slice: SliceTally::new(true),
        }
    };
    stages.iter().enumerate().map(stage).collect()
}

impl SliceTally {
    fn new(keeps_gaps: bool) -> Self {
        let samples =
            if keeps_gaps { Samples::Full(Box::default()) } else { Samples::Light(Box::default()) };
        Self {
            scheduled: 0,
            ok: 0,
            input: 0,
            output: 0,
            counted: 0,
            good: (0, 0),
            samples,
            flow: Flow::default(),
        }
    }

    /// Takes a measured request, and whether it is good where that is known.
    fn add(&mut self, record: &RequestRecord, stream: bool, cuts: &Cuts, is_good: Option<bool>) {
        self.scheduled += 1;
        if let Some(is_good) = is_good {
            self.good.0 += u64::from(is_good);
            self.good.1 += 1;
        }
        self.samples.add(record, stream, cuts);
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
        let rates = self.flow.rates_in_window(window);
        let [ttft_ms, tpot_ms, itl_ms, e2e_ms] = self.samples.into_spreads();
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
            attainment: mean(self.good.0, self.good.1),
        }
    }
}

impl Samples {
    fn add(&mut self, record: &RequestRecord, stream: bool, cuts: &Cuts) {
        match self {
            Self::Full(metrics) => metrics.add(record, stream, cuts),
            Self::Light(samples) => {
                let latencies = Latencies::new(record, stream, cuts);
                for (sample, metric) in samples.iter_mut().zip(LIGHT) {
                    sample.push_value(None, latencies.get(metric));
                }
            }
        }
    }

    /// TTFT, TPOT, ITL and E2E.
    fn into_spreads(self) -> [Spread; 4] {
        match self {
            Self::Full(metrics) => metrics.into_spreads(),
            Self::Light(samples) => {
                let [ttft, tpot, e2e] = samples.map(Sample::into_spread);
                [ttft, tpot, Spread::default(), e2e]
            }
        }
    }
}
