//! Sessions of a closed loop: users, pauses, the end of the workload and of the run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::{closed, indices, plan, play, say, session};
use goodput_model::{Load, Mode, Nanos, RequestRecord};
use goodput_testkit::{Server, Step};

const PAUSE: Nanos = Nanos::from_millis(15);
const THINK: Duration = Duration::from_millis(25);

fn server() -> Server {
    Server::start(|_| say("yes", Duration::from_millis(10)))
}

#[test]
fn users_play_sessions_until_the_workload_ends() {
    let made = session(&[&["a"], &["b"]], PAUSE);
    let ended = play(plan(closed(2, THINK), vec![made; 7], &[], &server()));
    assert_eq!(indices(&ended), (0..14).collect::<Vec<_>>());
    assert_eq!(ended.cut_requests, 0);
    let visits: Vec<&[RequestRecord]> = ended.sink.0.chunks(2).collect();
    for visit in &visits {
        assert_eq!(visit[1].scheduled, visit[0].exchange.stamps.ended + PAUSE);
        assert!(visit.iter().all(|record| record.pacer_lag.is_none()));
    }
    // Two users are in two sessions at most, and each of the others began a think time after one.
    for visit in &visits {
        let begin = visit[0].scheduled;
        let end = |visit: &[RequestRecord]| visit[1].exchange.stamps.ended;
        let others = visits.iter().filter(|other| other[0].index != visit[0].index);
        let at_once = others.filter(|other| other[0].scheduled <= begin && begin < end(other));
        assert!(at_once.count() <= 1);
    }
    for visit in &visits[2..] {
        let before = visits.iter().filter(|other| {
            other[1].exchange.stamps.ended + Nanos::from(THINK) <= visit[0].scheduled
        });
        assert!(before.count() + 2 > visit[0].index as usize / 2);
    }
}

#[test]
fn the_number_of_requests_ends_a_session() {
    let load = Load { num_requests: Some(5), ..closed(1, Duration::ZERO) };
    let made = session(&[&["a"], &["b", "c"]], PAUSE);
    let ended = play(plan(load, vec![made; 9], &[], &server()));
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0, 1, 2, 3, 4], 0));
}

#[test]
fn the_end_of_time_ends_sessions_in_thought() {
    let load = Load { duration: Some(Duration::from_millis(300)), ..closed(3, Duration::ZERO) };
    let made = session(&[&["a"], &["b"], &["c"]], Nanos::from_millis(3_600_000));
    let ended = play(plan(load, vec![made; 9], &[], &server()));
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0, 3, 6], 6));
    assert_eq!(ended.stopped, None, "by plan");
}

#[test]
fn a_user_who_gets_an_error_leaves_and_backs_off() {
    let server = Server::start(|_| vec![Step::Close]);
    let made = session(&[&["a"], &["b"]], Nanos::ZERO);
    let ended = play(plan(closed(1, Duration::ZERO), vec![made; 3], &[], &server));
    assert_eq!((indices(&ended), ended.cut_requests), (vec![0, 2, 4], 3));
    for pair in ended.sink.0.windows(2) {
        let back_off = Nanos::from_millis(100);
        assert!(pair[1].scheduled >= pair[0].exchange.stamps.ended + back_off);
    }
}

#[test]
fn users_may_pause_first() {
    let think_time = Duration::from_millis(250);
    let mode = Mode::Closed { concurrency: 1, think_time, pause_first: true };
    let load = Load { num_requests: Some(1), ..common::load(mode) };
    let ended = play(plan(load, vec![session(&[&["a"]], PAUSE); 9], &[], &server()));
    assert_eq!(indices(&ended), [0]);
    assert!(ended.sink.0[0].scheduled >= Nanos::from(think_time));
}

#[test]
fn fewer_sessions_than_users_and_none_at_all() {
    let server = server();
    let made = session(&[&["a"], &["b"]], PAUSE);
    let ended = play(plan(closed(8, THINK), vec![made; 3], &[], &server));
    assert_eq!(indices(&ended), (0..6).collect::<Vec<_>>());
    assert_eq!(indices(&play(plan(closed(8, THINK), Vec::new(), &[], &server))), [0; 0]);
}
