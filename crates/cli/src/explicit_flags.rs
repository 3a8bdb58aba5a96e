//! Tells flags that the user typed from flags that have their default.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::parser::ValueSource;

use crate::args::{Arguments, words};
use crate::error::Failed;

/// Flags that can be chosen again each time: what else happens during a run, and how its result is
/// shown.
const ALWAYS: [&str; 15] = [
    "color",
    "screen",
    "headers",
    "json",
    "quiet",
    "verbose",
    "no_length_check",
    "metrics_listen",
    "traces",
    "before_cmd",
    "after_cmd",
    "profile",
    "shard",
    "rendezvous",
    "join_within",
];

/// The flags of this process' command line by their ids (`slo`, `num_requests`), each with what it
/// is called there (`--num-requests`); targets are among them.
pub(crate) fn command_line_flags() -> Vec<(String, String)> {
    typed_flags(words())
}

/// Whether this flag was typed.
pub(crate) fn is_typed(id: &str) -> bool {
    command_line_flags().iter().any(|(typed, _)| typed == id)
}

/// Refuses every flag but these next to one that names a plan or a folder.
pub(crate) fn refuse_with(flag: &str, allowed: &[&str]) -> Result<(), Failed> {
    refuse_others(&command_line_flags(), flag, allowed)
}

fn refuse_others(typed: &[(String, String)], flag: &str, allowed: &[&str]) -> Result<(), Failed> {
    let may = |id: &str| id == flag || ALWAYS.contains(&id) || allowed.contains(&id);
    let others = typed.iter().filter(|(id, _)| !may(id));
    let others: Vec<&str> = others.map(|(_, name)| name.as_str()).collect();
    if others.is_empty() {
        return Ok(());
    }
    let others = others.join(", ");
    Err(Failed::usage(format!(
        "`--{flag}` continues with its own settings: {others} cannot be given again"
    ))
    .hint(format!("remove {others}, or remove --{flag} to start over")))
}

fn typed_flags(words: impl IntoIterator<Item = OsString>) -> Vec<(String, String)> {
    let command = Arguments::command();
    let Ok(matches) = command.clone().try_get_matches_from(words) else { return Vec::new() };
    let found = matches.subcommand().zip(matches.subcommand_name());
    let Some(((_, typed), verb)) = found else { return Vec::new() };
    let arguments =
        command.find_subcommand(verb).into_iter().flat_map(clap::Command::get_arguments);
    let is_typed = |argument: &&clap::Arg| {
        typed.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let named = |argument: &clap::Arg| {
        let id = argument.get_id().as_str().to_owned();
        let name = argument.get_long().map_or_else(|| id.clone(), |long| format!("--{long}"));
        (id, name)
    };
    arguments.filter(is_typed).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_was_not_typed() {
        let names = |line: &str| -> Vec<String> {
            typed_flags(line.split(' ').map(OsString::from))
                .into_iter()
                .map(|(_, name)| name)
                .collect()
        };
        assert_eq!(names("goodput compare a b"), ["targets"]);
        let line = "goodput compare a b --margin 3% --blocks 16 --header x:y";
        assert_eq!(names(line), ["targets", "--blocks", "--margin", "--header"]);
        assert_eq!(names("goodput compare --no-such-flag"), [""; 0]);
        assert_eq!(names("goodput"), [""; 0]);
    }

    #[test]
    fn what_goes_on_is_not_asked_again() {
        let refused = |line: &str| {
            let flags = typed_flags(line.split(' ').map(OsString::from));
            assert!(!flags.is_empty(), "{line}");
            refuse_others(&flags, "resume", &[]).map_err(|failed| failed.to_string())
        };
        // Those of groups within groups too.
        let more = [
            ("--duration 1s", "--duration"),
            ("--isl 60", "--input-tokens"),
            ("--warmup 1s", "--warmup"),
            ("--seed 1", "--seed"),
            ("--save-text", "--save-text"),
        ];
        for verb in ["compare", "sweep"] {
            for (flag, name) in more {
                let said =
                    refused(&format!("goodput {verb} --resume x {flag} --json")).unwrap_err();
                assert!(said.contains(&format!(": {name} cannot be given")), "{said}");
            }
            refused(&format!("goodput {verb} --resume x --json --header a:b")).unwrap();
        }
        refused("goodput sweep --resume x --metrics-listen 127.0.0.1:0").unwrap();
        let said = refused("goodput compare --resume x --rate 9 --blocks 3").unwrap_err();
        assert!(said.contains("--rate, --blocks cannot be given again"), "{said}");
    }
}
