//! The answer in plain words, a sentence for each candidate.

use goodput_campaign::compare::{
    Comparison, FigureOutcome, Finding, Gate, GateResult, Matter, MetricScale, Stopped,
};
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::wanting::{missing_side_text, missing_verdict_reason};
use super::words::{
    FigureWords, at_level_text, block_seconds, candidate_places, count_runs_text, count_text,
    gate_limit_text, side_label, tested_findings,
};
use goodput_document::number::trimmed_text;

use crate::estimate::guessed_duration;
use goodput_model::escape_control;

/// Figures in a sentence at most; the table has them all.
const FIGURES: usize = 4;

/// What is said of each candidate: its name, and the sentence.
pub(crate) fn answer_by_candidate(comparison: &Comparison) -> Vec<(String, String)> {
    let one = |side: u32| {
        let said = || candidate_sentence(comparison, side);
        let answer = match comparison.verdict {
            // A void result has no news, good or bad; the table has the numbers.
            Verdict::Void if has_claim(comparison, side) => {
                let why = void_reason(comparison).or_else(|| refusal_reason(comparison));
                let why = why.map_or(String::new(), |why| format!(" ({why})"));
                format!("NOT SHOWN: these numbers are void{why}")
            }
            Verdict::Suspect => format!("{} (suspect: read the caveats)", said()),
            Verdict::Valid | Verdict::Void => said(),
        };
        (side_label(comparison, side), answer)
    };
    let all: Vec<_> = candidate_places(comparison).map(one).collect();
    if all.is_empty() {
        return vec![(String::new(), "nothing was compared".to_owned())];
    }
    all
}

/// The sentences of a page: what goes for several candidates is said once.
pub(crate) fn answer_sentences(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> =
        answer_by_candidate(comparison).into_iter().map(|(_, said)| said).collect();
    all.dedup();
    all
}

/// Why nothing counts, but for what differs between the sides, which is said by itself.
fn void_reason(comparison: &Comparison) -> Option<String> {
    gravest_caveat(comparison, |code| code != CaveatCode::NotComparable)
}

/// What differs between the sides, where nothing counts for that.
fn refusal_reason(comparison: &Comparison) -> Option<String> {
    gravest_caveat(comparison, |code| code == CaveatCode::NotComparable)
}

fn gravest_caveat(comparison: &Comparison, is_it: fn(CaveatCode) -> bool) -> Option<String> {
    let is_why = |caveat: &&Caveat| caveat.severity == Severity::Void && is_it(caveat.code);
    comparison.caveats.iter().find(is_why).map(|caveat| escape_control(&caveat.message))
}

/// Whether anything is said of this candidate.
fn has_claim(comparison: &Comparison, side: u32) -> bool {
    let gates = comparison.gates.iter().filter(|gate| gate.side == side);
    let outcomes = gates.map(|gate| gate.outcome);
    let tested = tested_findings(comparison, side);
    outcomes
        .chain(tested.iter().map(|finding| finding.outcome))
        .any(|outcome| outcome != FigureOutcome::NoVerdict)
}

fn candidate_sentence(comparison: &Comparison, side: u32) -> String {
    let gates: Vec<&GateResult> =
        comparison.gates.iter().filter(|gate| gate.side == side).collect();
    if !gates.is_empty() || !comparison.design.gates.is_empty() {
        return gates_sentence(comparison, side, &gates);
    }
    let findings = tested_findings(comparison, side);
    if findings.iter().all(|finding| finding.outcome == FigureOutcome::NoVerdict) {
        return no_verdict_reason(comparison, side);
    }
    let none = with_outcome(&findings, FigureOutcome::NoVerdict);
    let is_worse = findings.iter().any(|finding| finding.outcome == FigureOutcome::Worse);
    // What is not known of one figure must not look like good news of the others.
    if !none.is_empty() && !is_worse {
        let rest: Vec<&Finding> = findings
            .iter()
            .filter(|one| one.outcome != FigureOutcome::NoVerdict)
            .copied()
            .collect();
        return format!(
            "no verdict on {} as a whole, for lack of {}; for the rest: {}",
            side_label(comparison, side),
            missing_figures_text(comparison, &none),
            known_changes_sentence(comparison, &rest)
        );
    }
    known_changes_sentence(comparison, &findings)
}

fn with_outcome<'a>(findings: &[&'a Finding], outcome: FigureOutcome) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.outcome == outcome).copied().collect()
}

/// The sentence of a candidate that something is known of.
fn known_changes_sentence(comparison: &Comparison, findings: &[&Finding]) -> String {
    let side = findings.first().map_or(1, |finding| finding.side);
    let name = side_label(comparison, side);
    if comparison.design.same_target {
        return self_comparison_sentence(comparison, findings);
    }
    let of = |outcome: FigureOutcome| with_outcome(findings, outcome);
    let (better, worse) = (of(FigureOutcome::Better), of(FigureOutcome::Worse));
    let n = findings.iter().map(|finding| finding.n).max().unwrap_or(0);
    let blocks = count_runs_text(comparison, n);
    let told: Vec<&Finding> = better.iter().chain(&worse).copied().collect();
    let head = match (better.is_empty(), worse.is_empty()) {
        (true, true) if of(FigureOutcome::Inconclusive).is_empty() => {
            let equal = of(FigureOutcome::Equivalent);
            let what = match equal.as_slice() {
                few @ ([_] | [_, _]) => title_list(comparison, few),
                all => format!("any of {} tested figures", all.len()),
            };
            return format!(
                "no difference between {name} and {} larger than {} in {what}; {blocks}",
                side_label(comparison, 0),
                margin_text(findings)
            );
        }
        (true, true) => return undecided_sentence(comparison, &name, findings),
        _ if let Some(tail) = tail_only_sentence(comparison, findings, &told) => {
            let word = if worse.is_empty() { "better" } else { "worse" };
            let word = if better.is_empty() || worse.is_empty() { word } else { "different" };
            format!("{name} is {word}, but only the tail differs: {tail}")
        }
        (true, false) => {
            format!("{name} {}: {}", common_word(&worse, false), changes_list(comparison, &worse))
        }
        (false, true) => {
            format!("{name} {}: {}", common_word(&better, true), changes_list(comparison, &better))
        }
        (false, false) => format!(
            "{name} is a trade-off: worse by {}; better by {}",
            changes_list(comparison, &worse),
            changes_list(comparison, &better)
        ),
    };
    let equal = match of(FigureOutcome::Equivalent).len() {
        0 => String::new(),
        n if n + told.len() == findings.len() => {
            format!("; no other tested figure differs by more than {}", margin_text(findings))
        }
        n => format!("; {n} of {} differ by less than {}", findings.len(), margin_text(findings)),
    };
    let (open, none) = (of(FigureOutcome::Inconclusive), of(FigureOutcome::NoVerdict));
    let open = match open.as_slice() {
        [] => String::new(),
        open => {
            format!(
                "; inconclusive: {}{}",
                title_list(comparison, open),
                more_blocks_text(comparison, open)
            )
        }
    };
    let none = match none.as_slice() {
        [] => String::new(),
        none => format!("; no verdict on {}", missing_figures_text(comparison, none)),
    };
    format!("{head}; {blocks}{equal}{open}{none}")
}

/// The margin of those that are compared with one: of ratios where there are some.
fn margin_text(findings: &[&Finding]) -> String {
    let known = |one: &&&Finding| FigureWords::new(&one.metric).scale == MetricScale::Ratio;
    let ratios: Vec<&Finding> = findings.iter().filter(known).copied().collect();
    let all = if ratios.is_empty() { findings } else { &ratios };
    let least = all.iter().min_by(|a, b| a.margin.total_cmp(&b.margin));
    let most = all.iter().max_by(|a, b| a.margin.total_cmp(&b.margin));
    let margin = |one: &&Finding| FigureWords::new(&one.metric).margin_text(one.margin);
    match (least.map(margin), most.map(margin)) {
        (Some(least), Some(most)) if least != most => format!("the margins ({least} to {most})"),
        (least, _) => least.unwrap_or_default(),
    }
}

/// Figures without a verdict: each with the side that lacks it, where that is why.
fn missing_figures_text(comparison: &Comparison, findings: &[&Finding]) -> String {
    let one = |one: &&Finding| {
        let why = missing_verdict_reason(comparison, one);
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        title_list(comparison, &[*one]) + &why
    };
    join_first(findings.iter().map(one).collect(), "")
}

/// As many as a sentence has room for, and how many more there are.
fn join_first(mut all: Vec<String>, and: &str) -> String {
    let more = all.len().saturating_sub(FIGURES);
    all.truncate(FIGURES);
    all.extend((more > 0).then(|| format!("{and}{more} more")));
    all.join(", ")
}

fn undecided_sentence(comparison: &Comparison, name: &str, findings: &[&Finding]) -> String {
    let open = with_outcome(findings, FigureOutcome::Inconclusive);
    let equal = match with_outcome(findings, FigureOutcome::Equivalent).len() {
        0 => String::new(),
        n => format!("; {n} of {} differ by less than {}", findings.len(), margin_text(findings)),
    };
    let needed = match further_blocks(comparison, &open) {
        // More pairs of the calmer minutes would not tell it.
        None if comparison.shadow.is_some() => "the caveats explain why".to_owned(),
        None => "more data is needed".to_owned(),
        Some((blocks, rest)) if rest.is_empty() => blocks,
        Some((blocks, rest)) => format!("{blocks} ({})", rest.join("; ")),
    };
    format!("{name} is inconclusive: {needed} for {}{equal}", changes_list(comparison, &open))
}

/// ` (about 6 more blocks, 7 min)`
fn more_blocks_text(comparison: &Comparison, open: &[&Finding]) -> String {
    further_blocks(comparison, open).map_or(String::new(), |(blocks, rest)| {
        let all: Vec<String> = std::iter::once(blocks).chain(rest).collect();
        format!(" ({})", all.join(", "))
    })
}

/// Further blocks until the last of them can be told; how long they take, and how to get them.
fn further_blocks(comparison: &Comparison, open: &[&Finding]) -> Option<(String, Vec<String>)> {
    let blocks = open.iter().filter_map(|one| one.further_blocks).max()?;
    let what = if comparison.is_paired { "more block" } else { "more run" };
    let time = block_seconds(comparison).map(|each| guessed_duration(each * f64::from(blocks)));
    // What has ended is not gone on with.
    let ended = comparison.comparison.stopped.filter(|stopped| *stopped == Stopped::LastLook);
    let ended = ended.filter(|_| comparison.is_paired);
    let all = comparison.comparison.blocks.saturating_add(blocks);
    let how = ended.map(|_| format!("a new comparison with --blocks {all}"));
    let rest = time.into_iter().chain(how).collect();
    Some((format!("about {}", count_text(blocks, what)), rest))
}

/// `is slower`, `is better`, `carries less`: what all of these have in common.
fn common_word(findings: &[&Finding], is_good: bool) -> &'static str {
    let all = |which: fn(&str) -> bool| findings.iter().all(|one| which(&one.metric));
    let is_goodput = |name: &str| name.starts_with("goodput");
    let is_speed = |name: &str| {
        let known = FigureWords::new(name);
        known.unit == "ms" || known.unit == "tok/s"
    };
    match is_good {
        true if all(is_goodput) => "carries more load within the SLO",
        false if all(is_goodput) => "carries less load within the SLO",
        true if all(is_speed) => "is faster",
        false if all(is_speed) => "is slower",
        true => "is better",
        false => "is worse",
    }
}

/// Figures with their changes, the largest first.
fn changes_list(comparison: &Comparison, findings: &[&Finding]) -> String {
    let mut sorted = findings.to_vec();
    let size = |one: &Finding| one.change.abs() / one.margin.max(1e-9);
    sorted.sort_by(|a, b| size(b).total_cmp(&size(a)));
    join_first(sorted.iter().map(|one| change_phrase(comparison, one)).collect(), "and ")
}

/// `p50 TPOT +5.1 % (+3.9 % to +6.2 %)`
pub(crate) fn change_phrase(comparison: &Comparison, finding: &Finding) -> String {
    let known = FigureWords::new(&finding.metric);
    let level = at_level_text(comparison, finding.level);
    format!("{}{level} {}", known.name_in_sentence(), known.change_with_interval(finding))
}

fn title_list(comparison: &Comparison, findings: &[&Finding]) -> String {
    let one = |one: &&Finding| {
        FigureWords::new(&one.metric).name_in_sentence() + &at_level_text(comparison, one.level)
    };
    join_first(findings.iter().map(one).collect(), "")
}

/// The name of the median next to a tail: `ttft_p50` of `ttft_p99`.
fn median_metric(metric: &str) -> Option<String> {
    let (base, percent) = metric.rsplit_once("_p")?;
    let is_tail =
        percent.starts_with('9') && percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_tail.then(|| format!("{base}_p50"))
}

/// The sentence where all that differs are tails whose medians do not, and nothing but another tail
/// is left open.
fn tail_only_sentence(
    comparison: &Comparison,
    tested: &[&Finding],
    told: &[&Finding],
) -> Option<String> {
    let is_settled = |one: &&Finding| {
        one.outcome == FigureOutcome::Equivalent || median_metric(&one.metric).is_some()
    };
    if !tested.iter().all(is_settled) {
        return None;
    }
    let mut all = Vec::new();
    for tail in told {
        let median = median_metric(&tail.metric)?;
        let median = comparison
            .findings
            .iter()
            .find(|one| (&one.metric, one.side, one.level) == (&median, tail.side, tail.level))?;
        if median.outcome != FigureOutcome::Equivalent {
            return None;
        }
        let known = FigureWords::new(&median.metric);
        let within = known.margin_text(median.margin);
        all.push(format!(
            "{}, {} within {within}",
            change_phrase(comparison, tail),
            known.name_in_sentence()
        ));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// A server against itself: every difference is chance, or the rig.
fn self_comparison_sentence(comparison: &Comparison, findings: &[&Finding]) -> String {
    let told: Vec<&Finding> = findings
        .iter()
        .filter(|one| matches!(one.outcome, FigureOutcome::Better | FigureOutcome::Worse))
        .copied()
        .collect();
    let n = findings.iter().map(|finding| finding.n).max().unwrap_or(0);
    let blocks = count_runs_text(comparison, n);
    if told.is_empty() {
        let open = match with_outcome(findings, FigureOutcome::Inconclusive).as_slice() {
            [] => String::new(),
            open => format!(
                " ({} vary too much to show a smaller difference)",
                title_list(comparison, open)
            ),
        };
        return format!(
            "the target against itself: no difference was found, as expected{open}; {blocks}"
        );
    }
    format!(
        "the target against itself, and yet it differs: {}; {blocks}. Something on this rig \
         changes with the order of the runs, or this is one of the {} in 100 cases that chance \
         produces",
        changes_list(comparison, &told),
        trimmed_text(comparison.design.alpha * 100.0)
    )
}

/// Why nothing is said.
fn no_verdict_reason(comparison: &Comparison, side: u32) -> String {
    let (name, reference) = (side_label(comparison, side), side_label(comparison, 0));
    let refused: Vec<&str> = comparison
        .differences
        .iter()
        .filter(|one| one.side == side && one.matter == Matter::Refuse)
        .map(|one| one.message.as_str())
        .collect();
    let tested = tested_findings(comparison, side);
    let n = tested.iter().map(|one| one.n).max().unwrap_or(comparison.comparison.blocks);
    let lacks = |one: &&Finding| missing_side_text(comparison, one).is_some();
    let lacked: Vec<&Finding> = tested.iter().filter(|one| lacks(one)).copied().collect();
    // A figure that all runs have but that has no p: the spread is unknown.
    let has_no_spread = tested.iter().any(|one| one.p.is_none() && !lacks(one));
    match refused.split_first() {
        Some((first, [])) => {
            format!("{name} cannot be compared with {reference}: {}", escape_control(first))
        }
        Some((first, rest)) => format!(
            "{name} cannot be compared with {reference}: {} (and {} below)",
            escape_control(first),
            count_text(rest.len() as u32, "more reason")
        ),
        None if !comparison.is_paired && has_no_spread => format!(
            "no verdict on {name}: how much such runs differ by chance is unknown. Measure several \
             runs of each side, or the noise floor of this load (`goodput compare TARGET --aa`)"
        ),
        None if !lacked.is_empty() => {
            format!(
                "no verdict on {name}, for lack of {}",
                missing_figures_text(comparison, &lacked)
            )
        }
        None if let Some(why) = void_reason(comparison) => format!("no verdict on {name}: {why}"),
        None if comparison.is_paired && n < 3 => {
            format!("no verdict on {name} from {}: at least 3 are needed", count_text(n, "block"))
        }
        None => format!("no verdict on {name}: no figure measured on both sides can be tested"),
    }
}

fn gates_sentence(comparison: &Comparison, side: u32, gates: &[&GateResult]) -> String {
    let name = side_label(comparison, side);
    let of = |wanted: FigureOutcome| -> Vec<&GateResult> {
        gates.iter().filter(|gate| gate.outcome == wanted).copied().collect()
    };
    let (failed, open) = (of(FigureOutcome::Worse), of(FigureOutcome::Inconclusive));
    // What no run has a figure for was not judged.
    let unjudged = unjudged_gates(comparison, gates).len();
    let none = of(FigureOutcome::NoVerdict).len() + unjudged;
    let all = count_text((gates.len() + unjudged) as u32, "gate");
    let texts = |gates: &[&GateResult]| {
        gates.iter().map(|gate| gate_phrase(comparison, gate)).collect::<Vec<_>>().join(", ")
    };
    let findings: Vec<&Finding> =
        open.iter().filter_map(|gate| finding_of_gate(comparison, gate)).collect();
    let more = more_blocks_text(comparison, &findings);
    let lacked = of(FigureOutcome::NoVerdict);
    let lacked: Vec<&Finding> =
        lacked.iter().filter_map(|gate| finding_of_gate(comparison, gate)).collect();
    let lacked = match lacked.as_slice() {
        [] => String::new(),
        lacked => format!(": {}", missing_figures_text(comparison, lacked)),
    };
    match (failed.len(), open.len(), none) {
        (0, 0, 0) => format!("{name} passes {all}: {}", texts(gates)),
        (0, 0, none) => {
            format!("{none} of {all} cannot be judged: {}", no_verdict_reason(comparison, side))
        }
        (0, n, none) => {
            let none = match none {
                0 => String::new(),
                none => format!("; {none} cannot be judged{lacked}"),
            };
            format!("{name} is inconclusive for {n} of {all}: {}{more}{none}", texts(&open))
        }
        (n, open, none) => {
            let open = match open + none {
                0 => String::new(),
                n => format!("; {n} inconclusive{more}{lacked}"),
            };
            format!("{name} fails {n} of {all}: {}{open}", texts(&failed))
        }
    }
}

/// Gates that were asked for and of which nothing came.
pub(crate) fn unjudged_gates<'a>(
    comparison: &'a Comparison,
    judged: &[&GateResult],
) -> Vec<&'a Gate> {
    let gates = comparison.design.gates.iter();
    gates.filter(|asked| !judged.iter().any(|judged| judged.gate == **asked)).collect()
}

/// The figure that a gate is about.
pub(crate) fn finding_of_gate<'a>(
    comparison: &'a Comparison,
    gate: &GateResult,
) -> Option<&'a Finding> {
    comparison.findings.iter().find(|one| {
        one.metric == gate.gate.metric && one.side == gate.side && one.level == gate.level
    })
}

/// `p99 TTFT +8.0 % (+6.1 % to +10.2 %), allowed < +5 %`
pub(crate) fn gate_phrase(comparison: &Comparison, gate: &GateResult) -> String {
    let known = FigureWords::new(&gate.gate.metric);
    let change = gate_change(comparison, gate).unwrap_or_else(|| "not measured".to_owned());
    let level = at_level_text(comparison, gate.level);
    format!("{}{level} {change}, allowed {}", known.name_in_sentence(), gate_limit_text(&gate.gate))
}

/// The change that a gate is about, with its interval; none if not both sides have the figure.
pub(crate) fn gate_change(comparison: &Comparison, gate: &GateResult) -> Option<String> {
    let is_there = finding_of_gate(comparison, gate).is_none_or(|finding| finding.n > 0);
    let change = gate.change.filter(|_| is_there)?;
    Some(FigureWords::new(&gate.gate.metric).interval_text(change, gate.low, gate.high))
}
