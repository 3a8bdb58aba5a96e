//! Printing: stdout is data, stderr is everything else. A reader that has gone away is no error.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::error::{Failed, exit};

/// Prints data.
pub(crate) fn data(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Prints a line for the user.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// `goodput completions SHELL`
pub(crate) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "goodput", &mut script);
    let _ = io::stdout().lock().write_all(&script);
    ExitCode::from(exit::OK)
}

/// `goodput man`: every verb on one page.
pub(crate) fn man_page() -> Result<ExitCode, Failed> {
    let mut page = Vec::new();
    let command = Arguments::command().flatten_help(true);
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failed::internal(format!("cannot write the page: {error}")))?;
    let _ = io::stdout().lock().write_all(&page);
    Ok(ExitCode::from(exit::OK))
}
