//! A run of hand-made sessions against a server that plays a script.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use goodput_engine::{
    EngineRun, LiveCounters, RunControl, RunEnd, SessionSource, Sink, TimerMode, run,
};
use goodput_model::{
    Api, ArrivalProcess, CanaryReading, ConnectionPolicy, History, Load, LoadExtent, LoopLag,
    Message, Mode, Nanos, Planned, Rate, Request, RequestRecord, Role, Session, SessionStep, Shard,
};
use goodput_testkit::{LAST_CHUNK, STREAM_HEAD, Server, chunk, end_events, token_event};
use goodput_wire::{Endpoint, EndpointSettings, RequestFormat};

/// Sessions, and when they arrive.
pub(crate) struct Made {
    pub(crate) sessions: Vec<Session>,
    pub(crate) arrivals: Vec<Nanos>,
}

impl SessionSource for Made {
    fn session(&self, number: u64) -> Option<Session> {
        self.sessions.get(number as usize).cloned()
    }

    fn arrival(&self, number: u64) -> Option<Nanos> {
        self.arrivals.get(number as usize).copied()
    }
}

/// Keeps the records.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) Vec<RequestRecord>);

impl Sink for Memory {
    fn record(&mut self, record: RequestRecord) {
        self.0.push(record);
    }

    fn observe(&mut self, _: Nanos, _: Vec<LoopLag>, _: Vec<CanaryReading>) {}

    fn flush(&mut self) {}
}

pub(crate) fn request(text: &str) -> Request {
    Request::prompt(text, Planned::new("test", 1, Some(1)))
}

/// A session of these steps, each of these questions, with a pause between them.
pub(crate) fn session(steps: &[&[&str]], after: Nanos) -> Session {
    let step = |(number, texts): (usize, &&[&str])| SessionStep {
        after: if number == 0 { Nanos::ZERO } else { after },
        requests: texts.iter().map(|text| request(text)).collect(),
        reply: None,
    };
    let steps = steps.iter().enumerate().map(step).collect();
    Session { steps, history: History::Server }
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

pub(crate) fn dialect() -> RequestFormat {
    RequestFormat::new(Api::Chat, "m", true)
}

/// A chat stream of one token with this text, complete after a while.
pub(crate) fn say(text: &str, after: Duration) -> Vec<goodput_testkit::Step> {
    let events = chunk(&(token_event(text) + &end_events(1)));
    vec![goodput_testkit::Step::WriteAt(after, format!("{STREAM_HEAD}{events}{LAST_CHUNK}").into())]
}

pub(crate) fn load(mode: Mode) -> Load {
    Load {
        seed: 1,
        duration: None,
        num_requests: None,
        warmup: LoadExtent::Requests(0),
        cooldown: Duration::ZERO,
        drain: Duration::from_mins(1),
        workers: 2,
        pin: false,
        mode,
    }
}

/// Sessions arrive at these instants.
pub(crate) fn replay(max_concurrency: Option<u32>) -> Load {
    load(Mode::Replay { time_scale: 1.0, keep: goodput_model::Keep::ThinkTimes, max_concurrency })
}

/// Sessions arrive at equal gaps.
pub(crate) fn open(rate: f64, num_requests: u64) -> Load {
    let rate = Rate::PerSecond(rate);
    let mode = Mode::Open { rate, arrivals: ArrivalProcess::Constant, max_concurrency: None };
    Load { num_requests: Some(num_requests), ..load(mode) }
}

pub(crate) fn closed(concurrency: u32, think_time: Duration) -> Load {
    load(Mode::Closed { concurrency, think_time, pause_first: false })
}

/// A run of these sessions against this server. `arrivals` are milliseconds, for a replay.
pub(crate) fn plan(
    load: Load,
    sessions: Vec<Session>,
    arrivals: &[u64],
    server: &Server,
) -> EngineRun {
    let settings = EndpointSettings {
        keep_text: true,
        ..EndpointSettings::new(server.url().parse().unwrap())
    };
    let arrivals = arrivals.iter().map(|ms| Nanos::from_millis(*ms)).collect();
    EngineRun {
        load,
        shard: Shard::WHOLE,
        begin: None,
        timeout: Duration::from_secs(20),
        workload: Box::new(Made { sessions, arrivals }),
        dialect: dialect(),
        endpoint: Arc::new(Endpoint::new(&settings).unwrap()),
        connections: ConnectionPolicy::Reuse,
        keep_text: false,
        keep_answers: false,
        hash_bodies: false,
        session_header: None,
        tracer: None,
        pacing: TimerMode::Exact,
        canary: None,
        pin_to: Vec::new(),
    }
}

/// Runs to the end; the records in order of their index.
pub(crate) fn play(run_: EngineRun) -> RunEnd<Memory> {
    play_under(run_, &RunControl::new())
}

pub(crate) fn play_under(run_: EngineRun, control: &RunControl) -> RunEnd<Memory> {
    let live = Arc::new(LiveCounters::default());
    let mut ended = run(run_, control, &live, Memory::default()).unwrap();
    ended.sink.0.sort_by_key(|record| record.index);
    let seen = live.snapshot();
    assert_eq!(seen.sessions, seen.ended_sessions);
    assert_eq!((seen.started, seen.in_flight()), (ended.sink.0.len() as u64, 0));
    ended
}

pub(crate) fn indices(ended: &RunEnd<Memory>) -> Vec<u64> {
    ended.sink.0.iter().map(|record| record.index).collect()
}
