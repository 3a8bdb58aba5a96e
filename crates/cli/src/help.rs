//! `goodput help`: a topic, a command, or a caveat, from the definition of the command line.

mod caveat;
mod topic;

use std::process::ExitCode;

use clap::Command;
use clap::builder::StyledStr;
use goodput_model::CaveatCode;

use crate::args::{command, unknown_command};
use crate::error::Failed;
use crate::output;
use topic::Topic;

/// Runs the verb.
pub(crate) fn help(words: &[String]) -> Result<ExitCode, Failed> {
    output::print_styled(&help_text(words)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The help that these words ask for.
fn help_text(words: &[String]) -> Result<StyledStr, Failed> {
    let mut root = command();
    // Gives the commands their full names.
    root.build();
    if let [word] = words {
        let word = word.to_lowercase();
        if let Some(topic) = Topic::find(&word) {
            return Ok(topic.text());
        }
        if let Some(code) = CaveatCode::ALL.iter().find(|code| code.name() == word) {
            return Ok(StyledStr::from(caveat::caveat_text(*code)));
        }
    }
    let mut found = &mut root;
    for word in words {
        let known = found.clone();
        found = found.find_subcommand_mut(word).ok_or_else(|| unknown_word(words, word, &known))?;
    }
    Ok(found.render_long_help())
}

fn unknown_word(words: &[String], word: &str, within: &Command) -> Failed {
    let mut others = Vec::new();
    if words.len() == 1 {
        others.extend(Topic::names());
        others.extend(CaveatCode::ALL.iter().map(|code| code.name()));
    }
    let failed = unknown_command(&others, word, within);
    if others.is_empty() {
        return failed;
    }
    let hint = failed.problem().hint.clone().unwrap_or_default();
    let hint =
        hint.replace("`goodput -h` lists the commands", "`goodput -h` lists commands and topics");
    Failed::usage(format!("`{word}` is not a topic, a command, or the code of a caveat")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &str) -> String {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        help_text(&words).unwrap().to_string()
    }

    fn refused(word: &str) -> String {
        let failed = help_text(&[word.to_owned()]).unwrap_err();
        format!("{failed} / {}", failed.problem().hint.clone().unwrap_or_default())
    }

    #[test]
    fn commands() {
        assert!(shown("").contains("Usage: goodput [OPTIONS] <COMMAND>"));
        assert!(shown("run").contains("Usage: goodput run"));
        assert!(shown("workload show").contains("Usage: goodput workload show"));
        assert_eq!(shown("plan"), shown("capacity"));
    }

    #[test]
    fn caveats() {
        let text = shown("schedule_slip");
        assert!(text.starts_with("schedule_slip: The client sent late\n"), "{text}");
        assert!(text.contains("What to do:"), "{text}");
        for code in CaveatCode::ALL {
            let text = shown(code.name());
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        }
    }

    #[test]
    fn what_is_misspelled() {
        assert!(refused("dataste").ends_with("did you mean `dataset`?"));
        assert!(refused("schedul_slip").ends_with("did you mean `schedule_slip`?"));
        assert!(refused("qqqqqq").ends_with("`goodput -h` lists commands and topics"));
        assert!(refused("rnu").starts_with("`rnu` is not a topic, a command, or"));
    }
}
