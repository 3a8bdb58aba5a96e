//! Reading a request.

use std::sync::Arc;

use serde_json::Value;

use super::chat::{self, Render};
use super::fields::{ObjectFields, parse_object, wrong_type_error};
use super::refusal::ApiRefusal;
use super::{hash_bytes, mix_bits};

/// Choices of one request, over all its prompts: a short body must not ask for millions.
const MOST_CHOICES: usize = 2048;
const MOST_STOPS: usize = 16;
const MOST_DIMENSIONS: i64 = 16_384;

/// Tokens of all choices, with their alternatives where these are held until the end. An engine
/// without delays makes them all at one instant, so they must fit into memory.
pub(crate) const MOST_TOKENS: u64 = 1 << 20;

/// Numbers of all embeddings.
const MOST_NUMBERS: usize = 1 << 23;

/// Which kind of answer is expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    #[default]
    Chat,
    Completion,
    Embedding,
}

/// What the server holds requests against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestRules<'a> {
    pub(crate) model: &'a str,
    /// Adapters served in addition to the model.
    pub(crate) loras: &'a [String],
    /// Tokens of prompt and answer together.
    pub(crate) max_model_len: u32,
    /// Tokens of an answer that nothing else limits.
    pub(crate) default_tokens: u32,
    /// Tokens of an image, a sound or a film.
    pub(crate) image_tokens: u32,
}

/// Whether a tool is to be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    #[default]
    Never,
    /// As the engine likes.
    Auto,
    /// Always, any of them.
    Required,
    /// Always this one.
    Named(String),
}

/// What a request asks for, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct CheckedRequest {
    pub(crate) kind: AnswerKind,
    pub(crate) prompts: Vec<Arc<[u32]>>,
    /// Prompt tokens that stand for images and other media.
    pub(crate) media_tokens: u32,
    /// Choices for each prompt.
    pub(crate) n: u32,
    /// Tokens of an answer, where the request limits them.
    pub(crate) limit: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) ignore_eos: bool,
    pub(crate) stop: Vec<String>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// Usage on every chunk.
    pub(crate) continuous_usage: bool,
    /// Alternatives per token; none: no logprobs at all.
    pub(crate) logprobs: Option<u8>,
    /// The prompt comes before the answer (completions).
    pub(crate) echo: bool,
    pub(crate) return_token_ids: bool,
    /// Names of the functions on offer.
    pub(crate) tools: Vec<String>,
    pub(crate) tool_choice: ToolChoice,
    /// Reasoning has not been switched off.
    pub(crate) thinking: bool,
    /// With it, answers are a function of the request alone.
    pub(crate) seed: Option<i64>,
    /// Temperature 0: as if a seed were given.
    pub(crate) is_greedy: bool,
    /// Makes answers to equal requests differ if no seed is given; the server may set it.
    pub(crate) salt: u64,
    pub(crate) dimensions: Option<u32>,
    /// Embeddings as base64 of little-endian f32.
    pub(crate) is_base64: bool,
    max_model_len: u32,
    pub(super) default_tokens: u32,
}

impl CheckedRequest {
    /// Reads and checks a body.
    pub(crate) fn read(
        kind: AnswerKind,
        body: &[u8],
        rules: &RequestRules<'_>,
    ) -> Result<Self, ApiRefusal> {
        let body = parse_object(body)?;
        let fields = ObjectFields::new(&body);
        check_model(&fields, rules)?;
        let mut ask = Self {
            kind,
            n: 1,
            thinking: kind == AnswerKind::Chat,
            max_model_len: rules.max_model_len,
            default_tokens: rules.default_tokens,
            ..Self::default()
        };
        match kind {
            AnswerKind::Chat => {
                ask.read_sampling(&fields)?;
                ask.read_chat(&fields, rules)?;
            }
            AnswerKind::Completion => {
                ask.read_sampling(&fields)?;
                ask.read_completion(&fields)?;
            }
            AnswerKind::Embedding => return ask.into_embedding(&fields),
        }
        ask.check_lengths(&fields)?;
        ask.check_sum(&fields)?;
        Ok(ask)
    }

    /// Choices over all prompts; those of one prompt come together.
    pub(crate) fn choices(&self) -> u32 {
        u32::try_from(self.prompts.len()).unwrap_or(u32::MAX).saturating_mul(self.n)
    }

    /// The prompt that a choice answers.
    pub(crate) fn prompt_of(&self, choice: u32) -> Option<&Arc<[u32]>> {
        self.prompts.get((choice / self.n.max(1)) as usize)
    }

    /// Tokens of all prompts; each is counted once, however many choices it has.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        let sum: usize = self.prompts.iter().map(|prompt| prompt.len()).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// Tokens that fit behind the prompt of a choice.
    pub(crate) fn tokens_left_for(&self, choice: u32) -> u32 {
        let prompt = self.prompt_of(choice).map_or(0, |prompt| prompt.len());
        self.max_model_len.saturating_sub(u32::try_from(prompt).unwrap_or(u32::MAX))
    }

    /// What the words of an answer are a function of.
    pub(crate) fn answer_seed(&self, choice: u32) -> u64 {
        let prompt = self.prompt_of(choice).map_or(&[][..], |prompt| prompt);
        let about = hash_bytes(prompt.iter().map(|id| u64::from(*id)));
        let drawn = match self.seed {
            Some(seed) => mix_bits(seed.cast_unsigned()),
            None if self.is_greedy => 0,
            None => mix_bits(!self.salt),
        };
        mix_bits(about ^ drawn).wrapping_add(mix_bits(u64::from(choice % self.n.max(1))))
    }

    /// What chat and completions have in common.
    fn read_sampling(&mut self, fields: &ObjectFields<'_>) -> Result<(), ApiRefusal> {
        self.n = fields.integer("n", 1..=128)?.unwrap_or(1) as u32;
        for name in ["max_completion_tokens", "max_tokens"] {
            let limit = fields.integer(name, 1..=i64::MAX)?;
            let limit = limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX));
            self.limit = self.limit.or(limit);
        }
        let least = fields.integer("min_tokens", 0..=i64::MAX)?.unwrap_or(0);
        self.min_tokens = u32::try_from(least).unwrap_or(u32::MAX);
        if self.limit.is_some_and(|limit| self.min_tokens > limit) {
            let message = format!("`min_tokens` {least} is more than `max_tokens`");
            return Err(ApiRefusal::bad_field("min_tokens", message));
        }
        self.ignore_eos = fields.flag("ignore_eos")?;
        self.stop = read_stop_strings(fields)?;
        self.return_token_ids = fields.flag("return_token_ids")?;
        self.seed = fields.integer("seed", i64::MIN..=i64::MAX)?;
        self.is_greedy = check_numbers(fields)?;
        self.stream = fields.flag("stream")?;
        if let Some(options) = fields.object("stream_options")? {
            if !self.stream {
                let message = "`stream_options` needs `stream` to be true";
                return Err(ApiRefusal::bad_field("stream_options", message));
            }
            self.include_usage = options.flag("include_usage")?;
            let is_continuous = options.flag("continuous_usage_stats")?;
            self.continuous_usage = self.include_usage && is_continuous;
        }
        Ok(())
    }

    fn read_chat(
        &mut self,
        fields: &ObjectFields<'_>,
        rules: &RequestRules<'_>,
    ) -> Result<(), ApiRefusal> {
        let top = fields.integer("top_logprobs", 0..=20)?;
        if fields.flag("logprobs")? {
            self.logprobs = Some(top.unwrap_or(0) as u8);
        } else if top.unwrap_or(0) > 0 {
            let message = "`top_logprobs` needs `logprobs` to be true";
            return Err(ApiRefusal::bad_field("top_logprobs", message));
        }
        if fields.text("reasoning_effort")? == Some("none") {
            self.thinking = false;
        }
        if let Some(template) = fields.object("chat_template_kwargs")? {
            for name in ["enable_thinking", "thinking"] {
                self.thinking &= template.boolean(name)?.unwrap_or(true);
            }
        }
        let tools = fields.list("tools")?.unwrap_or_default();
        self.read_tools(fields, tools)?;
        let messages = fields
            .list("messages")?
            .ok_or_else(|| ApiRefusal::bad_field("messages", "`messages` is missing"))?;
        let mut render = Render::new(rules.image_tokens, rules.max_model_len as usize);
        render.add_tools(tools);
        render.add_messages(messages)?;
        render.add_answer_header();
        self.media_tokens = render.media_tokens;
        self.prompts.push(render.ids.into());
        Ok(())
    }

    fn read_tools(&mut self, fields: &ObjectFields<'_>, tools: &[Value]) -> Result<(), ApiRefusal> {
        for (at, tool) in tools.iter().enumerate() {
            let name = tool.get("function").and_then(|function| function.get("name")?.as_str());
            let Some(name) = name else {
                let field = format!("tools[{at}].function.name");
                let message = format!("`{field}` is missing or not a string");
                return Err(ApiRefusal::bad_field(field, message));
            };
            self.tools.push(name.to_owned());
        }
        self.tool_choice = match fields.get("tool_choice") {
            None if tools.is_empty() => ToolChoice::Never,
            None => ToolChoice::Auto,
            Some(choice) => read_tool_choice(choice, &self.tools)?,
        };
        Ok(())
    }

    fn read_completion(&mut self, fields: &ObjectFields<'_>) -> Result<(), ApiRefusal> {
        self.logprobs = fields.integer("logprobs", 0..=20)?.map(|top| top as u8);
        self.echo = fields.flag("echo")?;
        self.read_prompts("prompt", fields)
    }

    fn into_embedding(mut self, fields: &ObjectFields<'_>) -> Result<Self, ApiRefusal> {
        let dimensions = fields.integer("dimensions", 1..=MOST_DIMENSIONS)?;
        self.dimensions = dimensions.map(|count| count as u32);
        self.is_base64 = match fields.text("encoding_format")? {
            None | Some("float") => false,
            Some("base64") => true,
            Some(other) => {
                let message = format!("`encoding_format` is `{other}`; it must be float or base64");
                return Err(ApiRefusal::bad_field("encoding_format", message));
            }
        };
        self.read_prompts("input", fields)?;
        for prompt in &self.prompts {
            if prompt.len() > self.max_model_len as usize {
                return Err(self.prompt_too_long("input", prompt.len()));
            }
        }
        let dimensions = self.dimensions.unwrap_or(0) as usize;
        if dimensions * self.prompts.len() > MOST_NUMBERS {
            let message = format!("`dimensions` asks for more than {MOST_NUMBERS} numbers at once");
            return Err(ApiRefusal::bad_field("dimensions", message));
        }
        Ok(self)
    }

    fn read_prompts(
        &mut self,
        name: &'static str,
        fields: &ObjectFields<'_>,
    ) -> Result<(), ApiRefusal> {
        let value = fields
            .get(name)
            .ok_or_else(|| ApiRefusal::bad_field(name, format!("`{name}` is missing")))?;
        let prompts = chat::parse_prompts(name, value)?;
        if prompts.len().saturating_mul(self.n as usize) > MOST_CHOICES {
            let message = format!("`{name}` asks for more than {MOST_CHOICES} answers at once");
            return Err(ApiRefusal::bad_field(name, message));
        }
        self.prompts = prompts.into_iter().map(Arc::from).collect();
        Ok(())
    }

    /// Every prompt must leave room for its answer.
    fn check_lengths(&self, fields: &ObjectFields<'_>) -> Result<(), ApiRefusal> {
        let most = u64::from(self.max_model_len);
        let prompt_field = if self.kind == AnswerKind::Chat { "messages" } else { "prompt" };
        for prompt in &self.prompts {
            let length = prompt.len() as u64;
            if length >= most {
                return Err(self.prompt_too_long(prompt_field, prompt.len()));
            }
            let Some(limit) = self.limit else { continue };
            if length + u64::from(limit) > most {
                let name = limit_field(fields);
                let asked = fields.get(name).map_or(Value::Null, Clone::clone);
                let message = format!(
                    "this model's context holds {most} tokens; the request has {length} in its {prompt_field} and asks for {asked} more (`{name}`)"
                );
                return Err(ApiRefusal::too_long(name, message));
            }
        }
        Ok(())
    }

    /// The choices together must not be more than memory holds.
    fn check_sum(&self, fields: &ObjectFields<'_>) -> Result<(), ApiRefusal> {
        let each = u64::from(self.limit.unwrap_or(self.default_tokens).max(self.min_tokens));
        let alternatives = if self.stream { 0 } else { self.logprobs.unwrap_or(0) };
        let sum = each * u64::from(self.choices()) * (1 + u64::from(alternatives));
        if sum <= MOST_TOKENS {
            return Ok(());
        }
        let choices = self.choices();
        let name = limit_field(fields);
        let message = format!(
            "the request asks for {choices} times {each} tokens (`{name}`) with {alternatives} alternatives to each; together they must be at most {MOST_TOKENS}"
        );
        Err(ApiRefusal::bad_field(name, message))
    }

    fn prompt_too_long(&self, field: &'static str, length: usize) -> ApiRefusal {
        let most = self.max_model_len;
        let message = format!(
            "this model's context holds {most} tokens; the request has {length} in its {field}"
        );
        ApiRefusal::too_long(field, message)
    }
}

/// The field that limits an answer: the one that is there.
fn limit_field(fields: &ObjectFields<'_>) -> &'static str {
    let is_new = fields.get("max_completion_tokens").is_some();
    if is_new { "max_completion_tokens" } else { "max_tokens" }
}

/// Another model than the one that is served is refused; none is as good as it.
pub(super) fn check_model(
    fields: &ObjectFields<'_>,
    rules: &RequestRules<'_>,
) -> Result<(), ApiRefusal> {
    match fields.text("model")? {
        Some(model) if model != rules.model && rules.loras.iter().all(|lora| lora != model) => {
            Err(ApiRefusal::model_not_found(model, rules.model))
        }
        _ => Ok(()),
    }
}

fn read_stop_strings(fields: &ObjectFields<'_>) -> Result<Vec<String>, ApiRefusal> {
    let stops = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(stops)) => {
            let text = |stop: &Value| stop.as_str().map(str::to_owned);
            stops.iter().map(text).collect::<Option<_>>().ok_or_else(|| {
                ApiRefusal::bad_field("stop", "`stop` must be a string or a list of strings")
            })?
        }
        Some(other) => {
            return Err(wrong_type_error("stop", "a string or a list of strings", other));
        }
    };
    if stops.len() > MOST_STOPS {
        let message = format!("`stop` has {} strings; at most {MOST_STOPS} fit", stops.len());
        return Err(ApiRefusal::bad_field("stop", message));
    }
    if stops.iter().any(String::is_empty) {
        return Err(ApiRefusal::bad_field("stop", "`stop` must not hold an empty string"));
    }
    Ok(stops)
}

fn read_tool_choice(choice: &Value, tools: &[String]) -> Result<ToolChoice, ApiRefusal> {
    let refuse = |message: String| ApiRefusal::bad_field("tool_choice", message);
    let chosen = match choice {
        Value::String(word) => match word.as_str() {
            "none" => return Ok(ToolChoice::Never),
            // Without tools there is nothing to like.
            "auto" if tools.is_empty() => return Ok(ToolChoice::Never),
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            other => {
                let message = format!(
                    "`tool_choice` is `{other}`; it must be none, auto, required or name a function"
                );
                return Err(refuse(message));
            }
        },
        Value::Object(_) => {
            let name = choice.get("function").and_then(|function| function.get("name")?.as_str());
            let name = name.ok_or_else(|| {
                refuse("`tool_choice.function.name` is missing or not a string".to_owned())
            })?;
            ToolChoice::Named(name.to_owned())
        }
        other => return Err(wrong_type_error("tool_choice", "a string or an object", other)),
    };
    if tools.is_empty() {
        return Err(refuse("`tool_choice` asks for a call, but there are no `tools`".to_owned()));
    }
    match &chosen {
        ToolChoice::Named(name) if !tools.contains(name) => {
            Err(refuse(format!("`tool_choice` names `{name}`, which is not among the `tools`")))
        }
        _ => Ok(chosen),
    }
}

/// Checks what has no influence here but a range; says whether the temperature is 0.
fn check_numbers(fields: &ObjectFields<'_>) -> Result<bool, ApiRefusal> {
    let temperature =
        fields.number("temperature", "from 0 to 2", |value| (0.0..=2.0).contains(&value))?;
    let share = |value| value > 0.0 && value <= 1.0;
    fields.number("top_p", "above 0 and at most 1", share)?;
    fields.number("min_p", "from 0 to 1", |value| (0.0..=1.0).contains(&value))?;
    fields.number("repetition_penalty", "above 0", |value| value > 0.0)?;
    for name in ["presence_penalty", "frequency_penalty"] {
        fields.number(name, "from -2 to 2", |value| (-2.0..=2.0).contains(&value))?;
    }
    fields.integer("top_k", -1..=i64::MAX)?;
    Ok(temperature == Some(0.0))
}
