//! Every `goodput …` command in a code block of the documentation is one that the parser takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::command;

/// Words that stand for arguments of the reader's choice.
const OMITTED: &str = "…";

/// The arguments of a line of shell, as far as documentation uses it: quotes, `#`, pipes, and so on.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, '|' | '>' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => {
                words.extend(word.take());
                // Two spaces before a word are the gap before a comment.
                let mut ahead = letters.clone();
                let gap = ahead.by_ref().take_while(|letter| *letter == ' ').count();
                if gap > 0 && line_goes_on(letters.clone()) {
                    break;
                }
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    // `2>` and `2>&1`
    let is_descriptor = word.as_deref().is_some_and(|word| word == "2") && line.contains("2>");
    words.extend(word.filter(|_| !is_descriptor));
    words
}

/// Whether what follows a gap is prose rather than a flag or the end.
fn line_goes_on(rest: impl Iterator<Item = char>) -> bool {
    let rest: String = rest.collect();
    let rest = rest.trim_start();
    !rest.is_empty() && !rest.starts_with('-')
}

/// The commands in code blocks of a page, each with the number of its line.
fn commands(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    let mut pending: Option<(usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            pending = None;
            continue;
        }
        if !is_code {
            continue;
        }
        let line = line.trim();
        let joined = match pending.take() {
            Some((start, before)) => Some((start, format!("{before} {line}"))),
            None => start(line).map(|command| (number + 1, command.to_owned())),
        };
        match joined {
            Some((start, text)) if text.ends_with('\\') => {
                pending = Some((start, text.trim_end_matches('\\').trim_end().to_owned()));
            }
            Some(command) => found.push(command),
            None => {}
        }
    }
    found
}

/// The command that a line of shell runs, without a prompt and variables before it.
fn start(line: &str) -> Option<&str> {
    let mut line = line.strip_prefix("$ ").unwrap_or(line);
    while let Some((first, rest)) = line.split_once(' ') {
        let is_variable = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        });
        if !is_variable {
            break;
        }
        line = rest.trim_start();
    }
    let is_command = line == "goodput" || line.starts_with("goodput ");
    // Lines of output: `goodput 0.1.0`, `goodput run · mock`.
    let is_output = line.starts_with("goodput 0.") || line.contains(" · ");
    (is_command && !is_output).then_some(line)
}

/// README.md and the pages in docs.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Why the parser refuses a command.
fn refusal(text: &str) -> Option<String> {
    let mut words = words(text);
    let is_whole = !words.iter().any(|word| word == OMITTED);
    words.retain(|word| word != OMITTED);
    let error = command().try_get_matches_from(words).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        ErrorKind::MissingRequiredArgument if !is_whole => None,
        _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

#[test]
fn every_documented_command_parses() {
    let mut wrong = Vec::new();
    let mut number = 0;
    for page in pages() {
        for (line, text) in commands(&fs::read_to_string(&page).unwrap()) {
            number += 1;
            if let Some(why) = refusal(&text) {
                wrong.push(format!("{}:{line}: {text}\n    {why}", page.display()));
            }
        }
    }
    assert!(number > 100, "only {number} commands were found");
    assert!(wrong.is_empty(), "{} of {number}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn lines_of_shell() {
    let table: [(&str, &[&str]); 7] = [
        ("goodput run 'a b' --rate 5", &["goodput", "run", "a b", "--rate", "5"]),
        ("goodput sweep mock      # two minutes", &["goodput", "sweep", "mock"]),
        ("goodput report x | jq .a", &["goodput", "report", "x"]),
        ("goodput report x > y; ls", &["goodput", "report", "x"]),
        ("goodput sweep mock    at once", &["goodput", "sweep", "mock"]),
        ("goodput a \"b 'c'\" 2>&1", &["goodput", "a", "b 'c'"]),
        ("goodput a   --flag b", &["goodput", "a", "--flag", "b"]),
    ];
    for (line, expected) in table {
        assert_eq!(words(line), expected, "{line}");
    }
    assert_eq!(start("$ A_B=c goodput run x"), Some("goodput run x"));
    assert_eq!(start("goodput_requests_total 5"), None);
    let page = "goodput no\n```\ngoodput run x \\\n    --rate 5\nother\n```\n";
    assert_eq!(commands(page), [(3, "goodput run x --rate 5".to_owned())]);
}
