//! Printing: stdout is data, stderr is everything else.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::builder::StyledStr;
use clap_complete::Shell;

use crate::args::{ColorName, command};
pub(crate) use crate::notes::print_note;
use crate::terminal;
use goodput_lab::Failed;

/// The value of `--color`.
static COLOR: OnceLock<ColorName> = OnceLock::new();

/// Prints data. A reader that closed the pipe is not an error; a full disk is.
pub(crate) fn print_data(bytes: &[u8]) -> Result<(), Failed> {
    terminal::close_screen();
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
    if !goodput_http::is_local_only(address.ip()) {
        print_note(&format!("warning: other machines can reach {address}: {meaning}"));
    }
}

/// Prints a page for people: with color, where stdout is a terminal.
pub(crate) fn print_page(text: &str) -> Result<(), Failed> {
    if uses_color(io::stdout().is_terminal()) {
        return print_data(goodput_report::color_page(text).as_bytes());
    }
    print_data(text.as_bytes())
}

/// Keeps the value of `--color`.
pub(crate) fn set_color(choice: ColorName) {
    let _ = COLOR.set(choice);
}

/// Whether the screen has color.
pub(crate) fn has_color() -> bool {
    uses_color(true)
}

fn uses_color(is_terminal: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    match COLOR.get().copied().unwrap_or_default() {
        ColorName::Always => true,
        ColorName::Never => false,
        ColorName::Auto => !is_set("NO_COLOR") && (is_terminal || is_forced),
    }
}

/// `goodput completions SHELL`
pub(crate) fn print_completions(shell: Shell) -> Result<ExitCode, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "goodput", &mut script);
    print_data(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// `goodput version`
pub(crate) fn print_version() -> Result<ExitCode, Failed> {
    print_data(command().render_version().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints help, with color where stdout is a terminal.
pub(crate) fn print_styled(text: &StyledStr) -> Result<(), Failed> {
    let is_colored = uses_color(io::stdout().is_terminal());
    let text = if is_colored { text.ansi().to_string() } else { text.to_string() };
    print_data(format!("{}\n", text.trim_end()).as_bytes())
}
