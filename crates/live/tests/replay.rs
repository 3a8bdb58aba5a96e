//! What was recorded is replayed: lengths, instants and what prompts share.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use goodput_dataset::{TraceHead, TraceWriter};
use goodput_live::rows::{Recorder, RowSettings};
use goodput_model::{
    Api, CalibrationSource, ClassPlan, Exchange, LengthDistribution, LogPlan, Message, MessagePart,
    Nanos, PrefixPlan, Request, SharedPlan, SourcePlan, TokenCalibration, TracePlan, WorkloadPlan,
};
use goodput_tokens::Tokenizer;
use goodput_workload::{Setting, Workload, calibrate};
use serde_json::json;

/// Who speaks, the end of what is said, and the beginning of the answer.
const TEMPLATE: u32 = 6;
const BLOCK: u32 = 16;

fn body(request: &Request) -> String {
    let message = |message: &Message| {
        let Message::Plain { role, parts } = message else { panic!("{message:?}") };
        let text = |part: &MessagePart| match part {
            MessagePart::Text(text) | MessagePart::Image(text) => text.to_string(),
        };
        json!({"role": role.name(), "content": parts.iter().map(text).collect::<String>()})
    };
    let messages: Vec<_> = request.messages.iter().map(message).collect();
    json!({"model": "m", "messages": messages}).to_string()
}

/// A workload in the words of a tokenizer.
fn planned(tokenizer: &Tokenizer, class: ClassPlan) -> WorkloadPlan {
    let mut plan = WorkloadPlan::new(class);
    let found = calibrate(&mut |text| tokenizer.count(text), 2_000).unwrap();
    plan.calibration = Some(TokenCalibration {
        source: CalibrationSource::Tokenizer,
        template_tokens: TEMPLATE,
        message_tokens: 3,
        costs: found.costs,
    });
    plan
}

/// Sends this many sessions of a workload past a recorder, one a second, and reads what it wrote.
fn replayed(plan: &WorkloadPlan, tokenizer: &Tokenizer, sessions: u64) -> Workload {
    let settings = RowSettings {
        tokenizer: tokenizer.clone(),
        block_tokens: BLOCK,
        salt: [3; 32],
        save_text: false,
    };
    let mut recorder = Recorder::new(settings);
    let head = TraceHead { block_tokens: Some(BLOCK), ..TraceHead::default() };
    let mut writer = TraceWriter::with_head(Vec::new(), &head).unwrap();
    let workload = Workload::new(plan, &Setting::new(42)).unwrap();
    for number in 0..sessions {
        let session = workload.session(number).unwrap();
        let body = body(&session.steps[0].requests[0]);
        let at = Nanos(number * 1_000_000_000);
        let question = recorder.start_row(at, Api::Chat, body.as_bytes(), None);
        let exchange = Exchange { status: Some(200), ..Exchange::default() };
        writer.write(&recorder.finish_row(question, Nanos::ZERO, &exchange)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, writer.into_inner()).unwrap();
    let source = SourcePlan::Trace(TracePlan {
        file: path.display().to_string(),
        format: None,
        start_s: 0.0,
        length_s: None,
        block_tokens: None,
        sha256: None,
        log: LogPlan::default(),
    });
    let class =
        ClassPlan::synthetic("trace", LengthDistribution::Fixed(1), LengthDistribution::Fixed(1));
    let mut again = WorkloadPlan::new(ClassPlan { source, ..class });
    again.calibration.clone_from(&plan.calibration);
    Workload::new(&again, &Setting::new(7)).unwrap()
}

#[test]
fn a_recorded_workload_has_the_hit_rate_that_was_planned() {
    let tokenizer = Tokenizer::builtin("o200k_base").unwrap();
    let (sessions, groups) = (200, 4);
    let cases = [
        // 206 tokens of template and group: twelve blocks.
        (0, SharedPlan::Groups { groups, tokens: 200, zipf: 0.5 }, 192),
        (0, SharedPlan::Tiling { contexts: groups, tokens: 240 }, 240),
        // 70 % of 300 tokens: thirteen blocks.
        (0, SharedPlan::HitRate { share: 0.7, groups }, 208),
    ];
    for (system_tokens, shared, hits) in cases {
        let class = ClassPlan {
            prefix: Some(PrefixPlan { system_tokens, shared: Some(shared) }),
            ..ClassPlan::synthetic(
                "c",
                LengthDistribution::Fixed(300),
                LengthDistribution::Fixed(5),
            )
        };
        let plan = planned(&tokenizer, class);
        let workload = Workload::new(&plan, &Setting::new(42)).unwrap();
        let first = workload.session(0).unwrap().steps[0].requests[0].planned.clone();
        assert_eq!(first.cached_tokens, Some(hits), "{shared:?}");
        let length = f64::from(first.input_tokens);
        let again = replayed(&plan, &tokenizer, sessions);
        assert_eq!(again.session_count(), Some(sessions));
        for number in 0..sessions {
            let session = again.session(number).unwrap();
            let planned = &session.steps[0].requests[0].planned;
            assert_eq!(f64::from(planned.input_tokens), length);
            assert_eq!(again.arrival(number), Some(Nanos(number * 1_000_000_000)));
        }
        // The plan's cache is warm; a trace's first prompt of each group meets a cold one.
        let warm = (sessions - u64::from(groups)) as f64 / sessions as f64;
        let expected = workload.cache_estimate(sessions) * warm;
        let found = again.cache_estimate(sessions);
        assert!((found - expected).abs() < 1e-9, "{shared:?}: {found} for {expected}");
    }
}
