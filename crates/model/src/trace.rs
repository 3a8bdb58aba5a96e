//! Which requests are traced, and by which ids: W3C Trace Context, `traceparent`.
//!
//! Both are functions of what the run folder keeps, so nothing of them is recorded: a trace that is
//! written years later has the ids that the server was sent.

use std::fmt;

use crate::random::{Domain, RandomStream};

/// Says which requests of a run are traced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tracer {
    seed: u64,
    /// Of this run alone: the same plan measured again has other ids.
    key: u64,
    share: f64,
}

impl Tracer {
    /// Of a run with this seed, whose nonce no other run has.
    pub fn new(seed: u64, nonce: u64, share: f64) -> Self {
        Self { seed, key: RandomStream::new(seed, Domain::Traces, nonce).next_bits(), share }
    }

    /// The ids of request `index`; none if it is not traced. Which requests are traced does not
    /// depend on the nonce: all runs of one plan trace the same, and a larger share traces those of
    /// a smaller one too.
    pub fn ids(&self, index: u64) -> Option<TraceIds> {
        // A share that is not a number traces nothing.
        let is_traced =
            RandomStream::new(self.seed, Domain::Traced, index).next_unit() < self.share;
        if !is_traced {
            return None;
        }
        let mut stream = RandomStream::new(self.key, Domain::Traces, index);
        let (high, low, span) = (stream.next_bits(), stream.next_bits(), stream.next_bits());
        let trace = u128::from(high) << 64 | u128::from(low);
        // An id of zeros stands for none.
        Some(TraceIds { trace: trace.max(1), span: span.max(1) })
    }
}

/// The trace of a request, and its span in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIds {
    /// Of the trace; not zero.
    pub trace: u128,
    /// Of our span; not zero.
    pub span: u64,
}

impl TraceIds {
    /// 32 digits.
    pub fn trace_hex(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// 16 digits.
    pub fn span_hex(&self) -> String {
        format!("{:016x}", self.span)
    }
}

/// The value of `traceparent`, marked as sampled.
impl fmt::Display for TraceIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed apart from this code, by ChaCha8 and SplitMix64 written in another language.
    #[test]
    fn ids_are_what_they_are_on_every_machine() {
        let tracer = Tracer::new(42, 0x0123_4567_89ab_cdef, 1.0);
        let said = |index| tracer.ids(index).map(|ids| ids.to_string());
        assert_eq!(
            said(0).as_deref(),
            Some("00-25625d882d21c54a85a8bbd371a9b97b-88eaa9d6332e4a13-01")
        );
        assert_eq!(
            said(7_000_000_000).as_deref(),
            Some("00-0c7ef6b03ca76d9f2ee07dccf6b3249b-4664be21baaabcbc-01")
        );
    }

    #[test]
    fn another_run_has_other_ids_and_the_same_requests() {
        let (one, two) = (Tracer::new(42, 1, 0.1), Tracer::new(42, 2, 0.1));
        let wide = Tracer::new(42, 1, 0.5);
        let mut traced = 0;
        for index in 0..10_000 {
            let (first, second) = (one.ids(index), two.ids(index));
            assert_eq!(first.is_some(), second.is_some(), "{index}");
            if let (Some(first), Some(second)) = (first, second) {
                traced += 1;
                assert!(first.trace != second.trace && first.span != second.span, "{index}");
                assert_eq!(wide.ids(index), Some(first), "{index}");
            }
        }
        // Four standard errors of a share of a tenth.
        assert!((880..=1120).contains(&traced), "{traced} of 10,000");
        assert!((0..100).all(|index| Tracer::new(3, 4, f64::NAN).ids(index).is_none()));
    }

    #[test]
    fn small_ids_keep_their_zeros() {
        let ids = TraceIds { trace: 0xab, span: 1 };
        let expected = "00-000000000000000000000000000000ab-0000000000000001-01";
        assert_eq!(ids.to_string(), expected);
        assert_eq!(format!("00-{}-{}-01", ids.trace_hex(), ids.span_hex()), expected);
    }
}
