//! The live screen on a real terminal, one that `script` makes.

use std::process::{Command, Stdio};

use crate::support::Session;

/// Entering and leaving the alternate screen.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// Longer than anything takes, in seconds.
const PATIENCE: &str = "240";

/// A run on a terminal, where each key is typed once its words were seen there; what was seen. None
/// if the system makes no terminals.
#[expect(clippy::print_stderr, reason = "who reads the test's output should know")]
fn on_terminal(session: &Session, args: &str, keys: &[(&str, &str)]) -> Option<String> {
    let mut probe = Command::new("script");
    probe.args(["-qec", "true", "/dev/null"]).stdin(Stdio::null());
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped: there is no `script` that makes a terminal");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_goodput");
    let until = |is_there: &str| format!("until [ -e over ] || {is_there}; do sleep 0.1; done; ");
    let typed = keys.iter().map(|(words, key)| {
        until(&format!("grep -aqs '{words}' seen")) + &format!("printf '{key}'; ")
    });
    let typed = typed.collect::<String>() + &until("false");
    let inside = format!(
        "stty cols 80 rows 24; {program} {args}; code=\\$?; touch over; echo code \\$code; stty -a"
    );
    // The terminal goes away with its input: that stays until the run is over, or nothing came of it.
    let line =
        format!("rm -f seen over; ({typed}) | {{ script -qefc \"{inside}\" seen; touch over; }}");
    let output = Command::new("timeout")
        .args([PATIENCE, "sh", "-c", &line])
        .current_dir(session.folder.path())
        .env("XDG_STATE_HOME", session.folder.path())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("OPENAI_API_KEY")
        .output()
        .unwrap();
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_ne!(output.status.code(), Some(124), "no end after {PATIENCE} s: {seen:?}");
    Some(seen)
}

/// What follows after the screen was left.
fn after(seen: &str) -> &str {
    assert_eq!(seen.matches(ENTER).count(), 1, "{seen:?}");
    assert_eq!(seen.matches(LEAVE).count(), 1, "{seen:?}");
    let (before, after) = seen.split_once(LEAVE).unwrap();
    assert!(before.contains(ENTER), "{seen:?}");
    after
}

/// The terminal is as it was: lines are read whole, and what is typed is seen.
fn is_sane(after: &str) {
    assert!(after.contains(" icanon") && !after.contains("-icanon"), "{after}");
    assert!(after.contains(" echo ") && !after.contains("-echo "), "{after}");
    assert!(after.contains("\x1b[?25h"), "the cursor is hidden: {after:?}");
}

#[test]
fn a_screen_is_entered_and_left_and_the_report_follows() {
    let session = Session::new();
    let args = "run -v mock --rate 20 --max-tokens 10 --duration 3s --seed 3 --out out";
    let Some(seen) = on_terminal(&session, args, &[]) else { return };
    let rest = after(&seen);
    is_sane(rest);
    for words in ["offered", "answered", "q stop"] {
        assert!(seen.split(LEAVE).next().unwrap().contains(words), "{words}: {seen:?}");
        assert!(!rest.contains(words) || words == "offered", "{words}: {rest:?}");
    }
    assert!(rest.contains("Throughput") && rest.contains("Verdict"), "{rest}");
    assert!(rest.contains("run folder: out"), "{rest}");
    // On a busy machine the verdict may be void, and says so.
    assert!(rest.contains("code 0") || rest.contains("code 5"), "{rest}");
    // A terminal: the verdict has its color.
    assert!(rest.contains("Verdict     \x1b[3"), "{rest:?}");
}

#[test]
fn q_is_an_interrupt() {
    let session = Session::new();
    let args = "run mock --rate 20 --max-tokens 10 --duration 300s --out out";
    let Some(seen) = on_terminal(&session, args, &[("q stop", "q")]) else { return };
    let rest = after(&seen);
    is_sane(rest);
    assert!(rest.contains("stopping: waiting for answers"), "{rest}");
    assert!(rest.contains("code 130"), "{rest}");
}

#[test]
fn a_line_where_one_is_wanted_and_nothing_where_it_is_quiet() {
    let session = Session::new();
    let common = "run mock --rate 20 --max-tokens 10 --duration 1s";
    let Some(line) = on_terminal(&session, &format!("{common} --screen line --out a"), &[]) else {
        return;
    };
    assert!(!line.contains(ENTER) && line.contains("\r\x1b[2K"), "{line:?}");
    let off =
        on_terminal(&session, &format!("{common} -v --screen off --color never --out b"), &[])
            .unwrap();
    assert!(!off.contains('\x1b') && off.contains("Verdict"), "{off:?}");
    let quiet = on_terminal(&session, &format!("{common} --quiet --out c"), &[]).unwrap();
    assert!(!quiet.contains(ENTER) && !quiet.contains("Verdict"), "{quiet:?}");
    assert!(!quiet.contains("Throughput"), "{quiet:?}");
}

#[test]
fn color_follows_the_flag_and_the_environment() {
    let session = Session::new();
    let outcome = session.run(&[
        "run",
        "mock",
        "--rate",
        "20",
        "--max-tokens",
        "9",
        "--duration",
        "1s",
        "--out",
        "out",
    ]);
    assert!(!outcome.stdout.contains('\x1b'), "{}", outcome.stdout);
    let shown = |args: &[&str], name: &str, value: &str| {
        let mut all = vec!["report", "-v", "out"];
        all.extend(args);
        let output = session.command(&all).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains("Verdict     \x1b[3")
    };
    assert!(!shown(&[], "NO_COLOR", ""));
    assert!(shown(&[], "CLICOLOR_FORCE", "1"));
    assert!(!shown(&[], "CLICOLOR_FORCE", "0"));
    assert!(shown(&["--color", "always"], "NO_COLOR", "1"));
    assert!(!shown(&["--color", "never"], "CLICOLOR_FORCE", "1"));
    // JSON is for programs.
    assert!(!shown(&["--color", "always", "--json"], "NO_COLOR", ""));
}
