//! What happens to ranks and rank 0 when all goes well, and when one of them goes.

use super::relay::{Do, Relay};
use super::*;
use crate::{Refusal, Totals};

#[test]
fn a_run_from_the_first_word_to_the_last() {
    let coordinator = lead(3);
    assert!(coordinator.gather(now(), |_| true).is_empty());
    let ranks = [joined(&coordinator, 2, 3), joined(&coordinator, 1, 3)];
    assert_eq!(coordinator.gather(soon(), |_| true), [1, 2]);
    assert_eq!(ranks[0].fleet_name(), "tests");
    assert_eq!(state_of(&coordinator, 2).host, "host 2");
    assert_eq!(ranks[0].next_order(Nanos::ZERO), NextOrder::Nothing);

    coordinator.prepare(run(1)).unwrap();
    assert_eq!(taken(&ranks[0]), run(1));
    assert_eq!(taken(&ranks[1]), run(1));
    assert_eq!(ranks[0].wait_for_start(Nanos::ZERO), Start::Waiting);
    ranks[0].report_ready().unwrap();
    ranks[1].report_ready().unwrap();
    let ready = coordinator.wait_ready(soon(), || true);
    let phases: Vec<_> = ready.into_iter().map(|rank| rank.phase).collect();
    assert_eq!(phases, [RankPhase::Ready, RankPhase::Ready]);

    let go = coordinator.announce_start(Nanos::from_millis(50));
    assert_eq!(go.ranks, [1, 2]);
    for rank in &ranks {
        let Start::At { at, clock } = rank.wait_for_start(LONG) else { panic!() };
        // Both run on the clock of this machine: what is measured between them is the error.
        assert!(at.0.abs_diff(go.at.0) <= clock.error_ns);
        assert!(!rank.is_stopping());
    }
    ranks[0].report_totals(Totals { started: 5, ..Totals::default() });
    ranks[1].report_totals(Totals { started: 7, ..Totals::default() });
    until("counts", || coordinator.totals().len() == 2);
    let counts: Vec<_> =
        coordinator.totals().into_iter().map(|(rank, it)| (rank, it.started)).collect();
    assert_eq!(counts, [(1, 7), (2, 5)]);

    coordinator.stop();
    until("the stop", || ranks.iter().all(JoinedRank::is_stopping));
    assert!(!ranks[0].is_aborted());
    ranks[0].report_done("all well").unwrap();
    until("the end", || state_of(&coordinator, 2).phase == RankPhase::Done);
    assert_eq!(state_of(&coordinator, 2).summary.as_deref(), Some("all well"));
    assert_eq!(state_of(&coordinator, 1).phase, RankPhase::Running);
    coordinator.announce_end();
    assert_eq!(ranks[0].next_order(LONG), NextOrder::End);
    assert_eq!(ranks[1].next_order(LONG), NextOrder::End);
    assert!(!ranks[0].is_lost());
    until("the end of the connection", || ranks[0].report_done("").is_err());
    let late = ranks[0].report_done("").unwrap_err().to_string();
    assert_eq!(late, "lost the connection: it has announced the end");
}

#[test]
fn orders_follow_each_other_and_stops_are_of_their_own() {
    let coordinator = lead(2);
    let rank = joined(&coordinator, 1, 2);
    begin(&coordinator, &[&rank], point(1));
    assert!(matches!(rank.wait_for_start(LONG), Start::At { .. }));
    coordinator.abort();
    until("the word", || rank.is_aborted());
    assert!(rank.is_stopping());
    assert!(matches!(coordinator.prepare(point(1)), Err(FleetError::OutOfOrder(1))));
    begin(&coordinator, &[&rank], point(2));
    assert!(matches!(rank.wait_for_start(LONG), Start::At { .. }));
    assert!(!rank.is_stopping() && !rank.is_aborted());
}

#[test]
fn who_is_not_ready_begins_nothing() {
    let coordinator = lead(4);
    let ranks: Vec<_> = (1..4).map(|rank| joined(&coordinator, rank, 4)).collect();
    coordinator.prepare(point(1)).unwrap();
    make_ready(&ranks[0]);
    taken(&ranks[1]);
    ranks[1].report_refusal("no such file").unwrap();
    taken(&ranks[2]);
    until("two words", || {
        coordinator.ranks().iter().filter(|rank| rank.phase == RankPhase::Preparing).count() == 1
    });
    let states = coordinator.wait_ready(now(), || true);
    assert_eq!(states[1].phase, RankPhase::Refused("no such file".to_owned()));
    assert_eq!(coordinator.announce_start(Nanos::ZERO).ranks, [1]);
    assert_eq!(ranks[1].wait_for_start(LONG), Start::Missed);
    assert_eq!(ranks[2].wait_for_start(LONG), Start::Missed);
    // The next one is for all again.
    begin(&coordinator, &ranks.iter().collect::<Vec<_>>(), point(2));
}

#[test]
fn an_order_may_be_given_up_before_its_start() {
    let coordinator = lead(2);
    let rank = joined(&coordinator, 1, 2);
    coordinator.prepare(point(1)).unwrap();
    make_ready(&rank);
    coordinator.wait_ready(soon(), || true);
    coordinator.abort();
    assert_eq!(rank.wait_for_start(LONG), Start::Missed);
    assert!(rank.is_aborted());
}

#[test]
fn the_clock_of_a_rank_may_be_anything() {
    let coordinator = lead(3);
    let far =
        join(coordinator.address(), &RankSettings { clocks: ahead, ..settings(1, 3) }).unwrap();
    let near = joined(&coordinator, 2, 3);
    let at = begin(&coordinator, &[&far, &near], run(1));
    assert!(READ.load(Ordering::Relaxed) > 0);
    let started = |rank: &JoinedRank| match rank.wait_for_start(LONG) {
        Start::At { at, clock } => (at, clock),
        other => panic!("{other:?}"),
    };
    let ((far_at, clock), (near_at, near_clock)) = (started(&far), started(&near));
    assert!(clock.offset_ns.abs_diff(AHEAD.0.cast_signed()) <= clock.error_ns, "{clock:?}");
    assert!(clock.wall_ns.abs_diff(3_000_000_000) < 1_000_000_000, "{clock:?}");
    // One instant, on two clocks, each within what is said of it.
    assert!((far_at - AHEAD).0.abs_diff(at.0) <= clock.error_ns);
    assert!(near_at.0.abs_diff(at.0) <= near_clock.error_ns);
    // Both ends know of it.
    assert!(far.clock().is_some() && state_of(&coordinator, 1).clock.is_some());
}

#[test]
fn a_rank_may_come_before_the_start_and_for_the_next_point_but_not_into_a_run() {
    let coordinator = lead(4);
    let first = joined(&coordinator, 1, 4);
    coordinator.prepare(point(1)).unwrap();
    // Before the start: it gets the order of the moment.
    let second = joined(&coordinator, 2, 4);
    assert_eq!(make_ready(&second), point(1));
    make_ready(&first);
    coordinator.wait_ready(soon(), || true);
    assert_eq!(coordinator.announce_start(Nanos::ZERO).ranks, [1, 2]);
    // After it: it waits for the next.
    let third = joined(&coordinator, 3, 4);
    assert_eq!(state_of(&coordinator, 3).phase, RankPhase::Joined);
    assert_eq!(third.next_order(Nanos::ZERO), NextOrder::Nothing);
    drop(third);
    until("its leave", || is_lost(&coordinator, 3));
    begin(&coordinator, &[&first, &second], run(2));
    let late = join(coordinator.address(), &settings(3, 4)).unwrap_err();
    assert!(matches!(late, FleetError::Refused(Refusal::Begun)), "{late}");
    let said = ("rank 3 at 127.0.0.1 joined after the start".to_owned(), 1);
    assert_eq!(coordinator.turned_away(), [said]);
}

#[test]
fn a_rank_that_dies_is_lost_and_may_come_back_for_the_next_point() {
    let coordinator = lead(3);
    let (first, second) = (joined(&coordinator, 1, 3), joined(&coordinator, 2, 3));
    begin(&coordinator, &[&first, &second], point(1));
    second.report_totals(Totals { ended: 3, ..Totals::default() });
    until("its counts", || coordinator.totals().len() == 1);
    drop(second);
    until("its loss", || is_lost(&coordinator, 2));
    assert!(!state_of(&coordinator, 2).is_there);
    // What it has counted is still there, and the other goes on.
    assert_eq!(coordinator.totals()[0].1.ended, 3);
    first.report_done("").unwrap();
    until("the end", || state_of(&coordinator, 1).phase == RankPhase::Done);
    let again = joined(&coordinator, 2, 3);
    begin(&coordinator, &[&first, &again], point(2));
}

#[test]
fn a_partition_is_seen_at_both_ends() {
    let coordinator = lead(3);
    let relay = Relay::to(coordinator.address());
    let far = join(relay.address, &settings(1, 3)).unwrap();
    let near = joined(&coordinator, 2, 3);
    begin(&coordinator, &[&far, &near], run(1));
    let go = far.wait_for_start(LONG);
    relay.set(Do::Hold);
    until("the loss at rank 0", || is_lost(&coordinator, 1));
    until("the loss at the rank", || far.is_lost());
    assert_eq!(state_of(&coordinator, 1).phase, RankPhase::Lost("no message for 2 s".to_owned()));
    assert_eq!(far.next_order(Nanos::ZERO), NextOrder::Lost("no message for 2 s".to_owned()));
    // What it was told before holds, and nothing that it does now waits or fails badly.
    assert_eq!(far.wait_for_start(LONG), go);
    far.report_totals(Totals::default());
    assert!(matches!(far.report_done(""), Err(FleetError::Lost(_))));
    assert_eq!(state_of(&coordinator, 2).phase, RankPhase::Running);
    assert!(!near.is_lost());
}

#[test]
fn a_coordinator_that_dies_is_lost() {
    let coordinator = lead(2);
    let rank = joined(&coordinator, 1, 2);
    coordinator.prepare(run(1)).unwrap();
    make_ready(&rank);
    drop(coordinator);
    assert!(matches!(rank.wait_for_start(LONG), Start::Lost(_)));
    assert!(matches!(rank.next_order(LONG), NextOrder::Lost(_)));
    assert!(rank.is_lost() && !rank.is_stopping());
}

#[test]
fn rank_0_may_start_later() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut tries, mut coordinator) = (0, None);
    let rank = JoinedRank::join(&address.to_string(), &settings(1, 2), |_| {
        tries += 1;
        if tries == 3 {
            coordinator = Some(Coordinator::listen(address, coordinator_of(2)).unwrap());
        }
        true
    });
    assert_eq!(coordinator.unwrap().gather(soon(), |_| true), [1]);
    assert!(rank.is_ok() && tries >= 3);
}

#[test]
fn a_rank_that_finds_no_coordinator_says_so() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hurried = RankSettings { deadline: now(), ..settings(1, 2) };
    assert!(matches!(join(address, &hurried), Err(FleetError::NoCoordinator { .. })));
    let bare = JoinedRank::join("localhost", &settings(1, 2), |_| true).unwrap_err();
    assert!(bare.to_string().contains("the address is not HOST:PORT"), "{bare}");
    let given_up = JoinedRank::join(&address.to_string(), &settings(1, 2), |_| false);
    assert!(matches!(given_up, Err(FleetError::NoCoordinator { .. })));
}

#[test]
fn who_gives_up_is_not_kept_by_one_who_says_nothing() {
    // The system takes connections, and nothing listens to them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (begin, mut looks) = (now(), 0);
    let given_up = join_until(silent.local_addr().unwrap(), || {
        looks += 1;
        looks < 3
    });
    assert!(matches!(given_up, Err(FleetError::NoCoordinator { .. })), "{given_up:?}");
    assert!(now() - begin < Nanos::from_millis(10_000));
}

fn join_until(at: SocketAddr, mut look: impl FnMut() -> bool) -> Result<JoinedRank, FleetError> {
    JoinedRank::join(&at.to_string(), &settings(1, 2), |_| look())
}

#[test]
fn many_join_at_once() {
    let coordinator = lead(101);
    let address = coordinator.address();
    let ranks: Vec<_> = (1..101)
        .map(|rank| std::thread::spawn(move || join(address, &settings(rank, 101)).unwrap()))
        .collect();
    let ranks: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
    assert_eq!(coordinator.gather(soon(), |_| true).len(), 100);
    begin(&coordinator, &ranks.iter().collect::<Vec<_>>(), run(1));
    let count = Totals { started: 1, ..Totals::default() };
    for rank in &ranks {
        rank.report_totals(count.clone());
    }
    until("all counts", || coordinator.totals().len() == 100);
    coordinator.announce_end();
    assert!(ranks.iter().all(|rank| rank.next_order(LONG) == NextOrder::End));
}
