//! Ranks, and a coordinator, that have the token and break the rules.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsStream;

use super::*;
use crate::channel::{self, Channel};
use crate::frame::{self, FrameKind, LARGEST_MESSAGE};
use crate::message::{Hello, ToCoordinator, ToRank};

/// A rank that says what the test wants.
struct Rogue {
    runtime: Runtime,
    stream: TlsStream<TcpStream>,
}

impl Rogue {
    /// Rank 1 of this many.
    fn joined(coordinator: &Coordinator, of: u32) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let stream = TcpStream::connect(coordinator.address()).await.unwrap();
            let mut channel = Channel::connect(stream).await.unwrap();
            let hello = Hello { rank: 1, of, host: String::new() };
            channel.join(&token(), "1.0.0", &hello).await.unwrap();
            channel.stream
        });
        Self { runtime, stream }
    }

    /// Rank 1 of 2, as far as the start of order 1.
    fn running(coordinator: &Coordinator) -> Self {
        let mut rogue = Self::joined(coordinator, 2);
        rogue.begin(coordinator, point(1));
        rogue
    }

    /// As far as the start of an order.
    fn begin(&mut self, coordinator: &Coordinator, order: Order) {
        let number = order.number;
        coordinator.prepare(order).unwrap();
        self.say(&ToCoordinator::Ready { number });
        // Clocks are compared when it joins, and before the start.
        if number == 1 {
            self.answer(|it| matches!(it, ToRank::Clock(_)));
        }
        until("its word", || state_of(coordinator, 1).phase == RankPhase::Ready);
        std::thread::scope(|scope| {
            let go = scope.spawn(|| coordinator.announce_start(Nanos::ZERO));
            self.answer(|it| matches!(it, ToRank::Go { .. }));
            assert_eq!(go.join().unwrap().ranks, [1]);
        });
    }

    fn send(&mut self, kind: FrameKind, said: &[u8]) {
        // Rank 0 may have closed.
        let _ = self.runtime.block_on(frame::write_frame(&mut self.stream, kind, said));
    }

    fn say(&mut self, what: &ToCoordinator) {
        self.send(FrameKind::Message, &serde_json::to_vec(what).unwrap());
    }

    /// Answers for its clock until a message of a kind comes.
    fn answer(&mut self, is_it: impl Fn(&ToRank) -> bool) {
        loop {
            match self.hear(|it| is_it(it) || matches!(it, ToRank::Ping { .. })) {
                ToRank::Ping { id } => {
                    self.say(&ToCoordinator::Pong { id, mono: now(), wall: now() });
                }
                _ => return,
            }
        }
    }

    /// The next message of a kind.
    fn hear(&mut self, is_it: impl Fn(&ToRank) -> bool) -> ToRank {
        loop {
            let heard = frame::read_message(&mut self.stream, LARGEST_MESSAGE);
            let message = self.runtime.block_on(heard).unwrap();
            if is_it(&message) {
                return message;
            }
        }
    }

    fn offer(&mut self, files: &[(&str, u64)]) {
        self.offer_of(1, files);
    }

    fn offer_of(&mut self, number: u64, files: &[(&str, u64)]) {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        self.say(&ToCoordinator::Offer { number, files });
    }

    fn file(&mut self, name: &str, bytes: &[u8]) {
        self.say(&ToCoordinator::File { name: name.to_owned() });
        self.send(FrameKind::Piece, bytes);
        self.say(&ToCoordinator::Sent);
    }

    fn refusal(&mut self) -> String {
        match self.hear(|it| matches!(it, ToRank::Taken { .. })) {
            ToRank::Taken { refused: Some(why), .. } => why,
            other => panic!("{other:?}"),
        }
    }
}

type Act = fn(&mut Rogue);

#[test]
fn only_files_of_a_run_are_taken() {
    for name in ["../plan.toml", "/etc/passwd", "report.html", "", "plan.toml/x", "PLAN.TOML"] {
        let coordinator = lead(2);
        let mut rogue = Rogue::running(&coordinator);
        rogue.offer(&[("plan.toml", 1), (name, 1)]);
        assert!(rogue.refusal().contains("is not a file of a run"), "{name}");
    }
    let coordinator = lead(2);
    let mut rogue = Rogue::running(&coordinator);
    rogue.offer(&[("plan.toml", 1), ("plan.toml", 1)]);
    assert!(rogue.refusal().contains("twice"));
    // Nor are those counted that are larger than numbers go.
    let coordinator = lead(2);
    let mut rogue = Rogue::running(&coordinator);
    rogue.offer(&[("plan.toml", u64::MAX), ("server.log", u64::MAX)]);
    assert!(rogue.refusal().contains("exceed the limit"));
}

/// What rank 0 got and what it says, when a rank that has offered a plan of two bytes does this.
fn sending(what: impl FnOnce(&mut Rogue)) -> (Result<PathBuf, String>, Option<String>, usize) {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let mut rogue = Rogue::running(&coordinator);
    let got = std::thread::scope(|scope| {
        let got = scope.spawn(|| coordinator.collect(|_| into.path().join("1"), soon(), |_| true));
        rogue.offer(&[("plan.toml", 2)]);
        rogue.hear(|it| matches!(it, ToRank::Take { .. }));
        what(&mut rogue);
        got.join().unwrap()
    });
    let said = rogue.hear(|it| matches!(it, ToRank::Taken { .. }));
    let ToRank::Taken { refused, .. } = said else { panic!() };
    let left = std::fs::read_dir(into.path()).unwrap().count();
    (got.into_iter().next().unwrap().1, refused, left)
}

#[test]
fn files_are_what_was_said_of_them_or_nothing() {
    let whole = sending(|rogue| rogue.file("plan.toml", b"ab"));
    assert!(matches!(whole, (Ok(_), None, 1)), "{whole:?}");
    let cases: [(&str, Act); 7] = [
        ("longer than announced", |it| it.file("plan.toml", b"abc")),
        ("shorter than announced", |it| it.file("plan.toml", b"a")),
        ("was not offered", |it| it.file("server.log", b"ab")),
        ("was not offered", |it| {
            it.say(&ToCoordinator::File { name: "plan.toml".to_owned() });
            it.send(FrameKind::Piece, b"ab");
            // Once is enough.
            it.file("plan.toml", b"ab");
        }),
        ("without its file", |it| it.send(FrameKind::Piece, b"ab")),
        ("some offered files did not arrive", |it| it.say(&ToCoordinator::Sent)),
        ("it gave up: the disk", |it| it.say(&ToCoordinator::Cut("the disk".to_owned()))),
    ];
    for (why, act) in cases {
        let (got, told, left) = sending(act);
        assert!(got.as_ref().unwrap_err().contains(why), "{why}: {got:?}");
        assert_eq!((got.err(), left), (told, 0));
    }
}

#[test]
fn who_breaks_the_rules_is_cut_off() {
    let cases: [(&str, Act); 5] = [
        ("a different protocol", |it| it.send(FrameKind::Message, b"[[[[")),
        ("a different protocol", |it| it.send(FrameKind::Message, &[0xff; 100])),
        ("not requested", |it| it.send(FrameKind::Piece, b"ab")),
        ("not requested", |it| it.say(&ToCoordinator::File { name: "plan.toml".to_owned() })),
        ("exceeds the limit", |it| it.send(FrameKind::Message, &vec![b' '; LARGEST_MESSAGE + 1])),
    ];
    for (why, act) in cases {
        let coordinator = lead(2);
        let mut rogue = Rogue::running(&coordinator);
        act(&mut rogue);
        until("its loss", || is_lost(&coordinator, 1));
        let RankPhase::Lost(told) = state_of(&coordinator, 1).phase else { panic!() };
        assert!(told.contains(why), "{why}: {told}");
    }
}

#[test]
fn words_about_other_orders_and_words_too_many_change_nothing() {
    let coordinator = lead(2);
    let mut rogue = Rogue::running(&coordinator);
    rogue.say(&ToCoordinator::Done { number: 2, summary: String::new() });
    rogue.say(&ToCoordinator::Ready { number: 1 });
    rogue.say(&ToCoordinator::Cannot { number: 2, why: "after all".to_owned() });
    rogue.say(&ToCoordinator::Pong { id: u64::MAX, mono: Nanos(u64::MAX), wall: Nanos::ZERO });
    rogue.say(&ToCoordinator::Sent);
    rogue.say(&ToCoordinator::Totals { number: 7, totals: Box::default() });
    rogue.say(&ToCoordinator::Totals { number: 1, totals: Box::default() });
    until("the last word", || !coordinator.totals().is_empty());
    assert_eq!(state_of(&coordinator, 1).phase, RankPhase::Running);
    rogue.say(&ToCoordinator::Done { number: 1, summary: "x".repeat(100_000) });
    until("the end", || state_of(&coordinator, 1).phase == RankPhase::Done);
    assert_eq!(state_of(&coordinator, 1).summary.unwrap().len(), 4096);
}

#[test]
fn a_peer_that_does_not_read_is_lost_and_delays_no_other() {
    let mut patient = coordinator_of(2);
    patient.limits.silence = LONG;
    let coordinator = Coordinator::listen("127.0.0.1:0".parse().unwrap(), patient).unwrap();
    let _rogue = Rogue::running(&coordinator);
    let plan = "x".repeat(LARGEST_MESSAGE - 8192);
    // Enough for the buffers of the system and the queue.
    for number in 2..100 {
        coordinator.prepare(Order { plan: plan.clone(), ..point(number) }).unwrap();
    }
    assert_eq!(
        state_of(&coordinator, 1).phase,
        RankPhase::Lost("it does not read its messages".to_owned())
    );
}

/// The next rank that comes, let in as rank 0 does it.
async fn admitted(listener: &TcpListener) -> TlsStream<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    let mut channel = Channel::accept(stream, &channel::server_config().unwrap()).await.unwrap();
    channel.admit_rank(&token(), "1.0.0").await.unwrap();
    let welcome = ToRank::Welcome { fleet: String::new(), silence: Nanos(u64::MAX) };
    frame::write_message(&mut channel.stream, &welcome).await.unwrap();
    channel.stream
}

/// Files of a rank whose rank 0 has given them up, and gives the next order, while they are under
/// way: the next offer comes after all of them.
#[test]
fn an_offer_does_not_overtake_the_files_before_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("requests.log"), vec![7; 40_000_000]).unwrap();
    let (has_given_up, is_heard) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let rank = join(address, &settings(1, 2)).unwrap();
            assert_eq!(taken(&rank), point(1));
            let mut looks = 0;
            let given_up = rank.upload(folder.path(), LONG, || {
                looks += 1;
                // By now nothing more fits into the connection.
                looks < 300
            });
            assert!(matches!(given_up, Err(FleetError::Upload(_))), "{given_up:?}");
            has_given_up.store(true, Ordering::SeqCst);
            assert_eq!(taken(&rank), point(2));
            let _ = rank.upload(folder.path(), LONG, || !is_heard.load(Ordering::SeqCst));
            rank
        });
        runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::write_message(&mut stream, &ToRank::Order(point(1))).await.unwrap();
            while !matches!(
                frame::read_message(&mut stream, LARGEST_MESSAGE).await.unwrap(),
                ToCoordinator::Offer { .. }
            ) {}
            frame::write_message(&mut stream, &ToRank::Take { number: 1 }).await.unwrap();
            // Nothing is read until the next offer waits to be sent.
            let (breath, deadline) = (std::time::Duration::from_millis(10), soon());
            while !has_given_up.load(Ordering::SeqCst) {
                assert!(now() < deadline);
                tokio::time::sleep(breath).await;
            }
            frame::write_message(&mut stream, &ToRank::Order(point(2))).await.unwrap();
            tokio::time::sleep(30 * breath).await;
            let mut offers = vec![1];
            loop {
                match frame::read_frame(&mut stream, LARGEST_MESSAGE).await.unwrap() {
                    (FrameKind::Piece, _) => {
                        assert_eq!(offers, [1], "a piece came after the next offer");
                    }
                    (_, said) => match serde_json::from_slice(&said).unwrap() {
                        ToCoordinator::Offer { number, .. } => {
                            offers.push(number);
                            is_heard.store(number == 2, Ordering::SeqCst);
                        }
                        ToCoordinator::Cut(_) if offers == [1, 2] => break,
                        _ => {}
                    },
                }
            }
        });
        drop(work.join().unwrap());
    });
}

#[test]
fn what_was_given_up_does_not_stand_in_the_way_of_the_next_order() {
    let (coordinator, into) = (lead(2), tempfile::tempdir().unwrap());
    let mut rogue = Rogue::running(&coordinator);
    let order = |rogue: &mut Rogue, number: u64, bytes: &[u8]| {
        std::thread::scope(|scope| {
            let into = into.path().join(number.to_string());
            let got = scope.spawn(|| coordinator.collect(move |_| into.clone(), soon(), |_| true));
            rogue.offer_of(number, &[("plan.toml", 2)]);
            rogue.hear(|it| matches!(it, ToRank::Take { .. }));
            rogue.say(&ToCoordinator::File { name: "plan.toml".to_owned() });
            rogue.send(FrameKind::Piece, bytes);
            if number > 1 {
                rogue.say(&ToCoordinator::Sent);
            }
            got.join().unwrap().remove(0).1
        })
    };
    // It was told that its files are not wanted, and its last word was never sent.
    let refused = order(&mut rogue, 1, b"abc");
    assert!(refused.unwrap_err().contains("longer than announced"));
    rogue.begin(&coordinator, point(2));
    let got = order(&mut rogue, 2, b"ab");
    assert!(got.is_ok(), "{got:?}");
}

#[test]
fn a_coordinator_that_breaks_the_rules_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    for (kind, said) in
        [(FrameKind::Piece, &b"ab"[..]), (FrameKind::Message, b"[["), (FrameKind::Message, b"")]
    {
        let joining = std::thread::spawn(move || join(address, &settings(1, 2)).unwrap());
        let _stream = runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::write_frame(&mut stream, kind, said).await.unwrap();
            stream
        });
        let rank = joining.join().unwrap();
        let why = "received data of a different protocol".to_owned();
        assert_eq!(rank.next_order(LONG), NextOrder::Lost(why));
    }
}

/// Says something again and again, until the other end is gone.
async fn flood(stream: TlsStream<TcpStream>, what: &impl serde::Serialize) {
    let said = serde_json::to_vec(what).unwrap();
    let frame = [&(1 + said.len() as u32).to_be_bytes()[..], &[1], &said].concat();
    let many = frame.repeat(10_000);
    // Read too: unread data would block the other end.
    let (mut from, mut to) = tokio::io::split(stream);
    let reading =
        tokio::spawn(async move { while matches!(from.read(&mut [0; 4096]).await, Ok(1..)) {} });
    while to.write_all(&many).await.is_ok() {}
    reading.abort();
}

/// Clocks that take their time to be read, so that there is always something left to hear.
fn slow() -> (Nanos, Nanos) {
    pause(Nanos::from_millis(1));
    now_and_unix()
}

#[test]
fn a_rank_leaves_a_coordinator_that_never_stops() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let coordinator = std::thread::spawn(move || {
        runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::write_message(&mut stream, &ToRank::Order(run(1))).await.unwrap();
            flood(stream, &ToRank::Beat).await;
        });
    });
    let rank = join(address, &RankSettings { clocks: slow, ..settings(1, 2) }).unwrap();
    assert_eq!(taken(&rank), run(1));
    let begin = now();
    drop(rank);
    assert!(now() - begin < Nanos::from_millis(10_000));
    coordinator.join().unwrap();
}

#[test]
fn a_rank_that_never_stops_delays_no_other() {
    let coordinator = lead(3);
    let Rogue { runtime, stream } = Rogue::joined(&coordinator, 3);
    let flooding =
        std::thread::spawn(move || runtime.block_on(flood(stream, &ToCoordinator::Beat)));
    let second = joined(&coordinator, 2, 3);
    coordinator.prepare(run(1)).unwrap();
    make_ready(&second);
    until("its word", || state_of(&coordinator, 2).phase == RankPhase::Ready);
    let go = coordinator.announce_start(Nanos::ZERO);
    assert_eq!(go.ranks, [2]);
    assert!(matches!(second.wait_for_start(LONG), Start::At { .. }));
    let begin = now();
    coordinator.announce_end();
    drop(coordinator);
    assert!(now() - begin < Nanos::from_millis(10_000));
    flooding.join().unwrap();
}
