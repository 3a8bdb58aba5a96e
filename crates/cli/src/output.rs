//! Printing: stdout is data, stderr is everything else.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::error::{Failed, exit};

/// Prints data. A reader that has had enough is no error; a full disk is.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failed::internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line for the user.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// `goodput completions SHELL`
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "goodput", &mut script);
    data(&script)?;
    Ok(ExitCode::from(exit::OK))
}

/// `goodput man [VERB]`
pub(crate) fn man_page(verb: Option<&str>) -> Result<ExitCode, Failed> {
    let mut command = Arguments::command();
    // Gives the verbs their full names.
    command.build();
    if let Some(verb) = verb {
        let found = command.find_subcommand(verb).cloned();
        command = found.ok_or_else(|| {
            Failed::usage(format!("there is no verb `{verb}`")).hint("goodput --help lists them")
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failed::internal(format!("cannot write the page: {error}")))?;
    data(&page)?;
    Ok(ExitCode::from(exit::OK))
}
