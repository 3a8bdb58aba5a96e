//! The definition of the command line, with short help, groups of commands, and the environment.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::builder::styling::Style;
use clap::{Arg, Command, CommandFactory};

use super::{Arguments, Sections};

/// The commands, as `goodput -h` groups them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "sweep", "compare", "calibrate"]),
    ("Decide", &["capacity", "audit", "stats"]),
    ("Read", &["report", "ui", "merge"]),
    ("Traffic", &["mock", "workload", "record", "shadow"]),
    ("Tools", &["fleet", "init", "help", "completions", "man"]),
];

/// The IDs of the arguments that `-h` shows. Of other commands it shows all.
const SHORT: [(&str, &str); 10] = [
    ("run", "target rate concurrency duration input_tokens max_tokens slo model out json"),
    ("sweep", "target rates concurrency quick duration input_tokens max_tokens slo model out json"),
    ("compare", "targets rate concurrency duration input_tokens max_tokens slo model out json"),
    (
        "capacity",
        "run goodput_rps target_rps headroom gpus_per_replica price_per_gpu_hour traffic diurnal html \
         json",
    ),
    ("mock", "listen profile set ttft itl slots model fault metrics api_key_env"),
    ("record", "upstream output listen expose share rotate_every max_size duration json"),
    ("shadow", "primary candidate duration share candidate_model margin gate listen out json"),
    ("show", "file workload input_tokens max_tokens dataset trace num_requests json"),
    ("kubernetes", "ranks plan words image namespace api_key_secret claim cpus memory dry_run"),
    ("make", "workload input_tokens max_tokens dataset trace num_requests seed output"),
];

/// Examples that `-h` shows.
const EXAMPLES: usize = 3;

const TOPICS: &str = "\
(load, workload, dataset,
      trace, sessions, cache, slo, endpoint, server, fleet, output)";

const ENVIRONMENT: &str = "\
Environment:
  GOODPUT_TARGET       target of run and sweep, if none is given
  GOODPUT_MODEL        model of run, sweep, and compare, if --model is not given (not for the mock)
  OPENAI_API_KEY       API key of the target; --api-key-env names another variable
  GOODPUT_FLEET_TOKEN  secret that the ranks of a fleet share
  NO_COLOR             print no color
  CLICOLOR_FORCE       print color without a terminal too";

/// The command line.
pub(crate) fn command() -> Command {
    let root = Arguments::command().mut_subcommands(|verb| {
        let path = format!("goodput {}", verb.get_name());
        with_help(verb, &path)
    });
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{options-heading}}\n{{options}}{{after-help}}",
        grouped_commands(&root)
    );
    let template = template.replace("{options-heading}", &styled_heading("Options"));
    let more = format!("More: goodput COMMAND --help, goodput help TOPIC {TOPICS}");
    root.help_template(StyledStr::from(template))
        .after_help(more.clone())
        .after_long_help(format!("{ENVIRONMENT}\n\n{more}"))
}

/// A command with its short and long help, and those below it.
fn with_help(verb: Command, path: &str) -> Command {
    let short = SHORT.iter().find(|(name, _)| *name == verb.get_name()).map(|(_, ids)| *ids);
    let hide = |argument: Arg| {
        let id = argument.get_id().as_str();
        let is_shown = short.is_none_or(|ids| ids.split(' ').any(|shown| shown == id));
        if is_shown { argument } else { argument.hide_short_help(true) }
    };
    let verb = verb.mut_args(hide).mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_help(below, &path)
    });
    let below = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let is_about_target = verb.get_arguments().any(|argument| argument.get_id() == "api_key_env");
    let has_environment = is_about_target && verb.get_name() != "mock";
    let mut more = Sections::parse(&below).examples(EXAMPLES).join("\n");
    if !more.is_empty() {
        more.insert_str(0, "Examples:\n");
        more.push_str("\n\n");
    }
    let _ = write!(more, "More: {path} --help");
    if has_environment {
        let _ = write!(more, ", goodput help TOPIC {TOPICS}");
    }
    let long = if has_environment { format!("{below}\n\n{ENVIRONMENT}") } else { below };
    verb.after_help(more).after_long_help(long)
}

/// The commands with their purpose, under the headings of their groups.
fn grouped_commands(root: &Command) -> String {
    let mut text = String::new();
    let name_style = literal_style();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{}", styled_heading(group));
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name_style}{name:<12}{name_style:#} {about}");
        }
        text.push('\n');
    }
    text
}

fn styled_heading(text: &str) -> String {
    let style = clap::builder::Styles::default();
    let style: &Style = style.get_header();
    format!("{style}{text}:{style:#}")
}

fn literal_style() -> Style {
    *clap::builder::Styles::default().get_literal()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command with its path.
    fn commands() -> Vec<(String, Command)> {
        let mut all = vec![("goodput".to_owned(), command())];
        let mut number = 0;
        while let Some((path, command)) = all.get(number).cloned() {
            let below = command.get_subcommands().filter(|below| !below.is_hide_set());
            all.extend(below.map(|below| (format!("{path} {}", below.get_name()), below.clone())));
            number += 1;
        }
        all
    }

    fn help(command: &Command, width: usize, is_long: bool) -> String {
        let mut command = command.clone().term_width(width).max_term_width(width);
        let text = if is_long { command.render_long_help() } else { command.render_help() };
        text.to_string()
    }

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = command();
        let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
        let help = help(&command, 80, false);
        for verb in visible {
            assert_eq!(help.matches(&format!("\n  {verb} ")).count(), 1, "{help}");
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut wrong = Vec::new();
        for (path, command) in commands() {
            // Wide flags and examples of some commands need more than 80 columns.
            let is_first = ["goodput", "run", "sweep", "compare"].contains(&command.get_name());
            for width in if is_first { &[80, 100][..] } else { &[100] } {
                let text = help(&command, *width, false);
                let lines = text.lines().count();
                let wrapped = text.lines().filter(|line| !line.starts_with("Usage:"));
                let widest = wrapped.map(|line| line.chars().count()).max();
                if lines > 40 || widest > Some(*width) {
                    wrong.push(format!("{path}: {lines} lines at {width} columns\n{text}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn short_help_lists_arguments_that_exist() {
        for (path, command) in commands() {
            let name = command.get_name();
            let Some((_, ids)) = SHORT.iter().find(|(verb, _)| *verb == name) else { continue };
            for id in ids.split(' ') {
                let is_there = command.get_arguments().any(|argument| argument.get_id() == id);
                assert!(is_there, "{path} has no {id}");
            }
            assert!(help(&command, 100, false).contains("Examples:"), "{path}");
        }
    }

    #[test]
    fn every_flag_says_what_it_does() {
        for (path, command) in commands() {
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let id = argument.get_id();
                assert!(help.len() > 3 && !help.ends_with('.'), "{path} {id}: {help}");
            }
            let text = help(&command, 100, true);
            assert!(text.contains(command.get_about().unwrap().to_string().as_str()), "{path}");
        }
    }
}
