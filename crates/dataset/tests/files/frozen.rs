//! Frozen workloads: written, read, and found out when changed.

use std::sync::Arc;

use crate::common::{file, message};
use goodput_dataset::frozen::{FrozenHeader, FrozenWriter, Sessions, read_frozen};
use goodput_model::{
    Constraint, ConstraintKind, History, Message, MessagePart, Nanos, Planned, Request, Role,
    Session, SessionStep,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![any::<String>(), "[a-z ]{0,40}"].prop_map(Arc::from)
}

fn message_of() -> impl Strategy<Value = Message> {
    let role =
        prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    let part = prop_oneof![text().prop_map(MessagePart::Text), text().prop_map(MessagePart::Image)];
    prop_oneof![
        (role, vec(part, 0..3)).prop_map(|(role, parts)| Message::Plain { role, parts }),
        text().prop_map(Message::Raw),
    ]
}

fn constraint() -> impl Strategy<Value = Constraint> {
    prop_oneof![
        any::<String>().prop_map(Constraint::Json),
        any::<String>().prop_map(Constraint::Regex),
        vec(any::<String>(), 0..3).prop_map(Constraint::Choice),
        any::<String>().prop_map(Constraint::Grammar),
    ]
}

fn planned() -> impl Strategy<Value = Planned> {
    let kind = (0usize..4).prop_map(|n| ConstraintKind::ALL[n]);
    let numbers = (any::<u32>(), option::of(any::<u32>()), option::of(any::<u64>()), any::<u32>());
    let rest = (option::of(kind), any::<u32>(), option::of(any::<u32>()), option::of(any::<u64>()));
    (text(), numbers, rest).prop_map(|(class, numbers, rest)| Planned {
        class,
        input_tokens: numbers.0,
        output_tokens: numbers.1,
        session: numbers.2,
        turn: numbers.3,
        constraint: rest.0,
        images: rest.1,
        cached_tokens: rest.2,
        trace_at: rest.3.map(Nanos),
    })
}

fn request() -> impl Strategy<Value = Request> {
    let fields = vec((any::<String>(), any::<String>()), 0..3).prop_map(Arc::from);
    (vec(message_of(), 0..3), fields, option::of(text()), option::of(constraint()), planned())
        .prop_map(|(messages, fields, model, constraint, planned)| Request {
            messages,
            fields,
            model,
            constraint: constraint.map(Arc::new),
            planned,
        })
}

fn session() -> impl Strategy<Value = Session> {
    let step = (any::<u64>(), vec(request(), 1..3), option::of(message_of()))
        .prop_map(|(after, requests, reply)| SessionStep { after: Nanos(after), requests, reply });
    let history = prop_oneof![Just(History::Server), Just(History::Dataset)];
    (vec(step, 1..3), history).prop_map(|(steps, history)| Session { steps, history })
}

fn sessions() -> impl Strategy<Value = Sessions> {
    vec((option::of(any::<u64>().prop_map(Nanos)), session()), 0..4)
}

fn write(sessions: &Sessions) -> (tempfile::TempDir, FrozenHeader) {
    let folder = tempfile::tempdir().unwrap();
    let mut header = FrozenHeader::new("a \"name\"", 7);
    header.facts.insert("tokenizer".to_owned(), "x".to_owned());
    let mut writer = FrozenWriter::create(&folder.path().join("w.jsonl"), header).unwrap();
    for (at, session) in sessions {
        writer.write(*at, session).unwrap();
    }
    let header = writer.finish().unwrap();
    (folder, header)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_what_is_read(sessions in sessions()) {
        let (folder, header) = write(&sessions);
        let (found_header, found) = read_frozen(&folder.path().join("w.jsonl")).unwrap();
        prop_assert_eq!(&found_header, &header);
        prop_assert_eq!(header.sessions, sessions.len() as u64);
        let requests: u64 = sessions.iter().map(|(_, session)| session.request_count()).sum();
        prop_assert_eq!(header.requests, requests);
        prop_assert_eq!(found, sessions);
    }
}

fn one() -> Sessions {
    let request = Request::prompt("hello there", Planned::new("chat", 2, Some(3)));
    vec![(Some(Nanos(5)), Session::single(request))]
}

fn frozen() -> (tempfile::TempDir, std::path::PathBuf, String) {
    let (folder, _) = write(&one());
    let path = folder.path().join("w.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    (folder, path, text)
}

#[test]
fn the_form_on_disk_is_pinned() {
    let (_folder, _, text) = frozen();
    let line = "{\"at\":5,\"history\":\"server\",\"steps\":[{\"after\":0,\"requests\":[{\"messages\":[{\"user\":\
                [{\"text\":\"hello there\"}]}],\"planned\":{\"class\":\"chat\",\"input_tokens\":2,\
                \"output_tokens\":3}}]}]}";
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("{\"schema\":\"goodput.workload/1\",\"name\":\"a \\\"name\\\"\",\"seed\":7,\"sessions\":1,\"requests\":1,\"sha256\":\""), "{header}");
    assert_eq!(lines.next(), Some(line));
    assert_eq!(lines.next(), None);
}

#[test]
fn a_changed_file_is_found_out() {
    let (_folder, path, text) = frozen();
    let failure = |text: String| {
        std::fs::write(&path, text).unwrap();
        message(&read_frozen(&path).unwrap_err())
    };
    let changed = failure(text.replace("hello", "hallo"));
    assert!(
        changed.starts_with("w.jsonl: was changed after it was written: its lines hash to "),
        "{changed}"
    );
    let header = text.lines().next().unwrap().to_owned();
    assert!(failure(format!("{header}\n")).contains("was changed after it was written"));
    assert_eq!(
        failure(text.replace("\"sessions\":1", "\"sessions\":2")),
        "w.jsonl, line 1: holds 1 sessions of 1 requests, but its header says 2 of 1"
    );
    let unknown = failure(text.replace("\"planned\":{", "\"planned\":{\"shade\":1,"));
    assert!(unknown.starts_with("w.jsonl, line 2: no session: unknown field `shade`"), "{unknown}");
    assert_eq!(
        failure(text.replace("workload/1", "workload/2")),
        "w.jsonl, line 1: field `schema` is `goodput.workload/2`, expected goodput.workload/1"
    );
    let cut = failure(text[..text.len() - 20].to_owned());
    assert!(cut.starts_with("w.jsonl, line 2: JSON ends too early in `{\"at\":5"), "{cut}");
}

#[test]
fn other_files_are_no_frozen_workloads() {
    for text in ["{\"prompt\":\"a\"}\n", "hello\n"] {
        let scratch = file("w.jsonl", text);
        assert_eq!(
            message(&read_frozen(&scratch.path).unwrap_err()),
            "w.jsonl, line 1: no field `schema`, expected `goodput.workload/1`"
        );
    }
    assert_eq!(message(&read_frozen(&file("w.jsonl", "").path).unwrap_err()), "w.jsonl: is empty");
}

#[test]
fn a_file_has_its_name_only_once_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.jsonl");
    let mut writer = FrozenWriter::create(&path, FrozenHeader::new("x", 1)).unwrap();
    writer.write(None, &one()[0].1).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn texts_that_are_shared_are_held_once() {
    let request = |text: &str| Request {
        messages: vec![Message::text(Role::System, "the same"), Message::text(Role::User, text)],
        ..Request::prompt("", Planned::new("chat", 2, None))
    };
    let sessions: Sessions = ["a", "b"].map(|text| (None, Session::single(request(text)))).to_vec();
    let (folder, _) = write(&sessions);
    let (_, found) = read_frozen(&folder.path().join("w.jsonl")).unwrap();
    let shared = |n: usize| match &found[n].1.steps[0].requests[0].messages[0] {
        Message::Plain { parts, .. } => match &parts[0] {
            MessagePart::Text(text) => Arc::clone(text),
            MessagePart::Image(_) => panic!("an image"),
        },
        Message::Raw(_) => panic!("raw"),
    };
    assert!(Arc::ptr_eq(&shared(0), &shared(1)));
}
