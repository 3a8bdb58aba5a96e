//! The trace that goodput records, in its second version.

use crate::common::file;
use goodput_dataset::trace::MOST_GAPS;
use goodput_dataset::{
    ConvertTarget, DatasetEntry, DatasetError, DatasetTurn, Loaded, Param, Params, RecordedService,
    TokenCounter, TraceHead, TraceRow, TraceSelection, TraceWriter, convert, load_trace,
};
use goodput_model::{Api, ErrorClass, Message, Nanos, Role};
use serde_json::Value;

fn written(rows: &[TraceRow]) -> Vec<u8> {
    let head = TraceHead {
        block_tokens: Some(16),
        tokenizer: Some("o200k_base".to_owned()),
        started: Some("2026-11-16T09:00:00Z".to_owned()),
        text: true,
    };
    let mut writer = TraceWriter::with_head(Vec::new(), &head).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.into_inner()
}

fn load(bytes: impl AsRef<[u8]>) -> Result<Loaded, DatasetError> {
    load_trace(&file("r.jsonl", bytes).path, &TraceSelection::default())
}

fn plain(at: u64) -> TraceRow {
    TraceRow { at: Nanos(at), input_tokens: 20, output_tokens: 3, ..TraceRow::default() }
}

fn full() -> TraceRow {
    let mut params = Params::default();
    params.set("stream", Param::Flag(true));
    params.set("n", Param::Whole(2));
    params.set("temperature", Param::Number(0.5));
    params.set("tool_choice", Param::Word("auto"));
    TraceRow {
        session: Some("7".to_owned()),
        blocks: vec![(1 << 53) - 1, 0],
        took: Some(Nanos(2_500_000)),
        after: Some(Nanos(1)),
        endpoint: Some(Api::Chat),
        model: Some("org/m".to_owned()),
        params,
        ttft: Some(Nanos(1_250_000)),
        gaps: vec![10, 0, 25_000],
        status: Some(200),
        finish: Some("stop".to_owned()),
        failure: Some(ErrorClass::Cut),
        input_by: Some(TokenCounter::Usage),
        output_by: Some(TokenCounter::Chunks),
        cached_tokens: Some(16),
        ..plain(0)
    }
}

#[test]
fn a_row_is_written_as_it_is() {
    let text = String::from_utf8(written(&[full()])).unwrap();
    let expected = [
        r#"{"schema":"goodput.trace/2","block_tokens":16,"tokenizer":"o200k_base","#,
        r#""started":"2026-11-16T09:00:00Z","text":true}"#,
        "\n",
        r#"{"at":0,"session":"7","endpoint":"chat","model":"org/m","input_tokens":20,"#,
        r#""input_by":"usage","output_tokens":3,"output_by":"chunks","cached_tokens":16,"#,
        r#""blocks":[9007199254740991,0],"params":{"stream":true,"n":2,"temperature":0.5,"#,
        r#""tool_choice":"auto"},"ttft":0.00125,"took":0.0025,"after":0.000000001,"#,
        r#""gaps":[10,0,25000],"status":200,"finish":"stop","failure":"cut"}"#,
        "\n",
    ];
    assert_eq!(text, expected.concat());
}

#[test]
fn what_is_written_is_read() {
    let loaded = load(written(&[full()])).unwrap();
    let served = RecordedService {
        endpoint: Some(Api::Chat),
        model: Some("org/m".to_owned()),
        status: Some(200),
        finish: Some("stop".to_owned()),
        failure: Some(ErrorClass::Cut),
        ttft: Some(Nanos(1_250_000)),
        input_by: Some(TokenCounter::Usage),
        output_by: Some(TokenCounter::Chunks),
        cached_tokens: Some(16),
        has_params: true,
        has_gaps: true,
    };
    let turn = DatasetTurn {
        input_tokens: Some(20),
        output_tokens: Some(3),
        blocks: vec![(1 << 53) - 1, 0],
        after: Some(Nanos(1)),
        took: Some(Nanos(2_500_000)),
        served: Some(Box::new(served)),
        ..DatasetTurn::default()
    };
    let entry = DatasetEntry {
        line: 2,
        at: Some(Nanos::ZERO),
        session: Some("7".to_owned()),
        turns: vec![turn],
        ..DatasetEntry::default()
    };
    assert_eq!((loaded.entries, loaded.block_tokens), (vec![entry], Some(16)));
    assert_eq!(loaded.notes, Vec::<String>::new());
    // And written again, less what no entry holds.
    let mut again = Vec::new();
    let facts =
        convert(&load(written(&[full()])).unwrap(), ConvertTarget::Goodput, &mut again).unwrap();
    let lost = [("gaps", 1), ("params", 1)].map(|(what, rows)| (what.to_owned(), rows));
    assert_eq!(facts.lost, lost.into());
    let row = String::from_utf8(again).unwrap().lines().nth(1).unwrap().to_owned();
    let mut row: Value = serde_json::from_str(&row).unwrap();
    row["gaps"] = serde_json::json!([10, 0, 25_000]);
    row["params"] =
        serde_json::json!({"stream": true, "n": 2, "temperature": 0.5, "tool_choice": "auto"});
    let before = String::from_utf8(written(&[full()])).unwrap();
    assert_eq!(row, serde_json::from_str::<Value>(before.lines().nth(1).unwrap()).unwrap());
}

#[test]
fn rows_come_in_the_order_of_their_answers_and_are_replayed_in_that_of_their_questions() {
    let loaded = load(written(&[plain(30), plain(10), plain(20)])).unwrap();
    let at: Vec<u64> = loaded.entries.iter().map(|entry| entry.at.unwrap().0).collect();
    assert_eq!(at, [0, 10, 20]);
    assert_eq!(loaded.notes, Vec::<String>::new());
}

#[test]
fn what_was_refused_is_left_out_and_what_was_not_answered_asks_for_a_token() {
    let with = |at, status| TraceRow { status: Some(status), output_tokens: 0, ..plain(at) };
    let rows = [
        plain(0),
        with(1, 400),
        with(2, 401),
        with(3, 400),
        with(4, 429),
        with(5, 503),
        with(6, 499),
        TraceRow { input_tokens: 0, ..plain(7) },
    ];
    let loaded = load(written(&rows)).unwrap();
    let outputs: Vec<_> = loaded.entries.iter().map(|entry| entry.turns[0].output_tokens).collect();
    assert_eq!(outputs, [Some(3), Some(1), Some(1), Some(1)]);
    let skipped: Vec<_> = loaded.skipped.iter().map(|(why, n)| (why.as_str(), *n)).collect();
    assert_eq!(
        skipped,
        [
            ("a prompt of unknown length", 1),
            ("refused with 400 when recorded", 2),
            ("refused with 401 when recorded", 1)
        ]
    );
    assert_eq!(
        loaded.notes,
        ["row that had no answer when recorded: it requests 1 token (3 times)"]
    );
}

#[test]
fn gaps_have_an_end() {
    let row = TraceRow { gaps: vec![1; MOST_GAPS + 9], ..plain(0) };
    let text = String::from_utf8(written(&[row])).unwrap();
    let row: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(row["gaps"].as_array().unwrap().len(), MOST_GAPS);
}

#[test]
fn text_that_was_asked_for_is_read_and_converted() {
    let body = "{\n  \"model\": \"m\", \"temperature\": 0.5, \"stream\": true, \"max_tokens\": 9,\n\
                  \"messages\": [{\"role\": \"user\", \"content\": \"a  \\\"b\\\" \\\\\"},\n\
                  {\"role\": \"tool\", \"content\": \"7\", \"tool_call_id\": \"c\"}]\n}";
    let row =
        TraceRow { body: Some(body.to_owned()), answer: Some("Yes.\n".to_owned()), ..plain(0) };
    let loaded = load(written(std::slice::from_ref(&row))).unwrap();
    let turn = &loaded.entries[0].turns[0];
    let tool = r#"{"role":"tool","content":"7","tool_call_id":"c"}"#;
    assert_eq!(
        turn.messages,
        [Message::text(Role::User, "a  \"b\" \\"), Message::Raw(tool.into())]
    );
    assert_eq!(turn.reply, Some(Message::text(Role::Assistant, "Yes.\n")));
    // Model, stream and length are the run's to say.
    assert_eq!(turn.fields, [("temperature".to_owned(), "0.5".to_owned())]);
    assert_eq!((turn.input_tokens, turn.output_tokens), (Some(20), Some(3)));
    let mut out = Vec::new();
    assert_eq!(convert(&loaded, ConvertTarget::Messages, &mut out).unwrap().written, 1);
    let line: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(line["messages"][0]["content"], "a  \"b\" \\");
    assert_eq!((&line["max_tokens"], &line["temperature"]), (&3.into(), &0.5.into()));
    // Bodies of other forms are not text, and not an error either.
    for odd in ["no JSON", "[1]", r#"{"prompt":[1,2]}"#, r#"{"messages":[{"role":"x"}]}"#] {
        let loaded = load(written(&[TraceRow { body: Some(odd.to_owned()), ..plain(0) }])).unwrap();
        assert!(loaded.entries[0].turns[0].messages.is_empty(), "{odd}");
        assert!(loaded.notes[0].starts_with("body that is not text"), "{:?}", loaded.notes);
    }
}

#[test]
fn fields_of_the_wrong_form_are_named() {
    let fault = |field: &str| {
        let head = "{\"schema\":\"goodput.trace/2\"}";
        let row = format!("{{\"at\":0,\"input_tokens\":1,\"output_tokens\":1,{field}}}");
        let error = load(format!("{head}\n{row}\n")).unwrap_err().to_string();
        error.split_once("line 2: ").unwrap().1.to_owned()
    };
    for (field, expected) in [
        (r#""endpoint":"embeddings""#, "field `endpoint` is `embeddings`, expected one of `chat`"),
        (r#""status":7"#, "field `status` is `7`, expected an HTTP status"),
        (r#""status":"ok""#, "field `status` is `\"ok\"`, expected a whole number"),
        (r#""failure":"bored""#, "field `failure` is `bored`, expected"),
        (r#""input_by":"me""#, "field `input_by` is `me`, expected one of `usage`"),
        (r#""gaps":[-1]"#, "field `gaps` is `[-1]`, expected an array"),
        (r#""params":[]"#, "field `params` is `[]`, expected an object"),
        (r#""ttft":-1"#, "field `ttft` is `-1`, expected a number of seconds"),
        (r#""answer":{}"#, "field `answer` is `{}`, expected a text"),
        (r#""prompt":"x""#, "unknown field `prompt`"),
    ] {
        let said = fault(field);
        assert!(said.starts_with(expected), "{said}");
    }
}
