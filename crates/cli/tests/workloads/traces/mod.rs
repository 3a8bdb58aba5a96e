//! Traces and our own files: instants, lengths and blocks as recorded, and what becomes of them in
//! other forms.

mod files;
mod logs;
mod recorded;
mod regressions;

use std::fs;

use crate::support::mock::records;
use crate::support::{Session, at, number};
use goodput_model::{Nanos, RequestRecord};
use serde_json::{Value, json};

/// A session whose folder holds these files.
fn with_files(files: &[(&str, &str)]) -> Session {
    let session = Session::new();
    for (name, content) in files {
        fs::write(session.path(name), content).unwrap();
    }
    session
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

/// A trace of Mooncake: milliseconds, prompt, answer, blocks.
fn mooncake(rows: &[(f64, u32, u32, &[u64])]) -> String {
    let row = |&(at, input, output, blocks): &(f64, u32, u32, &[u64])| json!({"timestamp": at, "input_length": input, "output_length": output, "hash_ids": blocks});
    lines(&rows.iter().map(row).collect::<Vec<_>>())
}

/// Plays a trace: the records in the order of requests, and the summary.
fn replayed(session: &Session, target: &str, args: &[&str]) -> (Vec<RequestRecord>, Value) {
    let args = [&["--canary", "off"], args].concat();
    let (outcome, summary) = session.measure(target, &args);
    outcome.assert_finished(&format!("{args:?}"));
    let mut records = records(&session.path("out/requests.log"));
    records.sort_by_key(|record| record.index);
    (records, summary)
}

fn due(records: &[RequestRecord]) -> Vec<Nanos> {
    records.iter().map(|record| record.scheduled).collect()
}

fn millis(instants: &[f64]) -> Vec<Nanos> {
    instants.iter().map(|ms| Nanos((ms * 1e6) as u64)).collect()
}

/// Prompt and answer as the server counted them.
fn lengths(records: &[RequestRecord]) -> Vec<(u32, u32)> {
    let counted = |record: &RequestRecord| {
        let exchange = &record.exchange;
        (exchange.input_tokens.unwrap().n, exchange.output_tokens.unwrap().n)
    };
    records.iter().map(counted).collect()
}

fn notes(summary: &Value) -> Vec<&str> {
    at(summary, "run.notes").as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

/// An engine with a prefix cache in blocks of 16 tokens, and hardly any latency.
const ENGINE: &str = "model = \"m\"\nmax_model_len = 16384\ndefault_tokens = 8\n\
    [scheduler]\nmax_num_seqs = 64\nmax_num_batched_tokens = 8192\n[kv]\nblocks = 20000\n\
    [step]\nbase_ms = 0.1\noverlap = 0.0\ndecode_ms = [[1, 0.1]]\nprefill_ms = [[1, 0.1]]\n";

/// Blocks of the trace have 512 tokens, those of the server 16. The template puts two tokens before
/// the text and two behind, so of `n` leading blocks in common the server finds
/// floor((2 + 512 n) / 16) blocks of its own, which is 512 n tokens.
#[test]
fn equal_blocks_of_a_trace_are_found_in_the_servers_cache() {
    let rows: [(f64, u32, u32, &[u64]); 7] = [
        (0.0, 1536, 2, &[1, 2, 3]),
        // Two blocks in common, though the third is known too, behind others.
        (1.0, 1536, 2, &[1, 2, 9]),
        // A first block that no other request has.
        (2.0, 1536, 2, &[7, 8, 6]),
        // All of it: the last token is computed, so not its block.
        (3.0, 1536, 2, &[1, 2, 3]),
        // A tail of its own behind one block.
        (4.0, 700, 2, &[1]),
        // Another tail behind the same block.
        (5.0, 600, 2, &[1]),
        (6.0, 100, 2, &[]),
    ];
    let hits = [0, 1024, 0, 1520, 512, 512, 0];
    let session = with_files(&[("t.jsonl", &mooncake(&rows)), ("engine.toml", ENGINE)]);
    let args = ["--trace", "t.jsonl", "--concurrency", "1", "--num-requests", "7"];
    let (records, summary) = replayed(&session, "mock:engine.toml", &args);
    let expected: Vec<(u32, u32)> = rows.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(lengths(&records), expected);
    let cached: Vec<u32> = records.iter().map(|r| r.exchange.cached_tokens.unwrap_or(0)).collect();
    assert_eq!(cached, hits);
    let planned: Vec<_> = records.iter().map(|r| r.planned.cached_tokens.unwrap_or(0)).collect();
    assert_eq!(planned, hits);
    let all: u32 = rows.iter().map(|row| row.1).sum();
    let share = f64::from(hits.iter().sum::<u32>()) / f64::from(all);
    assert_eq!(number(&summary, "cache.observed"), share);
    // The last row has no blocks, and says nothing about the cache.
    let asked = f64::from(hits.iter().sum::<u32>()) / f64::from(all - 100);
    assert_eq!(number(&summary, "cache.requested"), asked);
    let shown = session.run(&["workload", "show", "t.jsonl", "--json"]);
    let view: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(number(&view, "expected_hit_rate"), share);
}

/// The prompt before ends with two tokens of the template where the next one goes on, so the server
/// finds all of it but those two, in whole blocks.
#[test]
fn a_conversation_that_grows_finds_its_past() {
    let first = mooncake(&[
        (0.0, 1536, 2, &[1, 2, 3]),
        (1.0, 2048, 2, &[1, 2, 3, 4]),
        (2.0, 3000, 2, &[1, 2, 3, 4, 5, 6]),
    ]);
    let chat = |chat: i32, parent: i32, input: u64| {
        let blocks: Vec<u64> = (0..input / 16).collect();
        json!({"timestamp": chat, "chat_id": chat, "parent_chat_id": parent, "input_length": input,
            "output_length": 2, "hash_ids": blocks})
    };
    // Bailian's blocks have 16 tokens as the server's have.
    let second = lines(&[chat(1, -1, 64), chat(2, 1, 96), chat(3, 2, 160)]);
    for (trace, sizes, hits) in [
        (first, [1536, 2048, 3000], [0, (1536 - 2) / 16 * 16, (2048 - 2) / 16 * 16]),
        (second, [64, 96, 160], [0, (64 - 2) / 16 * 16, (96 - 2) / 16 * 16]),
    ] {
        let session = with_files(&[("t.jsonl", &trace), ("engine.toml", ENGINE)]);
        let args = ["--trace", "t.jsonl", "--concurrency", "1", "--num-requests", "3"];
        let (records, _) = replayed(&session, "mock:engine.toml", &args);
        assert_eq!(lengths(&records), sizes.map(|size| (size, 2)));
        let cached: Vec<_> =
            records.iter().map(|r| r.exchange.cached_tokens.unwrap_or(0)).collect();
        assert_eq!(cached, hits);
    }
}

#[test]
fn requests_are_due_at_the_instants_of_the_trace() {
    let rows: [(f64, u32, u32, &[u64]); 4] =
        [(1000.0, 40, 3, &[]), (1007.25, 50, 4, &[]), (1040.5, 60, 5, &[]), (1040.5, 70, 6, &[])];
    let trace = mooncake(&rows);
    let cases: [(&[&str], &[f64], usize); 5] = [
        (&[], &[0.0, 7.25, 40.5, 40.5], 0),
        (&["--time-scale", "0.5"], &[0.0, 3.625, 20.25, 20.25], 0),
        (&["--time-scale", "3"], &[0.0, 21.75, 121.5, 121.5], 0),
        (&["--trace-start", "5ms"], &[0.0, 33.25, 33.25], 1),
        (&["--trace-start", "5ms", "--trace-length", "30ms", "--time-scale", "2"], &[0.0], 1),
    ];
    for (args, instants, first) in cases {
        let session = with_files(&[("t.jsonl", &trace)]);
        let args = [&["--trace", "t.jsonl"], args].concat();
        let (records, summary) = replayed(&session, "mock:fast", &args);
        assert_eq!(due(&records), millis(instants), "{args:?}");
        let asked: Vec<_> = rows[first..][..instants.len()].iter().map(|r| (r.1, r.2)).collect();
        assert_eq!(lengths(&records), asked, "{args:?}");
        assert_eq!(summary["load"]["mode"], "replay");
        assert_eq!(number(&summary, "replay.drift_ms.max"), 0.0);
        assert_eq!(summary["replay"]["n"], instants.len());
        let outside = rows.len() - instants.len();
        let note = format!(
            "t: {outside} of 4 entries left out: outside the selected time range ({outside})"
        );
        assert_eq!(notes(&summary).contains(&&*note), outside > 0, "{:?}", notes(&summary));
    }
}

#[test]
fn with_a_load_of_its_own_a_trace_gives_lengths_alone() {
    let rows: [(f64, u32, u32, &[u64]); 3] =
        [(0.0, 40, 3, &[]), (600_000.0, 50, 4, &[]), (900_000.0, 60, 5, &[])];
    let trace = mooncake(&rows);
    for load in [["--rate", "50"], ["--concurrency", "2"]] {
        let session = with_files(&[("t.jsonl", &trace)]);
        let args = [&["--trace", "t.jsonl", "--num-requests", "3"], &load[..]].concat();
        let (records, summary) = replayed(&session, "mock:fast", &args);
        assert_eq!(lengths(&records), [(40, 3), (50, 4), (60, 5)]);
        assert!(summary["replay"].is_null(), "{}", summary["replay"]);
        assert!(due(&records).iter().all(|at| *at < Nanos::from_millis(60_000)));
    }
}

#[test]
fn rows_out_of_order_are_sorted_and_counted() {
    let rows: [(f64, u32, u32, &[u64]); 4] =
        [(20.0, 42, 3, &[]), (0.0, 40, 1, &[]), (30.0, 43, 4, &[]), (10.0, 41, 2, &[])];
    let session = with_files(&[("t.jsonl", &mooncake(&rows))]);
    let (records, summary) = replayed(&session, "mock:fast", &["--trace", "t.jsonl"]);
    assert_eq!(due(&records), millis(&[0.0, 10.0, 20.0, 30.0]));
    assert_eq!(lengths(&records), [(40, 1), (41, 2), (42, 3), (43, 4)]);
    let note = "t: 2 rows were out of order and have been sorted";
    assert!(notes(&summary).contains(&note), "{:?}", notes(&summary));
    assert!(session.run(&["report", "out", "-v"]).stdout.contains("2 rows were out of order"));
}

#[test]
fn a_trace_of_burstgpt_leaves_failures_out_and_has_classes() {
    let trace = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
        5,ChatGPT,40,4,44,Conversation log\n\
        5.02,GPT-4,50,0,50,Conversation log\n\
        5.03,GPT-4,60,6,66,API log\n\
        5.05,ChatGPT,70,7,77,Conversation log\n";
    let session = with_files(&[("b.csv", trace)]);
    let (records, summary) = replayed(&session, "mock:fast", &["--trace", "b.csv"]);
    assert_eq!(due(&records), millis(&[0.0, 30.0, 50.0]));
    assert_eq!(lengths(&records), [(40, 4), (60, 6), (70, 7)]);
    let note = "b: 1 of 4 entries left out: failed when it was recorded (0 response tokens) (1)";
    assert_eq!(notes(&summary), [note]);
    let classes = at(&summary, "breakdown.class").as_object().unwrap();
    let counts: Vec<_> = classes.iter().map(|(name, slice)| (&**name, &slice["ok"])).collect();
    let two = json!(2);
    assert_eq!(counts, [("ChatGPT/Conversation log", &two), ("GPT-4/API log", &json!(1))]);
    assert_eq!(number(&summary["breakdown"]["class"]["GPT-4/API log"], "input_tokens_mean"), 60.0);
}

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
    2023-11-16 18:15:46.6805900,374,44\n\
    2023-11-16 18:15:46.7905907,396,109\n\
    2023-11-16 18:15:47.0000001,879,55\n";

/// Since the first row, in nanoseconds.
const AZURE_AT: [u64; 3] = [0, 110_000_700, 319_410_100];

#[test]
fn azures_instants_are_exact_to_a_tenth_of_a_microsecond() {
    let session = with_files(&[("a.csv", AZURE)]);
    let (records, _) = replayed(&session, "mock:fast", &["--trace", "a.csv"]);
    assert_eq!(due(&records), AZURE_AT.map(Nanos));
    assert_eq!(lengths(&records), [(374, 44), (396, 109), (879, 55)]);
}

/// Two sessions: the second request of `s` comes 60 ms after the first, of which 20 were spent on
/// its answer; the third states its pause.
fn sessions() -> String {
    lines(&[
        json!({"schema": "goodput.trace/1"}),
        json!({"at": 0, "session": "s", "input_tokens": 40, "output_tokens": 3, "took": 0.02}),
        json!({"at": 0.01, "session": "t", "input_tokens": 50, "output_tokens": 2}),
        json!({"at": 0.06, "session": "s", "input_tokens": 80, "output_tokens": 3, "took": 0.02}),
        json!({"at": 0.2, "session": "s", "input_tokens": 120, "output_tokens": 3, "after": 0.03}),
    ])
}

#[test]
fn timestamps_are_kept_whatever_the_answers_take() {
    let session = with_files(&[("own.jsonl", &sessions())]);
    let args = ["--trace", "own.jsonl", "--replay", "timestamps"];
    let (records, summary) = replayed(&session, "mock:ttft=100ms,itl=1ms", &args);
    assert_eq!(due(&records), millis(&[0.0, 10.0, 60.0, 200.0]));
    assert_eq!(summary["replay"]["keep"], "timestamps");
    assert_eq!(number(&summary, "replay.drift_ms.max"), 0.0);
    let turns: Vec<_> = records.iter().map(|r| (r.planned.session, r.planned.turn)).collect();
    assert_eq!(turns, [(Some(0), 0), (Some(1), 0), (Some(0), 1), (Some(0), 2)]);
}

#[test]
fn think_times_are_kept_after_answers_that_take_longer() {
    for (scale, factor) in [("1", 1.0), ("0.5", 0.5)] {
        let session = with_files(&[("own.jsonl", &sessions())]);
        let args = ["--trace", "own.jsonl", "--replay", "think-times", "--time-scale", scale];
        let (records, summary) = replayed(&session, "mock:ttft=100ms,itl=1ms", &args);
        // Numbers go by sessions: three of `s`, then the one of `t`.
        assert_eq!(records.len(), 4);
        assert_eq!(records[0].scheduled, Nanos::ZERO);
        assert_eq!(records[3].scheduled, millis(&[10.0 * factor])[0]);
        for (place, pause) in [(1, 40.0), (2, 30.0)] {
            let answered = records[place - 1].exchange.stamps.ended;
            assert_eq!(records[place].scheduled, answered + millis(&[pause * factor])[0]);
        }
        assert_eq!(summary["replay"]["keep"], "think-times");
        assert_eq!(number(&summary, "replay.time_scale"), factor);
        // The second is at least 100 ms and its pause behind the first; the trace has 60.
        let drift = number(&summary, "replay.drift_ms.max");
        let late = records[2].scheduled.as_ms() - 200.0 * factor;
        let second = records[1].scheduled.as_ms() - 60.0 * factor;
        assert!((drift - late.abs().max(second)).abs() < 1e-6, "{drift} {late} {second}");
        assert!(second >= 140.0 * factor - 60.0 * factor, "{second}");
    }
}

#[test]
fn traces_that_cannot_be_used_are_refused_with_their_place() {
    let good = r#"{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": []}"#;
    let row = |fields: &str| format!("{good}\n{{{fields}, \"hash_ids\": []}}\n");
    let lengths = r#""input_length": 9, "output_length": 1"#;
    let cases = [
        (
            row(&format!("\"timestamp\": NaN, {lengths}")),
            "t.jsonl, line 2: field `timestamp` is `NaN`, expected a finite number",
        ),
        (
            row(&format!("\"timestamp\": -1, {lengths}")),
            "t.jsonl, line 2: field `timestamp` is `-1`, expected a number of milliseconds from 0",
        ),
        (row(&format!("\"timestamp\": \"x\", {lengths}")), "line 2: field `timestamp` is `\"x\"`"),
        (row(lengths), "line 2: no field `timestamp`, expected milliseconds"),
        (
            row(r#""timestamp": 1, "input_length": 0, "output_length": 1"#),
            "line 2: field `input_length` is `0`, expected a number of tokens from 1 to 10000000",
        ),
        (
            row(r#""timestamp": 1, "input_length": 9, "output_length": 10000001"#),
            "line 2: field `output_length` is `10000001`",
        ),
        (format!("{good}\n{}", &good[..40]), "t.jsonl, line 2: JSON ends too early"),
        (
            good.replace("[]", "[1, 2]"),
            "line 1: field `hash_ids` is `2 blocks`, expected at most 1",
        ),
        (
            "TIMESTAMP,ContextTokens\n1,2\n".to_owned(),
            "line 1: no column `GeneratedTokens`; columns there: `TIMESTAMP`",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,2\n".to_owned(),
            "line 2: field `TIMESTAMP` is `noon`, expected an instant like",
        ),
        ("hello\n".to_owned(), "cannot tell its form: its first line is not a known header"),
        (String::new(), "is empty"),
    ];
    for (content, words) in cases {
        let session = with_files(&[("t.jsonl", &content)]);
        let outcome = session.run(&["run", "mock:fast", "--trace", "t.jsonl"]);
        assert_eq!(outcome.code, Some(2), "{content}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "no {words:?} in {}", outcome.stderr);
        assert!(!session.path("runs").exists(), "{content}");
    }
    let session = with_files(&[("t.jsonl", &row("\"timestamp\": 5"))]);
    let (records, summary) =
        replayed(&session, "mock:fast", &["--trace", "t.jsonl", "--skip-invalid"]);
    assert_eq!(self::lengths(&records), [(9, 1)]);
    assert!(notes(&summary).contains(&"t: 1 of 2 entries left out: not readable (1)"));
    let late = ["run", "mock:fast", "--trace", "t.jsonl", "--skip-invalid", "--trace-start", "1h"];
    let outcome = session.run(&late);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("none of its 2 rows lies in the selected time range"),
        "{}",
        outcome.stderr
    );
}
