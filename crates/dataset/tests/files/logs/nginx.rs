//! Access logs of nginx.

use goodput_dataset::{TraceFormat, TraceSelection};
use goodput_model::LogPlan;

use super::{classes, load, nginx, options, requests, sessions, took, written};

/// What the documentation recommends.
const FULL: &str = "$msec $request_time $status $request_length $body_bytes_sent \"$request\" \"$sent_http_content_type\"";

const SSE: &str = "text/event-stream; charset=utf-8";

fn line(end: &str, took: &str, status: u16, bytes: (u64, u64), kind: &str) -> String {
    let (asked, sent) = bytes;
    format!(
        "{end} {took} {status} {asked} {sent} \"POST /v1/chat/completions HTTP/1.1\" \"{kind}\"\n"
    )
}

#[test]
fn a_request_comes_before_it_is_logged() {
    let text = [
        line("1794820145.500", "0.250", 200, (4000, 2500), SSE),
        // It came first, and ended last.
        line("1794820150.125", "5.125", 200, (10, 800), "application/json"),
        line("1794820151.000", "0.001", 429, (10, 10), "application/json"),
        line("1794820151.000", "0.001", 499, (10, 0), "-"),
        "1794820151.000 0.001 200 10 10 \"GET /v1/responses HTTP/1.1\" \"application/json\"\n"
            .to_owned(),
        "1794820151.000 0.001 200 10 10 \"POST /v1/embeddings HTTP/1.1\" \"application/json\"\n"
            .to_owned(),
        "\n".to_owned(),
    ]
    .concat();
    let loaded = load("access.log", &text, &nginx(FULL)).unwrap();
    assert_eq!((loaded.format, loaded.seen), ("nginx", 7));
    // 4000 / 4 and 2500 / 250; 10 / 4 and 800 / 4.
    assert_eq!(requests(&loaded), [(0.0, 3, 200), (250.0, 1000, 10)]);
    assert_eq!(took(&loaded), [Some(5125.0), Some(250.0)]);
    assert_eq!(classes(&loaded), [Some("chat/completions"); 2]);
    assert_eq!(sessions(&loaded), [None; 2]);
    let skipped: Vec<(&str, u64)> = loaded.skipped.iter().map(|(s, n)| (s.as_str(), *n)).collect();
    let expected = [
        ("blank line", 1),
        ("failed when it was recorded (status 429)", 1),
        ("failed when it was recorded (status 499)", 1),
        ("not a request for tokens", 2),
    ];
    assert_eq!(skipped, expected);
    let notes = [
        "answer lengths are estimated from the bytes of answers (2 times)",
        "prompt lengths are estimated from the bytes of requests (2 times)",
        "1 rows were out of order and have been sorted",
    ];
    assert_eq!(loaded.notes, notes);
    let mut by_hand = nginx(FULL);
    by_hand.log.bytes_per_token = Some(2.0);
    by_hand.log.answer_bytes_per_token = Some(100.0);
    let loaded = load("access.log", &text, &by_hand).unwrap();
    assert_eq!(requests(&loaded), [(0.0, 5, 400), (250.0, 2000, 25)]);
}

#[test]
fn the_combined_format_holds_no_lengths_of_prompts() {
    let text = "192.0.2.7 - ann [25/Oct/2026:02:30:00 +0200] \"POST /v1/completions HTTP/1.1\" 200 1000 \"-\" \"curl/8\"\n\
        192.0.2.7 - ann [25/Oct/2026:02:30:00 +0100] \"POST /openai/v1/messages?beta=1 HTTP/2.0\" 200 250 \"-\" \"curl/8\"\n";
    let combined = options(TraceFormat::Nginx);
    let refused = load("access.log", text, &combined).unwrap_err();
    assert_eq!(
        refused,
        "access.log: the log's format does not say how long prompts are: expected one of $content_length, $http_content_length, $request_length"
    );
    let log = LogPlan { assume_input_tokens: Some(300), ..LogPlan::default() };
    let assumed = TraceSelection { log, ..combined };
    assert!(
        load("access.log", text, &assumed).unwrap_err().contains("which answers were streamed")
    );
    let log = LogPlan { answer_bytes_per_token: Some(250.0), ..assumed.log.clone() };
    let loaded = load("access.log", text, &TraceSelection { log, ..assumed }).unwrap();
    // The hour that is shown twice when summer time ends.
    assert_eq!(requests(&loaded), [(0.0, 300, 4), (3_600_000.0, 300, 1)]);
    assert_eq!(classes(&loaded), [Some("completions"), Some("messages")]);
    assert_eq!(took(&loaded), [None; 2]);
    assert_eq!(loaded.notes.len(), 4, "{:?}", loaded.notes);
    let text = written(&loaded);
    for word in ["192.0.2.7", "ann", "curl", "beta"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn token_counts_in_the_log_win_over_bytes() {
    let format = "[$time_iso8601] $request_method $uri $status $upstream_response_time $request_length $bytes_sent $upstream_http_x_prompt_tokens/$upstream_http_x_completion_tokens";
    let mut options = nginx(format);
    options.log.input_tokens_field = Some("$upstream_http_x_prompt_tokens".to_owned());
    options.log.output_tokens_field = Some("upstream_http_x_completion_tokens".to_owned());
    let text = "[2026-11-16T10:09:05+01:00] POST /v1/responses 200 0.500, 0.250 : 0.250 4000 99999 17/3\n\
        [2026-11-16T09:09:05+00:00] POST /v1/responses/ 200 - 4000 99999 -/4\n\
        [2026-11-16T09:09:05+00:00] POST /v1/responses 200 - 4000 99999 5/-\n";
    let loaded = load("access.log", text, &options).unwrap();
    assert_eq!(requests(&loaded), [(0.0, 17, 3), (1000.0, 1000, 4)]);
    assert_eq!(took(&loaded), [Some(1000.0), None]);
    assert_eq!(loaded.skipped["without lengths"], 1);
    options.log.input_tokens_field = Some("$none".to_owned());
    let refused = load("access.log", text, &options).unwrap_err();
    assert_eq!(refused, "access.log: the log's format has no variable `$none`");
}

#[test]
fn a_log_without_methods_is_taken_whole_and_says_so() {
    let lines = |method: &str| {
        ["/v1/responses", "/v1/completions", "/health"]
            .map(|path| {
                format!("1794820145.500 0.250 200 {method}{path} 400 40 application/json\n")
            })
            .concat()
    };
    let rest = "$request_length $body_bytes_sent $sent_http_content_type";
    let noted = |format: &str, text: &str| {
        let loaded = load("access.log", text, &nginx(format)).unwrap();
        let is_it = |note: &&String| note.contains("every method");
        (loaded.entries.len(), loaded.notes.iter().find(is_it).cloned())
    };
    let without = format!("$msec $request_time $status $uri {rest}");
    let said = "the log has no method: requests of every method count (2 times)";
    assert_eq!(noted(&without, &lines("")), (2, Some(said.to_owned())));
    let with = format!("$msec $request_time $status $request_method $uri {rest}");
    assert_eq!(noted(&with, &lines("POST ")), (2, None));
}

#[test]
fn formats_that_write_json() {
    let format = "log_format llm escape=json '{\"time\":\"$time_iso8601\",\"t\":$msec,'\n  '\"req\":\"$request\",\"rt\":$request_time,\"status\":$status,\"in\":\"$content_length\",\"out\":$body_bytes_sent,'\n '\"type\":\"$sent_http_content_type\",\"agent\":\"$http_user_agent\"}';";
    let text = "{\"time\":\"2026-11-16T09:09:05+00:00\",\"t\":1794820145.250,\"req\":\"POST /v1/chat/completions HTTP/1.1\",\"rt\":0.250,\"status\":200,\"in\":\"400\",\"out\":500,\"type\":\"text/event-stream\",\"agent\":\"a\\\",\\\"t\\\":\\\"9\"}\n\
        {\"status\":200,\"type\":\"application/json\",\"agent\":\"\",\"out\":40,\"in\":\"8\",\"rt\":0.5,\"req\":\"POST /v1/chat/completions HTTP/1.1\",\"t\":1794820146.0,\"time\":\"\"}\n\
        {\"time\":\"\",\"t\":1794820146.750,\"req\":\"POST /v1/chat/completions HTTP/1.1\",\"rt\":,\"status\":200,\"in\":\"400\",\"out\":500,\"type\":\"text/event-stream\",\"agent\":\"\"}\n";
    let loaded = load("access.log", text, &nginx(format)).unwrap();
    assert_eq!(requests(&loaded), [(0.0, 100, 2), (500.0, 2, 10), (1750.0, 100, 2)]);
    assert_eq!(took(&loaded), [Some(250.0), Some(500.0), None]);
}

#[test]
fn lines_of_another_format_are_refused_without_a_word_of_them() {
    let good = line("1794820145.500", "0.250", 200, (4000, 2500), SSE);
    let other = "192.0.2.7 - ann [16/Nov/2026:09:09:05 +0000] \"POST /secret HTTP/1.1\" 200 3 \"-\" \"-\"\n";
    let wrong = [
        other.to_owned(),
        good.replace("1794820145.500", "ann"),
        good.replace(" 200 ", " ann "),
        good.replace(" 4000 ", " ann "),
        good.replace(" 0.250 ", " ann "),
        good.replace(" 4000 ", " -5 "),
    ];
    for wrong in wrong {
        let text = good.clone() + &wrong;
        let refused = load("access.log", &text, &nginx(FULL)).unwrap_err();
        assert!(refused.starts_with("access.log, line 2: "), "{refused}");
        let skipping = TraceSelection { skip_invalid: true, ..nginx(FULL) };
        let loaded = load("access.log", &text, &skipping).unwrap();
        assert_eq!((loaded.entries.len(), loaded.skipped["not readable"]), (1, 1));
        for text in [refused, written(&loaded)] {
            for word in ["ann", "secret", "192.0.2.7"] {
                assert!(!text.contains(word), "{text}");
            }
        }
    }
    for (format, why) in [
        ("$status $request $content_length", "does not say when requests ended"),
        ("$msec $status", "does not say what was requested"),
        ("$msec$status", "nothing separates"),
        ("$msec $request $content_length", "does not say how long answers are"),
    ] {
        assert!(load("access.log", &good, &nginx(format)).unwrap_err().contains(why), "{format}");
    }
    let mut options = nginx(FULL);
    options.log.bytes_per_token = Some(0.0);
    assert!(load("access.log", &good, &options).unwrap_err().contains("above 0"));
}
