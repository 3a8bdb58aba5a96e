//! `goodput init`: a commented plan to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use crate::args::InitArgs;
use crate::error::Failed;
use crate::{output, plan};

const TEMPLATE: &str = include_str!("init/plan.toml");

/// Runs the verb.
pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, Failed> {
    let shown = goodput_report::escape_control(&args.file.display().to_string());
    let created = OpenOptions::new().write(true).create_new(true).open(&args.file);
    let mut file = created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failed::usage(format!("`{shown}` already exists"))
            .hint("goodput does not overwrite it; name another file: goodput init FILE"),
        _ => Failed::usage(format!("cannot create `{shown}`: {error}")),
    })?;
    file.write_all(plan_template().as_bytes())
        .map_err(|error| Failed::internal(format!("cannot write `{shown}`: {error}")))?;
    output::print_note(&format!("wrote {shown}; run it with: goodput run --plan {shown}"));
    Ok(ExitCode::SUCCESS)
}

/// The plan with as many workers as this machine has by default.
fn plan_template() -> String {
    TEMPLATE.replace("\nworkers = 1\n", &format!("\nworkers = {}\n", plan::default_workers()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Verb};

    #[test]
    fn the_template_is_the_plan_of_the_default_flags() {
        let words = "goodput run mock --rate 5 --warmup 10s --duration 1m";
        let Verb::Run(args) = Arguments::parse_from(words.split(' ')).verb else {
            panic!("not a run")
        };
        assert_eq!(
            goodput_record::parse_plan(&plan_template()).unwrap(),
            plan::resolve_plan(&args).unwrap()
        );
    }

    #[test]
    fn every_value_that_is_commented_out_can_be_used() {
        let used: Vec<&str> = TEMPLATE.lines().map(used).collect();
        let text = used.join("\n");
        // A plan has one mode: the second replaces the first.
        let (before, rest) = text.split_once("[load.mode]").unwrap();
        let (_, closed) = rest.split_once("[load.mode]").unwrap();
        let plan = goodput_record::parse_plan(&format!("{before}[load.mode]{closed}")).unwrap();
        assert_eq!(plan.target.model.as_deref(), Some("llama"));
        assert_eq!(plan.measure.attainment, Some(0.99));
        assert_eq!(plan.load.num_requests, Some(1000));
        assert_eq!(plan.load.mode.name(), "closed");
    }

    /// A line with its `#` removed, where that is a value or a table.
    fn used(line: &str) -> &str {
        match line.strip_prefix('#') {
            Some(value) if !value.is_empty() && !value.starts_with(' ') => value,
            _ => line,
        }
    }
}
