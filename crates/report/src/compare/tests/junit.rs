//! JUnit XML: well formed whatever is in it, and a case for everything that was asked.

use goodput_campaign::compare::{Comparison, FigureOutcome, Limit};
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use super::fixtures::*;
use crate::compare::compare_junit;

/// Its name, and its attributes.
pub(crate) type Element = (String, Vec<(String, String)>);

/// The elements in their order, each with its attributes, or what is wrong: nesting, quotes,
/// attributes that are twice there, entities and characters that XML does not have.
pub(crate) fn elements(page: &str) -> Result<Vec<Element>, String> {
    let is_allowed = |c: char| !c.is_control() || matches!(c, '\n');
    if let Some(c) = page.chars().find(|c| !is_allowed(*c) || matches!(c, '\u{fffe}' | '\u{ffff}'))
    {
        return Err(format!("{c:?} is not allowed"));
    }
    let mut rest =
        page.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").ok_or("no head")?;
    let (mut open, mut found): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
    while let Some((text, after)) = rest.split_once('<') {
        entities(text)?;
        if open.is_empty() && !text.trim().is_empty() {
            return Err(format!("text outside: {text}"));
        }
        let (tag, next) = after.split_once('>').ok_or("a tag does not end")?;
        rest = next;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop().as_deref() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let (tag, is_closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if open.is_empty() && !found.is_empty() {
            return Err("two roots".to_owned());
        }
        found.push((name.to_owned(), attributes_of(attributes)?));
        if !is_closed {
            open.push(name.to_owned());
        }
    }
    if rest.trim().is_empty() && open.is_empty() {
        Ok(found)
    } else {
        Err(format!("open: {open:?}"))
    }
}

fn attributes_of(mut text: &str) -> Result<Vec<(String, String)>, String> {
    let mut all: Vec<(String, String)> = Vec::new();
    while !text.trim().is_empty() {
        let (name, after) = text.trim().split_once("=\"").ok_or(format!("no value: {text}"))?;
        let (value, next) = after.split_once('"').ok_or(format!("no end: {text}"))?;
        entities(value)?;
        if all.iter().any(|known| known.0 == name) || !name.bytes().all(|b| b.is_ascii_lowercase())
        {
            return Err(format!("attribute {name}"));
        }
        all.push((name.to_owned(), value.to_owned()));
        text = next;
    }
    Ok(all)
}

fn entities(text: &str) -> Result<(), String> {
    let known = ["amp;", "lt;", "gt;", "quot;", "apos;"];
    let all = text.split('&').skip(1);
    let mut wrong = all.filter(|after| !known.iter().any(|name| after.starts_with(name)));
    wrong.next().map_or(Ok(()), |after| Err(format!("&{after}")))
}

/// Values of an attribute of all elements of a name.
pub(crate) fn values(page: &str, element: &str, attribute: &str) -> Vec<String> {
    let all = elements(page).unwrap();
    let of = all.into_iter().filter(|(name, _)| name == element).flat_map(|(_, all)| all);
    of.filter(|(name, _)| name == attribute).map(|(_, value)| value).collect()
}

#[test]
fn the_check_itself_finds_faults() {
    let page = |body: &str| format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n");
    for wrong in ["<a>", "<a></b>", "<a x=\"1\" x=\"2\"/>", "<a>&nbsp;</a>", "<a/><b/>", "<a x=1/>"]
    {
        assert!(elements(&page(wrong)).is_err(), "{wrong}");
    }
    assert!(elements(&page("<a>\u{1}</a>")).is_err());
    assert_eq!(elements(&page("<a x=\"&lt;\"><b/>&amp;</a>")).unwrap().len(), 2);
}

#[test]
fn a_case_for_each_tested_figure() {
    let page = compare_junit(&two());
    let expected = ["p50 TTFT", "p99 TTFT", "p50 TPOT", "attainment"];
    let expected = expected.map(|figure| format!("8 req/s · {figure} · B"));
    assert_eq!(values(&page, "testcase", "name"), expected);
    let message = "p50 TPOT +5.1 % (+3.9 % to +6.2 %), margin 3 %; 8 blocks";
    assert_eq!(values(&page, "failure", "message"), [message]);
    assert_eq!(values(&page, "testsuite", "name"), ["B against A"]);
    assert_eq!(values(&page, "testsuite", "timestamp"), ["2026-11-15T10:00:00"]);
    let counts = ["tests", "failures", "errors", "skipped", "time"]
        .map(|name| values(&page, "testsuites", name).concat());
    assert_eq!(counts, ["4", "1", "0", "0", "592.000"]);
    let three = compare_junit(&three());
    let names = ["8 req/s · p50 TPOT · B", "8 req/s · p50 TPOT · C"];
    assert_eq!(values(&three, "testcase", "name"), names);
    let mut open = two();
    open.findings[0].outcome = FigureOutcome::Inconclusive;
    open.findings[0].further_blocks = Some(6);
    let message =
        "p50 TTFT +0.4 % (-0.6 % to +1.4 %), margin 3 %; 8 blocks, about 6 blocks more needed";
    let open = compare_junit(&open);
    assert_eq!(values(&open, "error", "message"), [message]);
    assert_eq!(values(&open, "error", "type"), ["inconclusive"]);
}

#[test]
fn a_case_for_each_gate() {
    let gates = [
        gate("ttft_p99", Limit::Below, 0.05, FigureOutcome::Worse),
        gate("goodput_rps", Limit::Above, -0.03, FigureOutcome::Better),
        gate("tpot_p50", Limit::Below, 0.03, FigureOutcome::Inconclusive),
        gate("tpot_p50", Limit::Above, -0.03, FigureOutcome::Equivalent),
    ];
    let page = compare_junit(&gated(gates.to_vec()));
    let expected = ["p99 TTFT", "goodput", "p50 TPOT &lt; +3 %", "p50 TPOT &gt; -3 %"];
    let expected = expected.map(|figure| format!("8 req/s · {figure} · B"));
    assert_eq!(values(&page, "testcase", "name"), expected);
    let message = "p99 TTFT +8.0 % (+6.1 % to +10.2 %), allowed &lt; +5 %; 8 blocks";
    assert_eq!(values(&page, "failure", "message"), [message]);
    assert_eq!(values(&page, "error", "type"), ["inconclusive"]);
    // A gate may be open though the change itself is known.
    let mut known = gated(gates.to_vec());
    known.findings[2].further_blocks = Some(4);
    let message = "allowed &lt; +3 %; 8 blocks, about 4 blocks more needed";
    let known = values(&compare_junit(&known), "error", "message");
    assert!(known.iter().any(|error| error.ends_with(message)), "{known:?}");
    // What was asked for and not judged is not fine.
    let mut unjudged = gated(gates.to_vec());
    unjudged.gates.remove(1);
    let page = compare_junit(&unjudged);
    let error = "goodput was not measured, allowed &gt; -3 %";
    assert!(values(&page, "error", "message").contains(&error.to_owned()), "{page}");
    assert!(values(&page, "testcase", "name").contains(&"any level · goodput · B".to_owned()));
}

/// A file without a case, or one whose cases all pass, would be taken for good news.
#[test]
fn nothing_and_void_are_errors() {
    let nothing = compare_junit(&Comparison::default());
    assert_eq!(values(&nothing, "testsuites", "errors"), ["1"]);
    assert_eq!(values(&nothing, "error", "message"), ["nothing was compared"]);
    let mut void = two();
    void.verdict = Verdict::Void;
    void.caveats = vec![Caveat::new(CaveatCode::NothingMeasured, Severity::Void, "no <answers>")];
    let page = compare_junit(&void);
    let said = values(&page, "error", "message");
    assert_eq!(said.last().unwrap(), "void: no &lt;answers&gt;");
    // No word of it is a result: p50 TPOT was worse.
    assert_eq!(values(&page, "error", "type"), ["void"; 5]);
    assert_eq!(values(&page, "testsuites", "failures"), ["0"]);
    void.sides[1].name = "10.0.0.1:8000".to_owned();
    void.design.sides[1] = "10.0.0.1:8000".to_owned();
    let classes = values(&compare_junit(&void), "testcase", "classname");
    assert_eq!(classes[0], "goodput.compare.10-0-0-1-8000");
    assert_eq!(values(&compare_junit(&saved()), "error", "type"), ["no_verdict"; 4]);
}

#[test]
fn every_page_is_well_formed() {
    let mut all =
        vec![two(), three(), refused(), saved(), search(), hostile(), Comparison::default()];
    all.push(gated(vec![gate("<&\"'>\u{0}\u{ffff}]]>", Limit::Below, 0.05, FigureOutcome::Worse)]));
    for comparison in &all {
        let page = compare_junit(comparison);
        if let Err(wrong) = elements(&page) {
            panic!("{wrong} in\n{page}");
        }
    }
    has(&compare_junit(&hostile()), "\\u{1b}[2J");
    let mut odd = two();
    odd.comparison.started = "2026-11-15T10:00\u{e9}\"<".to_owned();
    assert_eq!(values(&compare_junit(&odd), "testsuite", "timestamp").len(), 0);
}
