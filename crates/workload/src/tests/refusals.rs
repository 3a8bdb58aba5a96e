//! Plans that cannot work.

use goodput_dataset::Loaded;
use goodput_model::{DatasetPlan, LogPlan, SourcePlan, StructuredPlan, TracePlan};

use super::*;

fn message(class: ClassPlan) -> String {
    let error = refused(&WorkloadPlan::new(class));
    assert!(!error.hint.is_empty(), "{error}");
    error.to_string()
}

fn shared(plan: SharedPlan) -> String {
    message(with_prefix(100, 0, Some(plan)))
}

#[test]
fn numbers_out_of_range_are_named() {
    for share in [-0.1, 1.5, f64::NAN] {
        let error = shared(SharedPlan::HitRate { share, groups: 1 });
        assert!(error.starts_with("class `fixed`: a hit rate of"), "{error}");
    }
    let zero = |name: &str| format!("class `fixed`: {name} is 0: expected at least 1");
    assert_eq!(shared(SharedPlan::HitRate { share: 0.5, groups: 0 }), zero("groups"));
    assert_eq!(shared(SharedPlan::Tiling { contexts: 0, tokens: 9 }), zero("contexts"));
    assert_eq!(shared(SharedPlan::Repeat { prompts: 0 }), zero("prompts"));
    let endless = SharedPlan::Tiling { contexts: 2, tokens: u32::MAX };
    assert!(shared(endless).contains("tokens is 4294967295: expected at most 10000000"));
    let popular = SharedPlan::Groups { groups: 2, tokens: 9, zipf: f64::NAN };
    assert!(shared(popular).contains("a popularity exponent of NaN"));
    assert!(message(fixed(0, 4)).contains("input: `0` can be below one"));
    let upside_down = LengthDistribution::Zipf(1.0, goodput_model::Clip { low: 9, high: 3 });
    let class = ClassPlan::synthetic("fixed", LengthDistribution::Fixed(9), upside_down);
    assert!(message(class).contains("output: `zipf:1:9:3`"));
}

#[test]
fn sessions_need_turns_and_generated_text() {
    let mut class = find_preset("agent").unwrap();
    class.session.as_mut().unwrap().turns = LengthDistribution::Fixed(0);
    assert!(message(class).contains("turns: `0` can be below one"));
    let mut class = find_preset("agent").unwrap();
    class.source = SourcePlan::Dataset(DatasetPlan::default());
    assert!(message(class).contains("a session plan needs generated text"));
    let mut class = find_preset("agent").unwrap();
    class.session.as_mut().unwrap().tools.as_mut().unwrap().fan_out = 5_000;
    assert!(message(class).contains("a fan-out of 5000"));
}

#[test]
fn traces_stand_alone() {
    let source = SourcePlan::Trace(TracePlan {
        file: "t.jsonl".to_owned(),
        format: None,
        start_s: 0.0,
        length_s: None,
        block_tokens: None,
        sha256: None,
        log: LogPlan::default(),
    });
    let mut plan = WorkloadPlan::new(find_preset("chat").unwrap());
    plan.classes.push(ClassPlan { name: "trace".to_owned(), source, ..fixed(1, 1) });
    let error = refused(&plan);
    assert!(error.to_string().starts_with("class `trace`: a trace or a frozen workload"));
    assert_eq!(error.hint, "run it alone");
    plan.classes.remove(0);
    plan.classes[0].prefix = Some(PrefixPlan { system_tokens: 5, shared: None });
    assert!(refused(&plan).to_string().contains("cannot be added to a trace"));
    plan.classes.clear();
    assert!(refused(&plan).to_string().contains("has 0 classes"));
}

#[test]
fn shares_and_constraints_are_checked() {
    let mut plan = WorkloadPlan::new(find_preset("chat").unwrap());
    plan.classes.push(ClassPlan { share: f64::NAN, ..fixed(9, 9) });
    assert!(refused(&plan).to_string().contains("has share NaN"));
    let structured = |share, kind: &str| {
        let plan = StructuredPlan { share, kind: kind.to_owned(), text: None };
        message(ClassPlan { structured: Some(plan), ..fixed(9, 9) })
    };
    assert!(structured(2.0, "json").contains("a share of 2"));
    assert!(structured(0.5, "sonnet").contains("sonnet"));
}

#[test]
fn a_file_that_changed_since_the_plan_was_made_is_refused() {
    let data = DatasetPlan {
        file: "s.json".to_owned(),
        sha256: Some("aa".to_owned()),
        ..DatasetPlan::default()
    };
    let class = ClassPlan { source: SourcePlan::Dataset(data), ..fixed(1, 1) };
    let loaded = Loaded { sha256: "bb".to_owned(), ..Loaded::default() };
    let plan = WorkloadPlan::new(class);
    let error = Workload::build(&plan, &Setting::new(1), vec![Material::Entries(loaded)]);
    assert!(error.unwrap_err().to_string().contains("s.json is not the file of the plan"));
}

#[test]
fn lengths_of_files_that_no_context_holds_are_refused() {
    let source = SourcePlan::Pairs { file: "pairs.csv".to_owned() };
    let plan = WorkloadPlan::new(ClassPlan { source, ..fixed(1, 1) });
    for bad in [(0, 5), (5, 0), (u32::MAX, 5)] {
        let material = vec![Material::Pairs(vec![(9, 9), bad])];
        let error = Workload::build(&plan, &Setting::new(1), material).unwrap_err().to_string();
        assert!(error.contains(&format!("pairs.csv: the pair {},{}", bad.0, bad.1)), "{error}");
    }
}

#[test]
fn a_broken_calibration_is_refused() {
    let mut plan = WorkloadPlan::new(fixed(9, 9));
    plan.calibration = Some(TokenCalibration {
        source: CalibrationSource::Usage,
        template_tokens: 0,
        message_tokens: 0,
        costs: "12".to_owned(),
    });
    assert!(refused(&plan).to_string().contains("calibration.costs has 2 characters"));
}
