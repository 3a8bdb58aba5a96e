//! [`Framed`]: what can be one frame of a log.

use std::io;

/// Something with a form in a log. The message is not empty.
pub trait Framed: Sized {
    /// Its message.
    fn encode(&self) -> Vec<u8>;
    /// From a message that was written whole.
    fn decode(message: &[u8]) -> io::Result<Self>;
}
