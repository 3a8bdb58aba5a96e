//! Files as they are written, against the schemas in `docs/schema/`.

use std::fs;
use std::path::Path;

use crate::support::Session;
use goodput_model::CaveatCode;
use serde_json::{Value, json};

const FOUR: &str = "mock:ttft=22ms,itl=2ms,slots=4";

/// A schema, and the same without leave for properties that it does not name.
fn schemas(name: &str) -> [Value; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let text = fs::read_to_string(folder.join(format!("{name}.schema.json"))).unwrap();
    let open: Value = serde_json::from_str(&text).unwrap();
    let mut closed = open.clone();
    close(&mut closed);
    [open, closed]
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            parts.values_mut().for_each(close);
            if parts.contains_key("required") && !parts.contains_key("additionalProperties") {
                parts.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

fn assert_valid(name: &str, file: &Value) {
    for schema in schemas(name) {
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(file)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

fn read(session: &Session, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(session.path(file)).unwrap()).unwrap()
}

/// What a command prints.
fn printed(session: &Session, args: &[&str]) -> Value {
    let outcome = session.run(args);
    let found = serde_json::from_str(&outcome.stdout);
    found.unwrap_or_else(|_| panic!("{args:?}: {:?} {}", outcome.code, outcome.stderr))
}

#[test]
fn runs_and_what_is_made_of_them() {
    let session = Session::new();
    let run = ["run", FOUR, "--rate", "30", "--duration", "2s", "--osl", "5", "--quiet"];
    // As much as a summary can hold without a GPU: sessions, slices, an SLO, a recount, a rule.
    let full = ["--turns", "uniform:1:2", "--slo", "ttft < 100ms", "--until", "p50 ttft ±50%"];
    let full = [&run[..], &full, &["--count-with", "o200k_base", "--out", "full"]].concat();
    session.run(&full).assert_finished("a run");
    let full = read(&session, "full/summary.json");
    // A client that was held up has measured no latency.
    let is_timed = full["metrics"]["ttft"]["n"].as_u64().is_some_and(|n| n > 0);
    let timed = if is_timed { &["waterfall", "breakdown"][..] } else { &[] };
    for part in ["slo", "sessions", "recount", "until", "server"].iter().chain(timed) {
        assert!(full[part].as_object().is_some_and(|part| !part.is_empty()), "no {part}: {full}");
    }
    assert_valid("summary", &full);
    assert_valid("manifest", &read(&session, "full/manifest.json"));
    session
        .run(&[&run[..], &["--repeat", "2", "--out", "two"]].concat())
        .assert_finished_despite(&[CaveatCode::NothingMeasured], "two runs");
    assert_valid("repeats", &read(&session, "two/summary.json"));
    let saved = ["compare", "two/repeat-1", "two/repeat-2", "--json", "--quiet"];
    assert_valid("comparison", &printed(&session, &saved));
    assert_valid("audit", &printed(&session, &["audit", "full", "two", "--json"]));
}

#[test]
fn sweeps() {
    let session = Session::new();
    let args = ["sweep", FOUR, "--rates", "20", "--no-search", "--vary", "osl=4,5", "--quick"];
    let short = ["--duration", "500ms", "--warmup", "100ms", "--settle", "0s", "--no-length-check"];
    let done = session.run(&[&args[..], &short, &["--quiet", "--out", "all"]].concat());
    done.assert_finished("two sweeps");
    assert_valid("sweeps", &read(&session, "all/summary.json"));
    assert_valid("sweep", &read(&session, "all/configurations/01-osl=4/summary.json"));
}

#[test]
fn numbers_without_a_run() {
    let session = Session::new();
    let plan =
        ["capacity", "--goodput-rps", "22", "--gpus-per-replica", "8", "--target-rps", "100"];
    let more = ["--price-per-gpu-hour", "2.5", "--fan-out", "3", "--json"];
    assert_valid("capacity", &printed(&session, &[&plan[..], &more].concat()));
    let numbers: Vec<String> = (0..200).map(|number| (number * 37 % 200).to_string()).collect();
    fs::write(session.path("numbers.txt"), numbers.join("\n")).unwrap();
    assert_valid("column", &printed(&session, &["stats", "numbers.txt", "--json"]));
}

#[test]
fn what_is_wrong_is_found() {
    let right = json!([{
        "subject": "a", "tool": "b", "run": "c", "verdict": "valid", "items": [],
        "added_later": true,
    }]);
    let [open, closed] = schemas("audit");
    let is_valid = |schema: &Value, file: &Value| jsonschema::is_valid(schema, file);
    assert!(is_valid(&open, &right), "fields may be added");
    assert!(!is_valid(&closed, &right));
    for (pointer, value) in [("/0/verdict", json!("fine")), ("/0/items", json!({}))] {
        let mut wrong = right.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        assert!(!is_valid(&open, &wrong), "{pointer}");
    }
    let mut without = right.clone();
    without[0].as_object_mut().unwrap().remove("verdict");
    assert!(!is_valid(&open, &without));
}
