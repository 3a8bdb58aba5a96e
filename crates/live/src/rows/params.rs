//! Parameters of a request other than its prompt: numbers, flags, and known words.

use goodput_dataset::{Param, Params};

use crate::rows::json::{JsonFields, for_each_element};

/// Fields whose numbers are kept.
const NUMBERS: [&str; 14] = [
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "n",
    "best_of",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "top_logprobs",
    "logprobs",
];
/// Fields that are true or false.
const FLAGS: [&str; 6] =
    ["stream", "logprobs", "parallel_tool_calls", "ignore_eos", "echo", "store"];
/// Fields of one word, and the words that are kept.
const WORDS: [(&str, &[&str]); 3] = [
    ("tool_choice", &["none", "auto", "required"]),
    ("reasoning_effort", &["none", "minimal", "low", "medium", "high", "xhigh"]),
    ("service_tier", &["auto", "default", "flex", "priority", "scale"]),
];
/// Fields that put the answer under a constraint.
const CONSTRAINTS: [&str; 6] = [
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "json_schema",
];
/// Lists whose lengths are kept.
const LISTS: [&str; 3] = ["tools", "functions", "stop"];

/// Every field of a body that is looked at.
pub(crate) const NAMES: &[&str] = &[
    "model",
    "messages",
    "prompt",
    "cache_salt",
    "response_format",
    "stream_options",
    "tools",
    "functions",
    "stop",
    "stream",
    "logprobs",
    "parallel_tool_calls",
    "ignore_eos",
    "echo",
    "store",
    "tool_choice",
    "reasoning_effort",
    "service_tier",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "json_schema",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "n",
    "best_of",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "top_logprobs",
];

/// The parameters of a body.
pub(crate) fn read_params(body: &JsonFields<'_>) -> Params {
    let mut params = Params::default();
    for name in FLAGS {
        if let Some(flag @ ("true" | "false")) = body.get(name) {
            params.set(name, Param::Flag(flag == "true"));
        }
    }
    for name in NUMBERS {
        if let Some(number) = body.get(name).and_then(parse_number_param) {
            params.set(name, number);
        }
    }
    for (name, words) in WORDS {
        let Some(json) = body.get(name) else { continue };
        let said = crate::rows::json::parse_text(json);
        let known = words.iter().find(|word| said.as_deref() == Some(*word));
        params.set(name, Param::Word(known.copied().unwrap_or("other")));
    }
    for name in LISTS {
        let Some(json) = body.get(name) else { continue };
        let mut count = 0;
        // A single text stands for a list of one.
        let count = if for_each_element(json, |_| count += 1) { count } else { 1 };
        params.set(name, Param::Whole(count));
    }
    if let Some(json) = body.get("response_format") {
        params.set("response_format", Param::Word(response_format_kind(json)));
    }
    if CONSTRAINTS.iter().any(|name| body.get(name).is_some()) {
        params.set("constraint", Param::Flag(true));
    }
    let usage = body.get("stream_options").and_then(|json| {
        JsonFields::parse(json, &["include_usage"])?.get("include_usage").map(|flag| flag == "true")
    });
    if let Some(usage) = usage {
        params.set("include_usage", Param::Flag(usage));
    }
    params
}

fn parse_number_param(json: &str) -> Option<Param> {
    if let Ok(whole) = json.parse::<u64>() {
        return Some(Param::Whole(whole));
    }
    json.parse::<f64>().ok().filter(|number| number.is_finite()).map(Param::Number)
}

fn response_format_kind(json: &str) -> &'static str {
    let kind = JsonFields::parse(json, &["type"]).and_then(|format| format.get_text("type"));
    match kind.as_deref() {
        Some("text") => "text",
        Some("json_object") => "json_object",
        Some("json_schema") => "json_schema",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_is_kept_is_looked_for() {
        let words = WORDS.iter().map(|(name, _)| *name);
        let all = NUMBERS.into_iter().chain(FLAGS).chain(CONSTRAINTS).chain(LISTS).chain(words);
        for name in all {
            assert!(NAMES.contains(&name), "{name}");
        }
    }

    #[test]
    fn numbers_flags_and_words_but_no_text() {
        let body = r#"{"stream":true,"max_tokens":64,"temperature":0.25,"n":"two","logprobs":5,
            "stop":["SECRET","WORDS"],"tool_choice":{"function":{"name":"SECRET"}},
            "reasoning_effort":"SECRET","response_format":{"type":"json_schema","json_schema":{}},
            "guided_regex":"SECRET","stream_options":{"include_usage":true},"user":"SECRET"}"#;
        let params = read_params(&JsonFields::parse(body, NAMES).unwrap());
        let expected = [
            ("stream", Param::Flag(true)),
            ("max_tokens", Param::Whole(64)),
            ("temperature", Param::Number(0.25)),
            ("logprobs", Param::Whole(5)),
            ("stop", Param::Whole(2)),
            ("tool_choice", Param::Word("other")),
            ("reasoning_effort", Param::Word("other")),
            ("response_format", Param::Word("json_schema")),
            ("constraint", Param::Flag(true)),
            ("include_usage", Param::Flag(true)),
        ];
        for (name, value) in expected {
            assert_eq!(params.get(name), Some(value), "{name}");
        }
        assert_eq!(params.get("n"), None);
        assert!(!format!("{params:?}").contains("SECRET"));
    }
}
