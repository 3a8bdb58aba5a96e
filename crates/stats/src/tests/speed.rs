//! Ten million samples. A measurement, not a gate: `docs/design/012-intervals.md` has the figures.

use crate::sample::Wanted;
use goodput_model::random::{Domain, RandomStream};

use super::*;
use crate::Sample;
use crate::metrics::Metrics;
use crate::window::{Window, WindowKind};

const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// Seconds that something takes.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = goodput_clock::now();
    let result = work();
    println!("{what}: {:.2} s", (goodput_clock::now() - start).as_secs());
    result
}

#[test]
#[ignore = "a measurement: cargo test --release -p goodput-stats ten_million -- --ignored --nocapture"]
fn ten_million_samples() {
    let mut stream = RandomStream::new(1, Domain::Service, 0);
    let mut sample = Sample::default();
    for index in 0..10_000_000u64 {
        sample.push_in(stream.draw_log_normal(100.0, 0.5), (index / 500_000) as u8);
    }
    let metric =
        timed("ten million values", || sample.into_metric("ms", Wanted::new(&PERCENTILES)));
    assert!(metric.percentiles.values().all(|percentile| percentile.high.is_some()));
}

#[test]
#[ignore = "a measurement: cargo test --release -p goodput-stats ten_million -- --ignored --nocapture"]
fn ten_million_gaps() {
    for several in [false, true] {
        let mut stream = RandomStream::new(1, Domain::Service, 0);
        let window = Window { start: Nanos::ZERO, end: ms(1e8), kind: WindowKind::Time };
        let mut metrics = Metrics::new(window);
        let no_cuts = crate::cuts::Cuts::default();
        for index in 0..100_000u64 {
            let gaps: Vec<f64> = (0..100).map(|_| stream.draw_log_normal(20.0, 0.5)).collect();
            let mut record = record(index, index as f64 * 1e3, &gaps);
            // One chunk in ten of two tokens.
            for chunk in record.exchange.chunks.iter_mut().step_by(10).filter(|_| several) {
                chunk.tokens = Some(2);
            }
            metrics.add(&record, true, &no_cuts);
        }
        let what =
            if several { "ten million gaps, some of two tokens" } else { "ten million gaps" };
        let metrics = timed(what, || {
            let key = metrics.key_figures(None);
            metrics.finish(Wanted::new(&PERCENTILES), &key)
        });
        assert_eq!(metrics["itl"].n, 10_000_000);
    }
}

/// Everything about a run of half an hour: 1,000,000 requests of 100 chunks at 550 a second.
#[test]
#[ignore = "a minute, and only of use in a release build"]
fn a_million_requests() {
    let gaps = [10.0; 99];
    let records = || {
        (0..1_000_000u64).map(|index| {
            let mut record = record(index, index as f64 / 0.55, &gaps);
            record.exchange.stamps.first_token =
                Some(record.scheduled + ms(50.0 + (index % 97) as f64));
            record
        })
    };
    let mut plan = plan(Some(1818), None, NO_WARMUP);
    plan.measure.slo = Some("ttft < 120ms, tpot < 20ms, p99 ttft < 200ms".parse().unwrap());
    let facts = facts(RunState::Complete);
    let summary = timed("a million requests of a hundred chunks", || {
        analyze_run(&plan, facts, records, &[], std::iter::empty())
    });
    assert_eq!((summary.requests.ok, summary.metrics["itl"].n), (1_000_000, 99_000_000));
}
