//! The grammar's texts, its errors, and what happens to requests.

use proptest::prelude::*;

use super::*;

fn faults(list: &[&str]) -> Faults {
    Faults::new(list.iter().map(|text| text.parse().unwrap()).collect(), 7)
}

fn error(text: &str) -> String {
    text.parse::<MockFault>().unwrap_err().to_string()
}

fn second(n: u64) -> Nanos {
    Nanos::from_millis(n * 1_000)
}

/// Every kind, with and without what it may have.
const TEXTS: [&str; 56] = [
    "500",
    "400",
    "599:50%",
    "429",
    "429=5",
    "503=0:1/10@5s",
    "refuse@5s+3s",
    "refuse@0s",
    "slow-accept=200ms",
    "slow-accept=200ms@1m30s+2m",
    "close-after=10",
    "pause=300ms/10s",
    "pause=1us/2us@1h",
    "reset",
    "reset:0.001%",
    "reset-midstream",
    "reset-midstream=0",
    "reset-midstream=17:1/3",
    "cut",
    "cut=5",
    "stall",
    "stall=2s",
    "drip",
    "drip=1/50ms",
    "truncated-json",
    "error-event",
    "early-eos",
    "ignores-ignore-eos",
    "wrong-usage",
    "no-usage",
    "no-done",
    "no-finish",
    "empty",
    "crlf",
    "pings",
    "no-space",
    "role=empty",
    "role=null",
    "role=bare",
    "role=absent",
    "role=with-first:33.3%",
    "cumulative",
    "joined",
    "joined=2",
    "split",
    "split=9",
    "split-utf8",
    "huge-event",
    "huge-event=64KiB",
    "huge-event=1GiB",
    "huge-event=1001B",
    "html",
    "bad-http",
    "slow-headers=2s",
    "slow-headers=1ns:1/1@1day+2h3m4s5ms",
    "slow-headers=0s:100%",
];

#[test]
fn every_text_comes_back() {
    let mut labels: Vec<String> = Vec::new();
    for text in TEXTS {
        let fault: MockFault = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(fault.to_string(), text);
        labels.push(fault.kind.label().to_string());
    }
    for form in MockFault::forms().filter(|form| !form.starts_with("any")) {
        let name = form.split(['=', '[', '@']).next().unwrap();
        assert!(labels.iter().any(|label| label == name), "{name} is not in the test");
    }
}

#[test]
fn defaults_are_left_out_and_spellings_become_one() {
    for (text, canonical) in [
        ("429=1", "429"),
        ("stall=60s", "stall"),
        ("stall=1m", "stall"),
        ("drip=16/5ms", "drip"),
        ("joined=4", "joined"),
        ("split=3", "split"),
        ("huge-event=8MB", "huge-event"),
        ("huge-event=2000000", "huge-event=2MB"),
        ("reset:1e1%", "reset:10%"),
        ("reset@0s", "reset"),
        ("reset@90s", "reset@1m30s"),
    ] {
        assert_eq!(text.parse::<MockFault>().unwrap().to_string(), canonical);
    }
}

#[test]
fn what_is_no_fault_says_why() {
    for (text, part) in [
        ("", "the kinds are"),
        ("resett", "did you mean `reset`?"),
        ("Reset", "did you mean `reset`?"),
        ("truncated_json", "did you mean `truncated-json`?"),
        ("ignore-eos", "the kinds are"),
        ("no-don", "did you mean `no-done`?"),
        ("399", "400 to 599"),
        ("600", "400 to 599"),
        ("99999999999", "400 to 599"),
        ("5xx", "400 to 599"),
        ("500=3", "only `429` and `503`"),
        ("429=soon", "whole number"),
        ("refuse", "refuse@5s+3s"),
        ("refuse:10%@5s", "takes no share"),
        ("pause=1s/10s:1/2", "takes no share"),
        ("close-after=3:1/2", "takes no share"),
        ("close-after", "close-after=REQUESTS"),
        ("close-after=0", "whole number from 1"),
        ("slow-accept", "slow-accept=TIME"),
        ("slow-accept=1s:10%", "takes no share"),
        ("slow-headers", "slow-headers=TIME"),
        ("pause=10s", "has no `/`"),
        ("pause=10s/10s", "shorter"),
        ("pause=0s/10s", "above zero"),
        ("reset=3", "takes no value"),
        ("crlf=", "takes no value"),
        ("stall=", "is not a time"),
        ("stall=5", "is not a time"),
        ("stall=31days", "longer than 30 days"),
        ("drip=0/5ms", "whole number from 1"),
        ("drip=5ms", "has no `/`"),
        ("role=none", "with-first"),
        ("role", "role=empty|null"),
        ("joined=1", "whole number from 2"),
        ("split=4294967296", "whole number from 2"),
        ("huge-event=0", "is not a size"),
        ("huge-event=2GiB", "is not a size"),
        ("huge-event=5GB", "is not a size"),
        ("huge-event=MB", "is not a size"),
        ("reset:", "is not a share"),
        ("reset:0%", "is not a share"),
        ("reset:101%", "is not a share"),
        ("reset:nan%", "is not a share"),
        ("reset:2/10", "is not a share"),
        ("reset:1/0", "is not a share"),
        ("reset@", "is not a time"),
        ("reset@5s+", "is not a time"),
        ("reset@5s+0s", "above zero"),
        ("reset@5s:10%", "is not a time"),
    ] {
        let message = error(text);
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.starts_with(&format!("`{text}` is not a fault: ")), "{message}");
    }
}

#[test]
fn one_in_ten_is_exact() {
    let faults = faults(&["500:1/10"]);
    let hit: Vec<u64> =
        (0..100).filter(|id| faults.for_request(*id, Nanos::ZERO).status.is_some()).collect();
    assert_eq!(hit, (0..10).map(|n| 10 * n + 9).collect::<Vec<_>>());
}

#[test]
fn chances_are_drawn_independently() {
    let faults = faults(&["crlf:10%", "pings:10%", "no-space:100%"]);
    let n = 20_000;
    let all: Vec<Injected> = (0..n).map(|id| faults.for_request(id, Nanos::ZERO)).collect();
    let share = |hit: &dyn Fn(&Injected) -> bool| {
        all.iter().filter(|injected| hit(injected)).count() as f64 / n as f64
    };
    // Six standard errors.
    assert!((share(&|i| i.quirks.crlf) - 0.1).abs() < 0.013);
    assert!((share(&|i| i.quirks.pings) - 0.1).abs() < 0.013);
    assert!((share(&|i| i.quirks.crlf && i.quirks.pings) - 0.01).abs() < 0.005);
    assert_eq!(share(&|i| i.quirks.no_space), 1.0);
    let again = faults.for_request(123, second(9));
    assert_eq!(again, all[123]);
}

#[test]
fn a_fault_does_not_move_the_draws_of_another() {
    let hits = |list: &[&str]| -> Vec<bool> {
        let faults = faults(list);
        (0..500).map(|id| faults.for_request(id, second(5)).quirks.pings).collect()
    };
    let alone = hits(&["crlf:30%", "pings:30%"]);
    assert_eq!(alone, hits(&["crlf:80%", "pings:30%"]));
    assert_eq!(alone, hits(&["crlf:30%@1h", "pings:30%"]));
    assert_eq!(alone, hits(&["slow-accept=1s", "pings:30%"]));
}

#[test]
fn windows_open_and_close() {
    let faults = faults(&["500@5s+3s", "429@10s"]);
    let status =
        |ms| faults.for_request(0, Nanos::from_millis(ms)).status.map(|(status, _)| status);
    for (ms, expected) in [
        (0, None),
        (4_999, None),
        (5_000, Some(500)),
        (7_999, Some(500)),
        (8_000, None),
        (10_000, Some(429)),
        (1_000_000_000, Some(429)),
    ] {
        assert_eq!(status(ms), expected, "{ms}");
    }
}

#[test]
fn the_first_exclusive_fault_is_the_only_one() {
    let faults = faults(&["crlf", "html:1/2", "500", "503=7"]);
    let even = faults.for_request(0, Nanos::ZERO);
    assert_eq!(even.status, Some((500, None)));
    assert_eq!(even.before_headers, None);
    assert!(!even.quirks.crlf);
    assert_eq!(even.kinds, [Label::Status(500)]);
    let odd = faults.for_request(1, Nanos::ZERO);
    assert_eq!((odd.status, odd.before_headers), (None, Some(BeforeHeaders::Html)));
    assert_eq!(odd.kinds, [Label::Named("html")]);
}

#[test]
fn one_place_takes_one_fault() {
    let injected = faults(&["stall=2s", "cut=3", "empty", "no-usage", "wrong-usage", "role=null"])
        .for_request(0, Nanos::ZERO);
    assert_eq!(injected.after_tokens, Some((AfterTokens::Stall(second(2)), At::Half)));
    assert!(!injected.empty && injected.quirks.no_usage && !injected.quirks.wrong_usage);
    assert_eq!(injected.quirks.role, RoleShape::Null);
    let labels: Vec<String> = injected.kinds.iter().map(Label::to_string).collect();
    assert_eq!(labels, ["stall", "no-usage", "role"]);
    let twice = faults(&["split=2", "split=5", "joined"]).for_request(0, Nanos::ZERO);
    assert_eq!(twice.delivery, EventDelivery { joined: 4, split: 2, split_utf8: false });
    assert_eq!(twice.kinds.len(), 2);
}

#[test]
fn what_is_done_to_tokens_needs_some() {
    for kind in ["truncated-json", "error-event", "cut", "stall", "reset-midstream"] {
        for list in [[kind, "empty"], ["empty", kind]] {
            let kinds = faults(&list).for_request(0, second(0)).kinds;
            assert_eq!(kinds.len(), 1, "{list:?}");
            assert_eq!(kinds[0].to_string(), list[0]);
        }
    }
    for list in [["truncated-json", "error-event"], ["error-event", "truncated-json"]] {
        let kinds = faults(&list).for_request(0, second(0)).kinds;
        assert_eq!(kinds.len(), 1, "one event, one fault");
        assert_eq!(kinds[0].to_string(), list[0]);
    }
}

#[test]
fn every_request_fault_has_an_effect() {
    for text in TEXTS {
        let fault: MockFault = text.parse().unwrap();
        let when = fault.window.from;
        let faults = Faults::new(vec![MockFault { share: FaultShare::Every, ..fault }], 1);
        let injected = faults.for_request(0, when);
        let is_connection = fault.kind.affects_connections();
        assert_eq!(injected.kinds.is_empty(), is_connection, "{text}");
        assert_eq!(faults.connection_faults() == Connections::default(), !is_connection, "{text}");
        let mut rest = injected.clone();
        rest.kinds.clear();
        // An empty role content is what is usual anyway.
        let is_usual = is_connection || text == "role=empty";
        assert_eq!(rest == Injected::default(), is_usual, "{text}");
    }
}

#[test]
fn connections_have_their_windows() {
    let faults = faults(&[
        "refuse@5s+3s",
        "refuse@20s",
        "slow-accept=200ms@1s+1s",
        "slow-accept=50ms",
        "close-after=3",
        "pause=300ms/10s",
    ]);
    let connection = faults.connection_faults();
    let refuses = |s| connection.refuse.iter().any(|window| window.contains(second(s)));
    let refusing = [4, 5, 7, 8, 20, 99].map(refuses);
    assert_eq!(refusing, [false, true, true, false, true, true]);
    assert_eq!(connection.accept_delay(second(1)), Some(Nanos::from_millis(200)));
    assert_eq!(connection.accept_delay(second(2)), Some(Nanos::from_millis(50)));
    assert_eq!(connection.request_limit(Nanos::ZERO), Some(3));
    let [pause] = connection.pause[..] else { panic!() };
    assert_eq!((pause.length, pause.every), (Nanos::from_millis(300), second(10)));
    assert!(faults.for_request(0, second(6)).kinds.is_empty());
}

#[test]
fn what_an_answer_must_have_for_a_fault_to_happen() {
    let needs = |text: &str| text.parse::<MockFault>().unwrap().kind.label().required_answer();
    assert_eq!(needs("crlf"), Needs::Stream);
    assert_eq!(needs("no-usage"), Needs::Text);
    assert_eq!(needs("ignores-ignore-eos"), Needs::Orders);
    assert_eq!(needs("drip"), Needs::Nothing);
    assert_eq!(needs("500"), Needs::Nothing);
}

#[test]
fn counts_begin_at_zero() {
    let faults = faults(&["503:1%", "cut"]);
    let mut counts = FaultCounts::new(faults.labels());
    counts.add(Label::Named("cut"));
    counts.add(Label::Named("cut"));
    let all: Vec<(String, u64)> =
        counts.iter().map(|(label, count)| (label.to_string(), count)).collect();
    assert_eq!(all, [("503".to_owned(), 0), ("cut".to_owned(), 2)]);
}

/// Texts made of the grammar's own parts, most of them faults.
fn near_texts() -> impl Strategy<Value = String> {
    let kind = proptest::sample::select(TEXTS.to_vec());
    let value = proptest::option::of("=(0|1|17|999999|2s|500ms|8MB|16/5ms|1s/9s|null|.{0,6})");
    let share = proptest::option::of(":(1/[0-9]{1,20}|[0-9]{1,3}(\\.[0-9]{1,4})?%|.{0,4})");
    let window = proptest::option::of("@([0-9]{1,9}(ns|us|ms|s|m|h))(\\+[0-9]{1,4}(ms|s|h))?");
    (kind, value, share, window).prop_map(|(kind, value, share, window)| {
        let name = kind.split(['=', ':', '@']).next().unwrap_or_default();
        [Some(name.to_owned()), value, share, window].into_iter().flatten().collect()
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        let _ = text.parse::<MockFault>();
    }

    #[test]
    fn a_fault_is_its_text(text in near_texts(), id: u64, now: u64, seed: u64) {
        if let Ok(fault) = text.parse::<MockFault>() {
            prop_assert_eq!(fault.to_string().parse::<MockFault>(), Ok(fault));
            let faults = Faults::new(vec![fault], seed);
            faults.for_request(id, Nanos(now));
            faults.connection_faults().accept_delay(Nanos(now));
        }
    }
}
