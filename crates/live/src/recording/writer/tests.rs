use std::path::Path;

use goodput_model::{Api, Exchange, TokenCount, TokenSource};
use goodput_tokens::Tokenizer;
use serde_json::Value;
use tempfile::TempDir;

use super::super::capture::CaptureQueue;
use super::super::trace::TraceLimits;
use super::*;
use crate::observer::SilentObserver;
use crate::proxy::{Answered, Ending, Witness};

/// Everything but a proxy.
struct TestRecording {
    folder: TempDir,
    capture: CaptureQueue,
    notes: Receiver<WriterMessage>,
    writer: RowWriter,
    counts: Arc<RecordCounts>,
}

impl TestRecording {
    fn new(share: f64, limits: TraceLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = FileNames::new(&folder.path().join("trace.jsonl"), false).unwrap();
        let tokenizer = Tokenizer::builtin("approximate").unwrap();
        let options = TraceOptions { tokenizer, block_tokens: 4, save_text: false, share, limits };
        let counts = Arc::new(RecordCounts::default());
        let (capture, notes, room) = CaptureQueue::new(&counts);
        let mut writer =
            RowWriter::new(names, options, &counts, room, Arc::new(SilentObserver)).unwrap();
        writer.begin_first_file(ScaleFactors::default());
        Self { folder, capture, notes, writer, counts }
    }

    fn ask(&self, number: u64, session: &str) {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"one two three four five six seven eight nine ten"}]}"#;
        let (arrived, session) = (now(), Some(session.to_owned()));
        let ask = CapturedRequest { number, arrived, api: Api::Chat, session, body: body.into() };
        assert!(self.capture.push_request(ask));
    }

    /// A prompt of this many equal tokens, and one other behind them.
    fn ask_tokens(&self, number: u64, (equal, other): (usize, u8)) {
        let body = format!(r#"{{"model":"m","prompt":[{}{other}]}}"#, "7,".repeat(equal));
        let (arrived, api) = (now(), Api::Completions);
        let ask = CapturedRequest { number, arrived, api, session: None, body: body.into() };
        assert!(self.capture.push_request(ask));
    }

    fn answer(&self, number: u64) {
        self.count(number, None);
    }

    /// An answer of a server that counts this number of tokens in the prompt.
    fn count(&self, number: u64, input: Option<u32>) {
        let input_tokens = input.map(|n| TokenCount { n, source: TokenSource::Usage });
        let exchange = Exchange { status: Some(200), input_tokens, ..Exchange::default() };
        let (arrived, ending) = (now(), Ending::Whole);
        self.capture.answer_seen(Answered { number, arrived, ending, exchange, bytes: 0 });
    }

    /// What was said so far is heard.
    fn hear(&mut self) {
        while let Ok(note) = self.notes.try_recv() {
            self.writer.handle_message(note);
        }
    }

    /// Ends it; the rows of each file.
    fn end(self) -> (Vec<Vec<Value>>, Arc<RecordCounts>, Written) {
        let Self { folder, capture, notes, writer, counts } = self;
        drop(capture);
        let written = writer.run(&notes, &Orders::default());
        let rows = written.files.iter().map(|path| rows(path)).collect();
        drop(folder);
        (rows, counts, written)
    }
}

/// The rows behind the header.
fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(lines.next().unwrap()["schema"], "goodput.trace/2");
    lines.collect()
}

#[test]
fn every_request_has_a_row_or_is_counted() {
    let desk = TestRecording::new(1.0, TraceLimits::default());
    (0..10).for_each(|number| desk.ask(number, "s"));
    // One was never asked, one is never answered.
    (0..9).chain([77]).for_each(|number| desk.answer(number));
    let (files, counts, written) = desk.end();
    assert_eq!(files[0].len(), 9);
    assert_eq!((counts.rows.get(), counts.lost_count()), (9, 1));
    assert_eq!(counts.lost_by(Lost::Unanswered), 1);
    assert_eq!((written.sessions, written.models["m"]), (1, 9));
}

#[test]
fn a_share_takes_whole_sessions() {
    let desk = TestRecording::new(0.5, TraceLimits::default());
    for number in 0..1200 {
        desk.ask(number, &(number / 3).to_string());
        desk.answer(number);
    }
    let (files, counts, _) = desk.end();
    let mut sessions: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &files[0] {
        *sessions.entry(row["session"].as_str().unwrap()).or_default() += 1;
    }
    assert!(sessions.values().all(|rows| *rows == 3), "{sessions:?}");
    // 400 sessions: five standard deviations on either side.
    assert!((150..=250).contains(&sessions.len()), "{}", sessions.len());
    assert_eq!(counts.rows.get() + counts.left_out.get(), 1200);
    assert_eq!(counts.lost_count(), 0);
}

#[test]
fn a_limit_on_requests_is_exact() {
    let desk =
        TestRecording::new(1.0, TraceLimits { max_requests: Some(4), ..TraceLimits::default() });
    (0..10).for_each(|number| desk.ask(number, "s"));
    // The order of answers does not matter: the first four requests are recorded.
    (0..10).rev().for_each(|number| desk.answer(number));
    let (files, counts, _) = desk.end();
    assert_eq!(files[0].len(), 4);
    assert!(counts.is_over.load(Ordering::Relaxed));
    assert_eq!((counts.left_out.get(), counts.lost_count()), (6, 0));
}

#[test]
fn files_are_complete_and_share_no_names() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    let orders = Orders::default();
    desk.ask(0, "s");
    desk.answer(0);
    desk.ask(1, "s");
    desk.hear();
    orders.rotate.store(true, Ordering::Relaxed);
    desk.writer.tick(&orders);
    desk.ask(2, "s");
    // Asked before the new file began.
    desk.answer(1);
    desk.answer(2);
    let (files, counts, written) = desk.end();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let names: Vec<_> = written.files.iter().map(name).collect();
    assert_eq!(names, ["trace.jsonl", "trace-000001.jsonl"]);
    assert_eq!((files[0].len(), files[1].len(), counts.lost_count()), (2, 1, 0));
    // The same prompt: alike within a file, unlike in another.
    let blocks = |row: &Value| row["blocks"].as_array().unwrap().clone();
    assert!(!blocks(&files[0][0]).is_empty());
    assert_eq!(blocks(&files[0][0]), blocks(&files[0][1]));
    assert!(blocks(&files[1][0]).iter().all(|block| !blocks(&files[0][0]).contains(block)));
    assert_ne!(files[0][0]["session"], files[1][0]["session"]);
}

#[test]
fn a_file_that_is_large_or_old_gives_way() {
    let limits = TraceLimits { rotate_size: Some(300), ..TraceLimits::default() };
    let mut desk = TestRecording::new(1.0, limits);
    for number in 0..6 {
        desk.ask(number, "s");
        desk.answer(number);
        desk.hear();
        desk.writer.tick(&Orders::default());
    }
    let (files, counts, _) = desk.end();
    assert!(files.len() > 2, "{files:?}");
    assert_eq!((files.iter().map(Vec::len).sum::<usize>(), counts.lost_count()), (6, 0));

    let limits = TraceLimits { rotate_every: Some(Nanos(1)), ..TraceLimits::default() };
    let mut desk = TestRecording::new(1.0, limits);
    desk.writer.tick(&Orders::default());
    assert_eq!(desk.end().0.len(), 2);
}

#[test]
fn a_limit_on_bytes_ends_it() {
    let mut desk =
        TestRecording::new(1.0, TraceLimits { max_size: Some(300), ..TraceLimits::default() });
    for number in 0..20 {
        desk.ask(number, "s");
        desk.answer(number);
        desk.hear();
        desk.writer.tick(&Orders::default());
    }
    let (files, counts, _) = desk.end();
    assert!((1..5).contains(&files[0].len()), "{files:?}");
    assert_eq!(counts.rows.get() + counts.left_out.get(), 20);
}

#[test]
fn what_a_question_holds_is_counted_until_its_answer() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    // 130 blocks in a vector for 256 are more than the body was.
    desk.ask_tokens(0, (516, 7));
    for bytes in [1 << 20, 1 << 10, 1] {
        while desk.writer.room.take_bytes(bytes) {}
    }
    desk.hear();
    desk.answer(0);
    let (files, counts, _) = desk.end();
    assert_eq!((files[0].len(), counts.lost_by(Lost::Queue), counts.lost_count()), (0, 1, 1));
}

#[test]
fn without_a_file_everything_is_lost() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    desk.writer.traces.clear();
    desk.ask(0, "s");
    desk.hear();
    assert_eq!(desk.counts.lost_by(Lost::Disk), 1);
    assert_eq!(desk.counts.left_out.get(), 0);
}

#[test]
fn a_new_file_has_blocks_of_the_servers_tokens() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    desk.ask_tokens(0, (599, 7));
    desk.count(0, Some(300));
    desk.hear();
    let orders = Orders::default();
    orders.rotate.store(true, Ordering::Relaxed);
    desk.writer.tick(&orders);
    desk.ask_tokens(1, (599, 7));
    desk.ask_tokens(2, (400, 8));
    desk.count(1, Some(300));
    // This one does not say.
    desk.answer(2);
    let (files, ..) = desk.end();
    let blocks = |row: &Value| row["blocks"].as_array().unwrap().clone();
    let [one, other] = files[1].as_slice() else { panic!("{files:?}") };
    // Four of its tokens are eight of ours.
    assert_eq!((blocks(one).len(), blocks(other).len()), (75, 51));
    assert_eq!((&one["input_tokens"], &other["input_tokens"]), (&300.into(), &201.into()));
    assert_eq!(blocks(one)[..50], blocks(other)[..50]);
    assert_ne!(blocks(one)[50], blocks(other)[50]);
}

#[test]
fn a_body_that_comes_late_is_in_the_file_of_its_first_byte() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    let orders = Orders::default();
    let early = now();
    orders.rotate.store(true, Ordering::Relaxed);
    desk.writer.tick(&orders);
    // As if that had been some time ago.
    desk.writer.traces.get_mut(&0).unwrap().followed = Some(now() - Nanos::from_millis(20_000));
    desk.writer.tick(&orders);
    let body = r#"{"model":"m","prompt":"x"}"#.into();
    let ask =
        CapturedRequest { number: 0, arrived: early, api: Api::Completions, session: None, body };
    assert!(desk.capture.push_request(ask));
    desk.answer(0);
    let (files, ..) = desk.end();
    assert_eq!((files[0].len(), files[1].len()), (1, 0));
}

#[test]
fn files_that_wait_for_nothing_end_before_one_that_waits_for_an_answer() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    let orders = Orders::default();
    desk.ask(0, "s");
    desk.hear();
    for _ in 0..3 * MOST_WAITING {
        orders.rotate.store(true, Ordering::Relaxed);
        desk.writer.tick(&orders);
    }
    assert!(desk.writer.traces.len() <= MOST_WAITING + 1);
    desk.answer(0);
    let (files, counts, _) = desk.end();
    assert_eq!((files[0].len(), counts.lost_count()), (1, 0));
}

#[test]
fn an_order_is_heard_while_the_first_answers_are_waited_for() {
    let mut desk = TestRecording::new(1.0, TraceLimits::default());
    // As it is at the beginning.
    let path = desk.folder.path().join("first.jsonl");
    desk.writer.traces.clear();
    desk.writer.first = Some(NewTrace::create(&path).unwrap());
    let TestRecording { folder, capture, notes, writer, .. } = desk;
    let orders = Arc::new(Orders::default());
    orders.rotate.store(true, Ordering::Relaxed);
    let told = Arc::clone(&orders);
    let writer = std::thread::spawn(move || writer.run(&notes, &told));
    let next = folder.path().join("trace-000001.jsonl");
    let begin = now();
    for number in 0.. {
        let (arrived, api) = (now(), Api::Completions);
        let body = r#"{"model":"m","prompt":[1,2,3]}"#.into();
        capture.push_request(CapturedRequest { number, arrived, api, session: None, body });
        if next.exists() {
            break;
        }
        assert!(now() - begin < Nanos::from_millis(20_000), "the order was not heard");
        goodput_clock::pause(Nanos::from_millis(20));
    }
    orders.end.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}
