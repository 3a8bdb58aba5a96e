//! A comparison as test cases: one for each gate, or for each tested figure where there is no
//! gate.

use goodput_campaign::compare::{Comparison, FigureOutcome, Finding, GateResult};
use goodput_model::Verdict;

use super::answer::{answers, finding_of, gate_phrase, phrase, unjudged};
use super::wanting::unjudged_why;
use super::words::{FigureWords, candidates, counted, label, level, limit, tested};
use super::{notes, shadow};
use goodput_document::{Fault, Suite, TestCase};

/// A test case for each gate, or for each tested figure without gates.
pub(super) fn suites(comparison: &Comparison) -> Vec<Suite> {
    let mut sides: Vec<u32> = candidates(comparison).collect();
    if sides.is_empty() {
        // A file without a case would be taken for one where all is well.
        sides.push(1);
    }
    let one = |(side, (_, said)): (u32, (String, String))| {
        let mut suite = Suite {
            name: format!("{} against {}", label(comparison, side), label(comparison, 0)),
            class: vec![shadow::verb(comparison).to_owned(), label(comparison, side)],
            seconds: comparison.comparison.took_s,
            started: comparison.comparison.started.clone(),
            properties: vec![
                ("goodput", comparison.comparison.version.clone()),
                ("verdict", comparison.verdict.name().to_owned()),
            ]
            .into_iter()
            .chain(properties(comparison))
            .collect(),
            cases: cases(comparison, side),
            said,
        };
        if comparison.verdict == Verdict::Void {
            let name = label(comparison, side);
            suite.void(format!("comparison · verdict · {name}"), &comparison.caveats);
        }
        suite
    };
    sides.into_iter().zip(answers(comparison)).map(one).collect()
}

fn properties(comparison: &Comparison) -> Vec<(&'static str, String)> {
    match &comparison.shadow {
        Some(found) => {
            vec![("pairs", found.pairs.to_string()), ("passed", found.facts.passed.to_string())]
        }
        None => {
            vec![("requests", notes::proof(comparison)), ("noise", notes::floor(comparison))]
        }
    }
}

fn fault(outcome: FigureOutcome) -> Option<Fault> {
    match outcome {
        FigureOutcome::Better | FigureOutcome::Equivalent => None,
        FigureOutcome::Worse => Some(Fault::Failure("worse")),
        FigureOutcome::Inconclusive => Some(Fault::Error("inconclusive")),
        FigureOutcome::NoVerdict | FigureOutcome::Described => Some(Fault::Error("no_verdict")),
    }
}

fn cases(comparison: &Comparison, side: u32) -> Vec<TestCase> {
    let name = label(comparison, side);
    let gates: Vec<&GateResult> =
        comparison.gates.iter().filter(|gate| gate.side == side).collect();
    let mut cases: Vec<TestCase> = if comparison.design.gates.is_empty() && gates.is_empty() {
        let one = |finding: &&Finding| of_finding(comparison, finding, &name);
        tested(comparison, side).iter().map(one).collect()
    } else {
        gates.iter().map(|gate| of_gate(comparison, gate, &gates, &name)).collect()
    };
    cases.extend(unjudged(comparison, &gates).into_iter().map(|gate| {
        let metric = FigureWords::new(&gate.metric).name();
        let text = format!("{metric} was not measured, allowed {}", limit(gate));
        TestCase::new(
            format!("any level · {metric} · {name}"),
            text,
            fault(FigureOutcome::NoVerdict),
        )
    }));
    if cases.is_empty() && comparison.verdict != Verdict::Void {
        let answer = answers(comparison).into_iter().map(|(_, text)| text);
        let text = answer.collect::<Vec<_>>().join("; ");
        let name = format!("comparison · anything · {name}");
        cases.push(TestCase::new(name, text, fault(FigureOutcome::NoVerdict)));
    }
    cases
}

fn of_finding(comparison: &Comparison, finding: &Finding, name: &str) -> TestCase {
    let known = FigureWords::new(&finding.metric);
    TestCase {
        name: format!("{} · {} · {name}", level(comparison, finding.level), known.name()),
        fault: fault(finding.outcome),
        text: format!(
            "{}, margin {}{}",
            phrase(comparison, finding),
            known.margin(finding.margin),
            evidence(comparison, finding)
        ),
    }
}

fn of_gate(
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
        _ => format!(" {}", limit(&gate.gate)),
    };
    let metric = FigureWords::new(&gate.gate.metric).name();
    let evidence =
        finding_of(comparison, gate).map_or(String::new(), |one| evidence(comparison, one));
    TestCase {
        name: format!("{} · {metric}{limit} · {name}", level(comparison, gate.level)),
        fault: fault(gate.outcome),
        text: gate_phrase(comparison, gate) + &evidence,
    }
}

/// What it rests on, and what is missing.
fn evidence(comparison: &Comparison, finding: &Finding) -> String {
    // More of what is void would tell nothing.
    let more = finding.further_blocks.filter(|_| comparison.verdict != Verdict::Void);
    let more = more
        .map_or(String::new(), |more| format!(", about {} more needed", counted(comparison, more)));
    let why = unjudged_why(comparison, finding);
    let why = why.map_or(String::new(), |why| format!("; {why}"));
    format!("; {}{more}{why}", counted(comparison, finding.n))
}
