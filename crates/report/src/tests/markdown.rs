//! Tables that stay tables, with the numbers of the text pages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use goodput_stats::{Repeats, Summary};
use serde_json::{Value, json};

use crate::sweep::tests::summary as swept;
use crate::{run_markdown, sweep_markdown};

/// As many bars in every row of a table as in its heading, and no tag or link of anybody.
pub(crate) fn check(page: &str) {
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in page.split("\n\n").filter(|part| part.starts_with('|')) {
        let expected = bars(table.lines().next().unwrap());
        for line in table.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(bars(line), expected, "{line}");
        }
    }
    for raw in ["<b>", "<img", "[x](", "`c`", "@team", "\x1b", "\u{202e}", "\r"] {
        assert!(!page.contains(raw), "{raw:?} is in\n{page}");
    }
}

pub(crate) const EVIL: &str = "a|b <img src=x> [x](y) `c` @team <b> &x; \"'\x1b[2J\u{202e}\r\n| z";

/// A run with an SLO: one term kept, one missed, one that cannot be told.
pub(crate) fn run(change: impl FnOnce(&mut Value)) -> Summary {
    let mut value = crate::tests::old();
    let term = |text: &str, kind: &str, value: Option<f64>, state: &str| {
        json!({"term": text, "kind": kind, "unit": "ms", "limit": 500.0, "attainment": null,
            "attainment_low": null, "attainment_high": null, "value": value, "low": null,
            "high": null, "state": state, "vacuous": 0})
    };
    value["slo"] = json!({
        "slo": "…", "state": "missed", "target": 0.99, "attainment_state": "undecided",
        "judged_by": "request_terms", "scheduled": 1240, "good": 1223, "undetermined": 6,
        "misses": {"failed": 2, "timed_out": 0, "empty": 0, "truncated": 1, "limits": 8},
        "attainment": 0.991, "attainment_low": 0.98, "attainment_high": 0.996, "n_eff": 900.0,
        "goodput_rps": 22.4, "goodput_rps_low": 21.6, "goodput_rps_high": 23.1,
        "goodput_output_tps": 5210.4, "failed_share": 0.002, "max_gap_p99_ms": 81.0,
        "terms": [
            term("p99 ttft < 500ms", "percentile", Some(800.0), "missed"),
            term("p50 tpot < 50ms", "percentile", Some(20.0), "met"),
            term("p99 e2e < 2s", "percentile", None, "undecided"),
        ],
        "fluidity": null, "ttft_fit": null,
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_void_run_has_no_good_news() {
    for state in ["met", "missed", "undecided"] {
        let page = run_markdown(&run(|value| {
            value["verdict"] = json!("void");
            value["slo"]["state"] = json!(state);
            value["slo"]["attainment_state"] = json!("met");
        }));
        assert!(page.starts_with("## Run: void\n\n**These numbers are void: goodput"), "{page}");
        assert_eq!(page.matches("| not shown: void |").count(), 2, "{page}");
        assert!(page.contains("| missed |") && !page.contains("| met |"), "{page}");
    }
}

#[test]
fn a_short_run_has_what_is_sure() {
    let page = run_markdown(&run(crate::tests::short));
    let row =
        "| TTFT | 16 | 460.0 (≥ 431.2) | \\~442.0 (≥ 420.5) | \\~601.5 (≥ 512.2) | n/e | 720.5 |";
    assert!(page.contains(row), "{page}");
    for line in [
        "- ≥: 95 % sure to be at least this; this run cannot tell how much more",
        "- n/e: not estimable: too few samples for any figure",
        "- p99 needs 1,000 requests to stand alone: --duration 35m at this rate",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn a_run() {
    let page = run_markdown(&run(|_| {}));
    assert!(
        page.starts_with("## Run: MISSED\n\n**goodput 22.4 req/s (21.6–23.1), 99.1 %"),
        "{page}"
    );
    assert!(page.contains("| p99 ttft &lt; 500ms | 800.0 ms (no interval) | missed |\n"), "{page}");
    assert!(page.contains("| ms | n | mean | p50 | max |\n|---|---:|---:|---:|---|\n"), "{page}");
    assert!(page.contains("| TTFT | 2 | 100.0 | 100.0 | 100.0 |\n"), "{page}");
    assert!(page.contains("- Load: open loop, poisson arrivals, 10.0 req/s offered"), "{page}");
    check(&page);
    let plain = run_markdown(&run(|summary| {
        summary["slo"] = Value::Null;
    }));
    assert!(plain.starts_with("## Run: valid\n\n**1.0 req/s · 10.0 output tok/s"), "{plain}");
    let evil = run_markdown(&run(|summary| {
        for name in ["target", "model", "workload", "version", "started", "api"] {
            summary["run"][name] = json!(EVIL);
        }
        summary["slo"]["terms"][0]["term"] = json!(EVIL);
        summary["caveats"] = json!([{"code": "capped", "severity": "warn", "message": EVIL}]);
    }));
    check(&evil);
}

#[test]
fn a_sweep() {
    let page = sweep_markdown(&swept());
    assert!(
        page.starts_with("## Sweep: goodput found\n\n**22.4 req/s (22.4 confirmed, 23.1 over"),
        "{page}"
    );
    let row = "| 5 | 25.0 | grid | 1,500 | 100.0 | 220.0 | 800.0 (720.0–880.0) | 45.00 | 55.00 \
               (49.50–60.50) | 4000.0 | 90.0 (89.0–90.0) | 22.50 |";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("| missed: p99 ttft &lt; 500ms |\n"), "{page}");
    assert_eq!(page.lines().filter(|line| line.starts_with("| ")).count(), 11 + 9);
    check(&page);
    let mut evil = swept();
    for text in [&mut evil.sweep.target, &mut evil.sweep.model, &mut evil.sweep.workload] {
        EVIL.clone_into(text);
    }
    check(&sweep_markdown(&evil));
}

#[test]
fn repeated_runs() {
    let one = |number: u32| {
        json!({"number": number, "seed": 41 + number, "state": "complete", "verdict": "valid",
            "is_used": number == 1, "window_s": 60.0, "scheduled": 1200, "ok": 1199,
            "figures": {"ttft_p99": 212.0}})
    };
    let figure = json!({"n": 2, "mean": 200.0, "sd": 10.0, "cv": 0.05, "low": 180.0, "high": 220.0,
        "min": 190.0, "max": 210.0, "within_sd": null, "ratio": null, "differs": false});
    let repeats = json!({"schema": "goodput.repeats/1", "verdict": "suspect", "caveats": [],
        "asked": 2, "used": 1, "run": null, "load": EVIL, "runs": [one(1), one(2)],
        "headlines": {"ttft_p99": figure}});
    let repeats: Repeats = serde_json::from_value(repeats).unwrap();
    let page = crate::repeats_markdown(&repeats);
    assert!(page.starts_with("## Repeated runs: suspect\n"), "{page}");
    let row = "| TTFT p99, ms | 200.0 | 180.0 | 220.0 | 10.00 | 5.0 | 190.0 | 210.0 | 2 |\n";
    assert!(page.contains(row), "{page}");
    let row =
        "| repeat-2 | 43 | 60.0 s | 1,199 | – | – | 212.0 | valid, not used: nothing measured |";
    assert!(page.contains(row), "{page}");
    check(&page);
    let xml = crate::repeats_junit(&repeats);
    assert!(xml.contains("tests=\"2\" failures=\"0\" errors=\"1\""), "{xml}");
}
