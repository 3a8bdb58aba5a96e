//! Entries of files.

use goodput_dataset::Loaded;
use std::collections::BTreeMap;
use std::time::Duration;

use goodput_dataset::{DatasetEntry, DatasetTurn};
use goodput_model::{DatasetPlan, Delay, History, ImageFormat, ImagesPlan, Nanos, SourcePlan};

use super::*;

fn data(plan: DatasetPlan) -> ClassPlan {
    let source = SourcePlan::Dataset(DatasetPlan { file: "s.json".to_owned(), ..plan });
    ClassPlan { name: "sharegpt".to_owned(), source, ..fixed(1, 1) }
}

fn load(class: ClassPlan, entries: Vec<DatasetEntry>, requests: u64) -> Workload {
    let loaded = Loaded { entries, seen: 9, sha256: "ab".repeat(32), ..Loaded::default() };
    let setting = Setting { requests, ..Setting::new(3) };
    Workload::build(&WorkloadPlan::new(class), &setting, vec![Material::Entries(loaded)]).unwrap()
}

fn turn(question: &str, answer: Option<&str>) -> DatasetTurn {
    DatasetTurn {
        messages: vec![Message::text(Role::User, question)],
        reply: answer.map(|text| Message::text(Role::Assistant, text)),
        ..DatasetTurn::default()
    }
}

fn entry(turns: Vec<DatasetTurn>) -> DatasetEntry {
    DatasetEntry { turns, ..DatasetEntry::default() }
}

#[test]
fn an_entry_is_sent_as_it_is() {
    let fields = vec![("temperature".to_owned(), "0.5".to_owned())];
    let mut only = turn("Why is the sky blue?", None);
    only.fields.clone_from(&fields);
    only.input_tokens = Some(6);
    only.output_tokens = Some(33);
    let labeled = DatasetEntry { class: Some("science".to_owned()), ..entry(vec![only]) };
    let workload = load(data(DatasetPlan::default()), vec![labeled], 1);
    let request = first(&workload, 0);
    assert_eq!(whole(&request), "Why is the sky blue?");
    assert_eq!(request.fields.as_ref(), fields);
    assert_eq!(request.planned.class.as_ref(), "science");
    assert_eq!((request.planned.input_tokens, request.planned.output_tokens), (6, Some(33)));
    assert_eq!((request.planned.session, request.planned.cached_tokens), (None, None));
}

#[test]
fn requests_of_entries_are_counted_without_making_them() {
    let talk = |turns: usize| entry(vec![turn("Hello", Some("Hi")); turns]);
    let class = data(DatasetPlan { turns: Some(3), ..DatasetPlan::default() });
    let workload = load(class, vec![talk(1), talk(2), talk(7)], 9);
    for number in 0..9 {
        let made = workload.session(number).map(|session| session.request_count());
        assert_eq!(workload.request_count(number), made, "session {number}");
    }
    let counted: Vec<_> = (0..4).map(|number| workload.request_count(number)).collect();
    let mut sorted = counted[..3].to_vec();
    sorted.sort_unstable();
    assert_eq!((sorted, counted[3]), (vec![Some(1), Some(2), Some(3)], counted[0]));
}

#[test]
fn answer_lengths_come_from_the_plan_then_the_file_then_the_answer() {
    let output = |plan: Option<LengthDistribution>, stated: Option<u32>, answer: Option<&str>| {
        let only = DatasetTurn { output_tokens: stated, ..turn("Hello", answer) };
        let class = data(DatasetPlan { output: plan, ..DatasetPlan::default() });
        first(&load(class, vec![entry(vec![only])], 1), 0).planned.output_tokens
    };
    let answer = Some("sixteen letters.");
    assert_eq!(output(Some(LengthDistribution::Fixed(7)), Some(5), answer), Some(7));
    assert_eq!(output(None, Some(5), answer), Some(5));
    assert_eq!(output(None, None, answer), Some(4));
    assert_eq!(output(None, None, None), None);
}

#[test]
fn conversations_keep_their_turns_pauses_and_answers() {
    let mut second =
        DatasetTurn { input_tokens: Some(70), ..turn("And then?", Some("Then nothing.")) };
    second.after = Some(Nanos::from_millis(250));
    let opening = DatasetTurn {
        input_tokens: Some(20),
        output_tokens: Some(30),
        ..turn("Begin.", Some("Once."))
    };
    let turns = vec![opening, second, turn("Good.", None), turn("Bye.", None)];
    let plan = DatasetPlan {
        turns: Some(3),
        think: Some(Delay::Fixed(Duration::from_secs(2))),
        history: History::Dataset,
        ..DatasetPlan::default()
    };
    let session = load(data(plan), vec![entry(turns)], 1).session(0).unwrap();
    assert_eq!(session.history, History::Dataset);
    let pauses: Vec<u64> = session.steps.iter().map(|s| s.after.0 / 1_000_000).collect();
    assert_eq!(pauses, [0, 250, 2_000], "the file's pause goes before the plan's");
    assert_eq!(session.steps[0].reply, Some(Message::text(Role::Assistant, "Once.")));
    // 20 and 30 said before 70; 70 and a guess of 4 for thirteen letters; then 2 for five.
    let expected = [(20, Some(30), Some(0)), (70, Some(4), Some(48)), (76, None, Some(64))];
    assert_eq!(plans(&session), expected);
}

#[test]
fn entries_beyond_the_file_begin_again_with_fresh_nonces_and_a_note() {
    let entries: Vec<DatasetEntry> =
        ["one", "two"].iter().map(|text| entry(vec![turn(text, None)])).collect();
    let workload = load(data(DatasetPlan::default()), entries, 5);
    let texts: Vec<String> = (0..6).map(|n| whole(&first(&workload, n))).collect();
    assert_eq!(texts[..2], ["one", "two"]);
    for (index, text) in texts.iter().enumerate().skip(2) {
        let original = ["one", "two"][index % 2];
        let nonce = text.strip_suffix(original).unwrap();
        assert!(nonce.ends_with(". "), "{text}");
        assert_eq!(count(nonce), 10);
        // The opener is drawn and proves nothing.
        let (_, digits) = nonce.split_once(' ').unwrap();
        assert_eq!(texts.iter().filter(|other| other.contains(digits)).count(), 1);
        assert_eq!(first(&workload, index as u64).planned.input_tokens, 1 + 10);
    }
    assert_eq!(
        workload.repeat_notes(5),
        ["sharegpt: 2 entries for 5 requests: repeated 2.5 times with fresh nonces"]
    );
}

#[test]
fn nonces_go_into_raw_messages_too() {
    let raw = |json: &str| DatasetTurn {
        messages: vec![
            Message::Raw(r#"{"role":"system","content":"Be brief."}"#.into()),
            Message::Raw(json.into()),
        ],
        ..DatasetTurn::default()
    };
    let entries = vec![
        entry(vec![raw(r#"{"role":"user","content":"hello"}"#)]),
        entry(vec![raw(r#"{"role":"user","content":[{"type":"text","text":"hello"}]}"#)]),
        entry(vec![raw(r#"{"role":"user","content":17}"#)]),
    ];
    let workload = load(data(DatasetPlan::default()), entries, 6);
    let message = |number, index: usize| -> serde_json::Value {
        serde_json::from_str(&text_of(&first(&workload, number).messages[index])).unwrap()
    };
    assert_eq!(message(3, 0)["content"], "Be brief.");
    assert!(message(3, 1)["content"].as_str().unwrap().ends_with(". hello"));
    assert_eq!(message(4, 1)["content"][1]["text"], "hello");
    assert!(message(4, 1)["content"][0]["text"].as_str().unwrap().ends_with(". "));
    // An unknown form stays as it is, behind a message with the nonce.
    let request = first(&workload, 5);
    assert_eq!(request.messages.len(), 3);
    assert_eq!(role(&request.messages[0]), Some(Role::User));
}

#[test]
fn what_was_left_out_is_noted_by_reason() {
    let entries = vec![entry(vec![turn("one", None)])];
    let skipped = BTreeMap::from([("too long".to_owned(), 1_200), ("no prompt".to_owned(), 3)]);
    let loaded = Loaded { entries, seen: 1_204, skipped, ..Loaded::default() };
    let plan = WorkloadPlan::new(data(DatasetPlan::default()));
    let setting = Setting { requests: 1, ..Setting::new(3) };
    let workload = Workload::build(&plan, &setting, vec![Material::Entries(loaded)]).unwrap();
    let expected = "sharegpt: 1,203 of 1,204 entries left out: no prompt (3), too long (1200)";
    assert_eq!(workload.notes(), [expected]);
}

#[test]
fn a_system_prompt_stands_before_a_files_messages() {
    let mut class = data(DatasetPlan::default());
    class.prefix = Some(PrefixPlan { system_tokens: 40, shared: None });
    let request = first(&load(class, vec![entry(vec![turn("Hello", None)])], 1), 0);
    assert_eq!(role(&request.messages[0]), Some(Role::System));
    assert_eq!(request.planned.input_tokens, 42);
    assert_eq!(request.planned.cached_tokens, Some(32));
}

#[test]
fn images_stand_behind_the_text_and_walk_through_the_pool() {
    let images = |folder: Option<&str>| ImagesPlan {
        count: 2,
        folder: folder.map(str::to_owned),
        width: 8,
        height: 8,
        format: ImageFormat::Png,
        pool: 3,
    };
    let workload = build(ClassPlan { images: Some(images(None)), ..fixed(30, 4) });
    let urls = |number| -> Vec<Arc<str>> {
        let Message::Plain { parts, .. } = first(&workload, number).messages.remove(0) else {
            panic!()
        };
        assert!(matches!(parts[0], MessagePart::Text(_)));
        let url = |part| if let MessagePart::Image(url) = part { Some(url) } else { None };
        parts.into_iter().filter_map(url).collect()
    };
    assert_eq!(first(&workload, 0).planned.images, 2);
    let (a, b) = (urls(0), urls(1));
    assert_eq!((a.len(), b.len()), (2, 2));
    // Images 0 and 1, then 2 and 0 again: the same allocation.
    assert!(Arc::ptr_eq(&a[0], &b[1]));
    assert!(!Arc::ptr_eq(&a[1], &b[0]));
}

#[test]
fn frozen_sessions_come_back_as_they_were_and_end() {
    let origin = build(find_preset("agent").unwrap());
    let sessions: Vec<(Option<Nanos>, Session)> =
        (0..3).map(|n| (Some(Nanos::from_millis(n * 100)), origin.session(n).unwrap())).collect();
    let source = SourcePlan::Frozen { file: "w.jsonl".to_owned(), sha256: None };
    let plan = WorkloadPlan::new(ClassPlan { source, ..fixed(1, 1) });
    let setting = Setting { time_scale: 0.5, ..Setting::new(8) };
    let workload =
        Workload::build(&plan, &setting, vec![Material::Frozen(sessions.clone())]).unwrap();
    assert_eq!(workload.session_count(), Some(3));
    for number in 0..3 {
        let mut expected = origin.session(number).unwrap();
        for step in &mut expected.steps {
            step.after = Nanos::from_secs_f64(step.after.as_secs() * 0.5);
        }
        assert_eq!(workload.session(number), Some(expected));
        assert_eq!(workload.arrival(number), Some(Nanos::from_millis(number * 50)));
    }
    assert_eq!((workload.session(3), workload.arrival(3)), (None, None));
}

#[test]
fn lengths_that_the_file_lacks_can_be_counted() {
    let raw = Message::Raw(r#"{"role":"user","content":[{"type":"text","text":"a b c"}]}"#.into());
    let second = DatasetTurn { messages: vec![raw], ..turn("", Some("x y")) };
    let entries = vec![entry(vec![turn("one two three", Some("four five")), second])];
    let class = data(DatasetPlan::default());
    let mut material = Material::Entries(Loaded { entries, ..Loaded::default() });
    material.count_lengths(&class, &|text| text.split(' ').count() as u32);
    let setting = Setting::new(1);
    let workload = Workload::build(&WorkloadPlan::new(class), &setting, vec![material]).unwrap();
    // Three words and two in answer; five said before three more.
    let expected = [(3, Some(2), Some(0)), (8, Some(2), Some(0))];
    assert_eq!(plans(&workload.session(0).unwrap()), expected);
}
