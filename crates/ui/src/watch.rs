//! A run that goes on, seen through its logs: its process is not touched.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use goodput_clock::{now, pause};
use goodput_files::open_inside;
use goodput_model::{HealthSample, Nanos, RequestRecord, Scrape, Signal, SignalValue};
use goodput_record::LogTail;
use serde::Serialize;

use crate::live::{live_folder, seconds_since_write};
use goodput_http::write_all_before;

/// How often the logs are looked at, and how long a client may take for what was seen.
const EVERY: Nanos = Nanos::from_millis(1_000);
const PATIENCE: Nanos = Nanos::from_millis(5_000);

/// What figures rest on.
const WINDOW: Nanos = Nanos::from_millis(10_000);

/// Frames and bytes that one look takes in; who is behind catches up with the next.
const MOST_FRAMES: usize = 20_000;
const MOST_BYTES: u64 = 32 << 20;

/// Frames that are passed over in one look, and bytes before the end where looking into them begins.
const MOST_SKIPPED: usize = 1_000_000;
const NEAR_END: u64 = 16 << 20;

/// Pages of metrics that are followed.
const MOST_PAGES: u32 = 4_096;

/// Looks without a run before it counts as over: between two points of a sweep there is none.
const PATIENT_LOOKS: u32 = 30;

/// Sends what goes on in a folder until it is over or the client is gone.
pub(crate) fn stream_live(stream: &mut TcpStream, folder: &Path) -> io::Result<()> {
    let (mut following, mut without) = (None::<Following>, 0);
    loop {
        match live_folder(folder) {
            Some(run) => {
                without = 0;
                if following.as_ref().is_none_or(|following| following.run != run) {
                    following = Following::new(folder, run).ok();
                }
            }
            None => without += 1,
        }
        let is_over = without > PATIENT_LOOKS || (without > 0 && !is_campaign(folder));
        let message = match &mut following {
            _ if is_over => "event: over\ndata: {}\n\n".to_owned(),
            Some(following) => {
                following.read_new();
                let seen = following.seen_requests(seconds_since_write(folder));
                format!(
                    "event: look\ndata: {}\n\n",
                    serde_json::to_string(&seen).unwrap_or_default()
                )
            }
            // A line that browsers pass over, to learn whether anybody is there.
            None => ": nothing yet\n\n".to_owned(),
        };
        write_all_before(stream, message.as_bytes(), now() + PATIENCE)?;
        if is_over {
            return Ok(());
        }
        pause(EVERY);
    }
}

/// Whether a folder holds many runs, and no result that ends them.
fn is_campaign(folder: &Path) -> bool {
    let is_there = |name: &str| folder.join(name).exists();
    let is_many = ["sweep.toml", "compare.toml", "repeat-1"].into_iter().any(is_there);
    is_many && !is_there("summary.json")
}

/// A run that is looked at.
pub(crate) struct Following {
    run: PathBuf,
    /// For people, from the folder that was asked for.
    name: String,
    requests: LogTail<RequestRecord>,
    samples: Option<LogTail<HealthSample>>,
    ended: u64,
    /// Of those that ended: how many were looked into. Of a long log the first are only counted.
    known: u64,
    failed: u64,
    /// The last of its clock that was seen.
    at: Nanos,
    recent: VecDeque<Ended>,
    /// Running and waiting requests, as each page of metrics said last; none if it was silent.
    pages: BTreeMap<u32, Option<[Option<f64>; 2]>>,
}

/// A request that ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    at: Nanos,
    took: Nanos,
    tokens: u32,
    ttft: Option<Nanos>,
    tpot_ms: Option<f64>,
}

/// What was seen, for the page's script. What is not known is left out.
#[derive(Debug, Serialize)]
pub(crate) struct SeenRequests {
    point: String,
    at_s: f64,
    pub(crate) ended: u64,
    pub(crate) failed: u64,
    /// What `failed` is out of.
    pub(crate) known: u64,
    pub(crate) rate: f64,
    pub(crate) output_tps: f64,
    /// By Little's law, from those that ended: what has not ended is in no log.
    pub(crate) in_flight: f64,
    pub(crate) ttft_p50_ms: Option<f64>,
    pub(crate) ttft_p99_ms: Option<f64>,
    pub(crate) tpot_p50_ms: Option<f64>,
    tpot_p99_ms: Option<f64>,
    pub(crate) server_running: Option<f64>,
    pub(crate) server_waiting: Option<f64>,
    /// Seconds since something was written; none if nothing ever was.
    quiet_s: Option<f64>,
}

impl Following {
    pub(crate) fn new(folder: &Path, run: PathBuf) -> io::Result<Self> {
        let file = |name: &str| open_inside(&run.join(name));
        let within = run.strip_prefix(folder).ok().filter(|path| !path.as_os_str().is_empty());
        let own = || run.file_name().unwrap_or_default().to_string_lossy();
        let name = within.map_or_else(own, Path::to_string_lossy);
        Ok(Self {
            name: name.into_owned(),
            requests: LogTail::new(file("requests.log")?),
            samples: file("server.log").ok().map(LogTail::new),
            run,
            ended: 0,
            known: 0,
            failed: 0,
            at: Nanos::ZERO,
            recent: VecDeque::new(),
            pages: BTreeMap::new(),
        })
    }

    /// Takes in what came since the last look, within bounds.
    pub(crate) fn read_new(&mut self) {
        let skipped = self.requests.skip(NEAR_END, MOST_SKIPPED).unwrap_or_default();
        self.ended += skipped as u64;
        for record in self.requests.read(MOST_FRAMES, MOST_BYTES).unwrap_or_default() {
            self.ended += 1;
            self.known += 1;
            self.failed += u64::from(!record.is_ok());
            self.at = self.at.max(record.end());
            self.recent.push_back(Ended::from_record(&record));
        }
        if let Some(samples) = &mut self.samples {
            let _ = samples.skip(NEAR_END, MOST_SKIPPED);
            for sample in samples.read(MOST_FRAMES, MOST_BYTES).unwrap_or_default() {
                self.at = self.at.max(sample.at);
                // One sample holds every scrape since the one before: several of one page.
                let said =
                    sample.scrapes.iter().map(|scrape| (scrape.endpoint, scrape_gauges(scrape)));
                self.pages.extend(said.filter(|(endpoint, _)| *endpoint < MOST_PAGES));
            }
        }
        let from = self.at - WINDOW;
        self.recent.retain(|ended| ended.at >= from);
    }

    pub(crate) fn seen_requests(&self, quiet_s: f64) -> SeenRequests {
        let window_s = self.at.min(WINDOW).as_ms().max(1.0) / 1e3;
        let sum = |of: fn(&Ended) -> f64| self.recent.iter().map(of).sum::<f64>();
        let of = |get: fn(&Ended) -> Option<f64>| {
            let mut values: Vec<f64> = self.recent.iter().filter_map(get).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let ttft = of(|ended| ended.ttft.map(Nanos::as_ms));
        let tpot = of(|ended| ended.tpot_ms);
        let gauge = |which: usize| {
            let told = self.pages.values().flatten().filter_map(|page| page.get(which).copied());
            told.flatten().reduce(|sum, value| sum + value)
        };
        SeenRequests {
            point: self.name.clone(),
            at_s: self.at.as_ms() / 1e3,
            ended: self.ended,
            failed: self.failed,
            known: self.known,
            rate: self.recent.len() as f64 / window_s,
            output_tps: sum(|ended| f64::from(ended.tokens)) / window_s,
            in_flight: sum(|ended| ended.took.as_ms() / 1e3) / window_s,
            ttft_p50_ms: value_at_share(&ttft, 0.5),
            ttft_p99_ms: value_at_share(&ttft, 0.99),
            tpot_p50_ms: value_at_share(&tpot, 0.5),
            tpot_p99_ms: value_at_share(&tpot, 0.99),
            server_running: gauge(0),
            server_waiting: gauge(1),
            quiet_s: Some(quiet_s).filter(|seconds| seconds.is_finite()),
        }
    }
}

impl Ended {
    fn from_record(record: &RequestRecord) -> Self {
        let stamps = &record.exchange.stamps;
        let tokens = record.exchange.output_tokens.map_or(0, |count| count.n);
        let first = stamps.first_token.filter(|_| record.is_ok());
        let last = stamps.last_token.filter(|_| tokens > 1);
        Self {
            at: record.end(),
            took: record.end() - record.scheduled,
            tokens,
            ttft: first.map(|first| first - record.scheduled),
            tpot_ms: first
                .zip(last)
                .map(|(first, last)| (last - first).as_ms() / f64::from(tokens - 1)),
        }
    }
}

/// Running and waiting requests by one page of metrics; none if it did not answer.
fn scrape_gauges(scrape: &Scrape) -> Option<[Option<f64>; 2]> {
    let reading = scrape.outcome.as_ref().ok()?;
    Some([Signal::Running, Signal::Waiting].map(|signal| match reading.values.get(&signal) {
        Some(SignalValue::Number(value)) if value.is_finite() => Some(*value),
        _ => None,
    }))
}

/// The value at this share of ascending ones.
fn value_at_share(values: &[f64], share: f64) -> Option<f64> {
    let place = (values.len() as f64 * share).ceil() as usize;
    values.get(place.saturating_sub(1)).copied()
}
