//! Members, and a leader, that have the token and break the rules.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use super::*;
use crate::PROTOCOL;
use crate::crypto::Bytes32;
use crate::frame::{Kind, LARGEST_MESSAGE};
use crate::handshake::{self, Session};
use crate::message::{Hello, ToLeader, ToMember};

/// A member that says what the test wants.
struct Rogue {
    runtime: Runtime,
    stream: TcpStream,
    session: Session,
}

impl Rogue {
    /// Rank 1 of 2, as far as the start of order 1.
    fn running(leader: &Leader) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (stream, session) = runtime.block_on(async {
            let mut stream = TcpStream::connect(leader.address()).await.unwrap();
            let hello = Hello {
                goodput_fleet: PROTOCOL,
                version: "1.0.0".to_owned(),
                rank: 1,
                of: 2,
                host: String::new(),
                nonce: [0; 32],
            };
            let token = Token::new(SECRET).unwrap();
            let session = handshake::join(&mut stream, &token, hello).await.unwrap();
            (stream, session)
        });
        let mut rogue = Self { runtime, stream, session };
        leader.prepare(run(1)).unwrap();
        rogue.say(&ToLeader::Ready { number: 1 });
        // Clocks are compared when it joins, and before the start.
        rogue.answer(|it| matches!(it, ToMember::Clock(_)));
        until("its word", || member(leader, 1).phase == Phase::Ready);
        std::thread::scope(|scope| {
            let go = scope.spawn(|| leader.go(Nanos::ZERO));
            rogue.answer(|it| matches!(it, ToMember::Go { .. }));
            assert_eq!(go.join().unwrap().ranks, [1]);
        });
        rogue
    }

    fn send(&mut self, kind: Kind, said: &[u8]) {
        let frame = self.session.send.seal(kind, said);
        // Rank 0 may have closed.
        let _ = self.runtime.block_on(self.stream.write_all(&frame));
    }

    fn say(&mut self, what: &ToLeader) {
        self.send(Kind::Message, &serde_json::to_vec(what).unwrap());
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
            let (_, said) =
                self.runtime.block_on(self.session.receive.read(&mut self.stream)).unwrap();
            let message = serde_json::from_slice(&said).unwrap();
            if is_it(&message) {
                return message;
            }
        }
    }

    fn offer(&mut self, files: &[(&str, u64)]) {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        self.say(&ToLeader::Offer { number: 1, files });
    }

    fn file(&mut self, name: &str, bytes: &[u8], sum: Bytes32) {
        self.say(&ToLeader::File { name: name.to_owned() });
        self.send(Kind::Piece, bytes);
        self.say(&ToLeader::Sum(sum));
    }

    fn refusal(&mut self) -> String {
        match self.hear(|it| matches!(it, ToMember::Taken { .. })) {
            ToMember::Taken { refused: Some(why), .. } => why,
            other => panic!("{other:?}"),
        }
    }
}

type Act = fn(&mut Rogue);

fn sum(bytes: &[u8]) -> Bytes32 {
    Sha256::digest(bytes).into()
}

#[test]
fn only_files_of_a_run_are_taken() {
    for name in ["../plan.toml", "/etc/passwd", "report.html", "", "plan.toml/x", "PLAN.TOML"] {
        let leader = lead(2);
        let mut rogue = Rogue::running(&leader);
        rogue.offer(&[("plan.toml", 1), (name, 1)]);
        assert!(rogue.refusal().contains("is no file of a run"), "{name}");
    }
    let leader = lead(2);
    let mut rogue = Rogue::running(&leader);
    rogue.offer(&[("plan.toml", 1), ("plan.toml", 1)]);
    assert!(rogue.refusal().contains("twice"));
    // Nor are those counted that are larger than numbers go.
    let leader = lead(2);
    let mut rogue = Rogue::running(&leader);
    rogue.offer(&[("plan.toml", u64::MAX), ("server.log", u64::MAX)]);
    assert!(rogue.refusal().contains("are allowed"));
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
    let whole = sending(|rogue| {
        rogue.file("plan.toml", b"ab", sum(b"ab"));
        rogue.say(&ToLeader::Sent);
    });
    assert!(matches!(whole, (Ok(_), None, 1)), "{whole:?}");
    let cases: [(&str, Act); 7] = [
        ("longer than was said", |it| it.file("plan.toml", b"abc", sum(b"abc"))),
        ("shorter than was said", |it| it.file("plan.toml", b"a", sum(b"a"))),
        ("another sum", |it| it.file("plan.toml", b"ab", sum(b"ac"))),
        ("was not offered", |it| it.file("server.log", b"ab", sum(b"ab"))),
        ("without its file", |it| it.send(Kind::Piece, b"ab")),
        ("not all files came", |it| it.say(&ToLeader::Sent)),
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
        ("not of this protocol", |it| it.send(Kind::Message, b"[[[[")),
        ("not of this protocol", |it| it.send(Kind::Message, &[0xff; 100])),
        ("nobody asked for", |it| it.send(Kind::Piece, b"ab")),
        ("nobody asked for", |it| it.say(&ToLeader::File { name: "plan.toml".to_owned() })),
        ("more than is allowed", |it| it.send(Kind::Message, &vec![b' '; LARGEST_MESSAGE + 1])),
    ];
    for (why, act) in cases {
        let leader = lead(2);
        let mut rogue = Rogue::running(&leader);
        act(&mut rogue);
        until("its loss", || is_lost(&leader, 1));
        let Phase::Lost(told) = member(&leader, 1).phase else { panic!() };
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
    assert_eq!(member(&leader, 1).phase, Phase::Running);
    rogue.say(&ToLeader::Done { number: 1, summary: "x".repeat(100_000) });
    until("the end", || member(&leader, 1).phase == Phase::Done);
    assert_eq!(member(&leader, 1).summary.unwrap().len(), 4096);
}

#[test]
fn who_does_not_read_is_lost_and_keeps_nobody_waiting() {
    let mut patient = leader_of(2);
    patient.limits.silence = LONG;
    let leader = Leader::listen("127.0.0.1:0".parse().unwrap(), patient).unwrap();
    let _rogue = Rogue::running(&leader);
    let plan = "x".repeat(LARGEST_MESSAGE - 8192);
    // Enough for the buffers of the system and the queue.
    for number in 2..100 {
        leader.prepare(Order { plan: plan.clone(), ..run(number) }).unwrap();
    }
    assert_eq!(
        member(&leader, 1).phase,
        Phase::Lost("it does not read what it is told".to_owned())
    );
}

#[test]
fn a_leader_that_breaks_the_rules_is_lost() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    for (kind, said) in [(Kind::Piece, &b"ab"[..]), (Kind::Message, b"[["), (Kind::Message, b"")] {
        let joining = std::thread::spawn(move || join(address, &settings(1, 2)).unwrap());
        let _stream = runtime.block_on(async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let token = Token::new(SECRET).unwrap();
            let (_, mut session) = handshake::admit(&mut stream, &token, "1.0.0").await.unwrap();
            let welcome = ToMember::Welcome { fleet: String::new(), silence: Nanos(u64::MAX) };
            let welcome = serde_json::to_vec(&welcome).unwrap();
            for (kind, said) in [(Kind::Message, &welcome[..]), (kind, said)] {
                stream.write_all(&session.send.seal(kind, said)).await.unwrap();
            }
            stream
        });
        let member = joining.join().unwrap();
        let why = "what came is not of this protocol".to_owned();
        assert_eq!(member.next(LONG), Next::Lost(why));
    }
}
