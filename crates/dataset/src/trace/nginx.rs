//! Access logs of nginx. A line is written when a request has ended; tokens are not in it, but
//! bytes are.

mod json;
mod template;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use goodput_model::{LogPlan, Nanos};

use super::TraceSelection;
use super::decimal::parse_nanos;
use super::moment::{parse_local, parse_moment};
use crate::error::{DatasetError, EntryError};
use crate::input::{BoundedLines, hash_rest, open_text};
use crate::object::MOST_TOKENS;
use crate::pass::{EntryNotes, ItemOutcome, Keeper, Pass, PassTally};
use crate::private;
use crate::{DatasetEntry, DatasetTurn};

use json::FieldPaths;
use template::{COMBINED, Template};

/// Bytes of a request, or of an answer in one piece, that make a token: English has about four
/// letters a token, and the JSON around it is short compared to long prompts.
const BYTES: f64 = 4.0;

/// Bytes of a streamed answer that make a token: each comes in an event of its own, of 180 to 360
/// bytes in what vLLM, llama.cpp, transformers and LiteLLM send.
const STREAMED: f64 = 250.0;

/// Ends of the paths that answer with tokens, the longer ones first.
const PATHS: [&str; 4] = ["/chat/completions", "/completions", "/messages", "/responses"];

/// Variables that say the same, the better ones first.
const TIMES: [&str; 3] = ["msec", "time_iso8601", "time_local"];
const TARGETS: [&str; 3] = ["request", "request_uri", "uri"];
const ASKED: [&str; 3] = ["content_length", "http_content_length", "request_length"];
const SENT: [&str; 2] = ["body_bytes_sent", "bytes_sent"];
const KINDS: [&str; 2] = ["sent_http_content_type", "upstream_http_content_type"];

const ESTIMATED: &str = "prompt lengths are estimated from the bytes of requests";
const ESTIMATED_ANSWER: &str = "answer lengths are estimated from the bytes of answers";
const ASSUMED: &str = "prompt lengths are assumed: the log does not contain them";
const ENDS: &str = "the log has no $request_time: requests are assumed to arrive when they ended";
const METHODS: &str = "the log has no method: requests of every method count";
const COARSE: &str = "the log has no $msec: times are known only to the second";

/// One pass over a log.
pub(super) fn scan_nginx(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let reader = Reader::new(&options.log).map_err(|fault| DatasetError::file(path, fault))?;
    let mut lines = BoundedLines::new(open_text(path)?);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    let io = |error| DatasetError::io(path, "read", &error);
    while let Some((place, piece)) = lines.next().map_err(io)? {
        pass.read_item(place, |_, notes| {
            let line = private::text_or_fault(piece)?;
            if line.trim().is_empty() {
                return Ok(ItemOutcome::Skip("blank line".to_owned()));
            }
            reader.read(line, notes)
        })?;
    }
    pass.finish(hash_rest(path, lines.into_inner())?)
}

/// Reads lines of one format.
struct Reader<'a> {
    plan: &'a LogPlan,
    template: Template,
    shape: Option<FieldPaths>,
    input: Option<&'a str>,
    output: Option<&'a str>,
}

impl<'a> Reader<'a> {
    /// Refuses a format that does not hold what a trace needs.
    fn new(plan: &'a LogPlan) -> Result<Self, EntryError> {
        let (template, format) = Template::parse(plan.format.as_deref().unwrap_or(COMBINED))
            .map_err(|what| EntryError::from(format!("the log's format cannot be read: {what}")))?;
        let name =
            |field: &'a Option<String>| field.as_deref().map(|name| name.trim_start_matches('$'));
        let (input, output) = (name(&plan.input_tokens_field), name(&plan.output_tokens_field));
        let reader = Self { plan, shape: FieldPaths::parse(&format), template, input, output };
        for factor in [plan.bytes_per_token, plan.answer_bytes_per_token].into_iter().flatten() {
            if !factor.is_finite() || factor <= 0.0 {
                return Err(EntryError::from("bytes per token must be a number above 0"));
            }
        }
        for field in [input, output].into_iter().flatten() {
            if !reader.template.has_variable(field) {
                return Err(EntryError::from(format!(
                    "the log's format has no variable `${field}`"
                )));
            }
        }
        reader.require(&TIMES, "when requests ended")?;
        reader.require(&TARGETS, "what was requested")?;
        if input.is_none() && plan.assume_input_tokens.is_none() {
            reader.require(&ASKED, "how long prompts are").map_err(|fault| {
                EntryError::with_hint(
                    fault.what,
                    "log $content_length or $request_length, or set the length of prompts with \
                     --assume-input-tokens",
                )
            })?;
        }
        if output.is_none() {
            reader.require(&SENT, "how long answers are")?;
            if plan.answer_bytes_per_token.is_none()
                && !KINDS.iter().any(|n| reader.template.has_variable(n))
            {
                return Err(EntryError::with_hint(
                    "the log's format does not say which answers were streamed: a token is about 4 bytes of an answer in one piece, and 180 to 360 of a stream",
                    "log $sent_http_content_type, or set --answer-bytes-per-token (250 for \
                     streams, 4 for others)",
                ));
            }
        }
        Ok(reader)
    }

    fn require(&self, names: &[&str], what: &str) -> Result<(), EntryError> {
        if names.iter().any(|name| self.template.has_variable(name)) {
            return Ok(());
        }
        let names: Vec<String> = names.iter().map(|name| format!("${name}")).collect();
        let what =
            format!("the log's format does not say {what}: expected one of {}", names.join(", "));
        Err(EntryError::with_hint(what, "describe the log's format with --log-format"))
    }

    fn read(&self, line: &str, notes: &mut EntryNotes) -> Result<ItemOutcome, EntryError> {
        let values = LineValues(self.split_values(line).ok_or_else(|| {
            let what = "the line does not match the log's format";
            EntryError::with_hint(
                what,
                "describe the log's format with --log-format, as in nginx.conf",
            )
        })?);
        let skip = |why: &str| Ok(ItemOutcome::Skip(why.to_owned()));
        // Before anything is passed over: a line of another format is not a line of this one.
        let ((end, is_coarse), status, took) =
            (values.end_instant()?, values.status()?, values.duration()?);
        let Some(class) = values.endpoint() else { return skip("not a request for tokens") };
        if let Some(status) = status.filter(|status| !(200..300).contains(status)) {
            return Ok(ItemOutcome::Skip(format!("failed when it was recorded (status {status})")));
        }
        let (input, output) =
            (self.input_tokens(&values, notes)?, self.output_tokens(&values, notes)?);
        if input.is_none() || output.is_none() {
            return skip("without lengths");
        }
        if values.method().is_none() {
            notes.add(METHODS);
        }
        if is_coarse {
            notes.add(COARSE);
        }
        if took.is_none() {
            notes.add(ENDS);
        }
        let turn = DatasetTurn {
            input_tokens: input,
            output_tokens: output,
            took,
            ..DatasetTurn::default()
        };
        let at = end - took.unwrap_or_default();
        let class = Some(class.to_owned());
        Ok(ItemOutcome::Entry(DatasetEntry {
            at: Some(at),
            class,
            turns: vec![turn],
            ..DatasetEntry::default()
        }))
    }

    fn split_values<'v>(&'v self, line: &'v str) -> Option<HashMap<Cow<'v, str>, Cow<'v, str>>> {
        // What was empty may have left no JSON.
        let found = self.shape.as_ref().and_then(|shape| shape.values(line));
        if let Some(found) = found {
            return Some(found.into_iter().map(|(n, v)| (Cow::Owned(n), Cow::Owned(v))).collect());
        }
        let found = self.template.values(line)?;
        Some(found.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }

    fn input_tokens(
        &self,
        values: &LineValues<'_>,
        notes: &mut EntryNotes,
    ) -> Result<Option<u32>, EntryError> {
        if let Some(tokens) = values.tokens(self.input)? {
            return Ok(Some(tokens));
        }
        if let Some(bytes) = values.bytes(&ASKED)? {
            notes.add(ESTIMATED);
            return Ok(Some(bytes_to_tokens(bytes, self.plan.bytes_per_token.unwrap_or(BYTES))));
        }
        if self.plan.assume_input_tokens.is_some() {
            notes.add(ASSUMED);
        }
        Ok(self.plan.assume_input_tokens)
    }

    fn output_tokens(
        &self,
        values: &LineValues<'_>,
        notes: &mut EntryNotes,
    ) -> Result<Option<u32>, EntryError> {
        if let Some(tokens) = values.tokens(self.output)? {
            return Ok(Some(tokens));
        }
        let streamed = self.plan.answer_bytes_per_token;
        let factor = match values.first_of(&KINDS) {
            Some(kind) if kind.contains("text/event-stream") => Some(streamed.unwrap_or(STREAMED)),
            Some(_) => Some(self.plan.bytes_per_token.unwrap_or(BYTES)),
            None => streamed,
        };
        let (Some(bytes), Some(factor)) = (values.bytes(&SENT)?, factor) else { return Ok(None) };
        notes.add(ESTIMATED_ANSWER);
        Ok(Some(bytes_to_tokens(bytes, factor)))
    }
}

fn bytes_to_tokens(bytes: u64, factor: f64) -> u32 {
    (bytes as f64 / factor).round().clamp(1.0, f64::from(MOST_TOKENS)) as u32
}

/// The variables of a line.
struct LineValues<'a>(HashMap<Cow<'a, str>, Cow<'a, str>>);

impl LineValues<'_> {
    /// A value that is there: nginx writes `-` for one that is not.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !matches!(*value, "" | "-"))
    }

    fn first_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    fn method(&self) -> Option<&str> {
        let of_line = self.get("request").and_then(|request| request.split(' ').next());
        of_line.or_else(|| self.get("request_method"))
    }

    /// The API that was asked, where it answers with tokens.
    fn endpoint(&self) -> Option<&'static str> {
        if self.method().is_some_and(|method| method != "POST") {
            return None;
        }
        let target = match self.get("request") {
            Some(request) => request.split(' ').nth(1),
            None => self.first_of(&["request_uri", "uri"]),
        };
        let path = target?.split(['?', '#']).next()?.trim_end_matches('/');
        PATHS.iter().find(|end| path.ends_with(**end)).map(|end| end.trim_start_matches('/'))
    }

    fn status(&self) -> Result<Option<u16>, EntryError> {
        let Some(text) = self.get("status") else { return Ok(None) };
        let status = text.parse().ok().filter(|status| (100..1000).contains(status));
        status.map(Some).ok_or_else(|| private::wrong_field_error("status", "an HTTP status"))
    }

    /// When the request ended, and whether that is known to the second only.
    fn end_instant(&self) -> Result<(Nanos, bool), EntryError> {
        if let Some(text) = self.get("msec") {
            let at =
                parse_moment(text).ok_or_else(|| private::wrong_field_error("msec", "seconds"))?;
            return Ok((at, false));
        }
        let at = match (self.get("time_iso8601"), self.get("time_local")) {
            (Some(text), _) => parse_moment(text),
            (None, Some(text)) => parse_local(text),
            (None, None) => return Err(EntryError::from("no time in the line")),
        };
        at.map(|at| (at, true)).ok_or_else(|| private::wrong_field_error("time", "an instant"))
    }

    /// How long the request took: what the upstreams took together where nothing else is known.
    fn duration(&self) -> Result<Option<Nanos>, EntryError> {
        let wrong = |name| private::wrong_field_error(name, "seconds");
        if let Some(text) = self.get("request_time") {
            return parse_nanos(text, 9).map(Some).ok_or_else(|| wrong("request_time"));
        }
        let Some(text) = self.get("upstream_response_time") else { return Ok(None) };
        let mut sum = Nanos::ZERO;
        for part in text.split([',', ':']).map(str::trim).filter(|part| !matches!(*part, "" | "-"))
        {
            sum += parse_nanos(part, 9).ok_or_else(|| wrong("upstream_response_time"))?;
        }
        Ok(Some(sum))
    }

    fn tokens(&self, field: Option<&str>) -> Result<Option<u32>, EntryError> {
        let text = field.and_then(|field| self.get(field).map(|text| (field, text)));
        text.map_or(Ok(None), |(field, text)| private::parse_count(field, text))
    }

    fn bytes(&self, names: &[&'static str]) -> Result<Option<u64>, EntryError> {
        let found = names.iter().find_map(|name| self.get(name).map(|text| (name, text)));
        let Some((name, text)) = found else { return Ok(None) };
        text.parse().map(Some).map_err(|_| private::wrong_field_error(name, "a number of bytes"))
    }
}
