//! Those who do not belong, and what happens to frames on their way.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::relay::{Do, Relay};
use super::*;
use crate::Refusal;

/// Waits until rank 0 says this of those that it turned away.
fn until_said(leader: &Leader, sentences: &[(&str, u64)]) {
    until("the sentences", || {
        let said = leader.turned_away();
        said.iter()
            .map(|(sentence, times)| (sentence.as_str(), *times))
            .eq(sentences.iter().copied())
    });
}

fn refused(leader: &Leader, settings: &MemberSettings) -> Refusal {
    match join(leader.address(), settings) {
        Err(FleetError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_token_is_refused_and_counted() {
    let leader = lead(2);
    let other = Some(Token::new("another-secret-than-theirs").unwrap());
    assert_eq!(
        refused(&leader, &MemberSettings { token: other, ..settings(1, 2) }),
        Refusal::Token
    );
    let none = MemberSettings { token: None, ..settings(1, 2) };
    assert_eq!(refused(&leader, &none), Refusal::Token);
    until_said(&leader, &[("someone at 127.0.0.1 has another token", 2)]);
    assert_eq!(leader.members().len(), 0);
    joined(&leader, 1, 2);
}

#[test]
fn without_a_token_there_is_the_loopback_and_nothing_else() {
    let open = LeaderSettings { token: None, ..leader_of(2) };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = Leader::listen(address.parse().unwrap(), open.clone()).unwrap_err();
        assert!(matches!(refused, FleetError::TokenRequired(_)), "{refused}");
        assert!(refused.hint().unwrap().contains("GOODPUT_FLEET_TOKEN"));
    }
    let bare = MemberSettings { token: None, ..settings(1, 2) };
    let refused = Member::join("192.0.2.1:1", &bare, |_| true).unwrap_err();
    assert!(matches!(refused, FleetError::TokenRequired(_)), "{refused}");
    let leader = Leader::listen("127.0.0.1:0".parse().unwrap(), open).unwrap();
    join(leader.address(), &bare).unwrap();
    // One with a token is in another fleet.
    assert_eq!(refused_at(&leader), Refusal::Token);
}

fn refused_at(leader: &Leader) -> Refusal {
    refused(leader, &settings(1, 2))
}

#[test]
fn who_is_out_of_place_is_told_why() {
    let leader = lead(3);
    let _first = joined(&leader, 1, 3);
    assert_eq!(refused(&leader, &settings(1, 3)), Refusal::Taken(1));
    assert_eq!(refused(&leader, &settings(1, 4)), Refusal::Count { leader: 3, member: 4 });
    assert_eq!(refused(&leader, &settings(0, 3)), Refusal::Zero);
    let old = MemberSettings { version: "0.9.0".to_owned(), ..settings(2, 3) };
    let refusal = refused(&leader, &old).to_string();
    assert!(refusal.contains("1.0.0") && refusal.contains("0.9.0"), "{refusal}");
    let said = [
        ("rank 1 at 127.0.0.1 came a second time", 1),
        ("rank 1 at 127.0.0.1 is one of 4 clients, and there are 3 here", 1),
        ("rank 0 at 127.0.0.1 cannot join: there is one rank 0, which listens", 1),
        ("someone at 127.0.0.1 runs goodput 0.9.0, and this is goodput 1.0.0", 1),
    ];
    until_said(&leader, &said);
    joined(&leader, 2, 3);
}

/// Joins through a relay, lets it do something to one frame, and says what rank 0 makes of it.
fn after(what: Do) -> Phase {
    let leader = lead(2);
    let relay = Relay::to(leader.address());
    let member = join(relay.address, &settings(1, 2)).unwrap();
    begin(&leader, &[&member], run(1));
    relay.set(what);
    until("the loss", || is_lost(&leader, 1));
    until("the loss at the member", || member.is_lost());
    super::member(&leader, 1).phase
}

#[test]
fn a_frame_that_was_changed_or_repeated_ends_the_conversation() {
    let tampered = "a frame was changed, repeated or left out on its way";
    assert_eq!(after(Do::Change), Phase::Lost(tampered.to_owned()));
    assert_eq!(after(Do::Repeat), Phase::Lost(tampered.to_owned()));
}

#[test]
fn a_conversation_played_again_is_not_believed() {
    let leader = lead(2);
    // All that a member says, as someone on the wire has seen it.
    let relay = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, target) = (relay.local_addr().unwrap(), leader.address());
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
    let member = join(address, &settings(1, 2)).unwrap();
    until("its clock", || member.clock().is_some());
    drop(member);
    let seen = recorder.join().unwrap();
    assert!(seen.len() > 500);
    until("its leave", || is_lost(&leader, 1));
    let mut again = TcpStream::connect(target).unwrap();
    again.write_all(&seen).unwrap();
    until_said(&leader, &[("someone at 127.0.0.1 has another token", 1)]);
    assert!(!super::member(&leader, 1).is_there);
}

#[test]
fn garbage_is_dropped_and_the_others_are_served() {
    let leader = lead(2);
    let large = u32::MAX.to_be_bytes();
    let nested = [&100_001u32.to_be_bytes()[..], &[0], &[b'['; 4000]].concat();
    let deep = [&4001u32.to_be_bytes()[..], &[0], &[b'['; 4000]].concat();
    let text = [&3u32.to_be_bytes()[..], &[0], b"{}"].concat();
    let tagged = [&40u32.to_be_bytes()[..], &[1; 40]].concat();
    let cases: [&[u8]; 8] =
        [b"GET / HTTP/1.1\r\n\r\n", &large, &[0; 4], &nested, &deep, &text, &tagged, &[0, 0]];
    for (done, bytes) in cases.iter().enumerate() {
        let mut stranger = TcpStream::connect(leader.address()).unwrap();
        stranger.write_all(bytes).unwrap();
        // It may have been thrown out by now.
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let _ = stranger.read_to_end(&mut Vec::new());
        let times = done as u64 + 1;
        until_said(&leader, &[("someone at 127.0.0.1 spoke something else, or broke off", times)]);
    }
    joined(&leader, 1, 2);
}

#[test]
fn those_who_say_nothing_keep_nobody_out() {
    let mut patient = leader_of(2);
    patient.limits.proof = Nanos(LONG.0 * 100);
    let leader = Leader::listen("127.0.0.1:0".parse().unwrap(), patient).unwrap();
    // More than may be strangers at once; each says a byte and waits.
    let strangers: Vec<_> = (0..200)
        .map(|_| {
            let mut stranger = TcpStream::connect(leader.address()).unwrap();
            stranger.write_all(&[0]).unwrap();
            stranger
        })
        .collect();
    joined(&leader, 1, 2);
    // It was the 201st; 64 may be there, and the one that was missing.
    until_said(&leader, &[("someone at 127.0.0.1 proved nothing in time", 136)]);
    drop(strangers);
}

#[test]
fn a_plan_that_fits_no_message_is_refused_here() {
    let leader = lead(2);
    let large = Order { plan: "x".repeat(crate::LARGEST_MESSAGE), ..run(1) };
    assert!(matches!(leader.prepare(large), Err(FleetError::TooLarge { .. })));
    let fits = Order { plan: "x".repeat(crate::LARGEST_MESSAGE - 8192), ..run(1) };
    leader.prepare(fits.clone()).unwrap();
    assert_eq!(taken(&joined(&leader, 1, 2)), fits);
}
