//! Who is there: each end proves that it has the token, without sending it.
//!
//! ```text
//! member → rank 0   hello: version, rank, N, a nonce
//! rank 0 → member   challenge: a nonce              (or refused: another version)
//! member → rank 0   proof over both, as a member
//! rank 0 → member   proof over both, as rank 0      (or refused: another token)
//! ```
//!
//! Proofs and the keys of both directions follow from the token and a hash of the first two frames as
//! they were sent, so nothing in them can be changed, and no proof fits another conversation.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::crypto::{Bytes32, is_same, nonce};
use crate::frame::{Direction, FrameError, read_plain, write_plain};
use crate::message::{Answer, Greeting, Hello, short};
use crate::{PROTOCOL, Refusal, Token};

/// Letters of a version that are shown.
const VERSION: usize = 64;
/// Letters of a host's name that are kept.
const HOST: usize = 256;

const MEMBER: &str = "goodput fleet: proof of a member";
const LEADER: &str = "goodput fleet: proof of rank 0";
const TO_LEADER: &str = "goodput fleet: key to rank 0";
const TO_MEMBER: &str = "goodput fleet: key to a member";

/// Both directions of a conversation between two that have proved themselves.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) send: Direction,
    pub(crate) receive: Direction,
}

/// Why two did not come together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{0}")]
    Refused(Refusal),
    #[error("what listens there does not know the token")]
    Impostor,
    #[error("{0}")]
    Frame(#[from] FrameError),
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::Frame(error.into())
    }
}

fn parse<T: DeserializeOwned>(said: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(said).map_err(|_| FrameError::Garbage)
}

async fn say(to: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> Result<Vec<u8>, Failed> {
    let said = serde_json::to_vec(what).map_err(std::io::Error::from)?;
    write_plain(to, &said).await?;
    Ok(said)
}

fn transcript(hello: &[u8], challenge: &[u8]) -> Bytes32 {
    let length = (hello.len() as u64).to_be_bytes();
    Sha256::new().chain_update(length).chain_update(hello).chain_update(challenge).finalize().into()
}

/// The member's side.
pub(crate) async fn join(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    token: &Token,
    mut hello: Hello,
) -> Result<Session, Failed> {
    hello.host = short(&hello.host, HOST);
    hello.nonce = nonce()?;
    let first = say(stream, &hello).await?;
    let second = read_plain(stream).await?;
    match parse(&second)? {
        Answer::Challenge { .. } => {}
        Answer::Refused(refusal) => return Err(Failed::Refused(shown(refusal))),
        Answer::Proof(_) => return Err(FrameError::Garbage.into()),
    }
    let transcript = transcript(&first, &second);
    say(stream, &Answer::Proof(token.derive(MEMBER, &transcript))).await?;
    match parse(&read_plain(stream).await?)? {
        Answer::Proof(proof) if is_same(&proof, &token.derive(LEADER, &transcript)) => {}
        Answer::Proof(_) => return Err(Failed::Impostor),
        Answer::Refused(refusal) => return Err(Failed::Refused(shown(refusal))),
        Answer::Challenge { .. } => return Err(FrameError::Garbage.into()),
    }
    Ok(Session {
        send: Direction::new(token.derive(TO_LEADER, &transcript)),
        receive: Direction::new(token.derive(TO_MEMBER, &transcript)),
    })
}

/// A refusal of one who has proved nothing yet: its words are cut.
fn shown(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Version { protocol, leader, member } => Refusal::Version {
            protocol,
            leader: short(&leader, VERSION),
            member: short(&member, VERSION),
        },
        other => other,
    }
}

/// The side of rank 0, which runs this version: who has come, and the conversation with them.
pub(crate) async fn admit(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    token: &Token,
    version: &str,
) -> Result<(Hello, Session), Failed> {
    let first = read_plain(stream).await?;
    let greeting: Greeting = parse(&first)?;
    if greeting.goodput_fleet != PROTOCOL || greeting.version != version {
        let (leader, member) = (version.to_owned(), short(&greeting.version, VERSION));
        return refuse(stream, Refusal::Version { protocol: PROTOCOL, leader, member }).await;
    }
    let hello: Hello = parse(&first)?;
    let second = say(stream, &Answer::Challenge { nonce: nonce()? }).await?;
    let transcript = transcript(&first, &second);
    let Answer::Proof(proof) = parse(&read_plain(stream).await?)? else {
        return Err(FrameError::Garbage.into());
    };
    if !is_same(&proof, &token.derive(MEMBER, &transcript)) {
        return refuse(stream, Refusal::Token).await;
    }
    say(stream, &Answer::Proof(token.derive(LEADER, &transcript))).await?;
    let session = Session {
        send: Direction::new(token.derive(TO_MEMBER, &transcript)),
        receive: Direction::new(token.derive(TO_LEADER, &transcript)),
    };
    Ok((Hello { host: short(&hello.host, HOST), ..hello }, session))
}

async fn refuse<T>(stream: &mut (impl AsyncWrite + Unpin), why: Refusal) -> Result<T, Failed> {
    say(stream, &Answer::Refused(why.clone())).await?;
    Err(Failed::Refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;

    fn hello(version: &str) -> Hello {
        let host = "h".repeat(1000);
        Hello {
            goodput_fleet: PROTOCOL,
            version: version.into(),
            rank: 1,
            of: 2,
            host,
            nonce: [0; 32],
        }
    }

    type Outcome = (Result<Session, Failed>, Result<(Hello, Session), Failed>);

    fn meet(member: &str, leader: &str, version: &str) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (member, leader) = (Token::new(member).unwrap(), Token::new(leader).unwrap());
        let (mut left, mut right) = tokio::io::duplex(8192);
        runtime.block_on(async {
            tokio::join!(
                join(&mut left, &member, hello(version)),
                admit(&mut right, &leader, "1.0.0")
            )
        })
    }

    #[test]
    fn those_with_one_token_come_together() {
        let (member, leader) = meet(
            "a token of some length".replace(' ', "-").as_str(),
            "a-token-of-some-length",
            "1.0.0",
        );
        let (mut member, (hello, mut leader)) = (member.unwrap(), leader.unwrap());
        assert_eq!((hello.rank, hello.of, hello.host.len()), (1, 2, HOST));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let there = member.send.seal(Kind::Message, b"there");
            assert_eq!(leader.receive.read(&mut &there[..]).await.unwrap().1, b"there");
            let back = leader.send.seal(Kind::Message, b"back");
            assert_eq!(member.receive.read(&mut &back[..]).await.unwrap().1, b"back");
            // What one end has said cannot be played back to it.
            let there = member.send.seal(Kind::Message, b"there");
            assert!(member.receive.read(&mut &there[..]).await.is_err());
        });
    }

    #[test]
    fn another_token_is_refused_at_both_ends() {
        let (member, leader) = meet("0123456789abcdef", "0123456789abcdeg", "1.0.0");
        assert!(matches!(member, Err(Failed::Refused(Refusal::Token))));
        assert!(matches!(leader, Err(Failed::Refused(Refusal::Token))));
    }

    #[test]
    fn another_version_is_refused_and_both_are_named() {
        let (member, _) = meet("0123456789abcdef", "0123456789abcdef", "1.0.1");
        let Err(Failed::Refused(refusal)) = member else { panic!("{member:?}") };
        assert_eq!(
            refusal.to_string(),
            "rank 0 runs goodput 1.0.0 (protocol 1), this is goodput 1.0.1 (protocol 1)"
        );
    }

    #[test]
    fn one_who_takes_any_token_is_no_leader() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut left, mut right) = tokio::io::duplex(8192);
        let token = Token::new("0123456789abcdef").unwrap();
        let impostor = async {
            read_plain(&mut right).await.unwrap();
            say(&mut right, &Answer::Challenge { nonce: [0; 32] }).await.unwrap();
            let proof = read_plain(&mut right).await.unwrap();
            // The member's own proof is no proof of a leader.
            write_plain(&mut right, &proof).await.unwrap();
        };
        let (member, ()) = runtime
            .block_on(async { tokio::join!(join(&mut left, &token, hello("1.0.0")), impostor) });
        assert!(matches!(member, Err(Failed::Impostor)), "{member:?}");
    }
}
