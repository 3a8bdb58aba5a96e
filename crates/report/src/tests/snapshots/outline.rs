//! A page for a browser as its elements and words: one line for an element, a row of a table on one.

use std::fmt::Write;

/// Elements whose inside is not for people.
const HIDDEN: [&str; 3] = ["style", "script", "svg"];
/// Elements without an inside.
const EMPTY: [&str; 4] = ["meta", "input", "br", "link"];
/// Attributes that say nothing about what the page tells.
const DULL: [&str; 4] = ["content", "viewBox", "tabindex", "aria-hidden"];

/// The page without style, script and drawings.
pub(super) fn outline(page: &str) -> String {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        text(&mut out, &open, &rest[..at]);
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end);
        let tag = &rest[at + 1..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
        if tag.starts_with('/') {
            open.pop();
        } else if !tag.starts_with('!') {
            element(&mut out, &open, tag);
            if HIDDEN.contains(&name) {
                let close = format!("</{name}>");
                rest = rest.split_once(&close).map_or("", |(_, rest)| rest);
            } else if !EMPTY.contains(&name) {
                open.push(name);
            }
        }
    }
    out.push('\n');
    out
}

fn element(out: &mut String, open: &[&str], tag: &str) {
    let is_cell = open.last() == Some(&"tr");
    let mut parts = tag.split(' ');
    let name = parts.next().unwrap_or_default();
    if is_cell {
        out.push_str(if name == "th" { " # " } else { " | " });
    } else {
        let _ = write!(out, "\n{}{name}", "  ".repeat(open.len()));
    }
    for (attribute, value) in attributes(tag) {
        let is_usual = value.is_empty() || attribute == "scope";
        // Places in a drawing.
        let is_place = attribute.starts_with("data-");
        if !DULL.contains(&attribute) && !is_usual && !is_place {
            let _ = write!(out, "[{attribute}={value}] ");
        }
    }
}

fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let mut all = Vec::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once("=\"") {
        let name = before.rsplit(' ').next().unwrap_or_default();
        let (value, next) = after.split_once('"').unwrap_or((after, ""));
        all.push((name, value));
        rest = next;
    }
    all
}

fn text(out: &mut String, open: &[&str], text: &str) {
    if text.trim().is_empty() {
        return;
    }
    let gap = if out.ends_with(' ') || open.contains(&"tr") { "" } else { " " };
    let _ = write!(out, "{gap}{}", text.replace('\n', "⏎"));
}
