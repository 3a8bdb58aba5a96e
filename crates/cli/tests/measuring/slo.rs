//! Promises kept, broken and undecided, from the command line to the exit code.

use crate::support::{Outcome, Session, about_time, at, number, timed};
use goodput_testkit::{Server, answer};
use serde_json::Value;

/// A hundred requests in two seconds: first token after 20 ms, then nine more, 2 ms apart.
const TARGET: &str = "mock:ttft=20ms,itl=2ms";
const LOAD: [&str; 8] =
    ["--rate", "50", "--arrivals", "constant", "--duration", "2s", "--max-tokens", "10"];

fn measure(session: &Session, args: &[&str]) -> (Outcome, Value) {
    session.measure(TARGET, &[&LOAD[..], args].concat())
}

/// A machine too busy for its own client makes the result void, whatever the SLO says.
fn assert_code(outcome: &Outcome, summary: &Value, expected: i32) {
    let is_void = at(summary, "verdict") == "void";
    let code = if is_void { 5 } else { expected };
    assert_eq!(outcome.code, Some(code), "{}\n{}", summary["slo"], outcome.stderr);
}

/// An SLO, an attainment asked for, and what comes of it.
type Case = (&'static str, Option<&'static str>, &'static str, i32);

fn judge(cases: &[Case]) {
    for (slo, target, state, code) in cases {
        let session = Session::new();
        let mut args = vec!["--slo", slo];
        args.extend(target.iter().flat_map(|target| ["--attainment", target]));
        let (outcome, summary) = measure(&session, &args);
        assert_eq!(at(&summary, "slo.state"), state, "{slo}: {}", summary["slo"]);
        assert_code(&outcome, &summary, *code);
    }
}

#[test]
fn promises_about_each_request_and_about_the_run() {
    judge(&[
        ("errors < 5%, rps > 10, output_tps > 100", None, "met", 0),
        // None of a hundred failed: that allows 4 %.
        ("errors < 1%", None, "undecided", 5),
        ("rps > 1000", None, "missed", 4),
        ("ttft < 2s, tpot < 1s", Some("80%"), "met", 0),
        ("ttft < 10ms", Some("80%"), "missed", 4),
        // A hundred requests cannot show that 999 of a thousand are good.
        ("ttft < 2s", Some("99.9%"), "undecided", 5),
        // Nothing is asked of single requests.
        ("ttft < 10ms", None, "reported", 0),
    ]);
}

#[test]
fn promises_about_percentiles() {
    judge(&[
        ("p50 ttft < 2s + 1ms/token", None, "met", 0),
        // A hundred requests have an interval of the 90th percentile, and none of the 99.9th.
        ("p90 ttft < 2s, p50 e2e < 4s", None, "met", 0),
        ("p90 ttft < 10ms", None, "missed", 4),
        ("p99.9 ttft < 2s", None, "undecided", 5),
        // One that is broken outweighs one that is undecided.
        ("p99.9 ttft < 2s, rps > 1000", None, "missed", 4),
    ]);
}

#[test]
fn goodput_is_attainment_times_the_rate() {
    timed(|| {
        let session = Session::new();
        let target = "mock:ttft=20ms,itl=2ms,fault=500:1/4";
        let args = ["--slo", "interactive", "--attainment", "0.9"];
        let (outcome, summary) = session.measure(target, &[&LOAD[..], &args].concat());
        assert_eq!(number(&summary, "slo.scheduled"), 100.0);
        // Every fourth fails, and the probe was the first of all.
        let failed = number(&summary, "requests.failed");
        assert!((24.0..=26.0).contains(&failed), "{failed}");
        assert_eq!(number(&summary, "slo.misses.failed"), failed);
        let late = number(&summary, "slo.misses.limits") + number(&summary, "slo.undetermined");
        assert_eq!(number(&summary, "slo.good"), 100.0 - failed - late);
        let attainment = number(&summary, "slo.attainment");
        let expected = attainment * number(&summary, "load.scheduled_rps");
        assert!((number(&summary, "slo.goodput_rps") - expected).abs() < 1e-9);
        about_time(|| {
            assert!(number(&summary, "slo.goodput_output_tps") > 0.0);
            assert_eq!(at(&summary, "slo.attainment_state"), "missed");
        });
        assert_code(&outcome, &summary, 4);
        // Ten tokens in 2 ms steps need no more than that, and a quarter has none.
        assert!(number(&summary, "slo.fluidity.fluid_share") <= 0.76);
        assert_eq!(number(&summary, "slo.fluidity.fluid_token_rate"), 0.0);
        // Months later the same is said, and a report never fails.
        let again = session.run(&["report", "out", "--json"]);
        assert_eq!(again.code, Some(0));
        let again: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!(again["slo"], summary["slo"]);
        let page = session.run(&["report", "out", "-v"]).stdout;
        for part in ["SLO         MISSED", "Goodput", "Fluidity", "errors < 1%: 2"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    });
}

#[test]
fn the_plan_keeps_it_and_may_be_judged_anew() {
    let session = Session::new();
    let short = ["--concurrency", "2", "--num-requests", "20", "--max-tokens", "3"];
    let plan = |args: &[&str], out: &str| {
        let all = [&["run", "mock:fast", "--quiet", "--out", out], &short[..], args].concat();
        let outcome = session.run(&all);
        assert!(matches!(outcome.code, Some(0 | 5)), "{}", outcome.stderr);
        std::fs::read_to_string(session.path(out).join("plan.toml")).unwrap()
    };
    let by_alias = plan(&["--goodput", "ttft:5000", "tpot:5000"], "one");
    assert!(by_alias.contains(r#"slo = "ttft <= 5s, tpot <= 5s""#), "{by_alias}");
    assert_eq!(by_alias, plan(&["--slo", "ttft:5000,tpot:5000"], "two"));
    let kept = plan(&["--slo", "mlperf-llama2-70b, e2e < 1m", "--attainment", "99.9%"], "three");
    assert!(kept.contains(r#"slo = "p99 ttft < 2s, p99 tpot < 200ms, e2e < 60s""#), "{kept}");
    assert!(kept.contains("attainment = 0.999"), "{kept}");
    let again = |args: &[&str], out: &str| {
        let plan = ["run", "--plan", "three/plan.toml", "--quiet", "--json", "--out", out];
        let outcome = session.run(&[&plan, args].concat());
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()
    };
    let same = again(&[], "four");
    assert_eq!(at(&same, "slo.slo"), "p99 ttft < 2s, p99 tpot < 200ms, e2e < 60s");
    let anew = again(&["--slo", "e2e < 30s", "--attainment", "50%"], "five");
    assert_eq!(
        (at(&anew, "slo.slo").as_str(), number(&anew, "slo.target")),
        (Some("e2e < 30s"), 0.5)
    );
    // A plan without one says nothing about it.
    assert!(!plan(&[], "six").contains("slo"));
}

#[test]
fn what_cannot_be_read_is_refused_with_advice() {
    let session = Session::new();
    let cases: [(&[&str], &str, &str); 8] = [
        (
            &["--slo", "p99 ttft < 500 parsecs"],
            "SLO term 1, `p99 ttft < 500 parsecs`",
            "write --slo",
        ),
        (
            &["--slo", "ttft < 5ms, speed > 3"],
            "SLO term 2, `speed > 3`: `speed` is not a metric",
            "--slo",
        ),
        (&["--slo", "ttft > 5ms"], "has an upper limit: expected `<` or `<=`", "--slo"),
        (&["--slo", ""], "SLO term 1, ``: expected a term", "--slo"),
        (&["--goodput", "ttft"], "or a preset (interactive,", "--slo"),
        (&["--attainment", "99%"], "needs an SLO", "add --slo"),
        (
            &["--slo", "e2e < 5s", "--attainment", "99"],
            "`99` is not a share of requests",
            "99% or --attainment 0.99",
        ),
        (&["--slo", "interactive", "--no-stream"], "without streaming", "use e2e"),
    ];
    for (args, message, hint) in cases {
        let outcome = session.run(&[&["run", "mock:fast", "--rate", "5"], args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{args:?}: {}", outcome.stderr);
        let said = outcome.stderr.lines().find(|line| line.starts_with("hint: "));
        assert!(said.is_some_and(|said| said.contains(hint)), "{args:?}: {}", outcome.stderr);
    }
    let both = session.run(&["run", "mock:fast", "--slo", "e2e < 1s", "--goodput", "ttft:5"]);
    assert_eq!(both.code, Some(2));
    // A plan with terms that cannot be read names them too.
    std::fs::write(session.path("plan.toml"), "[measure]\nslo = \"fast\"").unwrap();
    let outcome = session.run(&["run", "--plan", "plan.toml"]);
    assert_eq!(outcome.code, Some(2));
}

/// A server that answers `stream: true` with one object: it is named on every page, and a promise about
/// when tokens come is not kept by answers that do not say.
#[test]
fn a_server_that_does_not_stream_keeps_no_promise_about_tokens() {
    let body = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"hello there"},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":3,"completion_tokens":20,"total_tokens":23}}"#;
    let server = Server::start(move |_| vec![answer("200 OK", "application/json", body)]);
    let load = ["--rate", "50", "--duration", "1s", "--isl", "50", "--max-tokens", "20"];
    let own = ["--model", "m", "--no-length-check"];
    let measure = |session: &Session, args: &[&str]| {
        session.measure(&server.url(), &[&load[..], &own, args].concat())
    };
    let session = Session::new();
    let (outcome, summary) = measure(&session, &["--slo", "ttft < 2s", "--attainment", "80%"]);
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert_eq!(at(&summary, "slo.state"), "undecided", "{}", summary["slo"]);
    assert_eq!(summary["requests"]["whole"], summary["requests"]["ok"]);
    let has = |code: &str| {
        let caveats = summary["caveats"].as_array().unwrap();
        caveats.iter().find(|caveat| caveat["code"] == code).map(|caveat| &caveat["severity"])
    };
    // The SLO is about TTFT, and no answer has one.
    assert_eq!(has("not_streamed"), Some(&"void".into()), "{}", summary["caveats"]);
    // Fifty tokens were planned, and the server counts three.
    assert_eq!(has("input_length"), Some(&"warn".into()), "{}", summary["caveats"]);
    let page = session.run(&["report", "out", "-v"]).stdout;
    for words in ["chat, streaming requested, answers came whole", "UNDECIDED: answers came whole"]
    {
        assert!(page.contains(words), "{words}\n{page}");
    }
    for (args, expected) in [
        // Per-request figures, which were not requested, would be reported if there were any.
        (&["--slo", "ttft < 2s"][..], 5),
        (&["--slo", "p50 tpot < 1s"], 5),
        (&["--until", "p50 ttft ±50%"], 5),
        (&["--slo", "p50 e2e < 2s"], 0),
    ] {
        let (outcome, summary) = measure(&Session::new(), args);
        assert_code(&outcome, &summary, expected);
    }
}
