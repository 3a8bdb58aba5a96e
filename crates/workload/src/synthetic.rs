//! Sessions of generated text: single prompts, conversations, agents with tools.
//!
//! Prompt lengths of later steps are what the plan says: everything said so far, answers at their
//! planned length. The server's answers need not count the same as text, so they are about right.

use goodput_model::{History, Message, Nanos, Role, Session, SessionPlan, SessionStep, ToolsPlan};

use crate::author::guess_tokens;
use crate::maker::SessionMaker;
use crate::prefix;
use crate::sizes::LengthSource;
use crate::text::Begin;

/// Steps of a session at most: a distribution without an end must not fill the memory.
const MOST_STEPS: usize = 10_000;

/// A session of generated text.
pub(crate) fn synthetic_session(maker: &mut SessionMaker, sizes: &LengthSource) -> Session {
    let (input, output) = sizes.draw(&mut maker.lengths);
    let mut opening = prefix::first_prompt(maker, sizes, input);
    let captions: Vec<&str> =
        maker.session_images().filter_map(|image| image.caption.as_deref()).collect();
    if !captions.is_empty() {
        add_caption(maker, &mut opening, captions.join(" "));
    }
    let images = maker.add_images(&mut opening.messages);
    let Some(plan) = maker.class.session.as_ref() else {
        let mut planned = maker.planned_lengths(opening.tokens, Some(output));
        planned.cached_tokens = opening.cached;
        planned.images = images;
        return Session::single(maker.new_request(opening.messages, planned));
    };
    let history = plan.history;
    let cached = opening.cached.unwrap_or(0);
    let ask = RequestDraft { messages: opening.messages, input: opening.tokens, cached, output };
    let mut talk = SyntheticTalk { maker, sizes, plan, images, steps: Vec::new(), said: 0 };
    talk.add_turns(ask);
    Session { steps: talk.steps, history }
}

/// Requests of the session that [`synthetic_session`] makes, by the draws that decide on them.
pub(crate) fn session_request_count(maker: &mut SessionMaker, plan: &SessionPlan) -> u64 {
    let turns = plan.turns.draw(&mut maker.pauses).max(1);
    let (mut steps, mut requests) = (1, 1);
    for turn in 0..turns {
        if turn > 0 {
            if steps >= MOST_STEPS {
                break;
            }
            plan.think.draw(&mut maker.pauses);
            (steps, requests) = (steps + 1, requests + 1);
        }
        let Some(tools) = &plan.tools else { continue };
        for _ in 0..tools.calls.draw(&mut maker.pauses) {
            if steps >= MOST_STEPS {
                break;
            }
            tools.delay.draw(&mut maker.pauses);
            (steps, requests) = (steps + 1, requests + 1 + u64::from(tools.fan_out));
        }
    }
    requests
}

/// The folder's words instead of ours, behind the system prompt. What comes again has a nonce.
fn add_caption(maker: &mut SessionMaker, opening: &mut prefix::FirstPrompt, mut text: String) {
    let system = maker.class.prefix.as_ref().map_or(0, |prefix| prefix.system_tokens);
    if maker.repeats_images() {
        let tokens = maker.author.lexicon.nonce_tokens().saturating_add(2);
        let nonce = Some(maker.nonce());
        let set_apart = maker.author.write(tokens, Begin::Message, nonce, &mut maker.text);
        text = format!("{set_apart} {text}");
    }
    opening.tokens = maker.author.tokens_before_user(system).saturating_add(guess_tokens(&text));
    opening.messages.pop();
    opening.messages.push(Message::text(Role::User, text));
    opening.cached = (system > 0)
        .then(|| maker.author.whole_block_tokens(maker.author.tokens_before_user(system)));
}

/// One request in the making.
struct RequestDraft {
    messages: Vec<Message>,
    /// Tokens of the whole prompt.
    input: u32,
    cached: u32,
    output: u32,
}

/// A conversation in the making.
struct SyntheticTalk<'m, 'a> {
    maker: &'m mut SessionMaker<'a>,
    sizes: &'m LengthSource,
    plan: &'a SessionPlan,
    images: u32,
    steps: Vec<SessionStep>,
    /// Tokens of everything said so far, the last answer included.
    said: u32,
}

impl SyntheticTalk<'_, '_> {
    fn add_turns(&mut self, opening: RequestDraft) {
        let turns = self.plan.turns.draw(&mut self.maker.pauses).max(1);
        self.add_step(Nanos::ZERO, opening, Vec::new());
        self.add_tool_calls();
        for _ in 1..turns {
            if self.steps.len() >= MOST_STEPS {
                return;
            }
            let (drawn, output) = self.sizes.draw(&mut self.maker.lengths);
            let tokens = match self.plan.turn_input {
                Some(lengths) => lengths.draw(&mut self.maker.lengths),
                None => drawn,
            };
            let think = self.plan.think.draw(&mut self.maker.pauses);
            let ask = self.new_request(Role::User, tokens, output);
            self.add_step(think, ask, Vec::new());
            self.add_tool_calls();
        }
    }

    /// The tool calls of a turn: each answer so far was a call, the tool works, and its result is
    /// the next request.
    fn add_tool_calls(&mut self) {
        let Some(tools) = &self.plan.tools else { return };
        let calls = tools.calls.draw(&mut self.maker.pauses);
        for _ in 0..calls {
            if self.steps.len() >= MOST_STEPS {
                return;
            }
            let delay = tools.delay.draw(&mut self.maker.pauses);
            let role = if tools.tool_role { Role::Tool } else { Role::User };
            let main = self.tool_result(tools, role);
            let others = (0..tools.fan_out).map(|_| self.tool_result(tools, Role::User)).collect();
            self.add_step(delay, main, others);
        }
    }

    fn tool_result(&mut self, tools: &ToolsPlan, role: Role) -> RequestDraft {
        let tokens = tools.result.draw(&mut self.maker.lengths);
        let (_, output) = self.sizes.draw(&mut self.maker.lengths);
        self.new_request(role, tokens, output)
    }

    /// A request that adds one message to what was said.
    fn new_request(&mut self, role: Role, tokens: u32, output: u32) -> RequestDraft {
        let text = self.maker.author.write(tokens, Begin::Message, None, &mut self.maker.text);
        RequestDraft {
            messages: vec![Message::text(role, text)],
            // The answer before it is a message of its own.
            input: self
                .said
                .saturating_add(tokens)
                .saturating_add(self.maker.author.message.saturating_mul(2)),
            // The last token of an answer is never computed, so it is not cached.
            cached: self.maker.author.whole_block_tokens(self.said.saturating_sub(1)),
            output,
        }
    }

    fn add_step(&mut self, after: Nanos, main: RequestDraft, others: Vec<RequestDraft>) {
        self.said = main.input.saturating_add(main.output);
        let reply = (self.plan.history == History::Dataset).then(|| {
            let maker = &mut *self.maker;
            let text = maker.author.write(main.output, Begin::Message, None, &mut maker.text);
            Message::text(Role::Assistant, text)
        });
        let turn = self.steps.len() as u32;
        let mut requests = Vec::with_capacity(1 + others.len());
        for ask in std::iter::once(main).chain(others) {
            let mut planned = self.maker.planned_lengths(ask.input, Some(ask.output));
            planned.session = Some(self.maker.number);
            planned.turn = turn;
            planned.cached_tokens = Some(ask.cached);
            planned.images = self.images;
            requests.push(self.maker.new_request(ask.messages, planned));
        }
        self.steps.push(SessionStep { after, requests, reply });
    }
}
