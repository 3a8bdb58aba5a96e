//! Six processes that work together, and what is sampled of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::trend::SeriesTrend;
use crate::program::{Binary, EndedProcess, RunningProcess, status_field};

/// Flags of `run` in each kind of stack.
pub(crate) const VARIANTS: [Variant; 3] = [
    Variant { name: "open loop, HTTP/1.1", run: &["--rate", "8"] },
    Variant { name: "sessions in an open loop", run: &["--rate", "8", "--turns", "4"] },
    Variant { name: "closed loop, HTTP/2", run: &["--concurrency", "4", "--http2"] },
];

/// A kind of load.
#[derive(Debug)]
pub(crate) struct Variant {
    name: &'static str,
    run: &'static [&'static str],
}

/// A growth an hour that is still no leak: memory in MiB, descriptors, threads.
const ALLOWED: [(&str, f64); 3] = [("MiB", 2.0), ("descriptors", 1.0), ("threads", 0.5)];

/// In less than an hour caches and pools still fill: growth is shown, not judged.
const SHORTEST_H: f64 = 0.9;

/// How long an orderly end may take.
const PATIENCE_S: f64 = 120.0;

/// The processes, first started first.
pub(crate) struct ProcessStack {
    name: &'static str,
    folder: PathBuf,
    members: Vec<StackProcess>,
    addresses: BTreeMap<&'static str, String>,
    /// Hours, and bytes in the folder.
    bytes: Vec<(f64, f64)>,
    faults: Vec<String>,
}

struct StackProcess {
    verb: &'static str,
    process: Option<RunningProcess>,
    /// Hours and value, in the order of `ALLOWED`.
    series: [Vec<(f64, f64)>; 3],
}

impl ProcessStack {
    /// Starts everything; the load ends by itself after `duration_s`.
    pub(crate) fn start(
        goodput: &Binary,
        folder: &Path,
        variant: &Variant,
        duration_s: f64,
    ) -> std::io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut stack = Self {
            name: variant.name,
            folder: folder.to_owned(),
            members: Vec::new(),
            addresses: BTreeMap::new(),
            bytes: Vec::new(),
            faults: Vec::new(),
        };
        let any = "127.0.0.1:0";
        let primary = stack.serve(goodput, "mock", &["mock", "--listen", any])?;
        let candidate = stack.serve(goodput, "candidate", &["mock", "--listen", any])?;
        let words = ["record", "--upstream", &primary, "--listen", any, "--output", "trace.jsonl"];
        let limits = ["--rotate-size", "20MB", "--quiet"];
        let record = stack.serve(goodput, "record", &[&words[..], &limits].concat())?;
        let words = ["shadow", "--primary", &record, "--candidate", &candidate, "--share", "20%"];
        // Blocks of a second: the most that are kept at once are reached within minutes.
        let flags = ["--listen", any, "--out", "runs/shadow", "--quiet", "--block", "1s"];
        let shadow = stack.serve(goodput, "shadow", &[&words[..], &flags].concat())?;
        stack.serve(goodput, "ui", &["ui", "runs", "--listen", any])?;
        let duration = format!("{duration_s:.0}s");
        let words = ["run", &shadow, "--duration", &duration, "--out", "runs/load", "--isl", "200"];
        let flags = ["--osl", "60", "--quiet", "--json", "--timeout", "30s"];
        let process =
            goodput.start(&stack.folder, "run", &[&words[..], &flags, variant.run].concat())?;
        stack.members.push(StackProcess::new("run", process));
        Ok(stack)
    }

    fn serve(
        &mut self,
        goodput: &Binary,
        verb: &'static str,
        words: &[&str],
    ) -> std::io::Result<String> {
        fs::create_dir_all(self.folder.join("runs"))?;
        let mut process = goodput.start(&self.folder, verb, words)?;
        let address = process.word_after("http://", 30.0)?;
        let address = address.trim_end_matches('/').to_owned();
        self.members.push(StackProcess::new(verb, process));
        self.addresses.insert(verb, address.clone());
        Ok(format!("http://{address}"))
    }

    /// Whether the load still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        let load = self.members.iter_mut().find(|member| member.verb == "run");
        load.and_then(|member| member.process.as_mut()).is_some_and(RunningProcess::is_running)
    }

    /// Takes one sample of everything, and looks at the pages.
    pub(crate) fn sample(&mut self, hours: f64) {
        let mut dead = Vec::new();
        for member in &mut self.members {
            let Some(process) = &mut member.process else { continue };
            if !process.is_running() {
                if member.verb != "run" {
                    dead.push(member.verb);
                }
                continue;
            }
            let at = PathBuf::from(format!("/proc/{}", process.id()));
            let status = fs::read_to_string(at.join("status")).unwrap_or_default();
            let descriptors = fs::read_dir(at.join("fd")).map_or(f64::NAN, |d| d.count() as f64);
            // What the process allocated: pages of the program itself come and go with the page cache.
            let memory = status_field(&status, "RssAnon:").map_or(f64::NAN, |kib| kib / 1024.0);
            let threads = status_field(&status, "Threads:").unwrap_or(f64::NAN);
            for (series, value) in member.series.iter_mut().zip([memory, descriptors, threads]) {
                if value.is_finite() {
                    series.push((hours, value));
                }
            }
        }
        for verb in dead {
            let fault = format!("{verb} ended too early");
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        }
        self.bytes.push((hours, folder_size(&self.folder) as f64));
        if let Some(address) = self.addresses.get("ui") {
            let page = http_get(address, "/");
            if !page.is_ok_and(|page| page.starts_with("HTTP/1.1 200")) && self.faults.len() < 20 {
                self.faults.push(format!("{hours:.2} h: the list of results did not come"));
            }
        }
    }

    /// The present state in a line.
    pub(crate) fn status_line(&self) -> String {
        let now = |member: &StackProcess| {
            let last = |index: usize| member.series[index].last().map_or(f64::NAN, |s| s.1);
            format!("{} {:.0} MiB {:.0} fd", member.verb, last(0), last(1))
        };
        let members: Vec<String> = self.members.iter().map(now).collect();
        let bytes = self.bytes.last().map_or(0.0, |sample| sample.1 / 1e6);
        format!("{}: {} · {bytes:.0} MB on disk", self.name, members.join(" · "))
    }

    /// Ends everything in order, prints the table, and says whether all was well.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    pub(crate) fn finish(mut self) -> std::io::Result<bool> {
        let mut ended: BTreeMap<&str, EndedProcess> = BTreeMap::new();
        // Clients before what they talk to.
        for verb in ["run", "shadow", "record", "ui", "mock", "candidate"] {
            let member = self.members.iter_mut().find(|member| member.verb == verb);
            let Some(process) = member.and_then(|member| member.process.take()) else { continue };
            let end = if verb == "run" {
                process.wait(f64::from(u32::MAX))?
            } else {
                process.stop(Signal::INT, PATIENCE_S)?
            };
            self.faults
                .extend(end.find_faults().into_iter().map(|fault| format!("{verb}: {fault}")));
            ended.insert(verb, end);
        }
        println!("\n{}", self.name);
        println!("{:10} {:>12} {:>9} {:>9} {:>10} {:>6}", "", "", "first", "last", "an hour", "z");
        for member in &self.members {
            for (series, (unit, allowed)) in member.series.iter().zip(ALLOWED) {
                let Some(trend) = SeriesTrend::new(series) else {
                    self.faults.push(format!("{}: too few samples of {unit}", member.verb));
                    continue;
                };
                let (verb, SeriesTrend { first, last, per_hour, z }) = (member.verb, trend);
                println!("{verb:10} {unit:>12} {first:9.1} {last:9.1} {per_hour:10.2} {z:6.1}");
                let is_long = series.last().is_some_and(|sample| sample.0 > SHORTEST_H);
                if trend.grows(allowed) && is_long {
                    self.faults.push(format!("{verb}: {unit} grow by {per_hour:.2} an hour"));
                }
            }
        }
        self.check_disk();
        self.check_ends(&ended);
        for fault in &self.faults {
            println!("FAILED {}", fault.escape_debug());
        }
        Ok(self.faults.is_empty())
    }

    /// What is written grows with the requests, so at one pace: the second half as the first.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn check_disk(&mut self) {
        let settled = &self.bytes[self.bytes.len() / 4..];
        let (Some(first), Some(last)) = (settled.first(), settled.last()) else { return };
        let middle = settled[settled.len() / 2];
        let pace = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0) / 1e6;
        let (early, late) = (pace(*first, middle), pace(middle, *last));
        println!("{:10} {:>12} {early:9.1} {late:9.1}", "disk", "MB an hour");
        if late > 1.25 * early + 1.0 {
            self.faults.push(format!("disk: {early:.1} MB an hour became {late:.1}"));
        }
    }

    /// Every request was answered and recorded, and every process ended as it should.
    #[expect(clippy::print_stdout, reason = "the table is the result")]
    fn check_ends(&mut self, ended: &BTreeMap<&str, EndedProcess>) {
        // A verdict (4, 5) is an orderly end; a shadow that is stopped by a signal says 130.
        let allowed = [("run", &[0, 4, 5][..]), ("shadow", &[0, 4, 5, 130])];
        for (verb, end) in ended {
            let codes = allowed.iter().find(|(name, _)| name == verb).map_or(&[0][..], |a| a.1);
            if !end.code.is_some_and(|code| codes.contains(&code)) {
                self.faults.push(format!("{verb} ended with {:?}: {}", end.code, end.stderr));
            }
        }
        let summary = ended.get("run").and_then(EndedProcess::summary);
        let count = |path: &str| {
            summary.as_ref().and_then(|s| s.pointer(path)).and_then(serde_json::Value::as_u64)
        };
        let (completed, failed) = (count("/requests/ok"), count("/requests/failed"));
        println!("requests: {completed:?} completed, {failed:?} failed");
        if completed.is_none_or(|n| n == 0) || failed != Some(0) {
            self.faults.push(format!("requests: {completed:?} completed, {failed:?} failed"));
        }
    }
}

impl StackProcess {
    fn new(verb: &'static str, process: RunningProcess) -> Self {
        Self { verb, process: Some(process), series: Default::default() }
    }
}

/// Bytes of all files below a folder.
fn folder_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// One page, whole.
fn http_get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut page = Vec::new();
    stream.read_to_end(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
