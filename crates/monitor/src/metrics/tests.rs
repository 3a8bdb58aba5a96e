//! Known records in, known pages out; and a server that no client can keep busy.

mod page;
mod socket;

use std::time::Duration;

use goodput_model::{
    ArrivalProcess, Chunk, ErrorClass, Exchange, Failure, FailureStage, LoadExtent, LoadShape,
    Phase, Planned, Rate, Stamps, TokenCount, TokenSource,
};

use super::*;
use crate::course::{PlannedLoad, planned_load};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn load() -> Load {
    let rate = Rate::PerSecond(20.0);
    Load {
        seed: 1,
        duration: Some(Duration::from_secs(10)),
        num_requests: None,
        warmup: LoadExtent::Time(Duration::from_secs(2)),
        cooldown: Duration::from_secs(1),
        drain: Duration::from_secs(1),
        workers: 1,
        pin: false,
        mode: goodput_model::Mode::Open {
            rate,
            arrivals: ArrivalProcess::Poisson,
            max_concurrency: None,
        },
    }
}

fn facts() -> RunLabels {
    RunLabels {
        target: "http://h:1".to_owned(),
        run: "run".to_owned(),
        label: String::new(),
        model: "m".to_owned(),
        folder: "out".to_owned(),
        stream: true,
        load: load(),
    }
}

/// Due at 1 s, sent 2 ms later, tokens at these milliseconds after the scheduled instant.
fn record(tokens: &[u64]) -> RequestRecord {
    let chunk = |at: &u64| Chunk {
        at: ms(1_000 + at),
        tokens: None,
        bytes: 4,
        choice: 0,
        coalesced: false,
        lag_us: None,
    };
    let chunks: Vec<Chunk> = tokens.iter().map(chunk).collect();
    let stamps = Stamps {
        dispatched: ms(1_001),
        sent_first: Some(ms(1_002)),
        first_token: chunks.first().map(|chunk| chunk.at),
        last_token: chunks.last().map(|chunk| chunk.at),
        ended: ms(1_000 + tokens.last().unwrap_or(&500)),
        ..Stamps::default()
    };
    let input_tokens = Some(TokenCount { n: 7, source: TokenSource::Usage });
    RequestRecord {
        index: 0,
        phase: Phase::Measured,
        worker: 0,
        scheduled: ms(1_000),
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("chat", 9, None),
        exchange: Exchange { stamps, chunks, input_tokens, ..Exchange::default() },
        prompt: None,
    }
}

fn failed(class: ErrorClass, tokens: &[u64]) -> RequestRecord {
    let mut record = record(tokens);
    let failure = Failure { class, stage: FailureStage::Stream, message: String::new() };
    record.exchange.failure = Some(failure);
    record.exchange.input_tokens = None;
    record
}

#[test]
fn phases_follow_the_plan_by_time_and_by_count() {
    use RunPosition::{Cooldown, Drain, Measured, Warmup};

    let mut course = PlanProgress::new(&load());
    course.update(ms(1), 1_000_000);
    let stands =
        [0, 1_999, 2_000, 11_999, 12_000, 12_999, 13_000].map(|at| course.position(ms(at)));
    assert_eq!(stands, [Warmup, Warmup, Measured, Measured, Cooldown, Cooldown, Drain]);

    let counted = Load {
        duration: None,
        num_requests: Some(10),
        warmup: LoadExtent::Requests(5),
        cooldown: Duration::ZERO,
        ..load()
    };
    let mut course = PlanProgress::new(&counted);
    let mut at = |at, started| {
        course.update(ms(at), started);
        course.position(ms(at))
    };
    assert_eq!([at(1, 4), at(2, 5), at(3, 14), at(4, 15)], [Warmup, Measured, Measured, Drain]);
}

#[test]
fn what_is_offered_follows_the_shape() {
    assert_eq!(planned_load(&load().mode, ms(5)), PlannedLoad::PerSecond(20.0));
    let shape: LoadShape = "10s@5,10s@30".parse().unwrap();
    let (arrivals, max_concurrency) = (ArrivalProcess::Poisson, None);
    let shaped = goodput_model::Mode::Shaped { shape, arrivals, max_concurrency };
    let rates = [0, 4_000, 12_000].map(|at| planned_load(&shaped, ms(at)));
    assert_eq!(rates, [5.0, 5.0, 30.0].map(PlannedLoad::PerSecond));
}

#[test]
fn runs_have_names_of_their_own_and_the_oldest_that_ended_go() {
    let listen = Listen::default();
    let follow = || listen.follow_handle(facts(), &RunHandle::default());
    let names = || -> Vec<String> {
        lock_ignoring_poison(&listen.0).shown.iter().map(|run| run.facts.run.clone()).collect()
    };
    // The first goes on all the time; its successors end at once.
    let mut first = follow();
    for _ in 0..MOST_RUNS {
        drop(follow());
    }
    let all = names();
    assert_eq!(all.len(), MOST_RUNS);
    assert_eq!(all[..2], ["run".to_owned(), "run (3)".to_owned()]);
    first.observe(&Observation { at: ms(500), beats: &[], scrapes: &[], gpus: &[] });
    first.record(&record(&[50]));
    let page = listen.render_page(MetricsFormat::Text);
    let samples = page::check(&page, MetricsFormat::Text);
    let of = |name: &str| samples[&format!("{name}{{run=\"run\",target=\"http://h:1\"}}")];
    assert_eq!(of("goodput_ttft_seconds_count"), 1.0);
    assert!(of("goodput_run_elapsed_seconds") >= 0.5);
    let phase = |run: &str, phase: &str| {
        samples
            [&format!("goodput_run_phase{{phase=\"{phase}\",run=\"{run}\",target=\"http://h:1\"}}")]
    };
    assert_eq!([phase("run", "warmup"), phase("run", "ended")], [1.0, 0.0]);
    assert_eq!([phase("run (3)", "warmup"), phase("run (3)", "ended")], [0.0, 1.0]);
    drop(first);
    drop(follow());
    assert_eq!(names()[0], "run (3)");
}

#[test]
fn a_run_whose_sending_was_stopped_drains() {
    let listen = Listen::default();
    let handle = RunHandle::default();
    let control = handle.control.clone();
    let _following = listen.follow_handle(facts(), &handle);
    let stand = || lock_ignoring_poison(&listen.0).shown[0].snapshot(now()).stand;
    assert_eq!(stand(), RunPosition::Warmup);
    control.stop();
    assert_eq!(stand(), RunPosition::Drain);
}
