//! What looks seem to say and do not.

use super::*;
use crate::QueueSummary;

/// The queue by looks at running and waiting, in an open loop or with this many users.
fn queue_of(looks: &[(f64, f64)], users: Option<u32>) -> (QueueSummary, Option<Severity>) {
    let scrapes = (0..).zip(looks).map(|(second, (running, waiting))| {
        let values = [(Signal::Running, *running), (Signal::Waiting, *waiting)];
        look(1000.0 * f64::from(second), 0, &values)
    });
    let records: Vec<_> = (0..90).map(|i| record(i, 100.0 * i as f64, &[10.0])).collect();
    let mut plan = plan(Some(looks.len() as u64), None, NO_WARMUP);
    if let Some(concurrency) = users {
        plan.load.mode =
            Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false };
    }
    let facts = RunFacts { system: sources(1), ..facts(RunState::Complete) };
    let samples = frames(scrapes.collect());
    let summary = analyze_run(&plan, facts, || records.iter().cloned(), &samples, []);
    let held_up = caveat(&summary, "queue_at_limit");
    (summary.server.unwrap().queue.unwrap(), held_up)
}

#[test]
fn a_limit_is_never_exceeded() {
    // Eight users without a limit: a request is on its way into the batch at one look in four.
    let mut looks = [(8.0, 0.0), (8.0, 0.0), (8.0, 0.0), (7.0, 1.0)].repeat(5);
    for users in [None, Some(8)] {
        let (queue, held_up) = queue_of(&looks, users);
        assert_eq!((queue.batch_limit, queue.at_limit_share, held_up), (None, None, None));
        assert_eq!((queue.waiting_max, queue.waiting_share), (1.0, 0.25));
    }
    // Without the looks at eight it is the users that set the seven.
    looks.retain(|(running, _)| *running < 8.0);
    assert_eq!(queue_of(&looks, Some(8)).0.batch_limit, None);
    assert_eq!(queue_of(&looks, None).0.batch_limit, Some(7.0));
    looks.push((7.0, 2.0));
    let (queue, held_up) = queue_of(&looks, Some(9));
    assert_eq!((queue.batch_limit, queue.held_up_share), (Some(7.0), Some(1.0)));
    assert_eq!(held_up, Some(Severity::Info));
}

#[test]
fn totals_of_several_servers_are_left_out() {
    let records: Vec<_> = (0..200).map(|i| record(i, 50.0 * i as f64, &[10.0, 10.0])).collect();
    // Two replicas in turn: each time that the larger total comes back, it counts again.
    let told = |several_from: usize, resets: u32| {
        let mut total = 0.0;
        let scrapes = (0..=10).map(|second: usize| {
            total += if second.is_multiple_of(2) { 500_000.0 } else { 1_000_000.0 };
            let mut scrape = look(1030.0 * second as f64, 0, &[(Signal::Running, 4.0)]);
            let reading = scrape.outcome.as_mut().unwrap();
            reading.resets = if second.is_multiple_of(2) { resets } else { 0 };
            reading.of_several = second >= several_from;
            if !reading.of_several {
                let total = SignalValue::Number(total);
                reading.values.insert(Signal::GenerationTokens, total);
            }
            scrape
        });
        analyzed((0, 10), &records, &frames(scrapes.collect()), sources(1))
    };
    let summary = told(5, 1);
    let server = summary.server.as_ref().unwrap();
    assert!(server.endpoints[0].several_servers && server.counters.is_empty());
    assert_eq!((&server.against_client, server.levels["running"].mean), (&None, 4.0));
    assert!(
        server.marks.is_empty() && server.timeline.iter().all(|p| p.generation_per_s.is_none())
    );
    assert_eq!(caveat(&summary, "several_servers"), Some(Severity::Warn));
    for code in ["server_shared", "server_counts_differ", "server_restarted"] {
        assert_eq!(caveat(&summary, code), None, "{code}");
    }
    // As long as several are not known, totals that began again are not compared with the client's.
    let summary = told(99, 1);
    assert_eq!(caveat(&summary, "server_restarted"), Some(Severity::Warn));
    assert_eq!(caveat(&summary, "several_servers"), None);
    assert_eq!(caveat(&summary, "server_shared"), None);
    assert_eq!(caveat(&told(99, 0), "server_shared"), Some(Severity::Warn));
}

#[test]
fn the_fullest_engine_counts() {
    use Signal::{KvUsage, KvUsageMax};
    // Eight engines on the first page, one of them full for this many looks; one on the second.
    let told = |full: i32| {
        let scrapes = (0..10).flat_map(|second| {
            let at = 1000.0 * f64::from(second);
            let fullest = if second < full { 1.0 } else { 0.5 };
            [look(at, 0, &[(KvUsage, 0.3), (KvUsageMax, fullest)]), look(at, 1, &[(KvUsage, 0.6)])]
        });
        let records: Vec<_> = (0..90).map(|i| record(i, 100.0 * i as f64, &[10.0])).collect();
        analyzed((0, 10), &records, &frames(scrapes.collect()), sources(2))
    };
    let summary = told(3);
    let server = summary.server.as_ref().unwrap();
    close(server.levels["kv_usage"].max, 0.45);
    let fullest = server.levels["kv_usage_max"];
    assert_eq!((fullest.min, fullest.max), (0.6, 1.0));
    let [mark] = server.marks.as_slice() else { panic!("{:?}", server.marks) };
    assert_eq!((mark.kind.as_str(), mark.start_s, mark.end_s), ("kv_pressure", 0.0, 2.0));
    assert_eq!(caveat(&summary, "kv_pressure"), Some(Severity::Info));
    // One look alone is a mark, and no caveat.
    let summary = told(1);
    assert_eq!(summary.server.as_ref().unwrap().marks.len(), 1);
    assert_eq!(caveat(&summary, "kv_pressure"), None);
}

#[test]
fn time_outside_the_server_is_of_our_requests() {
    let records: Vec<_> = (0..200).map(|i| record(i, 50.0 * i as f64, &[10.0, 10.0])).collect();
    // The client waits 99 ms from the send, the server counts 50 ms.
    let told = |generated: f64, resets: u32| {
        let tokens = |at: f64, n: f64| look(at, 0, &[(Signal::GenerationTokens, n)]);
        let mut scrapes = vec![
            tokens(0.0, 0.0),
            with(tokens(2_005.0, 120.0), Signal::Ttft, [10.0; 4], 0.5),
            with(tokens(8_005.0, 480.0), Signal::Ttft, [130.0; 4], 6.5),
            tokens(10_300.0, generated),
        ];
        scrapes[2].outcome.as_mut().unwrap().resets = resets;
        analyzed((0, 10), &records, &frames(scrapes), sources(1))
    };
    let summary = told(600.0, 0);
    let found = summary.caveats.iter().find(|one| one.code.name() == "gateway_time").unwrap();
    assert!(found.message.contains("49.0 ms are spent outside the server's own"), "{found:?}");
    for (generated, resets) in [(700.0, 0), (600.0, 1), (500.0, 1), (700.0, 1)] {
        let summary = told(generated, resets);
        assert_eq!(caveat(&summary, "gateway_time"), None, "{generated}");
        let is_shared = caveat(&summary, "server_shared").is_some();
        assert_eq!(is_shared, generated > 600.0 && resets == 0);
        assert_eq!(caveat(&summary, "server_counts_differ"), None);
    }
}
