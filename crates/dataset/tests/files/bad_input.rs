//! Files that are wrong: the error names file, place, field and the expected form.

use crate::common::{all, failure, file, message, read, trace, trace_failure, words};
use goodput_dataset::{
    DatasetFormat, DatasetOptions, TraceFormat, TraceSelection, load_dataset, load_pairs,
    load_trace,
};

const TALK: &str = r#"{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}"#;

#[test]
fn a_truncated_array_is_an_error_even_when_invalid_entries_are_skipped() {
    let text = format!("[{TALK},\n{TALK},\n{{\"conversations\":[{{\"from\":\"hum");
    let expected = "s.json, item 3 (line 3): the file ends inside the array: it is truncated, or its \
                    `]` is missing";
    assert_eq!(failure("s.json", &text), expected);
    let lenient = DatasetOptions { skip_invalid: true, ..all() };
    let error = read("s.json", &text, &lenient).unwrap_err();
    assert_eq!((message(&error).as_str(), error.line()), (expected, Some(3)));
}

#[test]
fn a_truncated_line_names_its_line() {
    let text = format!("{TALK}\n{{\"conversations\":[{{\"from\":\"hum");
    assert_eq!(
        failure("s.jsonl", &text),
        "s.jsonl, line 2: JSON ends too early in `{\"conversations\":[{\"from\":\"hum`"
    );
    let error = read("s.jsonl", &text, &all()).unwrap_err();
    assert!(error.hint().unwrap().contains("truncated"));
}

#[test]
fn wrong_fields_are_named_with_what_is_there() {
    let item = |text: &str| failure("s.json", format!("[{TALK},\n{text}]"));
    assert_eq!(
        item(r#"{"conversations":[{"from":"human","value":null}]}"#),
        "s.json, item 2 (line 2): field `conversations[0].value` is `null`, expected a text"
    );
    assert_eq!(
        item(r#"{"conversations":[{"from":"human","txt":"a"}]}"#),
        "s.json, item 2 (line 2): no field `conversations[0].value`, expected a text; fields there: \
         `from`, `txt`"
    );
    assert_eq!(
        item(r#"{"conversations":7}"#),
        "s.json, item 2 (line 2): field `conversations` is `7`, expected an array of objects with \
         `from` and `value`"
    );
    assert_eq!(
        item(r#"{"id":1}"#),
        "s.json, item 2 (line 2): no field `conversations`, expected an array of objects with `from` \
         and `value`; fields there: `id`"
    );
    assert_eq!(item("12"), "s.json, item 2 (line 2): expected a JSON object: `12`");
    assert_eq!(item("{\"a\":}"), "s.json, item 2 (line 2): invalid JSON at column 6: `{\"a\":}`");
    let good = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n";
    let line = |text: &str| failure("m.jsonl", format!("{good}{text}"));
    assert_eq!(
        line(r#"{"messages":[{"role":"usr","content":"a"}]}"#),
        "m.jsonl, line 2: field `messages[0].role` is `\"usr\"`, expected `system`, `developer`, \
         `user`, `assistant`, `tool` or `function`"
    );
    assert_eq!(
        line(r#"{"messages":[{"role":"user","content":"a"}],"max_tokens":0}"#),
        "m.jsonl, line 2: field `max_tokens` is `0`, expected a number of tokens from 1 to 10000000"
    );
    assert_eq!(
        line(r#"{"messages":"a"}"#),
        "m.jsonl, line 2: field `messages` is `\"a\"`, expected an array of objects with `role` and \
         `content`"
    );
    assert_eq!(
        failure("p.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":[1]}\n"),
        "p.jsonl, line 2: field `prompt` is `[1]`, expected a text"
    );
    assert_eq!(
        failure("p.jsonl", "{\"prompt\":\"a\",\"output_tokens\":-3}\n"),
        "p.jsonl, line 1: field `output_tokens` is `-3`, expected a number of tokens from 1 to 10000000"
    );
}

#[test]
fn columns_that_are_not_there_are_errors_that_list_those_that_are() {
    let lenient = DatasetOptions { skip_invalid: true, ..all() };
    let error = read("p.csv", "id,ask\n1,q\n", &lenient).unwrap_err();
    assert_eq!(
        message(&error),
        "p.csv, line 1: no column `prompt`, `text`, `question`, `instruction`, `query`, `input`; \
         columns there: `id`, `ask`"
    );
    let chosen = DatasetOptions { prompt_column: Some("q".to_owned()), ..all() };
    let error = read("p.csv", "prompt\na\n", &chosen).unwrap_err();
    assert_eq!(message(&error), "p.csv, line 1: no column `q`; columns there: `prompt`");
    assert_eq!(
        failure("x.jsonl", "{\"foo\":1}"),
        "x.jsonl: no field `conversations`, `messages` or `prompt`, expected one of them; fields \
         there: `foo`"
    );
    assert_eq!(
        failure("x.jsonl", "{\"timestamp\":1,\"input_length\":3}"),
        "x.jsonl: is a trace or a workload, not a dataset; its fields: `timestamp`, `input_length`"
    );
    let burst = TraceSelection { format: Some(TraceFormat::Burstgpt), ..TraceSelection::default() };
    let error =
        load_trace(&file("b.csv", "Timestamp,Request tokens\n1,2\n").path, &burst).unwrap_err();
    assert_eq!(
        message(&error),
        "b.csv, line 1: no column `Response tokens`; columns there: `Timestamp`, `Request tokens`"
    );
    assert_eq!(
        failure("p.csv", "prompt,prompt\na,b\n"),
        "p.csv, line 1: two columns are named `prompt`, expected one"
    );
    assert_eq!(
        failure("p.csv", "prompt,n\na,1\nb\n"),
        "p.csv, line 3: the row has 1 fields, expected 2 as in the header"
    );
}

#[test]
fn files_that_are_empty_packed_or_no_files() {
    for name in ["e.json", "e.jsonl", "e.csv", "e.txt", "e.parquet", "e"] {
        assert_eq!(failure(name, ""), format!("{name}: is empty"));
        assert_eq!(trace_failure(name, ""), format!("{name}: is empty"));
    }
    assert_eq!(failure("e.json", "[]"), "e.json: holds no entries");
    assert_eq!(failure("e.jsonl", "\n\n"), "e.jsonl: holds no entries");
    assert_eq!(failure("e.csv", "prompt\n"), "e.csv: holds no entries");
    let error = read("s.json.gz", b"\x1f\x8b\x08rest", &all()).unwrap_err();
    assert_eq!(message(&error), "s.json.gz: is compressed with gzip, expected plain text");
    assert_eq!(error.hint().unwrap(), "decompress it first with `gunzip`");
    let error = trace("t.csv", b"\xff\xfeT\0").unwrap_err();
    assert_eq!(message(&error), "t.csv: is UTF-16, expected UTF-8");
    assert!(error.hint().unwrap().contains("iconv -f UTF-16"));
    let folder = tempfile::tempdir().unwrap();
    let error = load_dataset(folder.path(), &all(), &words).unwrap_err();
    assert!(error.to_string().ends_with("is a folder, expected a file"), "{error}");
    let error = load_dataset(&folder.path().join("none"), &all(), &words).unwrap_err();
    assert!(error.to_string().contains("none: cannot be opened: No such file"), "{error}");
    assert_eq!(
        failure("p.parquet", "PARX"),
        "p.parquet: is not a Parquet file: it does not begin with `PAR1`"
    );
    assert!(
        failure("p.parquet", "PAR1 and nothing else")
            .starts_with("p.parquet: is a damaged Parquet file:")
    );
    assert!(failure("x.json", "hello").contains("it does not begin with a JSON object"));
}

#[test]
fn bytes_that_are_no_text_name_their_line() {
    assert_eq!(
        failure("p.txt", b"one\ntw\xff\n"),
        "p.txt, line 2: byte 3 is not UTF-8, after `tw`"
    );
    assert_eq!(
        failure("p.csv", b"prompt\na\nb\xff\n"),
        "p.csv, line 3: field `prompt`: byte 2 is not UTF-8, after `b`"
    );
    assert_eq!(
        failure("p.json", b"[{\"prompt\":\"a\"},\n{\"prompt\":\"\xe9\"}]"),
        "p.json, item 2 (line 2): byte 12 is not UTF-8, after `{\"prompt\":\"`"
    );
}

#[test]
fn a_row_that_never_ends_is_refused() {
    let mut text = b"prompt\n\"".to_vec();
    text.resize(66 << 20, b'x');
    assert_eq!(failure("p.csv", &text), "p.csv, line 2: the row is longer than 64 MiB");
}

#[test]
fn times_and_lengths_that_cannot_be_are_errors() {
    let header = "TIMESTAMP,ContextTokens,GeneratedTokens\n1,1,1\n";
    let azure = |row: &str| trace_failure("a.csv", format!("{header}{row}\n"));
    let instant = "expected an instant like `2023-11-16 18:15:46.6805900`, or seconds from 0";
    for value in ["NaN", "-1", "inf", "2023-11-31 00:00:00", "1e300", "99999999999999"] {
        assert_eq!(
            azure(&format!("{value},1,1")),
            format!("a.csv, line 3: field `TIMESTAMP` is `{value}`, {instant}")
        );
    }
    let tokens = "expected a number of tokens from 1 to 10000000";
    for value in ["0", "-5", "10000001", "x", "", "1.5"] {
        assert_eq!(
            azure(&format!("2,{value},1")),
            format!("a.csv, line 3: field `ContextTokens` is `{value}`, {tokens}")
        );
    }
    let mooncake = |line: &str| trace_failure("m.jsonl", line);
    assert_eq!(
        mooncake(r#"{"timestamp":-1,"input_length":1,"output_length":1}"#),
        "m.jsonl, line 1: field `timestamp` is `-1`, expected a number of milliseconds from 0, below \
         the year 2286"
    );
    assert_eq!(
        mooncake(r#"{"timestamp":NaN,"input_length":1,"output_length":1}"#),
        "m.jsonl, line 1: field `timestamp` is `NaN`, expected a finite number"
    );
    assert_eq!(
        mooncake(r#"{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[1,2,3]}"#),
        "m.jsonl, line 1: field `hash_ids` is `3 blocks`, expected at most 2: `input_length` is 1024 \
         and a block has 512 tokens"
    );
    assert_eq!(
        mooncake(r#"{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[-1]}"#),
        "m.jsonl, line 1: field `hash_ids` is `[-1]`, expected an array of whole numbers from 0"
    );
    assert_eq!(
        mooncake(r#"{"input_length":1024,"output_length":1,"session_id":3,"delay":5}"#),
        "m.jsonl, line 1: no field `timestamp`, expected milliseconds, or a `delay` in a session that \
         has begun; fields there: `input_length`, `output_length`, `session_id`, `delay`"
    );
    assert_eq!(
        mooncake(
            "{\"timestamp\":1,\"input_length\":1,\"output_length\":1}\n{\"timestamp\":NaN,\"input_length\":1,\"output_length\":1}"
        ),
        "m.jsonl, line 2: field `timestamp` is `NaN`, expected a finite number"
    );
}

#[test]
fn rows_that_cannot_be_read_are_counted_when_asked() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\nNaN,1,1\n1,0,1\n1,2\n5,3,4\n";
    let options = TraceSelection { skip_invalid: true, ..TraceSelection::default() };
    let loaded = load_trace(&file("a.csv", text).path, &options).unwrap();
    assert_eq!((loaded.entries.len(), loaded.seen, loaded.skipped["not readable"]), (1, 4, 3));
    let [note] = loaded.notes.as_slice() else { panic!("{:?}", loaded.notes) };
    assert!(note.contains("a.csv, line 2: field `TIMESTAMP` is `NaN`, expected"), "{note}");
    let error = trace("a.csv", text).unwrap_err();
    assert!(error.hint().unwrap().contains("--skip-invalid"));
}

#[test]
fn our_own_trace_is_read_strictly() {
    let own = |rest: &str| {
        trace_failure("g.jsonl", format!("{{\"schema\":\"goodput.trace/1\"}}\n{rest}\n"))
    };
    assert_eq!(
        own(r#"{"at":1,"input_tokens":1,"output_tokens":1,"bocks":[]}"#),
        "g.jsonl, line 2: unknown field `bocks`, expected one of `at`, `session`, `class`, \
         `input_tokens`, `output_tokens`, `blocks`, `took`, `after`"
    );
    assert!(
        own(r#"{"at":1,"input_tokens":1,"output_tokens":1,"blocks":[1]}"#)
            .contains("no field `block_tokens`")
    );
    let asked = TraceSelection { format: Some(TraceFormat::Goodput), ..TraceSelection::default() };
    let error =
        load_trace(&file("g.jsonl", "{\"schema\":\"goodput.trace/9\"}").path, &asked).unwrap_err();
    assert_eq!(
        message(&error),
        "g.jsonl, line 1: field `schema` is `\"goodput.trace/9\"`, expected `goodput.trace/2`"
    );
}

#[test]
fn infinities_are_no_numbers() {
    for value in ["NaN", "Infinity", "-Infinity"] {
        let line = format!("{{\"timestamp\": {value}, \"input_length\": 1, \"output_length\": 1}}");
        assert_eq!(
            trace_failure("m.jsonl", line),
            format!("m.jsonl, line 1: field `timestamp` is `{value}`, expected a finite number")
        );
    }
}

#[test]
fn pairs_that_are_wrong() {
    let pairs = |text: &str| message(&load_pairs(&file("p.csv", text).path).unwrap_err());
    assert_eq!(
        pairs("10,20\n30\n"),
        "p.csv, line 2: no field `output`, expected `input,output` in tokens"
    );
    assert_eq!(
        pairs("10,0\n"),
        "p.csv, line 1: field `output` is `0`, expected a number of tokens from 1 to 10000000"
    );
    assert!(pairs("a,b\n1,2\n").contains("columns there: `a`, `b`"));
    assert_eq!(pairs("input,output\n"), "p.csv: holds no pairs, expected rows of `input,output`");
    assert_eq!(pairs(""), "p.csv: is empty");
}

#[test]
fn a_file_of_which_nothing_is_left_says_why() {
    let options = DatasetOptions { min_input: Some(50), ..all() };
    let error = read("p.txt", "a\nb c\n\n", &options).unwrap_err();
    assert_eq!(
        message(&error),
        "p.txt: none of its 3 entries can be used (blank line: 1, prompt below 50 tokens: 2)"
    );
}

#[test]
fn foreign_text_in_a_message_is_short_and_harmless() {
    let text = format!("{{\"prompt\":\"a\",\"output_tokens\":\"\u{1b}[31m{}\"}}", "x".repeat(500));
    let options = DatasetOptions { format: Some(DatasetFormat::Prompts), ..all() };
    let error = message(&read("p.jsonl", text, &options).unwrap_err());
    assert!(!error.contains('\u{1b}') && error.chars().count() < 300, "{error}");
}

#[test]
fn a_codec_that_is_not_built_in_has_a_name() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/prompts-brotli.parquet");
    let error = load_dataset(std::path::Path::new(file), &DatasetOptions::default(), &|_| 1)
        .unwrap_err()
        .to_string();
    assert!(error.contains("is compressed with Brotli, which is not supported"), "{error}");
}
