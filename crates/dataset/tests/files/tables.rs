//! Parquet: tables written here, and what is read of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{all, assistant, first_texts, message, system, user, words};
use goodput_dataset::{DatasetOptions, DatasetTurn, load_dataset};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A column with its definition and repetition levels.
pub(crate) enum Column<'a> {
    Texts(&'a [&'a str], &'a [i16], &'a [i16]),
    Binary(&'a [&'a [u8]], &'a [i16]),
    Whole(&'a [i64], &'a [i16]),
    Real(&'a [f64], &'a [i16]),
}

pub(crate) fn write(path: &Path, schema: &str, columns: &[Column<'_>], compression: Compression) {
    write_as(path, schema, columns, WriterProperties::builder().set_compression(compression));
}

fn write_as(
    path: &Path,
    schema: &str,
    columns: &[Column<'_>],
    properties: WriterPropertiesBuilder,
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(properties.build());
    let mut writer =
        SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in columns {
        let mut out = group.next_column().unwrap().unwrap();
        match column {
            Column::Texts(texts, definition, repetition) => {
                let values: Vec<ByteArray> =
                    texts.iter().map(|text| ByteArray::from(*text)).collect();
                out.typed::<ByteArrayType>()
                    .write_batch(
                        &values,
                        Some(definition),
                        (!repetition.is_empty()).then_some(*repetition),
                    )
                    .unwrap();
            }
            Column::Binary(values, definition) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|value| ByteArray::from(value.to_vec())).collect();
                out.typed::<ByteArrayType>().write_batch(&values, Some(definition), None).unwrap();
            }
            Column::Whole(values, definition) => {
                out.typed::<Int64Type>().write_batch(values, Some(definition), None).unwrap();
            }
            Column::Real(values, definition) => {
                out.typed::<DoubleType>().write_batch(values, Some(definition), None).unwrap();
            }
        }
        out.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

pub(crate) fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    (folder, path)
}

const FLAT: &str = "message schema { OPTIONAL BYTE_ARRAY id (UTF8); OPTIONAL BYTE_ARRAY ask (UTF8);
    OPTIONAL INT64 len; OPTIONAL BYTE_ARRAY answer (UTF8); OPTIONAL DOUBLE score; }";

fn flat(path: &Path, compression: Compression) {
    let columns = [
        Column::Texts(&["1", "2", "3"], &[1, 1, 1], &[]),
        Column::Texts(&["a b", "c", " "], &[1, 1, 1], &[]),
        Column::Whole(&[7], &[1, 0, 0]),
        Column::Texts(&["x y z"], &[0, 1, 0], &[]),
        Column::Real(&[0.5, 0.5, 0.5], &[1, 1, 1]),
    ];
    write(path, FLAT, &columns, compression);
}

fn asking(prompt: &str, output: Option<&str>) -> DatasetOptions {
    DatasetOptions {
        prompt_column: Some(prompt.to_owned()),
        output_column: output.map(str::to_owned),
        ..all()
    }
}

#[test]
fn columns_of_text_and_numbers() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
    ] {
        let (_folder, path) = scratch();
        flat(&path, compression);
        let loaded = load_dataset(&path, &asking("ask", Some("len")), &words).unwrap();
        assert_eq!(
            (loaded.format, loaded.seen, first_texts(&loaded)),
            ("parquet", 3, vec!["a b".to_owned(), "c".to_owned()])
        );
        let outputs: Vec<_> =
            loaded.entries.iter().map(|entry| entry.turns[0].output_tokens).collect();
        assert_eq!(outputs, [Some(7), None]);
        assert_eq!(loaded.skipped["blank prompt"], 1);
        assert_eq!(loaded.sha256, goodput_dataset::file_sha256(&path).unwrap());
        assert_eq!(loaded.notes.len(), 3);
        let loaded = load_dataset(&path, &asking("ask", Some("answer")), &words).unwrap();
        assert_eq!(loaded.entries[1].turns[0].reply, Some(assistant("x y z")));
        assert_eq!(loaded.entries[1].turns[0].output_tokens, Some(3));
    }
}

#[test]
fn columns_that_are_not_there_or_of_another_kind() {
    let (_folder, path) = scratch();
    flat(&path, Compression::UNCOMPRESSED);
    let failure =
        |options: &DatasetOptions| message(&load_dataset(&path, options, &words).unwrap_err());
    assert_eq!(
        failure(&all()),
        "t.parquet: no column `prompt`, `text`, `question`, `instruction`, `query`, `input`; columns \
         there: `id`, `ask`, `len`, `answer`, `score`"
    );
    assert_eq!(
        failure(&asking("ask", Some("score"))),
        "t.parquet, row 1: field `score` is `0.5`, expected a number of tokens from 1 to 10000000"
    );
    assert_eq!(
        failure(&asking("len", None)),
        "t.parquet, row 1: field `len` is `7`, expected a text, or a list of groups with `from` and \
         `value` or `role` and `content`"
    );
}

fn talks(path: &Path, names: [&str; 3]) {
    let [column, from, value] = names;
    let schema = format!(
        "message schema {{ OPTIONAL GROUP {column} (LIST) {{ REPEATED GROUP list {{ OPTIONAL GROUP element {{
            OPTIONAL BYTE_ARRAY {from} (UTF8); OPTIONAL BYTE_ARRAY {value} (UTF8); }} }} }} }}"
    );
    // Two conversations: of four messages, and of one without an answer.
    let (definition, repetition) = ([4; 5], [0, 1, 1, 1, 0]);
    let who: &[&str] = if from == "from" {
        &["system", "human", "gpt", "human", "human"]
    } else {
        &["system", "user", "assistant", "user", "user"]
    };
    let said = &["s", "q", "r r", "open", "alone"];
    let columns = [
        Column::Texts(who, &definition, &repetition),
        Column::Texts(said, &definition, &repetition),
    ];
    write(path, &schema, &columns, Compression::UNCOMPRESSED);
}

#[test]
fn lists_of_messages() {
    let (_folder, path) = scratch();
    let answered = DatasetTurn {
        messages: vec![system("s"), user("q")],
        reply: Some(assistant("r r")),
        output_tokens: Some(2),
        ..DatasetTurn::default()
    };
    let open = |text: &str| DatasetTurn { messages: vec![user(text)], ..DatasetTurn::default() };
    talks(&path, ["conversations", "from", "value"]);
    let loaded = load_dataset(&path, &all(), &words).unwrap();
    assert_eq!(loaded.entries.len(), 1);
    assert_eq!(loaded.entries[0].turns, std::slice::from_ref(&answered));
    assert_eq!(loaded.skipped["no question with an answer"], 1);
    // In the words of the chat API, a last question without an answer is a request.
    talks(&path, ["messages", "role", "content"]);
    let loaded = load_dataset(&path, &all(), &words).unwrap();
    assert_eq!(loaded.entries[0].turns, [answered, open("open")]);
    assert_eq!(loaded.entries[1].turns, [open("alone")]);
}

#[test]
fn a_damaged_table_is_an_error_wherever_it_is_damaged() {
    let (_folder, path) = scratch();
    flat(&path, Compression::SNAPPY);
    let good = std::fs::read(&path).unwrap();
    let options = asking("ask", Some("len"));
    for cut in [4, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        let error = message(&load_dataset(&path, &options, &words).unwrap_err());
        assert!(error.starts_with("t.parquet: is a damaged Parquet file: "), "{error}");
    }
    // Any one byte may be wrong: an error or a result, never a panic or a hang.
    for at in 4..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        std::fs::write(&path, &bad).unwrap();
        let _ = load_dataset(&path, &options, &words);
    }
}

/// A page of a few hundred bytes that states 768 MiB: nothing is reserved for it.
#[test]
fn a_page_that_states_too_much_is_an_error() {
    let (_folder, path) = scratch();
    let bytes = include_bytes!("../../../fuzz/corpus/page-of-768-mib.parquet");
    std::fs::write(&path, bytes).unwrap();
    let error = message(&load_dataset(&path, &all(), &words).unwrap_err());
    assert!(error.contains("a page states more than 64 MiB of data"), "{error}");
}

#[test]
fn texts_in_delta_encodings_are_read_in_both_versions_of_pages() {
    let texts: Vec<String> = (0..300).map(|n| format!("question {n} of three hundred")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let columns = [Column::Texts(&texts, &[1; 300], &[])];
    for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let (_folder, path) = scratch();
            let properties = WriterProperties::builder().set_writer_version(version);
            let properties = properties.set_dictionary_enabled(false).set_encoding(encoding);
            let schema = "message schema { OPTIONAL BYTE_ARRAY ask (UTF8); }";
            write_as(&path, schema, &columns, properties);
            let loaded = load_dataset(&path, &asking("ask", None), &words).unwrap();
            assert_eq!(first_texts(&loaded), texts, "{encoding} {version:?}");
        }
    }
}
