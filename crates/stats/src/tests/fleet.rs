//! A shard is judged as the part that it is, and a merged run by its clients.

use goodput_model::{Shard, ShardFacts, ShardPart};

use super::*;

fn shard(index: u32, of: u32) -> RunFacts {
    let shard = Shard::new(index, of).unwrap();
    let facts_of = ShardFacts { shard, fleet: None, clock: None };
    RunFacts { shard: Some(facts_of), ..facts(RunState::Complete) }
}

/// A merged run of this many clients, of which these left no record.
fn merged(of: u32, gone: &[u32]) -> RunFacts {
    let part = |index: u32| {
        let missing = ShardPart::missing(Shard::new(index, of).unwrap(), None);
        let is_there = !gone.contains(&index);
        ShardPart { is_there, is_whole: is_there, ..missing }
    };
    RunFacts { shards: (0..of).map(part).collect(), ..facts(RunState::Complete) }
}

fn severity(summary: &Summary, code: &str) -> Option<Severity> {
    let found = summary.caveats.iter().find(|caveat| caveat.code.name() == code)?;
    Some(found.severity)
}

/// Two users of a closed loop, each always at work, for a minute.
fn two_users() -> Vec<RequestRecord> {
    (0..400).map(|i| record(i, (i / 2) as f64 * 300.0, &[10.0; 20])).collect()
}

#[test]
fn a_shard_of_a_closed_loop_has_its_share_of_the_users() {
    let mut plan = plan(Some(60), None, LoadExtent::Time(Duration::ZERO));
    plan.load.mode =
        Mode::Closed { concurrency: 8, think_time: Duration::ZERO, pause_first: false };
    let records = two_users();
    let analyzed = |run| analyze_run(&plan, run, || records.iter().cloned(), &[], []);
    let part = analyzed(shard(3, 4));
    assert_eq!(part.load.concurrency, Some(2));
    assert_eq!(severity(&part, "client_starved"), None);
    // The same of a whole run are six users who did nothing.
    let whole = analyzed(facts(RunState::Complete));
    assert_eq!(whole.load.concurrency, Some(8));
    assert_eq!(severity(&whole, "client_starved"), Some(Severity::Void));
    // Of a merged run those that are there had two; the plan still has eight.
    let left = analyzed(merged(4, &[0, 1, 2]));
    assert_eq!(left.load.concurrency, Some(8));
    let said = left.caveats.iter().find(|caveat| caveat.code.name() == "shard_missing").unwrap();
    assert!(said.message.contains("(ranks 0–2): 75.0 % of the planned load, 6 of 8 users,"));
}

#[test]
fn a_shard_that_sent_its_share_of_the_number_ended_by_it() {
    let plan = plan(Some(100), Some(600), LoadExtent::Time(Duration::ZERO));
    // Every second of 600 requests, ten a second in all.
    let records: Vec<_> = (0..300).map(|i| record(2 * i, i as f64 * 200.0, &[10.0; 20])).collect();
    let analyzed = |run| analyze_run(&plan, run, || records.iter().cloned(), &[], []);
    let part = analyzed(shard(0, 2));
    assert_eq!(part.window.end_s, 59.8);
    assert_eq!(part.load.offered_rps, Some(5.0));
    // A whole run with so few would have gone on to its end.
    assert_eq!(analyzed(facts(RunState::Complete)).window.end_s, 100.0);
    let left = analyzed(merged(2, &[1]));
    assert_eq!((left.window.end_s, left.load.offered_rps), (59.8, Some(10.0)));
}

#[test]
fn what_was_promised_of_all_is_not_for_one_to_keep() {
    let mut plan = plan(Some(60), None, LoadExtent::Time(Duration::ZERO));
    plan.measure.slo = Some("rps > 8, p50 ttft < 500ms".parse().unwrap());
    let records: Vec<_> = (0..300).map(|i| record(i, i as f64 * 200.0, &[10.0; 20])).collect();
    let analyzed = |run| analyze_run(&plan, run, || records.iter().cloned(), &[], []).slo.unwrap();
    assert_eq!(analyzed(facts(RunState::Complete)).state, crate::SloState::Missed);
    let part = analyzed(shard(0, 2));
    assert_eq!((part.slo.as_str(), part.state), ("p50 ttft < 500ms", crate::SloState::Met));
}

/// Every fourth arrival of a Poisson process is none.
#[test]
fn only_a_whole_schedule_is_tested_for_its_gaps() {
    let mut plan = plan(Some(60), None, LoadExtent::Time(Duration::ZERO));
    let arrivals = ArrivalProcess::Poisson;
    plan.load.mode = Mode::Open { rate: Rate::PerSecond(10.0), arrivals, max_concurrency: None };
    let records: Vec<_> = (0..150).map(|i| record(i, i as f64 * 400.0, &[10.0; 20])).collect();
    let analyzed = |run| analyze_run(&plan, run, || records.iter().cloned(), &[], []);
    for (run, is_tested) in [
        (facts(RunState::Complete), true),
        (merged(4, &[]), true),
        (shard(1, 4), false),
        (merged(4, &[2]), false),
    ] {
        let found = analyzed(run);
        assert_eq!(found.load.sent_gaps.is_some(), is_tested);
        assert_eq!(severity(&found, "not_poisson").is_some(), is_tested);
    }
}
