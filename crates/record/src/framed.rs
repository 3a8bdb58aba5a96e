//! [`Framed`]: what can be one frame of a log.

use std::io;

use goodput_model::{Judgement, PairNote, RequestRecord, Sample};
use prost::Message;

use crate::frame::Frame;
use crate::judgement::JudgementFrame;
use crate::sample::SampleFrame;
use crate::shadow::NoteFrame;

/// Something with a form in a log. The message is not empty.
pub trait Framed: Sized {
    /// Its message.
    fn encode(&self) -> Vec<u8>;
    /// From a message that was written whole.
    fn decode(message: &[u8]) -> io::Result<Self>;
}

impl Framed for RequestRecord {
    fn encode(&self) -> Vec<u8> {
        Frame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(Frame::decode(message).map_err(io::Error::other)?.into())
    }
}

impl Framed for Sample {
    fn encode(&self) -> Vec<u8> {
        SampleFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(SampleFrame::decode(message).map_err(io::Error::other)?.into())
    }
}

impl Framed for Judgement {
    fn encode(&self) -> Vec<u8> {
        JudgementFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(JudgementFrame::decode(message).map_err(io::Error::other)?.into())
    }
}

impl Framed for PairNote {
    fn encode(&self) -> Vec<u8> {
        NoteFrame::from(self).encode_to_vec()
    }

    fn decode(message: &[u8]) -> io::Result<Self> {
        Ok(NoteFrame::decode(message).map_err(io::Error::other)?.into())
    }
}
