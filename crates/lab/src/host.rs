//! The machine that measures, for the manifest.

use std::time::{SystemTime, UNIX_EPOCH};

pub use goodput_clock::time_of_day as timestamp;

use goodput_engine::TimerMode;
use goodput_record::{Clocks, Host};

/// What this machine is.
pub fn host_facts(fd_limit: u64) -> Host {
    let system = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Host {
        name: None,
        system: format!("{} {}", text(system.sysname()), text(system.release())),
        cpu: cpu_model().unwrap_or_else(|| text(system.machine())),
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        fd_limit,
        cpu_quota: goodput_observe::cpu_quota(),
    }
}

/// What this machine is called among others.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Spinning is exact where CPU time is free. On one processor it would keep this process's other
/// threads waiting, and in a container with a ration of less than two it would be paid for by being
/// stopped.
pub fn timer_mode() -> TimerMode {
    let is_rationed = goodput_observe::cpu_quota().is_some_and(|quota| quota < 2.0);
    if is_rationed || goodput_clock::allowed_cpus().len() == 1 {
        TimerMode::Sparing
    } else {
        TimerMode::Exact
    }
}

fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Both clocks, read together.
pub fn read_clocks() -> Clocks {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Clocks {
        monotonic_ns: goodput_clock::now().0,
        unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX),
    }
}
