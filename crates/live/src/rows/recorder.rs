//! From a request and its answer to a row.

use goodput_dataset::trace::MOST_GAPS;
use goodput_dataset::{Param, TokenCounter, TraceRow};
use goodput_model::{Api, ErrorClass, Exchange, Nanos, TokenSource, known_finish};
use goodput_tokens::{Tokenizer, estimate_tokens};

use crate::rows::blocks::Cutter;
use crate::rows::json::JsonFields;
use crate::rows::params::{self, read_params};
use crate::rows::prompt::{self, Talk};
use crate::rows::salted::{Key, Salt, Use, number_from_key};
use crate::rows::sessions::{EndedExchange, Sessions};

/// The longest prompt or answer that a row states: readers take no longer one.
const MOST_TOKENS: u32 = 10_000_000;

/// How rows are made.
#[derive(Clone)]
pub struct RowSettings {
    /// Counts prompts, and cuts them into blocks.
    pub tokenizer: Tokenizer,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Drawn for this file alone.
    pub salt: [u8; 32],
    /// Whether rows hold the text itself.
    pub save_text: bool,
}

/// Makes rows; knows which requests follow which.
pub struct Recorder {
    settings: RowSettings,
    salt: Salt,
    sessions: Sessions,
}

/// What is kept of a request until its answer is over: nothing of its text, unless asked for.
#[derive(Debug, Clone, Default)]
pub struct KeptRequest {
    /// What is known so far.
    pub row: TraceRow,
    /// The name of its session.
    named: Option<Key>,
    /// Its conversation.
    talk: Option<Talk>,
}

impl Recorder {
    /// For one file.
    pub fn new(settings: RowSettings) -> Self {
        let salt = Salt(settings.salt);
        Self { settings, salt, sessions: Sessions::default() }
    }

    /// A request that came whole, `at` after the file's first instant. Its body is whatever came;
    /// empty if no session has it.
    pub fn start_row(
        &self,
        at: Nanos,
        api: Api,
        body: &[u8],
        session: Option<&str>,
    ) -> KeptRequest {
        let name = session.map(str::trim).filter(|name| !name.is_empty());
        let named = name.map(|name| self.salt.hash_parts(Use::Session, &[name.as_bytes()]));
        let mut question = KeptRequest { named, ..KeptRequest::default() };
        question.row.at = at;
        question.row.endpoint = Some(api);
        let Ok(text) = std::str::from_utf8(body) else { return question };
        if self.settings.save_text && !text.is_empty() {
            question.row.body = Some(text.to_owned());
        }
        if let Some(fields) = JsonFields::parse(text, params::NAMES) {
            self.read_request(&fields, &mut question);
        }
        question
    }

    fn read_request(&self, fields: &JsonFields<'_>, question: &mut KeptRequest) {
        let row = &mut question.row;
        let model = fields.get_text("model");
        row.model = model.as_deref().map(|name| self.model_name(name));
        row.params = read_params(fields);
        // A cache is one model's, and with a salt of its own one client's.
        let apart = fields.get_text("cache_salt");
        let names = [model, apart].map(Option::unwrap_or_default);
        let beginning =
            self.salt.hash_parts(Use::Prompt, &names.each_ref().map(|name| name.as_bytes()));
        let RowSettings { tokenizer, block_tokens, .. } = &self.settings;
        let cutter = Cutter::new(tokenizer, *block_tokens, self.salt, &beginning);
        let Some(prompt) = prompt::read_prompt(fields, self.salt, beginning, cutter) else {
            return;
        };
        row.input_tokens = prompt.tokens.min(MOST_TOKENS);
        row.input_by = (row.input_tokens > 0).then_some(self.token_counter());
        row.blocks = prompt.blocks;
        for (name, count) in [("messages", prompt.messages), ("attachments", prompt.things)] {
            if count > 0 {
                row.params.set(name, Param::Whole(count));
            }
        }
        question.talk = prompt.talk;
    }

    /// Its answer is over; `arrived` is the instant of the request on the exchange's clock.
    pub fn finish_row(
        &mut self,
        question: KeptRequest,
        arrived: Nanos,
        exchange: &Exchange,
    ) -> TraceRow {
        let KeptRequest { mut row, named, talk } = question;
        let stamps = &exchange.stamps;
        let done = stamps.done.filter(|_| exchange.failure.is_none());
        let took = done.unwrap_or(stamps.ended) - arrived;
        row.took = Some(took);
        row.ttft = stamps.first_token.map(|first| first - arrived);
        let gap = |pair: &[goodput_model::Chunk]| match pair {
            [one, next] => u32::try_from((next.at - one.at).0 / 1_000).unwrap_or(u32::MAX),
            _ => 0,
        };
        row.gaps = exchange.chunks.windows(2).take(MOST_GAPS).map(gap).collect();
        row.status = exchange.status;
        row.finish = exchange.finish.as_deref().map(known_finish).map(str::to_owned);
        let failure = exchange.failure.as_ref().map(|failure| failure.class);
        row.failure = failure.filter(|class| !matches!(class, ErrorClass::Http(_)));
        row.cached_tokens = exchange.cached_tokens;
        self.set_lengths(&mut row, exchange);
        if self.settings.save_text {
            row.answer.clone_from(&exchange.text);
        }
        let is_good = exchange.status.is_some_and(|status| (200..300).contains(&status));
        let answer = is_good.then(|| exchange.text.as_deref().unwrap_or_default());
        match (named, talk) {
            (Some(name), _) => self.set_named_session(&mut row, name, took),
            (None, Some(talk)) => self.link_conversation(&mut row, &talk, took, answer),
            (None, None) => {}
        }
        row
    }

    /// Sets the lengths: what the server counts wins.
    fn set_lengths(&self, row: &mut TraceRow, exchange: &Exchange) {
        let is_sound = |n: &u32| (1..=MOST_TOKENS).contains(n);
        let usage = exchange.input_tokens.filter(|count| count.source == TokenSource::Usage);
        if let Some(tokens) = usage.map(|count| count.n).filter(is_sound) {
            row.input_tokens = tokens;
            row.input_by = Some(TokenCounter::Usage);
        }
        let (tokens, by) = self.count_output(exchange);
        row.output_tokens = tokens.min(MOST_TOKENS);
        row.output_by = by.filter(|_| tokens > 0);
    }

    /// Answer tokens: by the server, by what its events list, by a tokenizer, by events, by estimate.
    fn count_output(&self, exchange: &Exchange) -> (u32, Option<TokenCounter>) {
        let said = exchange.output_tokens.filter(|count| count.n <= MOST_TOKENS);
        let mut events = u32::try_from(exchange.chunks.len()).unwrap_or(u32::MAX);
        match said.map(|count| (count.n, count.source)) {
            Some((tokens, TokenSource::Usage)) => return (tokens, Some(TokenCounter::Usage)),
            Some((tokens, TokenSource::Chunks)) => return (tokens, Some(TokenCounter::Chunks)),
            // Of a long answer not all chunks are kept.
            Some((tokens, TokenSource::Events)) => events = tokens,
            _ => {}
        }
        let text = exchange.text.as_deref().filter(|text| !text.is_empty());
        match text {
            Some(text) if self.settings.tokenizer.is_exact() => {
                let mut cost = 0u64;
                self.settings.tokenizer.walk_units(text, |unit| {
                    cost += unit.cost_hundredths();
                    true
                });
                let tokens = u32::try_from(cost.div_ceil(100)).unwrap_or(u32::MAX);
                (tokens, Some(TokenCounter::Tokenizer))
            }
            Some(text) if events == 0 => (estimate_tokens(text), Some(TokenCounter::Estimate)),
            _ => (events, Some(TokenCounter::Chunks)),
        }
    }

    /// A session that the client named.
    fn set_named_session(&mut self, row: &mut TraceRow, name: Key, took: Nanos) {
        let session = format!("n{}", number_from_key(&name));
        row.after = self.sessions.previous_end(&name, row.at).map(|ended| row.at - ended);
        row.session = Some(session.clone());
        let at = row.at + took;
        self.sessions.add_exchange(EndedExchange {
            session,
            at,
            exact: Some(name),
            others: None,
            users: None,
            is_followed: false,
        });
    }

    /// A conversation: it goes on from an exchange that is known, or begins.
    fn link_conversation(
        &mut self,
        row: &mut TraceRow,
        talk: &Talk,
        took: Nanos,
        answer: Option<&str>,
    ) {
        let found = talk.follows.and_then(|follows| {
            let keys = [Some(follows.exact), Some(follows.others), follows.users];
            keys.iter().flatten().find_map(|key| self.sessions.find_previous(key, row.at))
        });
        row.after = found.as_ref().map(|(_, ended)| row.at - *ended);
        let session = found.map_or_else(|| self.sessions.new_session(), |(session, _)| session);
        row.session = Some(session.clone());
        // What failed has no answer that could be followed.
        let Some(answer) = answer else { return };
        let answer = prompt::content_key(self.salt, answer);
        let exact = Some(prompt::exchange_key(self.salt, &talk.history, &answer));
        let (others, users) = (Some(talk.others), talk.users);
        let at = row.at + took;
        self.sessions.add_exchange(EndedExchange {
            session,
            at,
            exact,
            others,
            users,
            is_followed: false,
        });
    }

    /// A model's name, where it is one: whatever else stands there is not written.
    fn model_name(&self, name: &str) -> String {
        if is_model_name(name) {
            return name.to_owned();
        }
        format!("#{}", number_from_key(&self.salt.hash_parts(Use::Model, &[name.as_bytes()])))
    }

    fn token_counter(&self) -> TokenCounter {
        if self.settings.tokenizer.is_exact() {
            TokenCounter::Tokenizer
        } else {
            TokenCounter::Estimate
        }
    }
}

/// Whether this can be a model's name: clients write there what they like.
pub fn is_model_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@+".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(is_sign)
}

#[cfg(test)]
mod tests;
