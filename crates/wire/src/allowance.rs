//! What answers may amount to: one of them by what was asked, and all of them together.
//!
//! A server decides how much it sends. Everything that is kept of an answer stays in memory until the
//! answer ends, so there is a most of it, far above what any honest answer needs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use goodput_model::{Chunk, ErrorClass, Exchange};

use crate::fault::AnswerError;

/// Events for each token that was requested, and for every answer besides.
const EVENTS_PER_TOKEN: u64 = 16;
const MORE_EVENTS: u64 = 4_096;

/// Bytes of the body, and of text in it, for each event. Log probabilities of twenty candidates take
/// about 3 KiB; the longest tokens, of blanks, about a hundred bytes.
const BYTES_PER_EVENT: u64 = 4 << 10;
const TEXT_PER_EVENT: u64 = 64;

/// Tokens that are reckoned with where the request sets no limit.
const UNSAID: u32 = 32_768;

/// Least memory for all answers together.
const LEAST_MEMORY: u64 = 256 << 20;

/// An answer's growth that goes uncounted: most answers stay below it.
const UNCOUNTED: u64 = 64 << 10;

/// What one answer may amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The token limit of the request; `None` without one.
    tokens: Option<u32>,
    answers: u32,
}

impl Default for AnswerLimits {
    /// For one answer without a limit.
    fn default() -> Self {
        Self::new(None, 1)
    }
}

impl AnswerLimits {
    /// For `answers` answers of at most `tokens` tokens each.
    pub fn new(tokens: Option<u32>, answers: u32) -> Self {
        Self { tokens, answers: answers.max(1) }
    }

    fn most_events(self) -> u64 {
        let each = u64::from(self.tokens.unwrap_or(UNSAID)) * EVENTS_PER_TOKEN + MORE_EVENTS;
        each.saturating_mul(self.answers.into())
    }

    /// Bytes of text that are kept at most.
    pub(crate) fn most_text_bytes(self) -> u64 {
        self.most_events().saturating_mul(TEXT_PER_EVENT)
    }

    /// Whether this many events with so much text are still an answer.
    pub(crate) fn check_size(self, events: u64, text: u64) -> Result<(), AnswerError> {
        if events > self.most_events() {
            return Err(self.exceeded_error(&format!("{} events", self.most_events())));
        }
        if text > self.most_text_bytes() {
            return Err(self.exceeded_error(&format!("{} bytes of text", self.most_text_bytes())));
        }
        Ok(())
    }

    /// The same of the bytes of a body.
    pub(crate) fn check_bytes(self, bytes: u64) -> Result<(), AnswerError> {
        let most = self.most_events().saturating_mul(BYTES_PER_EVENT);
        if bytes > most { Err(self.exceeded_error(&format!("{most} bytes"))) } else { Ok(()) }
    }

    fn exceeded_error(self, most: &str) -> AnswerError {
        let asked = match (self.tokens, self.answers) {
            (None, _) => "no limit was".to_owned(),
            (Some(tokens), 1) => format!("{tokens} tokens were"),
            (Some(tokens), answers) => format!("{answers} answers of {tokens} tokens were"),
        };
        let message = format!("the answer has more than {most}, and {asked} requested");
        AnswerError::new(ErrorClass::AnswerTooLarge, message)
    }
}

/// The memory of all answers in flight. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct AnswerMemory {
    held: Arc<AtomicU64>,
    limit: u64,
}

impl AnswerMemory {
    /// Half of what this machine or its container has.
    pub(crate) fn new() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let all = usable_memory(&read("/proc/meminfo"), &read("/sys/fs/cgroup/memory.max"));
        let limit = all.map_or(u64::MAX, |all| (all / 2).max(LEAST_MEMORY));
        Self { held: Arc::default(), limit }
    }

    /// The share of one answer, nothing at first.
    pub(crate) fn new_share(&self) -> AnswerMemoryShare {
        AnswerMemoryShare { memory: self.clone(), held: 0 }
    }
}

fn usable_memory(meminfo: &str, of_container: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let machine = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let container = of_container.trim().parse().ok();
    machine.map(|kib| kib.saturating_mul(1 << 10)).into_iter().chain(container).min()
}

/// What one answer holds of [`AnswerMemory`], given back when dropped.
#[derive(Debug)]
pub(crate) struct AnswerMemoryShare {
    memory: AnswerMemory,
    held: u64,
}

impl AnswerMemoryShare {
    /// The answer now holds this many bytes in addition to what the exchange keeps.
    pub(crate) fn reserve(&mut self, extra: usize, exchange: &Exchange) -> Result<(), AnswerError> {
        let text = exchange.text.as_ref().map_or(0, String::capacity);
        let bytes = (extra + text + exchange.chunks.capacity() * size_of::<Chunk>()) as u64;
        let more = bytes.saturating_sub(self.held);
        if more <= UNCOUNTED {
            return Ok(());
        }
        self.held = bytes;
        if self.memory.held.fetch_add(more, Relaxed) + more <= self.memory.limit {
            return Ok(());
        }
        let limit = self.memory.limit >> 20;
        let message = format!("the answers in flight hold more than {limit} MiB of memory");
        Err(AnswerError::new(ErrorClass::AnswerTooLarge, message))
    }
}

impl Drop for AnswerMemoryShare {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.held, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_in_proportion_to_what_was_asked() {
        let eight = AnswerLimits::new(Some(8), 1);
        assert_eq!(eight.check_size(4_224, 270_336), Ok(()));
        let message = |outcome: Result<(), AnswerError>| outcome.unwrap_err().message;
        assert_eq!(
            message(eight.check_size(4_225, 0)),
            "the answer has more than 4224 events, and 8 tokens were requested"
        );
        assert!(message(eight.check_size(1, 270_337)).contains("270336 bytes of text"));
        assert_eq!(eight.check_bytes(4_224 << 12), Ok(()));
        assert!(message(eight.check_bytes((4_224 << 12) + 1)).contains("17301504 bytes"));
        let three = AnswerLimits::new(Some(8), 3);
        assert_eq!(three.check_size(3 * 4_224, 0), Ok(()));
        assert!(
            message(three.check_size(12_673, 0)).ends_with("3 answers of 8 tokens were requested")
        );
        assert_eq!(AnswerLimits::default().check_size(528_384, 0), Ok(()));
        assert!(
            message(AnswerLimits::default().check_size(528_385, 0))
                .contains("no limit was requested")
        );
        assert_eq!(
            AnswerLimits::new(Some(u32::MAX), u32::MAX).check_size(1 << 40, 1 << 40),
            Ok(())
        );
    }

    #[test]
    fn all_answers_share_one_memory() {
        let memory = AnswerMemory { held: Arc::default(), limit: 1 << 20 };
        let (mut one, mut other) = (memory.new_share(), memory.new_share());
        let nothing = Exchange::default();
        assert_eq!(one.reserve(700 << 10, &nothing), Ok(()));
        assert_eq!(other.reserve(64 << 10, &nothing), Ok(()), "small ones are not counted");
        let fault = other.reserve(400 << 10, &nothing).unwrap_err();
        assert_eq!(fault.class, ErrorClass::AnswerTooLarge);
        assert_eq!(fault.message, "the answers in flight hold more than 1 MiB of memory");
        drop((one, other));
        assert_eq!(memory.new_share().reserve(1 << 20, &nothing), Ok(()));
    }

    #[test]
    fn a_container_may_have_less_than_its_machine() {
        let machine = "MemTotal:       2048 kB\nMemFree: 1 kB\n";
        assert_eq!(usable_memory(machine, "max\n"), Some(2 << 20));
        assert_eq!(usable_memory(machine, "1048576\n"), Some(1 << 20));
        assert_eq!(usable_memory("", ""), None);
    }
}
