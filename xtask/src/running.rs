//! Programs that run during the check and end with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use goodput_clock::{now, pause};
use goodput_model::Nanos;

const BETWEEN_LOOKS: Nanos = Nanos::from_millis(20);

/// The variable in which a server finds its key where `--api-key-env` names it, and the key.
pub(crate) const KEY: (&str, &str) = ("GOODPUT_CHECK_KEY", "sesame");

/// Held while Debian's installer runs: it refuses to run twice.
static INSTALLER: Mutex<()> = Mutex::new(());

/// Waits for the other checks that install something.
pub(crate) fn installer() -> MutexGuard<'static, ()> {
    INSTALLER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Debian's installer, which asks nothing and gives up on a network that does not answer.
pub(crate) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    for limit in ["Acquire::http::Timeout=20", "Acquire::https::Timeout=20", "Acquire::Retries=1"] {
        command.args(["-o", limit]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Installs a package of Debian, which only root may; false if that fails.
pub(crate) fn install(package: &str) -> bool {
    let _alone = installer();
    let install =
        || succeeds(apt_get().args(["install", "-y", "-q", "--no-install-recommends", package]));
    // Lists of packages may be missing or old.
    install() || (succeeds(apt_get().args(["update", "-q"])) && install())
}

/// Whether a command succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// A program that ends when this goes, whatever the check finds.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let child = command.stdin(Stdio::null()).spawn();
        let program = command.get_program().display();
        child.map(Self).map_err(|error| format!("cannot run {program}: {error}"))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Whether it succeeded; none while it is still running.
    pub(crate) fn outcome(&mut self, until: Nanos) -> Option<bool> {
        loop {
            match self.0.try_wait() {
                Ok(None) if now() < until => pause(BETWEEN_LOOKS),
                Ok(None) => return None,
                Ok(Some(status)) => return Some(status.success()),
                Err(_) => return Some(false),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `goodput mock`.
pub(crate) struct Mock {
    address: String,
    process: Running,
    /// Kept open: a server must not lose the place it writes to.
    _said: BufReader<ChildStderr>,
}

impl Mock {
    /// Starts one without latency and with these flags; it listens when this returns.
    pub(crate) fn start(goodput: &Path, flags: &[&str]) -> Result<Self, String> {
        Self::run(
            Command::new(goodput)
                .args(["mock", "--listen", "127.0.0.1:0", "--profile", "fast"])
                .args(flags)
                .env(KEY.0, KEY.1),
        )
    }

    /// Starts one by this command; it listens when this returns.
    pub(crate) fn run(command: &mut Command) -> Result<Self, String> {
        let mut process = Running::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))?;
        let stderr = process.0.stderr.take().ok_or("no output of goodput mock")?;
        let mut said = BufReader::new(stderr);
        // The server says where it listens, or why it does not, and ends.
        let mut text = String::new();
        while said.read_line(&mut text).is_ok_and(|bytes| bytes > 0) {
            if let Some(address) = address(&text) {
                return Ok(Self { address, process, _said: said });
            }
        }
        Err(format!("goodput mock did not start:\n{text}"))
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

/// The address in `mock engine on http://127.0.0.1:1234 · …`, `listening on http://127.0.0.1:1234` or
/// `metrics of this run: http://127.0.0.1:1234/metrics`.
fn address(said: &str) -> Option<String> {
    let before = [" on http://", " run: http://"];
    let (_, after) = before.into_iter().find_map(|words| said.split_once(words))?;
    after.split_whitespace().next().map(str::to_owned)
}

/// A folder that goes when this goes.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub(crate) fn new() -> Result<Self, String> {
        let name = format!("goodput-xtask-{}-{}", std::process::id(), now().0);
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Scratch in the temporary folder; nothing depends on its going.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found() {
        let said = "mock engine on http://127.0.0.1:1234 · model mock · TTFT 0s\n";
        assert_eq!(address(said).as_deref(), Some("127.0.0.1:1234"));
        let said = "takes 22 s\nmetrics of this run: http://127.0.0.1:4/metrics\n";
        assert_eq!(address(said).as_deref(), Some("127.0.0.1:4/metrics"));
        assert_eq!(address("listening on http://[::1]:5\n").as_deref(), Some("[::1]:5"));
        assert_eq!(address("error: no\n"), None);
    }
}
