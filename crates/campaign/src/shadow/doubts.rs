//! What to know before a shadow is believed.

use goodput_model::{Caveat, CaveatCode, Severity};
use goodput_stats::paired::share_interval;

use super::blocks::fewest_values;
use super::report::PairTotals;
use super::unsent::Unsent;
use super::{ShadowFacts, ShadowReport};
use crate::compare::{
    CompareFacts, CompareState, ComparedRun, Design, Difference, Matter, Side, SideFacts,
    find_differences as compared, find_metric, tested_metrics,
};

/// Shares of the chosen requests without a pair beyond which the pairs are a choice.
const DROPS_INFO: f64 = 0.01;
const DROPS_WARN: f64 = 0.1;

/// Blocks that the check by signed ranks needs.
const BLOCKS: u32 = 6;

/// What must be the same on both sides, as one side has it.
fn side_facts(totals: &PairTotals, side: usize, who: &Side) -> SideFacts {
    let own = &totals.sides[side];
    let most = own.sources.iter().max_by_key(|source| source.1);
    let [cached, input] = own.cached;
    SideFacts {
        model: who.model.clone(),
        // Both were sent the same.
        workload_hash: "live".to_owned(),
        requests: totals.pairs,
        ok: totals.good,
        failed_share: own.failed as f64 / totals.pairs.max(1) as f64,
        output_source: most.map_or_else(String::new, |(name, _)| (*name).to_owned()),
        input_mean: own.input.mean(),
        output_mean: own.output.mean(),
        characters_mean: own.characters.mean(),
        cached_share: (input > 0).then(|| cached as f64 / input as f64),
        min_rtt_ms: own.rtt_ms,
        ttft_ms: own.ttft.median(),
        ..SideFacts::default()
    }
}

/// What to do about a difference of live traffic, where the requests are not under control.
fn difference_advice(code: &str) -> &'static str {
    match code {
        "output_length" => {
            "compare TTFT and TPOT; temperature, seed, and stop rules come from the client and \
             are the same on both"
        }
        "cache_state" => "use a larger --share, or keep conversations together on the candidate",
        "tokenizer" | "token_source" => "compare TTFT, E2E, and errors",
        "failed_share" => "check the failures first",
        "path_rtt" => "place the candidate as close as the primary",
        _ => "",
    }
}

/// Everything that should be the same on both sides and is not. What only comes of the smaller share
/// (other states of the cache), and failures, which are a figure of their own, take no verdict away.
pub(super) fn shadow_differences(totals: &PairTotals, sides: &[Side; 2]) -> Vec<Difference> {
    let both = [0, 1].map(|side: usize| side_facts(totals, side, &sides[side]));
    let mut all = compared(&both[0], &both[1], 1, true);
    for one in &mut all {
        one.advice = difference_advice(&one.code).to_owned();
        if matches!(one.code.as_str(), "cache_state" | "failed_share" | "path_rtt") {
            one.matter = one.matter.min(Matter::Warn);
        }
    }
    all
}

/// What to know of these pairs.
pub(super) fn shadow_caveats(
    report: &ShadowReport,
    facts: &CompareFacts,
    design: &Design,
    cells: &[ComparedRun],
) -> Vec<Caveat> {
    let mut all = vec![candidate_load_caveat(report)];
    all.extend(uneven_share_caveat(report));
    all.extend(few_pairs_caveat(report, design));
    all.extend(dropped_request_caveats(report));
    all.extend(report.facts.ended.as_ref().map(|why| {
        let message = format!("the candidate received no more requests before the end: {why}");
        let caveat = Caveat::new(CaveatCode::ShadowEnded, Severity::Warn, message);
        caveat.advise("the figures end at that point")
    }));
    if facts.state == CompareState::Unfinished {
        let message = "these are the figures so far: the shadow is still running or was killed";
        all.push(Caveat::new(CaveatCode::NotComplete, Severity::Info, message));
    }
    all.extend(missing_figure_caveats(report, design, cells));
    all.extend(dependent_blocks_caveat(design, cells));
    all
}

/// Fewer blocks than this do not tell whether neighbors are alike.
const LEAST_BLOCKS: usize = 10;

/// Neighbors of independent blocks correlate by more than this many times 1/√n once in two hundred: four
/// figures are looked at.
const TOO_ALIKE: f64 = 2.6;

/// Tested figures whose changes hang together from block to block: what slows a server down lasts longer
/// than a block, so that blocks say less than they seem to.
fn dependent_blocks_caveat(design: &Design, cells: &[ComparedRun]) -> Option<Caveat> {
    let value = |block: &[ComparedRun], side: usize, name: &str| {
        block.get(side)?.figures.get(name).map(|figure| figure.value).filter(|value| *value > 0.0)
    };
    let is_dependent = |name: &&String| {
        let ratio = |block: &[ComparedRun]| {
            Some((value(block, 1, name.as_str())? / value(block, 0, name.as_str())?).ln())
        };
        let changes: Vec<f64> = cells.chunks(2).filter_map(ratio).collect();
        changes.len() >= LEAST_BLOCKS
            && lag1_correlation(&changes) > TOO_ALIKE / (changes.len() as f64).sqrt()
    };
    let title =
        |name: &String| find_metric(name).map_or_else(|| name.clone(), |metric| metric.title);
    let tested = tested_metrics(design);
    // Of errors most blocks have none, and those that have some are a choice.
    let times = tested.iter().filter(|name| *name != "error_share");
    let found: Vec<String> = times.filter(is_dependent).map(title).collect();
    (!found.is_empty()).then(|| {
        let message = format!(
            "changes of {} are correlated from block to block: slow phases last longer than a \
             block, so intervals are too narrow",
            found.join(", ")
        );
        let caveat = Caveat::new(CaveatCode::BlocksDepend, Severity::Warn, message);
        caveat.advise("use blocks about five times as long")
    })
}

/// The correlation of neighbors.
fn lag1_correlation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let next = values.iter().zip(values.iter().skip(1));
    let product: f64 = next.map(|(one, other)| (one - mean) * (other - mean)).sum();
    // What only comes of rounding does not hang together.
    if square > 1e-12 { product / square } else { 0.0 }
}

/// The candidate's load is its share, always.
fn candidate_load_caveat(report: &ShadowReport) -> Caveat {
    let shadow = &report.facts;
    let share = match shadow.passed {
        0 => shadow.share,
        passed => shadow.mirrored as f64 / passed as f64,
    };
    let message = format!(
        "the candidate carried {:.1} % of the requests, the primary all of them: the candidate's \
         queue, batches, and cache are those of a small load; its behavior under the full load is \
         unknown",
        100.0 * share
    );
    let caveat = Caveat::new(CaveatCode::ShadowShare, Severity::Info, message);
    caveat.advise(
        "record a trace with `goodput record`, and replay it on both with `goodput compare`",
    )
}

/// Requests that must have passed before their share says something of the choice.
const LEAST_PASSED: u64 = 200;

/// Chance of being told so for nothing, were each request chosen for itself.
const UNEVEN: f64 = 0.001;

/// How far the odds of being chosen may be from those that were asked for: few conversations are uneven
/// by themselves.
const FAR: f64 = 2.0;

/// Whether another share was chosen than was asked for: where conversations begin alike they are one.
fn uneven_share_caveat(report: &ShadowReport) -> Option<Caveat> {
    let ShadowFacts { share, passed, chosen, .. } = report.facts;
    let [low, high] = share_interval(chosen, passed, UNEVEN).filter(|_| passed >= LEAST_PASSED)?;
    let odds = |share: f64| share / (1.0 - share);
    let found = chosen as f64 / passed as f64;
    let (is_more, is_less) = (
        low > share && odds(found) > FAR * odds(share),
        high < share && FAR * odds(found) < odds(share),
    );
    (is_more || is_less).then(|| {
        let message = format!(
            "{:.1} % of the requests were chosen instead of {:.1} %: there are few conversations, \
             or they begin alike{}",
            100.0 * found,
            100.0 * share,
            if is_less { ", or rules exclude requests" } else { "" }
        );
        let severity = if is_more { Severity::Warn } else { Severity::Info };
        let caveat = Caveat::new(CaveatCode::ShadowShare, severity, message);
        caveat.advise("use --session-header, or `--by request`, which keeps to the share")
    })
}

fn few_pairs_caveat(report: &ShadowReport, design: &Design) -> Option<Caveat> {
    let blocks = design.looks.first().copied().unwrap_or_default();
    if report.pairs == 0 {
        let message = "no request was answered by both servers";
        return Some(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, message));
    }
    (blocks < BLOCKS).then(|| {
        let count = if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
        let message = format!(
            "{count} of at least {:.0} s: the signed-rank test needs six, and intervals are wide",
            design.run_s
        );
        let caveat = Caveat::new(CaveatCode::FewSamples, Severity::Info, message);
        caveat.advise("let it run longer, or use a larger --share")
    })
}

/// Chosen requests that have no pair: those that a failing candidate was not sent, and the others.
fn dropped_request_caveats(report: &ShadowReport) -> Vec<Caveat> {
    let Unsent { failing, behind } = Unsent::from_facts(&report.facts);
    let failing = failing.map(|(count, share)| {
        let message = format!(
            "{count} requests ({:.1} % of the chosen) were not sent because the candidate was \
             failing: they count as its failures",
            100.0 * share
        );
        let caveat = Caveat::new(CaveatCode::ShadowDrops, Severity::Warn, message);
        caveat.advise("find out why the candidate failed, then start again")
    });
    let others = unpaired_caveat(report, failing.is_some(), behind.is_some());
    failing.into_iter().chain(others).collect()
}

/// Chosen requests that have no pair, but for those that are told by themselves.
fn unpaired_caveat(report: &ShadowReport, is_failing: bool, is_behind: bool) -> Option<Caveat> {
    let shadow = &report.facts;
    let is_other = |(why, _): &(&String, &u64)| !is_failing || why.as_str() != "errors";
    let mut reasons: Vec<(&String, &u64)> = shadow.dropped.iter().filter(is_other).collect();
    let lost: u64 = reasons.iter().map(|(_, count)| **count).sum();
    let share = lost as f64 / shadow.chosen.max(lost).max(1) as f64;
    (share > DROPS_INFO).then(|| {
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown: Vec<String> =
            reasons.iter().take(3).map(|(why, count)| format!("{why} {count}")).collect();
        let calmer = if is_behind {
            "pairs come from the calmer minutes, and do not show that the candidate is as fast"
        } else {
            "the pairs are a biased selection"
        };
        let message = format!(
            "{:.1} % of the chosen requests have no pair ({}): {calmer}",
            100.0 * share,
            shown.join(", ")
        );
        let is_grave = is_behind || share > DROPS_WARN;
        let severity = if is_grave { Severity::Warn } else { Severity::Info };
        let caveat = Caveat::new(CaveatCode::ShadowDrops, severity, message);
        caveat.advise(match reasons.first() {
            _ if is_behind => "use a smaller --share, or raise the candidate's limits",
            Some((why, _)) if why.as_str() == "unjudged" => {
                "compressed or very large answers are not parsed: turn compression off"
            }
            Some((why, _)) if why.as_str() == "errors" => "find out why the candidate failed",
            _ => "docs/shadow.md explains each reason",
        })
    })
}

/// Gated figures that the blocks do not have.
fn missing_figure_caveats(
    report: &ShadowReport,
    design: &Design,
    cells: &[ComparedRun],
) -> Vec<Caveat> {
    let has = |name: &str| cells.first().is_some_and(|cell| cell.figures.contains_key(name));
    let mut names: Vec<&str> = design.gates.iter().map(|gate| gate.metric.as_str()).collect();
    names.dedup();
    let one = |name: &str| {
        let title = find_metric(name).map_or_else(|| name.to_owned(), |metric| metric.title);
        let why = match name.rsplit_once("_p").and_then(|(_, percent)| fewest_values(percent)) {
            Some(least) if report.pairs > 0 => format!(
                "not every block has {least} answers for it (the smallest has {} pairs)",
                report.block_pairs[0]
            ),
            Some(_) => "no pairs were measured".to_owned(),
            None => "live traffic cannot show it".to_owned(),
        };
        let message = format!("no verdict on {title}: {why}");
        Caveat::new(CaveatCode::FigureMissing, Severity::Warn, message)
    };
    names.into_iter().filter(|name| !has(name)).map(one).collect()
}
