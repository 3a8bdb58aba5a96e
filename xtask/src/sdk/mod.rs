//! The official OpenAI client for Python as the judge of the simulated engine's API.
//!
//! It lives in a virtual environment below the target folder, and `check.py` holds what it reads
//! from running servers against what was asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goodput_clock::now;
use goodput_model::Nanos;

use crate::running::{KEY, Mock, Running};
use crate::target_folder;

/// The version that is known to judge rightly.
const VERSION: &str = "3.49.0";

const SCRIPT: &str = include_str!("check.py");

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
const OWNERS: [&str; 8] = [
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "PYTHONPATH",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Longer than the script takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(300_000);

/// Checks this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let python = match environment() {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check by the OpenAI client; {missing}");
            return Ok(());
        }
    };
    let mut mocks = Vec::new();
    for (name, flags) in SERVERS {
        mocks
            .push((name, Mock::start(goodput, flags).map_err(|error| format!("{name}: {error}"))?));
    }
    // In a file, so that a failure shows its line.
    let script = python.with_file_name("check.py");
    fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
    let mut command = Command::new(&python);
    command.arg(script);
    command.args(mocks.iter().map(|(name, mock)| format!("{name}={}", mock.address())));
    for name in OWNERS {
        command.env_remove(name);
    }
    match Running::start(&mut command)?.outcome(now() + PATIENCE) {
        Some(true) => {
            eprintln!("  the OpenAI client {VERSION} reads every answer");
            Ok(())
        }
        Some(false) => Err("the OpenAI client does not accept the simulated engine".to_owned()),
        None => {
            Err(format!("the OpenAI client did not end within {} s", PATIENCE.0 / 1_000_000_000))
        }
    }
}

/// A Python that has the client, or what is missing for it.
fn environment() -> Result<PathBuf, String> {
    let folder = target_folder().join("openai-sdk");
    let python = folder.join("bin/python");
    if is_ready(&python) {
        return Ok(python);
    }
    if !succeeds(Command::new("python3").arg("--version")) {
        return Err("there is no python3".to_owned());
    }
    if !make(&folder) {
        // On Debian it is a package of its own, which only root may install.
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "-q", "python3-venv"]);
        succeeds(install.env("DEBIAN_FRONTEND", "noninteractive"));
        if !make(&folder) {
            return Err("python3 has no venv (`apt-get install python3-venv`)".to_owned());
        }
    }
    let package = format!("openai=={VERSION}");
    succeeds(Command::new(&python).args(["-m", "pip", "install", "-q", &package]));
    if is_ready(&python) {
        Ok(python)
    } else {
        Err(format!("pip could not get {package} from PyPI"))
    }
}

/// Makes a virtual environment, in place of one of which half may be there.
fn make(folder: &Path) -> bool {
    // Where there is none, there is nothing to remove.
    let _ = fs::remove_dir_all(folder);
    succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

fn is_ready(python: &Path) -> bool {
    let version = format!("import openai; assert openai.__version__ == '{VERSION}'");
    succeeds(Command::new(python).args(["-c", &version]))
}

/// Whether a command runs and ends well; what it says is nobody's business.
fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}
