//! Tables in Parquet, row by row, only the columns that are read.

mod bounded;
mod pictures;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use goodput_model::safe_excerpt;
use parquet::file::reader::FileReader;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use bounded::BoundedFile;
pub(crate) use pictures::{has_pictures, scan_pictures};

use crate::error::{DatasetError, EntryError, FilePosition, name_list};
use crate::input::{hash_file, open_file};
use crate::object::{MOST_TOKENS, TOKENS};
use crate::options::DatasetOptions;
use crate::pass::{EntryNotes, ItemOutcome, Keeper, Pass, PassTally};
use crate::prompts::{ANSWERS, LENGTHS, PROMPTS, single_turn};
use crate::sharegpt::{ConversationRules, Said, cut_conversation};

/// Columns that a conversation is looked for in.
const TALKS: [&str; 3] = ["conversations", "conversation", "messages"];

/// One pass over a table.
pub(crate) fn scan_parquet(
    path: &Path,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let file = open_file(path)?;
    let reader =
        catch_panics(|| BoundedFile::new(file)).map_err(|fault| DatasetError::file(path, fault))?;
    let schema = reader.metadata().file_metadata().schema();
    let columns = ParquetColumns::from_schema(schema, options)
        .map_err(|fault| DatasetError::file(path, fault))?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    for field in schema.get_fields() {
        if !columns.has_column(field.name()) {
            pass.add_note(&format!("column `{}` not used", safe_excerpt(field.name())));
        }
    }
    let damaged = |row, fault| DatasetError::new(path, FilePosition::Row(row), fault);
    let projection = columns.projection(schema);
    let mut rows =
        catch_panics(|| reader.get_row_iter(Some(projection?))).map_err(|f| damaged(1, f))?;
    for number in 1.. {
        let row =
            catch_panics(|| rows.next().transpose()).map_err(|fault| damaged(number, fault))?;
        let Some(row) = row else { break };
        pass.read_item(FilePosition::Row(number), |build, notes| columns.read(&row, build, notes))?;
    }
    pass.finish(hash_file(path)?)
}

/// Runs what reads the file. The crate answers some damaged files with a panic; to us both are one.
fn catch_panics<T>(read: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T, EntryError> {
    let damaged = |what: &str| {
        let what = format!("is a damaged Parquet file: {}", safe_excerpt(what));
        EntryError::with_hint(what, "is the download complete?")
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        // The codec that this build lacks: other tools rarely write it.
        Ok(Err(error)) if error.to_string().contains("brotli") => Err(EntryError::with_hint(
            "is compressed with Brotli, which is not supported",
            "write it again with zstd or Snappy",
        )),
        Ok(Err(error)) => Err(damaged(&error.to_string())),
        Err(_) => Err(damaged("its parts contradict each other")),
    }
}

struct ParquetColumns {
    prompt: String,
    length: Option<String>,
    answer: Option<String>,
}

impl ParquetColumns {
    fn from_schema(schema: &Type, options: &DatasetOptions) -> Result<Self, EntryError> {
        if !schema.is_group() {
            return Err(EntryError::from("has no columns"));
        }
        let there: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
        let first = |wanted: &[&str]| {
            wanted.iter().find(|name| there.contains(name)).map(|n| (*n).to_owned())
        };
        let need = |wanted: &[&str]| {
            first(wanted).ok_or_else(|| {
                let (wanted, there) =
                    (name_list(wanted.iter().copied()), name_list(there.iter().copied()));
                let what = format!("no column {wanted}; columns there: {there}");
                EntryError::with_hint(what, "name the column of the prompt")
            })
        };
        let prompt = match options.prompt_column.as_deref() {
            Some(name) => need(&[name])?,
            None => first(&TALKS).map_or_else(|| need(&PROMPTS), Ok)?,
        };
        let is_group =
            |name: &str| schema.get_fields().iter().any(|f| f.name() == name && f.is_group());
        let (length, answer) = match options.output_column.as_deref() {
            // Numbers are lengths and texts are answers; `read` sees which.
            Some(name) => (Some(need(&[name])?), None),
            None if is_group(&prompt) => (first(&LENGTHS), None),
            None => (first(&LENGTHS), first(&ANSWERS).filter(|name| *name != prompt)),
        };
        Ok(Self { prompt, length, answer })
    }

    fn has_column(&self, name: &str) -> bool {
        let some = |column: &Option<String>| column.as_deref() == Some(name);
        self.prompt == name || some(&self.length) || some(&self.answer)
    }

    /// The schema with nothing but these columns.
    fn projection(&self, schema: &Type) -> parquet::errors::Result<Type> {
        let fields = schema.get_fields().iter().filter(|field| self.has_column(field.name()));
        let fields: Vec<Arc<Type>> = fields.cloned().collect();
        Type::group_type_builder(schema.name()).with_fields(fields).build()
    }

    fn read(
        &self,
        row: &Row,
        build: bool,
        notes: &mut EntryNotes,
    ) -> Result<ItemOutcome, EntryError> {
        let field = |wanted: &str| {
            row.get_column_iter().find(|(name, _)| *name == wanted).map(|(_, field)| field)
        };
        let prompt = field(&self.prompt).unwrap_or(&Field::Null);
        let mut reply = None;
        let mut output = None;
        for name in [&self.length, &self.answer].into_iter().flatten() {
            match field(name).unwrap_or(&Field::Null) {
                Field::Null => {}
                value => match text_of_field(value) {
                    Some(answer) => reply = Some(answer),
                    None => output = Some(parse_length(name, value)?),
                },
            }
        }
        if let Field::ListInternal(list) = prompt {
            return self.read_conversation(list.elements(), output, build, notes);
        }
        let Some(prompt) = text_of_field(prompt) else {
            let expected =
                "a text, or a list of groups with `from` and `value` or `role` and `content`";
            return Err(EntryError::field(&self.prompt, &shown_field(prompt), expected));
        };
        if prompt.trim().is_empty() {
            return Ok(ItemOutcome::Skip("blank prompt".to_owned()));
        }
        let reply = reply.filter(|text| !text.trim().is_empty());
        Ok(if build { single_turn(prompt, output, reply) } else { ItemOutcome::Good })
    }

    fn read_conversation(
        &self,
        list: &[Field],
        output: Option<u32>,
        build: bool,
        notes: &mut EntryNotes,
    ) -> Result<ItemOutcome, EntryError> {
        let mut said: Vec<Said<'_>> = Vec::with_capacity(list.len());
        let mut keeps_open = false;
        for (place, element) in list.iter().enumerate() {
            let Field::Group(group) = element else {
                let name = format!("{}[{place}]", self.prompt);
                return Err(EntryError::field(&name, &shown_field(element), "a group"));
            };
            let one = |wanted: [&str; 2]| {
                let found =
                    group.get_column_iter().find(|(name, _)| wanted.contains(&name.as_str()));
                let value = found.map_or(&Field::Null, |(_, value)| value);
                let name = format!("{}[{place}].{}", self.prompt, wanted[0]);
                text_of_field(value)
                    .map(Cow::Borrowed)
                    .ok_or_else(|| EntryError::field(&name, &shown_field(value), "a text"))
            };
            keeps_open |= group.get_column_iter().any(|(name, _)| name == "role");
            said.push((one(["from", "role"])?, one(["value", "content"])?));
        }
        let mut found = cut_conversation(&said, ConversationRules { build, keeps_open }, notes);
        if let ItemOutcome::Entry(entry) = &mut found
            && let Some(last) = entry.turns.last_mut()
        {
            last.output_tokens = output;
        }
        Ok(found)
    }
}

fn text_of_field(field: &Field) -> Option<&str> {
    match field {
        Field::Str(text) => Some(text),
        Field::Bytes(bytes) => bytes.as_utf8().ok(),
        _ => None,
    }
}

/// A value for a message, whatever its size.
fn shown_field(field: &Field) -> String {
    match field {
        Field::Null => "null".to_owned(),
        Field::Group(_) => "a group".to_owned(),
        Field::ListInternal(_) => "a list".to_owned(),
        Field::MapInternal(_) => "a map".to_owned(),
        Field::Bytes(_) => "bytes that are not text".to_owned(),
        other => other.to_string(),
    }
}

fn parse_length(name: &str, field: &Field) -> Result<u32, EntryError> {
    let number = match field {
        Field::Byte(n) => i64::from(*n),
        Field::Short(n) => i64::from(*n),
        Field::Int(n) => i64::from(*n),
        Field::Long(n) => *n,
        Field::UByte(n) => i64::from(*n),
        Field::UShort(n) => i64::from(*n),
        Field::UInt(n) => i64::from(*n),
        Field::ULong(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        Field::Double(n) if n.fract() == 0.0 => *n as i64,
        _ => 0,
    };
    let fits = u32::try_from(number).ok().filter(|n| (1..=MOST_TOKENS).contains(n));
    fits.ok_or_else(|| EntryError::field(name, &shown_field(field), TOKENS))
}
