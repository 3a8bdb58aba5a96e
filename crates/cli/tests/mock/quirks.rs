//! Peculiar but legal streams of the simulated engine: nothing fails, every token is counted, and
//! the text is that of the plain stream. And slow ones: the delay shows where it was put.

use std::collections::BTreeMap;

use crate::support::mock::{MockProcess, records};
use crate::support::{Session, about_time, at, number, percentile, timed};
use goodput_clock::now;
use goodput_model::{Nanos, RequestRecord, TokenSource};
use serde_json::{Value, json};

/// Requests one after the other, so that the engine numbers them as the run does and two runs get
/// the same texts.
const IN_TURN: [&str; 10] = [
    "--concurrency",
    "1",
    "--num-requests",
    "8",
    "--max-tokens",
    "12",
    "--no-probe",
    "--canary",
    "off",
    "--save-text",
];

struct MockRun {
    session: Session,
    summary: Value,
    mock: MockProcess,
}

impl MockRun {
    fn new(mock_args: &[&str], run_args: &[&str]) -> Self {
        let session = Session::new();
        let mock = MockProcess::start(&session, mock_args);
        let (outcome, summary) = session.measure(&mock.url(), run_args);
        outcome.assert_finished(&format!("{mock_args:?} {run_args:?}"));
        Self { session, summary, mock }
    }

    /// Without delays, with this fault.
    fn fast(fault: &str, more: &[&str]) -> Self {
        Self::new(&["--profile", "fast", "--fault", fault], &[&IN_TURN[..], more].concat())
    }

    fn texts(&self) -> BTreeMap<u64, String> {
        let lines = std::fs::read_to_string(self.session.path("out/text.jsonl")).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let text = |line: &Value| line["answer"].as_str().unwrap().to_owned();
        lines.map(|line| (line["index"].as_u64().unwrap(), text(&line))).collect()
    }

    fn records(&self) -> Vec<RequestRecord> {
        records(&self.session.path("out/requests.log"))
    }

    fn assert_all_good(&self, context: &str) {
        assert_eq!(at(&self.summary, "requests.errors"), &json!({}), "{context}");
        assert_eq!(number(&self.summary, "requests.ok"), 8.0, "{context}");
    }

    /// Parts of TTFT of the median request, by name.
    fn part(&self, name: &str) -> f64 {
        let parts = at(&self.summary, "waterfall.median.parts").as_array().unwrap();
        parts.iter().find(|part| part["name"] == name).unwrap()["ms"].as_f64().unwrap()
    }
}

fn plain_texts(more: &[&str]) -> BTreeMap<u64, String> {
    MockRun::new(&["--profile", "fast"], &[&IN_TURN[..], more].concat()).texts()
}

#[test]
fn legal_variants_change_nothing_but_the_wire() {
    let plain = plain_texts(&[]);
    assert_eq!(plain.len(), 8);
    assert!(plain.values().all(|text| text.split(' ').count() == 13), "{plain:?}");
    let quirks = [
        "crlf",
        "pings",
        "no-space",
        "no-done",
        "role=empty",
        "role=null",
        "role=bare",
        "role=absent",
        "role=with-first",
        "joined=3",
        "joined=100",
        "split",
        "split=50",
        "drip=100/1ms",
        "500:1/100",
    ];
    for quirk in quirks {
        let ran = MockRun::fast(quirk, &[]);
        ran.assert_all_good(quirk);
        assert_eq!(ran.texts(), plain, "{quirk}");
        assert_eq!(number(&ran.summary, "tokens.output"), 96.0, "{quirk}");
        assert_eq!(at(&ran.summary, "tokens.output_source"), "usage", "{quirk}");
        // Every token has an event of its own, and each event is seen as one.
        assert_eq!(number(&ran.summary, "tokens.chunks"), 96.0, "{quirk}");
        assert_eq!(at(&ran.summary, "requests.finish_reasons"), &json!({"length": 8}), "{quirk}");
        let kind = quirk.split(['=', ':']).next().unwrap();
        let often = if quirk.contains(':') { 0.0 } else { 8.0 };
        assert_eq!(ran.mock.injected(kind), often, "{quirk}");
    }
}

#[test]
fn characters_cut_in_two_are_whole_again() {
    let ran = MockRun::fast("split-utf8", &[]);
    ran.assert_all_good("split-utf8");
    let texts = ran.texts();
    assert!(texts.values().all(|text| !text.is_ascii() && !text.contains('\u{fffd}')));
    // The same engine, asked for the same in one piece.
    assert_eq!(texts, MockRun::fast("split-utf8", &["--no-stream"]).texts());
    assert_eq!(number(&ran.summary, "tokens.chunks"), 96.0);
}

#[test]
fn a_huge_event_is_read_whole() {
    let plain = plain_texts(&[]);
    let ran = MockRun::fast("huge-event=200KiB:1/4", &[]);
    ran.assert_all_good("huge-event");
    assert_eq!(number(&ran.summary, "tokens.output"), 96.0);
    for (index, text) in ran.texts() {
        let (plain, is_huge) = (&plain[&index], index % 4 == 3);
        let padding = text.len() - plain.len();
        assert_eq!(padding > 194_800, is_huge, "{padding}");
        assert!(padding < 204_800 && (is_huge || padding == 0), "{padding}");
        // The padding follows the first word.
        let first = 1 + plain[1..].find(' ').unwrap();
        assert_eq!(text.replace(&"x".repeat(padding.max(1)), ""), *plain);
        assert!(!is_huge || text[first..].starts_with("xxx"), "{}", &text[..40]);
    }
    // Eight megabytes of text cannot be an answer of 12 tokens.
    let ran = MockRun::fast("huge-event:1/4", &[]);
    assert_eq!(at(&ran.summary, "requests.errors"), &json!({"answer_too_large": 2}));
}

/// A client cannot tell a server that repeats itself from a model that does: it takes each event
/// for new text. Tokens are right by usage; the text is too long, and it shows in nothing else.
#[test]
fn cumulative_text_is_taken_as_it_comes() {
    let plain = plain_texts(&[]);
    let ran = MockRun::fast("cumulative", &[]);
    ran.assert_all_good("cumulative");
    assert_eq!(number(&ran.summary, "tokens.output"), 96.0);
    for (index, text) in ran.texts() {
        // Every beginning of the answer, one after the other; the last event repeats all of it.
        let words: Vec<_> = plain[&index].split(' ').skip(1).collect();
        let beginnings = (1..=12).map(|count| format!(" {}", words[..count].join(" ")));
        assert_eq!(text, beginnings.collect::<String>() + &plain[&index]);
    }
    assert_eq!(number(&ran.summary, "tokens.chunks"), 8.0 * 13.0);
}

#[test]
fn wrong_and_missing_usage() {
    let plain = plain_texts(&[]);
    let wrong = MockRun::fast("wrong-usage:1/2", &[]);
    wrong.assert_all_good("wrong-usage");
    // Doubled, plus seven, in every second answer: the server's word is taken.
    assert_eq!(number(&wrong.summary, "tokens.output"), 4.0 * 12.0 + 4.0 * 31.0);
    assert_eq!(wrong.texts(), plain);
    let none = MockRun::fast("no-usage:1/2", &[]);
    none.assert_all_good("no-usage");
    assert_eq!(number(&none.summary, "tokens.output"), 96.0);
    assert_eq!(at(&none.summary, "tokens.output_source"), "mixed");
    let counted = |source| {
        let from = |record: &RequestRecord| record.exchange.output_tokens.unwrap().source;
        none.records().iter().filter(|record| from(record) == source).count()
    };
    assert_eq!((counted(TokenSource::Usage), counted(TokenSource::Events)), (4, 4));
    assert_eq!(none.texts(), plain);
    // In one piece there are not even events to count.
    let whole = MockRun::fast("no-usage:1/2", &["--no-stream"]);
    assert_eq!(number(&whole.summary, "tokens.output"), 4.0 * 12.0);
    assert_eq!(number(&whole.summary, "tokens.uncounted"), 4.0);
}

#[test]
fn answers_that_end_early() {
    let plain = plain_texts(&["--ignore-eos"]);
    let halves = |ran: &MockRun, context: &str| {
        ran.assert_all_good(context);
        assert_eq!(number(&ran.summary, "tokens.output"), 4.0 * 12.0 + 4.0 * 6.0, "{context}");
        let reasons = json!({"length": 4, "stop": 4});
        assert_eq!(at(&ran.summary, "requests.finish_reasons"), &reasons, "{context}");
        for (index, text) in ran.texts() {
            let words = if index % 2 == 1 { 6 } else { 12 };
            assert_eq!(text.split(' ').count(), 1 + words, "{context}");
            assert!(plain[&index].starts_with(&text), "{context}");
        }
    };
    let limit = ["--output-length", "limit"];
    halves(&MockRun::fast("early-eos:1/2", &limit), "early-eos");
    halves(&MockRun::fast("early-eos:1/2", &["--ignore-eos"]), "early-eos with ignore_eos");
    halves(&MockRun::fast("ignores-ignore-eos:1/2", &["--ignore-eos"]), "ignores-ignore-eos");
    let unasked = MockRun::fast("ignores-ignore-eos", &limit);
    assert_eq!(number(&unasked.summary, "tokens.output"), 96.0);
}

#[test]
fn a_stall_is_the_largest_gap() {
    timed(|| {
        let args = ["--ttft", "5ms", "--itl", "5ms", "--fault", "stall=400ms:1/4"];
        let ran = MockRun::new(&args, &[&IN_TURN[..], &["--percentiles", "50,99"]].concat());
        ran.assert_all_good("stall");
        assert_eq!(number(&ran.summary, "tokens.output"), 96.0);
        for record in ran.records() {
            let chunks = &record.exchange.chunks;
            let gaps: Vec<_> =
                chunks.windows(2).map(|pair| (pair[1].at - pair[0].at).as_ms()).collect();
            let largest = gaps.iter().copied().fold(0.0, f64::max);
            about_time(|| {
                if record.index % 4 == 3 {
                    // Six of twelve tokens, then silence.
                    assert!((399.0..600.0).contains(&gaps[5]) && largest == gaps[5], "{gaps:?}");
                } else {
                    assert!(largest < 300.0, "{gaps:?}");
                }
            });
        }
        about_time(|| assert!(percentile(&ran.summary, "max_gap", "99") >= 399.0));
    });
}

#[test]
fn a_drip_takes_its_time() {
    timed(|| {
        let ran = MockRun::fast("drip=64/10ms:1/4", &[]);
        for record in ran.records() {
            let stamps = &record.exchange.stamps;
            let took = (stamps.done.unwrap() - stamps.sent_first.unwrap()).as_ms();
            // Fifteen events of at least 150 bytes are at least 35 pieces.
            about_time(|| {
                assert_eq!(took >= 340.0, record.index % 4 == 3, "{}: {took}", record.index);
            });
        }
    });
}

/// The whole server stalls for 200 ms twice a second: every stream in flight has a gap of that
/// size, at the same time.
#[test]
fn a_pause_stops_all_streams_at_once() {
    timed(|| {
        let args = ["--ttft", "5ms", "--itl", "5ms", "--fault", "pause=200ms/500ms"];
        let load = ["--concurrency", "6", "--num-requests", "6", "--max-tokens", "200"];
        let ran = MockRun::new(&args, &[&load[..], &["--no-probe", "--canary", "off"]].concat());
        assert_eq!(number(&ran.summary, "requests.ok"), 6.0);
        let mut pauses = Vec::new();
        for record in ran.records() {
            let chunks = &record.exchange.chunks;
            let long = chunks.windows(2).filter(|pair| (pair[1].at - pair[0].at).as_ms() >= 150.0);
            let begin: Vec<_> = long.map(|pair| pair[0].at.as_ms()).collect();
            // A second of tokens, 300 ms between pauses: two and more, and what the engine did not do
            // meanwhile is not made up for. The client may see the first of them late, so the time
            // counts from its question.
            let took = (chunks[199].at - record.exchange.stamps.sent_first.unwrap()).as_ms();
            about_time(|| {
                assert!(begin.len() >= 2 && took >= 1_000.0 + 2.0 * 200.0, "{took}: {begin:?}");
            });
            pauses.push(begin);
        }
        about_time(|| {
            for other in &pauses {
                let is_near = |a: &&f64| other.iter().any(|b| (*a - b).abs() < 100.0);
                assert!(pauses[0].iter().filter(is_near).count() >= 2, "{pauses:?}");
            }
        });
        // Not only the engine: no request is answered. A second of requests meets a pause.
        let (begin, mut longest) = (now(), Nanos::ZERO);
        while now() - begin < Nanos::from_millis(1_000) {
            let asked = now();
            assert_eq!(ran.mock.get("/health").status, 200);
            longest = longest.max(now() - asked);
        }
        about_time(|| assert!(longest.as_ms() >= 150.0, "{longest:?}"));
    });
}

#[test]
fn slow_beginnings_are_waits_for_the_server() {
    timed(|| {
        let fresh = ["--connections", "per-request"];
        let headers = MockRun::fast("slow-headers=150ms", &[]);
        let accept = MockRun::fast("slow-accept=150ms", &fresh);
        for (ran, context) in [(&headers, "slow-headers"), (&accept, "slow-accept")] {
            ran.assert_all_good(context);
            // The server counts from the connection that it takes, which the client may hear of late:
            // that part of the delay is then its own connecting and sending.
            let own = ["connect", "send"].map(|part| ran.part(part)).iter().sum::<f64>();
            let own = if context == "slow-accept" { own } else { 0.0 };
            let wait = ran.part("wait") + own;
            about_time(|| {
                assert!(wait >= 149.0, "{context}: {}", at(&ran.summary, "waterfall.median"));
            });
            // The kernel takes a connection before the server does.
            let others =
                ran.part("connect") + ran.part("header_to_byte") + ran.part("byte_to_token");
            about_time(|| {
                assert!(others < 75.0, "{context}: {}", at(&ran.summary, "waterfall.median"));
            });
        }
        assert_eq!(headers.mock.injected("slow-headers"), 8.0);
    });
}
