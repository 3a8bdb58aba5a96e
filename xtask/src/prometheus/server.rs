//! A Prometheus that runs during the check.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use goodput_clock::{now, pause};
use goodput_model::Nanos;

use super::free_address;
use super::tools::Tools;
use crate::running::{Running, TemporaryFolder};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(60_000);
const BETWEEN_LOOKS: Nanos = Nanos::from_millis(200);

/// It ends, and its data go, with this.
pub(super) struct Prometheus {
    process: Running,
    address: String,
    said: PathBuf,
    _scratch: TemporaryFolder,
}

impl Prometheus {
    /// Starts one with this configuration.
    pub(super) fn start(tools: &Tools, config: &str) -> Result<Self, String> {
        let scratch = TemporaryFolder::new()?;
        let path = scratch.path("prometheus.yml");
        fs::write(&path, config).map_err(|error| error.to_string())?;
        let said = scratch.path("said.txt");
        let said_file = fs::File::create(&said).map_err(|error| error.to_string())?;
        let address = free_address()?;
        let process = Running::start(
            Command::new(&tools.prometheus)
                .arg(format!("--config.file={}", path.display()))
                .arg(format!("--storage.tsdb.path={}", scratch.path("data").display()))
                .arg(format!("--web.listen-address={address}"))
                .arg("--log.level=warn")
                .stdout(Stdio::null())
                .stderr(said_file),
        )?;
        Ok(Self { process, address, said, _scratch: scratch })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Asks again and again, with its address, until the answer is good.
    pub(super) fn until(
        &mut self,
        judge: impl Fn(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        let end = now() + PATIENCE;
        loop {
            let Err(reason) = judge(&self.address) else { return Ok(()) };
            if self.process.has_ended() || now() > end {
                let said = fs::read_to_string(&self.said).unwrap_or_default();
                return Err(format!("{reason}\nPrometheus said:\n{said}"));
            }
            pause(BETWEEN_LOOKS);
        }
    }
}
