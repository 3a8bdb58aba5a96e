//! `goodput man`: manual pages, in roff.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};

use clap_mangen::Man;

use crate::args::{Sections, command, unknown_command};
use crate::error::Failed;
use crate::output;

/// Shows the page where stdout is a terminal and `man` is there; otherwise prints it.
pub(crate) fn man(verb: Option<&str>) -> Result<ExitCode, Failed> {
    let page = render_manual(verb)?;
    if !(io::stdout().is_terminal() && show_in_man(&page)) {
        output::print_data(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a verb, or of goodput.
fn render_manual(verb: Option<&str>) -> Result<Vec<u8>, Failed> {
    let mut command = command();
    // Gives the commands their full names.
    command.build();
    if let Some(verb) = verb {
        let found = command.find_subcommand(verb).cloned();
        command = found.ok_or_else(|| unknown_command(&[], verb, &command))?;
    }
    // clap_mangen leaves out the help of arguments that `-h` hides.
    command = command.mut_args(|argument| argument.hide_short_help(false));
    let below = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let mut page = Vec::new();
    write_page(&mut page, command, usage.trim_start_matches("Usage: "), &below)
        .map_err(|error| Failed::internal(format!("cannot write the page: {error}")))?;
    Ok(page)
}

fn write_page(
    page: &mut Vec<u8>,
    command: clap::Command,
    usage: &str,
    below: &str,
) -> io::Result<()> {
    let has_subcommands = command.has_subcommands();
    let has_version = command.get_version().is_some();
    let man = Man::new(command);
    man.render_title(page)?;
    man.render_name_section(page)?;
    writeln!(page, ".SH SYNOPSIS\n{}", escape_roff(usage))?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if has_subcommands {
        man.render_subcommands_section(page)?;
    }
    let Sections(sections) = Sections::parse(below);
    let (headed, notes): (Vec<_>, Vec<_>) =
        sections.into_iter().partition(|section| section.heading.is_some());
    for section in headed {
        let heading = section.heading.unwrap_or_default().to_uppercase();
        writeln!(page, ".SH \"{}\"\n.nf", escape_roff(&heading))?;
        write_lines(page, &section.lines)?;
        writeln!(page, ".fi")?;
    }
    for (number, paragraph) in notes.iter().enumerate() {
        writeln!(page, "{}", if number == 0 { ".SH NOTES" } else { ".PP" })?;
        write_lines(page, &paragraph.lines)?;
    }
    if has_version { man.render_version_section(page) } else { Ok(()) }
}

fn write_lines(page: &mut Vec<u8>, lines: &[&str]) -> io::Result<()> {
    for line in lines {
        writeln!(page, "{}", escape_roff(line.strip_prefix("  ").unwrap_or(line)))?;
    }
    Ok(())
}

/// Text that roff prints as it is.
fn escape_roff(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Hands the page to `man`; false if that does not work.
fn show_in_man(page: &[u8]) -> bool {
    let mut man = Command::new("man");
    let Ok(mut child) = man.args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn()
    else {
        return false;
    };
    // A pager that was left early has closed its end: that is not a failure.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(page);
    }
    child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_and_exit_codes_have_sections() {
        let page = String::from_utf8(render_manual(Some("run")).unwrap()).unwrap();
        for heading in ["SYNOPSIS", "\"EXIT CODES\"", "\"EXAMPLES\"", "\"ENVIRONMENT\"", "NOTES"] {
            assert_eq!(page.matches(&format!("\n.SH {heading}\n")).count(), 1, "{heading}\n{page}");
        }
        assert!(!page.contains("EXTRA"), "{page}");
        assert!(page.contains(".SH SYNOPSIS\ngoodput run [OPTIONS] [TARGET]\n"), "{page}");
        assert!(page.contains("\n4    SLO missed\n"), "{page}");
        assert!(render_manual(None).is_ok());
        assert!(render_manual(Some("nope")).is_err());
    }
}
