//! From files on disk to sessions.

use goodput_dataset::frozen::{FrozenHeader, FrozenWriter};
use goodput_model::{DatasetPlan, LogPlan, Nanos, SourcePlan, TracePlan};
use goodput_tokens::Tokenizer;

use super::*;

/// A plan over a file of this content, and the folder that keeps it alive.
fn on_disk(
    name: &str,
    content: &str,
    source: impl Fn(String) -> SourcePlan,
) -> (tempfile::TempDir, WorkloadPlan) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let source = source(path.to_string_lossy().into_owned());
    (folder, WorkloadPlan::new(ClassPlan { source, ..fixed(1, 1) }))
}

fn trace(file: String) -> SourcePlan {
    SourcePlan::Trace(TracePlan {
        file,
        format: None,
        start_s: 0.0,
        length_s: None,
        block_tokens: None,
        sha256: None,
        log: LogPlan::default(),
    })
}

fn dataset(file: String) -> SourcePlan {
    SourcePlan::Dataset(DatasetPlan { file, in_order: true, ..DatasetPlan::default() })
}

#[test]
fn a_mooncake_trace_has_the_hit_rate_by_hand() {
    let rows = r#"{"timestamp": 0, "input_length": 1200, "output_length": 5, "hash_ids": [1, 2, 3]}
{"timestamp": 300, "input_length": 1300, "output_length": 5, "hash_ids": [1, 2, 4]}
{"timestamp": 900, "input_length": 600, "output_length": 5, "hash_ids": [1, 9]}
"#;
    let (_folder, plan) = on_disk("mooncake.jsonl", rows, trace);
    let workload = Workload::new(&plan, &Setting::new(1)).unwrap();
    assert_eq!(workload.arrival(2), Some(Nanos::from_millis(900)));
    assert_eq!(workload.session(3), None);
    let [a, b] = [first(&workload, 0), first(&workload, 1)];
    assert!((1_024..1_030).contains(&common(&whole(&a), &whole(&b))));
    assert_eq!(workload.cache_estimate(9), f64::from(1_024 + 512) / f64::from(1_200 + 1_300 + 600));
}

#[test]
fn conversations_of_a_file_are_counted_with_the_plans_tokenizer() {
    let file = r#"[{"id": "1", "conversations": [
        {"from": "human", "value": "one two three"}, {"from": "gpt", "value": "four five"},
        {"from": "human", "value": "six"}, {"from": "gpt", "value": "seven"}]}]"#;
    let (_folder, mut plan) = on_disk("sharegpt.json", file, dataset);
    plan.tokenizer = Some("o200k_base".to_owned());
    let workload = Workload::new(&plan, &Setting { requests: 4, ..Setting::new(1) }).unwrap();
    let session = workload.session(0).unwrap();
    let expected = [(3, Some(2), Some(0)), (6, Some(1), Some(0))];
    assert_eq!(plans(&session), expected);
    let note = "fixed: 1 entries for 4 requests: repeated 4 times with fresh nonces";
    assert_eq!(workload.repeat_notes(4), [note]);
}

#[test]
fn a_frozen_workload_is_the_one_that_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frozen.jsonl");
    let origin = build(find_preset("agent").unwrap());
    let mut writer = FrozenWriter::create(&path, FrozenHeader::new("agent", 42)).unwrap();
    for number in 0..5 {
        writer.write(None, &origin.session(number).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let source = SourcePlan::Frozen { file: path.to_string_lossy().into_owned(), sha256: None };
    let plan = WorkloadPlan::new(ClassPlan { source, ..fixed(1, 1) });
    let workload = Workload::new(&plan, &Setting::new(7)).unwrap();
    for number in 0..6 {
        let expected = origin.session(number).filter(|_| number < 5);
        assert_eq!(workload.session(number), expected);
    }
}

#[test]
fn what_is_wrong_with_a_file_names_class_file_and_line() {
    let broken =
        "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 5, \"hash_ids\": []}\n{";
    let (_folder, plan) = on_disk("mooncake.jsonl", broken, trace);
    let error = refused(&plan).to_string();
    assert!(error.starts_with("class `fixed`: ") && error.contains("line 2"), "{error}");
    let (_folder, plan) =
        on_disk("pairs.csv", "input,output\n10,2\n20,3\n", |file| SourcePlan::Pairs { file });
    let planned = first(&Workload::new(&plan, &Setting::new(1)).unwrap(), 0).planned;
    assert!(
        [(10, Some(2)), (20, Some(3))].contains(&(planned.input_tokens, planned.output_tokens))
    );
}

#[test]
fn the_vocabulary_is_one_token_a_unit_in_the_usual_vocabularies() {
    for name in ["cl100k_base", "o200k_base"] {
        let tokenizer = Tokenizer::builtin(name).unwrap();
        let found = calibrate(&mut |text| tokenizer.count(text), 20).unwrap();
        assert_eq!(found.costs, Lexicon::estimated_costs(), "{name}");
        assert_eq!((found.overhead, found.calls), (0, 14), "{name}");
        let workload = build(find_preset("chat").unwrap());
        for number in 0..10 {
            let request = first(&workload, number);
            assert_eq!(tokenizer.count(&whole(&request)), Ok(request.planned.input_tokens));
        }
    }
}
