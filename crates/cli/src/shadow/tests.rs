//! The pages of a shadow's folder.

use goodput_campaign::compare::{CompareFacts, CompareState, Side};
use goodput_campaign::shadow::{Pair, PairSettings, ShadowFacts};
use goodput_live::SilentObserver;
use goodput_live::shadow::{PairStore, ShadowPlan};
use goodput_model::{Nanos, RequestRecord, SloQuestion};
use goodput_testkit::RecordBuilder;

use super::*;
use goodput_live::shadow::read_shadow;

fn record(at: Nanos, ttft: Nanos) -> RequestRecord {
    let tokens = (0..8).map(|k| at + ttft + Nanos(k * 100_333));
    RecordBuilder::new(at).status(200).tokens(tokens).finish("stop").build()
}

fn whole_page(found: &goodput_campaign::compare::Comparison) -> String {
    compare_text(found, goodput_report::Detail::Full)
}

#[test]
fn what_is_read_from_a_folder_is_what_was_written_there() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("out");
    let side = |name: &str| Side { name: name.to_owned(), ..Side::default() };
    let plan = ShadowPlan {
        schema: ShadowPlan::SCHEMA.to_owned(),
        version: "0.10.0".to_owned(),
        started: "2026-11-16T09:00:00Z".to_owned(),
        share: 0.05,
        flags: [("max-concurrency".to_owned(), "8".to_owned())].into(),
        pairs: PairSettings::default(),
        sides: [side("primary"), side("candidate")],
    };
    let mut store = PairStore::create(&path, plan, whole_page, Arc::new(SilentObserver)).unwrap();
    for second in 0..480 {
        let at = Nanos(second * 1_000_000_000);
        let ttft = Nanos::from_micros(100_000 + second % 60 * 500 + second / 60 * 137);
        let (primary, candidate) = (record(at, ttft), record(at, ttft + Nanos(10_000_333)));
        store.append(Pair { at, primary, candidate, likeness: None });
    }
    let facts = CompareFacts { state: CompareState::Interrupted, ..CompareFacts::default() };
    let shadow = ShadowFacts { share: 0.05, ..ShadowFacts::default() };
    let comparison = store.finish(facts, &shadow);
    report::write_comparison_page(&path, &comparison);
    let read = read_shadow(&path).unwrap().unwrap();
    assert_eq!(report::to_json(&read), std::fs::read_to_string(path.join("summary.json")).unwrap());
    let html = std::fs::read_to_string(path.join("report.html")).unwrap();
    assert!(html.contains("Live traffic") && html.contains("max-concurrency"));
    assert_eq!(html, report::browser_page(&path, &SloQuestion::default()).unwrap());
}
