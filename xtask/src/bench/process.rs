//! Running servers and clients, each on its core.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// Becomes a server with as many files as may be.
const SERVE: &str = "ulimit -n \"$(ulimit -Hn)\"; exec \"$@\"";

/// How the programs of a benchmark run.
pub(super) struct Bench {
    /// Length of one run.
    pub(super) seconds: u32,
    is_pinned: bool,
    scratch: PathBuf,
}

/// Which of two.
#[derive(Clone, Copy)]
pub(super) enum Core {
    Server,
    Client,
}

/// What a client left.
pub(super) struct ClientOutput {
    pub(super) stdout: String,
    /// User and system time of it and its children.
    pub(super) cpu_s: f64,
}

impl Bench {
    pub(super) fn new(seconds: u32, has_cores: bool) -> Result<Self, String> {
        let scratch = std::env::temp_dir().join(format!("goodput-bench-{}", std::process::id()));
        fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let has_taskset = Command::new("taskset").arg("--version").output().is_ok();
        Ok(Self { seconds, is_pinned: has_cores && has_taskset, scratch })
    }

    /// Who runs where, in words.
    pub(super) fn place(&self) -> String {
        let seconds = self.seconds;
        let cores = if self.is_pinned {
            "server on CPU 0, client on CPU 1"
        } else {
            "not pinned (one CPU, or no taskset): server and client disturb each other"
        };
        format!("{cores}; {seconds} s per run")
    }

    /// A path that no other run uses.
    pub(super) fn fresh_path(&self) -> PathBuf {
        self.scratch.join(format!("{}", now().0))
    }

    /// Runs a client to its end.
    pub(super) fn run(&self, client: &[String]) -> Result<ClientOutput, String> {
        let script = "ulimit -n \"$(ulimit -Hn)\"; TIMEFORMAT='%U %S'; time \"$@\"";
        let output = self
            .shell(Core::Client, script, client)
            .output()
            .map_err(|error| format!("cannot run bash: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !is_good(output.status) {
            return Err(format!("`{}` failed:\n{said}", client.join(" ")));
        }
        let times = said.lines().last().unwrap_or_default().split_whitespace();
        let cpu_s = times.filter_map(|word| word.parse::<f64>().ok()).sum();
        Ok(ClientOutput { stdout: String::from_utf8_lossy(&output.stdout).into_owned(), cpu_s })
    }

    /// Runs a client to its end and says the most memory it had, in KiB.
    pub(super) fn peak_kib(&self, client: &[String]) -> Result<f64, String> {
        let mut child = self
            .shell(Core::Client, SERVE, client)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run bash: {error}"))?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak = f64::NAN;
        // The shell becomes the client, and the last value read before the end is the client's.
        while child.try_wait().map_err(|error| error.to_string())?.is_none() {
            peak =
                fs::read_to_string(&status).ok().and_then(|text| high_water(&text)).unwrap_or(peak);
            pause(Nanos::from_millis(10));
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if is_good(output.status) {
            Ok(peak)
        } else {
            Err(format!("`{}` failed:\n{said}", client.join(" ")))
        }
    }

    /// A server that is ready to be started.
    pub(super) fn serve(&self, server: &[String]) -> Command {
        self.shell(Core::Server, SERVE, server)
    }

    fn shell(&self, core: Core, script: &str, command: &[String]) -> Command {
        let mut shell = if self.is_pinned {
            let cpu = match core {
                Core::Server => "0",
                Core::Client => "1",
            };
            let mut taskset = Command::new("taskset");
            taskset.args(["-c", cpu, "bash"]);
            taskset
        } else {
            Command::new("bash")
        };
        shell.args(["-c", script, "bash"]).args(command).stdin(Stdio::null());
        shell
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // Scratch in the temporary folder; nothing depends on its going.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// A run that goodput itself calls void is a result too.
fn is_good(status: ExitStatus) -> bool {
    const VOID: i32 = 5;
    matches!(status.code(), Some(0 | VOID))
}

/// `VmHWM:   1234 kB`
pub(super) fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What a truth server waits before the first token, and between tokens.
#[derive(Clone, Copy)]
pub(super) struct TruthDelays {
    pub(super) ttft_ms: u32,
    pub(super) itl_ms: u32,
}

/// A running truth server.
pub(super) struct TruthProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

impl TruthProcess {
    /// Starts one with these delays; it listens when this returns.
    pub(super) fn start(bench: &Bench, ttft_ms: u32, itl_ms: u32) -> Result<Self, String> {
        Self::start_on(bench, Core::Server, TruthDelays { ttft_ms, itl_ms })
    }

    /// The same on a core of choice.
    pub(super) fn start_on(bench: &Bench, core: Core, delays: TruthDelays) -> Result<Self, String> {
        let TruthDelays { ttft_ms, itl_ms } = delays;
        let command = format!("--port 0 --ttft-us {ttft_ms}000 --itl-us {itl_ms}000");
        let mut words = vec![crate::published("goodput-truth").display().to_string()];
        words.extend(command.split_whitespace().map(str::to_owned));
        let mut child = bench
            .shell(core, SERVE, &words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the truth server: {error}"))?;
        let mut out = BufReader::new(child.stdout.take().ok_or("no output of the truth server")?);
        let mut address = String::new();
        out.read_line(&mut address).map_err(|error| error.to_string())?;
        Ok(Self { child, out, address: address.trim().to_owned() })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }

    /// Ends it and reads what really happened.
    pub(super) fn stop(mut self) -> Result<Value, String> {
        // It serves until its input ends.
        drop(self.child.stdin.take());
        let mut report = String::new();
        self.out.read_line(&mut report).map_err(|error| error.to_string())?;
        self.child.wait().map_err(|error| error.to_string())?;
        serde_json::from_str(&report).map_err(|error| format!("the truth server failed: {error}"))
    }
}

/// A number in a JSON document, or none.
pub(super) fn at(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        let status = "Name:\tx\nVmPeak:\t  99 kB\nVmHWM:\t    1234 kB\n";
        assert_eq!(high_water(status), Some(1234.0));
        assert_eq!(high_water(""), None);
    }
}
