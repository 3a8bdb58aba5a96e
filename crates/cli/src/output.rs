//! Printing: stdout is data, stderr is everything else.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Arguments, ColorName};
use crate::error::{Failed, exit};
use crate::screen;

/// Lines that are kept at most while a screen is shown.
const MOST: usize = 1000;

/// What was said while a screen is shown, to be printed after it.
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// What `--color` says.
static COLOUR: OnceLock<ColorName> = OnceLock::new();

#[derive(Debug, Default)]
struct Kept {
    lines: Vec<String>,
    /// Lines that did not fit.
    lost: u64,
}

/// Prints data. A reader that has had enough is no error; a full disk is.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failed> {
    screen::close();
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failed::internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a page for people: with colours, where stdout is a terminal.
pub(crate) fn page(text: &str) -> Result<(), Failed> {
    if is_coloured(io::stdout().is_terminal()) {
        return data(goodput_report::coloured(text).as_bytes());
    }
    data(text.as_bytes())
}

/// Prints a line for the user; while a screen is shown, after it. Secrets that came here by another way
/// than over the wire (a server's own log, a peer) end here.
pub(crate) fn note(line: &str) {
    let line = &goodput_wire::scrub(line.to_owned());
    match kept_lines().as_mut() {
        None => {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
        Some(kept) if kept.lines.len() < MOST => kept.lines.push(line.to_owned()),
        Some(kept) => kept.lost += 1,
    }
}

fn kept_lines() -> MutexGuard<'static, Option<Kept>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on lines are kept.
pub(crate) fn keep() {
    kept_lines().get_or_insert_default();
}

/// Lines that are kept, without the breaks around them.
pub(crate) fn kept() -> Vec<String> {
    let kept = kept_lines();
    let lines = kept.iter().flat_map(|kept| &kept.lines).flat_map(|note| note.lines());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Prints what was kept; from now on lines are printed at once.
pub(crate) fn release() {
    let Some(kept) = kept_lines().take() else { return };
    kept.lines.iter().for_each(|line| note(line));
    if kept.lost > 0 {
        note(&format!("{} more lines were said and are lost", kept.lost));
    }
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
