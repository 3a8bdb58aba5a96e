//! Who called whom: a request that both its client and its server have written down is one request.

use std::collections::HashMap;

use super::span::OtelSpan;
use crate::error::EntryError;

/// Spans that are remembered: about a gigabyte of them.
const MOST: usize = 20_000_000;

/// Callers that are looked at above a span.
const DEEPEST: usize = 100;

/// What is remembered of all spans of a file.
#[derive(Default)]
pub(super) struct SpanFamily(HashMap<u64, SpanTree>);

#[derive(Clone, Copy)]
struct SpanTree {
    parent: Option<u64>,
    is_generation: bool,
    is_taken: bool,
}

impl SpanFamily {
    pub(super) fn add(&mut self, span: &OtelSpan) -> Result<(), EntryError> {
        let Some(id) = span.id else { return Ok(()) };
        if self.0.len() >= MOST {
            let hint = "split the file by time";
            return Err(EntryError::with_hint(format!("more than {MOST} spans"), hint));
        }
        let is_generation = span.is_generation();
        let kin = SpanTree { parent: span.parent, is_generation, is_taken: false };
        self.0.insert(id, kin);
        Ok(())
    }

    /// Why a span is not a request of its own; the outermost of several is.
    pub(super) fn skip_reason(&mut self, span: &OtelSpan) -> Option<&'static str> {
        if !span.is_generation() {
            return None;
        }
        let mut parent = span.parent;
        for _ in 0..DEEPEST {
            let caller = parent.filter(|id| Some(*id) != span.id);
            let Some(kin) = caller.and_then(|id| self.0.get(&id)) else { break };
            if kin.is_generation {
                return Some("part of another generation");
            }
            parent = kin.parent;
        }
        let own = span.id.and_then(|id| self.0.get_mut(&id))?;
        let is_again = std::mem::replace(&mut own.is_taken, true);
        is_again.then_some("duplicate span")
    }
}
