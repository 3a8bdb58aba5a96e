//! What to know before a comparison is believed.

use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::blocks::{Blocks, level_count, side_count};
use super::metric::tested_metrics;
use super::{
    CompareFacts, CompareState, ComparedRun, Design, Difference, FigureOutcome, Finding, Floor,
    Matter, MetricScale, Proof, RunAsk, Stopped, find_metric,
};
use crate::sweep::Level;

/// Whether this difference leaves no verdict on a figure.
pub(super) fn voids_verdict(difference: &Difference, metric: &str) -> bool {
    difference.matter == Matter::Refuse && difference.affects_metric(metric)
}

/// Takes the verdict from figures that are not of the same thing on both sides.
pub(crate) fn clear_void_verdicts(findings: &mut [Finding], differences: &[Difference]) {
    for finding in findings {
        let is_spoiled = |difference: &Difference| {
            difference.side == finding.side && voids_verdict(difference, &finding.metric)
        };
        if differences.iter().any(is_spoiled) {
            finding.outcome = FigureOutcome::NoVerdict;
            finding.further_blocks = None;
        }
    }
}

/// One for each difference. One that spoils a tested figure makes the whole void, unless the user
/// insists.
pub(crate) fn difference_caveats(
    design: &Design,
    differences: &[Difference],
    findings: &[Finding],
    insists: bool,
) -> Vec<Caveat> {
    let of = |found: &Difference| {
        let is_grave = findings.is_empty()
            || findings.iter().any(|finding| {
                finding.is_tested
                    && finding.side == found.side
                    && voids_verdict(found, &finding.metric)
            });
        let severity = match found.matter {
            Matter::Info => Severity::Info,
            Matter::Refuse if is_grave && !insists => Severity::Void,
            Matter::Warn | Matter::Refuse => Severity::Warn,
        };
        let name = design.sides.get(found.side as usize).map_or("", String::as_str);
        let message = if side_count(design) > 2 {
            format!("{name}: {}", found.message)
        } else {
            found.message.clone()
        };
        let caveat = Caveat::new(CaveatCode::NotComparable, severity, message);
        if found.advice.is_empty() { caveat } else { caveat.advise(found.advice.clone()) }
    };
    differences.iter().map(of).collect()
}

/// What the blocks themselves are like.
pub(super) fn block_caveats(
    design: &Design,
    facts: &CompareFacts,
    done: &[ComparedRun],
) -> Vec<Caveat> {
    let blocks = Blocks::new(design, done);
    // First, so that the cause comes before its effects.
    let mut all = failing_side_caveats(design, done);
    let n = done.len();
    let count = |verdict: Verdict| done.iter().filter(|cell| cell.verdict == verdict).count();
    let (void, suspect) = (count(Verdict::Void), count(Verdict::Suspect));
    let why = |verdict: Verdict| common_cause(done, verdict, |ask| format!("run {}", ask.number));
    let is_over = facts.stopped == Some(Stopped::Void);
    let over = "this comparison has ended, and --resume does not continue it: fix the cause (idle \
                the machine, lower the load, or use a longer --duration), then start a new one";
    if blocks.complete.is_empty() {
        let runs = match n {
            0 => "nothing was measured".to_owned(),
            _ if void == 0 => "no block is complete".to_owned(),
            n => {
                format!("no block is complete; {void} of {n} runs were void{}", why(Verdict::Void))
            }
        };
        let caveat = Caveat::new(CaveatCode::NothingMeasured, Severity::Void, runs);
        all.push(if is_over { caveat.advise(over) } else { caveat });
    } else if void > 0 {
        // Where too many were void, what is left is a choice.
        let severity = if is_over { Severity::Void } else { Severity::Info };
        let message = format!(
            "{void} of {n} runs were void{}: their blocks do not count",
            why(Verdict::Void)
        );
        let caveat = Caveat::new(CaveatCode::DoubtfulRuns, severity, message);
        all.push(caveat.advise(if is_over {
            over
        } else {
            "run `goodput report` on its folder for details"
        }));
    }
    if facts.repeats > 0 {
        let message = format!(
            "{} runs were repeated because a target was unreachable: the figures do not show how \
             it fails",
            facts.repeats
        );
        let caveat = Caveat::new(CaveatCode::DoubtfulRuns, Severity::Warn, message);
        all.push(caveat.advise("find out which target was unreachable, and why"));
    }
    if suspect > 0 {
        let are = if suspect == 1 { "is" } else { "are" };
        let message = format!("{suspect} of {n} runs {are} suspect{}", why(Verdict::Suspect));
        let caveat = Caveat::new(CaveatCode::DoubtfulRuns, Severity::Warn, message);
        all.push(caveat.advise("run `goodput report` on its folder for details"));
    }
    if facts.state != CompareState::Complete {
        let (severity, message) = match facts.state {
            CompareState::Interrupted => (Severity::Info, "it was stopped before it finished"),
            CompareState::TimeUp => (Severity::Info, "its time was over before it finished"),
            CompareState::TargetLost => (
                Severity::Warn,
                "a target became unreachable before it \
                                                          finished",
            ),
            _ => (Severity::Info, "it did not finish"),
        };
        let caveat = Caveat::new(CaveatCode::NotComplete, severity, message);
        all.push(caveat.advise("continue with --resume"));
    }
    if (1..6).contains(&blocks.count_complete()) {
        let few = blocks.count_complete();
        let few = if few == 1 { "1 block".to_owned() } else { format!("{few} blocks") };
        let message = format!("{few}: the signed-rank test needs six, and intervals are wide");
        all.push(Caveat::new(CaveatCode::FewSamples, Severity::Info, message));
    }
    all.extend(missing_figure_caveats(design, &blocks));
    all.extend(short_window_caveat(design, &blocks));
    all
}

/// `, most often: … (e.g. …)`: what the runs of this verdict are doubted for; `place` says where to
/// find one.
pub(super) fn common_cause(
    done: &[ComparedRun],
    verdict: Verdict,
    place: impl Fn(&RunAsk) -> String,
) -> String {
    let own = || done.iter().filter(move |cell| cell.verdict == verdict);
    let with = || own().filter_map(|cell| Some((cell, cell.doubt.as_ref()?)));
    let often = |code: CaveatCode| with().filter(|(_, doubt)| doubt.code == code).count();
    // The first of the most frequent.
    let most = with().map(|(_, doubt)| often(doubt.code)).max();
    let found = with().find(|(_, doubt)| Some(often(doubt.code)) == most);
    found.map_or_else(String::new, |(cell, doubt)| {
        let often = if own().count() > 1 { ", most often" } else { "" };
        format!("{often}: {} (e.g. {})", doubt.message, place(&cell.ask))
    })
}

/// Figures that are counted over the measured window, and suffer where that is short.
const RATES: [&str; 2] = ["output_tokens_per_s", "total_tokens_per_s"];

/// An open loop whose measured time holds hardly more than one answer: what was still in flight at
/// its end counts in none of the rates.
fn short_window_caveat(design: &Design, blocks: &Blocks<'_>) -> Option<Caveat> {
    let is_tested = tested_metrics(design).iter().any(|name| RATES.contains(&name.as_str()));
    let longest = |level: u32| {
        let e2e = |cell: &ComparedRun| cell.figures.get("e2e_p99").map(|figure| figure.value / 1e3);
        let runs = (0..side_count(design)).flat_map(|side| blocks.runs_of_side(level, side));
        runs.filter_map(e2e).max_by(f64::total_cmp)
    };
    let is_open = |level: &u32| matches!(design.levels.get(*level as usize), Some(Level::Rate(_)));
    let longest =
        (0..level_count(design)).filter(is_open).filter_map(longest).max_by(f64::total_cmp)?;
    (is_tested && design.run_s < 3.0 * longest).then(|| {
        let message = format!(
            "runs of {} s are shorter than three times the longest p99 of E2E ({longest:.1} s): \
             most of the measured time is startup and drain, and open-loop tokens per second \
             depend on the requests in flight there, far below what the servers can do",
            design.run_s
        );
        let advice = format!("use --duration {}s or longer", (3.0 * longest).ceil());
        Caveat::new(CaveatCode::ShortWindow, Severity::Warn, message).advise(advice)
    })
}

/// Void runs on one side more than on another: by chance, with two sides alike, once in 32.
const UNEVEN: usize = 6;

/// Sides whose void runs are their own doing. To leave them out is to leave out the worst.
pub(super) fn failing_side_caveats(design: &Design, done: &[ComparedRun]) -> Vec<Caveat> {
    let voids = |side: u32| {
        done.iter().filter(move |cell| cell.ask.side == side && cell.verdict == Verdict::Void)
    };
    let fewest = (0..side_count(design)).map(|side| voids(side).count()).min().unwrap_or_default();
    let of = |(side, name): (u32, &String)| {
        let void = voids(side).count();
        let failed = voids(side).filter(|cell| cell.facts.failed_share > 0.5).count();
        let what = if failed > 0 {
            format!("{name} failed more than half of its requests in void runs ({failed} of them)")
        } else if void >= fewest + UNEVEN {
            format!("{name} has {void} void runs, another side has {fewest}")
        } else {
            return None;
        };
        let message = format!("{what}: void runs do not count, so the rest is a biased selection");
        let caveat = Caveat::new(CaveatCode::DoubtfulRuns, Severity::Void, message);
        Some(caveat.advise("check the caveats and errors of these runs"))
    };
    (0u32..).zip(&design.sides).filter_map(of).collect()
}

/// Figures that are tested, and that a run lacks though others have it: a tail beyond the time limit
/// has no value.
fn missing_figure_caveats(design: &Design, blocks: &Blocks<'_>) -> Vec<Caveat> {
    let mut all = Vec::new();
    let (names, n) = (blocks.figure_names(), blocks.complete.len());
    for level in 0..level_count(design) {
        for name in tested_metrics(design).into_iter().filter(|name| names.contains(name.as_str()))
        {
            let with = |side: u32| {
                blocks
                    .runs_of_side(level, side)
                    .filter(|cell| cell.figures.contains_key(&name))
                    .count()
            };
            let least = (0..side_count(design)).map(|side| (with(side), side)).min();
            let Some((least, side)) = least.filter(|(least, _)| *least < n) else { continue };
            let title = find_metric(&name).map_or(name, |metric| metric.title);
            let side = design.sides.get(side as usize).map_or("", String::as_str);
            let message = format!(
                "no verdict on {title}: {side} has it in {least} of {n} runs (beyond the time limit, or \
                 nothing to measure)"
            );
            let caveat = Caveat::new(CaveatCode::FigureMissing, Severity::Warn, message);
            all.push(caveat.advise("check the errors; a longer --timeout shows how slow it is"));
        }
    }
    all
}

/// What the figures themselves are like.
pub(crate) fn finding_caveats(
    design: &Design,
    findings: &[Finding],
    floor: Option<&Floor>,
    proof: Option<&Proof>,
) -> Vec<Caveat> {
    let tested = || findings.iter().filter(|finding| finding.is_tested);
    let title =
        |name: &str| find_metric(name).map_or_else(|| name.to_owned(), |metric| metric.title);
    let mut all = Vec::new();
    let mut odd: Vec<String> = tested()
        .filter(|finding| finding.is_doubtful)
        .map(|finding| title(&finding.metric))
        .collect();
    odd.dedup();
    if !odd.is_empty() {
        let message = format!(
            "the signed-rank test and the t-test disagree on {}: a block differs from the others",
            odd.join(", ")
        );
        let caveat = Caveat::new(CaveatCode::OutlierBlocks, Severity::Warn, message);
        all.push(caveat.advise("check the runs of each block for the one that differs"));
    }
    if let Some(floor) = floor {
        all.extend(below_floor_caveat(design, findings, floor));
    }
    if let Some(proof) = proof.filter(|proof| proof.identical < proof.compared) {
        let message = format!(
            "{} of {} requests were not byte-identical on all sides",
            proof.compared - proof.identical,
            proof.compared
        );
        all.push(Caveat::new(CaveatCode::NotSameRequests, Severity::Warn, message));
    }
    all
}

/// Margins and gates that this rig cannot tell from chance.
fn below_floor_caveat(design: &Design, findings: &[Finding], floor: &Floor) -> Option<Caveat> {
    let mut below: Vec<String> = Vec::new();
    for name in tested_metrics(design) {
        let Some((metric, floor)) = find_metric(&name).zip(floor.change_of(&name)) else {
            continue;
        };
        if !findings.iter().any(|finding| finding.metric == name) {
            continue;
        }
        let gates = design.gates.iter().filter(|gate| gate.metric == name);
        let limits = gates.map(|gate| gate.change.abs());
        let least = limits.reduce(f64::min).unwrap_or_else(|| design.margin_of(&name));
        if least < floor {
            let unit = if metric.scale == MetricScale::Difference { "points" } else { "%" };
            below.push(format!("{} ({:.1} {unit})", metric.title, 100.0 * floor));
        }
    }
    (!below.is_empty()).then(|| {
        let message = format!(
            "two measurements of one server differ by more than the margin: {}",
            below.join(", ")
        );
        Caveat::new(CaveatCode::BelowNoiseFloor, Severity::Warn, message)
            .advise("use a larger --margin or longer runs (--duration)")
    })
}
