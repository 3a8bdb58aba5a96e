//! Series of requests whose every instant is written down here.

use goodput_model::FailureStage;
use goodput_testkit::{RecordBuilder, failure};
use proptest::prelude::*;

use super::*;
use crate::flow::arrived_tokens;
use crate::window::{Window, WindowKind};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Due and sent at one instant, with chunks at these.
fn record(due: u64, chunks: &[u64]) -> RequestRecord {
    RecordBuilder::new(ms(due)).tokens(chunks.iter().map(|at| ms(*at))).build()
}

fn failed(due: u64, ended: u64, class: ErrorClass) -> RequestRecord {
    let mut record = record(due, &[]);
    record.exchange.stamps.ended = ms(ended);
    record.exchange.output_tokens = None;
    record.exchange.failure = Some(failure(class, FailureStage::Headers));
    record
}

fn tally(records: &[RequestRecord]) -> SeriesTally {
    let mut tally = SeriesTally::default();
    for record in records {
        tally.add(record);
    }
    tally
}

#[test]
fn bins_of_a_second_or_a_sixtieth() {
    let over = |from: u64, to: u64| {
        let series = tally(&[]).series_between(ms(from), ms(to));
        (series.bin, series.len())
    };
    assert_eq!(over(0, 60_000), (ms(1000), 60));
    assert_eq!(over(5_000, 125_900), (ms(1000), 120));
    assert_eq!(over(0, 30_000), (ms(500), 60));
    assert_eq!(over(0, 3_050), (ms(100), 30));
    assert_eq!(over(0, 99).1, 0);
    assert_eq!(over(9, 3).1, 0);
    // A day and more stays within bounds.
    assert_eq!(tally(&[]).series_between(Nanos::ZERO, Nanos(u64::MAX)).len(), 100_000);
}

#[test]
fn each_series_by_hand() {
    // In flight 500..2500, 1000..1500 and 200..(beyond the end).
    let records =
        [record(500, &[800, 1600, 2500]), record(1000, &[1100, 1500]), record(200, &[700, 61_000])];
    let series = tally(&records).series_between(ms(0), ms(60_000));
    assert_eq!(series.in_flight[..4], [1.3, 2.5, 1.5, 1.0]);
    assert_eq!(series.tokens_per_s[..4], [2.0, 3.0, 1.0, 0.0]);
    assert_eq!(
        (series.arrivals[..3].to_vec(), series.completions[..4].to_vec()),
        (vec![2, 1, 0], vec![0, 1, 1, 0])
    );
    // Of 300 and 500 ms the middle; then 100 ms; then held.
    assert_eq!(series.ttft.values[..4], [400.0, 100.0, 100.0, 100.0]);
    assert_eq!((series.ttft.counts[..3].to_vec(), series.ttft.filled_bins()), (vec![2, 1, 0], 2));
    // (2500 - 800) / 2 and 60,300 / 1; then 400 / 1.
    assert_eq!(series.tpot.values[..2], [f64::midpoint(850.0, 60_300.0), 400.0]);
    assert_eq!(series.seconds(), 60.0);
}

#[test]
fn the_first_bins_hold_the_first_value() {
    let series = tally(&[record(2_500, &[2_600, 2_700])]).series_between(ms(0), ms(60_000));
    assert_eq!(series.ttft.values, [100.0; 60]);
    assert_eq!(series.ttft.filled_bins(), 1);
    let empty = tally(&[]).series_between(ms(0), ms(60_000));
    assert_eq!((empty.ttft.values.len(), empty.in_flight.len()), (0, 60));
}

#[test]
fn failures() {
    let mut begun = record(5_000, &[5_500, 6_000, 6_500]);
    begun.exchange.stamps.ended = ms(15_500);
    begun.exchange.failure = failed(0, 0, ErrorClass::Timeout).exchange.failure;
    let records = [
        failed(1_000, 11_000, ErrorClass::Timeout),
        failed(2_000, 2_001, ErrorClass::Http(429)),
        failed(3_000, 3_001, ErrorClass::Http(503)),
        failed(4_000, 4_001, ErrorClass::Http(500)),
        begun,
    ];
    let series = tally(&records).series_between(ms(0), ms(60_000));
    // A time limit is a wait as long; another failure is none.
    assert_eq!(
        (series.ttft.values[1], series.ttft.values[4], series.ttft.values[5]),
        (10_000.0, 10_000.0, 500.0)
    );
    assert_eq!(series.ttft.filled_bins(), 2);
    // It took ten seconds for the two tokens after the first.
    assert_eq!((series.tpot.values[5], series.tpot.filled_bins()), (5_000.0, 1));
    assert_eq!(series.refused[..5], [0, 0, 1, 1, 0]);
    assert_eq!(series.completions.iter().sum::<u32>(), 5);
}

#[test]
fn coarser_bins() {
    let records =
        [record(500, &[600, 700]), record(1_200, &[1_500, 1_600]), record(1_300, &[1_600, 1_700])];
    let series = tally(&records).series_between(ms(0), ms(61_000)).merge_bins(2);
    assert_eq!((series.bin, series.len()), (ms(2_000), 30));
    assert_eq!(series.arrivals[0], 3);
    assert_eq!(series.tokens_per_s[0], 3.0);
    // One of 100 ms and two of 300 ms.
    assert!((series.ttft.values[0] - 700.0 / 3.0).abs() < 1e-4);
    assert_eq!((series.ttft.counts[0], series.ttft.values.len()), (3, 30));
}

proptest! {
    /// Against the integral, bin by bin, and against the tokens that the throughput counts.
    #[test]
    fn nothing_is_lost(
        starts in prop::collection::vec((0u64..8_000, 1u64..9_000, 1usize..6), 1..30),
        from in 0u64..40,
        stretch in 10u64..90,
    ) {
        let records: Vec<_> = starts.iter().map(|(due, length, chunks)| {
            let at: Vec<u64> = (1..=*chunks as u64).map(|k| due + length * k / *chunks as u64).collect();
            record(*due, &at)
        }).collect();
        let (from, to) = (ms(from * 100), ms((from + stretch) * 100));
        let series = tally(&records).series_between(from, to);
        let end = from + multiply_nanos(series.bin, series.len() as u64);
        let window = Window { start: from, end, kind: WindowKind::Time };
        for (index, average) in series.in_flight.iter().enumerate() {
            let begin = from + multiply_nanos(series.bin, index as u64);
            let bin = Window { start: begin, end: begin + series.bin, kind: WindowKind::Time };
            let spent: u64 = records.iter()
                .map(|record| bin.overlap(record.scheduled, record.end()).0).sum();
            prop_assert!((average - spent as f64 / series.bin.0 as f64).abs() < 1e-9);
        }
        let all: f64 = series.tokens_per_s.iter().sum::<f64>() * series.bin.as_secs();
        let expected: f64 = records.iter().map(|record| {
            arrived_tokens(record, record.exchange.output_tokens.map(|count| count.n), window)
        }).sum();
        // At the end of a span that is not a multiple of 100 ms, a grain is divided.
        let at_edge: f64 = records.iter().map(|record| {
            let edge = Window { start: Nanos(end.0 / GRAIN.0 * GRAIN.0), end: Nanos(end.0 / GRAIN.0 * GRAIN.0) + GRAIN, kind: WindowKind::Time };
            arrived_tokens(record, None, edge)
        }).sum();
        prop_assert!((all - expected).abs() <= at_edge + 1e-9, "{all} {expected} {at_edge}");
    }
}

/// At the end of a run all are cut off at once: the latest waited the shortest time that was seen, and
/// no less than those before it.
#[test]
fn what_was_cut_off_waited_no_less_than_those_before() {
    let answered = (0..60u64).map(|s| record(1000 * s, &[1000 * s + 100 + 50 * s]));
    let cut = (60..90u64).map(|s| failed(1000 * s, 90_000, ErrorClass::CutOff));
    let series = tally(&answered.chain(cut).collect::<Vec<_>>()).series_between(ms(0), ms(90_000));
    let waits = &series.ttft.values;
    assert_eq!(waits[59], 3050.0);
    assert!(waits[60..].iter().all(|wait| *wait >= 3050.0), "{waits:?}");
    assert_eq!(waits[60], 30_000.0);
}
