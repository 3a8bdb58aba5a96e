//! Tests of the API as a whole: what is asked against what is written.

use serde_json::{Value, json};

use super::*;

mod planning;
mod quirks;
mod reading;
mod streaming;

const RULES: RequestRules<'static> = RequestRules {
    model: "mock",
    loras: &[],
    max_model_len: 4096,
    default_tokens: 20,
    image_tokens: 100,
};
const HEAD: EventHead<'static> =
    EventHead { id: 0xb770_7c0e_b6fc_f054, created: 1_794_711_920, model: "mock" };

fn read(kind: AnswerKind, body: &Value) -> Result<CheckedRequest, ApiRefusal> {
    CheckedRequest::read(kind, body.to_string().as_bytes(), &RULES)
}

/// A chat with one short message and these fields besides.
fn chat(more: &Value) -> CheckedRequest {
    read(AnswerKind::Chat, &with(json!({"messages": [{"role": "user", "content": "hello"}]}), more))
        .unwrap()
}

fn completion(more: &Value) -> CheckedRequest {
    read(AnswerKind::Completion, &with(json!({"prompt": "say it"}), more)).unwrap()
}

fn with(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn plans(ask: &CheckedRequest, natural: Option<u32>, behavior: &AnswerBehavior) -> Vec<AnswerPlan> {
    (0..ask.choices()).map(|choice| plan_answer(ask, choice, natural, behavior)).collect()
}

/// The whole stream of an answer, with `step` tokens an event and all choices in turn.
fn stream(
    ask: &CheckedRequest,
    natural: Option<u32>,
    behavior: &AnswerBehavior,
    step: u32,
) -> String {
    let plans = plans(ask, natural, behavior);
    let mut writer = StreamWriter::new(&HEAD, ask, plans.clone(), behavior);
    writer.cached = 3;
    let mut out = Vec::new();
    for choice in 0..ask.choices() {
        writer.write_role(choice, &mut out);
    }
    let longest = plans.iter().map(|plan| plan.tokens).max().unwrap();
    for from in (0..longest).step_by(step as usize) {
        for choice in 0..ask.choices() {
            writer.write_tokens(choice, from, step, &mut out);
        }
    }
    for choice in 0..ask.choices() {
        writer.write_finish(choice, &mut out);
    }
    writer.write_usage(&mut out);
    writer.write_done(&mut out);
    String::from_utf8(out).unwrap()
}

/// The data of each event, comments left out.
fn data(stream: &str) -> Vec<String> {
    let stream = stream.replace("\r\n", "\n");
    assert!(stream.ends_with("\n\n"), "the last event is not ended");
    let events = stream.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    let data = |event: &str| {
        let data = event.strip_prefix("data:").unwrap();
        data.strip_prefix(' ').unwrap_or(data).to_owned()
    };
    events.map(data).collect()
}

/// The JSON of each event but `[DONE]`.
fn events(stream: &str) -> Vec<Value> {
    let data = data(stream);
    let json = data.iter().filter(|data| *data != "[DONE]");
    json.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}"))).collect()
}

/// What a client that follows the protocol makes of a choice.
#[derive(Debug, Default, PartialEq)]
struct ParsedStream {
    text: String,
    reasoning: String,
    arguments: String,
    function: Option<String>,
    call_id: Option<String>,
    finish: Option<String>,
    stop_reason: Option<String>,
    token_ids: Vec<u64>,
    /// Texts, offsets and values of logprobs.
    logprobs: Vec<String>,
}

impl ParsedStream {
    fn add(&mut self, choice: &Value) {
        let said = choice.get("delta").or(choice.get("message")).unwrap_or(choice);
        for name in ["content", "text"] {
            self.text += said[name].as_str().unwrap_or_default();
        }
        for name in ["reasoning_content", "reasoning"] {
            self.reasoning += said[name].as_str().unwrap_or_default();
        }
        if let Some(call) = said["tool_calls"].get(0) {
            let owned = |value: &Value| value.as_str().map(str::to_owned);
            self.arguments += call["function"]["arguments"].as_str().unwrap();
            self.function = self.function.take().or(owned(&call["function"]["name"]));
            self.call_id = self.call_id.take().or(owned(&call["id"]));
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            assert!(self.finish.replace(finish.to_owned()).is_none(), "two finish reasons");
            self.stop_reason = choice["stop_reason"].as_str().map(str::to_owned);
        }
        let ids = choice["token_ids"].as_array().into_iter().flatten();
        self.token_ids.extend(ids.map(|id| id.as_u64().unwrap()));
        let logprobs = &choice["logprobs"];
        if let Some(content) = logprobs["content"].as_array() {
            self.logprobs.extend(content.iter().map(Value::to_string));
        }
        for (at, token) in logprobs["tokens"].as_array().into_iter().flatten().enumerate() {
            let names = ["text_offset", "token_logprobs", "top_logprobs"];
            let rest = names.map(|name| logprobs[name][at].to_string()).join(" ");
            self.logprobs.push(format!("{token} {rest}"));
        }
    }
}

fn heard(ask: &CheckedRequest, events: &[Value]) -> Vec<ParsedStream> {
    let mut all: Vec<_> = (0..ask.choices()).map(|_| ParsedStream::default()).collect();
    for choice in events.iter().flat_map(|event| event["choices"].as_array().unwrap()) {
        all[choice["index"].as_u64().unwrap() as usize].add(choice);
    }
    all
}

fn heard_whole(
    ask: &CheckedRequest,
    natural: Option<u32>,
    behavior: &AnswerBehavior,
) -> (Vec<ParsedStream>, Value) {
    let body = whole_answer(&HEAD, ask, &plans(ask, natural, behavior), behavior, 3);
    let body: Value = serde_json::from_slice(&body).unwrap();
    (heard(ask, std::slice::from_ref(&body)), body)
}
