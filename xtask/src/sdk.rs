//! The official OpenAI client for Python as the judge of the simulated engine's API, and of the proxy
//! in front of it.
//!
//! It lives in a virtual environment below the target folder, and `check.py` holds what it reads
//! from running servers against what was asked.

use std::fs;
use std::path::Path;
use std::process::Command;

use goodput_clock::now;
use goodput_model::Nanos;

use crate::python;
use crate::running::{KEY, Mock, Running, TemporaryFolder};

/// The version that is known to judge rightly.
const VERSION: &str = "3.49.0";

const SCRIPT: &str = include_str!("sdk/check.py");

/// The servers that the script asks for, and what they are like.
const SERVERS: [(&str, &[&str]); 10] = [
    ("plain", &[]),
    ("reasoning", &["--reasoning", "40%"]),
    ("keyed", &["--api-key-env", KEY.0]),
    ("limited", &["--fault", "429"]),
    ("flaky", &["--fault", "429=2:1/2"]),
    ("failing", &["--fault", "500"]),
    ("spoilt", &["--fault", "error-event"]),
    ("cut", &["--fault", "cut"]),
    ("odd", &["--fault", "pings", "--fault", "crlf", "--fault", "split=3"]),
    ("slow", &["--ttft", "10ms", "--itl", "20ms"]),
];

/// What this machine's owner may have set for the client.
const OWNERS: [&str; 3] = ["OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"];

/// Longer than the script takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(300_000);

/// Checks this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let python = match python::environment("openai-sdk", &[("openai", VERSION)], &[]) {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check by the OpenAI client; {missing}");
            return Ok(());
        }
    };
    // In a file, so that a failure shows its line.
    let script = python.with_file_name("check.py");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    ask(&python, &script, &start_all(goodput)?)?;
    eprintln!("  the OpenAI client {VERSION} reads every answer");
    // Other ones: some count what they were asked.
    let (mocks, folder) = (start_all(goodput)?, TemporaryFolder::new()?);
    let mut proxies = Vec::new();
    for (name, mock) in &mocks {
        let (upstream, trace) = (format!("http://{}", mock.address()), folder.path(name));
        let mut command = Command::new(goodput);
        command.args(["record", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--output"]);
        let proxy = Mock::run(command.arg(trace)).map_err(|error| format!("{name}: {error}"))?;
        proxies.push((*name, proxy));
    }
    ask(&python, &script, &proxies)?;
    eprintln!("  and every answer through the recording proxy");
    Ok(())
}

/// A server of each kind.
fn start_all(goodput: &Path) -> Result<Vec<(&'static str, Mock)>, String> {
    let start = |(name, flags): (&'static str, &[&str])| {
        let mock = Mock::start(goodput, flags).map_err(|error| format!("{name}: {error}"))?;
        Ok((name, mock))
    };
    SERVERS.into_iter().map(start).collect()
}

/// Lets the client ask these servers.
fn ask(python: &Path, script: &Path, servers: &[(&str, Mock)]) -> Result<(), String> {
    let mut command = Command::new(python);
    command.arg(script);
    command.args(servers.iter().map(|(name, server)| format!("{name}={}", server.address())));
    for name in OWNERS.into_iter().chain(python::OWNERS) {
        command.env_remove(name);
    }
    match Running::start(&mut command)?.outcome(now() + PATIENCE) {
        Some(true) => Ok(()),
        Some(false) => Err("the OpenAI client rejects an answer".to_owned()),
        None => {
            Err(format!("the OpenAI client did not finish within {} s", PATIENCE.0 / 1_000_000_000))
        }
    }
}
