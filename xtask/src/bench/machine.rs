//! Where and when the numbers were taken.

use std::fs;
use std::process::Command;

pub(super) struct Machine {
    pub(super) date: String,
    cpu: String,
    pub(super) cpus: usize,
    kernel: String,
}

impl Machine {
    pub(super) fn look() -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).map_err(|e| format!("{path}: {e}"));
        let info = read("/proc/cpuinfo")?;
        // Not every architecture names its model.
        let cpu = field(&info, "model name").unwrap_or(std::env::consts::ARCH).to_owned();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let kernel = read("/proc/sys/kernel/osrelease")?.trim().to_owned();
        let date = Command::new("date")
            .args(["-u", "+%F"])
            .output()
            .map_err(|error| format!("cannot run date: {error}"))?;
        let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
        Ok(Self { date, cpu, cpus, kernel })
    }

    /// The machine's name in a file name.
    pub(super) fn slug(&self) -> String {
        format!("{}-x{}", slug(&self.cpu), self.cpus)
    }

    pub(super) fn head(&self, command: &str, place: &str) -> String {
        format!(
            "# Benchmark of {}\n\n{}, {} CPUs, Linux {}\n\n`{}`; {place}. Latencies in ms unless noted, as reported by the client / as they were.\n\n",
            self.date,
            self.cpu,
            self.cpus,
            self.kernel,
            command.trim_end()
        )
    }
}

/// The value of the first `name : value` line.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// Lower-case letters and digits, with single dashes between.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name_for_files() {
        let info =
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) @ 2.60GHz\nmodel name\t: other\n";
        assert_eq!(field(info, "model name").map(slug).unwrap(), "intel-r-xeon-r-2-60ghz");
        assert_eq!(field(info, "Hardware"), None);
    }
}
