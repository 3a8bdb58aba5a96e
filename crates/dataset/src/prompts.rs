//! Prompts: JSON objects, tables, and plain lines.

use std::path::Path;

use goodput_model::{Message, Role, excerpt};

use crate::error::{DatasetError, Fault};
use crate::input::{Lines, open, sha256};
use crate::object::{Object, string, tokens};
use crate::options::Options;
use crate::pass::{Found, Keeper, Notes, Pass, Tally, scan_items};
use crate::table::{Row, Table};
use crate::{Entry, Turn};

/// Columns that a prompt is looked for in.
pub(crate) const PROMPTS: [&str; 6] =
    ["prompt", "text", "question", "instruction", "query", "input"];
/// Columns of the answer's length.
pub(crate) const LENGTHS: [&str; 7] = [
    "output_tokens",
    "output_len",
    "output_length",
    "max_tokens",
    "max_completion_tokens",
    "expected_output_len",
    "expected_output_tokens",
];
/// Columns of the answer.
pub(crate) const ANSWERS: [&str; 6] =
    ["answer", "completion", "response", "reply", "output", "chosen"];

/// An entry of one turn.
pub(crate) fn single(prompt: &str, output: Option<u32>, reply: Option<&str>) -> Found {
    let turn = Turn {
        messages: vec![Message::text(Role::User, prompt)],
        reply: reply.map(|text| Message::text(Role::Assistant, text)),
        output_tokens: output,
        ..Turn::default()
    };
    Found::Entry(Entry { turns: vec![turn], ..Entry::default() })
}

const BLANK: &str = "blank prompt";

/// One pass over JSON objects.
pub(crate) fn scan_json(
    path: &Path,
    options: &Options,
    keeper: &mut dyn Keeper,
) -> Result<Tally, DatasetError> {
    scan_items(path, options, keeper, |text, build, notes| {
        object(&Object::parse(text)?, options, build, notes)
    })
}

fn object(
    object: &Object<'_>,
    options: &Options,
    build: bool,
    notes: &mut Notes,
) -> Result<Found, Fault> {
    let asked = options.prompt_column.as_deref();
    let name = asked.or_else(|| PROMPTS.into_iter().find(|name| object.get(name).is_some()));
    let name = name.unwrap_or("prompt");
    let raw = object.need(name, "a text")?;
    let prompt = string(name, raw, "a text")?;
    let first =
        |names: &[&'static str]| names.iter().copied().find(|name| object.value(name).is_some());
    let (length, answer) = match options.output_column.as_deref() {
        None => (first(&LENGTHS), first(&ANSWERS).filter(|answer| *answer != name)),
        Some(column) => {
            let value = object.need(column, "an answer or its length")?;
            if value.get().starts_with('"') { (None, Some(column)) } else { (Some(column), None) }
        }
    };
    let output = length.map(|name| object.tokens(name)).transpose()?.flatten();
    let reply = match answer.and_then(|name| Some((name, object.value(name)?))) {
        Some((name, value)) => Some(string(name, value, "a text")?),
        None => None,
    };
    for other in object.names() {
        if ![Some(name), length, answer].contains(&Some(other)) {
            notes.add(&format!("field `{}` not used", excerpt(other)));
        }
    }
    if prompt.trim().is_empty() {
        return Ok(Found::Skip(BLANK.to_owned()));
    }
    let reply = reply.as_deref().filter(|text| !text.trim().is_empty());
    Ok(if build { single(&prompt, output, reply) } else { Found::Good })
}

/// Which columns of a table are read.
struct Columns {
    prompt: usize,
    length: Option<usize>,
    answer: Option<usize>,
    /// A column that the user named: lengths where they are numbers, answers where not.
    either: Option<usize>,
}

impl Columns {
    fn of(table: &Table, path: &Path, options: &Options) -> Result<Self, DatasetError> {
        let prompt = match options.prompt_column.as_deref() {
            Some(name) => table.need(path, &[name])?,
            None => table.need(path, &PROMPTS)?,
        };
        Ok(match options.output_column.as_deref() {
            Some(name) => {
                let either = Some(table.need(path, &[name])?);
                Self { prompt, length: None, answer: None, either }
            }
            None => Self {
                prompt,
                length: table.column(&LENGTHS),
                answer: table.column(&ANSWERS).filter(|answer| *answer != prompt),
                either: None,
            },
        })
    }

    fn read(&self, row: &Row<'_>, build: bool) -> Result<Found, Fault> {
        let prompt = row.get(self.prompt)?;
        let length = row.optional(self.length)?;
        let name = self.length.map_or("", |column| row.name(column));
        let mut output = length.map(|text| tokens(name, text)).transpose()?;
        let mut reply = row.optional(self.answer)?;
        if let (Some(column), Some(text)) = (self.either, row.optional(self.either)?) {
            let is_number = text.trim().parse::<f64>().is_ok();
            if is_number {
                output = Some(tokens(row.name(column), text)?);
            } else {
                reply = Some(text);
            }
        }
        if prompt.trim().is_empty() {
            return Ok(Found::Skip(BLANK.to_owned()));
        }
        Ok(if build { single(prompt, output, reply) } else { Found::Good })
    }
}

/// One pass over a table.
pub(crate) fn scan_csv(
    path: &Path,
    options: &Options,
    keeper: &mut dyn Keeper,
) -> Result<Tally, DatasetError> {
    let mut table = Table::open(path)?;
    let columns = Columns::of(&table, path, options)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    let used = [Some(columns.prompt), columns.length, columns.answer, columns.either];
    for (place, name) in table.header.iter().enumerate() {
        if !used.contains(&Some(place)) {
            pass.note(&format!("column `{}` not used", excerpt(name)));
        }
    }
    while let Some(row) = table.next(path)? {
        pass.item(row.place, |build, _| columns.read(&row, build))?;
    }
    pass.finish(table.finish(path)?)
}

/// One pass over lines.
pub(crate) fn scan_text(
    path: &Path,
    options: &Options,
    keeper: &mut dyn Keeper,
) -> Result<Tally, DatasetError> {
    let mut lines = Lines::new(open(path)?);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    loop {
        let line = lines.next().map_err(|error| DatasetError::io(path, "read", &error))?;
        let Some((place, piece)) = line else { break };
        pass.item(place, |build, _| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(Found::Skip("blank line".to_owned()));
            }
            Ok(if build { single(text, None, None) } else { Found::Good })
        })?;
    }
    pass.finish(sha256(path, lines.into_inner())?)
}
