//! Printing: stdout is data, stderr is everything else.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Arguments, ColorName};
pub(crate) use crate::notes::note;
use crate::terminal;
use goodput_lab::Failed;

/// What `--color` says.
static COLOUR: OnceLock<ColorName> = OnceLock::new();

/// Prints data. A reader that has had enough is no error; a full disk is.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failed> {
    terminal::close();
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failed::internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says so where other machines can reach a listener, and what that means. Not even `--quiet` keeps
/// it back.
pub(crate) fn warn_if_open(address: SocketAddr, meaning: &str) {
    if !goodput_http::is_of_this_machine(address.ip()) {
        note(&format!("warning: other machines can reach {address}: {meaning}"));
    }
}

/// Prints a page for people: with colours, where stdout is a terminal.
pub(crate) fn page(text: &str) -> Result<(), Failed> {
    if is_coloured(io::stdout().is_terminal()) {
        return data(goodput_report::colored(text).as_bytes());
    }
    data(text.as_bytes())
}

/// Keeps what `--color` says.
pub(crate) fn choose_colour(choice: ColorName) {
    let _ = COLOUR.set(choice);
}

/// Whether the screen has colours.
pub(crate) fn has_colour() -> bool {
    is_coloured(true)
}

fn is_coloured(is_terminal: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    match COLOUR.get().copied().unwrap_or_default() {
        ColorName::Always => true,
        ColorName::Never => false,
        ColorName::Auto => !is_set("NO_COLOR") && (is_terminal || is_forced),
    }
}

/// `goodput completions SHELL`
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "goodput", &mut script);
    data(&script)?;
    Ok(ExitCode::SUCCESS)
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
    Ok(ExitCode::SUCCESS)
}
