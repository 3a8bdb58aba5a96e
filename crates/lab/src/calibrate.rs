//! How much this client carries, found against a server of known timing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use goodput_campaign::{
    Calibration, CalibrationLevel, ClimbKind, measured_ceiling as ceiling_of, next_level,
};
use goodput_clock::now;
use goodput_engine::{EngineRun, FdLimit, LiveCounters, RunControl, Sink};
use goodput_model::{
    Api, ArrivalProcess, CanaryReading, Ceiling, ClassPlan, ConnectionPolicy, GpuPlan,
    HealthSample, LengthDistribution, Load, LoadExtent, LoopLag, Mode, Nanos, OutputLength, Plan,
    Rate, RequestRecord, Shard, Target,
};
use goodput_observe::HostSampler;
use goodput_stats::{RunFacts, Summary, analyze_run};
use goodput_truth::{Timing, TruthServer};
use goodput_wire::RequestFormat;
use goodput_workload::{Setting, Workload};

use crate::campaign::{Next, Outcome, Planner, measure_until_done};
use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::Interrupt;
use crate::{canary, host};

/// The server's delays while streams are raised: 50 events a second each.
const STREAMING: Timing = Timing { ttft: Nanos::from_millis(20), itl: Nanos::from_millis(20) };
const STREAM_TOKENS: u32 = 100;

/// And while requests are raised: short answers, so that few are open at once.
const ASKING: Timing = Timing { ttft: Nanos::from_millis(5), itl: Nanos::from_millis(1) };
const ASK_TOKENS: u32 = 2;

/// Up to here streams are users of a closed loop, in step; beyond, arrivals spread them as real
/// traffic does: a thousand tokens at one instant measure the order of reading, not the client.
const IN_STEP: f64 = 100.0;

/// How often the canary is asked: often, because a level is short.
const CANARY_EVERY: Nanos = Nanos::from_millis(5);

/// How long a calibration takes.
#[derive(Debug, Clone, Copy)]
pub struct ClimbTimes {
    /// Measured time of each level.
    pub level: Duration,
    /// No level begins that would end later than this after the beginning.
    pub most: Duration,
}

/// Raises the load level by level until the client is the limit. `step` sees every level.
pub fn calibrate(
    workers: u32,
    times: ClimbTimes,
    fd_limit: FdLimit,
    mut step: impl FnMut(&CalibrationLevel),
    observer: &dyn Observer,
) -> Result<Calibration, Failed> {
    let cpus = goodput_clock::allowed_cpus();
    let bench = ClientBench { workers, cpus, length: times.level };
    let levels = Vec::new();
    let stamps = String::new();
    let end = now() + times.most.into();
    let mut rising = Rising { bench, end, fd_limit, step: &mut step, observer, levels, stamps };
    measure_until_done(&mut rising, &Interrupt::default())?;
    let Rising { levels, stamps, .. } = rising;
    Ok(Calibration {
        schema: Calibration::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: host::timestamp(),
        machine: machine_text(),
        cpus: host::host_facts(fd_limit.0).cpus,
        workers,
        stamps,
        ceiling: ceiling_of(&levels),
        levels,
    })
}

/// Levels of rising load, first of streams, then of requests.
struct Rising<'a> {
    bench: ClientBench,
    /// No level begins that would last beyond this instant.
    end: Nanos,
    fd_limit: FdLimit,
    /// Sees every level.
    step: &'a mut dyn FnMut(&CalibrationLevel),
    observer: &'a dyn Observer,
    levels: Vec<CalibrationLevel>,
    /// Who stamped arrivals.
    stamps: String,
}

impl Planner for Rising<'_> {
    type Step = (ClimbKind, f64);
    type End = ();

    fn next(&mut self) -> Next<(ClimbKind, f64), ()> {
        let has_requests = self.levels.iter().any(|level| level.kind == ClimbKind::Requests);
        if let Some(level) = next_level(ClimbKind::Streams, &self.levels).filter(|_| !has_requests)
        {
            // Both ends of every connection are in this process.
            if level * 2.0 <= self.fd_limit.connections() as f64 {
                return Next::Measure((ClimbKind::Streams, level));
            }
            let full = "the limit on open files allows no more; raise it with `ulimit -n`";
            self.observer.note_once(full);
        }
        let level = next_level(ClimbKind::Requests, &self.levels);
        level.map_or(Next::Over(()), |level| Next::Measure((ClimbKind::Requests, level)))
    }

    fn measure(&mut self, (kind, level): &(ClimbKind, f64)) -> Result<Outcome, Failed> {
        let (reading, stamps) = self.bench.measure_level(*kind, *level)?;
        (self.step)(&reading);
        self.stamps = stamps;
        self.levels.push(reading);
        Ok(Outcome::Measured)
    }

    fn has_time(&self, _: &(ClimbKind, f64)) -> bool {
        now() + self.bench.length.into() <= self.end
    }

    fn end_on_timeout(&self) {
        let text = "calibration ends here: the time for it is over (--max-time); what was not \
                    measured is missing from the result";
        self.observer.warn(text.to_owned());
    }

    fn end_on_interrupt(&self) {}

    fn end_on_lost_target(&self) {}
}

/// The client's side of every level.
struct ClientBench {
    workers: u32,
    cpus: Vec<usize>,
    length: Duration,
}

impl ClientBench {
    /// One level, and who stamped arrivals. A level that was too much gets a second chance: another
    /// program may have come in between, and it is the client's limit that is looked for.
    fn measure_level(
        &self,
        kind: ClimbKind,
        level: f64,
    ) -> Result<(CalibrationLevel, String), Failed> {
        let once = || {
            let (summary, server_late_ms) =
                self.run_level(kind, level).map_err(|error| Failed::internal(error.to_string()))?;
            let reading = CalibrationLevel::new(kind, level, &summary, server_late_ms);
            Ok((reading, summary.client.stamps))
        };
        let first = once()?;
        if first.0.is_carried() { Ok(first) } else { once() }
    }

    /// One level: its numbers, and how late the server wrote at p99.
    fn run_level(
        &self,
        kind: ClimbKind,
        level: f64,
    ) -> Result<(Summary, f64), Box<dyn std::error::Error>> {
        let (timing, tokens) = match kind {
            ClimbKind::Streams => (STREAMING, STREAM_TOKENS),
            ClimbKind::Requests => (ASKING, ASK_TOKENS),
        };
        let server = self.start_server(timing)?;
        let (_canary_server, mut canary) = canary::start_canary()?;
        canary.every = CANARY_EVERY;
        let plan = self.level_plan(kind, level, tokens);
        let run = EngineRun {
            load: plan.load.clone(),
            shard: Shard::WHOLE,
            begin: None,
            timeout: plan.target.timeout,
            workload: Box::new(Workload::new(&plan.workload, &Setting::new(plan.load.seed))?),
            dialect: RequestFormat::new(Api::Chat, "truth", true),
            endpoint: canary::canary_endpoint(&server, false)?,
            connections: ConnectionPolicy::Reuse,
            keep_text: false,
            keep_answers: false,
            hash_bodies: false,
            session_header: None,
            tracer: None,
            pacing: host::timer_mode(),
            canary: Some(canary),
            pin_to: self.client_cpus().to_vec(),
        };
        let sink =
            MemorySink { records: Vec::new(), samples: Vec::new(), host: HostSampler::new() };
        let ended =
            goodput_engine::run(run, &RunControl::new(), &Arc::new(LiveCounters::default()), sink)?;
        let MemorySink { records, samples, .. } = ended.sink;
        let summary = analyze_run(&plan, run_facts(), || records.iter().cloned(), &samples, []);
        Ok((summary, server.stop()?.write_lateness_ms.p99.unwrap_or(0.0)))
    }

    /// The server has the last processor, the workers the others.
    fn client_cpus(&self) -> &[usize] {
        match self.cpus.as_slice() {
            [client @ .., _] if !client.is_empty() => client,
            _ => &[],
        }
    }

    /// A thread inherits its processors from the one that starts it.
    fn start_server(&self, timing: Timing) -> std::io::Result<TruthServer> {
        let cpu = self.cpus.last().copied().filter(|_| !self.client_cpus().is_empty());
        std::thread::scope(|scope| {
            let start = scope.spawn(|| {
                cpu.map_or(Ok(()), goodput_clock::pin_to)?;
                TruthServer::start("127.0.0.1:0", timing)
            });
            start.join().unwrap_or_else(|_| Err(std::io::Error::other("cannot start a server")))
        })
    }

    fn level_plan(&self, kind: ClimbKind, level: f64, tokens: u32) -> Plan {
        let answer = STREAMING.ttft.as_secs() + STREAMING.itl.as_secs() * f64::from(tokens - 1);
        let open = |rate: f64| Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals: ArrivalProcess::Poisson,
            max_concurrency: None,
        };
        let (mode, warmup) = match kind {
            ClimbKind::Requests => (open(level), Duration::from_millis(500)),
            ClimbKind::Streams if level <= IN_STEP => (
                Mode::Closed {
                    concurrency: level as u32,
                    think_time: Duration::ZERO,
                    pause_first: false,
                },
                Duration::from_millis(500),
            ),
            // All streams are there after one answer.
            ClimbKind::Streams => (open(level / answer), Duration::from_secs_f64(answer + 0.2)),
        };
        let class = ClassPlan::synthetic(
            "chat",
            LengthDistribution::Fixed(10),
            LengthDistribution::Fixed(tokens),
        );
        let mut plan = Plan::open_loop("truth", class, level, self.length);
        plan.target = Target { usage: false, timeout: Duration::from_mins(1), ..plan.target };
        plan.load = Load {
            seed: 1,
            warmup: LoadExtent::Time(warmup),
            drain: Duration::from_secs(3),
            workers: self.workers,
            pin: true,
            mode,
            ..plan.load
        };
        plan.workload.output = OutputLength::Limit;
        plan.measure.percentiles = vec![50.0, 99.0];
        (plan.observe.metrics, plan.observe.gpu) = (false, GpuPlan::Off);
        plan
    }
}

fn run_facts() -> RunFacts {
    RunFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: host::timestamp(),
        target: "truth".to_owned(),
        model: "truth".to_owned(),
        api: Api::Chat.name().to_owned(),
        stream: true,
        seed: 1,
        ..RunFacts::default()
    }
}

/// Keeps everything in memory.
struct MemorySink {
    records: Vec<RequestRecord>,
    samples: Vec<HealthSample>,
    host: HostSampler,
}

impl Sink for MemorySink {
    fn record(&mut self, record: RequestRecord) {
        self.records.push(record);
    }

    fn observe(&mut self, at: Nanos, beats: Vec<LoopLag>, canary: Vec<CanaryReading>) {
        let host = self.host.sample();
        self.samples.push(HealthSample { at, host, beats, canary, ..HealthSample::default() });
    }

    fn flush(&mut self) {}
}

/// What a calibration holds for: this processor under this kernel.
pub fn machine_text() -> String {
    let facts = host::host_facts(0);
    format!("{}, {}", facts.cpu, facts.system)
}

/// Where the calibration for this many workers is kept.
pub fn state_file(workers: u32) -> Option<PathBuf> {
    Some(state_folder()?.join(format!("calibration-{workers}.json")))
}

/// Where what is known about this machine is kept; none if its user has no place for that.
pub fn state_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = named("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(Path::new(&named("HOME")?).join(".local/state")))?;
    Some(state.join("goodput"))
}

/// A small file of that folder; none if it has none.
pub fn read_state(path: &Path) -> Option<Vec<u8>> {
    goodput_files::read(path, 1 << 20).ok()
}

/// The ceiling that was found on this machine for this many workers, if it was looked for.
pub fn known_ceiling(plan: &Plan, observer: &dyn Observer) -> Option<Ceiling> {
    let workers = plan.load.mode.useful_workers(plan.load.workers);
    let path = state_file(workers)?;
    let saved = serde_json::from_slice::<Calibration>(&read_state(&path)?)
        .map_err(|error| observer.warn(format!("{}: {error}", path.display())))
        .ok()?;
    let is_known = saved.schema == Calibration::SCHEMA && saved.machine == machine_text();
    let plausible = |most: Option<f64>| most.filter(|most| *most >= 1.0);
    is_known.then(|| Ceiling {
        events_per_s: plausible(saved.ceiling.events_per_s),
        requests_per_s: plausible(saved.ceiling.requests_per_s),
    })
}
