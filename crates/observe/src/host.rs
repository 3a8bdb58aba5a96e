//! [`HostSampler`]: this process and its machine, as `/proc` shows them.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::{HostSample, MachineMemory, Nanos, Network, ThreadSample};

use crate::cgroup::CgroupLimit;

/// Length of a clock tick in `/proc/stat`: the interface has been fixed to 100 a second for ages.
const TICK: Nanos = Nanos::from_millis(10);

/// Looks at this process and its machine.
#[derive(Debug)]
pub struct HostSampler {
    proc: PathBuf,
    /// A folder for each network interface.
    net: PathBuf,
    limit: Option<CgroupLimit>,
}

impl HostSampler {
    /// The machine this runs on.
    pub fn new() -> Self {
        Self::at(Path::new("/proc"), Path::new("/sys"))
    }

    fn at(proc: &Path, sys: &Path) -> Self {
        let limit = CgroupLimit::find(proc, &sys.join("fs/cgroup"));
        Self { proc: proc.to_owned(), net: sys.join("class/net"), limit }
    }

    /// One look.
    pub fn sample(&self) -> HostSample {
        let stat = fs::read_to_string(self.proc.join("stat")).unwrap_or_default();
        let cpus = self.allowed_cpus();
        let (mut idle, mut steal) = (Nanos::ZERO, Nanos::ZERO);
        for line in stat.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().and_then(|name| name.strip_prefix("cpu"));
            if name.and_then(|n| n.parse().ok()).is_some_and(|cpu| cpus.contains(&cpu)) {
                let ticks: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
                let column = |at: usize| Nanos(ticks.get(at).copied().unwrap_or(0) * TICK.0);
                // Waiting for a disk is having nothing to do.
                idle += column(3) + column(4);
                steal += column(7);
            }
        }
        HostSample {
            threads: self.sample_threads(),
            throttled: self.limit.as_ref().and_then(CgroupLimit::throttled_time),
            steal,
            cpus: cpus.len() as u32,
            idle,
            open_files: self.count_open_files(),
            memory: self.machine_memory(),
            network: self.network(),
        }
    }

    fn sample_threads(&self) -> Vec<ThreadSample> {
        let tasks = fs::read_dir(self.proc.join("self/task"));
        let folders = tasks.into_iter().flatten().flatten().map(|entry| entry.path());
        // A thread may end while it is looked at.
        folders.filter_map(|folder| read_thread(&folder)).collect()
    }

    /// The processors that this process may use, from a list such as `0-3,8`.
    fn allowed_cpus(&self) -> Vec<u32> {
        let status = fs::read_to_string(self.proc.join("self/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.trim().parse::<u32>().ok()?..=high.trim().parse::<u32>().ok()?)
        };
        list.unwrap_or_default().split(',').filter_map(range).flatten().collect()
    }

    fn count_open_files(&self) -> u64 {
        let folder = self.proc.join("self/fd");
        // Newer kernels tell the number as the folder's size; older ones make us count.
        match fs::metadata(&folder).map(|metadata| metadata.len()) {
            Ok(0) | Err(_) => fs::read_dir(folder).map_or(0, |entries| entries.count() as u64),
            Ok(count) => count,
        }
    }

    fn machine_memory(&self) -> Option<MachineMemory> {
        let table = fs::read_to_string(self.proc.join("meminfo")).ok()?;
        let bytes = |name: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = line.strip_prefix(':')?.split_whitespace().next()?.parse().ok()?;
            kilobytes.checked_mul(1024)
        };
        Some(MachineMemory { total: bytes("MemTotal")?, available: bytes("MemAvailable")? })
    }

    /// Sums over the interfaces of this network namespace that are hardware: bridges and their like
    /// count the same bytes again. Where none is, as in containers, over all but loopback.
    fn network(&self) -> Option<Network> {
        let table = fs::read_to_string(self.proc.join("self/net/dev")).ok()?;
        // Two lines of titles have no colon. A large number may follow it without a blank.
        let all = table.lines().filter_map(|line| line.split_once(':'));
        let mut all: Vec<_> = all.filter(|(name, _)| name.trim() != "lo").collect();
        let is_hardware = |name: &str| self.net.join(name.trim()).join("device").exists();
        if all.iter().any(|(name, _)| is_hardware(name)) {
            all.retain(|(name, _)| is_hardware(name));
        }
        let mut sum = Network::default();
        for (_, counts) in all {
            let mut counts = counts.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0));
            sum.received = sum.received.saturating_add(counts.next().unwrap_or(0));
            // Eight columns about what was received come first.
            sum.sent = sum.sent.saturating_add(counts.nth(7).unwrap_or(0));
        }
        Some(sum)
    }
}

impl Default for HostSampler {
    fn default() -> Self {
        Self::new()
    }
}

fn read_thread(folder: &Path) -> Option<ThreadSample> {
    let name = fs::read_to_string(folder.join("comm")).ok()?;
    // Time on a processor, time waiting for one, number of turns.
    let times = fs::read_to_string(folder.join("schedstat")).ok()?;
    let mut times = times.split_whitespace().map(|word| word.parse::<u64>().ok());
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let preempted = status
        .lines()
        .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok());
    Some(ThreadSample {
        name: name.trim().to_owned(),
        cpu: Nanos(times.next()??),
        waited: Nanos(times.next()??),
        preempted: preempted.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_at_work() {
        let host = HostSampler::new();
        let worker = std::thread::Builder::new().name("busy".to_owned());
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let worker = worker
            .spawn(move || {
                let sum = (0..50_000_000u64).fold(0, |sum: u64, n| std::hint::black_box(sum ^ n));
                let _ = wait.recv();
                sum
            })
            .unwrap();
        let files = host.sample().open_files;
        let opened: Vec<_> = (0..100).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        // Other tests of this process close theirs meanwhile: far fewer.
        assert!(host.sample().open_files > files + 50 && files > 0);
        drop(opened);
        let cpu = || {
            let threads = host.sample().threads;
            threads.into_iter().find(|thread| thread.name == "busy").map(|thread| thread.cpu)
        };
        // The sum takes milliseconds; the counter is seen to move within bounded patience.
        let moved = (0..10_000).any(|_| {
            std::thread::yield_now();
            cpu().is_some_and(|cpu| cpu > Nanos::from_millis(1))
        });
        assert!(moved, "{:?}", host.sample().threads);
        drop(done);
        worker.join().unwrap();
    }

    #[test]
    fn a_system_that_shows_nothing_is_no_error() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(HostSampler::at(empty.path(), empty.path()).sample(), HostSample::default());
    }

    #[test]
    fn fields_by_hand() {
        let proc = tempfile::tempdir().unwrap();
        let task = proc.path().join("self/task/7");
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("comm"), "worker-3\n").unwrap();
        fs::write(task.join("schedstat"), "5000 700 12\n").unwrap();
        fs::write(task.join("status"), "Name:\tx\nnonvoluntary_ctxt_switches:\t42\n").unwrap();
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 1 1 0 0 9\ncpu1 0 0 0 40 2 0 0 5\n\
                    cpu2 0 0 0 7 1 0 0 3\nintr 5 5\n";
        fs::write(proc.path().join("stat"), stat).unwrap();
        let status = "Name:\tx\nCpus_allowed_list:\t1-2\n";
        fs::write(proc.path().join("self/status"), status).unwrap();
        let meminfo = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n";
        fs::write(proc.path().join("meminfo"), meminfo).unwrap();
        let dev = "Inter-|   Receive         |  Transmit\n face |bytes packets errs|bytes\n    \
                   lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n\
                   eth0:4000000000 2 0 0 0 0 0 0 90 3 0 0 0 0 0 0\n\
                   eth1: 5000000000 2 0 0 0 0 0 0 10 3 0 0 0 0 0 0\n";
        fs::create_dir_all(proc.path().join("self/net")).unwrap();
        fs::write(proc.path().join("self/net/dev"), dev).unwrap();
        let sample = HostSampler::at(proc.path(), proc.path()).sample();
        assert_eq!(sample.memory, Some(MachineMemory { total: 2 << 20, available: 1 << 20 }));
        assert_eq!(sample.network, Some(Network { received: 9_000_000_000, sent: 100 }));
        let worker = ThreadSample {
            name: "worker-3".to_owned(),
            cpu: Nanos(5000),
            waited: Nanos(700),
            preempted: 42,
        };
        assert_eq!((sample.threads, sample.steal), (vec![worker], Nanos::from_millis(80)));
        assert_eq!((sample.cpus, sample.idle), (2, Nanos::from_millis(500)));
        // A bridge counts the bytes of its hardware again.
        fs::create_dir_all(proc.path().join("class/net/eth0/device")).unwrap();
        fs::create_dir_all(proc.path().join("class/net/eth1")).unwrap();
        let network = HostSampler::at(proc.path(), proc.path()).sample().network;
        assert_eq!(network, Some(Network { received: 4_000_000_000, sent: 90 }));
    }
}
