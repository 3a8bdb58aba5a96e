use std::path::Path;

use goodput_live::{Answered, Ending, Witness};
use goodput_model::{Api, Exchange, TokenCount, TokenSource};
use goodput_tokens::Tokenizer;
use serde_json::Value;
use tempfile::TempDir;

use super::super::clerk::Clerk;
use super::*;

/// Everything but a proxy.
struct Office {
    folder: TempDir,
    clerk: Clerk,
    notes: Receiver<Note>,
    scribe: Scribe,
    counts: Arc<Counts>,
}

impl Office {
    fn new(share: f64, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = Names::new(&folder.path().join("trace.jsonl"), false).unwrap();
        let tokenizer = Tokenizer::builtin("approximate").unwrap();
        let manner = Manner { tokenizer, block_tokens: 4, save_text: false, share };
        let counts = Arc::new(Counts::default());
        let (clerk, notes, room) = Clerk::new(&counts);
        let mut scribe = Scribe::new(names, (manner, limits), &counts, room).unwrap();
        scribe.begin(Scale::default());
        Self { folder, clerk, notes, scribe, counts }
    }

    fn ask(&self, number: u64, session: &str) {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"one two three four five six seven eight nine ten"}]}"#;
        let (arrived, session) = (now(), Some(session.to_owned()));
        let ask = Ask { number, arrived, api: Api::Chat, session, body: body.into() };
        assert!(self.clerk.take(ask));
    }

    /// A prompt of so many equal tokens, and one other behind them.
    fn ask_tokens(&self, number: u64, (equal, other): (usize, u8)) {
        let body = format!(r#"{{"model":"m","prompt":[{}{other}]}}"#, "7,".repeat(equal));
        let (arrived, api) = (now(), Api::Completions);
        let ask = Ask { number, arrived, api, session: None, body: body.into() };
        assert!(self.clerk.take(ask));
    }

    fn answer(&self, number: u64) {
        self.count(number, None);
    }

    /// An answer of a server that counts so many tokens in the prompt.
    fn count(&self, number: u64, input: Option<u32>) {
        let input_tokens = input.map(|n| TokenCount { n, source: TokenSource::Usage });
        let exchange = Exchange { status: Some(200), input_tokens, ..Exchange::default() };
        let (arrived, ending) = (now(), Ending::Whole);
        self.clerk.answered(Answered { number, arrived, ending, exchange, bytes: 0 });
    }

    /// What was said so far is heard.
    fn hear(&mut self) {
        while let Ok(note) = self.notes.try_recv() {
            self.scribe.hear(note);
        }
    }

    /// Ends it; the rows of each file.
    fn end(self) -> (Vec<Vec<Value>>, Arc<Counts>, Written) {
        let Self { folder, clerk, notes, scribe, counts } = self;
        drop(clerk);
        let written = scribe.work(&notes, &Orders::default());
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
    let office = Office::new(1.0, Limits::default());
    (0..10).for_each(|number| office.ask(number, "s"));
    // One was never asked, one is never answered.
    (0..9).chain([77]).for_each(|number| office.answer(number));
    let (files, counts, written) = office.end();
    assert_eq!(files[0].len(), 9);
    assert_eq!((get(&counts.rows), counts.lost()), (9, 1));
    assert_eq!(counts.lost_by(Lost::Unanswered), 1);
    assert_eq!((written.sessions, written.models["m"]), (1, 9));
}

#[test]
fn a_share_takes_whole_sessions() {
    let office = Office::new(0.5, Limits::default());
    for number in 0..1200 {
        office.ask(number, &(number / 3).to_string());
        office.answer(number);
    }
    let (files, counts, _) = office.end();
    let mut sessions: BTreeMap<&str, u64> = BTreeMap::new();
    for row in &files[0] {
        *sessions.entry(row["session"].as_str().unwrap()).or_default() += 1;
    }
    assert!(sessions.values().all(|rows| *rows == 3), "{sessions:?}");
    // 400 sessions: five standard deviations on either side.
    assert!((150..=250).contains(&sessions.len()), "{}", sessions.len());
    assert_eq!(get(&counts.rows) + get(&counts.left_out), 1200);
    assert_eq!(counts.lost(), 0);
}

#[test]
fn a_limit_on_requests_is_exact() {
    let office = Office::new(1.0, Limits { max_requests: Some(4), ..Limits::default() });
    (0..10).for_each(|number| office.ask(number, "s"));
    // Whoever is answered first: the first four that asked are recorded.
    (0..10).rev().for_each(|number| office.answer(number));
    let (files, counts, _) = office.end();
    assert_eq!(files[0].len(), 4);
    assert!(counts.is_over.load(Ordering::Relaxed));
    assert_eq!((get(&counts.left_out), counts.lost()), (6, 0));
}

#[test]
fn files_are_complete_and_share_no_names() {
    let mut office = Office::new(1.0, Limits::default());
    let orders = Orders::default();
    office.ask(0, "s");
    office.answer(0);
    office.ask(1, "s");
    office.hear();
    orders.rotate.store(true, Ordering::Relaxed);
    office.scribe.look(&orders);
    office.ask(2, "s");
    // Asked before the new file began.
    office.answer(1);
    office.answer(2);
    let (files, counts, written) = office.end();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let names: Vec<_> = written.files.iter().map(name).collect();
    assert_eq!(names, ["trace.jsonl", "trace-000001.jsonl"]);
    assert_eq!((files[0].len(), files[1].len(), counts.lost()), (2, 1, 0));
    // The same prompt: alike within a file, unlike in another.
    let blocks = |row: &Value| row["blocks"].as_array().unwrap().clone();
    assert!(!blocks(&files[0][0]).is_empty());
    assert_eq!(blocks(&files[0][0]), blocks(&files[0][1]));
    assert!(blocks(&files[1][0]).iter().all(|block| !blocks(&files[0][0]).contains(block)));
    assert_ne!(files[0][0]["session"], files[1][0]["session"]);
}

#[test]
fn a_file_that_is_large_or_old_gives_way() {
    let limits = Limits { rotate_size: Some(300), ..Limits::default() };
    let mut office = Office::new(1.0, limits);
    for number in 0..6 {
        office.ask(number, "s");
        office.answer(number);
        office.hear();
        office.scribe.look(&Orders::default());
    }
    let (files, counts, _) = office.end();
    assert!(files.len() > 2, "{files:?}");
    assert_eq!((files.iter().map(Vec::len).sum::<usize>(), counts.lost()), (6, 0));

    let limits = Limits { rotate_every: Some(Nanos(1)), ..Limits::default() };
    let mut office = Office::new(1.0, limits);
    office.scribe.look(&Orders::default());
    assert_eq!(office.end().0.len(), 2);
}

#[test]
fn a_limit_on_bytes_ends_it() {
    let mut office = Office::new(1.0, Limits { max_size: Some(300), ..Limits::default() });
    for number in 0..20 {
        office.ask(number, "s");
        office.answer(number);
        office.hear();
        office.scribe.look(&Orders::default());
    }
    let (files, counts, _) = office.end();
    assert!((1..5).contains(&files[0].len()), "{files:?}");
    assert_eq!(get(&counts.rows) + get(&counts.left_out), 20);
}

#[test]
fn what_a_question_holds_is_counted_until_its_answer() {
    let mut office = Office::new(1.0, Limits::default());
    // 130 blocks in a vector for 256 are more than the body was.
    office.ask_tokens(0, (516, 7));
    for bytes in [1 << 20, 1 << 10, 1] {
        while office.scribe.room.take_bytes(bytes) {}
    }
    office.hear();
    office.answer(0);
    let (files, counts, _) = office.end();
    assert_eq!((files[0].len(), counts.lost_by(Lost::Queue), counts.lost()), (0, 1, 1));
}

#[test]
fn without_a_file_everything_is_lost() {
    let mut office = Office::new(1.0, Limits::default());
    office.scribe.traces.clear();
    office.ask(0, "s");
    office.hear();
    assert_eq!(office.counts.lost_by(Lost::Disk), 1);
    assert_eq!(get(&office.counts.left_out), 0);
}

#[test]
fn a_new_file_has_blocks_of_the_servers_tokens() {
    let mut office = Office::new(1.0, Limits::default());
    office.ask_tokens(0, (599, 7));
    office.count(0, Some(300));
    office.hear();
    let orders = Orders::default();
    orders.rotate.store(true, Ordering::Relaxed);
    office.scribe.look(&orders);
    office.ask_tokens(1, (599, 7));
    office.ask_tokens(2, (400, 8));
    office.count(1, Some(300));
    // This one does not say.
    office.answer(2);
    let (files, ..) = office.end();
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
    let mut office = Office::new(1.0, Limits::default());
    let orders = Orders::default();
    let early = now();
    orders.rotate.store(true, Ordering::Relaxed);
    office.scribe.look(&orders);
    // As if that had been some time ago.
    office.scribe.traces.get_mut(&0).unwrap().followed = Some(now() - Nanos::from_millis(20_000));
    office.scribe.look(&orders);
    let body = r#"{"model":"m","prompt":"x"}"#.into();
    let ask = Ask { number: 0, arrived: early, api: Api::Completions, session: None, body };
    assert!(office.clerk.take(ask));
    office.answer(0);
    let (files, ..) = office.end();
    assert_eq!((files[0].len(), files[1].len()), (1, 0));
}

#[test]
fn files_that_wait_for_nothing_end_before_one_that_waits_for_an_answer() {
    let mut office = Office::new(1.0, Limits::default());
    let orders = Orders::default();
    office.ask(0, "s");
    office.hear();
    for _ in 0..3 * MOST_WAITING {
        orders.rotate.store(true, Ordering::Relaxed);
        office.scribe.look(&orders);
    }
    assert!(office.scribe.traces.len() <= MOST_WAITING + 1);
    office.answer(0);
    let (files, counts, _) = office.end();
    assert_eq!((files[0].len(), counts.lost()), (1, 0));
}

#[test]
fn an_order_is_heard_while_the_first_answers_are_waited_for() {
    let mut office = Office::new(1.0, Limits::default());
    // As it is at the beginning.
    let path = office.folder.path().join("first.jsonl");
    office.scribe.traces.clear();
    office.scribe.first = Some(Blank::create(&path).unwrap());
    let Office { folder, clerk, notes, scribe, .. } = office;
    let orders = Arc::new(Orders::default());
    orders.rotate.store(true, Ordering::Relaxed);
    let told = Arc::clone(&orders);
    let scribe = std::thread::spawn(move || scribe.work(&notes, &told));
    let next = folder.path().join("trace-000001.jsonl");
    let begin = now();
    for number in 0.. {
        let (arrived, api) = (now(), Api::Completions);
        let body = r#"{"model":"m","prompt":[1,2,3]}"#.into();
        clerk.take(Ask { number, arrived, api, session: None, body });
        if next.exists() {
            break;
        }
        assert!(now() - begin < Nanos::from_millis(20_000), "the order was not heard");
        goodput_clock::pause(Nanos::from_millis(20));
    }
    orders.end.store(true, Ordering::Relaxed);
    scribe.join().unwrap();
}
