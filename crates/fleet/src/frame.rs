//! Frames: a length, a kind, what is said, and a tag.
//!
//! ```text
//! length of all that follows   u32, big-endian
//! kind                         u8: 0 plain, 1 message, 2 piece of a file
//! what is said
//! tag                          32 bytes; a plain frame has none
//! ```
//!
//! Plain frames are those of the handshake. The tag of any other is HMAC-SHA-256 with the key of its
//! direction over its number in that direction, its kind and what is said: a frame that was changed,
//! left out, said again or put elsewhere has another.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::crypto::{Bytes32, hmac, is_same};

/// The longest message, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 20;
/// The longest piece of a file, in bytes.
pub const LARGEST_PIECE: usize = 256 << 10;
/// The longest plain frame, in bytes: strangers say little.
pub(crate) const LARGEST_PLAIN: usize = 4 << 10;

/// Room that is made before anything has come.
const ROOM: usize = 16 << 10;

const KIND: usize = 1;
const TAG: usize = 32;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Message,
    Piece,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::Piece => 2,
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Message => LARGEST_MESSAGE,
            Self::Piece => LARGEST_PIECE,
        }
    }
}

/// Why a frame was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the connection was closed")]
    Closed,
    #[error("the connection broke off within a frame")]
    Cut,
    #[error("a frame of {0} bytes, more than is allowed")]
    TooLarge(usize),
    #[error("what came is not of this protocol")]
    Garbage,
    #[error("a frame was changed, repeated or left out on its way")]
    Tampered,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads what stands in the next frame, its kind first; at most so many bytes.
async fn read_body(
    from: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut head = [0; 4];
    let mut filled = 0;
    while filled < head.len() {
        match from.read(&mut head[filled..]).await? {
            0 if filled == 0 => return Err(FrameError::Closed),
            0 => return Err(FrameError::Cut),
            read => filled += read,
        }
    }
    let length = u32::from_be_bytes(head) as usize;
    if length < KIND {
        return Err(FrameError::Garbage);
    }
    if length > most {
        return Err(FrameError::TooLarge(length));
    }
    // The room grows with what comes, not with what is announced.
    let mut body = Vec::with_capacity(length.min(ROOM));
    from.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length { Err(FrameError::Cut) } else { Ok(body) }
}

/// Reads a plain frame.
pub(crate) async fn read_plain(from: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, FrameError> {
    let mut body = read_body(from, KIND + LARGEST_PLAIN).await?;
    if body.first() != Some(&0) {
        return Err(FrameError::Garbage);
    }
    body.remove(0);
    Ok(body)
}

/// Writes a plain frame.
pub(crate) async fn write_plain(to: &mut (impl AsyncWrite + Unpin), said: &[u8]) -> io::Result<()> {
    to.write_all(&framed(0, said, &[])).await
}

fn framed(kind: u8, said: &[u8], tag: &[u8]) -> Vec<u8> {
    let length = KIND + said.len() + tag.len();
    let mut frame = Vec::with_capacity(4 + length);
    // Nothing larger than a message is ever framed.
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    frame.push(kind);
    frame.extend_from_slice(said);
    frame.extend_from_slice(tag);
    frame
}

/// One direction of a conversation: its key, and how many frames there were.
#[derive(Debug)]
pub(crate) struct Direction {
    key: Bytes32,
    number: u64,
}

impl Direction {
    pub(crate) fn new(key: Bytes32) -> Self {
        Self { key, number: 0 }
    }

    fn tag(&mut self, kind: u8, said: &[u8]) -> Bytes32 {
        let tag = hmac(&self.key, &[&self.number.to_be_bytes(), &[kind], said]);
        self.number += 1;
        tag
    }

    /// The next frame.
    pub(crate) fn seal(&mut self, kind: Kind, said: &[u8]) -> Vec<u8> {
        let tag = self.tag(kind.byte(), said);
        framed(kind.byte(), said, &tag)
    }

    /// Reads the next frame; once one is wrong, none after it is right.
    pub(crate) async fn read(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
    ) -> Result<(Kind, Vec<u8>), FrameError> {
        let mut body = read_body(from, KIND + LARGEST_MESSAGE + TAG).await?;
        let kind = match body.first() {
            Some(1) => Kind::Message,
            Some(2) => Kind::Piece,
            _ => return Err(FrameError::Garbage),
        };
        let Some((said, tag)) = body[KIND..].split_last_chunk::<TAG>() else {
            return Err(FrameError::Garbage);
        };
        if said.len() > kind.most() {
            return Err(FrameError::TooLarge(said.len()));
        }
        if !is_same(&self.tag(kind.byte(), said), tag) {
            return Err(FrameError::Tampered);
        }
        body.truncate(body.len() - TAG);
        body.remove(0);
        Ok((kind, body))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn pair() -> (Direction, Direction) {
        (Direction::new([7; 32]), Direction::new([7; 32]))
    }

    fn read(direction: &mut Direction, mut bytes: &[u8]) -> Result<(Kind, Vec<u8>), FrameError> {
        wait(direction.read(&mut bytes))
    }

    #[test]
    fn frames_come_back_in_order() {
        let (mut sender, mut receiver) = pair();
        for (kind, said) in [(Kind::Message, &b"one"[..]), (Kind::Piece, b""), (Kind::Piece, b"3")]
        {
            let frame = sender.seal(kind, said);
            let (read_kind, read_said) = read(&mut receiver, &frame).unwrap();
            assert_eq!((read_kind, &*read_said), (kind, said));
        }
        assert!(matches!(read(&mut receiver, &[]), Err(FrameError::Closed)));
    }

    #[test]
    fn a_frame_said_again_or_left_out_is_seen() {
        let (mut sender, mut receiver) = pair();
        let first = sender.seal(Kind::Message, b"same");
        read(&mut receiver, &first).unwrap();
        assert!(matches!(read(&mut receiver, &first), Err(FrameError::Tampered)));
        let (mut sender, mut receiver) = pair();
        sender.seal(Kind::Message, b"first");
        let second = sender.seal(Kind::Message, b"second");
        assert!(matches!(read(&mut receiver, &second), Err(FrameError::Tampered)));
    }

    #[test]
    fn sizes_are_bounded_before_anything_is_read() {
        let (_, mut receiver) = pair();
        let most = KIND + LARGEST_MESSAGE + TAG;
        for length in [most + 1, u32::MAX as usize] {
            let head = (length as u32).to_be_bytes();
            assert!(
                matches!(read(&mut receiver, &head), Err(FrameError::TooLarge(n)) if n == length)
            );
        }
        assert!(matches!(read(&mut receiver, &(most as u32).to_be_bytes()), Err(FrameError::Cut)));
        assert!(matches!(read(&mut receiver, &[0; 4]), Err(FrameError::Garbage)));
        let large = Direction::new([7; 32]).seal(Kind::Piece, &vec![0; LARGEST_PIECE + 1]);
        assert!(matches!(read(&mut receiver, &large), Err(FrameError::TooLarge(_))));
        let mut plain = &framed(0, &[b' '; LARGEST_PLAIN + 1], &[])[..];
        assert!(matches!(wait(read_plain(&mut plain)), Err(FrameError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (_, mut receiver) = pair();
            prop_assert!(read(&mut receiver, &bytes).is_err());
            let _ = wait(read_plain(&mut &bytes[..]));
        }

        #[test]
        fn any_change_is_seen(
            said in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
            bit in 0..8u32,
        ) {
            let (mut sender, mut receiver) = pair();
            let mut frame = sender.seal(Kind::Message, &said);
            let place = place.index(frame.len());
            frame[place] ^= 1 << bit;
            prop_assert!(read(&mut receiver, &frame).is_err());
        }

        #[test]
        fn a_frame_cut_anywhere_is_no_frame(
            said in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
        ) {
            let (mut sender, mut receiver) = pair();
            let frame = sender.seal(Kind::Piece, &said);
            let cut = place.index(frame.len());
            let error = read(&mut receiver, &frame[..cut]).unwrap_err();
            prop_assert!(matches!(error, FrameError::Cut | FrameError::Closed));
        }
    }
}
