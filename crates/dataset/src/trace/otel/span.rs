//! One span, whatever its shape.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use goodput_model::Nanos;
use serde_json::value::RawValue;

use super::super::decimal::parse_nanos;
use super::super::moment::parse_moment;
use super::shape::first_value;
use crate::error::EntryError;
use crate::object::JsonObject;
use crate::pass::ItemOutcome;
use crate::private;
use crate::{DatasetEntry, DatasetTurn};

/// The attributes that are read; no other passes.
const WANTED: [&str; 14] = [
    OPERATION,
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.conversation.id",
    "goodput.session",
    "goodput.class",
    "error.type",
    "error",
    "otel.status_code",
    "session.id",
];
const OPERATION: &str = "gen_ai.operation.name";

/// Operations that hold generations or are none.
const OTHERS: [&str; 9] = [
    "create_agent",
    "embedding",
    "embeddings",
    "execute_tool",
    "invoke_agent",
    "invoke_workflow",
    "plan",
    "rerank",
    "retrieval",
];

/// What is known of a span.
pub(super) struct OtelSpan {
    /// What it is called in its family.
    pub(super) id: Option<u64>,
    pub(super) parent: Option<u64>,
    start: Option<String>,
    end: Option<String>,
    /// Its length in microseconds, where that is how its end is told.
    length: Option<String>,
    has_failed: bool,
    is_gen_ai: bool,
    known: BTreeMap<&'static str, String>,
    run: String,
}

impl OtelSpan {
    /// What an object says; of the run with this name.
    pub(super) fn read(object: &JsonObject<'_>, run: &str) -> Self {
        let context = inner_object(object, "context");
        let within = context.as_ref().unwrap_or(object);
        let trace = first_text(within, &["traceId", "traceID", "trace_id"]);
        let key =
            |id: Option<String>| id.map(|id| span_key(trace.as_deref().unwrap_or_default(), &id));
        let own = first_text(within, &["spanId", "spanID", "span_id"]);
        let parent =
            first_text(object, &["parentSpanId", "parentSpanID", "parent_span_id", "parent_id"]);
        let parent = parent.or_else(|| jaeger_parent(object)).filter(|id| !id.is_empty());
        let mut known = BTreeMap::new();
        let mut is_gen_ai = false;
        if let Some(raw) = first_value(object, &["attributes", "tags"]) {
            each_attribute(raw, &mut |name, value| {
                is_gen_ai |= name.starts_with("gen_ai.");
                if let Some(name) = WANTED.iter().find(|wanted| **wanted == name) {
                    known.extend(scalar_text(value).map(|text| (*name, text)));
                }
            });
        }
        let start = ["startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time"];
        let end = ["endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time"];
        let mut span = Self {
            id: key(own),
            parent: key(parent),
            start: first_text(object, &start),
            end: first_text(object, &end),
            length: first_text(object, &["duration"]),
            has_failed: false,
            is_gen_ai,
            known,
            run: run.to_owned(),
        };
        span.has_failed = span.is_error(inner_object(object, "status").as_ref());
        span
    }

    fn is_error(&self, status: Option<&JsonObject<'_>>) -> bool {
        let code = status.and_then(|status| first_text(status, &["code", "status_code"]));
        let is_code = |text: &str| matches!(text, "2" | "ERROR" | "STATUS_CODE_ERROR");
        code.as_deref().is_some_and(is_code)
            || self.get("otel.status_code").is_some_and(is_code)
            || self.get("error").is_some_and(|text| text != "false")
            || self.get("error.type").is_some()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str).filter(|text| !text.trim().is_empty())
    }

    fn first_of(&self, names: [&'static str; 2]) -> Option<(&'static str, &str)> {
        names.into_iter().find_map(|name| self.get(name).map(|text| (name, text)))
    }

    /// Whether it is a generation that can be asked again.
    pub(super) fn is_generation(&self) -> bool {
        matches!(self.to_outcome(), Ok(ItemOutcome::Entry(_)))
    }

    /// What becomes of it.
    pub(super) fn to_outcome(&self) -> Result<ItemOutcome, EntryError> {
        let skip = |why: &str| Ok(ItemOutcome::Skip(why.to_owned()));
        if !self.is_gen_ai {
            return skip("not a gen_ai span");
        }
        if self.get(OPERATION).is_some_and(|name| OTHERS.contains(&name)) {
            return skip("not a generation");
        }
        if self.has_failed {
            return skip("failed when it was recorded");
        }
        let count = |names| match self.first_of(names) {
            Some((name, text)) => private::parse_count(name, text),
            None => Ok(None),
        };
        let input = count(["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"])?;
        let output = count(["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"])?;
        if input.is_none() || output.is_none() {
            return skip("without token counts");
        }
        let Some(start) = &self.start else {
            return Err(EntryError::from("no field for its start time"));
        };
        let at =
            parse_moment(start).ok_or_else(|| private::wrong_field_error("start", "an instant"))?;
        let took = self.duration(at)?;
        let turn = DatasetTurn {
            input_tokens: input,
            output_tokens: output,
            took,
            ..DatasetTurn::default()
        };
        let class = self.get("goodput.class").or_else(|| self.get("gen_ai.request.model"));
        let class = class.or_else(|| self.get("gen_ai.response.model"));
        Ok(ItemOutcome::Entry(DatasetEntry {
            at: Some(at),
            session: self.session_name(),
            class: class.map(private::bounded_label),
            turns: vec![turn],
            ..DatasetEntry::default()
        }))
    }

    fn duration(&self, at: Nanos) -> Result<Option<Nanos>, EntryError> {
        let (end, length) = match (&self.end, &self.length) {
            (Some(end), _) => (parse_moment(end), None),
            (None, Some(length)) => (None, parse_nanos(length, 3)),
            (None, None) => return Ok(None),
        };
        if end.is_none() && length.is_none() {
            return Err(private::wrong_field_error("end", "an instant"));
        }
        Ok(length.or_else(|| end.filter(|end| *end >= at).map(|end| end - at)))
    }

    fn session_name(&self) -> Option<String> {
        let ours = || self.get("goodput.session").map(|name| format!("{} {name}", self.run));
        let named = self.first_of(["gen_ai.conversation.id", "session.id"]);
        named.map(|(_, name)| name.to_owned()).or_else(ours).map(|name| private::session_key(&name))
    }
}

/// A span's name in the file.
fn span_key(trace: &str, span: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (trace, span).hash(&mut hasher);
    hasher.finish()
}

/// The span that Jaeger calls the parent.
fn jaeger_parent(object: &JsonObject<'_>) -> Option<String> {
    let references: Vec<JsonObject<'_>> =
        serde_json::from_str(object.non_null("references")?.get()).ok()?;
    let is_parent =
        |one: &&JsonObject<'_>| first_text(one, &["refType"]).as_deref() == Some("CHILD_OF");
    references.iter().find(is_parent).and_then(|one| first_text(one, &["spanID"]))
}

fn inner_object<'a>(object: &JsonObject<'a>, name: &str) -> Option<JsonObject<'a>> {
    serde_json::from_str(object.non_null(name)?.get()).ok()
}

fn first_text(object: &JsonObject<'_>, names: &[&str]) -> Option<String> {
    scalar_text(first_value(object, names)?)
}

/// A text, number or boolean as text, bare or as OTLP wraps it.
fn scalar_text(raw: &RawValue) -> Option<String> {
    const KINDS: [&str; 4] = ["stringValue", "intValue", "doubleValue", "boolValue"];
    let text = raw.get();
    if text.starts_with('{') {
        let value: JsonObject<'_> = serde_json::from_str(text).ok()?;
        return bare_scalar(first_value(&value, &KINDS)?.get());
    }
    bare_scalar(text)
}

fn bare_scalar(text: &str) -> Option<String> {
    if text.starts_with(['{', '[']) || text == "null" {
        return None;
    }
    Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned()))
}

/// Goes through attributes: an object, or a list of keys and values.
fn each_attribute(raw: &RawValue, see: &mut dyn FnMut(&str, &RawValue)) {
    if let Ok(map) = serde_json::from_str::<JsonObject<'_>>(raw.get()) {
        for (name, value) in map.fields() {
            see(name, value);
        }
    } else if let Ok(list) = serde_json::from_str::<Vec<JsonObject<'_>>>(raw.get()) {
        for one in &list {
            if let (Some(name), Some(value)) = (first_text(one, &["key"]), one.non_null("value")) {
                see(&name, value);
            }
        }
    }
}

/// The attribute of this name, as text.
pub(super) fn find_attribute(raw: &RawValue, wanted: &str) -> Option<String> {
    let mut found = None;
    each_attribute(raw, &mut |name, value| {
        if name == wanted {
            found = scalar_text(value);
        }
    });
    found
}
