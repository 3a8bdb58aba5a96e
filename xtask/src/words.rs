//! The language of the project: words that the glossary replaces, line lengths, links, and the
//! names of files.
//!
//! `crates/cli/src/args/documented.rs` checks the commands in the same pages: it has the parser.

mod paths;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};

/// The most columns of a line of prose in Markdown. Text is wrapped at 100; a link may hang over.
const MOST_COLUMNS: usize = 120;

/// A word that is not used, and what to write instead.
struct BannedWord {
    pattern: &'static str,
    instead: &'static str,
}

/// Words for text and code alike. `docs/glossary.md` has the words that replace them.
const WORDS: [BannedWord; 15] = [
    BannedWord {
        pattern: r"\b(no|some)body\b",
        instead: "name who it is, or use the passive voice",
    },
    BannedWord { pattern: r"\b(is|are|was) no [a-z]+", instead: "`is not a …`, `has no …`" },
    BannedWord { pattern: r"\bbeside\b", instead: "`next to`, `in addition to`, `during`" },
    BannedWord { pattern: r"\bwhoever\b", instead: "name who it is" },
    BannedWord { pattern: r"\bended well\b", instead: "`completed`" },
    BannedWord { pattern: r"\bunder way\b", instead: "`in flight`, `running`" },
    BannedWord { pattern: r"\bclient 0\b", instead: "`rank 0`" },
    BannedWord { pattern: r"\bmade by goodput\b", instead: "`written by goodput`" },
    BannedWord { pattern: r"\bof no use\b", instead: "say what is wrong with it" },
    BannedWord {
        pattern: r"\bso many (as|tokens|requests|users|times)\b",
        instead: "`N`, or `this many`",
    },
    BannedWord { pattern: r"\bfn of\(", instead: "`new`, `from_…`, `open`, `parse`" },
    BannedWord {
        pattern: r"\b(struct|enum|trait) (Clerk|Scribe|Teller|Desk|Vigil|Kin|Shelf|Ears?|Seats?)\b",
        instead: "a noun of the domain",
    },
    BannedWord {
        pattern: r"\b(struct|enum) (Asked|Seen|Kept|Told|Said|Heard|Taken|Went|Ran)\b",
        instead: "a noun of the domain",
    },
    BannedWord {
        pattern: r"\b(colour|favour|behaviour|neighbour|licence|centre|labelled\b|modelled)",
        instead: "American spelling",
    },
    BannedWord {
        pattern: r"\b(analysed|analysing|normalis|optimise|optimisation|realise|serialis|summaris)",
        instead: "American spelling",
    },
];

/// Phrases that contain a word of the list and are plain English.
const PLAIN: [&str; 4] = ["is no longer", "are no longer", "was no longer", "there is no "];

/// Files whose words are not prose: these two list the words, and these two hold the vocabulary of
/// generated text.
const EXEMPT: [&str; 4] = [
    "xtask/src/words",
    "docs/glossary.md",
    "crates/workload/src/lexicon.rs",
    "crates/mock/src/api/text.rs",
];

/// A finding: where, and what is wrong.
type Finding = String;

/// Fails with every finding.
pub(crate) fn check() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let findings = findings(&root)?;
    if findings.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n{} findings", findings.join("\n"), findings.len()))
}

fn findings(root: &Path) -> Result<Vec<Finding>, String> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let patterns: Vec<(Regex, &str)> = WORDS
        .iter()
        .map(|word| {
            let pattern = RegexBuilder::new(word.pattern).case_insensitive(true).build();
            pattern.map(|pattern| (pattern, word.instead)).map_err(|error| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    let mut findings = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if !EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
            findings.extend(odd_words(&patterns, &text).map(|found| format!("{name}:{found}")));
        }
        if file.extension().is_some_and(|extension| extension == "md") {
            findings.extend(long_lines(&text).map(|found| format!("{name}:{found}")));
            findings.extend(dead_links(&file, &text).map(|found| format!("{name}: {found}")));
            let lost = paths::missing(root, &name, &text);
            findings.extend(lost.into_iter().map(|found| format!("{name}: {found}")));
        }
    }
    Ok(findings)
}

/// Rust and Markdown files, without what is built or generated.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_left_out =
            name.starts_with('.') || matches!(&*name, "target" | "corpus" | "snapshots");
        if path.is_dir() && !is_left_out {
            collect(&path, files)?;
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn odd_words<'a>(
    patterns: &'a [(Regex, &'a str)],
    text: &'a str,
) -> impl Iterator<Item = Finding> + 'a {
    text.lines().enumerate().flat_map(move |(number, line)| {
        let lower = line.to_lowercase();
        let is_plain = PLAIN.iter().any(|phrase| lower.contains(phrase));
        let found = patterns.iter().filter_map(move |(pattern, instead)| {
            let found = pattern.find(line)?.as_str().to_owned();
            let is_odd = !(is_plain && found.to_lowercase().contains(" no "));
            is_odd.then(|| format!("{}: `{found}`: {instead}", number + 1))
        });
        found.collect::<Vec<_>>()
    })
}

/// Lines of prose; tables, code, and pictures cannot be wrapped.
fn long_lines(text: &str) -> impl Iterator<Item = Finding> {
    prose(text).filter_map(|(number, line)| {
        let columns = line.chars().count();
        let is_long = columns > MOST_COLUMNS && !line.starts_with('|') && !line.starts_with("![");
        is_long.then(|| format!("{number}: {columns} columns: wrap prose at 100"))
    })
}

/// The numbered lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((number + 1, line))
    })
}

/// Links to files of the project that do not exist, or to a heading that such a file lacks.
fn dead_links<'a>(file: &'a Path, text: &'a str) -> impl Iterator<Item = Finding> + 'a {
    let lines: Vec<&str> = prose(text).map(|(_, line)| line).collect();
    targets(&lines.join("\n")).into_iter().filter_map(move |target| {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let linked = if path.is_empty() { file.to_owned() } else { file.parent()?.join(path) };
        if !linked.exists() {
            return Some(format!("the link `{target}` leads to a file that does not exist"));
        }
        let is_page = linked.extension().is_some_and(|extension| extension == "md");
        if anchor.is_empty() || !is_page {
            return None;
        }
        let page = fs::read_to_string(&linked).unwrap_or_default();
        let is_missing = !anchors(&page).contains(anchor);
        is_missing.then(|| format!("the link `{target}` leads to a heading that does not exist"))
    })
}

/// What the links of a page lead to.
fn targets(text: &str) -> Vec<String> {
    // Link texts may span lines; inline code holds no links.
    let code = Regex::new(r"`[^`]*`").ok();
    let text = code.map_or(text.into(), |code| code.replace_all(text, "``"));
    let Ok(link) = Regex::new(r"\]\(([^()\s]+)\)") else { return Vec::new() };
    link.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}

/// The anchors of a page's headings, as forges make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(page).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut name = slug.clone();
        let mut number = 0;
        while !anchors.insert(name) {
            number += 1;
            name = format!("{slug}-{number}");
        }
    }
    anchors
}
