//! What each form of trace gives.

use crate::common::{file, trace};
use goodput_dataset::trace::{TraceRow, TraceRowWriter};
use goodput_dataset::{
    DatasetEntry, DatasetTurn, Loaded, TraceFormat, TraceSelection, load_pairs, load_trace,
};
use goodput_model::Nanos;

fn row(line: u64, ms: u64, input: u32, output: u32) -> DatasetEntry {
    let turn = DatasetTurn {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..DatasetTurn::default()
    };
    DatasetEntry {
        line,
        at: Some(Nanos::from_millis(ms)),
        turns: vec![turn],
        ..DatasetEntry::default()
    }
}

fn labeled(mut entry: DatasetEntry, session: Option<&str>, class: Option<&str>) -> DatasetEntry {
    entry.session = session.map(str::to_owned);
    entry.class = class.map(str::to_owned);
    entry
}

fn with_blocks(mut entry: DatasetEntry, blocks: &[u64]) -> DatasetEntry {
    entry.turns[0].blocks = blocks.to_vec();
    entry
}

#[test]
fn mooncake() {
    let text = "{\"timestamp\": 1000, \"input_length\": 1025, \"output_length\": 5, \"hash_ids\": [46, 47, 48]}\n\
        {\"timestamp\": 4000.5, \"input_length\": 512, \"output_length\": 6, \"hash_ids\": [46], \"type\": \"chat\", \"session_id\": 7}\n\
        {\"delay\": 500, \"input_length\": 10, \"output_length\": 1, \"session_id\": 7}\n";
    let loaded = trace("m.jsonl", text).unwrap();
    assert_eq!((loaded.format, loaded.block_tokens, loaded.seen), ("mooncake", Some(512), 3));
    let mut second = labeled(with_blocks(row(2, 0, 512, 6), &[46]), Some("7"), Some("chat"));
    second.at = Some(Nanos(3_000_500_000));
    let mut third = labeled(row(3, 0, 10, 1), Some("7"), None);
    third.at = Some(Nanos(3_500_500_000));
    third.turns[0].after = Some(Nanos::from_millis(500));
    assert_eq!(loaded.entries, [with_blocks(row(1, 0, 1025, 5), &[46, 47, 48]), second, third]);
    assert_eq!(loaded.notes, Vec::<String>::new());
}

#[test]
fn bailian_links_chats_by_their_parents() {
    let line = |chat: i64, parent: i64, turn: u32, at: &str| {
        format!(
            "{{\"chat_id\": {chat}, \"parent_chat_id\": {parent}, \"timestamp\": {at}, \"input_length\": 17, \
             \"output_length\": 3, \"type\": \"text\", \"turn\": {turn}, \"hash_ids\": [1, 2]}}\n"
        )
    };
    let text = [
        line(10, -1, 1, "61.114"),
        line(11, -1, 1, "62.0"),
        line(12, 10, 2, "63.114"),
        line(13, 12, 3, "64.114"),
    ]
    .concat();
    let loaded = trace("b.jsonl", text).unwrap();
    assert_eq!((loaded.format, loaded.block_tokens), ("bailian", Some(16)));
    let expected =
        |n, ms, root| labeled(with_blocks(row(n, ms, 17, 3), &[1, 2]), Some(root), Some("text"));
    assert_eq!(
        loaded.entries,
        [
            expected(1, 0, "10"),
            expected(2, 886, "11"),
            expected(3, 2_000, "10"),
            expected(4, 3_000, "10")
        ]
    );
}

#[test]
fn burstgpt_leaves_out_failures() {
    let text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
        5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n\
        118.0,GPT-4,417,276,693,API log\n";
    let loaded = trace("BurstGPT_1.csv", text).unwrap();
    assert_eq!(loaded.format, "burstgpt");
    assert_eq!(
        loaded.entries,
        [
            labeled(row(2, 0, 472, 18), None, Some("ChatGPT/Conversation log")),
            labeled(row(4, 113_000, 417, 276), None, Some("GPT-4/API log")),
        ]
    );
    assert_eq!(loaded.skipped["failed when it was recorded (0 response tokens)"], 1);

    let text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
        1.5,s1,2.25,GPT-4,10,20,30,API log\n2.5,,NaN,GPT-4,10,20,30,API log\n";
    let loaded = trace("b.csv", text).unwrap();
    assert_eq!(loaded.entries[0].session.as_deref(), Some("s1"));
    assert_eq!(loaded.entries[0].turns[0].took, Some(Nanos::from_millis(2_250)));
    assert_eq!(
        (loaded.entries[1].session.as_deref(), loaded.entries[1].turns[0].took),
        (None, None)
    );
}

#[test]
fn azure_with_instants_of_either_year() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n\
        2023-11-16 18:15:50.9951690,396,109\r\n";
    let loaded = trace("AzureLLMInferenceTrace_code.csv", text).unwrap();
    assert_eq!(loaded.format, "azure");
    let mut second = row(3, 0, 396, 109);
    second.at = Some(Nanos(4_314_579_000));
    assert_eq!(loaded.entries, [row(2, 0, 374, 44), second]);
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n\
        2024-05-10 02:00:01.009930+02:00,2399,6\n";
    let loaded = trace("a.csv", text).unwrap();
    assert_eq!(loaded.entries, [row(2, 0, 2162, 5), row(3, 1_000, 2399, 6)]);
}

fn azure(rows: &[(f64, u32)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(at, input)| format!("{at},{input},1\n")).collect();
    format!("TIMESTAMP,ContextTokens,GeneratedTokens\n{}", rows.concat())
}

fn inputs(loaded: &Loaded) -> Vec<(u64, u32)> {
    let pair = |entry: &DatasetEntry| {
        (entry.at.unwrap().0 / 1_000_000, entry.turns[0].input_tokens.unwrap())
    };
    loaded.entries.iter().map(pair).collect()
}

#[test]
fn a_part_is_cut_and_counts_from_its_first_entry() {
    // The trace begins at 100 s, though its first row is later.
    let scratch =
        file("a.csv", azure(&[(101.0, 2), (100.0, 1), (102.5, 3), (104.0, 4), (110.0, 5)]));
    let options = TraceSelection {
        start: Nanos::from_millis(1_500),
        length: Some(Nanos::from_millis(3_000)),
        ..TraceSelection::default()
    };
    let loaded = load_trace(&scratch.path, &options).unwrap();
    assert_eq!(inputs(&loaded), [(0, 3), (1_500, 4)]);
    assert_eq!((loaded.seen, loaded.skipped["outside the selected time range"]), (5, 3));
    let late = TraceSelection { start: Nanos::from_millis(20_000), ..TraceSelection::default() };
    let error = load_trace(&scratch.path, &late).unwrap_err();
    assert!(
        error.to_string().ends_with("none of its 5 rows lies in the selected time range"),
        "{error}"
    );
}

#[test]
fn unsorted_rows_are_sorted_and_counted() {
    let loaded =
        trace("a.csv", azure(&[(5.0, 1), (3.0, 2), (7.0, 3), (6.0, 4), (5.0, 5)])).unwrap();
    assert_eq!(inputs(&loaded), [(0, 2), (2_000, 1), (2_000, 5), (3_000, 4), (4_000, 3)]);
    assert_eq!(loaded.notes, ["3 rows were out of order and have been sorted"]);
}

#[test]
fn what_we_record_is_what_we_read() {
    let rows = [
        TraceRow {
            at: Nanos(1_700_000_000_123_456_789),
            input_tokens: 5,
            output_tokens: 1,
            ..TraceRow::default()
        },
        TraceRow {
            at: Nanos(1_700_000_001_123_456_790),
            session: Some("s \"1\"".to_owned()),
            class: Some("chat".to_owned()),
            input_tokens: 65,
            output_tokens: 2,
            blocks: vec![u64::MAX, 0],
            took: Some(Nanos(1)),
            after: Some(Nanos::from_millis(1)),
            ..TraceRow::default()
        },
    ];
    let mut writer = TraceRowWriter::new(Vec::new(), Some(64)).unwrap();
    for row in &rows {
        writer.write(row).unwrap();
    }
    let loaded = trace("g.jsonl", writer.into_inner()).unwrap();
    assert_eq!((loaded.format, loaded.block_tokens), ("goodput", Some(64)));
    let mut second =
        labeled(with_blocks(row(3, 0, 65, 2), &[u64::MAX, 0]), Some("s \"1\""), Some("chat"));
    second.at = Some(Nanos(1_000_000_001));
    second.turns[0].took = Some(Nanos(1));
    second.turns[0].after = Some(Nanos::from_millis(1));
    assert_eq!(loaded.entries, [row(2, 0, 5, 1), second]);
    assert_eq!(loaded.entries.len(), 2);
}

#[test]
fn another_block_size_can_be_given() {
    let text = "{\"timestamp\":0,\"input_length\":100,\"output_length\":1,\"hash_ids\":[1,2]}";
    let scratch = file("m.jsonl", text);
    let options = TraceSelection { block_tokens: Some(64), ..TraceSelection::default() };
    assert_eq!(load_trace(&scratch.path, &options).unwrap().block_tokens, Some(64));
    assert!(load_trace(&scratch.path, &TraceSelection::default()).is_err());
}

#[test]
fn pairs_with_and_without_a_header() {
    for text in [
        "input,output\n10,20\n30,40\n",
        "10,20\n30,40",
        "id,OSL,isl\n1,20,10\n2,40,30\n",
        "ContextTokens,GeneratedTokens\n10,20\n30,40\n",
    ] {
        assert_eq!(load_pairs(&file("p.csv", text).path).unwrap(), [(10, 20), (30, 40)], "{text}");
    }
}

#[test]
fn forms_of_traces_have_names() {
    for format in TraceFormat::ALL {
        assert_eq!(format.name().parse::<TraceFormat>(), Ok(format));
    }
    assert!("csv".parse::<TraceFormat>().unwrap_err().to_string().contains("`burstgpt`"));
}
