//! What is fed, to one client and to several.

use std::time::Duration;

use goodput_model::{
    Api, History, Load, LoadExtent, Mode, Phase, Planned, Rate, Request, SessionStep,
};
use goodput_wire::RequestFormat;
use proptest::prelude::*;

use super::*;

/// Sessions whose second step has a text of 32 MiB, which they share.
struct Large(Session);

impl SessionSource for Large {
    fn session(&self, _: u64) -> Option<Session> {
        Some(self.0.clone())
    }

    fn arrival(&self, _: u64) -> Option<Nanos> {
        None
    }
}

fn feeder() -> Feeder {
    let step = |text: &str| SessionStep {
        after: Nanos::ZERO,
        requests: vec![Request::prompt(text, Planned::new("test", 1, None))],
        reply: None,
    };
    let steps = vec![step("small"), step(&"x".repeat(32 << 20))];
    let large = Large(Session { steps, history: History::Server });
    let dialect = RequestFormat::new(Api::Chat, "m", true);
    let scribe = BodyEncoder { dialect, keep_text: false, hash_bodies: false };
    Feeder::new(Box::new(large), Shard::WHOLE, scribe, Senders::default())
}

#[test]
fn requests_are_numbered_session_by_session() {
    let visits: Vec<PreparedSession> = feeder().take(3).collect();
    let numbers: Vec<(u64, u64)> =
        visits.iter().map(|visit| (visit.first.main.session, visit.first.main.index)).collect();
    assert_eq!(numbers, [(0, 0), (1, 2), (2, 4)]);
}

/// Sessions of this many requests each, some of which belong together.
#[derive(Clone)]
struct Short {
    requests: Vec<u64>,
    together: Vec<u64>,
    gaps_ms: Vec<u64>,
}

impl SessionSource for Short {
    fn session(&self, number: u64) -> Option<Session> {
        let step = |turn: u64| SessionStep {
            after: Nanos::ZERO,
            requests: vec![Request::prompt(
                &format!("{number} {turn}"),
                Planned::new("test", 1, None),
            )],
            reply: None,
        };
        let steps = (0..self.request_count(number)?).map(step).collect();
        Some(Session { steps, history: History::Server })
    }

    fn arrival(&self, number: u64) -> Option<Nanos> {
        let number = usize::try_from(number).ok().filter(|n| *n < self.gaps_ms.len())?;
        Some(Nanos::from_millis(self.gaps_ms[..=number].iter().sum()))
    }

    fn request_count(&self, number: u64) -> Option<u64> {
        self.requests.get(usize::try_from(number).ok()?).copied()
    }

    fn deal_turn(&self, number: u64) -> u64 {
        self.together.get(number as usize).copied().unwrap_or(number)
    }
}

/// When, session, first request, its phase and body, requests in all.
type Sent = (Nanos, u64, u64, Phase, bytes::Bytes, u64);

/// What one client sends of an open loop.
fn sent(load: &Load, sessions: &Short, shard: Shard) -> Vec<Sent> {
    let load = shard.shard_load(load);
    let arrivals = match &load.mode {
        Mode::Open { rate, arrivals, .. } => {
            Some(ArrivalSequence::new(*rate, *arrivals, load.seed))
        }
        Mode::Shaped { shape, arrivals, .. } => {
            Some(ArrivalSequence::shaped(shape, *arrivals, load.seed))
        }
        _ => None,
    };
    let scribe = BodyEncoder {
        dialect: RequestFormat::new(Api::Chat, "m", true),
        keep_text: false,
        hash_bodies: false,
    };
    let feeder = Feeder::new(Box::new(sessions.clone()), shard, scribe, Senders::default());
    let timeline = Arc::new(RunTimeline::new(&load));
    let mut feed = OpenFeed { feeder, arrivals, timeline, ahead: Arc::default(), workers: vec![] };
    std::iter::from_fn(|| feed.next())
        .take(1_000)
        .map(|ScheduledSession { at, visit }| {
            let main = &visit.first.main;
            let requests = visit.first.len() + visit.rest.as_ref().map_or(0, |rest| rest.left);
            (at, main.session, main.index, main.phase, main.body.clone(), requests)
        })
        .collect()
}

fn mode() -> impl Strategy<Value = Mode> {
    let arrivals = prop_oneof![
        Just(goodput_model::ArrivalProcess::Poisson),
        Just(goodput_model::ArrivalProcess::Constant),
        Just(goodput_model::ArrivalProcess::Gamma(2.0))
    ];
    let shapes = ["2s@5,2s@5..20,1s@20", "sine:10:5:2s", "bursts:7/1s"];
    let shape = prop::sample::select(shapes.to_vec()).prop_map(|text| text.parse().unwrap());
    let keep = goodput_model::Keep::Timestamps;
    prop_oneof![
        (arrivals.clone(), 1.0f64..50.0).prop_map(|(arrivals, rate)| Mode::Open {
            rate: Rate::PerSecond(rate),
            arrivals,
            max_concurrency: None
        }),
        Just(Mode::Open {
            rate: Rate::Infinite,
            arrivals: goodput_model::ArrivalProcess::Constant,
            max_concurrency: None
        }),
        (arrivals, shape).prop_map(|(arrivals, shape)| Mode::Shaped {
            shape,
            arrivals,
            max_concurrency: None
        }),
        Just(Mode::Replay { time_scale: 1.0, keep, max_concurrency: None }),
    ]
}

fn extent() -> impl Strategy<Value = LoadExtent> {
    prop_oneof![
        (0u64..3).prop_map(|seconds| LoadExtent::Time(Duration::from_secs(seconds))),
        (0u64..20).prop_map(LoadExtent::Requests)
    ]
}

proptest! {
    #[test]
    fn the_union_of_all_shards_is_the_schedule_of_one_client(
        mode in mode(),
        warmup in extent(),
        duration in prop::option::of(1u64..6),
        num_requests in prop::option::of(1u64..80),
        sessions in prop::collection::vec((1u64..4, 0u64..5, 0u64..200), 60),
        (of, seed) in (1u32..9, 0u64..1_000),
    ) {
        let load = Load {
            seed,
            duration: duration.map(Duration::from_secs),
            num_requests: num_requests.or(duration.is_none().then_some(50)),
            warmup,
            cooldown: Duration::from_millis(500),
            drain: Duration::from_mins(1),
            workers: 1,
            pin: false,
            mode,
        };
        let sessions = Short {
            requests: sessions.iter().map(|(requests, ..)| *requests).collect(),
            // As rows of a trace: each with itself or with one before it.
            together: (0..).zip(&sessions).map(|(n, (_, back, _))| n - back.min(&n)).collect(),
            gaps_ms: sessions.iter().map(|(.., gap)| *gap).collect(),
        };
        let whole = sent(&load, &sessions, Shard::WHOLE);
        let mut union = Vec::new();
        for index in 0..of {
            let shard = Shard::new(index, of).unwrap();
            let part = sent(&load, &sessions, shard);
            prop_assert!(part.iter().all(|sent| shard.sends_turn(sessions.deal_turn(sent.1))));
            union.extend(part);
        }
        union.sort_by_key(|sent| sent.1);
        prop_assert_eq!(union, whole);
    }
}

#[test]
fn a_closed_loop_deals_out_sessions_in_turn() {
    let sessions =
        Short { requests: vec![1; 20], together: (0..20).collect(), gaps_ms: Vec::new() };
    let scribe = BodyEncoder {
        dialect: RequestFormat::new(Api::Chat, "m", true),
        keep_text: false,
        hash_bodies: false,
    };
    let part = Shard::new(1, 3).unwrap();
    let feeder = Feeder::new(Box::new(sessions), part, scribe, Senders::default());
    let numbers: Vec<u64> = feeder.map(|visit| visit.first.main.session).collect();
    assert_eq!(numbers, [1, 4, 7, 10, 13, 16, 19]);
}

#[test]
fn what_is_ahead_is_bounded_in_bytes() {
    let queue = Arc::new(SessionQueue::new(AHEAD));
    let feeding = {
        let queue = Arc::clone(&queue);
        std::thread::spawn(move || queue.keep_full(feeder()))
    };
    let fill = || {
        while !queue.is_full() {
            pause(Nanos::from_millis(1));
        }
        // Time to do wrong.
        pause(REST);
        queue.len()
    };
    // 256 MiB: eight texts, because bodies take room too.
    assert_eq!(fill(), 8);
    assert!(queue.pop().is_some());
    assert_eq!(fill(), 8);
    drop(queue);
    assert!(feeding.join().is_ok());
}
