//! A recorded trace as sessions.
//!
//! Blocks with the same name become the same text, so a server's prefix cache finds them as the
//! recorded one did. What a prompt has beyond its blocks is its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use goodput_dataset::{DatasetEntry, DatasetTurn, Loaded};
use goodput_model::{Keep, Message, MessagePart, Nanos, Role, Session, SessionStep, TracePlan};

use crate::check::MOST_TOKENS;
use crate::maker::SessionMaker;
use crate::text::Begin;
use crate::{Setting, WorkloadError};

/// Tokens of a block where neither file nor plan says: Mooncake's.
const TRACE_BLOCK: u32 = 512;

/// A trace in the order of its instants.
pub(crate) struct TraceArrivals {
    entries: Vec<WorkloadRow>,
    /// Rows of each session, in the order of their first instants.
    sessions: Vec<Vec<usize>>,
    /// Which of the linked sessions each of these belongs to, in the order in which they begin.
    turns: Vec<u64>,
    block: u32,
    scale: f64,
}

struct WorkloadRow {
    entry: DatasetEntry,
    at: Nanos,
    /// Tokens that a cache without limits would hold when it comes; `None` without blocks.
    cached: Option<u32>,
    /// Number of the linked session, and which of its requests this is.
    link: Option<(u64, u32)>,
}

impl TraceArrivals {
    pub(crate) fn new(
        plan: &TracePlan,
        loaded: Loaded,
        setting: &Setting,
    ) -> Result<Self, WorkloadError> {
        let block = plan.block_tokens.or(loaded.block_tokens).unwrap_or(TRACE_BLOCK);
        if block == 0 {
            return Err(WorkloadError::new(
                format!("{}: blocks of zero tokens", plan.file),
                "Mooncake's blocks have 512 tokens",
            ));
        }
        let mut rows = Vec::with_capacity(loaded.entries.len());
        for entry in loaded.entries {
            let Some(at) = entry.at else {
                return Err(WorkloadError::new(
                    format!("{} line {}: the entry has no timestamp", plan.file, entry.line),
                    "a trace needs a timestamp on every entry; use the file as a dataset instead",
                ));
            };
            let longest = entry.turns.iter().filter_map(|turn| turn.input_tokens).max();
            if let Some(tokens) = longest.filter(|tokens| *tokens > MOST_TOKENS) {
                return Err(WorkloadError::new(
                    format!(
                        "{} line {}: a prompt of {tokens} tokens: expected at most {MOST_TOKENS}",
                        plan.file, entry.line
                    ),
                    "no context holds more; cut the trace or correct the row",
                ));
            }
            rows.push(WorkloadRow { entry, at, cached: None, link: None });
        }
        rows.sort_by_key(|row| row.at);
        fill_cached_tokens(&mut rows, block);
        let sessions = link_rows(&mut rows, setting.keep);
        let turns = number_turns(&rows, &sessions);
        Ok(Self { entries: rows, sessions, turns, block, scale: setting.time_scale })
    }

    pub(crate) fn arrival(&self, number: u64) -> Option<Nanos> {
        let rows = self.sessions.get(usize::try_from(number).ok()?)?;
        rows.first()
            .and_then(|row| self.entries.get(*row))
            .map(|row| scale_time(row.at, self.scale))
    }

    /// Requests of a session.
    pub(crate) fn request_count(&self, number: u64) -> Option<u64> {
        let rows = self.sessions.get(usize::try_from(number).ok()?)?;
        let rows = rows.iter().filter_map(|row| self.entries.get(*row));
        Some(rows.map(|row| row.entry.turns.len() as u64).sum())
    }

    /// In whose turn a session is dealt out: those that a linked one was taken apart into have one.
    pub(crate) fn deal_turn(&self, number: u64) -> Option<u64> {
        self.turns.get(usize::try_from(number).ok()?).copied()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.sessions.len()
    }
}

/// Numbers linked sessions, and rows that are linked to none, in the order in which they begin.
fn number_turns(rows: &[WorkloadRow], sessions: &[Vec<usize>]) -> Vec<u64> {
    let mut turns: Vec<u64> = Vec::with_capacity(sessions.len());
    let mut next = 0;
    for session in sessions {
        let link = session.first().and_then(|first| rows.get(*first)?.link);
        let begun = link.and_then(|(linked, _)| turns.get(usize::try_from(linked).ok()?));
        let turn = begun.copied().unwrap_or(next);
        next = next.max(turn + 1);
        turns.push(turn);
    }
    turns
}

/// What a cache without limits would hold of each prompt: the blocks at its beginning that were
/// asked before.
fn fill_cached_tokens(rows: &mut [WorkloadRow], block: u32) {
    let mut seen: HashSet<u64> = HashSet::new();
    for row in rows {
        let Some(turn) = row.entry.turns.first().filter(|turn| !turn.blocks.is_empty()) else {
            continue;
        };
        // A block is another one behind another beginning.
        let chain: Vec<u64> = turn
            .blocks
            .iter()
            .scan(0, |chain, name| {
                *chain = mix_bits(*chain ^ name);
                Some(*chain)
            })
            .collect();
        let known = chain.iter().take_while(|name| seen.contains(name)).count();
        let tokens = u32::try_from(known).unwrap_or(u32::MAX).saturating_mul(block);
        // The last token is always computed.
        let most = turn.input_tokens.unwrap_or(u32::MAX).saturating_sub(1);
        row.cached = Some(tokens.min(most));
        seen.extend(chain);
    }
}

/// Spreads the bits of a number, one to one.
fn mix_bits(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1)
}

/// Which rows make a session. A linked session has the number of its first row's session.
fn link_rows(rows: &mut [WorkloadRow], keep: Keep) -> Vec<Vec<usize>> {
    // Number, and requests so far, of each linked session.
    let mut known: HashMap<String, (u64, u32)> = HashMap::new();
    let mut sessions: Vec<Vec<usize>> = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let next = sessions.len() as u64;
        let link = row.entry.session.clone().map(|name| known.entry(name).or_insert((next, 0)));
        row.link = link.as_deref().copied();
        let joined = match (&link, keep) {
            (Some((session, _)), Keep::ThinkTimes) => sessions.get_mut(*session as usize),
            _ => None,
        };
        match joined {
            Some(rows) => rows.push(index),
            None => sessions.push(vec![index]),
        }
        if let Some((_, requests)) = link {
            *requests += 1;
        }
    }
    sessions
}

/// The session of this number; `None` past the end of the trace.
pub(crate) fn session_from_trace(
    maker: &mut SessionMaker,
    trace: &TraceArrivals,
) -> Option<Session> {
    let rows = trace.sessions.get(usize::try_from(maker.local).ok()?)?;
    let mut steps: Vec<SessionStep> = Vec::with_capacity(rows.len());
    let mut said = 0u32;
    let mut before: Option<&WorkloadRow> = None;
    for row in rows.iter().filter_map(|row| trace.entries.get(*row)) {
        for (number, turn) in row.entry.turns.iter().enumerate() {
            let is_first = steps.is_empty();
            let (mut messages, input) = build_prompt(maker, trace, turn, said, is_first);
            let images = if is_first { maker.add_images(&mut messages) } else { 0 };
            let mut planned = maker.planned_lengths(input, turn.output_tokens);
            if let Some(label) = &row.entry.class {
                planned.class = Arc::from(label.as_str());
            }
            planned.images = images;
            planned.session = row.link.map(|(session, _)| session);
            planned.turn = row.link.map_or(0, |(_, turn)| turn) + number as u32;
            let in_blocks = row.cached.map(|cached| maker.author.whole_block_tokens(cached));
            planned.cached_tokens =
                if is_first { in_blocks } else { Some(maker.author.whole_block_tokens(said)) };
            planned.trace_at = (number == 0).then(|| scale_time(row.at, trace.scale));
            let gap = before.filter(|_| number == 0).map(|last| pause_before(last, row));
            let after = if is_first { None } else { turn.after.or(gap) };
            said = input.saturating_add(turn.output_tokens.unwrap_or(0));
            let mut request = maker.new_request(messages, planned);
            request.fields = turn.fields.clone().into();
            steps.push(SessionStep {
                after: after.map_or(Nanos::ZERO, |after| scale_time(after, trace.scale)),
                requests: vec![request],
                reply: turn.reply.clone(),
            });
        }
        before = Some(row);
    }
    let history = goodput_model::History::Server;
    (!steps.is_empty()).then_some(Session { steps, history })
}

/// The pause between an answer and the next question: the gap between the two instants, without
/// the time that the answer took where that is known.
fn pause_before(last: &WorkloadRow, row: &WorkloadRow) -> Nanos {
    let took = last.entry.turns.last().and_then(|turn| turn.took).unwrap_or(Nanos::ZERO);
    row.at - last.at - took
}

/// Messages up to the last answer among them, which is not the last of them.
fn answered_count(messages: &[Message]) -> usize {
    let is_answer = |message: &Message| match message {
        Message::Plain { role, .. } => *role == Role::Assistant,
        Message::Raw(json) => serde_json::from_str::<serde_json::Value>(json)
            .is_ok_and(|message| message["role"] == "assistant"),
    };
    let before = messages.get(..messages.len().saturating_sub(1)).unwrap_or_default();
    before.iter().rposition(is_answer).map_or(0, |place| place + 1)
}

/// What is asked, and the tokens of the whole prompt.
fn build_prompt(
    maker: &mut SessionMaker,
    trace: &TraceArrivals,
    turn: &DatasetTurn,
    said: u32,
    is_first: bool,
) -> (Vec<Message>, u32) {
    let before = if is_first { maker.author.template } else { said };
    // A prompt is at least one token longer than what stands before it.
    let input = turn.input_tokens.unwrap_or(1).max(before.saturating_add(1));
    if !turn.messages.is_empty() {
        // A history holds what was said before already.
        let old = if is_first { 0 } else { answered_count(&turn.messages) };
        return (turn.messages.get(old..).unwrap_or_default().to_vec(), input);
    }
    let mut left = input - before;
    let mut parts = Vec::new();
    // A history holds its blocks already.
    let blocks = if is_first { turn.blocks.as_slice() } else { &[] };
    for &name in blocks {
        let begin = if parts.is_empty() { Begin::Message } else { Begin::Continued };
        if left >= trace.block {
            parts.push(MessagePart::Text(maker.author.shared_text(name, trace.block, begin)));
            left -= trace.block;
        } else if left > 0 {
            parts.push(MessagePart::Text(maker.author.common_text(name, left, begin).into()));
            left = 0;
        }
    }
    if left > 0 {
        let begin = if parts.is_empty() { Begin::Message } else { Begin::Continued };
        let nonce = is_first.then(|| maker.nonce());
        let own = maker.author.write(left, begin, nonce, &mut maker.text);
        parts.push(MessagePart::Text(own.into()));
    }
    (vec![Message::Plain { role: Role::User, parts }], input)
}

/// Trace time on the run's clock.
pub(crate) fn scale_time(time: Nanos, factor: f64) -> Nanos {
    if factor == 1.0 { time } else { Nanos::from_secs_f64(time.as_secs() * factor) }
}
