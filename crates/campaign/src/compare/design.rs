//! Which run comes next, and when it is enough.

use goodput_model::random::{Domain, RandomStream};

use super::blocks::{Blocks, level_count, side_count};
use super::{
    BlockOrder, ComparedRun, Design, FigureOutcome, RunAsk, Stopped, findings, judge_gates,
};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum DesignStep {
    /// Measure these runs: one, or those of all sides where they run at once.
    Measure(Vec<RunAsk>),
    /// Nothing more.
    Done(Stopped),
}

/// What to do next, from what has been measured so far.
///
/// A block with a void run is left at once, and does not count; this many are replaced by further ones
/// as half of all blocks, but at least two. A target against itself is measured to the last look:
/// what is wanted is how far blocks spread, and an early end would favor those that spread little.
pub fn next_design_step(design: &Design, done: &[ComparedRun]) -> DesignStep {
    let looks = looks_in_order(design);
    let Some(last) = looks.last().copied() else { return DesignStep::Done(Stopped::LastLook) };
    let blocks = Blocks::new(design, done);
    let count = blocks.count_complete();
    let is_early = looks.contains(&count) && !design.same_target;
    if (count >= last || is_early) && is_decided(design, done) {
        return DesignStep::Done(Stopped::Known);
    }
    if count >= last || side_count(design) == 0 {
        return DesignStep::Done(Stopped::LastLook);
    }
    if blocks.spoiled.len() > (last as usize / 2).max(2) {
        return DesignStep::Done(Stopped::Void);
    }
    let asks = next_asks(design, &blocks);
    let number = done.iter().map(|cell| cell.ask.number).max().unwrap_or_default();
    let numbered =
        (1u32..).zip(asks).map(|(more, ask)| RunAsk { number: number.saturating_add(more), ..ask });
    let asks: Vec<RunAsk> = numbered.collect();
    if asks.is_empty() { DesignStep::Done(Stopped::LastLook) } else { DesignStep::Measure(asks) }
}

/// Blocks that count: complete, and without a void run.
pub fn count_blocks(design: &Design, done: &[ComparedRun]) -> u32 {
    Blocks::new(design, done).count_complete()
}

/// Looks in order, each once.
pub(super) fn looks_in_order(design: &Design) -> Vec<u32> {
    let mut looks: Vec<u32> = design.looks.iter().copied().filter(|look| *look > 0).collect();
    looks.sort_unstable();
    looks.dedup();
    looks
}

/// Whether everything that is tested can be told.
fn is_decided(design: &Design, done: &[ComparedRun]) -> bool {
    use FigureOutcome::{Better, Equivalent, Worse};
    let findings = findings(design, done);
    let outcomes: Vec<FigureOutcome> = if design.gates.is_empty() {
        findings.iter().filter(|finding| finding.is_tested).map(|finding| finding.outcome).collect()
    } else {
        judge_gates(&design.gates, &findings).iter().map(|result| result.outcome).collect()
    };
    let is_told = |outcome: &FigureOutcome| matches!(outcome, Better | Worse | Equivalent);
    !outcomes.is_empty() && outcomes.iter().all(is_told)
}

/// What is left of the first block that is neither complete nor spoiled: its next run, or the runs of
/// all sides at its next level.
fn next_asks(design: &Design, blocks: &Blocks<'_>) -> Vec<RunAsk> {
    let is_over = |block: &u32| {
        blocks.complete.binary_search(block).is_ok() || blocks.spoiled.contains(block)
    };
    let Some(block) = (1..u32::MAX).find(|block| !is_over(block)) else { return Vec::new() };
    for level in 0..level_count(design) {
        let left = side_order(design, block, level)
            .into_iter()
            .filter(|side| !blocks.has_run(block, level, *side));
        let seed = run_seed(design, block, level);
        let left = left.map(|side| RunAsk { number: 0, block, side, level, seed });
        let some: Vec<RunAsk> = left.take(if design.at_once { usize::MAX } else { 1 }).collect();
        if !some.is_empty() {
            return some;
        }
    }
    Vec::new()
}

/// Seeds follow each other, as those of `--repeat` do: block by block, and in it level by level. A
/// level with the prompts of another would find them in a cache.
fn run_seed(design: &Design, block: u32, level: u32) -> u64 {
    let before =
        u64::from(block).saturating_sub(1) * u64::from(level_count(design)) + u64::from(level);
    design.seed.wrapping_add(before) & i64::MAX.cast_unsigned()
}

/// The order of the sides in a block at a level.
fn side_order(design: &Design, block: u32, level: u32) -> Vec<u32> {
    // Blocks 1 and 2 share a draw, 3 and 4, and so on.
    let (draw, is_reverse) = match design.order {
        BlockOrder::Abba => (block.saturating_add(1) / 2, block.is_multiple_of(2)),
        BlockOrder::Random => (block, false),
    };
    let index = (u64::from(draw) << 32) | u64::from(level);
    let mut stream = RandomStream::new(design.seed, Domain::Order, index);
    let mut order: Vec<u32> = (0..side_count(design)).collect();
    for place in (1..order.len()).rev() {
        let other = stream.next_below(place as u64 + 1) as usize;
        order.swap(place, other.min(place));
    }
    if is_reverse {
        order.reverse();
    }
    order
}

/// Seconds to the next look and to the end at most, where a run takes this long with everything
/// around it.
pub fn estimate_remaining_s(design: &Design, done: &[ComparedRun], each_s: f64) -> (f64, f64) {
    let DesignStep::Measure(asks) = next_design_step(design, done) else { return (0.0, 0.0) };
    let blocks = Blocks::new(design, done);
    let looks = looks_in_order(design);
    let count = blocks.count_complete();
    let at_once = if design.at_once { 1.0 } else { f64::from(side_count(design)) };
    let whole = at_once * f64::from(level_count(design));
    let begun = asks.first().map_or(0.0, |ask| {
        let runs = done.iter().filter(|cell| cell.ask.block == ask.block).count() as f64;
        runs / if design.at_once { f64::from(side_count(design)).max(1.0) } else { 1.0 }
    });
    let to = |look: u32| {
        (f64::from(look.saturating_sub(count)) * whole - begun).max(0.0) * each_s.max(0.0)
    };
    let next_look = looks.iter().copied().find(|look| *look > count);
    (next_look.map_or(0.0, to), looks.last().copied().map_or(0.0, to))
}
