//! Members, and a leader, that have the token and break the rules.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsStream;

use super::*;
use crate::channel::{self, Channel};
use crate::frame::{self, FrameKind, LARGEST_MESSAGE};
use crate::message::{Hello, ToLeader, ToMember};

/// A member that says what the test wants.
struct Rogue {
    runtime: Runtime,
    stream: TlsStream<TcpStream>,
}

impl Rogue {
    /// Rank 1 of this many.
    fn joined(leader: &Leader, of: u32) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let stream = TcpStream::connect(leader.address()).await.unwrap();
            let mut channel = Channel::connect(stream).await.unwrap();
            let hello = Hello { rank: 1, of, host: String::new() };
            channel.join(&token(), "1.0.0", &hello).await.unwrap();
            channel.stream
        });
        Self { runtime, stream }
    }

    /// Rank 1 of 2, as far as the start of order 1.
    fn running(leader: &Leader) -> Self {
        let mut rogue = Self::joined(leader, 2);
        rogue.begin(leader, point(1));
        rogue
    }

    /// As far as the start of an order.
    fn begin(&mut self, leader: &Leader, order: Order) {
        let number = order.number;
        leader.prepare(order).unwrap();
        self.say(&ToLeader::Ready { number });
        // Clocks are compared when it joins, and before the start.
        if number == 1 {
            self.answer(|it| matches!(it, ToMember::Clock(_)));
        }
        until("its word", || member(leader, 1).phase == MemberPhase::Ready);
        std::thread::scope(|scope| {
            let go = scope.spawn(|| leader.go(Nanos::ZERO));
            self.answer(|it| matches!(it, ToMember::Go { .. }));
            assert_eq!(go.join().unwrap().ranks, [1]);
        });
    }

    fn send(&mut self, kind: FrameKind, said: &[u8]) {
        // Rank 0 may have closed.
        let _ = self.runtime.block_on(frame::write(&mut self.stream, kind, said));
    }

    fn say(&mut self, what: &ToLeader) {
        self.send(FrameKind::Message, &serde_json::to_vec(what).unwrap());
    }

    /// Answers for its clock until a message of a kind comes.
    fn answer(&mut self, is_it: impl Fn(&ToMember) -> bool) {
        loop {
            match self.hear(|it| is_it(it) || matches!(it, ToMember::Ping { .. })) {
                ToMember::Ping { id } => {
                    self.say(&ToLeader::Pong { id, mono: now(), wall: now() });
                }
                _ => return,
            }
        }
    }

    /// The next message of a kind.
    fn hear(&mut self, is_it: impl Fn(&ToMember) -> bool) -> ToMember {
        loop {
            let heard = frame::hear(&mut self.stream, LARGEST_MESSAGE);
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
        self.say(&ToLeader::Offer { number, files });
    }

    fn file(&mut self, name: &str, bytes: &[u8]) {
        self.say(&ToLeader::File { name: name.to_owned() });
        self.send(FrameKind::Piece, bytes);
        self.say(&ToLeader::Sent);
    }

    fn refusal(&mut self) -> String {
        match self.hear(|it| matches!(it, ToMember::Taken { .. })) {
            ToMember::Taken { refused: Some(why), .. } => why,
            other => panic!("{other:?}"),
        }
    }
}

type Act = fn(&mut Rogue);

#[test]
fn only_files_of_a_run_are_taken() {
    for name in ["../plan.toml", "/etc/passwd", "report.html", "", "plan.toml/x", "PLAN.TOML"] {
        let leader = lead(2);
        let mut rogue = Rogue::running(&leader);
        rogue.offer(&[("plan.toml", 1), (name, 1)]);
        assert!(rogue.refusal().contains("is not a file of a run"), "{name}");
    }
    let leader = lead(2);
    let mut rogue = Rogue::running(&leader);
    rogue.offer(&[("plan.toml", 1), ("plan.toml", 1)]);
    assert!(rogue.refusal().contains("twice"));
    // Nor are those counted that are larger than numbers go.
    let leader = lead(2);
    let mut rogue = Rogue::running(&leader);
    rogue.offer(&[("plan.toml", u64::MAX), ("server.log", u64::MAX)]);
    assert!(rogue.refusal().contains("exceed the limit"));
}

/// What rank 0 got and what it says, when a member that has offered a plan of two bytes does this.
fn sending(what: impl FnOnce(&mut Rogue)) -> (Result<PathBuf, String>, Option<String>, usize) {
    let (leader, into) = (lead(2), tempfile::tempdir().unwrap());
    let mut rogue = Rogue::running(&leader);
    let got = std::thread::scope(|scope| {
        let got = scope.spawn(|| leader.collect(|_| into.path().join("1"), soon(), |_| true));
        rogue.offer(&[("plan.toml", 2)]);
        rogue.hear(|it| matches!(it, ToMember::Take { .. }));
        what(&mut rogue);
        got.join().unwrap()
    });
    let said = rogue.hear(|it| matches!(it, ToMember::Taken { .. }));
    let ToMember::Taken { refused, .. } = said else { panic!() };
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
            it.say(&ToLeader::File { name: "plan.toml".to_owned() });
            it.send(FrameKind::Piece, b"ab");
            // Once is enough.
            it.file("plan.toml", b"ab");
        }),
        ("without its file", |it| it.send(FrameKind::Piece, b"ab")),
        ("some offered files did not arrive", |it| it.say(&ToLeader::Sent)),
        ("it gave up: the disk", |it| it.say(&ToLeader::Cut("the disk".to_owned()))),
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
        ("another protocol", |it| it.send(FrameKind::Message, b"[[[[")),
        ("another protocol", |it| it.send(FrameKind::Message, &[0xff; 100])),
        ("not requested", |it| it.send(FrameKind::Piece, b"ab")),
        ("not requested", |it| it.say(&ToLeader::File { name: "plan.toml".to_owned() })),
        ("exceeds the limit", |it| it.send(FrameKind::Message, &vec![b' '; LARGEST_MESSAGE + 1])),
    ];
    for (why, act) in cases {
        let leader = lead(2);
        let mut rogue = Rogue::running(&leader);
        act(&mut rogue);
        until("its loss", || is_lost(&leader, 1));
        let MemberPhase::Lost(told) = member(&leader, 1).phase else { panic!() };
        assert!(told.contains(why), "{why}: {told}");
    }
}

#[test]
fn words_about_other_orders_and_words_too_many_change_nothing() {
    let leader = lead(2);
    let mut rogue = Rogue::running(&leader);
    rogue.say(&ToLeader::Done { number: 2, summary: String::new() });
    rogue.say(&ToLeader::Ready { number: 1 });
    rogue.say(&ToLeader::Cannot { number: 2, why: "after all".to_owned() });
    rogue.say(&ToLeader::Pong { id: u64::MAX, mono: Nanos(u64::MAX), wall: Nanos::ZERO });
    rogue.say(&ToLeader::Sent);
    rogue.say(&ToLeader::Totals { number: 7, totals: Box::default() });
    rogue.say(&ToLeader::Totals { number: 1, totals: Box::default() });
    until("the last word", || !leader.totals().is_empty());
    assert_eq!(member(&leader, 1).phase, MemberPhase::Running);
    rogue.say(&ToLeader::Done { number: 1, summary: "x".repeat(100_000) });
    until("the end", || member(&leader, 1).phase == MemberPhase::Done);
    assert_eq!(member(&leader, 1).summary.unwrap().len(), 4096);
}

#[test]
fn a_peer_that_does_not_read_is_lost_and_delays_no_other() {
    let mut patient = leader_of(2);
    patient.limits.silence = LONG;
    let leader = Leader::listen("127.0.0.1:0".parse().unwrap(), patient).unwrap();
    let _rogue = Rogue::running(&leader);
    let plan = "x".repeat(LARGEST_MESSAGE - 8192);
    // Enough for the buffers of the system and the queue.
    for number in 2..100 {
        leader.prepare(Order { plan: plan.clone(), ..point(number) }).unwrap();
    }
    assert_eq!(
        member(&leader, 1).phase,
        MemberPhase::Lost("it does not read its messages".to_owned())
    );
}

/// The next member that comes, let in as rank 0 does it.
async fn admitted(listener: &TcpListener) -> TlsStream<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    let mut channel = Channel::accept(stream, &channel::server().unwrap()).await.unwrap();
    channel.admit(&token(), "1.0.0").await.unwrap();
    let welcome = ToMember::Welcome { fleet: String::new(), silence: Nanos(u64::MAX) };
    frame::say(&mut channel.stream, &welcome).await.unwrap();
    channel.stream
}

/// Files of a member whose rank 0 has given them up, and gives the next order, while they are under
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
            let member = join(address, &settings(1, 2)).unwrap();
            assert_eq!(taken(&member), point(1));
            let mut looks = 0;
            let given_up = member.upload(folder.path(), LONG, || {
                looks += 1;
                // By now nothing more fits into the connection.
                looks < 300
            });
            assert!(matches!(given_up, Err(FleetError::Upload(_))), "{given_up:?}");
            has_given_up.store(true, Ordering::SeqCst);
            assert_eq!(taken(&member), point(2));
            let _ = member.upload(folder.path(), LONG, || !is_heard.load(Ordering::SeqCst));
            member
        });
        runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::say(&mut stream, &ToMember::Order(point(1))).await.unwrap();
            while !matches!(
                frame::hear(&mut stream, LARGEST_MESSAGE).await.unwrap(),
                ToLeader::Offer { .. }
            ) {}
            frame::say(&mut stream, &ToMember::Take { number: 1 }).await.unwrap();
            // Nothing is read until the next offer waits to be sent.
            let (breath, deadline) = (std::time::Duration::from_millis(10), soon());
            while !has_given_up.load(Ordering::SeqCst) {
                assert!(now() < deadline);
                tokio::time::sleep(breath).await;
            }
            frame::say(&mut stream, &ToMember::Order(point(2))).await.unwrap();
            tokio::time::sleep(30 * breath).await;
            let mut offers = vec![1];
            loop {
                match frame::read(&mut stream, LARGEST_MESSAGE).await.unwrap() {
                    (FrameKind::Piece, _) => {
                        assert_eq!(offers, [1], "a piece came after the next offer");
                    }
                    (_, said) => match serde_json::from_slice(&said).unwrap() {
                        ToLeader::Offer { number, .. } => {
                            offers.push(number);
                            is_heard.store(number == 2, Ordering::SeqCst);
                        }
                        ToLeader::Cut(_) if offers == [1, 2] => break,
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
    let (leader, into) = (lead(2), tempfile::tempdir().unwrap());
    let mut rogue = Rogue::running(&leader);
    let order = |rogue: &mut Rogue, number: u64, bytes: &[u8]| {
        std::thread::scope(|scope| {
            let into = into.path().join(number.to_string());
            let got = scope.spawn(|| leader.collect(move |_| into.clone(), soon(), |_| true));
            rogue.offer_of(number, &[("plan.toml", 2)]);
            rogue.hear(|it| matches!(it, ToMember::Take { .. }));
            rogue.say(&ToLeader::File { name: "plan.toml".to_owned() });
            rogue.send(FrameKind::Piece, bytes);
            if number > 1 {
                rogue.say(&ToLeader::Sent);
            }
            got.join().unwrap().remove(0).1
        })
    };
    // It was told that its files are not wanted, and its last word was never sent.
    let refused = order(&mut rogue, 1, b"abc");
    assert!(refused.unwrap_err().contains("longer than announced"));
    rogue.begin(&leader, point(2));
    let got = order(&mut rogue, 2, b"ab");
    assert!(got.is_ok(), "{got:?}");
}

#[test]
fn a_leader_that_breaks_the_rules_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    for (kind, said) in
        [(FrameKind::Piece, &b"ab"[..]), (FrameKind::Message, b"[["), (FrameKind::Message, b"")]
    {
        let joining = std::thread::spawn(move || join(address, &settings(1, 2)).unwrap());
        let _stream = runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::write(&mut stream, kind, said).await.unwrap();
            stream
        });
        let member = joining.join().unwrap();
        let why = "received data of another protocol".to_owned();
        assert_eq!(member.next(LONG), Next::Lost(why));
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
fn a_member_leaves_a_leader_that_never_stops() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let leader = std::thread::spawn(move || {
        runtime.block_on(async {
            let mut stream = admitted(&listener).await;
            frame::say(&mut stream, &ToMember::Order(run(1))).await.unwrap();
            flood(stream, &ToMember::Beat).await;
        });
    });
    let member = join(address, &MemberSettings { clocks: slow, ..settings(1, 2) }).unwrap();
    assert_eq!(taken(&member), run(1));
    let begin = now();
    drop(member);
    assert!(now() - begin < Nanos::from_millis(10_000));
    leader.join().unwrap();
}

#[test]
fn a_member_that_never_stops_delays_no_other() {
    let leader = lead(3);
    let Rogue { runtime, stream } = Rogue::joined(&leader, 3);
    let flooding = std::thread::spawn(move || runtime.block_on(flood(stream, &ToLeader::Beat)));
    let second = joined(&leader, 2, 3);
    leader.prepare(run(1)).unwrap();
    make_ready(&second);
    until("its word", || member(&leader, 2).phase == MemberPhase::Ready);
    let go = leader.go(Nanos::ZERO);
    assert_eq!(go.ranks, [2]);
    assert!(matches!(second.wait_go(LONG), Start::At { .. }));
    let begin = now();
    leader.end();
    drop(leader);
    assert!(now() - begin < Nanos::from_millis(10_000));
    flooding.join().unwrap();
}
