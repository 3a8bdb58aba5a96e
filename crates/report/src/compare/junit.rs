//! A comparison as JUnit XML: a test case for each gate, or for each tested figure where there is no
//! gate.
//!
//! What is worse is a `failure`. What cannot be told is an `error` and not `skipped`: the exit code is
//! not 0 then, and a job that is red should show a case that is, with the reason; most CI systems hide
//! what was skipped.

use std::fmt::{Error, Write};

use goodput_campaign::compare::{Comparison, Finding, GateResult, Outcome};
use goodput_model::{Severity, Verdict};

use super::answer::{answers, finding_of, gate_phrase, phrase, unjudged};
use super::notes;
use super::wanting::unjudged_why;
use super::words::{Known, candidates, counted, label, labels, level, limit, tested};
use crate::plain::plain;

/// One test case.
struct Case {
    name: String,
    outcome: Outcome,
    text: String,
    /// Of a comparison that is void: no word of it is a result.
    is_void: bool,
}

impl Case {
    /// The element of one that is not fine.
    fn element(&self) -> Option<(&'static str, &'static str)> {
        match self.outcome {
            _ if self.is_void => Some(("error", "void")),
            Outcome::Better | Outcome::Equivalent => None,
            Outcome::Worse => Some(("failure", "worse")),
            Outcome::Inconclusive => Some(("error", "inconclusive")),
            Outcome::NoVerdict => Some(("error", "no_verdict")),
        }
    }
}

/// A test case for each gate, or for each tested figure where there is no gate.
pub fn compare_junit(comparison: &Comparison) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, comparison);
    page
}

fn write_page(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    let names = labels(comparison);
    let answers = answers(comparison);
    let mut sides: Vec<u32> = candidates(comparison).collect();
    if sides.is_empty() {
        // A file without a case would be taken for one where all is well.
        sides.push(1);
    }
    let suites: Vec<(u32, Vec<Case>)> =
        sides.into_iter().map(|side| (side, cases(comparison, side, &names))).collect();
    let all = suites.iter().flat_map(|(_, cases)| cases);
    writeln!(page, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(page, "<testsuites name=\"goodput compare\" {}>", totals(all, comparison))?;
    for ((side, cases), (_, answer)) in suites.iter().zip(&answers) {
        let name = format!("{} against {}", label(&names, *side), label(&names, 0));
        let timestamp =
            timestamp(comparison).map_or(String::new(), |time| format!(" timestamp=\"{time}\""));
        let totals = totals(cases.iter(), comparison);
        writeln!(page, "  <testsuite name=\"{}\" {totals}{timestamp}>", xml(&name))?;
        properties(page, comparison)?;
        for case in cases {
            write_case(page, case, &label(&names, *side))?;
        }
        writeln!(page, "    <system-out>{}</system-out>", xml(answer))?;
        writeln!(page, "  </testsuite>")?;
    }
    writeln!(page, "</testsuites>")
}

fn totals<'a>(cases: impl Iterator<Item = &'a Case>, comparison: &Comparison) -> String {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for case in cases {
        tests += 1;
        match case.element() {
            Some(("failure", _)) => failures += 1,
            Some(_) => errors += 1,
            None => {}
        }
    }
    let time = comparison.comparison.took_s;
    let time = if time.is_finite() && time > 0.0 { time } else { 0.0 };
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" \
         time=\"{time:.3}\""
    )
}

/// The instant as the format has it: without a zone, which is UTC.
fn timestamp(comparison: &Comparison) -> Option<&str> {
    let time = comparison.comparison.started.get(..19)?;
    let is_one = time.bytes().zip(b"0000-00-00T00:00:00").all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == *form,
    });
    is_one.then_some(time)
}

fn properties(page: &mut String, comparison: &Comparison) -> Result<(), Error> {
    let all = [
        ("goodput", comparison.comparison.version.clone()),
        ("verdict", comparison.verdict.name().to_owned()),
        ("requests", notes::proof(comparison)),
        ("noise", notes::floor(comparison)),
    ];
    writeln!(page, "    <properties>")?;
    for (name, value) in all {
        writeln!(page, "      <property name=\"{name}\" value=\"{}\"/>", xml(&value))?;
    }
    writeln!(page, "    </properties>")
}

fn write_case(page: &mut String, case: &Case, side: &str) -> Result<(), Error> {
    let (name, text) = (xml(&case.name), xml(&case.text));
    // Dots and colons part packages from classes.
    let part = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let side: String = side.chars().map(part).collect();
    let class = xml(&format!("goodput.compare.{side}"));
    writeln!(page, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"0\">")?;
    match case.element() {
        None => writeln!(page, "      <system-out>{text}</system-out>")?,
        Some((element, kind)) => {
            writeln!(
                page,
                "      <{element} message=\"{text}\" type=\"{kind}\">{text}</{element}>"
            )?;
        }
    }
    writeln!(page, "    </testcase>")
}

fn cases(comparison: &Comparison, side: u32, names: &[String]) -> Vec<Case> {
    let name = label(names, side);
    let gates: Vec<&GateResult> =
        comparison.gates.iter().filter(|gate| gate.side == side).collect();
    let mut cases: Vec<Case> = if comparison.design.gates.is_empty() && gates.is_empty() {
        let one = |finding: &&Finding| of_finding(comparison, finding, &name);
        tested(comparison, side).iter().map(one).collect()
    } else {
        gates.iter().map(|gate| of_gate(comparison, gate, &gates, &name)).collect()
    };
    cases.extend(unjudged(comparison, &gates).into_iter().map(|gate| {
        let metric = Known::of(&gate.metric).name();
        Case {
            name: format!("any level · {metric} · {name}"),
            outcome: Outcome::NoVerdict,
            text: format!("{metric} was not measured, allowed {}", limit(gate)),
            is_void: false,
        }
    }));
    if comparison.verdict == Verdict::Void {
        cases.push(void(comparison, &name));
    }
    if cases.is_empty() {
        let answer = answers(comparison).into_iter().map(|(_, text)| text);
        cases.push(Case {
            name: format!("comparison · anything · {name}"),
            outcome: Outcome::NoVerdict,
            text: answer.collect::<Vec<_>>().join("; "),
            is_void: false,
        });
    }
    if comparison.verdict == Verdict::Void {
        for case in &mut cases {
            case.is_void = true;
        }
    }
    cases
}

fn void(comparison: &Comparison, name: &str) -> Case {
    let why: Vec<&str> = comparison
        .caveats
        .iter()
        .filter(|caveat| caveat.severity == Severity::Void)
        .map(|caveat| caveat.message.as_str())
        .collect();
    Case {
        name: format!("comparison · verdict · {name}"),
        outcome: Outcome::NoVerdict,
        text: format!("void: {}", why.join("; ")),
        is_void: true,
    }
}

fn of_finding(comparison: &Comparison, finding: &Finding, name: &str) -> Case {
    let known = Known::of(&finding.metric);
    Case {
        name: format!("{} · {} · {name}", level(comparison, finding.level), known.name()),
        outcome: finding.outcome,
        text: format!(
            "{}, margin {}{}",
            phrase(comparison, finding),
            known.margin(finding.margin),
            evidence(comparison, finding)
        ),
        is_void: false,
    }
}

fn of_gate(comparison: &Comparison, gate: &GateResult, all: &[&GateResult], name: &str) -> Case {
    let same =
        |other: &&&GateResult| other.gate.metric == gate.gate.metric && other.level == gate.level;
    // Cases of one name are one case to a CI; a limit in every name would make a new case of each
    // change of a limit.
    let limit = match all.iter().filter(same).count() {
        0 | 1 => String::new(),
        _ => format!(" {}", limit(&gate.gate)),
    };
    let metric = Known::of(&gate.gate.metric).name();
    let evidence =
        finding_of(comparison, gate).map_or(String::new(), |one| evidence(comparison, one));
    Case {
        name: format!("{} · {metric}{limit} · {name}", level(comparison, gate.level)),
        outcome: gate.outcome,
        text: gate_phrase(comparison, gate) + &evidence,
        is_void: false,
    }
}

/// What it rests on, and what is missing.
fn evidence(comparison: &Comparison, finding: &Finding) -> String {
    // More of what is void would tell nothing.
    let more = finding.further_blocks.filter(|_| comparison.verdict != Verdict::Void);
    let more = more
        .map_or(String::new(), |more| format!(", about {} more needed", counted(comparison, more)));
    let why = unjudged_why(comparison, finding, &labels(comparison));
    let why = why.map_or(String::new(), |why| format!("; {why}"));
    format!("; {}{more}{why}", counted(comparison, finding.n))
}

/// Text inside an element or an attribute. Control characters are shown by [`plain`]; two more
/// characters are not allowed in XML at all.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
