//! Looks and requests written down by hand, and what follows from them.

mod doubts;

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_model::{
    Buckets, ErrorClass, Failure, FailureStage, GpuSample, HealthSample, LoadExtent, MetricsSource,
    RequestRecord, Scrape, ServerReading, Severity, Signal, SignalValue, SystemFacts,
};

use super::*;
use crate::tests::{NO_WARMUP, facts, ms, plan, record};
use crate::{BucketPercentile, Reconciled, RunFacts, RunState, Summary, TtftByQueue, analyze_run};

/// One answer of an endpoint.
fn look(at_ms: f64, endpoint: u32, values: &[(Signal, f64)]) -> Scrape {
    let values = values.iter().map(|(signal, value)| (*signal, SignalValue::Number(*value)));
    let reading = ServerReading { values: values.collect(), ..ServerReading::default() };
    Scrape { at: ms(at_ms), took: ms(4.0), endpoint, outcome: Ok(reading) }
}

fn with(mut scrape: Scrape, signal: Signal, cumulative: [f64; 4], sum: f64) -> Scrape {
    let bounds = vec![0.1, 0.2, 0.4, f64::INFINITY];
    let buckets = Buckets { bounds, cumulative: cumulative.to_vec(), sum, count: cumulative[3] };
    let reading = scrape.outcome.as_mut().unwrap();
    reading.values.insert(signal, SignalValue::Buckets(buckets));
    scrape
}

/// One look at the server a frame, and a healthy client.
fn frames(scrapes: Vec<Scrape>) -> Vec<HealthSample> {
    let frame = |scrape: Scrape| HealthSample {
        at: scrape.at,
        scrapes: vec![scrape],
        ..HealthSample::default()
    };
    scrapes.into_iter().map(frame).collect()
}

fn sources(n: usize) -> SystemFacts {
    let one = |n: usize| MetricsSource { url: format!("http://{n}"), engine: "vllm".to_owned() };
    SystemFacts { metrics: (0..n).map(one).collect(), ..SystemFacts::default() }
}

/// This many measured seconds after as many of warm-up.
fn analyzed(
    (warmup, seconds): (u64, u64),
    records: &[RequestRecord],
    samples: &[HealthSample],
    system: SystemFacts,
) -> Summary {
    let warmup =
        if warmup == 0 { NO_WARMUP } else { LoadExtent::Time(Duration::from_secs(warmup)) };
    let facts = RunFacts { system, ..facts(RunState::Complete) };
    analyze_run(&plan(Some(seconds), None, warmup), facts, || records.iter().cloned(), samples, [])
}

fn caveat(summary: &Summary, code: &str) -> Option<Severity> {
    summary.caveats.iter().find(|caveat| caveat.code.name() == code).map(|caveat| caveat.severity)
}

fn close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

/// 5 requests/s for 10 s, then 20: the second replica is ready 7 s after that, and seen by the scrape
/// after it; the third 2 s later. In the end one of them goes.
#[test]
fn replicas_have_their_instants_and_their_lag_behind_the_load() {
    let replicas = |at_s: u64| match at_s {
        0..17 => 1.0,
        19..25 => 3.0,
        _ => 2.0,
    };
    let scrape = |at_s: u64| look(at_s as f64 * 1e3, 0, &[(Signal::Replicas, replicas(at_s))]);
    let samples = frames((0..30).map(scrape).collect());
    let shape = "10s@5,20s@20".parse().unwrap();
    let mut plan = plan(None, None, NO_WARMUP);
    plan.load.mode = Mode::Shaped {
        shape,
        arrivals: goodput_model::ArrivalProcess::Poisson,
        max_concurrency: None,
    };
    let facts = RunFacts { system: sources(1), ..facts(RunState::Complete) };
    let records: Vec<_> = (0..29).map(|n| record(n, n as f64 * 1e3, &[10.0; 3])).collect();
    let summary = analyze_run(&plan, facts, || records.iter().cloned(), &samples, []);
    let server = summary.server.unwrap();
    let scaling = server.scaling.unwrap();
    assert_eq!((scaling.first, scaling.most, scaling.last), (1.0, 3.0, 2.0));
    let seen = |change: &crate::ReplicaChange| {
        (change.after_s, change.at_s, change.to, change.load_rise_s, change.lag_s)
    };
    let expected = [
        (16.0, 17.0, 2.0, Some(10.0), Some(7.0)),
        (18.0, 19.0, 3.0, Some(10.0), Some(9.0)),
        (24.0, 25.0, 2.0, None, None),
    ];
    assert_eq!(scaling.changes.iter().map(seen).collect::<Vec<_>>(), expected);
    assert_eq!(server.levels["replicas"].max, 3.0);
}

#[test]
fn a_load_rises_where_a_stage_is_higher_or_climbs() {
    let rises = |shape: &str| {
        scaling::load_rises(&Mode::Shaped {
            shape: shape.parse().unwrap(),
            arrivals: goodput_model::ArrivalProcess::Poisson,
            max_concurrency: None,
        })
    };
    assert_eq!(rises("10s@5,10s@2,5s@2..8,5s@8,5s@9"), [0.0, 20.0, 30.0]);
    assert_eq!(rises("sine:5:2:1m"), [0.0; 0]);
}

#[test]
fn figures_are_of_the_looks_inside_the_window() {
    use Signal::{
        GenerationTokens, KvUsage, Preemptions, PrefixHits, PrefixQueries, Running, Waiting,
    };
    // Window from 2 s to 6 s: what the other looks say is another matter.
    let seconds = [0, 1, 2, 3, 4, 5, 6];
    let running = [0.0, 99.0, 4.0, 8.0, 8.0, 8.0, 99.0];
    let waiting = [0.0, 99.0, 0.0, 2.0, 5.0, 1.0, 99.0];
    let kv = [0.0, 0.1, 0.5, 0.96, 0.98, 0.5, 0.1];
    let tokens = [0.0, 50.0, 100.0, 150.0, 300.0, 400.0, 900.0];
    let mut scrapes: Vec<Scrape> = seconds
        .map(|at| {
            let values = [
                (Running, running[at]),
                (Waiting, waiting[at]),
                (KvUsage, kv[at]),
                (GenerationTokens, tokens[at]),
                (Preemptions, if at < 4 { 0.0 } else { 1.0 }),
                (PrefixQueries, 100.0 * at as f64),
            ];
            look(1000.0 * at as f64, 0, &values)
        })
        .into();
    for (at, cumulative, sum) in [(2, [5.0; 4], 0.25), (5, [5.0, 13.0, 17.0, 25.0], 6.25)] {
        scrapes[at] = with(scrapes[at].clone(), Signal::Ttft, cumulative, sum);
    }
    // There since the fifth look only: it counts from zero.
    scrapes[5] = with(scrapes[5].clone(), Signal::QueueTime, [10.0, 20.0, 20.0, 20.0], 3.0);
    let reading = scrapes[5].outcome.as_mut().unwrap();
    reading.values.insert(PrefixHits, SignalValue::Number(75.0));
    reading.values.insert(Signal::BatchSize, SignalValue::Number(f64::NAN));
    let records: Vec<_> = (0..60).map(|i| record(i, 100.0 * i as f64, &[10.0])).collect();
    let summary = analyzed((2, 4), &records, &frames(scrapes), sources(1));
    let server = summary.server.as_ref().unwrap();

    let level = server.levels["running"];
    assert_eq!((level.n, level.min, level.p50, level.max), (4, 4.0, 8.0, 8.0));
    close(level.mean, 7.0);
    assert!(!server.levels.contains_key("batch_size"));
    let tokens = server.counters["generation_tokens"];
    assert_eq!((tokens.total, tokens.per_s), (300.0, 100.0));
    assert_eq!(server.prefix_hit_rate_counted, Some(0.25));
    let ttft = &server.histograms["ttft"];
    assert_eq!(ttft.n, 20.0);
    close(ttft.mean, 300.0);
    // Rank 10 of 20 is the second of four in its bucket.
    let p50 = ttft.percentiles["p50"];
    close(p50.value.unwrap(), 300.0);
    assert_eq!((p50.low, p50.high), (200.0, Some(400.0)));
    let p90 = BucketPercentile { value: None, low: 400.0, high: None };
    assert_eq!(ttft.percentiles["p90"], p90);
    let queue = server.queue.as_ref().unwrap();
    assert_eq!((queue.waiting_max, queue.waiting_max_at_s, queue.waiting_share), (5.0, 4.0, 0.75));
    assert_eq!((queue.batch_limit, queue.held_up_share), (Some(8.0), Some(0.75)));
    close(queue.wait_mean_ms.unwrap(), 150.0);
    close(queue.wait_share_of_ttft.unwrap(), 0.5);
    let endpoint = &server.endpoints[0];
    assert_eq!((endpoint.answers, endpoint.looks, endpoint.failures), (7, 4, 0));
    assert_eq!((endpoint.longest_gap_s, endpoint.took_ms.mean), (1.0, 4.0));

    let marks = |kind: &str| {
        let of_kind = server.marks.iter().filter(|mark| mark.kind == kind);
        of_kind.map(|mark| (mark.start_s, mark.end_s, mark.value)).collect::<Vec<_>>()
    };
    assert_eq!(marks("kv_pressure"), [(3.0, 4.0, 0.98)]);
    // Gone for a look only.
    assert_eq!(marks("queue"), [(1.0, 6.0, 99.0)]);
    assert_eq!(marks("preemptions"), [(3.0, 4.0, 1.0)]);
    assert_eq!(caveat(&summary, "queue_at_limit"), Some(Severity::Info));
    assert_eq!(caveat(&summary, "kv_pressure"), Some(Severity::Info));
    // One of sixty measured requests.
    assert_eq!(caveat(&summary, "preemptions"), Some(Severity::Warn));
    assert_eq!(caveat(&summary, "metrics_lost"), None);

    let text = serde_json::to_string(server).unwrap();
    let read: ServerSummary = serde_json::from_str(&text).unwrap();
    assert_eq!((&read.levels, &read.queue), (&server.levels, &server.queue));
}

/// Two hundred answers of three tokens, in ten seconds; the server counts `generated` in all.
fn counted(records: &[RequestRecord], generated: f64) -> Summary {
    let totals =
        |output, prompt| [(Signal::GenerationTokens, output), (Signal::PromptTokens, prompt)];
    let scrapes = vec![
        look(0.0, 0, &totals(0.0, 0.0)),
        with(look(2_005.0, 0, &totals(120.0, 1_600.0)), Signal::Ttft, [10.0; 4], 1.0),
        with(look(8_005.0, 0, &totals(480.0, 6_400.0)), Signal::Ttft, [130.0; 4], 11.8),
        look(10_300.0, 0, &totals(generated, 8_000.0)),
    ];
    analyzed((0, 10), records, &frames(scrapes), sources(1))
}

#[test]
fn client_and_server_are_reconciled() {
    let mut records: Vec<_> = (0..200).map(|i| record(i, 50.0 * i as f64, &[10.0, 10.0])).collect();
    let summary = counted(&records, 600.0);
    let against = summary.server.as_ref().unwrap().against_client.as_ref().unwrap();
    let same = |n: f64| Reconciled { client: n, server: n, difference: 0.0, share: Some(0.0) };
    assert_eq!(
        (against.output_tokens, against.prompt_tokens),
        (Some(same(600.0)), Some(same(8_000.0)))
    );
    assert!(against.covers_run && against.unseen_tokens == Some(0.0));
    // From the look before the first request to that at 8.005 s: at 8 s a request is at its
    // first token. 158 have ended, one has one token; the last look lies outside the window.
    let rate = against.output_tokens_per_s.unwrap();
    close(rate.client, (158.0 * 3.0 + 1.0) / 8.005);
    close(rate.server, 480.0 / 8.005);
    let ttft = against.ttft_mean_ms.unwrap();
    close(ttft.client, 99.0);
    close(ttft.server, 11.8 / 130.0 * 1e3);
    assert_eq!(against.e2e_mean_ms, None);
    for code in ["server_shared", "server_counts_differ", "gateway_time", "server_restarted"] {
        assert_eq!(caveat(&summary, code), None, "{code}");
    }

    assert_eq!(caveat(&counted(&records, 700.0), "server_shared"), Some(Severity::Warn));
    assert_eq!(caveat(&counted(&records, 649.0), "server_shared"), None);
    assert_eq!(caveat(&counted(&records, 596.0), "server_counts_differ"), Some(Severity::Warn));
    assert_eq!(caveat(&counted(&records, 598.0), "server_counts_differ"), None);

    // One answer that was cut after its second token, of a hundred that it was to have.
    let cut = records.last_mut().unwrap();
    cut.planned.output_tokens = Some(100);
    cut.exchange.chunks.pop();
    cut.exchange.output_tokens = None;
    cut.exchange.failure = Some(Failure {
        class: ErrorClass::Timeout,
        stage: FailureStage::Stream,
        message: String::new(),
    });
    let summary = counted(&records, 690.0);
    let against = summary.server.as_ref().unwrap().against_client.as_ref().unwrap();
    assert_eq!(against.output_tokens.unwrap().client, 599.0);
    assert_eq!(against.unseen_tokens, Some(98.0));
    assert_eq!(caveat(&summary, "server_shared"), Some(Severity::Info));
    assert_eq!(caveat(&counted(&records, 790.0), "server_shared"), Some(Severity::Warn));

    // Without a look after the last answer totals are those between the looks that there are.
    records.push(record(200, 10_250.0, &[10.0]));
    let summary = counted(&records, 599.0);
    let against = summary.server.as_ref().unwrap().against_client.as_ref().unwrap();
    assert!(!against.covers_run);
    assert_eq!(against.output_tokens.unwrap().difference, 0.0);
}

#[test]
fn endpoints_add_up_and_failures_are_said() {
    use Signal::{GenerationTokens, KvUsage, Running};
    let of = |at: f64, endpoint: u32, running: f64, kv: f64, tokens: f64| {
        look(at, endpoint, &[(Running, running), (KvUsage, kv), (GenerationTokens, tokens)])
    };
    let failed =
        |at: f64| Scrape { outcome: Err("connection refused".to_owned()), ..look(at, 1, &[]) };
    // The second is asked a little later, fails at 2 s and is silent from 4 s on: its last look is
    // carried until 6 s.
    let mut scrapes = Vec::new();
    for second in 0..=9 {
        let (at, n) = (1000.0 * f64::from(second), f64::from(second));
        scrapes.push(of(at, 0, n, 0.2, 10.0 * n));
        match second {
            0 | 1 | 3 => scrapes.push(of(at + 30.0, 1, 100.0, 0.6, 20.0 * n)),
            2 | 4..=9 => scrapes.push(failed(at + 30.0)),
            _ => {}
        }
    }
    // Eight short ones at the first, two long ones and a bound less at the second.
    scrapes[0] = with(scrapes[0].clone(), Signal::E2e, [0.0; 4], 0.0);
    let end = scrapes.len() - 2;
    scrapes[end] = with(scrapes[end].clone(), Signal::E2e, [8.0; 4], 0.4);
    scrapes[7] = with(scrapes[7].clone(), Signal::E2e, [0.0, 0.0, 2.0, 2.0], 0.6);
    let values = &mut scrapes[7].outcome.as_mut().unwrap().values;
    let Some(SignalValue::Buckets(buckets)) = values.get_mut(&Signal::E2e) else { panic!() };
    (buckets.bounds, buckets.cumulative) = (vec![0.1, 0.4, f64::INFINITY], vec![0.0, 2.0, 2.0]);
    assert_eq!(scrapes[7].endpoint, 1);
    scrapes[7].outcome.as_mut().unwrap().resets = 40;
    let records: Vec<_> = (0..90).map(|i| record(i, 100.0 * i as f64, &[10.0])).collect();
    let reset = analyzed((0, 10), &records, &frames(scrapes), sources(2));
    let server = reset.server.as_ref().unwrap();
    // Sums at 0 to 6 s: 100 to 106. Nothing is known of both after that.
    let running = server.levels["running"];
    assert_eq!((running.n, running.min, running.mean, running.max), (7, 100.0, 103.0, 106.0));
    // Of shares the mean of those that tell: of both for seven looks, of one for three.
    close(server.levels["kv_usage"].mean, (7.0 * 0.4 + 3.0 * 0.2) / 10.0);
    // Each over the time between its own looks.
    let tokens = server.counters["generation_tokens"];
    close(tokens.total, 90.0 + 60.0);
    close(tokens.per_s, 90.0 / 9.0 + 60.0 / 3.0);
    let whole = &server.histograms["e2e"];
    assert_eq!(whole.n, 10.0);
    close(whole.mean, 100.0);
    let (p50, p90) = (whole.percentiles["p50"], whole.percentiles["p90"]);
    close(p50.value.unwrap(), 100.0 * 5.0 / 8.0);
    assert_eq!((p50.low, p50.high, p90.low, p90.high), (0.0, Some(100.0), 100.0, Some(400.0)));
    close(p90.value.unwrap(), 250.0);
    let [first, second] = server.endpoints.as_slice() else { panic!() };
    assert_eq!((first.answers, first.failures, second.answers, second.failures), (10, 0, 3, 7));
    assert_eq!((second.resets, second.last_failure.as_deref()), (40, Some("connection refused")));
    close(second.longest_gap_s, 10.0 - 3.03);
    assert_eq!((first.levels["running"].max, second.levels["running"].max), (9.0, 100.0));
    assert_eq!(second.counters["generation_tokens"].total, 60.0);
    let silent: Vec<_> = server.marks.iter().filter(|mark| mark.kind == "no_answer").collect();
    assert_eq!(silent.iter().map(|mark| mark.value).collect::<Vec<_>>(), [1.0, 6.0]);
    assert_eq!(caveat(&reset, "server_restarted"), Some(Severity::Warn));
    let lost = reset.caveats.iter().find(|one| one.code.name() == "metrics_lost").unwrap();
    assert!(lost.message.contains("7 of 10") && lost.message.contains("refused"), "{lost:?}");
}

/// Due at an instant, sent 1 ms later, and so long to the first token.
fn waited(index: u64, due_ms: f64, ttft_ms: f64) -> RequestRecord {
    let mut record = record(index, due_ms, &[]);
    let at = record.scheduled + ms(ttft_ms);
    record.exchange.chunks[0].at = at;
    let stamps = &mut record.exchange.stamps;
    for stamp in [&mut stamps.first_byte, &mut stamps.first_token, &mut stamps.last_token] {
        *stamp = Some(at);
    }
    (stamps.done, stamps.ended) = (Some(at), at);
    record
}

fn bands(found: &TtftByQueue) -> Vec<(f64, f64, u64, Option<f64>)> {
    found.bands.iter().map(|band| (band.from, band.to, band.n, band.ttft_p50_ms)).collect()
}

#[test]
fn without_a_page_the_queue_is_inferred() {
    // Sent at 1, 11, 21 and 106 ms; first tokens at 100, 120, 150 and 225 ms.
    let due = [(0.0, 100.0), (10.0, 110.0), (20.0, 130.0), (105.0, 120.0)];
    let mut records: Vec<_> = (0..).zip(due).map(|(i, (due, ttft))| waited(i, due, ttft)).collect();
    let summary = analyzed((0, 1), &records, &[], SystemFacts::default());
    let server = summary.server.unwrap();
    assert!(server.endpoints.is_empty() && server.levels.is_empty());
    let found = server.ttft_by_queue.unwrap();
    assert_eq!(found.source, "inferred");
    // They found 0, 1, 2 and (one of the three had its token) 2.
    assert_eq!(bands(&found), [(0.0, 0.0, 1, Some(100.0)), (1.0, 2.0, 3, Some(120.0))]);
    // Ranks 1, 2, 3.5, 3.5 against 1, 2, 4, 3.
    close(found.rank_correlation.unwrap(), 4.5 / 22.5f64.sqrt());

    // Those that ran into the time limit waited longest.
    for record in &mut records[1..3] {
        let class = ErrorClass::Timeout;
        record.exchange.failure =
            Some(Failure { class, stage: FailureStage::Headers, message: String::new() });
        record.exchange.chunks.clear();
        record.exchange.stamps.first_token = None;
    }
    let summary = analyzed((0, 1), &records, &[], SystemFacts::default());
    let found = summary.server.unwrap().ttft_by_queue.unwrap();
    assert_eq!(bands(&found)[1], (1.0, 2.0, 3, None));

    let apart: Vec<_> = (0..5).map(|i| waited(i, 200.0 * i as f64, 100.0)).collect();
    assert_eq!(analyzed((0, 1), &apart, &[], SystemFacts::default()).server, None);
}

#[test]
fn ttft_by_the_queue_that_the_server_tells() {
    // The queue grows by three a second; ten requests a second, none of which waits for another.
    let grows = |at: u64| look(1000.0 * at as f64, 0, &[(Signal::Waiting, 3.0 * at as f64)]);
    let mut scrapes: Vec<_> = (0..=20).map(grows).collect();
    // Without looks from 16 s to 19 s: two seconds after the last one it is too old.
    scrapes.drain(16..20);
    let ttft = |i: u64| 20.0 + (i / 10) as f64;
    let records: Vec<_> = (0..200).map(|i| waited(i, 100.0 * i as f64, ttft(i))).collect();
    let summary = analyzed((0, 20), &records, &frames(scrapes.clone()), sources(1));
    let found = summary.server.unwrap().ttft_by_queue.unwrap();
    assert_eq!(found.source, "server");
    // Second 0: none waits. 1: three. 2 and 3: 6, 9. 4 to 6: 12 to 18. 7 to 15: 21 to 45, and of
    // the next seconds those that come within 2 s of the look at 15 s.
    let expected = [
        (0.0, 0.0, 10, Some(20.0)),
        (3.0, 5.0, 10, Some(21.0)),
        (6.0, 10.0, 20, Some(22.0)),
        (11.0, 20.0, 30, Some(25.0)),
        (21.0, 50.0, 100, Some(31.0)),
    ];
    assert_eq!(bands(&found), expected);
    assert_eq!(found.bands[3].ttft_p99_ms, None);
    assert_eq!(found.bands[4].ttft_p99_ms, Some(36.0));
    assert!(found.rank_correlation.unwrap() > 0.99);

    // A queue that never changed tells nothing: it is inferred that no request waited.
    for scrape in &mut scrapes {
        let reading = scrape.outcome.as_mut().unwrap();
        reading.values.insert(Signal::Waiting, SignalValue::Number(0.0));
    }
    let summary = analyzed((0, 20), &records, &frames(scrapes), sources(1));
    let found = summary.server.unwrap().ttft_by_queue.unwrap();
    assert_eq!((found.source.as_str(), bands(&found).len()), ("inferred", 1));
}

#[test]
fn a_long_run_is_thinned() {
    use Signal::{GenerationTokens, KvUsage, Waiting};
    // 300 looks: three in each point. Every other look some wait, and the cache is full; one GPU
    // draws 100 W, one 200 W.
    let mut samples = frames(
        (0..300u32)
            .map(|at| {
                let waiting = if at % 2 == 0 { f64::from(at) } else { 0.0 };
                let full = if at % 2 == 0 { 1.0 } else { 0.5 };
                let tokens = (GenerationTokens, 50.0 * f64::from(at));
                let values = [(Waiting, waiting), (KvUsage, full), tokens];
                look(1000.0 * f64::from(at), 0, &values)
            })
            .collect(),
    );
    for sample in &mut samples {
        let gpu = |gpu: u32| GpuSample {
            at: sample.at,
            gpu,
            power_w: Some(100.0 * f64::from(gpu + 1)),
            ..GpuSample::default()
        };
        sample.gpus = vec![gpu(0), gpu(1)];
    }
    let records: Vec<_> = (0..100).map(|i| record(i, 3000.0 * i as f64, &[10.0])).collect();
    let server = analyzed((0, 300), &records, &samples, sources(1)).server.unwrap();
    assert_eq!(server.timeline.len(), 100);
    let point = server.timeline[1];
    assert_eq!((point.at_s, point.waiting), (4.0, Some(4.0)));
    assert_eq!((point.generation_per_s, point.power_w), (Some(50.0), Some(300.0)));
    assert_eq!(server.timeline[0].generation_per_s, None);
    let (queue, full): (Vec<_>, Vec<_>) =
        server.marks.into_iter().partition(|mark| mark.kind == "queue");
    assert_eq!((queue.len(), queue[0].start_s, queue[0].end_s), (1, 2.0, 298.0));
    // 150 looks at a full cache, none next to another: what is closer than a 120th is one mark.
    assert!(full.len() < 120, "{}", full.len());
    assert_eq!((full[0].start_s, full.last().unwrap().end_s), (0.0, 298.0));
}

#[test]
fn one_look_in_the_window_makes_no_rate() {
    let tokens = |at: f64, n: f64| look(at, 0, &[(Signal::GenerationTokens, n)]);
    // Looks before the first request are all at zero: the last of them is the first that counts.
    let scrapes = vec![tokens(0.0, 0.0), tokens(0.0, 500.0), tokens(2_500.0, 520.0)];
    let records: Vec<_> = (0..10).map(|i| record(i, 200.0 * i as f64, &[10.0])).collect();
    let summary = analyzed((0, 2), &records, &frames(scrapes), sources(1));
    let server = summary.server.as_ref().unwrap();
    assert_eq!((&server.counters, &server.histograms), (&BTreeMap::new(), &BTreeMap::new()));
    let against = server.against_client.as_ref().unwrap();
    assert_eq!(against.output_tokens.unwrap().difference, 0.0);
    assert_eq!(against.output_tokens_per_s, None);
    assert_eq!((server.endpoints[0].looks, server.endpoints[0].longest_gap_s), (1, 2.0));
    let lost = summary.caveats.iter().find(|one| one.code.name() == "metrics_lost").unwrap();
    assert!(lost.message.contains("inside the window: 1;"), "{lost:?}");
}
