//! Hostile servers against `goodput run`, `sweep` and `compare`.

mod http1;
mod http2;
mod pages;
mod peer;
mod tls;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use rustix::process::Signal;
use serde_json::Value;

use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, ScratchFolder, files_with_key, seconds_to_nanos};
use peer::{Act, HostileServer, Script, When};

/// Text that no page may hold as it is.
const MARKUP: &str = "<script>alert(7)</script>";

/// Requests of a usual run, all at once.
const REQUESTS: u64 = 4;

/// For requests without a time limit of their own: 1.2 s, the start, the report, and a busy machine.
const SECONDS: f64 = 6.0;

/// What must come of a behavior.
#[derive(Debug, Clone, Copy)]
enum Comes {
    /// Requests fail with one of these classes.
    Fails(&'static [&'static str]),
    /// It is odd, and an answer all the same.
    Passes,
    /// Good answers, and a figure that cannot be: a caveat, or the lie left aside.
    Lies,
    /// The run does not begin, with these words on stderr.
    Refused(&'static str),
}

/// From when on the server is hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// From the first request on: what readiness meets.
    First,
    /// After the small request before the run.
    Later,
}

/// One behavior of a server.
struct ServerRow {
    name: &'static str,
    comes: Comes,
    script: Script,
    args: Vec<String>,
    froms: &'static [From],
    seconds: f64,
    mebibytes: f64,
}

const TOO_LARGE: Comes = Comes::Fails(&["answer_too_large"]);
/// Which of the two limits comes first depends on where the line began.
const LONG_EVENT: Comes = Comes::Fails(&["event_too_large", "answer_too_large"]);
const BAD_HTTP: Comes = Comes::Fails(&["bad_http"]);
const TIMEOUT: Comes = Comes::Fails(&["timeout"]);
const CLOSED: Comes = Comes::Fails(&["closed"]);
const CUT: Comes = Comes::Fails(&["cut"]);
const NO_FINISH: Comes = Comes::Fails(&["no_finish"]);

const FIRST: &[From] = &[From::First];
const BOTH: &[From] = &[From::First, From::Later];

impl ServerRow {
    fn new(name: &'static str, comes: Comes, act: Act) -> Self {
        // Four answers of at most 16.5 MiB each, old and new room while they grow, on top of the program.
        let (args, script) = (Vec::new(), Script::new(act));
        Self { name, comes, script, args, froms: BOTH, seconds: SECONDS, mebibytes: 260.0 }
    }

    fn with_args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|&arg| arg.to_owned()));
        self
    }

    fn only_from(mut self, froms: &'static [From]) -> Self {
        self.froms = froms;
        self
    }

    fn with_timing(mut self, when: When) -> Self {
        self.script.when = when;
        self
    }

    fn with_limits(mut self, seconds: f64, mebibytes: f64) -> Self {
        (self.seconds, self.mebibytes) = (seconds, mebibytes);
        self
    }

    /// As many good answers as the variant needs, and the exit codes that are right then. Half of
    /// the requests and more failed: void (5); all of them, or none begun: the target (3).
    fn variant(&self, from: From) -> (Script, CaseBounds) {
        let mut script = self.script.clone();
        // Where connections are hostile, one of several at once cannot be spared.
        script.good = match (from, script.when) {
            (From::First, _) => 0,
            (From::Later, When::Opened | When::Accepted) => 1,
            (From::Later, When::Asked) => 2,
        };
        let exit: &[i32] = match self.comes {
            Comes::Refused(_) => &[3],
            Comes::Fails(_) if script.good < 2 => &[3],
            Comes::Fails(_) => &[5],
            // Whether a busy machine spoils the result is not what is tested.
            Comes::Passes | Comes::Lies => &[0, 5],
        };
        let expected = CaseBounds::exit(exit).within(self.seconds, self.mebibytes);
        (script, expected)
    }
}

/// Rows with nothing special about them.
fn rows_to_table<const N: usize>(rows: [(&'static str, Comes, Act); N]) -> Vec<ServerRow> {
    rows.map(|(name, comes, act)| ServerRow::new(name, comes, act)).into()
}

/// Every case of this area.
pub(crate) fn cases() -> Vec<Case> {
    let tables = [
        ("server/http1", http1::http1_rows()),
        ("server/pages", pages::rows()),
        ("server/metrics", pages::metrics()),
        ("server/http2", http2::rows()),
        ("server/tls", tls::tls_rows()),
    ];
    let mut cases = Vec::new();
    for (area, rows) in tables {
        for row in rows.into_iter().map(Arc::new) {
            cases.extend(row.froms.iter().map(|&from| case_of_row(area, &row, from)));
        }
    }
    for (area, rows) in
        [("server/http1", http1::endless_rows()), ("server/http2", http2::endless())]
    {
        for row in rows.into_iter().map(Arc::new) {
            cases.extend([1, 2].map(|times| stopped_case(area, &row, times)));
        }
    }
    cases.extend(pages::verbs());
    cases
}

fn case_of_row(area: &'static str, row: &Arc<ServerRow>, from: From) -> Case {
    let (script, expected) = row.variant(from);
    let suffix = if from == From::First { "first" } else { "later" };
    let name = format!("{}/{suffix}", row.name);
    let row = Arc::clone(row);
    let attack = move |goodput: &Binary| {
        let scratch = ScratchFolder::new()?;
        let server = HostileServer::start(script.clone())?;
        let args = run_args(&server, &row.args, &scratch)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ended = goodput.run(scratch.path(), &args, row.seconds + 6.0)?;
        let mut observed = observe_run(&ended, &scratch, &server);
        judge_row(&mut observed, &row, &script, &ended);
        let is_met = script.path == peer::ANSWERS || server.asked() > 0;
        observed.check(is_met, || format!("{} was not requested", script.path));
        Ok(observed)
    };
    Case { area, name, expected, attack: Box::new(attack) }
}

/// The words of a usual run. A row's own come last and win.
fn run_args(
    server: &HostileServer,
    more: &[String],
    scratch: &ScratchFolder,
) -> Result<Vec<String>, Skip> {
    let is_plain = server.script().tls.is_none() || more.iter().any(|arg| arg == "without https");
    let scheme = if is_plain { "http" } else { "https" };
    let url = format!("{scheme}://127.0.0.1:{}", server.port());
    let usual = "--isl 32 --osl 8 --out out --json --screen off --gpu off --canary off --workers 1";
    let mut args = vec!["run".to_owned(), url];
    args.extend(usual.split(' ').map(str::to_owned));
    let defaults = [
        ("--model", "m"),
        ("--timeout", "1s"),
        ("--rate", "inf"),
        ("--num-requests", "4"),
        ("--metrics", "off"),
    ];
    for (flag, value) in defaults {
        if !more.iter().any(|arg| arg == flag || *arg == format!("without {flag}")) {
            args.extend([flag.to_owned(), value.to_owned()]);
        }
    }
    if !more.iter().any(|arg| arg == "without --no-length-check") {
        args.push("--no-length-check".to_owned());
    }
    args.extend(more.iter().filter(|arg| !arg.starts_with("without ")).cloned());
    if let Some(pem) = &server.script().authority {
        fs::write(scratch.join("ca.pem"), pem)?;
    }
    Ok(args)
}

/// What holds for every run: no key in a file, nothing raw on a page, no other host asked.
fn observe_run(ended: &EndedProcess, scratch: &ScratchFolder, server: &HostileServer) -> Observed {
    let mut observed = Observed::from_process(ended);
    let leaks = files_with_key(scratch.path());
    observed.check(leaks.is_empty(), || format!("the key is in {leaks:?}"));
    observed.check(!server.was_elsewhere_asked(), || "another host was asked".to_owned());
    for name in ["report.html", "summary.json", "plan.toml", "manifest.json"] {
        let text = fs::read_to_string(scratch.join("out").join(name)).unwrap_or_default();
        let is_control = |c: &char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
        if let Some(control) = text.chars().find(is_control) {
            observed.faults.push(format!("a control character in {name}: {control:?}"));
        }
        let is_safe = name != "report.html" || !text.contains(MARKUP);
        observed.check(is_safe, || "markup on the page".to_owned());
    }
    if let Some(summary) = read_summary(scratch.path()) {
        let errors = summary["requests"]["errors"].as_object();
        observed.classes = errors.into_iter().flat_map(|all| all.keys().cloned()).collect();
    }
    observed
}

fn read_summary(folder: &Path) -> Option<Value> {
    let text = fs::read_to_string(folder.join("out/summary.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether what a behavior must come to has come.
fn judge_row(observed: &mut Observed, row: &ServerRow, script: &Script, ended: &EndedProcess) {
    let summary = ended.summary().unwrap_or_default();
    let ok = summary["requests"]["ok"].as_u64();
    match row.comes {
        Comes::Fails(classes) => {
            let is_right = observed.classes.iter().all(|class| classes.contains(&class.as_str()));
            let found = observed.classes.clone();
            observed.check(is_right, || format!("failure classes {found:?}, not {classes:?}"));
            let began = ok.is_some();
            observed.check(!began || !found.is_empty(), || "nothing failed".to_owned());
            observed.check(began || script.good == 0, || {
                format!("the run did not start: {}", ended.stderr)
            });
            let good = Some(u64::from(script.good == 2));
            observed.check(!began || ok == good, || format!("{ok:?} completed, expected {good:?}"));
            let says = began || ended.stderr.contains("error: ");
            observed.check(says, || format!("no warning: {}", ended.stderr));
        }
        Comes::Passes => {
            let text = &ended.stderr;
            observed.check(ok == Some(request_count(row)), || format!("{ok:?} completed: {text}"));
        }
        Comes::Lies => {
            observed.check(ok == Some(REQUESTS), || format!("{ok:?} completed: {}", ended.stderr));
            let counted = summary["tokens"]["output"].as_u64().unwrap_or(u64::MAX);
            let is_void = ended.stdout.contains("token_counts_impossible");
            observed.check(is_void || counted <= 2 * 8 * REQUESTS, || format!("{counted} tokens"));
        }
        Comes::Refused(words) => {
            let is_said = ended.stderr.contains(words);
            observed.check(is_said, || format!("no `{words}` in: {}", ended.stderr));
        }
    }
}

/// How many requests a row asks for.
fn request_count(row: &ServerRow) -> u64 {
    let at = row.args.iter().position(|arg| arg == "--num-requests");
    let value = at.and_then(|at| row.args.get(at + 1)?.parse().ok());
    value.unwrap_or(REQUESTS)
}

/// Ctrl-C while the server floods: once, with little time for answers in flight, or twice. An end
/// within a second, with a partial report.
fn stopped_case(area: &'static str, row: &Arc<ServerRow>, times: usize) -> Case {
    let mut script = row.script.clone();
    script.good = 1;
    // A second to stop, and some for the report on a busy machine.
    let expected = CaseBounds::exit(&[130]).within(4.0, row.mebibytes);
    let name = format!("{}/ctrl_c_{times}", row.name);
    let drain = if times == 1 { "1s" } else { "60s" };
    let load = "--concurrency 4 --duration 60s --timeout 60s --drain";
    let mut more = row.args.clone();
    more.extend(["without --rate", "without --num-requests"].map(str::to_owned));
    more.extend(load.split(' ').chain([drain]).map(str::to_owned));
    let attack = move |goodput: &Binary| {
        let scratch = ScratchFolder::new()?;
        let server = HostileServer::start(script.clone())?;
        let args = run_args(&server, &more, &scratch)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut running = goodput.start(scratch.path(), "goodput", &args)?;
        let end = now() + seconds_to_nanos(8.0);
        while server.asked() < 3 && running.is_running() && now() < end {
            pause(Nanos::from_millis(5));
        }
        pause(Nanos::from_millis(300));
        for _ in 1..times {
            running.signal(Signal::INT);
            pause(Nanos::from_millis(200));
        }
        let ended = running.stop(Signal::INT, 12.0)?;
        let mut observed = observe_run(&ended, &scratch, &server);
        observed.check(server.asked() >= 3, || "the load never started".to_owned());
        observed.check(read_summary(scratch.path()).is_some(), || "no partial report".to_owned());
        Ok(observed)
    };
    Case { area, name, expected, attack: Box::new(attack) }
}
