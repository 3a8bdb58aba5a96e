//! Pages of summaries that are written down here.

pub(crate) mod browser;
mod junit;
pub(crate) mod markdown;
mod snapshots;

use goodput_stats::Summary;
use serde_json::{Value, json};

use crate::run_text;

/// A summary of the version before workloads: it still reads.
pub(crate) fn old() -> Value {
    let metric = json!({"unit": "ms", "n": 2, "censored": 0, "mean": 100.0, "std": 0.0, "min": 100.0,
        "max": 100.0, "percentiles": {"50": {"value": 100.0, "low": null, "high": null}}});
    json!({
        "schema": "goodput.summary/1", "verdict": "valid", "caveats": [],
        "run": {"version": "0.2.0", "started": "2026-01-01T00:00:00Z", "state": "complete",
            "target": "http://x", "model": "m", "api": "chat", "stream": true, "workload": "chat",
            "seed": 1, "warmup": "0s", "lost_records": 0, "unwritten_records": 0,
            "log_damaged": false},
        "load": {"mode": "open", "arrivals": "poisson", "offered_rps": 10.0, "scheduled_rps": 9.5,
            "delivered_rps": 9.5, "delivered_share": 1.0, "gap_cv": 1.0, "concurrency": null,
            "max_concurrency": null, "delayed": 0, "slip_ms": {"p50": 0.1, "p99": 0.2, "max": 0.3},
            "in_flight_mean": 1.0, "in_flight_end": 0},
        "requests": {"scheduled": 2, "ok": 2, "failed": 0, "errors": {}, "errors_by_stage": {},
            "error_details": [], "warmup": 0, "cooldown": 0, "reconnects": 0, "connects": 1,
            "finish_reasons": {"stop": 2}},
        "tokens": {"input": 80, "input_source": "usage", "output": 20, "output_source": "usage",
            "cached": null, "chunks": 20, "coalesced_chunks": 0},
        "throughput": {"requests_per_s": 1.0, "output_tokens_per_s": 10.0,
            "total_tokens_per_s": 50.0},
        "whole_run": {"requests_per_s": 1.0, "output_tokens_per_s": 10.0,
            "total_tokens_per_s": 50.0},
        "window": {"start_s": 0.0, "end_s": 2.0, "kind": "steady"},
        "metrics": {"ttft": metric},
    })
}

pub(crate) fn summary(change: impl FnOnce(&mut Value)) -> Summary {
    let mut value = old();
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

pub(crate) fn page(change: impl FnOnce(&mut Value)) -> String {
    run_text(&summary(change), crate::Detail::Full)
}

fn lines<'a>(page: &'a str, label: &str) -> Vec<&'a str> {
    let from = page.lines().skip_while(|line| !line.starts_with(label));
    let rest = from.clone().skip(1).take_while(|line| line.starts_with("            "));
    from.take(1).chain(rest).collect()
}

/// The same in one line.
fn field(page: &str, label: &str) -> String {
    let text = lines(page, label).join(" ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name that was resolved has its time; an address says that there was nothing to resolve, and an
/// older file says nothing.
#[test]
fn the_lookup_of_a_name_stands_under_the_steps() {
    let shown = |lookup: Value| {
        let page = page(|value| {
            let parts = json!([{"name": "dns", "ms": 0.0}, {"name": "wait", "ms": 100.0}]);
            let band = json!({"n": 2, "ttft_ms": 100.0, "parts": parts});
            value["waterfall"] = json!({"median": band, "slowest": band});
            value["run"]["lookup"] = lookup;
        });
        assert!(page.contains("TTFT by step") && !page.contains(" dns "), "{page}");
        page.lines().find(|line| line.starts_with("Name lookup")).unwrap_or_default().to_owned()
    };
    let text = "Name lookup 12.50 ms once, before the first request, for 2 addresses; no TTFT";
    assert_eq!(shown(json!({"ms": 12.5, "addresses": 2})), text);
    let text = "Name lookup no name to resolve: the URL has an address";
    assert_eq!(shown(json!({"ms": null, "addresses": 1})), text);
    assert_eq!(shown(Value::Null), "");
}

/// Metrics of one summary may have different percentiles: what one of them lacks is a dash.
#[test]
fn a_percentile_that_is_not_there_is_a_dash() {
    let page = page(|value| {
        let mut other = value["metrics"]["ttft"].clone();
        other["percentiles"] = json!({"99": {"value": 7.0, "low": 5.0, "high": 9.0}});
        other["mean"] = json!(50.0);
        value["metrics"]["e2e"] = other;
    });
    let dashes = page.lines().filter(|line| line.contains('–')).count();
    assert!(dashes > 0, "{page}");
}

#[test]
fn a_plain_run_has_nothing_new_to_say() {
    let page = page(|_| {});
    assert_eq!(
        field(&page, "Load"),
        "Load open loop, poisson arrivals, 10.0 req/s offered; 9.5 scheduled, 9.5 sent, gap CV 1.00"
    );
    for label in ["Lengths", "Cache", "Replay", "Structured", "Recount", "Sessions", "Notes", "by "]
    {
        assert!(lines(&page, label).is_empty(), "{label}\n{page}");
    }
}

#[test]
fn what_was_asked_stands_next_to_what_was_seen() {
    let page = page(|summary| {
        let side = |actual: f64, exact: f64, error: u64| {
            json!({"n": 2, "planned_mean": 500.2, "actual_mean": actual, "ratio": 1.0,
                "exact_share": exact, "max_error": error})
        };
        summary["lengths"] = json!({"input": side(500.2, 1.0, 0), "output": side(498.0, 0.5, 4)});
        summary["cache"] = json!({"requested": 0.7, "observed": 0.695, "reported_by": 1.0,
            "source": "usage"});
        let quick = json!({"p50": 0.0, "p99": 0.25, "max": 0.5});
        summary["replay"] = json!({"keep": "timestamps", "time_scale": 0.5, "n": 1200,
            "drift_ms": quick, "sent_drift_ms": quick});
        summary["structured"] = json!({"json": {"asked": 10, "answered": 9, "checked": 8,
            "valid": 6, "valid_share": 0.75}});
        summary["recount"] = json!({"tokenizer": "o200k_base", "n": 2, "output_tokens": 24,
            "characters": 100, "output_tps": 12.0, "ratio_to_server": 1.2});
        summary["sessions"] = json!({"n": 7, "requests_mean": 2.5, "turns_max": 6,
            "arrivals_per_s": 3.5, "thinking_mean": 4.2, "cut_requests": 2});
        summary["run"]["workload_hash"] = json!("0123456789abcdef");
        summary["run"]["notes"] = json!(["3 entries left out", "\u{1b}[2J"]);
    });
    let field = |label: &str| field(&page, label);
    assert_eq!(field("Workload"), "Workload chat · hash 0123456789ab");
    assert_eq!(
        field("Lengths"),
        "Lengths input 500.2 planned, 500.2 actual, 100 % exact; output 500.2 planned, 498.0 actual, \
         50.0 % exact, off by 4 at most"
    );
    assert_eq!(
        field("Cache"),
        "Cache 70.0 % of prompt tokens requested, 69.5 % observed (by the usage of 100 % of \
         the answers)"
    );
    assert_eq!(
        field("Replay"),
        "Replay 1,200 requests of a trace, timestamps kept, time × 0.5; scheduled off by p50 0.000 ms, p99 \
         0.250 ms, max 0.500 ms; sent off by p50 0.000 ms, p99 0.250 ms, max 0.500 ms"
    );
    assert_eq!(
        field("Structured"),
        "Structured json: 10 requested, 9 answered; 75.0 % of 8 keep it"
    );
    assert_eq!(
        field("Recount"),
        "Recount 12.0 output tok/s by o200k_base: 24 tokens in 100 characters, 1.200 times what the \
         server counts"
    );
    assert_eq!(
        field("Sessions"),
        "Sessions 7 of 2.5 requests on average, up to 6 turns; 3.5 started per second; 4.2 \
         thinking on average; 2 requests cut at the end"
    );
    assert_eq!(field("Notes"), "Notes 3 entries left out \\u{1b}[2J");
    assert!(
        field("Load").contains("at the instants of a trace; 9.5 req/s scheduled, 9.5 sent"),
        "{page}"
    );
}

fn slice(failed: u64) -> Value {
    let spread = |n: u64| json!({"n": n, "mean": 1.0, "p50": 1.5, "p90": 2.0, "p99": null});
    // Of forty p50 stands alone and p90 is rough; of three p50 is rough too.
    json!({"scheduled": 40 + failed, "ok": 40, "failed": failed, "input_tokens_mean": 500.0,
        "output_tokens_mean": 20.0, "ttft_ms": spread(40), "tpot_ms": spread(3),
        "itl_ms": spread(3), "e2e_ms": spread(100), "output_tps": 12345.6, "rps": 1.0})
}

#[test]
fn tables_are_aligned_and_ordered() {
    let page = page(|summary| {
        summary["breakdown"] = json!({
            "class": {"a\u{1b}class of a rather long name": slice(2), "日本": slice(0)},
            "turn": {"1": slice(0), "10": slice(0), "2": slice(0), "21+": slice(0)},
        });
    });
    let table: Vec<_> = page.lines().skip_while(|line| !line.starts_with("by class")).collect();
    assert_eq!(
        table[..3],
        [
            "by class        n failed     in    out    p50    p90    p50    p50    p90  tok/s",
            "a\\u{1b}c…      42      2  500.0  20.00   1.50  ~2.00  ~1.50   1.50   2.00  12346",
            "日本           40      0  500.0  20.00   1.50  ~2.00  ~1.50   1.50   2.00  12346",
        ]
    );
    let turns = table.iter().skip_while(|line| !line.starts_with("by turn")).skip(1);
    let turns: Vec<_> = turns.take(4).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(turns, ["1", "2", "10", "21+"]);
    assert!(!page.contains('\u{1b}'));
    assert!(page.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{page}");
}

/// Where limits were promised, whom they were kept for.
#[test]
fn tables_show_who_was_good() {
    let page = page(|summary| {
        let mut good = slice(2);
        good["attainment"] = json!(0.6);
        summary["breakdown"] = json!({"class": {"a": good, "b": slice(0)}});
    });
    let table: Vec<_> = page.lines().skip_while(|line| !line.starts_with("tokens, ms")).collect();
    assert_eq!(
        table[..4],
        [
            "tokens, ms                 mean   mean   TTFT   TTFT   TPOT    E2E output   good",
            "by class        n failed     in    out    p50    p90    p50    p90  tok/s      %",
            "a              42      2  500.0  20.00   1.50  ~2.00  ~1.50   2.00  12346  60.00",
            "b              40      0  500.0  20.00   1.50  ~2.00  ~1.50   2.00  12346      –",
        ]
    );
}

/// Lengths always, few minutes, and workers only where they differ.
#[test]
fn tables_that_say_nothing_are_left_out() {
    let with = |ttft: f64| {
        let mut slice = slice(0);
        slice["ttft_ms"]["p50"] = json!(ttft);
        slice
    };
    let headings = |minutes: usize, worker: f64| -> Vec<String> {
        let page = page(|summary| {
            let minutes = (1..=minutes).map(|n| (n.to_string(), slice(0))).collect::<Vec<_>>();
            summary["breakdown"] = json!({
                "input_tokens": {"64–127": slice(0), "128–255": slice(0)},
                "output_tokens": {"64–127": slice(0)},
                "worker": {"0": with(10.0), "1": with(worker)},
                "minute": minutes.into_iter().collect::<serde_json::Map<_, _>>(),
            });
        });
        let headings = page.lines().filter(|line| line.starts_with("by "));
        headings.map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(headings(12, 12.0), ["input", "minute"]);
    assert_eq!(headings(13, 12.1), ["input", "worker"]);
}

#[test]
fn advice_follows_the_evidence() {
    let page = page(|summary| {
        summary["caveats"] = json!([
            {"code": "no_warmup", "severity": "info", "message": "cold", "advice": "add --warmup 50"},
            {"code": "capped", "severity": "warn", "message": "held back"},
        ]);
    });
    assert_eq!(field(&page, "  note"), "note cold; add --warmup 50");
    assert_eq!(field(&page, "  warning"), "warning held back");
}

#[test]
fn a_shaped_load_is_described() {
    let page = page(|summary| {
        summary["load"]["mode"] = json!("shaped");
        summary["load"]["shape"] = json!("1m@5,1m@15");
    });
    assert_eq!(
        field(&page, "Load"),
        "Load open loop, poisson arrivals over 1m@5,1m@15, 10.0 req/s offered on average; 9.5 req/s \
         scheduled, 9.5 sent"
    );
}

#[test]
fn a_promise_stands_next_to_what_became_of_it() {
    let term = |text: &str, kind: &str, unit: &str, value: Option<f64>, state: &str| {
        json!({"term": text, "kind": kind, "unit": unit, "limit": 500.0, "attainment": 0.991,
            "attainment_low": 0.98, "attainment_high": 0.996, "value": value,
            "low": value.map(|value| value * 0.75), "high": null, "state": state, "vacuous": 0})
    };
    let slo = json!({
        "slo": "…", "state": "missed", "target": 0.99, "attainment_state": "undecided",
        "judged_by": "request_terms", "scheduled": 1240, "good": 1223, "undetermined": 6,
        "misses": {"failed": 2, "timed_out": 0, "empty": 0, "truncated": 1, "limits": 8},
        "attainment": 0.991, "attainment_low": 0.98, "attainment_high": 0.996, "n_eff": 900.0,
        "goodput_rps": 22.4, "goodput_rps_low": 21.6, "goodput_rps_high": 23.1,
        "goodput_output_tps": 5210.4, "failed_share": 0.002, "max_gap_p99_ms": 81.0,
        "terms": [
            term("p99 ttft < 500ms", "percentile", "ms", Some(800.0), "missed"),
            term("p9 ttft < 2ms + 1ms/token", "percentile", "ms", None, "undecided"),
            term("tpot < 50ms", "request", "ms", None, "reported"),
            term("errors < 1%", "run", "%", Some(0.2), "met"),
        ],
        "fluidity": {"n": 1240, "token_deadline_ms": 50.0, "fluid_share": 0.98, "p1": 0.5,
            "p10": 0.95, "p50": 1.0, "fluid_token_rate": 43.25},
        "ttft_fit": {"a_ms": 50.0, "b_ms_per_token": 0.25, "n": 1000},
    });
    let shown = page(|summary| summary["slo"] = slo.clone());
    assert_eq!(
        field(&shown, "SLO"),
        "SLO MISSED p99 ttft < 500ms: 800.0 ms (≥ 600.0), missed p9 ttft < 2ms + 1ms/token: no \
         figure, undecided tpot < 50ms: 99.1 % (98.0 %–99.6 %) of requests errors < 1%: 0.20 %, met"
    );
    assert_eq!(
        field(&shown, "Goodput"),
        "Goodput 22.4 req/s (21.6–23.1), 99.1 % of 1,234 requests; 99.0 % required: undecided; \
         5,210 output tok/s misses: 2 failed, 1 truncated, 8 outside a limit; 0.2 % failed; \
         largest gap of a request p99 81.00 ms; 6 that the client distorted count neither way"
    );
    assert_eq!(
        field(&shown, "Fluidity"),
        "Fluidity index 0.9 or more for 98.0 % of 1,240 requests at 50 ms per token (p1 0.50, p10 \
         0.95, p50 1.00); fluid token rate 43.2 tok/s"
    );
    assert_eq!(
        field(&shown, "TTFT fit"),
        "TTFT fit 50.00 ms + 0.2500 ms per prompt token (median line of 1,000 requests)"
    );
    assert!(lines(&page(|_| {}), "SLO").is_empty());
    for (verdict, expected) in [("valid", "SLO MET"), ("void", "SLO NOT SHOWN")] {
        let kept = page(|summary| {
            summary["slo"] = slo.clone();
            summary["slo"]["state"] = json!("met");
            summary["verdict"] = json!(verdict);
        });
        assert!(field(&kept, "SLO").starts_with(expected), "{verdict}");
    }
    let hostile = page(|summary| {
        summary["slo"] = slo.clone();
        summary["slo"]["terms"][0]["term"] = json!("\u{1b}[2J");
    });
    assert!(!hostile.contains('\u{1b}'));
}

/// A metric of sixteen requests: the median has both ends or one, p90 one, and p99 is missing.
pub(crate) fn sixteen(median: &Value) -> Value {
    let rough = |value: f64, low: f64| json!({"value": value, "low": low, "high": null, "n_eff": 4.0, "quality": "rough"});
    json!({"unit": "ms", "n": 16, "censored": 0, "mean": 460.0, "std": 80.0, "min": 400.0,
        "max": 720.5, "mean_low": 431.2, "mean_high": null,
        "percentiles": {"50": median, "90": rough(601.5, 512.25),
            "99": {"value": 720.5, "low": null, "high": null, "quality": "not_estimable"}}})
}

pub(crate) fn short(summary: &mut Value) {
    let median = json!({"value": 442.0, "low": 420.5, "high": null, "quality": "rough"});
    // Of a speed the other end is sure.
    let mut speed = sixteen(
        &json!({"value": 21.5, "low": null, "high": 24.75, "n_eff": 4.0, "quality": "rough"}),
    );
    (speed["mean_low"], speed["mean_high"]) = (Value::Null, json!(25.5));
    speed["percentiles"]["90"] =
        json!({"value": 30.0, "low": null, "high": null, "quality": "rough"});
    summary["metrics"] = json!({"ttft": sixteen(&median), "tpot": speed});
    summary["load"]["scheduled_rps"] = json!(16.0 / 33.0);
    summary["window"] = json!({"start_s": 1.0, "end_s": 34.0, "kind": "steady"});
}

#[test]
fn what_there_is_of_a_short_run_is_shown_and_marked() {
    let page = page(short);
    let from = page.find("ms             n").unwrap();
    let table: Vec<_> = page[from..].lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(
        table,
        [
            "ms             n    mean     p50     p90     p99     max",
            "TTFT          16   460.0  ~442.0  ~601.5     n/e   720.5",
            " 95 % from        ≥431.2  ≥420.5  ≥512.2",
            "TPOT          16   460.0  ~21.50  ~30.00     n/e   720.5",
            "      to          ≤25.50  ≤24.75",
            "~           rough: few samples, or neighbors that are alike; read it with its",
            "            interval (in summary.json where no line shows it)",
            "≥           95 % sure to be at least this; this run cannot tell how much more",
            "≤           95 % sure to be at most this; this run cannot tell how much less",
            "n/e         not estimable: too few samples for any figure",
            // 33 s · 1,000/16 are 2,062.5 s.
            "            p99 needs 1,000 requests to stand alone: --duration 35m at this rate",
        ]
    );
    // A trace does not last longer because it is asked to.
    let replay = super::tests::page(|summary| {
        short(summary);
        summary["load"]["mode"] = json!("replay");
    });
    assert!(replay.contains("p99 needs 1,000 requests to stand alone\n"), "{replay}");
}

#[test]
fn one_end_of_an_attainment() {
    let page = page(|summary| {
        let term = json!({"term": "ttft < 500ms", "kind": "request", "unit": "ms", "limit": 500.0,
            "attainment": 0.98, "attainment_low": null, "attainment_high": 0.992, "value": null,
            "low": null, "high": null, "state": "reported", "vacuous": 0});
        summary["slo"] = json!({
            "slo": "ttft < 500ms", "state": "undecided", "target": 0.99,
            "attainment_state": "undecided", "judged_by": "request_terms", "scheduled": 180,
            "good": 176, "undetermined": 0,
            "misses": {"failed": 0, "timed_out": 0, "empty": 0, "truncated": 0, "limits": 4},
            "attainment": 0.98, "attainment_low": null, "attainment_high": 0.992, "n_eff": null,
            "goodput_rps": 17.6, "goodput_rps_low": null, "goodput_rps_high": 17.9,
            "goodput_output_tps": 100.0, "failed_share": 0.0, "max_gap_p99_ms": null,
            "terms": [term], "fluidity": null, "ttft_fit": null});
    });
    assert_eq!(
        field(&page, "SLO"),
        "SLO UNDECIDED; neighbors are alike: a run this short cannot show it ttft < 500ms: 98.0 % (≤ \
         99.2 %) of requests"
    );
    assert!(
        field(&page, "Goodput").starts_with(
            "Goodput 17.6 req/s (≤ 17.9), 98.0 % of 180 requests; 99.0 % required: undecided \
             (attainment ≤ 99.2 %; neighbors are alike: a run this short cannot show it);"
        ),
        "{page}"
    );
}

#[test]
fn a_server_that_did_not_stream_is_named_in_the_head() {
    let head = |stream: bool, whole: u64| {
        let page = page(|summary| {
            summary["run"]["stream"] = json!(stream);
            summary["requests"]["ok"] = json!(20);
            summary["requests"]["whole"] = json!(whole);
        });
        page.lines().nth(1).unwrap().split(" · ").nth(1).unwrap().to_owned()
    };
    assert_eq!(head(true, 2), "chat, streaming");
    assert_eq!(head(true, 3), "chat, streaming requested, some answers came whole");
    assert_eq!(head(true, 18), "chat, streaming requested, answers came whole");
    assert_eq!(head(false, 0), "chat, not streaming");
}

#[test]
fn both_views_stand_where_slow_failures_change_a_percentile() {
    let of_completed = |summary: &mut Value| {
        summary["metrics"]["ttft"]["percentiles"]["99"]["completed"] = json!(288.0);
    };
    let text = page(of_completed);
    let line = text.lines().find(|line| line.starts_with(" completed")).unwrap();
    assert!(line.trim_end().ends_with("288.0"), "{line}");
    assert!(text.contains("completed   of completed requests only"), "{text}");
    assert!(!page(|_| {}).contains("completed requests only"));
}

#[test]
fn counts_of_any_size_are_shown() {
    let counts = page(|summary| {
        for name in ["warmup", "cooldown", "scheduled", "ok", "failed", "reconnects", "connects"] {
            summary["requests"][name] = json!(u64::MAX);
        }
    });
    assert!(counts.contains("18,446,744,073,709,551,615 failed"), "{counts}");
}
