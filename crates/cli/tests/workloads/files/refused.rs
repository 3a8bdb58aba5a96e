//! Files that cannot be used, as a whole or in part.

use serde_json::json;

use super::{dogs, lines, notes, played, with_file};
use crate::support::number;

/// A file, its content, flags, and what the error says, separated by bars.
type Case = (&'static str, &'static [u8], &'static [&'static str], &'static str);

const HALF: &[u8] = b"[{\"conversations\":[{\"from\":\"human\",\"va";
const FIVE: &[u8] = b"[\n{\"conversations\":[{\"from\":\"human\",\"value\":5}]}]";
const KING: &[u8] = b"{\"messages\":[{\"role\":\"king\",\"content\":\"a\"}]}";
const ZERO: &[u8] = b"{\"prompt\":\"a\",\"output_tokens\":0}\n";
const LONG: &[u8] = b"prompt,output_tokens\n\"a\nb\",3\nc,10000001\n";
const TABLE: &[u8] = b"alpha,beta\n1,2\n";
const FOLDER: &[&str] = &["--dataset-format", "text", "--dataset", "folder"];

const BAD: [Case; 17] = [
    ("t.json", HALF, &[], "t.json, item 1 (line 1): |truncated"),
    (
        "t.jsonl",
        b"{\"prompt\":\"a\"}\n{\"prompt\":\"b",
        &[],
        "t.jsonl, line 2: JSON ends too early|truncated?",
    ),
    (
        "c.json",
        FIVE,
        &[],
        "c.json, item 1 (line 2): field `conversations[0].value` is `5`, expected a text",
    ),
    ("m.jsonl", KING, &[], "m.jsonl, line 1: field `messages[0].role`|expected `system`"),
    ("c.csv", TABLE, &[], "c.csv, line 1: no column `prompt`|`alpha`, `beta`|hint: "),
    ("c.csv", TABLE, &["--prompt-column", "gamma"], "c.csv, line 1: no column `gamma`"),
    ("e.jsonl", b"", &[], "e.jsonl: is empty|hint: "),
    ("z.jsonl", ZERO, &[], "z.jsonl, line 1: field `output_tokens` is `0`, |from 1 to 10000000"),
    ("z.csv", LONG, &[], "z.csv, line 4: field `output_tokens` is `10000001`"),
    ("u.txt", b"fine\nfi\xffne\n", &[], "u.txt, line 2: byte 3 is not UTF-8|iconv"),
    ("w.txt", b"\xff\xfeh\0i\0", &[], "w.txt: is UTF-16, expected UTF-8|iconv"),
    ("g.json.gz", b"\x1f\x8b\x08\0\0\0\0\0", &[], "g.json.gz: is compressed with gzip|gunzip"),
    ("p.parquet", b"PAR1", &[], "p.parquet: is a damaged Parquet file|hint: "),
    (
        "f.jsonl",
        b"{\"foo\":1}\n",
        &[],
        "f.jsonl: no field `conversations`, `messages` or `prompt`|`foo`|hint: ",
    ),
    ("p.txt", b"a\n", &["--dataset-format", "yaml"], "`yaml` is not a form of dataset|`sharegpt`"),
    ("folder/p.txt", b"a\n", FOLDER, "folder: is a folder, expected a file"),
    ("p.txt", b"a\n", &["--dataset", "missing.txt"], "missing.txt: cannot be opened: No such file"),
];

#[test]
fn files_that_cannot_be_used_are_refused_with_their_place() {
    for (name, content, args, words) in BAD {
        let session = with_file(name, content);
        let file: &[&str] = if args.contains(&"--dataset") { &[] } else { &["--dataset", name] };
        let run = ["run", "mock:fast", "--concurrency", "1", "--num-requests", "1"];
        let outcome = session.run(&[&run, file, args].concat());
        assert_eq!(outcome.code, Some(2), "{name}: {}", outcome.stderr);
        for word in words.split('|') {
            assert!(outcome.stderr.contains(word), "{name}: no {word:?} in {}", outcome.stderr);
        }
        assert!(!session.path("runs").exists(), "{name}");
    }
}

#[test]
fn unreadable_entries_are_left_out_and_counted_on_request() {
    let content = b"{\"prompt\":\"one\"}\nnot json\n{\"prompt\":7}\n\xff\n{\"prompt\":\"two\"}\n";
    let session = with_file("p.jsonl", content);
    let args = ["--skip-invalid", "--in-order", "--num-requests", "2"];
    let (prompts, summary) = played(&session, "p.jsonl", &args);
    assert_eq!(prompts, ["one", "two"]);
    let notes = notes(&summary);
    assert!(notes.contains(&"p: 3 of 5 entries left out: not readable (3)"), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("p.jsonl, line 2")), "{notes:?}");
}

#[test]
fn prompts_beyond_the_context_are_failures_of_the_server() {
    let session = with_file(
        "p.jsonl",
        lines(&[
            json!({"prompt": "short", "output_tokens": 4}),
            json!({"prompt": dogs(200), "output_tokens": 4}),
        ]),
    );
    let args = ["--dataset", "p.jsonl", "--in-order", "--concurrency", "1", "--num-requests", "2"];
    let (_, summary) = session.measure("mock:fast,max_model_len=64", &args);
    assert_eq!((number(&summary, "requests.ok"), number(&summary, "requests.failed")), (1.0, 1.0));
    assert_eq!(number(&summary, "requests.errors.http_400"), 1.0);
    let message = summary["requests"]["error_details"][0]["message"].as_str().unwrap();
    assert!(message.contains("64"), "{message}");
}
