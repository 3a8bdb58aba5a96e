//! Reading the command line: with values from the environment, and with hints for mistakes.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, FromArgMatches};
use goodput_model::closest_name;

use super::{Arguments, Verb, command};
use goodput_lab::Failed;

/// The words of this process' command line, completed with the target from the environment.
pub(crate) fn words() -> Vec<OsString> {
    let target = std::env::var("GOODPUT_TARGET").ok();
    add_target(std::env::args_os().collect(), target.as_deref())
}

/// Reads the command line. Prints help and exits if help was requested, or if clap's own message is
/// the best explanation of the mistake.
pub(crate) fn read() -> Result<Arguments, Failed> {
    let words = words();
    let mut arguments = match parse(&words) {
        Ok(arguments) => arguments,
        Err(error) => return Err(explain_error(&error, &words).unwrap_or_else(|| error.exit())),
    };
    fill_model(&mut arguments.verb, std::env::var("GOODPUT_MODEL").ok());
    Ok(arguments)
}

fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut matches = command().try_get_matches_from(words)?;
    Arguments::from_arg_matches_mut(&mut matches)
}

/// Adds the target where a command lacks one.
fn add_target(mut words: Vec<OsString>, target: Option<&str>) -> Vec<OsString> {
    let Some(target) = target.filter(|text| !text.is_empty() && !text.starts_with('-')) else {
        return words;
    };
    let verb = words.iter().position(|word| word == "run" || word == "sweep");
    let lacks = parse(&words).err().is_some_and(|error| lacks_target(&error));
    if let Some(verb) = verb.filter(|_| lacks) {
        words.insert(verb + 1, target.into());
    }
    words
}

fn lacks_target(error: &clap::Error) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(missing, Some(ContextValue::Strings(names)) if *names == ["<TARGET>"])
}

/// Sets the model from the environment where none is given. A plan, a folder that is continued and
/// the mock name their own.
fn fill_model(verb: &mut Verb, model: Option<String>) {
    let (targets, endpoint) = match verb {
        Verb::Run(args) if args.plan.is_none() => (args.target.as_slice(), &mut args.endpoint),
        Verb::Sweep(args) if args.resume.is_none() => (args.target.as_slice(), &mut args.endpoint),
        Verb::Compare(args) if args.resume.is_none() => {
            (args.targets.as_slice(), &mut args.endpoint)
        }
        _ => return,
    };
    if endpoint.model.is_none() && !targets.iter().any(|target| is_mock(target)) {
        endpoint.model = model.filter(|name| !name.is_empty());
    }
}

/// Whether a target, with or without `NAME=`, is the mock.
fn is_mock(target: &str) -> bool {
    let is_mock = |text: &str| text == "mock" || text.starts_with("mock:");
    is_mock(target) || target.split_once('=').is_some_and(|(_, text)| is_mock(text))
}

/// A better message than clap's, where there is one.
fn explain_error(error: &clap::Error, words: &[OsString]) -> Option<Failed> {
    if lacks_target(error) {
        return Some(Failed::usage("no target is given").hint(
            "`localhost:8000` is a server on this machine, `mock` the one inside goodput; \
             GOODPUT_TARGET can name a default",
        ));
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    Some(unknown_command(&[], word, &parent_command(words)))
}

/// The command whose subcommand is wrong.
fn parent_command(words: &[OsString]) -> Command {
    let mut command = command();
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(below) = command.find_subcommand(word) {
            command = below.clone();
        }
    }
    command
}

/// A message about a word that is not a command, with the command or other word that is meant.
pub(crate) fn unknown_command(others: &[&str], word: &str, command: &Command) -> Failed {
    let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let known = visible.map(Command::get_name).chain(others.iter().copied());
    let failed = Failed::usage(format!("`{word}` is not a command"));
    match closest_name(word, known) {
        Some(near) => failed.hint(format!("did you mean `{near}`?")),
        None => failed.hint("`goodput -h` lists the commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn explained(line: &str) -> String {
        let words = words(line);
        let error = parse(&words).unwrap_err();
        let failed = explain_error(&error, &words).expect(line);
        let problem = failed.problem();
        format!("{} / {}", problem.message, problem.hint.clone().unwrap_or_default())
    }

    #[test]
    fn misspelled_commands() {
        assert_eq!(explained("goodput rnu"), "`rnu` is not a command / did you mean `run`?");
        assert!(explained("goodput workload shwo x").ends_with("did you mean `show`?"));
        assert!(explained("goodput fleet kubernets --ranks 2").ends_with("`kubernetes`?"));
        assert!(explained("goodput 7").ends_with("`goodput -h` lists the commands"));
    }

    #[test]
    fn a_run_without_a_target() {
        for line in ["goodput run", "goodput run --rate 5", "goodput sweep"] {
            assert!(explained(line).contains("no target is given / `localhost:8000`"), "{line}");
        }
    }

    #[test]
    fn the_target_from_the_environment() {
        let target = Some("http://h:1");
        let table = [
            ("goodput run --rate 5", "goodput run http://h:1 --rate 5"),
            ("goodput --color never sweep", "goodput --color never sweep http://h:1"),
            ("goodput run mock --rate 5", "goodput run mock --rate 5"),
            ("goodput run --plan p.toml", "goodput run --plan p.toml"),
            ("goodput sweep --resume x", "goodput sweep --resume x"),
            ("goodput report run", "goodput report run"),
        ];
        for (line, expected) in table {
            assert_eq!(add_target(words(line), target), words(expected));
        }
        for other in [None, Some(""), Some("--json")] {
            assert_eq!(add_target(words("goodput run"), other), words("goodput run"));
        }
    }

    #[test]
    fn the_model_from_the_environment() {
        let model = |line: &str| {
            let mut verb = parse(&words(line)).unwrap().verb;
            fill_model(&mut verb, Some("m".to_owned()));
            match verb {
                Verb::Run(args) => args.endpoint.model,
                Verb::Sweep(args) => args.endpoint.model,
                Verb::Compare(args) => args.endpoint.model,
                _ => panic!("{line}"),
            }
        };
        for verb in ["run", "sweep", "compare"] {
            assert_eq!(model(&format!("goodput {verb} http://h")).as_deref(), Some("m"));
            assert_eq!(model(&format!("goodput {verb} http://h --model n")).as_deref(), Some("n"));
            assert_eq!(model(&format!("goodput {verb} mock")), None);
        }
        assert_eq!(model("goodput run --plan p"), None);
        assert_eq!(model("goodput sweep --resume p"), None);
    }
}
