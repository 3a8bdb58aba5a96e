//! `--switch-cmd`: what makes one engine give way to another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_model::Plan;

use super::targets::TargetSpec;
use crate::error::Failed;
use crate::serve;
use crate::shell::{self, ShellOutcome};

/// How long it may take when nothing is said.
const LONGEST: Duration = Duration::from_mins(10);

/// What makes a side's engine the one that runs.
pub(super) struct SwitchCommand {
    command: String,
    /// Where what it says is kept.
    log: PathBuf,
    /// How long it, and then the server, may take.
    pub(super) limit: Duration,
}

impl SwitchCommand {
    /// The command of a comparison in this folder.
    pub(super) fn new(command: &str, folder: &Path, plan: &Plan) -> Self {
        let wait_ready = plan.target.wait_ready;
        Self {
            command: command.to_owned(),
            log: folder.join("switch.log"),
            limit: if wait_ready.is_zero() { LONGEST } else { wait_ready },
        }
    }

    /// Makes this side the one that runs.
    pub(super) fn switch_to(
        &self,
        side: &TargetSpec,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failed> {
        run_switch(&self.command, side, (&self.log, self.limit), is_stopped)
    }
}

/// Runs the command for this side, and waits until it has ended. What it says is added to `log`.
/// What it leaves running goes on.
fn run_switch(
    command: &str,
    side: &TargetSpec,
    (log, limit): (&Path, Duration),
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Failed> {
    let cannot = |error: std::io::Error| {
        Failed::usage(format!("cannot run the switch command: {error}"))
            .hint("a shell runs it: sh -c '…'")
    };
    // A link in a folder of results would lead out of it.
    goodput_files::check_inside(log).map_err(cannot)?;
    let file = std::fs::File::options().append(true).create(true).open(log).map_err(cannot)?;
    let start = file.metadata().map_err(cannot)?.len();
    let err = file.try_clone().map_err(cannot)?;
    let mut shell = shell::shell_command(&fill_placeholders(command, side));
    // Inside the user's own quotes a word that is quoted would not be one.
    shell.env("GOODPUT_SIDE", &side.name).env("GOODPUT_URL", &side.url);
    shell.env("GOODPUT_VARY", &side.varied).stdout(file).stderr(err);
    let failed = |what: &str| {
        let lines = serve::last_lines(log, start, serve::LAST_LINES);
        let said =
            if lines.is_empty() { "it printed nothing".to_owned() } else { lines.join("\n") };
        Failed::target(format!("the switch command for `{}` {what}; {said}", side.name))
            .hint(format!("its full output is in {}", log.display()))
    };
    match shell::run_command(shell, Some(limit), is_stopped).map_err(cannot)? {
        ShellOutcome::Ended(status) if status.success() => Ok(()),
        ShellOutcome::Ended(status) => Err(failed(&shell::status_text(status))),
        ShellOutcome::Stopped => Err(Failed::interrupted("stopped while switching")),
        ShellOutcome::TooLong => Err(failed(&format!("took longer than {} s", limit.as_secs()))),
    }
}

/// The command with the side's name and URL in their places, as a shell takes them for one word.
fn fill_placeholders(command: &str, side: &TargetSpec) -> String {
    let mut filled = String::new();
    let mut rest = command;
    // Piece by piece: what was filled in is not looked at again.
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let known = [("{side}", &side.name), ("{vary}", &side.varied), ("{url}", &side.url)];
        let found = known.into_iter().find(|(place, _)| from.starts_with(place));
        let (text, length) =
            found.map_or(("{".to_owned(), 1), |(place, value)| (shell::quote(value), place.len()));
        filled.push_str(&text);
        rest = from.get(length..).unwrap_or_default();
    }
    filled + rest
}

/// Words that look like placeholders; others in braces may be a program's own (`awk '{print}'`).
const TAKEN: [&str; 8] = ["name", "target", "model", "engine", "host", "port", "address", "sides"];

/// A word in braces that looks like a place of ours and is none; a shell's `${name}` is its own.
pub(super) fn unknown_placeholder(command: &str) -> Option<String> {
    let mut rest = command;
    while let Some(at) = rest.find('{') {
        let is_shells = rest.get(..at).is_some_and(|before| before.ends_with('$'));
        rest = rest.get(at + 1..).unwrap_or_default();
        let word: String =
            rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
        let is_closed = rest.get(word.len()..).is_some_and(|rest| rest.starts_with('}'));
        let sorted = |word: &str| {
            let mut letters: Vec<char> = word.chars().collect();
            letters.sort_unstable();
            letters
        };
        let is_slip = |ours: &&str| *ours != word && sorted(ours) == sorted(&word);
        let is_meant =
            TAKEN.contains(&word.as_str()) || ["side", "url", "vary"].iter().any(is_slip);
        if is_closed && !is_shells && is_meant {
            return Some(format!("{{{word}}}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, url: &str) -> TargetSpec {
        let text = format!("name = {name:?}\nurl = {url:?}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.toml");
        std::fs::write(&path, text).unwrap();
        goodput_record::read_toml(&path).unwrap()
    }

    #[test]
    fn values_are_words_of_the_shell() {
        let plain = side("new", "http://h:8000/v1");
        assert_eq!(fill_placeholders("x {side} '{url}' {}", &plain), "x new 'http://h:8000/v1' {}");
        let varied = TargetSpec { varied: "tp=2; reboot".to_owned(), ..plain.clone() };
        assert_eq!(fill_placeholders("x {vary}", &varied), "x 'tp=2; reboot'");
        // The baseline has an empty word, not none.
        assert_eq!(fill_placeholders("x {vary} y", &plain), "x '' y");
        let odd = side("a; rm -rf '/'{url}", "http://h?a=1&b=2");
        let expected = "x 'a; rm -rf '\\''/'\\''{url}' 'http://h?a=1&b=2'";
        assert_eq!(fill_placeholders("x {side} {url}", &odd), expected);
        assert_eq!(
            unknown_placeholder("x {side} ${name} {} {a,b} {url} {print} '{ \"a\": 1 }'"),
            None
        );
        assert_eq!(unknown_placeholder("x {side} {sdie}").as_deref(), Some("{sdie}"));
    }

    #[test]
    fn what_it_says_is_kept_and_shown() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("switch.log");
        let odd = side("it's", "http://h");
        let limited = |command: &str, limit| {
            run_switch(command, &odd, (&log, Duration::from_millis(limit)), &|| false)
        };
        limited("echo {side} \"$GOODPUT_SIDE at $GOODPUT_URL\"", 20_000).unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "it's it's at http://h\n");
        let failed = limited("echo no room >&2; exit 3", 20_000).unwrap_err();
        assert!(failed.to_string().contains("ended with status 3; no room"), "{failed}");
        let slow = limited("sleep 60", 50).unwrap_err();
        assert!(slow.to_string().contains("took longer"), "{slow}");
        let stopped = run_switch("sleep 60", &odd, (&log, LONGEST), &|| true).unwrap_err();
        assert!(stopped.to_string().contains("stopped"), "{stopped}");
    }
}
