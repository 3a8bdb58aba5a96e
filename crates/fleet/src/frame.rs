//! Frames: a length, a kind, and what is said. TLS, in which they travel, sees to it that none is
//! changed, left out, said again or put elsewhere.
//!
//! ```text
//! length of all that follows   u32, big-endian
//! kind                         u8: 1 message, 2 piece of a file
//! what is said
//! ```

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::coop::consume_budget;

/// The longest message, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 20;
/// The longest piece of a file, in bytes.
pub const LARGEST_PIECE: usize = 256 << 10;
/// The longest message before the proof, in bytes: strangers say little.
pub(crate) const LARGEST_PLAIN: usize = 4 << 10;

/// Room that is made before anything has come.
const ROOM: usize = 16 << 10;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Message = 1,
    Piece = 2,
}

/// Why a frame was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the connection was closed")]
    Closed,
    #[error("the connection was lost")]
    Cut,
    #[error("a frame of {0} bytes exceeds the limit")]
    TooLarge(usize),
    #[error("received data of a different protocol")]
    Garbage,
    #[error("data was changed, repeated or dropped on the way")]
    Tampered,
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        let is_of_tls = matches!(error.get_ref(), Some(inner) if inner.is::<rustls::Error>());
        match error.kind() {
            // A peer announces that it leaves; an end without that may be forged.
            io::ErrorKind::UnexpectedEof => Self::Cut,
            _ if is_of_tls => Self::Tampered,
            _ => Self::Io(error),
        }
    }
}

/// Reads the next frame, of a message of this many bytes at most.
pub(crate) async fn read_frame(
    from: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> Result<(FrameKind, Vec<u8>), FrameError> {
    // Who sends many small ones lets others have their turn.
    consume_budget().await;
    let mut head = [0; 5];
    let mut filled = 0;
    while filled < head.len() {
        match from.read(&mut head[filled..]).await? {
            0 if filled == 0 => return Err(FrameError::Closed),
            0 => return Err(FrameError::Cut),
            read => filled += read,
        }
    }
    let [length @ .., kind] = head;
    let (kind, most) = match kind {
        1 => (FrameKind::Message, most),
        2 => (FrameKind::Piece, most.min(LARGEST_PIECE)),
        _ => return Err(FrameError::Garbage),
    };
    let Some(length) = (u32::from_be_bytes(length) as usize).checked_sub(1) else {
        return Err(FrameError::Garbage);
    };
    if length > most {
        return Err(FrameError::TooLarge(length));
    }
    // The room grows with what comes, not with what is announced.
    let mut said = Vec::with_capacity(length.min(ROOM));
    from.take(length as u64).read_to_end(&mut said).await?;
    if said.len() < length { Err(FrameError::Cut) } else { Ok((kind, said)) }
}

/// Writes a frame, and sees it off.
pub(crate) async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    kind: FrameKind,
    said: &[u8],
) -> io::Result<()> {
    // Nothing larger than a message is ever framed.
    let length = u32::try_from(1 + said.len()).unwrap_or(u32::MAX);
    let frame = [&length.to_be_bytes()[..], &[kind as u8], said].concat();
    to.write_all(&frame).await?;
    to.flush().await
}

/// Writes a message.
pub(crate) async fn write_message(
    to: &mut (impl AsyncWrite + Unpin),
    what: &impl Serialize,
) -> io::Result<()> {
    write_frame(to, FrameKind::Message, &serde_json::to_vec(what)?).await
}

/// Reads a message of this many bytes at most.
pub(crate) async fn read_message<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    most: usize,
) -> Result<T, FrameError> {
    let (FrameKind::Message, said) = read_frame(from, most).await? else {
        return Err(FrameError::Garbage);
    };
    serde_json::from_slice(&said).map_err(|_| FrameError::Garbage)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn framed(kind: FrameKind, said: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        wait(write_frame(&mut frame, kind, said)).unwrap();
        frame
    }

    fn read_all(mut bytes: &[u8]) -> Result<(FrameKind, Vec<u8>), FrameError> {
        wait(read_frame(&mut bytes, LARGEST_MESSAGE))
    }

    #[test]
    fn frames_come_back_in_order() {
        let frames =
            [(FrameKind::Message, &b"one"[..]), (FrameKind::Piece, b""), (FrameKind::Piece, b"3")];
        let all: Vec<u8> = frames.iter().flat_map(|(kind, said)| framed(*kind, said)).collect();
        let mut left = &all[..];
        for (kind, said) in frames {
            let (read_kind, read_said) = wait(read_frame(&mut left, LARGEST_MESSAGE)).unwrap();
            assert_eq!((read_kind, &*read_said), (kind, said));
        }
        assert!(matches!(read_all(left), Err(FrameError::Closed)));
    }

    #[test]
    fn sizes_are_bounded_before_anything_is_read() {
        let head = |length: usize, kind: u8| [&(length as u32).to_be_bytes()[..], &[kind]].concat();
        let cases = [
            (1, LARGEST_MESSAGE + 1, LARGEST_MESSAGE),
            (1, u32::MAX as usize - 1, LARGEST_MESSAGE),
            (2, LARGEST_PIECE + 1, LARGEST_MESSAGE),
            (1, LARGEST_PLAIN + 1, LARGEST_PLAIN),
            (2, LARGEST_PLAIN + 1, LARGEST_PLAIN),
        ];
        for (kind, length, most) in cases {
            let refused = wait(read_frame(&mut &head(1 + length, kind)[..], most));
            assert!(matches!(refused, Err(FrameError::TooLarge(n)) if n == length), "{refused:?}");
        }
        assert!(matches!(read_all(&head(1 + LARGEST_MESSAGE, 1)), Err(FrameError::Cut)));
        assert!(matches!(read_all(&head(0, 1)), Err(FrameError::Garbage)));
        assert!(matches!(read_all(&head(1, 0)), Err(FrameError::Garbage)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_all(&bytes);
            let _ = wait(read_message::<crate::message::ToCoordinator>(&mut &bytes[..], LARGEST_PLAIN));
        }

        #[test]
        fn a_frame_cut_anywhere_is_no_frame(
            said in prop::collection::vec(any::<u8>(), 0..200),
            place in any::<prop::sample::Index>(),
        ) {
            let frame = framed(FrameKind::Piece, &said);
            let cut = place.index(frame.len());
            let error = read_all(&frame[..cut]).unwrap_err();
            prop_assert!(matches!(error, FrameError::Cut | FrameError::Closed));
        }
    }
}
