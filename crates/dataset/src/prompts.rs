//! Prompts: JSON objects, tables, and plain lines.

use std::path::Path;

use goodput_model::{Message, Role, safe_excerpt};

use crate::error::{DatasetError, EntryError};
use crate::input::{BoundedLines, hash_rest, open_text};
use crate::object::{JsonObject, parse_string, parse_tokens};
use crate::options::DatasetOptions;
use crate::pass::{EntryNotes, ItemOutcome, Keeper, Pass, PassTally, scan_items};
use crate::table::{TableReader, TableRow};
use crate::{DatasetEntry, DatasetTurn};

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
pub(crate) fn single_turn(prompt: &str, output: Option<u32>, reply: Option<&str>) -> ItemOutcome {
    let turn = DatasetTurn {
        messages: vec![Message::text(Role::User, prompt)],
        reply: reply.map(|text| Message::text(Role::Assistant, text)),
        output_tokens: output,
        ..DatasetTurn::default()
    };
    ItemOutcome::Entry(DatasetEntry { turns: vec![turn], ..DatasetEntry::default() })
}

const BLANK: &str = "blank prompt";

/// One pass over JSON objects.
pub(crate) fn scan_json(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    scan_items(path, options, keeper, |text, build, notes| {
        read_object(&JsonObject::parse(text)?, options, build, notes)
    })
}

fn read_object(
    object: &JsonObject<'_>,
    options: &DatasetOptions,
    build: bool,
    notes: &mut EntryNotes,
) -> Result<ItemOutcome, EntryError> {
    let asked = options.prompt_column.as_deref();
    let name = asked.or_else(|| PROMPTS.into_iter().find(|name| object.get(name).is_some()));
    let name = name.unwrap_or("prompt");
    let raw = object.required(name, "a text")?;
    let prompt = parse_string(name, raw, "a text")?;
    let first =
        |names: &[&'static str]| names.iter().copied().find(|name| object.non_null(name).is_some());
    let (length, answer) = match options.output_column.as_deref() {
        None => (first(&LENGTHS), first(&ANSWERS).filter(|answer| *answer != name)),
        Some(column) => {
            let value = object.required(column, "an answer or its length")?;
            if value.get().starts_with('"') { (None, Some(column)) } else { (Some(column), None) }
        }
    };
    let output = length.map(|name| object.tokens(name)).transpose()?.flatten();
    let reply = match answer.and_then(|name| Some((name, object.non_null(name)?))) {
        Some((name, value)) => Some(parse_string(name, value, "a text")?),
        None => None,
    };
    for other in object.names() {
        if ![Some(name), length, answer].contains(&Some(other)) {
            notes.add(&format!("field `{}` not used", safe_excerpt(other)));
        }
    }
    if prompt.trim().is_empty() {
        return Ok(ItemOutcome::Skip(BLANK.to_owned()));
    }
    let reply = reply.as_deref().filter(|text| !text.trim().is_empty());
    Ok(if build { single_turn(&prompt, output, reply) } else { ItemOutcome::Good })
}

/// Which columns of a table are read.
struct PromptColumns {
    prompt: usize,
    length: Option<usize>,
    answer: Option<usize>,
    /// A column that the user named: lengths where they are numbers, answers where not.
    either: Option<usize>,
}

impl PromptColumns {
    fn from_table(
        table: &TableReader,
        path: &Path,
        options: &DatasetOptions,
    ) -> Result<Self, DatasetError> {
        let prompt = match options.prompt_column.as_deref() {
            Some(name) => table.required_column(path, &[name])?,
            None => table.required_column(path, &PROMPTS)?,
        };
        Ok(match options.output_column.as_deref() {
            Some(name) => {
                let either = Some(table.required_column(path, &[name])?);
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

    fn read(&self, row: &TableRow<'_>, build: bool) -> Result<ItemOutcome, EntryError> {
        let prompt = row.get(self.prompt)?;
        let length = row.optional(self.length)?;
        let name = self.length.map_or("", |column| row.name(column));
        let mut output = length.map(|text| parse_tokens(name, text)).transpose()?;
        let mut reply = row.optional(self.answer)?;
        if let (Some(column), Some(text)) = (self.either, row.optional(self.either)?) {
            let is_number = text.trim().parse::<f64>().is_ok();
            if is_number {
                output = Some(parse_tokens(row.name(column), text)?);
            } else {
                reply = Some(text);
            }
        }
        if prompt.trim().is_empty() {
            return Ok(ItemOutcome::Skip(BLANK.to_owned()));
        }
        Ok(if build { single_turn(prompt, output, reply) } else { ItemOutcome::Good })
    }
}

/// One pass over a table.
pub(crate) fn scan_csv(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut table = TableReader::open(path)?;
    let columns = PromptColumns::from_table(&table, path, options)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    let used = [Some(columns.prompt), columns.length, columns.answer, columns.either];
    for (place, name) in table.header.iter().enumerate() {
        if !used.contains(&Some(place)) {
            pass.add_note(&format!("column `{}` not used", safe_excerpt(name)));
        }
    }
    while let Some(row) = table.next(path)? {
        pass.read_item(row.place, |build, _| columns.read(&row, build))?;
    }
    pass.finish(table.finish(path)?)
}

/// One pass over lines.
pub(crate) fn scan_text(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut lines = BoundedLines::new(open_text(path)?);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    loop {
        let line = lines.next().map_err(|error| DatasetError::io(path, "read", &error))?;
        let Some((place, piece)) = line else { break };
        pass.read_item(place, |build, _| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(ItemOutcome::Skip("blank line".to_owned()));
            }
            Ok(if build { single_turn(text, None, None) } else { ItemOutcome::Good })
        })?;
    }
    pass.finish(hash_rest(path, lines.into_inner())?)
}
