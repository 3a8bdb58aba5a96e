//! A comparison as test cases: one for each gate, or for each tested figure where there is no
//! gate.

use goodput_campaign::compare::{Comparison, FigureOutcome, Finding, GateResult};
use goodput_model::Verdict;

use super::answer::{
    answer_by_candidate, change_phrase, finding_of_gate, gate_phrase, unjudged_gates,
};
use super::wanting::missing_verdict_reason;
use super::words::{
    FigureWords, candidate_places, count_runs_text, gate_limit_text, level_text, side_label,
    tested_findings,
};
use super::{notes, shadow};
use goodput_document::{Fault, Suite, TestCase};

/// A test case for each gate, or for each tested figure without gates.
pub(super) fn comparison_suites(comparison: &Comparison) -> Vec<Suite> {
    let mut sides: Vec<u32> = candidate_places(comparison).collect();
    if sides.is_empty() {
        // A file without a case would be taken for one where all is well.
        sides.push(1);
    }
    let one = |(side, (_, said)): (u32, (String, String))| {
        let mut suite = Suite {
            name: format!("{} against {}", side_label(comparison, side), side_label(comparison, 0)),
            class: vec![shadow::verb_name(comparison).to_owned(), side_label(comparison, side)],
            seconds: comparison.comparison.took_s,
            started: comparison.comparison.started.clone(),
            properties: vec![
                ("goodput", comparison.comparison.version.clone()),
                ("verdict", comparison.verdict.name().to_owned()),
            ]
            .into_iter()
            .chain(suite_properties(comparison))
            .collect(),
            cases: candidate_cases(comparison, side),
            said,
        };
        if comparison.verdict == Verdict::Void {
            let name = side_label(comparison, side);
            suite.mark_void(format!("comparison · verdict · {name}"), &comparison.caveats);
        }
        suite
    };
    sides.into_iter().zip(answer_by_candidate(comparison)).map(one).collect()
}

fn suite_properties(comparison: &Comparison) -> Vec<(&'static str, String)> {
    match &comparison.shadow {
        Some(found) => {
            vec![("pairs", found.pairs.to_string()), ("passed", found.facts.passed.to_string())]
        }
        None => {
            vec![
                ("requests", notes::proof_text(comparison)),
                ("noise", notes::noise_floor_note(comparison)),
            ]
        }
    }
}

fn outcome_fault(outcome: FigureOutcome) -> Option<Fault> {
    match outcome {
        FigureOutcome::Better | FigureOutcome::Equivalent => None,
        FigureOutcome::Worse => Some(Fault::Failure("worse")),
        FigureOutcome::Inconclusive => Some(Fault::Error("inconclusive")),
        FigureOutcome::NoVerdict | FigureOutcome::Described => Some(Fault::Error("no_verdict")),
    }
}

fn candidate_cases(comparison: &Comparison, side: u32) -> Vec<TestCase> {
    let name = side_label(comparison, side);
    let gates: Vec<&GateResult> =
        comparison.gates.iter().filter(|gate| gate.side == side).collect();
    let mut cases: Vec<TestCase> = if comparison.design.gates.is_empty() && gates.is_empty() {
        let one = |finding: &&Finding| finding_case(comparison, finding, &name);
        tested_findings(comparison, side).iter().map(one).collect()
    } else {
        gates.iter().map(|gate| gate_case(comparison, gate, &gates, &name)).collect()
    };
    cases.extend(unjudged_gates(comparison, &gates).into_iter().map(|gate| {
        let metric = FigureWords::new(&gate.metric).name_in_sentence();
        let text = format!("{metric} was not measured, allowed {}", gate_limit_text(gate));
        TestCase::new(
            format!("any level · {metric} · {name}"),
            text,
            outcome_fault(FigureOutcome::NoVerdict),
        )
    }));
    if cases.is_empty() && comparison.verdict != Verdict::Void {
        let answer = answer_by_candidate(comparison).into_iter().map(|(_, text)| text);
        let text = answer.collect::<Vec<_>>().join("; ");
        let name = format!("comparison · anything · {name}");
        cases.push(TestCase::new(name, text, outcome_fault(FigureOutcome::NoVerdict)));
    }
    cases
}

fn finding_case(comparison: &Comparison, finding: &Finding, name: &str) -> TestCase {
    let known = FigureWords::new(&finding.metric);
    TestCase {
        name: format!(
            "{} · {} · {name}",
            level_text(comparison, finding.level),
            known.name_in_sentence()
        ),
        fault: outcome_fault(finding.outcome),
        text: format!(
            "{}, margin {}{}",
            change_phrase(comparison, finding),
            known.margin_text(finding.margin),
            evidence_text(comparison, finding)
        ),
    }
}

fn gate_case(
    comparison: &Comparison,
    gate: &GateResult,
    all: &[&GateResult],
    name: &str,
) -> TestCase {
    let same =
        |other: &&&GateResult| other.gate.metric == gate.gate.metric && other.level == gate.level;
    // Cases of one name are one case to a CI; a limit in every name would make a new case of each
    // change of a limit.
    let limit = match all.iter().filter(same).count() {
        0 | 1 => String::new(),
        _ => format!(" {}", gate_limit_text(&gate.gate)),
    };
    let metric = FigureWords::new(&gate.gate.metric).name_in_sentence();
    let evidence = finding_of_gate(comparison, gate)
        .map_or(String::new(), |one| evidence_text(comparison, one));
    TestCase {
        name: format!("{} · {metric}{limit} · {name}", level_text(comparison, gate.level)),
        fault: outcome_fault(gate.outcome),
        text: gate_phrase(comparison, gate) + &evidence,
    }
}

/// What it rests on, and what is missing.
fn evidence_text(comparison: &Comparison, finding: &Finding) -> String {
    // More of what is void would tell nothing.
    let more = finding.further_blocks.filter(|_| comparison.verdict != Verdict::Void);
    let more = more.map_or(String::new(), |more| {
        format!(", about {} more needed", count_runs_text(comparison, more))
    });
    let why = missing_verdict_reason(comparison, finding);
    let why = why.map_or(String::new(), |why| format!("; {why}"));
    format!("; {}{more}{why}", count_runs_text(comparison, finding.n))
}
