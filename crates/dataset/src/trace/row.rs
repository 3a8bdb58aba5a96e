//! One request of a trace that goodput records, and how it is written.

use std::io::{self, Write};

use goodput_model::{Api, ErrorClass, Nanos};
use serde_json::value::RawValue;

use super::decimal::seconds_text;
use crate::entry::TokenCounter;

/// The format's name and version.
pub(super) const SCHEMA: &str = "goodput.trace/2";

/// Gaps of a row that are written; `took` still holds the time of the rest.
pub const MOST_GAPS: usize = 4_096;

/// What stands before the rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceHead {
    /// Tokens of a block.
    pub block_tokens: Option<u32>,
    /// Who counted, and cut prompts into blocks.
    pub tokenizer: Option<String>,
    /// The instant that rows count from, in RFC 3339.
    pub started: Option<String>,
    /// Whether rows hold the text itself.
    pub text: bool,
}

/// One request of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceRow {
    /// When it was asked, from the beginning of the trace.
    pub at: Nanos,
    /// What links it to other rows.
    pub session: Option<String>,
    /// Its class.
    pub class: Option<String>,
    /// Prompt length; 0 where it is unknown.
    pub input_tokens: u32,
    /// Answer length; 0 where there was none.
    pub output_tokens: u32,
    /// Names of the blocks that the prompt begins with.
    pub blocks: Vec<u64>,
    /// How long the answer took.
    pub took: Option<Nanos>,
    /// Pause since the answer before.
    pub after: Option<Nanos>,
    /// Which API was asked.
    pub endpoint: Option<Api>,
    /// Which model was asked.
    pub model: Option<String>,
    /// Request parameters in addition to the prompt.
    pub params: Params,
    /// Time to the first token as served.
    pub ttft: Option<Nanos>,
    /// Gaps between the events that carried tokens, in microseconds; at most [`MOST_GAPS`] are written.
    pub gaps: Vec<u32>,
    /// The HTTP status, once there was one.
    pub status: Option<u16>,
    /// The finish reason.
    pub finish: Option<String>,
    /// What went wrong, where the status does not say it.
    pub failure: Option<ErrorClass>,
    /// Who counted the prompt.
    pub input_by: Option<TokenCounter>,
    /// Who counted the answer.
    pub output_by: Option<TokenCounter>,
    /// Prompt tokens that the server took from its cache.
    pub cached_tokens: Option<u32>,
    /// The body of the request, only where text was asked for.
    pub body: Option<String>,
    /// The text of the answer, only where text was asked for.
    pub answer: Option<String>,
}

/// A parameter's value: never a text that came from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param {
    /// Yes or no.
    Flag(bool),
    /// A count.
    Whole(u64),
    /// A number; only finite ones are written.
    Number(f64),
    /// A word of ours.
    Word(&'static str),
}

/// Request parameters in addition to the prompt. Names and words are ours, so that no text of a
/// user can be among them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Params(Vec<(&'static str, Param)>);

impl Params {
    /// Adds a parameter, or sets it again.
    pub fn set(&mut self, name: &'static str, value: Param) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<Param> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes a trace, row by row. Rows may come in any order.
pub struct TraceRowWriter<W> {
    out: W,
}

impl<W: Write> TraceRowWriter<W> {
    /// Begins a trace whose blocks have this many tokens.
    pub fn new(out: W, block_tokens: Option<u32>) -> io::Result<Self> {
        Self::with_head(out, &TraceHead { block_tokens, ..TraceHead::default() })
    }

    /// Begins a trace.
    pub fn with_head(mut out: W, head: &TraceHead) -> io::Result<Self> {
        write!(out, r#"{{"schema":"{SCHEMA}""#)?;
        if let Some(tokens) = head.block_tokens {
            write!(out, r#","block_tokens":{tokens}"#)?;
        }
        write_text(&mut out, "tokenizer", head.tokenizer.as_deref())?;
        write_text(&mut out, "started", head.started.as_deref())?;
        writeln!(out, r#","text":{}}}"#, head.text)?;
        Ok(Self { out })
    }

    /// Writes a row.
    pub fn write(&mut self, row: &TraceRow) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, r#"{{"at":{}"#, seconds_text(row.at))?;
        write_text(out, "session", row.session.as_deref())?;
        write_text(out, "class", row.class.as_deref())?;
        write_text(out, "endpoint", row.endpoint.map(Api::name))?;
        write_text(out, "model", row.model.as_deref())?;
        write!(out, r#","input_tokens":{}"#, row.input_tokens)?;
        write_text(out, "input_by", row.input_by.map(TokenCounter::name))?;
        write!(out, r#","output_tokens":{}"#, row.output_tokens)?;
        write_text(out, "output_by", row.output_by.map(TokenCounter::name))?;
        if let Some(tokens) = row.cached_tokens {
            write!(out, r#","cached_tokens":{tokens}"#)?;
        }
        if !row.blocks.is_empty() {
            write!(out, r#","blocks":{}"#, serde_json::to_string(&row.blocks)?)?;
        }
        write_params(out, &row.params)?;
        for (name, time) in [("ttft", row.ttft), ("took", row.took), ("after", row.after)] {
            if let Some(time) = time {
                write!(out, r#","{name}":{}"#, seconds_text(time))?;
            }
        }
        if !row.gaps.is_empty() {
            let gaps = row.gaps.get(..MOST_GAPS).unwrap_or(&row.gaps);
            write!(out, r#","gaps":{}"#, serde_json::to_string(gaps)?)?;
        }
        if let Some(status) = row.status {
            write!(out, r#","status":{status}"#)?;
        }
        write_text(out, "finish", row.finish.as_deref())?;
        write_text(out, "failure", row.failure.map(|class| class.to_string()).as_deref())?;
        if let Some(body) = &row.body {
            write!(out, r#","body":{}"#, to_one_line(body)?)?;
        }
        write_text(out, "answer", row.answer.as_deref())?;
        out.write_all(b"}\n")
    }

    /// Where it is written to.
    pub fn sink(&mut self) -> &mut W {
        &mut self.out
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn write_text(out: &mut impl Write, name: &str, text: Option<&str>) -> io::Result<()> {
    match text {
        Some(text) => write!(out, r#","{name}":{}"#, serde_json::to_string(text)?),
        None => Ok(()),
    }
}

fn write_params(out: &mut impl Write, params: &Params) -> io::Result<()> {
    for (place, (name, value)) in params.0.iter().enumerate() {
        let before = if place == 0 { r#","params":{"# } else { "," };
        write!(out, r#"{before}"{name}":"#)?;
        match value {
            Param::Flag(flag) => write!(out, "{flag}")?,
            Param::Whole(number) => write!(out, "{number}")?,
            // What is not finite becomes `null`.
            Param::Number(number) => write!(out, "{}", serde_json::Value::from(*number))?,
            Param::Word(word) => write!(out, "{}", serde_json::to_string(word)?)?,
        }
    }
    if params.is_empty() { Ok(()) } else { out.write_all(b"}") }
}

/// A body on one line: JSON without its blanks, anything else as a text.
fn to_one_line(body: &str) -> io::Result<String> {
    if serde_json::from_str::<&RawValue>(body).is_err() {
        return Ok(serde_json::to_string(body)?);
    }
    let (mut in_text, mut is_escaped) = (false, false);
    let mut kept = String::with_capacity(body.len());
    for character in body.chars() {
        if !in_text && character.is_ascii_whitespace() {
            continue;
        }
        if character == '"' && !is_escaped {
            in_text = !in_text;
        }
        is_escaped = character == '\\' && !is_escaped;
        kept.push(character);
    }
    Ok(kept)
}
