#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::time::Duration;

use goodput_model::{Api, Nanos};
use http::{HeaderMap, HeaderName};

use super::breaker::{Breaker, StopAt};
use super::choose::{hash_key, is_chosen, read_fields, replace_model};
use super::head::HeadRules;
use super::run::RateCap;
use super::*;

fn opening(body: &str) -> u64 {
    read_fields(Api::Chat, body.as_bytes()).unwrap().opening
}

#[test]
fn a_conversation_is_known_by_how_it_begins() {
    let system = r#"{"role":"system","content":"be kind"}"#;
    let user = r#"{"role":"user","content":"hi"}"#;
    let more = r#"{"role":"assistant","content":"hello"},{"role":"user","content":"bye"}"#;
    let body = |model: &str, list: &[&str]| {
        format!(r#"{{"model":"{model}","messages":[{}]}}"#, list.join(","))
    };
    let first = opening(&body("m", &[system, user]));
    assert_eq!(first, opening(&body("m", &[system, user, more])), "a later turn");
    assert_eq!(
        first,
        opening(&format!(r#"{{"messages":[{system},{user}],"stream":true,"model":"m"}}"#)),
        "whatever else is asked"
    );
    for other in [body("n", &[system, user]), body("m", &[user]), body("m", &[user, system])] {
        assert_ne!(first, opening(&other), "{other}");
    }
}

#[test]
fn what_is_not_of_the_api_is_not_read() {
    for body in [
        "",
        "[]",
        "{",
        "null",
        r#"{"model":"m"}"#,
        r#"{"model":"m","messages":{}}"#,
        r#"{"model":7,"messages":[]}"#,
        r#"{"model":"m","messages":[7]}"#,
        r#"{"model":"a","model":"b","messages":[]}"#,
    ] {
        assert!(read_fields(Api::Chat, body.as_bytes()).is_none(), "{body}");
    }
    assert!(read_fields(Api::Chat, b"{\"model\":\"\xff\",\"messages\":[]}").is_none());
    assert!(read_fields(Api::Completions, br#"{"messages":[]}"#).is_none());
    let deep = format!(r#"{{"messages":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(read_fields(Api::Chat, deep.as_bytes()).is_none());
    let read = read_fields(Api::Completions, br#"{"prompt":["a"],"max_tokens":9}"#).unwrap();
    assert_eq!((read.model, read.place, read.max_tokens), (None, None, Some(9)));
}

#[test]
fn another_model_is_all_that_changes() {
    let renamed = |body: &str, model: &str| {
        let seen = read_fields(Api::Chat, body.as_bytes()).unwrap();
        String::from_utf8(replace_model(body.as_bytes(), &seen, model).unwrap()).unwrap()
    };
    let body = |model: &str| {
        format!(
            r#"{{ "z": 1.50, "tools":[{{"model":"inner"}}],"messages":[{{"role":"user"}}], "model" : {model} , "a":1e400}}"#
        )
    };
    for old in [r#""m""#, r#""m\u0041\"""#, r#""""#, "null"] {
        assert_eq!(renamed(&body(old), "new \"x\""), body(r#""new \"x\"""#), "{old}");
    }
    let without = r#" {"messages":[{"role":"user"}]}"#;
    assert_eq!(renamed(without, "n"), r#" {"model":"n","messages":[{"role":"user"}]}"#);
}

#[test]
fn the_choice_is_of_the_share_and_the_seed() {
    let chosen = |share, seed| (0..20_000).filter(|key| is_chosen(share, seed, *key)).count();
    assert_eq!((chosen(0.0, 1), chosen(1.0, 1)), (0, 20_000));
    // Five standard deviations.
    for seed in 0..4 {
        assert!(chosen(0.05, seed).abs_diff(1000) < 155, "{seed}");
        assert!(chosen(0.5, seed).abs_diff(10_000) < 354, "{seed}");
    }
    let list = |seed| -> Vec<u64> { (0..1000).filter(|key| is_chosen(0.5, seed, *key)).collect() };
    assert_eq!(list(7), list(7));
    assert_ne!(list(7), list(8));
    // More of a larger share, and all of the smaller one.
    assert!((0..1000).all(|key| !is_chosen(0.1, 3, key) || is_chosen(0.2, 3, key)));
    assert_ne!(hash_key(b"a"), hash_key(b"b"));
}

#[test]
fn rules() {
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rules = Rules {
        only_models: list(&["a", "b"]),
        not_models: list(&["b"]),
        only_paths: list(&["/v1/"]),
        not_paths: list(&["/v1/completions"]),
    };
    assert_eq!(
        ["a", "b", "c", ""].map(|name| rules.allow_model(name)),
        [true, false, false, false]
    );
    assert!(rules.allow_path("/v1/chat/completions"));
    assert!(!rules.allow_path("/v1/completions") && !rules.allow_path("/v2/chat/completions"));
    assert!(Rules::default().allow_model("") && Rules::default().allow_path("/"));
}

fn client() -> HeaderMap {
    let lines = [
        ("authorization", "Bearer user-secret"),
        ("cookie", "sid=user-secret"),
        ("x-api-key", "user-secret"),
        ("api-key", "user-secret"),
        ("proxy-authorization", "Basic user-secret"),
        ("x-goog-api-key", "user-secret"),
        ("x-amz-security-token", "user-secret"),
        ("x-session-id", "user-secret"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-tenant", "blue"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("user-agent", "sdk/1"),
        ("accept-encoding", "gzip"),
        ("connection", "keep-alive"),
        ("content-length", "7"),
        ("host", "primary"),
    ];
    lines.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

fn names(head: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = head.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_candidate_gets_no_credential_of_a_client() {
    let usual = ["accept", "content-type", "user-agent"];
    assert_eq!(names(&HeadRules::default().apply(&client())), usual);

    let mut own = HeadRules::default();
    own.add("Authorization", "Bearer its-own").unwrap();
    own.add("user-agent", "other").unwrap();
    own.allow_header("X-Tenant").unwrap();
    let head = own.apply(&client());
    assert_eq!(names(&head), ["accept", "authorization", "content-type", "user-agent", "x-tenant"]);
    assert_eq!(
        (&head["authorization"], &head["user-agent"]),
        (&"Bearer its-own".parse().unwrap(), &"other".parse().unwrap())
    );
    assert_eq!(head.get_all("user-agent").iter().count(), 1);

    for name in [
        "cookie",
        "x-session-id",
        "x-amz-security-token",
        "x-my-auth",
        "X-API-Key",
        "host",
        "te",
        "a b",
    ] {
        assert!(HeadRules::default().allow_header(name).is_err(), "{name}");
    }
    assert!(own.add("x", "a\r\nb: c").is_err());
    for name in ["Host", "content-length", "Connection", "transfer-encoding"] {
        assert!(own.add(name, "1").is_err(), "{name}");
    }

    let mut open = HeadRules::new(true);
    for name in ["cookie", "Cookie", "cookie2", "x-cookie"] {
        assert!(open.allow_header(name).is_err(), "{name}");
    }
    open.allow_header("x-session-id").unwrap();
    open.add("Cookie", "its=own").unwrap();
    assert_eq!(open.apply(&client())["cookie"], "its=own");
    let head = HeadRules::new(true).apply(&client());
    let keys = [
        "accept",
        "api-key",
        "authorization",
        "content-type",
        "user-agent",
        "x-api-key",
        "x-goog-api-key",
    ];
    assert_eq!(names(&head), keys);
}

fn breaker() -> Breaker {
    Breaker::new(StopAt {
        share: 0.5,
        of: 20,
        pause: Duration::from_secs(30),
        longest: Duration::from_secs(100),
    })
}

fn seconds(s: u64) -> Nanos {
    Nanos(s * 1_000_000_000)
}

#[test]
fn half_of_the_last_twenty_is_not_too_many_and_one_more_is() {
    let mut one = breaker();
    for turn in 0..20 {
        assert!(!one.note_result(0, turn % 2 == 0, Nanos(1)));
    }
    assert!(!one.note_result(0, false, Nanos(1)), "a failure went, a success came");
    assert!(!one.note_result(0, true, Nanos(1)));
    assert!(!one.note_result(0, true, Nanos(1)), "10 of 20");
    assert!(one.note_result(0, true, Nanos(1)), "11 of 20");
    assert_eq!(one.admit(Nanos(2)), None);
    let mut all = breaker();
    assert!(
        (0..19).all(|_| !all.note_result(0, true, Nanos(1)) && all.admit(Nanos(1)).is_some()),
        "too few to decide"
    );
    assert!(all.note_result(0, true, Nanos(1)));
    let mut never = Breaker::new(StopAt { share: 1.0, ..StopAt::default() });
    assert!((0..100).all(|_| !never.note_result(0, true, Nanos(1))));
}

#[test]
fn one_tries_again_and_the_pause_doubles() {
    let mut one = breaker();
    let mut at = seconds(0);
    let early = one.admit(at).unwrap();
    (0..20).for_each(|_| {
        one.note_result(7, true, at);
    });
    for pause in [30, 60, 100, 100] {
        assert_eq!(one.open_until(), Some(at + seconds(pause)));
        assert_eq!(one.admit(at + seconds(pause - 1)), None);
        at += seconds(pause);
        let probe = one.admit(at).expect("the probe");
        assert_eq!(one.admit(at), None, "and no other");
        // Requests in flight before do not count as the trial.
        assert!(!one.note_result(early, false, at) && !one.note_result(early, true, at));
        one.cancel_ticket(early, at);
        assert_eq!(one.open_until(), Some(Nanos(u64::MAX)));
        assert!(one.note_result(probe, true, at));
    }
    at += seconds(100);
    let given_up = one.admit(at).unwrap();
    one.cancel_ticket(given_up, at);
    let probe = one.admit(at).expect("one that was given up says nothing");
    assert!(!one.note_result(given_up, true, at));
    assert!(!one.note_result(probe, false, at));
    assert_eq!(one.open_until(), None);
    assert!(one.admit(at).is_some() && one.admit(at).is_some());
    assert!((0..19).all(|_| !one.note_result(0, true, at)), "what was is forgotten");
    assert!(one.note_result(0, true, at));
    assert_eq!(one.open_until(), Some(at + seconds(30)));
}

#[test]
fn a_request_that_is_too_old_for_its_turn_does_not_take_it() {
    let mut pace = RateCap::new(Some(0.5));
    assert_eq!(pace.next_turn(seconds(10), seconds(15)), Some(seconds(10)));
    pace.note_sent(seconds(10));
    assert_eq!(pace.next_turn(seconds(10), seconds(15)), Some(seconds(12)));
    pace.note_sent(seconds(12));
    pace.note_sent(seconds(14));
    // The queue is full of old ones: each is let go at once, and the first that is not has the turn.
    assert_eq!(pace.next_turn(seconds(14), seconds(15)), None);
    assert_eq!(pace.next_turn(seconds(14), seconds(16)), Some(seconds(16)));
    assert_eq!(pace.next_turn(seconds(14), seconds(19)), Some(seconds(16)), "not taken");
    assert_eq!(
        pace.next_turn(seconds(60), seconds(61)),
        Some(seconds(60)),
        "no burst after a rest"
    );
    let free = RateCap::new(None);
    assert_eq!(free.next_turn(seconds(3), seconds(3)), Some(seconds(3)));
    assert_eq!(free.next_turn(seconds(3), seconds(2)), None);
}
