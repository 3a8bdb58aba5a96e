//! Small endpoints: tokens of a text and back, the list of models, the version.

use goodput_sim::{EngineProfile, Precision, Profile};
use serde_json::{Value, json};

use super::ask::{RequestRules, check_model};
use super::chat::{Render, parse_token_ids, tokens_of_text};
use super::fields::{ObjectFields, parse_object, wrong_type_error};
use super::parts::{EventHead, push_formatted, push_list, push_numbers, push_quoted};
use super::refusal::ApiRefusal;
use super::tokenizer::decode_tokens;

/// A prompt that is only counted may be longer than the model's context, within reason.
const MOST_TOKENS: usize = 1 << 22;

/// `/tokenize`: the tokens of a prompt or of messages.
pub(crate) fn tokenize_response(
    body: &[u8],
    rules: &RequestRules<'_>,
) -> Result<Vec<u8>, ApiRefusal> {
    let body = parse_object(body)?;
    let fields = ObjectFields::new(&body);
    check_model(&fields, rules)?;
    let tokens = if let Some(messages) = fields.list("messages")? {
        let mut render = Render::new(rules.image_tokens, MOST_TOKENS);
        render.add_tools(fields.list("tools")?.unwrap_or_default());
        render.add_messages(messages)?;
        if fields.boolean("add_generation_prompt")?.unwrap_or(true) {
            render.add_answer_header();
        }
        render.ids
    } else {
        let prompt = fields
            .text("prompt")?
            .ok_or_else(|| ApiRefusal::bad_field("prompt", "give either `prompt` or `messages`"))?;
        tokens_of_text(prompt, fields.boolean("add_special_tokens")?.unwrap_or(true))
    };
    if tokens.len() > MOST_TOKENS {
        let message = format!("there are {} tokens; at most {MOST_TOKENS} fit", tokens.len());
        return Err(ApiRefusal::bad_request(message));
    }
    let mut out = Vec::with_capacity(64 + tokens.len() * 11);
    let (count, most) = (tokens.len(), rules.max_model_len);
    push_formatted(&mut out, format_args!(r#"{{"count":{count},"max_model_len":{most},"tokens":"#));
    push_numbers(&mut out, tokens.iter().copied());
    out.extend_from_slice(br#","token_strs":"#);
    if fields.flag("return_token_strs")? {
        push_list(&mut out, &tokens, |out, id| push_quoted(out, &decode_tokens(&[*id])));
    } else {
        out.extend_from_slice(b"null");
    }
    out.push(b'}');
    Ok(out)
}

/// `/detokenize`: the text of tokens.
pub(crate) fn detokenize_response(
    body: &[u8],
    rules: &RequestRules<'_>,
) -> Result<Vec<u8>, ApiRefusal> {
    let body = parse_object(body)?;
    let fields = ObjectFields::new(&body);
    check_model(&fields, rules)?;
    let tokens = match fields.get("tokens") {
        None => return Err(ApiRefusal::bad_field("tokens", "`tokens` is missing")),
        Some(Value::Array(tokens)) if tokens.is_empty() => Vec::new(),
        Some(Value::Array(tokens)) => parse_token_ids("tokens", tokens)?,
        Some(other) => return Err(wrong_type_error("tokens", "a list of token IDs", other)),
    };
    let mut out = br#"{"prompt":"#.to_vec();
    push_quoted(&mut out, &decode_tokens(&tokens));
    out.push(b'}');
    Ok(out)
}

/// `/v1/models`: the model, then its adapters.
pub(crate) fn models_response(head: &EventHead<'_>, rules: &RequestRules<'_>) -> Vec<u8> {
    let (created, length) = (head.created, rules.max_model_len);
    let mut out = br#"{"object":"list","data":["#.to_vec();
    let adapters = rules.loras.iter().map(|lora| (lora.as_str(), Some(rules.model)));
    for (place, (name, parent)) in [(rules.model, None)].into_iter().chain(adapters).enumerate() {
        out.extend_from_slice(if place == 0 { br#"{"id":"# } else { br#",{"id":"# });
        push_quoted(&mut out, name);
        push_formatted(
            &mut out,
            format_args!(r#","object":"model","created":{created},"owned_by":"goodput","root":"#),
        );
        push_quoted(&mut out, name);
        out.extend_from_slice(br#","parent":"#);
        match parent {
            Some(parent) => push_quoted(&mut out, parent),
            None => out.extend_from_slice(b"null"),
        }
        push_formatted(&mut out, format_args!(r#","max_model_len":{length}}}"#));
    }
    out.extend_from_slice(b"]}");
    out
}

/// `/server_info`: what decides the engine's speed, under the names that vLLM has for it.
pub(crate) fn server_info_response(profile: &Profile) -> Vec<u8> {
    let mut all = vec![
        ("engine", Some(json!("goodput mock"))),
        ("version", Some(json!(env!("CARGO_PKG_VERSION")))),
        ("max_model_len", Some(json!(profile.longest_request()))),
    ];
    match &profile.engine {
        EngineProfile::Delays(delays) => all.extend([
            ("max_num_seqs", (delays.slots < u32::MAX).then(|| json!(delays.slots))),
            ("max_queue", delays.max_queue.map(|most| json!(most))),
        ]),
        EngineProfile::Batching(engine) => all.extend([
            ("max_num_seqs", Some(json!(engine.scheduler.max_num_seqs))),
            ("max_num_batched_tokens", Some(json!(engine.scheduler.max_num_batched_tokens))),
            ("max_queue", engine.scheduler.max_queue.map(|most| json!(most))),
            ("enable_chunked_prefill", Some(json!(engine.scheduler.chunked_prefill))),
            ("tensor_parallel_size", Some(json!(engine.hardware.tensor_parallel))),
            // As vLLM does, nothing where nothing is quantized.
            (
                "quantization",
                (engine.hardware.precision != Precision::Native)
                    .then(|| json!(engine.hardware.precision.to_string())),
            ),
            ("block_size", Some(json!(engine.kv.block_tokens))),
            ("enable_prefix_caching", Some(json!(engine.kv.prefix_caching))),
        ]),
    }
    let known = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect()).to_string().into_bytes()
}

/// `/version`.
pub(crate) fn version_response() -> Vec<u8> {
    concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").as_bytes().to_vec()
}
