//! Whatever bytes a file holds: a result or an error, never a panic, never a loop without end.

use crate::common::{file, words};
use goodput_dataset::{
    ConvertTarget, DatasetFormat, DatasetOptions, TraceFormat, TraceSelection, convert, frozen,
    load_dataset, load_pairs, load_trace,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Pieces that readers know, so that arbitrary files come further than their first byte.
const PIECES: [&str; 40] = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\n",
    "\r\n",
    "\\",
    "\u{feff}",
    " ",
    "null",
    "0",
    "-1",
    "NaN",
    "1e400",
    "\"conversations\":",
    "{\"from\":\"human\",\"value\":\"a\"}",
    "{\"from\":\"gpt\",\"value\":\"b\"}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n",
    "{\"prompt\":\"a\"}",
    "\"max_tokens\":3",
    "{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"}]}",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n",
    "2023-11-16 18:15:46.6805900,",
    "1,2,3\n",
    "prompt,output_len\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
    "5,m,3,4,7,log\n",
    "{\"timestamp\":5,\"input_length\":600,\"output_length\":3,\"hash_ids\":[1,2]}\n",
    "\"parent_chat_id\":-1",
    "{\"schema\":\"goodput.trace/1\",\"block_tokens\":16}\n",
    "{\"at\":1.5,\"input_tokens\":3,\"output_tokens\":4}\n",
    "{\"schema\":\"goodput.workload/1\"",
    "input,output\n",
    "PAR1",
    "\u{1f600}",
    "18446744073709551616",
    "\"body\":{",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec((0..PIECES.len()).prop_map(|n| PIECES[n].as_bytes().to_vec()), 0..30);
    let mixed = vec(
        prop_oneof![
            4 => (0..PIECES.len()).prop_map(|n| PIECES[n].as_bytes().to_vec()),
            1 => vec(any::<u8>(), 0..4),
        ],
        0..30,
    );
    prop_oneof![
        1 => vec(any::<u8>(), 0..200),
        2 => pieces.prop_map(|pieces| pieces.concat()),
        2 => mixed.prop_map(|pieces| pieces.concat()),
    ]
}

fn every_reader(name: &str, bytes: &[u8]) {
    let scratch = file(name, bytes);
    let formats = DatasetFormat::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        for skip_invalid in [false, true] {
            let options = DatasetOptions {
                format,
                sample: 3,
                min_input: Some(1),
                skip_invalid,
                ..DatasetOptions::default()
            };
            if let Ok(loaded) = load_dataset(&scratch.path, &options, &words) {
                assert!(!loaded.entries.is_empty() && loaded.entries.len() <= 3);
                assert!(loaded.entries.iter().all(|entry| !entry.turns.is_empty()));
                for target in ConvertTarget::ALL {
                    convert(&loaded, target, &mut Vec::new()).unwrap();
                }
            }
        }
    }
    for format in TraceFormat::ALL.into_iter().map(Some).chain([None]) {
        for skip_invalid in [false, true] {
            let options = TraceSelection { format, skip_invalid, ..TraceSelection::default() };
            if let Ok(loaded) = load_trace(&scratch.path, &options) {
                assert!(loaded.entries.is_sorted_by_key(|entry| entry.at));
                for target in ConvertTarget::ALL {
                    convert(&loaded, target, &mut Vec::new()).unwrap();
                }
            }
        }
    }
    let _ = load_pairs(&scratch.path);
    let _ = frozen::read_frozen(&scratch.path);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_bytes_break_a_reader(bytes in bytes(), name in prop_oneof![
        Just("x.json"), Just("x.jsonl"), Just("x.csv"), Just("x.tsv"), Just("x.txt"), Just("x.parquet"), Just("x")
    ]) {
        every_reader(name, &bytes);
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("{{\"prompt\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    every_reader("x.jsonl", deep.as_bytes());
    every_reader("x.json", format!("[{deep}]").as_bytes());
    let open = "[".repeat(100_000);
    every_reader("x.json", open.as_bytes());
}
