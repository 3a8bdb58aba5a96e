//! The trace that goodput records: a header, and one row for each request.

use std::io::{self, Write};
use std::path::Path;

use goodput_model::Nanos;

use super::TraceOptions;
use super::decimal::{decimal, field};
use super::lines::blocks;
use crate::error::{DatasetError, Fault, excerpt};
use crate::input::open;
use crate::items::Items;
use crate::object::{Object, string, unknown_field};
use crate::pass::{Found, Keeper, Pass, Tally};
use crate::{Entry, Turn};

/// The format's name and version.
const SCHEMA: &str = "goodput.trace/1";
const HEADER: [&str; 2] = ["schema", "block_tokens"];
const FIELDS: [&str; 8] =
    ["at", "session", "class", "input_tokens", "output_tokens", "blocks", "took", "after"];

/// One request of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// When it was asked, from the beginning of the trace.
    pub at: Nanos,
    /// What links it to other rows.
    pub session: Option<String>,
    /// Its class.
    pub class: Option<String>,
    /// Prompt length.
    pub input_tokens: u32,
    /// Answer length.
    pub output_tokens: u32,
    /// Names of the blocks that the prompt begins with.
    pub blocks: Vec<u64>,
    /// How long the answer took.
    pub took: Option<Nanos>,
    /// Pause since the answer before.
    pub after: Option<Nanos>,
}

/// Writes a trace, row by row.
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a trace whose blocks have this many tokens.
    pub fn new(mut out: W, block_tokens: Option<u32>) -> io::Result<Self> {
        match block_tokens {
            Some(tokens) => writeln!(out, r#"{{"schema":"{SCHEMA}","block_tokens":{tokens}}}"#)?,
            None => writeln!(out, r#"{{"schema":"{SCHEMA}"}}"#)?,
        }
        Ok(Self { out })
    }

    /// Writes a row.
    pub fn write(&mut self, row: &Row) -> io::Result<()> {
        write!(self.out, r#"{{"at":{}"#, decimal(row.at))?;
        for (name, text) in [("session", &row.session), ("class", &row.class)] {
            if let Some(text) = text {
                write!(self.out, r#","{name}":{}"#, serde_json::to_string(text)?)?;
            }
        }
        let (input, output) = (row.input_tokens, row.output_tokens);
        write!(self.out, r#","input_tokens":{input},"output_tokens":{output}"#)?;
        if !row.blocks.is_empty() {
            write!(self.out, r#","blocks":{}"#, serde_json::to_string(&row.blocks)?)?;
        }
        for (name, time) in [("took", row.took), ("after", row.after)] {
            if let Some(time) = time {
                write!(self.out, r#","{name}":{}"#, decimal(time))?;
            }
        }
        self.out.write_all(b"}\n")
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// One pass over a trace.
pub(super) fn scan(
    path: &Path,
    options: &TraceOptions,
    keeper: &mut dyn Keeper,
) -> Result<(Tally, Option<u32>), DatasetError> {
    let mut items = Items::new(path, open(path)?)?;
    let stated = match items.next(path)? {
        None => return Err(DatasetError::file(path, "holds no entries")),
        Some((place, piece)) => {
            let stated = piece.and_then(header);
            stated.map_err(|fault| DatasetError::new(path, place, fault))?
        }
    };
    let block = options.block_tokens.or(stated);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some((place, piece)) = items.next(path)? {
        pass.item(place, |_, _| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(Found::Skip("blank line".to_owned()));
            }
            Ok(Found::Entry(entry(&Object::parse(text)?, block)?))
        })?;
    }
    Ok((pass.finish(items.finish(path)?)?, block))
}

fn header(text: &str) -> Result<Option<u32>, Fault> {
    let object = Object::parse(text)?;
    let schema = object.need("schema", SCHEMA)?;
    if string("schema", schema, SCHEMA)? != SCHEMA {
        return Err(Fault::with_hint(
            format!("field `schema` is `{}`, expected `{SCHEMA}`", excerpt(schema.get())),
            "it may come from another version of goodput",
        ));
    }
    known(&object, &HEADER)?;
    object.tokens("block_tokens")
}

fn known(object: &Object<'_>, fields: &[&str]) -> Result<(), Fault> {
    match object.names().find(|name| !fields.contains(name)) {
        Some(name) => Err(unknown_field(name, fields)),
        None => Ok(()),
    }
}

fn entry(object: &Object<'_>, block: Option<u32>) -> Result<Entry, Fault> {
    known(object, &FIELDS)?;
    let at = field("at", object.need("at", "seconds")?.get(), 9)?;
    let time = |name: &str| object.value(name).map(|raw| field(name, raw.get(), 9)).transpose();
    let blocks = match block {
        Some(block) => blocks(object, "blocks", block.max(1))?,
        None if object.value("blocks").is_some() => {
            return Err(Fault::missing("block_tokens", HEADER, "tokens of a block in the header"));
        }
        None => Vec::new(),
    };
    let turn = Turn {
        input_tokens: Some(object.need_tokens("input_tokens")?),
        output_tokens: Some(object.need_tokens("output_tokens")?),
        blocks,
        took: time("took")?,
        after: time("after")?,
        ..Turn::default()
    };
    let (session, class) = (object.label("session"), object.label("class"));
    Ok(Entry { at: Some(at), session, class, turns: vec![turn], ..Entry::default() })
}
