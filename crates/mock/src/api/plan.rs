//! What one answer will be, known before its first token.

use super::ask::{AnswerKind, CheckedRequest, ToolChoice};
use super::mix_bits;
use super::text;
use crate::faults::Quirks;

/// How the engine answers, the same for all requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerBehavior {
    /// Share of an answer that is sent first, as reasoning; 0: none.
    pub(crate) reasoning: f64,
    /// The name that reasoning has in messages and deltas.
    pub(crate) reasoning_field: &'static str,
    /// Share of requests with tools that are answered by a call, where they leave the choice.
    pub(crate) tool_calls: f64,
    /// Tokens in `usage` for each that there is.
    pub(crate) token_factor: f64,
    pub(crate) quirks: Quirks,
}

impl Default for AnswerBehavior {
    fn default() -> Self {
        Self {
            reasoning: 0.0,
            reasoning_field: "reasoning_content",
            tool_calls: 0.0,
            token_factor: 1.0,
            quirks: Quirks::default(),
        }
    }
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Length,
    Stop,
    ToolCalls,
}

impl Finish {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
        }
    }
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerPlan {
    /// Tokens that are generated, those of reasoning and of a stop string among them. Only an
    /// early end makes it 0.
    pub(crate) tokens: u32,
    pub(crate) finish: Finish,
    /// Bytes of the content that are sent: what comes before a stop string.
    pub(crate) cut: Option<usize>,
    /// The stop string that was met.
    pub(crate) stopped_by: Option<String>,
    /// The first tokens, sent as reasoning.
    pub(crate) reasoning_tokens: u32,
    /// The function that is called with the tokens after reasoning.
    pub(crate) tool: Option<String>,
    pub(crate) seed: u64,
    is_accented: bool,
}

impl AnswerPlan {
    /// The text of a token.
    pub(crate) fn token_text(&self, index: u32) -> &'static str {
        if self.is_accented {
            text::accented_text_at(self.seed, index)
        } else {
            text::text_at(self.seed, index)
        }
    }

    /// The id of a token.
    pub(crate) fn token_id(&self, index: u32) -> u32 {
        text::token_at(self.seed, index)
    }

    /// A word that might have come in place of a token; rank 0 is the one that did.
    pub(crate) fn alternative_text(&self, index: u32, rank: u8) -> &'static str {
        // An odd step visits every word once before it repeats.
        let step = (mix_bits(self.seed ^ u64::from(index)) | 1) as u8;
        let choice = text::word_index_at(self.seed, index).wrapping_add(rank.wrapping_mul(step));
        if self.is_accented { text::accented_word_at(choice) } else { text::word_at(choice) }
    }

    /// The text of tokens that are content, up to the cut; `offset` bytes of it came before.
    pub(crate) fn content_texts(
        &self,
        from: u32,
        to: u32,
        offset: usize,
    ) -> impl Iterator<Item = &'static str> {
        let mut left = self.cut.map_or(usize::MAX, |cut| cut.saturating_sub(offset));
        (from..to).map(move |index| {
            let piece = self.token_text(index);
            let sent = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= sent.len();
            sent
        })
    }
}

/// Plans one choice. `natural` is the length at which the answer would end by itself; without
/// one it runs to its limit.
pub(crate) fn plan_answer(
    ask: &CheckedRequest,
    choice: u32,
    natural: Option<u32>,
    behavior: &AnswerBehavior,
) -> AnswerPlan {
    let (mut tokens, mut finish) = answer_length(ask, choice, natural);
    let seed = ask.answer_seed(choice);
    let mut tool = choose_tool(ask, seed, behavior);
    if tool.is_some() {
        finish = Finish::ToolCalls;
    }
    if let Some(early) = behavior.quirks.early_eos_at.filter(|early| *early < tokens) {
        (tokens, finish) = (early, Finish::Stop);
        tool = tool.filter(|_| early > 0);
    }
    let mut plan = AnswerPlan {
        tokens,
        finish,
        cut: None,
        stopped_by: None,
        reasoning_tokens: 0,
        tool,
        seed,
        is_accented: behavior.quirks.utf8,
    };
    if ask.kind == AnswerKind::Chat && ask.thinking {
        let share = behavior.reasoning.clamp(0.0, 1.0);
        // Something is left to say, unless thinking is all there is.
        let most =
            if share < 1.0 || plan.tool.is_some() { tokens.saturating_sub(1) } else { tokens };
        plan.reasoning_tokens = ((f64::from(tokens) * share).round() as u32).min(most);
    }
    if plan.tool.is_none() && !ask.stop.is_empty() {
        cut_at_stop(&mut plan, ask);
    }
    plan
}

fn answer_length(ask: &CheckedRequest, choice: u32, natural: Option<u32>) -> (u32, Finish) {
    let room = ask.tokens_left_for(choice).max(1);
    let least = ask.min_tokens.clamp(1, room);
    if ask.ignore_eos {
        return (ask.limit.unwrap_or(ask.default_tokens.max(least)).clamp(1, room), Finish::Length);
    }
    let end = match (natural, ask.limit) {
        (Some(natural), _) => natural.max(least),
        (None, None) => ask.default_tokens.max(least),
        (None, Some(limit)) => limit,
    };
    let limit = ask.limit.unwrap_or(room).min(room);
    // An answer that has no limit but the room ends by itself even where it fills the room.
    let ends_itself = end < limit || (ask.limit.is_none() && end == limit);
    (end.min(limit), if ends_itself { Finish::Stop } else { Finish::Length })
}

fn choose_tool(ask: &CheckedRequest, seed: u64, behavior: &AnswerBehavior) -> Option<String> {
    let any = || {
        let at = mix_bits(seed ^ 0x7001) % (ask.tools.len() as u64).max(1);
        ask.tools.get(at as usize).cloned()
    };
    match &ask.tool_choice {
        ToolChoice::Never => None,
        ToolChoice::Named(name) => Some(name.clone()),
        ToolChoice::Required => any(),
        ToolChoice::Auto => {
            let drawn = (mix_bits(seed ^ 0x7002) >> 11) as f64 / (1u64 << 53) as f64;
            if drawn < behavior.tool_calls { any() } else { None }
        }
    }
}

/// Ends the answer where its content first completes one of the stop strings.
fn cut_at_stop(plan: &mut AnswerPlan, ask: &CheckedRequest) {
    // Most bytes end no stop string: they are not worth a comparison with each.
    let mut ends_one = [false; 256];
    for last in ask.stop.iter().filter_map(|stop| stop.bytes().last()) {
        ends_one[usize::from(last)] = true;
    }
    let mut content = Vec::new();
    for index in plan.reasoning_tokens..plan.tokens {
        let piece = plan.token_text(index);
        for byte in piece.bytes() {
            content.push(byte);
            if index < ask.min_tokens || !ends_one[usize::from(byte)] {
                continue;
            }
            let met = ask.stop.iter().filter(|stop| content.ends_with(stop.as_bytes()));
            if let Some(stop) = met.max_by_key(|stop| stop.len()) {
                plan.cut = Some(content.len() - stop.len());
                plan.stopped_by = Some(stop.clone());
                plan.tokens = index + 1;
                plan.finish = Finish::Stop;
                return;
            }
        }
    }
}
