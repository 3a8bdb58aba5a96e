//! Rows with a picture: a group with its `bytes`, and the text that is asked about it.

use std::path::Path;
use std::sync::Arc;

use goodput_model::safe_excerpt;
use parquet::basic::Type as PhysicalType;
use parquet::file::reader::FileReader;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::bounded::BoundedFile;
use super::{TALKS, catch_panics, shown_field, text_of_field};
use crate::entry::Picture;
use crate::error::{DatasetError, EntryError, FilePosition, name_list};
use crate::input::open_file;
use crate::prompts::{ANSWERS, PROMPTS};

/// The field of a picture's group that holds its file.
const BYTES: &str = "bytes";

/// Columns of a description, where nothing is asked about the picture.
const CAPTIONS: [&str; 4] = ["caption", "captions", "sentences", "description"];

/// What a picture's field should be.
const EXPECTED: &str = "a group with the `bytes` of a picture";

/// Whether a table has a column with pictures: a group with a binary field `bytes`.
pub(crate) fn has_pictures(path: &Path) -> bool {
    open(path)
        .is_ok_and(|reader| picture_column(reader.metadata().file_metadata().schema()).is_some())
}

/// Hands out the pictures of a table row by row, until its end or until `visit` has enough. What it
/// says is wrong with a picture is an error of that row.
pub(crate) fn scan_pictures(
    path: &Path,
    visit: &mut dyn FnMut(Result<Picture, String>) -> Result<bool, String>,
) -> Result<(), DatasetError> {
    let reader = open(path)?;
    let schema = reader.metadata().file_metadata().schema();
    let columns =
        PictureColumns::from_schema(schema).map_err(|fault| DatasetError::file(path, fault))?;
    let projection = columns.projection(schema);
    let damaged = |row, fault| DatasetError::new(path, FilePosition::Row(row), fault);
    let mut rows =
        catch_panics(|| reader.get_row_iter(Some(projection?))).map_err(|f| damaged(1, f))?;
    for number in 1.. {
        let row =
            catch_panics(|| rows.next().transpose()).map_err(|fault| damaged(number, fault))?;
        let Some(row) = row else { break };
        let found = columns.read(&row).map_err(|fault| fault.what);
        if !visit(found).map_err(|what| damaged(number, what.into()))? {
            break;
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<BoundedFile, DatasetError> {
    let file = open_file(path)?;
    catch_panics(|| BoundedFile::new(file)).map_err(|fault| DatasetError::file(path, fault))
}

/// The first column that is a group with a binary field `bytes`.
fn picture_column(schema: &Type) -> Option<&str> {
    let is_binary = |field: &Arc<Type>| {
        field.name() == BYTES
            && field.is_primitive()
            && field.get_physical_type() == PhysicalType::BYTE_ARRAY
    };
    let has_picture =
        |field: &&Arc<Type>| field.is_group() && field.get_fields().iter().any(is_binary);
    schema.is_group().then(|| schema.get_fields().iter().find(has_picture))?.map(|it| it.name())
}

/// The columns that are read.
struct PictureColumns {
    picture: String,
    /// What is asked about it: the first of these with a text counts.
    texts: Vec<String>,
}

impl PictureColumns {
    fn from_schema(schema: &Type) -> Result<Self, EntryError> {
        let there = || schema.get_fields().iter().map(|field| field.name());
        let picture = picture_column(schema).ok_or_else(|| {
            let what = format!("no column with pictures; columns there: {}", name_list(there()));
            EntryError::with_hint(what, "pictures are a group `image` with a field `bytes`")
        })?;
        let wanted = TALKS.iter().chain(&PROMPTS).chain(&CAPTIONS).chain(&ANSWERS);
        let texts = wanted.filter(|name| there().any(|there| there == **name));
        Ok(Self { picture: picture.to_owned(), texts: texts.map(|it| (*it).to_owned()).collect() })
    }

    /// The schema with nothing but these columns.
    fn projection(&self, schema: &Type) -> parquet::errors::Result<Type> {
        let is_read =
            |name: &str| self.picture == name || self.texts.iter().any(|text| text == name);
        let fields = schema.get_fields().iter().filter(|field| is_read(field.name()));
        Type::group_type_builder(schema.name()).with_fields(fields.cloned().collect()).build()
    }

    fn read(&self, row: &Row) -> Result<Picture, EntryError> {
        let field = |wanted: &str| {
            let found = row.get_column_iter().find(|(name, _)| *name == wanted);
            found.map_or(&Field::Null, |(_, field)| field)
        };
        let name = safe_excerpt(&self.picture);
        let Field::Group(group) = field(&self.picture) else {
            return Err(EntryError::field(&name, &shown_field(field(&self.picture)), EXPECTED));
        };
        let bytes = group.get_column_iter().find(|(name, _)| *name == BYTES);
        let bytes = match bytes.map_or(&Field::Null, |(_, value)| value) {
            Field::Bytes(bytes) => bytes.data().to_vec(),
            // Some writers call any binary field a text.
            Field::Str(text) => text.as_bytes().to_vec(),
            other => {
                let name = format!("{name}.{BYTES}");
                return Err(EntryError::field(&name, &shown_field(other), "the file of a picture"));
            }
        };
        let text = self.texts.iter().find_map(|name| said(field(name)));
        Ok(Picture { bytes, text: text.map(str::to_owned) })
    }
}

/// The first text of a value: itself, the first of a list, or what a user says first.
fn said(field: &Field) -> Option<&str> {
    let found = match field {
        Field::ListInternal(list) => list.elements().iter().find_map(|element| match element {
            Field::Group(group) => {
                let value = |wanted: [&str; 2]| {
                    let mut all = group.get_column_iter();
                    all.find(|(name, _)| wanted.contains(&name.as_str())).map(|(_, value)| value)
                };
                let speaker = value(["from", "role"]).and_then(text_of_field);
                let is_user = speaker.is_none_or(|it| ["human", "user"].contains(&it));
                value(["value", "content"]).and_then(text_of_field).filter(|_| is_user)
            }
            element => text_of_field(element).filter(|text| !text.trim().is_empty()),
        }),
        field => text_of_field(field),
    };
    found.map(str::trim).filter(|text| !text.is_empty())
}
