//! [`AnswerReader`]: from the bytes of an answer to stamps, chunks, counts and an outcome.
//!
//! Rules that real servers taught (each is a test): the first token is the first event with text
//! of any channel, never the headers or the role chunk; `usage` may come alone, with an empty
//! choice, on the finish chunk, on every chunk, once per choice, or never; text may ride on the
//! finish chunk; `[DONE]` proves nothing, only a finish reason does.

use goodput_model::{
    Chunk, ErrorClass, Exchange, Failure, FailureStage, Nanos, TokenCount, TokenSource,
};

use crate::allowance::AnswerLimits;
use crate::answer_text::answer_text;
use crate::event_template::EventTemplate;
use crate::fault::AnswerError;
use crate::json::{self, ApiBody, ApiChoice, ApiUsage};
use crate::secrets::{scrub_failure, scrub_secrets};
use crate::sse::{EventTooLarge, SseEvent, SseParser};

/// Largest single event accepted. Embedded images and logits stay below it by far.
const EVENT_LIMIT: usize = 16 << 20;

/// An event that can be read where nothing more may be held.
const SHORT_EVENT: usize = 16 << 10;

/// Characters of a finish reason that are kept.
const MOST_REASON: usize = 32;

/// Most answers told apart in one stream; a hostile server must not make us allocate.
const ANSWERS: usize = 1024;

/// As much of foreign text is looked at: more than is kept, as a secret may be long in some forms.
const LOOKED_AT: usize = 1500;

/// One socket read: everything it completes shares its instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// When its bytes came.
    pub at: Nanos,
    /// Which read of the connection it was: bytes with the same number came together.
    pub sequence: u64,
    /// How long they had waited in the kernel, in microseconds, where it says.
    pub lag_us: Option<u32>,
}

/// How much of one answer is kept at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of one event.
    pub(crate) event: usize,
    /// Chunks; those beyond are counted alone.
    pub(crate) chunks: usize,
    /// Bytes of text.
    pub(crate) text: usize,
}

/// Reads one answer.
#[derive(Debug)]
pub struct AnswerReader {
    sse: SseParser,
    state: AnswerState,
}

#[derive(Debug, Default)]
struct AnswerState {
    /// The answers that appeared, in that order. Indices need not begin at 0.
    answers: Vec<ChoiceState>,
    /// Usage that came without a choice: once for all answers, or once per answer.
    closing: Vec<ApiUsage>,
    last_read: Option<u64>,
    done: bool,
    fault: Option<AnswerError>,
    keep_text: bool,
    most_chunks: usize,
    most_text: usize,
    /// More than this is an error; the proxy leaves that to the client.
    allowance: Option<AnswerLimits>,
    events: u64,
    /// Bytes of text so far, kept or not.
    text_bytes: u64,
    /// Chunks beyond those that are kept.
    beyond: Beyond,
    /// What plain events look like.
    likeness: EventTemplate,
}

/// Chunks that came and were not kept.
#[derive(Debug, Default, Clone, Copy)]
struct Beyond {
    chunks: u32,
    /// Tokens in those that say how many.
    tokens: u32,
    /// One of them did not say.
    has_unsaid: bool,
}

/// One of the `n` answers.
#[derive(Debug, Default, Clone)]
struct ChoiceState {
    /// What the server calls it.
    index: u32,
    /// A finish reason came.
    finished: bool,
    /// The latest usage that came with it.
    usage: Option<ApiUsage>,
    /// Completion tokens of that usage when the last text came, to see how many a chunk adds.
    /// A chunk without text may move the count: its tokens then belong to the next gap.
    tokens_at_text: u32,
}

impl AnswerReader {
    /// A reader that keeps the text of the answer only when asked to. An answer that is more than
    /// the allowance fails.
    pub fn new(keep_text: bool, allowance: AnswerLimits) -> Self {
        let text = usize::try_from(allowance.most_text_bytes()).unwrap_or(usize::MAX);
        let bounds = Bounds { event: EVENT_LIMIT, chunks: usize::MAX, text };
        let mut reader = Self::with_bounds(keep_text, bounds);
        reader.state.allowance = Some(allowance);
        reader
    }

    /// As [`AnswerReader::new`], for answers of which only so much may be kept, whatever comes.
    pub(crate) fn with_bounds(keep_text: bool, bounds: Bounds) -> Self {
        let state = AnswerState {
            keep_text,
            most_chunks: bounds.chunks,
            most_text: bounds.text,
            ..AnswerState::default()
        };
        Self { sse: SseParser::new(bounds.event), state }
    }

    /// Whether `[DONE]` has come.
    pub(crate) fn is_done(&self) -> bool {
        self.state.done
    }

    /// Bytes that are held in addition to the exchange.
    pub(crate) fn held_bytes(&self) -> usize {
        self.sse.held_bytes()
    }

    /// Keeps what it has and no more; an event that is long cannot be read any longer.
    pub(crate) fn stop_buffering(&mut self, exchange: &Exchange) {
        self.state.most_chunks = self.state.most_chunks.min(exchange.chunks.len());
        self.state.most_text = exchange.text.as_ref().map_or(0, String::len);
        self.sse.limit_to(SHORT_EVENT);
    }

    /// Takes the bytes of a stream that one socket read brought.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        read: Read,
        exchange: &mut Exchange,
    ) -> Result<(), AnswerError> {
        let state = &mut self.state;
        let outcome = self.sse.push(bytes, |event| state.take_event(event, read, exchange));
        self.first_fault(outcome)
    }

    /// What is wrong first: what follows a fault, or `[DONE]`, is not looked at, whichever read brings
    /// it.
    fn first_fault(&mut self, outcome: Result<(), EventTooLarge>) -> Result<(), AnswerError> {
        if let Some(fault) = self.state.fault.take() {
            return Err(fault);
        }
        match outcome {
            Err(error) if !self.state.done => {
                Err(AnswerError::new(ErrorClass::EventTooLarge, error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The body of a stream has ended in good order, seen by this read.
    pub(crate) fn finish(
        &mut self,
        read: Read,
        exchange: &mut Exchange,
    ) -> Result<(), AnswerError> {
        let state = &mut self.state;
        let outcome = self.sse.finish(|event| state.take_event(event, read, exchange));
        self.first_fault(outcome)?;
        exchange.stamps.done.get_or_insert(read.at);
        self.state.conclude(exchange)
    }

    /// Sets the counts to what has come so far.
    pub(crate) fn count_tokens(&self, exchange: &mut Exchange) {
        self.state.count_tokens(exchange);
    }

    /// Takes an answer that came whole, not as a stream.
    pub(crate) fn read_whole(
        &mut self,
        bytes: &[u8],
        read: Read,
        exchange: &mut Exchange,
    ) -> Result<(), AnswerError> {
        let body = json::parse_body(bytes).map_err(|error| {
            AnswerError::new(ErrorClass::BadJson, format!("{error}: {}", clip_bytes(bytes)))
        })?;
        if let Some(message) = find_error(&body) {
            return Err(AnswerError::new(ErrorClass::StreamError, message));
        }
        exchange.stamps.done = Some(read.at);
        for choice in body.choices.iter() {
            let answer = self.state.answer_index(choice);
            self.state.take_choice(answer, choice, None, exchange);
            self.state.text_bytes += u64::from(choice.answer_bytes() + choice.reasoning_bytes());
            if choice.has_text() {
                exchange.stamps.last_token = Some(read.at);
            }
        }
        self.state.check_limits(exchange)?;
        self.state.closing.extend(body.usage.0);
        self.state.keep_data(bytes, exchange);
        self.state.conclude(exchange)
    }
}

impl Beyond {
    fn add_chunk(&mut self, chunk: &Chunk) {
        self.chunks = self.chunks.saturating_add(1);
        self.tokens = self.tokens.saturating_add(chunk.tokens.unwrap_or(0));
        self.has_unsaid |= chunk.tokens.is_none();
    }
}

impl AnswerState {
    fn take_event(&mut self, event: SseEvent<'_>, read: Read, exchange: &mut Exchange) {
        if self.fault.is_some() || self.done || event.data.is_empty() {
            return;
        }
        self.events += 1;
        self.read_event(event, read, exchange);
        if self.fault.is_none() {
            self.fault = self.check_limits(exchange).err();
        }
    }

    /// Whether what has come can still be an answer.
    fn check_limits(&self, exchange: &Exchange) -> Result<(), AnswerError> {
        let Some(allowance) = self.allowance else { return Ok(()) };
        allowance.check_size(self.events.max(exchange.chunks.len() as u64), self.text_bytes)
    }

    fn read_event(&mut self, event: SseEvent<'_>, read: Read, exchange: &mut Exchange) {
        if event.data.trim_ascii() == b"[DONE]" {
            self.done = true;
            exchange.stamps.done = Some(read.at);
            return;
        }
        if event.kind.is_empty()
            && !self.keep_text
            && let Some(bytes) = self.likeness.text_bytes(event.data)
        {
            self.likeness.note_match();
            let chunk = Chunk {
                at: read.at,
                tokens: None,
                bytes,
                choice: self.likeness.answer,
                coalesced: false,
                lag_us: read.lag_us,
            };
            return self.take_tokens(chunk, false, read.sequence, exchange);
        }
        match json::parse_body(event.data) {
            Err(error) if event.kind == b"error" => {
                let _ = error;
                self.fault =
                    Some(AnswerError::new(ErrorClass::StreamError, clip_bytes(event.data)));
            }
            Err(error) => {
                let message = format!("{error}: {}", clip_bytes(event.data));
                self.fault = Some(AnswerError::new(ErrorClass::BadEvent, message));
            }
            Ok(body) => {
                let message = find_error(&body)
                    .or_else(|| (event.kind == b"error").then(|| clip_bytes(event.data)));
                match message {
                    Some(message) => {
                        self.fault = Some(AnswerError::new(ErrorClass::StreamError, message));
                    }
                    None => self.take_chunk(&body, event.data, read, exchange),
                }
            }
        }
    }

    fn take_chunk(&mut self, body: &ApiBody, data: &[u8], read: Read, exchange: &mut Exchange) {
        if let Some(usage) = body.usage.0
            && body.choices.iter().next().is_none()
        {
            self.closing.push(usage);
        }
        let mut with_text = None;
        for choice in body.choices.iter() {
            let answer = self.answer_index(choice);
            let running = self.take_choice(answer, choice, body.usage.0, exchange);
            if choice.has_text() {
                with_text = Some(answer as u32);
                let chunk = Chunk {
                    at: read.at,
                    tokens: running.or_else(|| choice.listed_tokens()),
                    bytes: choice.answer_bytes() + choice.reasoning_bytes(),
                    choice: answer as u32,
                    coalesced: false,
                    lag_us: read.lag_us,
                };
                self.take_tokens(chunk, choice.answer_bytes() == 0, read.sequence, exchange);
            } else if choice.is_silent_token() && exchange.stamps.first_token.is_some() {
                // Neither first token nor text, but the server was still generating.
                exchange.stamps.last_token = Some(read.at);
            }
        }
        if with_text.is_some() {
            self.keep_data(data, exchange);
        }
        if let Some(bytes) = body.plain_text()
            && let Some(answer) = with_text
        {
            self.likeness.remember_event(data, bytes, answer);
        }
    }

    /// Which of the answers a choice belongs to, in order of appearance.
    fn answer_index(&mut self, choice: &ApiChoice) -> usize {
        let index = choice.index.0.unwrap_or(0);
        let known = self.answers.iter().position(|answer| answer.index == index);
        known.unwrap_or_else(|| {
            if self.answers.len() < ANSWERS {
                self.answers.push(ChoiceState { index, ..ChoiceState::default() });
            }
            self.answers.len() - 1
        })
    }

    /// Files what a choice says of its answer. Returns the tokens it added, by running usage.
    fn take_choice(
        &mut self,
        answer: usize,
        choice: &ApiChoice,
        usage: Option<ApiUsage>,
        exchange: &mut Exchange,
    ) -> Option<u32> {
        let answer = &mut self.answers[answer];
        if let Some(reason) = &choice.finish_reason.0 {
            answer.finished = true;
            // Scrubbed before it is cut: the beginning of a secret is one.
            exchange.finish.get_or_insert_with(|| clip_reason(&scrub_secrets(clip_word(reason))));
        }
        answer.usage = usage.or(answer.usage);
        let total = usage?.completion_tokens.0.filter(|_| choice.has_text())?;
        let before = std::mem::replace(&mut answer.tokens_at_text, total);
        Some(total.saturating_sub(before)).filter(|added| *added > 0)
    }

    fn take_tokens(
        &mut self,
        mut chunk: Chunk,
        is_reasoning: bool,
        sequence: u64,
        exchange: &mut Exchange,
    ) {
        chunk.coalesced = self.last_read.replace(sequence) == Some(sequence);
        if chunk.coalesced
            && let Some(previous) = exchange.chunks.last_mut()
        {
            previous.coalesced = true;
        }
        self.text_bytes += u64::from(chunk.bytes);
        if exchange.chunks.len() < self.most_chunks {
            exchange.chunks.push(chunk);
        } else {
            self.beyond.add_chunk(&chunk);
        }
        let stamps = &mut exchange.stamps;
        stamps.first_token.get_or_insert(chunk.at);
        if !is_reasoning {
            stamps.first_answer.get_or_insert(chunk.at);
        }
        stamps.last_token = Some(chunk.at);
    }

    /// Everything has come: sets the counts and judges the answer.
    fn conclude(&self, exchange: &mut Exchange) -> Result<(), AnswerError> {
        self.count_tokens(exchange);
        if self.answers.is_empty() || self.answers.iter().any(|answer| !answer.finished) {
            let message = if self.done {
                "the stream sent [DONE] without a finish reason"
            } else {
                "the answer ended without a finish reason"
            };
            return Err(AnswerError::new(ErrorClass::NoFinish, message));
        }
        if exchange.stamps.last_token.is_none() {
            return Err(AnswerError::new(ErrorClass::Empty, "the answer had no tokens"));
        }
        Ok(())
    }

    fn count_tokens(&self, exchange: &mut Exchange) {
        // Once per answer, they add up; for a single answer, the last one holds.
        let with_choice: Vec<_> = self.answers.iter().filter_map(|answer| answer.usage).collect();
        let said = if self.closing.is_empty() { &with_choice } else { &self.closing };
        let added_up = if self.answers.len() > 1 { said.len() } else { 1 };
        let latest = &said[said.len().saturating_sub(added_up)..];
        let usage = latest.last().map(|last| ApiUsage {
            completion_tokens: json::Number(
                latest
                    .iter()
                    .map(|usage| usage.completion_tokens.0)
                    .try_fold(0u32, |sum, n| Some(sum.saturating_add(n?))),
            ),
            ..*last
        });
        if let Some(usage) = usage {
            let count = |n: u32| TokenCount { n, source: TokenSource::Usage };
            exchange.input_tokens = usage.prompt_tokens.0.map(count);
            // Zero with text does not count as a count.
            let said = usage.completion_tokens.0.filter(|n| *n > 0 || exchange.chunks.is_empty());
            exchange.output_tokens = said.map(count);
            let details = usage.prompt_tokens_details.0.unwrap_or_default();
            exchange.cached_tokens = details.cached_tokens.0;
            exchange.image_tokens = details.image_tokens.0;
        }
        if exchange.output_tokens.is_none() && !exchange.chunks.is_empty() {
            exchange.output_tokens = Some(count_chunks(&exchange.chunks, self.beyond));
        }
    }

    fn keep_data(&self, data: &[u8], exchange: &mut Exchange) {
        if self.keep_text {
            let text = exchange.text.get_or_insert_default();
            let more = answer_text(data);
            let mut room = self.most_text.saturating_sub(text.len()).min(more.len());
            while !more.is_char_boundary(room) {
                room -= 1;
            }
            text.push_str(&more[..room]);
        }
    }
}

/// The best count there is without usage.
fn count_chunks(chunks: &[Chunk], beyond: Beyond) -> TokenCount {
    let listed =
        chunks.iter().try_fold(beyond.tokens, |sum, c| Some(sum.saturating_add(c.tokens?)));
    if let Some(n) = listed.filter(|_| !beyond.has_unsaid) {
        return TokenCount { n, source: TokenSource::Chunks };
    }
    let n = (chunks.len() as u32).saturating_add(beyond.chunks);
    TokenCount { n, source: TokenSource::Events }
}

fn find_error(body: &ApiBody) -> Option<String> {
    if let Some(error) = &body.error {
        return Some(json::error_text(error));
    }
    let message = body.message.as_ref().map(json::error_text);
    body.object.0.then(|| message.unwrap_or_else(|| "error".to_owned()))
}

/// A finish reason is a word; of something longer the beginning is kept, with a mark.
fn clip_reason(reason: &str) -> String {
    match reason.char_indices().nth(MOST_REASON) {
        None => reason.to_owned(),
        Some(_) => reason.chars().take(MOST_REASON - 1).chain(['…']).collect(),
    }
}

/// The beginning of foreign bytes as text, for an error message. Longer than what is kept: secrets
/// are removed before the message is cut to its final length.
pub(crate) fn clip_bytes(bytes: &[u8]) -> String {
    if let Some(page) = web_page_title(bytes) {
        return page;
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A web page as its title only: its source says nothing to a user. `None` for other text.
fn web_page_title(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii_start();
    let begins = |tag: &str| {
        bytes.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
    };
    if !begins("<!doctype html") && !begins("<html") {
        return None;
    }
    // ASCII lower case keeps byte positions.
    let text = String::from_utf8_lossy(bytes);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|at| {
        let from = at + "<title>".len();
        text.get(from..from + lower.get(from..)?.find("</title>")?)
    });
    let title: String = title.unwrap_or_default().chars().take(LOOKED_AT).collect();
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(if title.is_empty() { "a web page".to_owned() } else { format!("web page `{title}`") })
}

/// The failure of who answered, but not with what was asked for.
pub(crate) fn refusal_failure(class: ErrorClass, bytes: &[u8]) -> Failure {
    scrub_failure(Failure { class, stage: FailureStage::Headers, message: clip_bytes(bytes) })
}

/// The beginning of a word.
fn clip_word(word: &str) -> String {
    word.chars().take(LOOKED_AT).collect()
}

#[cfg(test)]
mod tests;
