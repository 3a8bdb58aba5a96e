//! What happens to members and rank 0 when all goes well, and when one of them goes.

use super::relay::{Do, Relay};
use super::*;
use crate::{Refusal, Totals};

#[test]
fn a_run_from_the_first_word_to_the_last() {
    let leader = lead(3);
    assert!(leader.gather(now(), |_| true).is_empty());
    let members = [joined(&leader, 2, 3), joined(&leader, 1, 3)];
    assert_eq!(leader.gather(soon(), |_| true), [1, 2]);
    assert_eq!(members[0].fleet(), "tests");
    assert_eq!(member(&leader, 2).host, "host 2");
    assert_eq!(members[0].next(Nanos::ZERO), Next::Nothing);

    leader.prepare(run(1)).unwrap();
    assert_eq!(taken(&members[0]), run(1));
    assert_eq!(taken(&members[1]), run(1));
    assert_eq!(members[0].wait_go(Nanos::ZERO), Start::Waiting);
    members[0].ready().unwrap();
    members[1].ready().unwrap();
    let ready = leader.wait_ready(soon(), || true);
    let phases: Vec<_> = ready.into_iter().map(|member| member.phase).collect();
    assert_eq!(phases, [MemberPhase::Ready, MemberPhase::Ready]);

    let go = leader.go(Nanos::from_millis(50));
    assert_eq!(go.ranks, [1, 2]);
    for member in &members {
        let Start::At { at, clock } = member.wait_go(LONG) else { panic!() };
        // Both run on the clock of this machine: what is measured between them is the error.
        assert!(at.0.abs_diff(go.at.0) <= clock.error_ns);
        assert!(!member.is_stopping());
    }
    members[0].report(Totals { started: 5, ..Totals::default() });
    members[1].report(Totals { started: 7, ..Totals::default() });
    until("counts", || leader.totals().len() == 2);
    let counts: Vec<_> = leader.totals().into_iter().map(|(rank, it)| (rank, it.started)).collect();
    assert_eq!(counts, [(1, 7), (2, 5)]);

    leader.stop();
    until("the stop", || members.iter().all(Member::is_stopping));
    assert!(!members[0].is_aborted());
    members[0].done("all well").unwrap();
    until("the end", || member(&leader, 2).phase == MemberPhase::Done);
    assert_eq!(member(&leader, 2).summary.as_deref(), Some("all well"));
    assert_eq!(member(&leader, 1).phase, MemberPhase::Running);
    leader.end();
    assert_eq!(members[0].next(LONG), Next::End);
    assert_eq!(members[1].next(LONG), Next::End);
    assert!(!members[0].is_lost());
    until("the end of the connection", || members[0].done("").is_err());
    let late = members[0].done("").unwrap_err().to_string();
    assert_eq!(late, "lost the connection: it has announced the end");
}

#[test]
fn orders_follow_each_other_and_stops_are_of_their_own() {
    let leader = lead(2);
    let member = joined(&leader, 1, 2);
    begin(&leader, &[&member], point(1));
    assert!(matches!(member.wait_go(LONG), Start::At { .. }));
    leader.abort();
    until("the word", || member.is_aborted());
    assert!(member.is_stopping());
    assert!(matches!(leader.prepare(point(1)), Err(FleetError::OutOfOrder(1))));
    begin(&leader, &[&member], point(2));
    assert!(matches!(member.wait_go(LONG), Start::At { .. }));
    assert!(!member.is_stopping() && !member.is_aborted());
}

#[test]
fn who_is_not_ready_begins_nothing() {
    let leader = lead(4);
    let members: Vec<_> = (1..4).map(|rank| joined(&leader, rank, 4)).collect();
    leader.prepare(point(1)).unwrap();
    make_ready(&members[0]);
    taken(&members[1]);
    members[1].refuse("no such file").unwrap();
    taken(&members[2]);
    until("two words", || {
        leader.members().iter().filter(|member| member.phase == MemberPhase::Preparing).count() == 1
    });
    let states = leader.wait_ready(now(), || true);
    assert_eq!(states[1].phase, MemberPhase::Refused("no such file".to_owned()));
    assert_eq!(leader.go(Nanos::ZERO).ranks, [1]);
    assert_eq!(members[1].wait_go(LONG), Start::Missed);
    assert_eq!(members[2].wait_go(LONG), Start::Missed);
    // The next one is for all again.
    begin(&leader, &members.iter().collect::<Vec<_>>(), point(2));
}

#[test]
fn an_order_may_be_given_up_before_its_start() {
    let leader = lead(2);
    let member = joined(&leader, 1, 2);
    leader.prepare(point(1)).unwrap();
    make_ready(&member);
    leader.wait_ready(soon(), || true);
    leader.abort();
    assert_eq!(member.wait_go(LONG), Start::Missed);
    assert!(member.is_aborted());
}

#[test]
fn the_clock_of_a_member_may_be_anything() {
    let leader = lead(3);
    let far = join(leader.address(), &MemberSettings { clocks: ahead, ..settings(1, 3) }).unwrap();
    let near = joined(&leader, 2, 3);
    let at = begin(&leader, &[&far, &near], run(1));
    assert!(READ.load(Ordering::Relaxed) > 0);
    let started = |member: &Member| match member.wait_go(LONG) {
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
    assert!(far.clock().is_some() && member(&leader, 1).clock.is_some());
}

#[test]
fn a_member_may_come_before_the_start_and_for_the_next_point_but_not_into_a_run() {
    let leader = lead(4);
    let first = joined(&leader, 1, 4);
    leader.prepare(point(1)).unwrap();
    // Before the start: it gets the order of the moment.
    let second = joined(&leader, 2, 4);
    assert_eq!(make_ready(&second), point(1));
    make_ready(&first);
    leader.wait_ready(soon(), || true);
    assert_eq!(leader.go(Nanos::ZERO).ranks, [1, 2]);
    // After it: it waits for the next.
    let third = joined(&leader, 3, 4);
    assert_eq!(member(&leader, 3).phase, MemberPhase::Joined);
    assert_eq!(third.next(Nanos::ZERO), Next::Nothing);
    drop(third);
    until("its leave", || is_lost(&leader, 3));
    begin(&leader, &[&first, &second], run(2));
    let late = join(leader.address(), &settings(3, 4)).unwrap_err();
    assert!(matches!(late, FleetError::Refused(Refusal::Begun)), "{late}");
    let said = ("rank 3 at 127.0.0.1 joined after the start".to_owned(), 1);
    assert_eq!(leader.turned_away(), [said]);
}

#[test]
fn a_member_that_dies_is_lost_and_may_come_back_for_the_next_point() {
    let leader = lead(3);
    let (first, second) = (joined(&leader, 1, 3), joined(&leader, 2, 3));
    begin(&leader, &[&first, &second], point(1));
    second.report(Totals { ended: 3, ..Totals::default() });
    until("its counts", || leader.totals().len() == 1);
    drop(second);
    until("its loss", || is_lost(&leader, 2));
    assert!(!member(&leader, 2).is_there);
    // What it has counted is still there, and the other goes on.
    assert_eq!(leader.totals()[0].1.ended, 3);
    first.done("").unwrap();
    until("the end", || member(&leader, 1).phase == MemberPhase::Done);
    let again = joined(&leader, 2, 3);
    begin(&leader, &[&first, &again], point(2));
}

#[test]
fn a_partition_is_seen_at_both_ends() {
    let leader = lead(3);
    let relay = Relay::to(leader.address());
    let far = join(relay.address, &settings(1, 3)).unwrap();
    let near = joined(&leader, 2, 3);
    begin(&leader, &[&far, &near], run(1));
    let go = far.wait_go(LONG);
    relay.set(Do::Hold);
    until("the loss at rank 0", || is_lost(&leader, 1));
    until("the loss at the member", || far.is_lost());
    assert_eq!(member(&leader, 1).phase, MemberPhase::Lost("no message for 2 s".to_owned()));
    assert_eq!(far.next(Nanos::ZERO), Next::Lost("no message for 2 s".to_owned()));
    // What it was told before holds, and nothing that it does now waits or fails badly.
    assert_eq!(far.wait_go(LONG), go);
    far.report(Totals::default());
    assert!(matches!(far.done(""), Err(FleetError::Lost(_))));
    assert_eq!(member(&leader, 2).phase, MemberPhase::Running);
    assert!(!near.is_lost());
}

#[test]
fn a_leader_that_dies_is_lost() {
    let leader = lead(2);
    let member = joined(&leader, 1, 2);
    leader.prepare(run(1)).unwrap();
    make_ready(&member);
    drop(leader);
    assert!(matches!(member.wait_go(LONG), Start::Lost(_)));
    assert!(matches!(member.next(LONG), Next::Lost(_)));
    assert!(member.is_lost() && !member.is_stopping());
}

#[test]
fn rank_0_may_start_later() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut tries, mut leader) = (0, None);
    let member = Member::join(&address.to_string(), &settings(1, 2), |_| {
        tries += 1;
        if tries == 3 {
            leader = Some(Leader::listen(address, leader_of(2)).unwrap());
        }
        true
    });
    assert_eq!(leader.unwrap().gather(soon(), |_| true), [1]);
    assert!(member.is_ok() && tries >= 3);
}

#[test]
fn a_member_that_finds_no_leader_says_so() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hurried = MemberSettings { deadline: now(), ..settings(1, 2) };
    assert!(matches!(join(address, &hurried), Err(FleetError::NoLeader { .. })));
    let bare = Member::join("localhost", &settings(1, 2), |_| true).unwrap_err();
    assert!(bare.to_string().contains("the address is not HOST:PORT"), "{bare}");
    let given_up = Member::join(&address.to_string(), &settings(1, 2), |_| false);
    assert!(matches!(given_up, Err(FleetError::NoLeader { .. })));
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
    assert!(matches!(given_up, Err(FleetError::NoLeader { .. })), "{given_up:?}");
    assert!(now() - begin < Nanos::from_millis(10_000));
}

fn join_until(at: SocketAddr, mut look: impl FnMut() -> bool) -> Result<Member, FleetError> {
    Member::join(&at.to_string(), &settings(1, 2), |_| look())
}

#[test]
fn many_join_at_once() {
    let leader = lead(101);
    let address = leader.address();
    let members: Vec<_> = (1..101)
        .map(|rank| std::thread::spawn(move || join(address, &settings(rank, 101)).unwrap()))
        .collect();
    let members: Vec<_> = members.into_iter().map(|member| member.join().unwrap()).collect();
    assert_eq!(leader.gather(soon(), |_| true).len(), 100);
    begin(&leader, &members.iter().collect::<Vec<_>>(), run(1));
    let count = Totals { started: 1, ..Totals::default() };
    for member in &members {
        member.report(count.clone());
    }
    until("all counts", || leader.totals().len() == 100);
    leader.end();
    assert!(members.iter().all(|member| member.next(LONG) == Next::End));
}
