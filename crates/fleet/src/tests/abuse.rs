//! Those who do not belong, and what happens to words on their way.

use std::io::{Read, Write};
use std::net::TcpStream;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::relay::{Do, Relay};
use super::*;
use crate::Refusal;
use crate::channel::{self, Channel};
use crate::frame::{self, LARGEST_MESSAGE};
use crate::message::HelloAnswer;

/// Waits until rank 0 says this of those that it turned away.
fn until_said(coordinator: &Coordinator, sentences: &[(&str, u64)]) {
    until("the sentences", || {
        let said = coordinator.turned_away();
        said.iter()
            .map(|(sentence, times)| (sentence.as_str(), *times))
            .eq(sentences.iter().copied())
    });
}

fn refused(coordinator: &Coordinator, settings: &RankSettings) -> Refusal {
    match join(coordinator.address(), settings) {
        Err(FleetError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_token_is_refused_and_counted() {
    let coordinator = lead(2);
    let other = Some(Token::new("another-secret-than-theirs").unwrap());
    assert_eq!(
        refused(&coordinator, &RankSettings { token: other, ..settings(1, 2) }),
        Refusal::Token
    );
    let none = RankSettings { token: None, ..settings(1, 2) };
    assert_eq!(refused(&coordinator, &none), Refusal::Token);
    until_said(&coordinator, &[("a connection from 127.0.0.1 has another token", 2)]);
    assert_eq!(coordinator.ranks().len(), 0);
    joined(&coordinator, 1, 2);
}

#[test]
fn without_a_token_there_is_the_loopback_and_nothing_else() {
    let open = CoordinatorSettings { token: None, ..coordinator_of(2) };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = Coordinator::listen(address.parse().unwrap(), open.clone()).unwrap_err();
        assert!(matches!(refused, FleetError::TokenRequired(_)), "{refused}");
        assert!(refused.hint().unwrap().contains("GOODPUT_FLEET_TOKEN"));
    }
    let bare = RankSettings { token: None, ..settings(1, 2) };
    let refused = JoinedRank::join("192.0.2.1:1", &bare, |_| true).unwrap_err();
    assert!(matches!(refused, FleetError::TokenRequired(_)), "{refused}");
    let coordinator = Coordinator::listen("127.0.0.1:0".parse().unwrap(), open).unwrap();
    join(coordinator.address(), &bare).unwrap();
    // One with a token is in another fleet.
    assert_eq!(refused_at(&coordinator), Refusal::Token);
}

fn refused_at(coordinator: &Coordinator) -> Refusal {
    refused(coordinator, &settings(1, 2))
}

#[test]
fn who_is_out_of_place_is_told_why() {
    let coordinator = lead(3);
    let _first = joined(&coordinator, 1, 3);
    assert_eq!(refused(&coordinator, &settings(1, 3)), Refusal::Taken(1));
    assert_eq!(refused(&coordinator, &settings(1, 4)), Refusal::Count { coordinator: 3, rank: 4 });
    assert_eq!(refused(&coordinator, &settings(0, 3)), Refusal::Zero);
    let old = RankSettings { version: "0.9.0".to_owned(), ..settings(2, 3) };
    let refusal = refused(&coordinator, &old).to_string();
    assert!(refusal.contains("1.0.0") && refusal.contains("0.9.0"), "{refusal}");
    let said = [
        ("rank 1 at 127.0.0.1 joined a second time", 1),
        ("rank 1 at 127.0.0.1 is one of 4 ranks, and this fleet has 3", 1),
        ("rank 0 at 127.0.0.1 cannot join as rank 0, the coordinator", 1),
        ("a connection from 127.0.0.1 runs goodput 0.9.0, and this is goodput 1.0.0", 1),
    ];
    until_said(&coordinator, &said);
    joined(&coordinator, 2, 3);
}

/// Joins through a relay, lets it do something to one record, and says what rank 0 makes of it.
fn after(what: Do) -> RankPhase {
    let coordinator = lead(2);
    let relay = Relay::to(coordinator.address());
    let rank = join(relay.address, &settings(1, 2)).unwrap();
    begin(&coordinator, &[&rank], run(1));
    relay.set(what);
    until("the loss", || is_lost(&coordinator, 1));
    until("the loss at the rank", || rank.is_lost());
    state_of(&coordinator, 1).phase
}

#[test]
fn what_is_changed_repeated_or_left_out_ends_the_conversation() {
    let tampered = "data was changed, repeated or dropped on the way";
    for what in [Do::Change, Do::Repeat, Do::Omit] {
        assert_eq!(after(what), RankPhase::Lost(tampered.to_owned()), "{what:?}");
    }
}

#[test]
fn a_conversation_played_again_is_not_believed() {
    let coordinator = lead(2);
    // All that a rank says, as someone on the wire has seen it.
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, target) = (relay.local_addr().unwrap(), coordinator.address());
    let recorder = std::thread::spawn(move || {
        let (mut from, _) = relay.accept().unwrap();
        let mut to = TcpStream::connect(target).unwrap();
        let (mut back, mut forth) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
        let mut seen = Vec::new();
        let mut piece = [0; 1024];
        while let Ok(read) = from.read(&mut piece) {
            if read == 0 || to.write_all(&piece[..read]).is_err() {
                break;
            }
            seen.extend_from_slice(&piece[..read]);
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
        seen
    });
    let rank = join(address, &settings(1, 2)).unwrap();
    until("its clock", || rank.clock().is_some());
    drop(rank);
    let seen = recorder.join().unwrap();
    assert!(seen.len() > 500);
    until("its leave", || is_lost(&coordinator, 1));
    let mut again = TcpStream::connect(target).unwrap();
    again.write_all(&seen).unwrap();
    until_said(
        &coordinator,
        &[("a connection from 127.0.0.1 used a different protocol, or closed the connection", 1)],
    );
    assert!(!state_of(&coordinator, 1).is_there);
}

/// Who stands between two ends, with a key of its own and a connection with each, and passes on all
/// that they say.
#[test]
fn a_man_in_the_middle_is_refused() {
    let coordinator = lead(2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let (address, target) = (listener.local_addr().unwrap(), coordinator.address());
    let joining = std::thread::spawn(move || join(address, &settings(1, 2)));
    let seen = runtime.block_on(async move {
        let (near, _) = listener.accept().await.unwrap();
        let near = Channel::accept(near, &channel::server_config().unwrap()).await.unwrap();
        let far = tokio::net::TcpStream::connect(target).await.unwrap();
        let far = Channel::connect(far).await.unwrap();
        let (mut near, mut far) = (near.stream, far.stream);
        let mut seen = Vec::new();
        for _ in 0..2 {
            let (kind, said) = frame::read_frame(&mut near, LARGEST_MESSAGE).await.unwrap();
            frame::write_frame(&mut far, kind, &said).await.unwrap();
            seen.extend(said);
        }
        let (kind, said) = frame::read_frame(&mut far, LARGEST_MESSAGE).await.unwrap();
        frame::write_frame(&mut near, kind, &said).await.unwrap();
        seen
    });
    let refused = joining.join().unwrap().unwrap_err();
    assert!(matches!(refused, FleetError::Refused(Refusal::Token)), "{refused}");
    until_said(&coordinator, &[("a connection from 127.0.0.1 has another token", 1)]);
    assert!(coordinator.ranks().is_empty());
    // What it has seen says the version, and neither who the rank is nor the token.
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.contains("1.0.0") && !seen.contains("host") && !seen.contains(SECRET), "{seen}");
}

#[test]
fn who_poses_as_rank_0_is_an_impostor() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let joining = std::thread::spawn(move || join(address, &settings(1, 2)));
    runtime.block_on(async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut channel =
            Channel::accept(stream, &channel::server_config().unwrap()).await.unwrap();
        for _ in 0..2 {
            frame::read_frame(&mut channel.stream, LARGEST_MESSAGE).await.unwrap();
        }
        frame::write_message(&mut channel.stream, &HelloAnswer::Proof([7; 32])).await.unwrap();
        let rest = frame::read_frame(&mut channel.stream, LARGEST_MESSAGE).await;
        assert!(rest.is_err(), "{rest:?}");
    });
    assert!(matches!(joining.join().unwrap(), Err(FleetError::Impostor)));
}

/// A stranger that says this, in the open or within TLS, and waits to be thrown out.
fn say_as_stranger(coordinator: &Coordinator, bytes: &[u8], is_within_tls: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stream = tokio::net::TcpStream::connect(coordinator.address()).await.unwrap();
        // It may be thrown out at any time.
        if is_within_tls {
            let mut stream = Channel::connect(stream).await.unwrap().stream;
            let _ = (stream.write_all(bytes).await, stream.shutdown().await);
            let _ = stream.read_to_end(&mut Vec::new()).await;
        } else {
            let _ = (stream.write_all(bytes).await, stream.shutdown().await);
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
}

#[test]
fn garbage_is_dropped_and_the_others_are_served() {
    let coordinator = lead(2);
    let large = [&u32::MAX.to_be_bytes()[..], &[1]].concat();
    let nested = [&100_001u32.to_be_bytes()[..], &[1], &[b'['; 4000]].concat();
    let deep = [&4001u32.to_be_bytes()[..], &[1], &[b'['; 4000]].concat();
    let text = [&3u32.to_be_bytes()[..], &[1], b"{}"].concat();
    let piece = [&40u32.to_be_bytes()[..], &[2; 40]].concat();
    // A record of TLS that announces more than there may be.
    let record = [0x16, 3, 3, 0xff, 0xff];
    let cases: [&[u8]; 9] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &large,
        &[0; 5],
        &nested,
        &deep,
        &text,
        &piece,
        &record,
        &[0, 0],
    ];
    let mut times = 0;
    for bytes in cases {
        for is_within_tls in [false, true] {
            say_as_stranger(&coordinator, bytes, is_within_tls);
            times += 1;
            let said =
                "a connection from 127.0.0.1 used a different protocol, or closed the connection";
            until_said(&coordinator, &[(said, times)]);
        }
    }
    joined(&coordinator, 1, 2);
}

#[test]
fn silent_connections_keep_no_rank_out() {
    let mut patient = coordinator_of(2);
    patient.limits.proof = Nanos(LONG.0 * 100);
    let coordinator = Coordinator::listen("127.0.0.1:0".parse().unwrap(), patient).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // More than may be strangers at once. Each says a byte and waits; some come as far as TLS.
    let (mut open, mut within) = (Vec::new(), Vec::new());
    for number in 0..200 {
        let mut stranger = TcpStream::connect(coordinator.address()).unwrap();
        if number % 10 == 0 {
            stranger.set_nonblocking(true).unwrap();
            let connecting = async {
                Channel::connect(tokio::net::TcpStream::from_std(stranger).unwrap()).await
            };
            within.push(runtime.block_on(connecting).unwrap());
        } else {
            stranger.write_all(&[0x16]).unwrap();
            open.push(stranger);
        }
    }
    joined(&coordinator, 1, 2);
    // It was the 201st; 64 may be there, and the one that was missing.
    until_said(&coordinator, &[("a connection from 127.0.0.1 did not authenticate in time", 136)]);
    drop((open, within));
}

#[test]
fn a_plan_that_fits_no_message_is_refused_here() {
    let coordinator = lead(2);
    let large = Order { plan: "x".repeat(LARGEST_MESSAGE), ..run(1) };
    assert!(matches!(coordinator.prepare(large), Err(FleetError::TooLarge { .. })));
    let fits = Order { plan: "x".repeat(LARGEST_MESSAGE - 8192), ..run(1) };
    coordinator.prepare(fits.clone()).unwrap();
    assert_eq!(taken(&joined(&coordinator, 1, 2)), fits);
}
