//! Results as JUnit XML, for what shows test cases: a case for everything that was asked to hold.
//!
//! What does not hold is a `failure`. What cannot be told is an `error` and not `skipped`: the exit code
//! is not 0 then, and a job that is red should show a case that is, with the reason; most CI systems
//! hide what was skipped.

use std::fmt::{Error, Write};

use crate::document::{Document, Fault, Suite, TestCase};
use goodput_model::escape_control;

/// The test cases of a document.
pub fn render_page(document: &Document) -> String {
    junit_file(document.suites.name, &document.suites.suites)
}

/// The file.
pub fn junit_file(name: &str, suites: &[Suite]) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_file(&mut page, name, suites);
    page
}

fn write_file(page: &mut String, name: &str, suites: &[Suite]) -> Result<(), Error> {
    let all = suites.iter().flat_map(|suite| &suite.cases);
    // What is measured in turn for all is not counted for each.
    let seconds = suites.iter().map(|suite| suite.seconds).fold(0.0, f64::max);
    writeln!(page, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        page,
        "<testsuites name=\"{}\" {}>",
        escape_xml(name),
        totals_attributes(all, seconds)
    )?;
    for suite in suites {
        let time = junit_timestamp(&suite.started);
        let time = time.map_or(String::new(), |time| format!(" timestamp=\"{time}\""));
        let totals = totals_attributes(suite.cases.iter(), suite.seconds);
        writeln!(page, "  <testsuite name=\"{}\" {totals}{time}>", escape_xml(&suite.name))?;
        writeln!(page, "    <properties>")?;
        for (name, value) in &suite.properties {
            writeln!(page, "      <property name=\"{name}\" value=\"{}\"/>", escape_xml(value))?;
        }
        writeln!(page, "    </properties>")?;
        for case in &suite.cases {
            write_case(page, case, &suite.class)?;
        }
        writeln!(page, "    <system-out>{}</system-out>", escape_xml(&suite.said))?;
        writeln!(page, "  </testsuite>")?;
    }
    writeln!(page, "</testsuites>")
}

fn totals_attributes<'a>(cases: impl Iterator<Item = &'a TestCase>, seconds: f64) -> String {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for case in cases {
        tests += 1;
        match case.fault {
            Some(Fault::Failure(_)) => failures += 1,
            Some(Fault::Error(_)) => errors += 1,
            None => {}
        }
    }
    let time = if seconds.is_finite() && seconds > 0.0 { seconds } else { 0.0 };
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" \
         time=\"{time:.3}\""
    )
}

/// The instant as the format has it: without a zone, which is UTC.
fn junit_timestamp(started: &str) -> Option<&str> {
    let time = started.get(..19)?;
    let is_one = time.bytes().zip(b"0000-00-00T00:00:00").all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == *form,
    });
    is_one.then_some(time)
}

fn write_case(page: &mut String, case: &TestCase, class: &[String]) -> Result<(), Error> {
    let (name, text) = (escape_xml(&case.name), escape_xml(&case.text));
    // Dots and colons part packages from classes.
    let part = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let parts = class.iter().map(|text| text.chars().map(part).collect::<String>());
    let class = std::iter::once("goodput".to_owned()).chain(parts).collect::<Vec<_>>().join(".");
    let class = escape_xml(&class);
    writeln!(page, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"0\">")?;
    let (element, kind) = match case.fault {
        None => {
            writeln!(page, "      <system-out>{text}</system-out>")?;
            return writeln!(page, "    </testcase>");
        }
        Some(Fault::Failure(kind)) => ("failure", kind),
        Some(Fault::Error(kind)) => ("error", kind),
    };
    writeln!(page, "      <{element} message=\"{text}\" type=\"{kind}\">{text}</{element}>")?;
    writeln!(page, "    </testcase>")
}

/// Text inside an element or an attribute. Control characters are shown by [`escape_control`]; two more
/// characters are not allowed in XML at all.
fn escape_xml(text: &str) -> String {
    let mut out = String::new();
    for c in escape_control(text).chars() {
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
