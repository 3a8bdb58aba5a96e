//! Files that ranks hand over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::relay::{Do, Relay};
use super::*;

/// A folder of a run: a log of this many bytes, and others.
fn folder(bytes: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
    fs::write(folder.path().join("requests.log"), log).unwrap();
    fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    fs::write(folder.path().join("server.log"), "").unwrap();
    fs::write(folder.path().join("text.jsonl"), "{}").unwrap();
    fs::write(folder.path().join("private.txt"), "not to be sent").unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What rank 0 got, and what the ranks were told.
type Outcome = (Vec<(u32, Result<PathBuf, String>)>, Vec<Result<(), FleetError>>);

/// Lets ranks hand over their folders, while rank 0 takes them into `into`.
fn hand_over(coordinator: &Coordinator, ranks: &[(&JoinedRank, &Path)], into: &Path) -> Outcome {
    std::thread::scope(|scope| {
        let told: Vec<_> = ranks
            .iter()
            .map(|(rank, folder)| scope.spawn(|| rank.upload(folder, LONG, || true)))
            .collect();
        let got = coordinator.collect(|rank| into.join(format!("shard-{rank}")), soon(), |_| true);
        (got, told.into_iter().map(|told| told.join().unwrap()).collect())
    })
}

#[test]
fn folders_arrive_whole() {
    let (coordinator, into) = (lead(4), tempfile::tempdir().unwrap());
    let ranks: Vec<_> = (1..4).map(|rank| joined(&coordinator, rank, 4)).collect();
    // Rank 3 takes no part; the files are several pieces long.
    coordinator.prepare(run(1)).unwrap();
    make_ready(&ranks[0]);
    make_ready(&ranks[1]);
    until("two", || {
        coordinator.ranks().iter().filter(|it| it.phase != RankPhase::Preparing).count() == 2
    });
    coordinator.announce_start(Nanos::ZERO);
    let folders = [folder(1_000_000), folder(0)];
    let given: Vec<_> = ranks.iter().zip(&folders).map(|(it, from)| (it, from.path())).collect();
    let (got, told) = hand_over(&coordinator, &given, into.path());
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    assert_eq!(names(into.path()), ["shard-1", "shard-2"]);
    for (rank, from) in [(1, &folders[0]), (2, &folders[1])] {
        let into = into.path().join(format!("shard-{rank}"));
        assert_eq!(got[rank - 1], (rank as u32, Ok(into.clone())));
        assert_eq!(names(&into), ["manifest.json", "requests.log", "server.log", "text.jsonl"]);
        let log = |folder: &Path| fs::read(folder.join("requests.log")).unwrap();
        assert!(log(&into) == log(from.path()));
    }
    assert_eq!(got[2], (3, Err("it did not take part".to_owned())));
}

#[test]
fn a_listener_reads_nothing() {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let relay = Relay::to(coordinator.address());
    let rank = join(relay.address, &settings(1, 2)).unwrap();
    let plan = "url = \"http://engine.example\"\nmodel = \"a-model\"".to_owned();
    begin(&coordinator, &[&rank], Order { plan, ..run(1) });
    rank.report_done("a line for people").unwrap();
    let from = folder(0);
    fs::write(from.path().join("text.jsonl"), "what a user asked").unwrap();
    let (got, told) = hand_over(&coordinator, &[(&rank, from.path())], into.path());
    assert!(got[0].1.is_ok() && told[0].is_ok(), "{got:?} {told:?}");
    let seen = relay.seen.lock().unwrap().clone();
    assert!(seen.len() > 1_000);
    let secrets = ["engine.example", "a-model", "host 1", "people", "a user", "requests", SECRET];
    for secret in secrets {
        let is_there = seen.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_there, "`{secret}` can be read");
    }
}

#[test]
fn what_is_there_is_never_written_over() {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let rank = joined(&coordinator, 1, 2);
    begin(&coordinator, &[&rank], point(1));
    fs::create_dir(into.path().join("shard-1")).unwrap();
    let from = folder(10);
    let (got, told) = hand_over(&coordinator, &[(&rank, from.path())], into.path());
    assert!(got[0].1.as_ref().unwrap_err().contains("already exists"), "{got:?}");
    assert!(matches!(&told[0], Err(FleetError::Upload(_))), "{told:?}");
    // The next order's files are taken as if nothing had been.
    begin(&coordinator, &[&rank], point(2));
    let other = into.path().join("second");
    let (got, told) = hand_over(&coordinator, &[(&rank, from.path())], &other);
    assert!(got[0].1.is_ok() && told[0].is_ok(), "{got:?} {told:?}");
}

#[test]
fn too_much_is_refused() {
    let mut small = coordinator_of(2);
    small.limits.upload = 1_000;
    let coordinator = Coordinator::listen("127.0.0.1:0".parse().unwrap(), small).unwrap();
    let (rank, into) = (joined(&coordinator, 1, 2), tempfile::tempdir().unwrap());
    begin(&coordinator, &[&rank], point(1));
    // The manifest has two bytes, and so have the texts.
    let (large, fit) = (folder(997), folder(996));
    let (got, told) = hand_over(&coordinator, &[(&rank, large.path())], into.path());
    let why = "1001 bytes of files exceed the limit of 1000";
    assert_eq!(got[0], (1, Err(why.to_owned())));
    assert_eq!(told[0].as_ref().unwrap_err().to_string(), format!("the files were refused: {why}"));
    assert_eq!(names(into.path()), Vec::<String>::new());
    begin(&coordinator, &[&rank], point(2));
    let (got, _) = hand_over(&coordinator, &[(&rank, fit.path())], into.path());
    assert!(got[0].1.is_ok(), "{got:?}");
}

#[test]
fn a_folder_that_is_cut_off_leaves_nothing() {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let relay = Relay::to(coordinator.address());
    let rank = join(relay.address, &settings(1, 2)).unwrap();
    begin(&coordinator, &[&rank], run(1));
    let from = folder(40_000_000);
    let before = relay.records.load(Ordering::SeqCst);
    let (got, told) = std::thread::scope(|scope| {
        scope.spawn(|| {
            until("some pieces", || relay.records.load(Ordering::SeqCst) > before + 64);
            relay.set(Do::Hold);
        });
        hand_over(&coordinator, &[(&rank, from.path())], into.path())
    });
    assert!(got[0].1.as_ref().unwrap_err().contains("no message for 2 s"), "{got:?}");
    assert!(matches!(told[0], Err(FleetError::Lost(_))), "{told:?}");
    until("the end of what was begun", || names(into.path()).is_empty());
}

#[test]
fn who_does_not_come_in_time_is_named() {
    let (coordinator, into) = (lead(3), tempfile::tempdir().unwrap());
    let rank = joined(&coordinator, 1, 3);
    begin(&coordinator, &[&rank], run(1));
    let got = coordinator.collect(|_| into.path().join("x"), now(), |_| true);
    assert_eq!(got[0], (1, Err("its files did not arrive in time".to_owned())));
    assert_eq!(got[1], (2, Err("it never joined".to_owned())));
    // Rank 0 does not collect anymore: the rank, which has heard so, is not kept waiting.
    coordinator.stop();
    until("the word after that", || rank.is_stopping());
    let from = folder(10);
    let deadline = soon();
    let told = rank.upload(from.path(), LONG, || now() < deadline).unwrap_err().to_string();
    assert_eq!(told, "the files were refused: its files did not arrive in time");
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(rank.upload(empty.path(), LONG, || true), Err(FleetError::Upload(_))));
}

#[test]
fn who_fails_after_the_start_is_not_waited_for() {
    let (coordinator, into) = (lead(4), tempfile::tempdir().unwrap());
    let ranks: Vec<_> = (1..4).map(|rank| joined(&coordinator, rank, 4)).collect();
    begin(&coordinator, &ranks.iter().collect::<Vec<_>>(), run(1));
    ranks[0].report_refusal("the disk is full").unwrap();
    // Another has measured all, and its folder is gone.
    ranks[1].report_done("").unwrap();
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(ranks[1].upload(empty.path(), LONG, || true), Err(FleetError::Upload(_))));
    let from = folder(10);
    let (got, told) = hand_over(&coordinator, &[(&ranks[2], from.path())], into.path());
    assert!(told[0].is_ok(), "{told:?}");
    assert_eq!(got[0], (1, Err("the disk is full".to_owned())));
    assert!(got[1].1.as_ref().unwrap_err().contains("a folder without run files"), "{got:?}");
    assert!(got[2].1.is_ok(), "{got:?}");
    let fate = state_of(&coordinator, 1);
    assert_eq!(
        (fate.phase, fate.has_begun),
        (RankPhase::Refused("the disk is full".to_owned()), true)
    );
    assert_eq!(state_of(&coordinator, 2).phase, RankPhase::Done);
}

#[test]
fn of_every_rank_is_known_whether_it_began_and_was_lost() {
    let (coordinator, into) = (lead(5), tempfile::tempdir().unwrap());
    let mut ranks: Vec<_> = (1..5).map(|rank| joined(&coordinator, rank, 5)).collect();
    coordinator.prepare(point(1)).unwrap();
    ranks[..3].iter().for_each(|rank| drop(make_ready(rank)));
    taken(&ranks[3]);
    until("three", || {
        coordinator.ranks().iter().filter(|it| it.phase == RankPhase::Ready).count() == 3
    });
    assert_eq!(coordinator.announce_start(Nanos::ZERO).ranks, [1, 2, 3]);
    // The first is done and has left, the second has died and is there again, the third died for good.
    ranks[0].report_done("").unwrap();
    until("the end", || state_of(&coordinator, 1).phase == RankPhase::Done);
    ranks.drain(..3);
    until("their loss", || coordinator.ranks()[..3].iter().all(|it| !it.is_there));
    let _again = joined(&coordinator, 2, 5);
    let fates: Vec<_> = coordinator.ranks().into_iter().map(|it| (it.has_begun, it.lost)).collect();
    let gone = Some("it has left".to_owned());
    assert_eq!(fates, [(true, gone.clone()), (true, gone.clone()), (true, gone), (false, None)]);
    let got = coordinator.collect(|_| into.path().join("x"), soon(), |_| true);
    let why: Vec<_> = got.into_iter().map(|(_, outcome)| outcome.unwrap_err()).collect();
    let lost = "the connection was lost: it has left";
    assert_eq!(why, [lost, lost, lost, "it did not take part"]);
    // Of the next order nothing is known yet.
    coordinator.prepare(point(2)).unwrap();
    let fates: Vec<_> = coordinator.ranks().into_iter().map(|it| (it.has_begun, it.lost)).collect();
    assert_eq!(fates[1], (false, None));
    assert_eq!(fates[2], (false, Some("it has left".to_owned())));
}

#[test]
fn who_does_not_want_to_wait_gets_what_is_there() {
    let (coordinator, into) = (lead(3), tempfile::tempdir().unwrap());
    let ranks = [joined(&coordinator, 1, 3), joined(&coordinator, 2, 3)];
    begin(&coordinator, &[&ranks[0], &ranks[1]], run(1));
    let from = folder(10);
    let mut refused = 0;
    let got = std::thread::scope(|scope| {
        scope.spawn(|| ranks[0].upload(from.path(), LONG, || true));
        coordinator.collect(
            |rank| into.path().join(rank.to_string()),
            soon(),
            |settled| {
                refused += usize::from(settled == 1);
                settled == 0
            },
        )
    });
    // It was not asked again.
    assert_eq!(refused, 1);
    assert_eq!(got[0], (1, Ok(into.path().join("1"))));
    assert_eq!(got[1], (2, Err("its files did not arrive in time".to_owned())));
}

#[test]
fn files_wait_for_a_rank_0_that_is_not_done_yet() {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let (rank, from) = (joined(&coordinator, 1, 2), folder(10));
    begin(&coordinator, &[&rank], run(1));
    // Handing over may take so long, and rank 0 is not done before that is over.
    let within = Nanos::from_millis(1_500);
    std::thread::scope(|scope| {
        let told = scope.spawn(|| rank.upload(from.path(), within, || true));
        pause(within + Nanos::from_millis(300));
        let got = coordinator.collect(|_| into.path().join("1"), soon(), |_| true);
        assert_eq!(got[0], (1, Ok(into.path().join("1"))));
        told.join().unwrap().unwrap();
    });
}

#[test]
fn who_waits_for_its_turn_may_give_up_and_follows_rank_0() {
    let coordinator = lead(2);
    let (rank, from) = (joined(&coordinator, 1, 2), folder(10));
    begin(&coordinator, &[&rank], point(1));
    let told = rank.upload(from.path(), LONG, || false).unwrap_err().to_string();
    assert_eq!(told, "the files were refused: this rank gave up");
    begin(&coordinator, &[&rank], point(2));
    // Rank 0 never takes them, and gives the next order.
    let asked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let told = scope.spawn(|| {
            let deadline = soon();
            let look = || {
                asked.store(true, Ordering::SeqCst);
                now() < deadline
            };
            rank.upload(from.path(), LONG, look)
        });
        until("its wait", || asked.load(Ordering::SeqCst));
        coordinator.prepare(point(3)).unwrap();
        let told = told.join().unwrap().unwrap_err().to_string();
        assert_eq!(told, "the files were refused: rank 0 continued without them");
    });
    assert_eq!(taken(&rank), point(3));
}
