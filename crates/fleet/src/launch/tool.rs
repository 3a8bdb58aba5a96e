//! The engines' own programs: asked, fed and followed.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::LaunchError;

/// A program of an engine.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    name: &'static str,
    /// Said where it is not there.
    hint: &'static str,
}

impl Tool {
    pub(super) const fn new(name: &'static str, hint: &'static str) -> Self {
        Self { name, hint }
    }

    /// It with these words, deaf to our terminal: Ctrl-C is for us.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.name);
        command.args(words).process_group(0).stdin(Stdio::null());
        command
    }

    /// What it answers, where it succeeds.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, LaunchError> {
        let output = self.command(words).output().map_err(|error| self.missing_error(&error))?;
        self.check_output(words, &output)
    }

    /// The same, with a text on its stdin.
    pub(super) fn run_with_input(&self, words: &[&str], text: &str) -> Result<String, LaunchError> {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.missing_error(&error))?;
        // One that does not read says why by its status.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().map_err(|error| self.missing_error(&error))?;
        self.check_output(words, &output)
    }

    pub(super) fn missing_error(&self, error: &io::Error) -> LaunchError {
        LaunchError::engine(format!("cannot run `{}`: {error}", self.name)).hint(self.hint)
    }

    fn check_output(&self, words: &[&str], output: &Output) -> Result<String, LaunchError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let said = text(&output.stderr);
        let said = said.trim();
        let said = if said.is_empty() { "it printed nothing" } else { said };
        let verb = words.first().copied().unwrap_or_default();
        Err(LaunchError::engine(format!("`{} {verb}` failed: {said}", self.name)))
    }
}
