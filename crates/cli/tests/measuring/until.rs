//! `--until`: runs that end once enough is known, and runs that end before.

use crate::support::{Session, about_time, at, number, timed, undisturbed};
use serde_json::Value;

/// Answers so slow that the delays of a busy machine are small in comparison.
const STEADY: &str = "mock:ttft=200ms,itl=2ms";

/// Ends by this rule, whose figure stands alone from this many requests on.
fn ends_early(load: &[&str], until: &str, fewest: f64) {
    let session = Session::new();
    let rule = ["--until", until, "--min-duration", "1s", "--duration", "30s"];
    let (outcome, summary) =
        session.measure(STEADY, &[load, &rule, &["--max-tokens", "5", "--warmup", "0s"]].concat());
    outcome.assert_finished("ended by the rule");
    assert_eq!(at(&summary, "run.state"), "complete");
    // Stalls of the machine make the answers depend on each other, and then more of them are needed.
    about_time(|| assert_eq!(at(&summary, "run.ended_by"), "until"));
    let stopped = number(&summary, "run.stopped_s");
    assert!(stopped < 30.0, "{stopped}");
    // The window ends where sending did, in an open loop and in a closed one.
    assert_eq!(number(&summary, "window.end_s"), stopped);
    assert_eq!(at(&summary, "window.kind"), "steady");
    let rate = number(&summary, "requests.scheduled") / stopped;
    let sent = number(&summary, "load.scheduled_rps");
    assert!((rate - sent).abs() < 0.02 * rate, "{rate} {sent}");
    let goal = &summary["until"]["goals"][0];
    assert_eq!(goal["rule"], until);
    assert!(number(goal, "n") >= fewest, "{goal}");
    let is_short = |caveat: &Value| caveat["message"].as_str().unwrap().contains("before --until");
    assert!(!summary["caveats"].as_array().unwrap().iter().any(is_short), "{summary}");
    let plan = std::fs::read_to_string(session.path("out/plan.toml")).unwrap();
    assert!(
        plan.contains(&format!("until = \"{until}\"")) && plan.contains("min_duration = \"1s\"")
    );
    assert_eq!(session.run(&["report", "out", "--json"]).stdout, outcome.stdout);
    let page = session.run(&["report", "out", "-v"]).stdout;
    assert!(page.contains("ended by --until: the figures were known well"), "{page}");
}

#[test]
fn an_open_loop_ends_once_enough_is_known() {
    undisturbed(|| ends_early(&["--rate", "80"], "p95 ttft ±30%", 200.0));
}

#[test]
fn a_closed_loop_ends_once_enough_is_known() {
    // Users who keep step are slow together on a busy machine: a tail would take long.
    undisturbed(|| ends_early(&["--concurrency", "20"], "p50 ttft ±30%", 20.0));
}

#[test]
fn a_run_that_ends_before_it_knows_says_so() {
    let session = Session::new();
    let target = "mock:ttft=lognormal:50ms:1.5,itl=2ms";
    let rule = ["--until", "p95 ttft +-5%", "--min-duration", "1s", "--duration", "4s"];
    let load = ["--rate", "60", "--max-tokens", "5"];
    let (outcome, summary) = session.measure(target, &[&load[..], &rule].concat());
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert_eq!(at(&summary, "run.ended_by"), "plan");
    assert_eq!(at(&summary, "until.met"), false);
    assert_eq!(number(&summary, "window.end_s"), 4.0);
    let is_short = |caveat: &&Value| {
        caveat["message"].as_str().unwrap().contains("ended before --until was reached: p95 TTFT")
    };
    let caveat = summary["caveats"].as_array().unwrap().iter().find(is_short).unwrap();
    assert_eq!((&caveat["code"], &caveat["severity"]), (&"few_samples".into(), &"warn".into()));
    assert_eq!(session.run(&["report", "out", "--json"]).stdout, outcome.stdout);
}

#[test]
fn rules_that_cannot_be_kept_are_refused() {
    let session = Session::new();
    let cases: [(&[&str], &str); 7] = [
        (&["--rate", "5", "--until", "p95"], "`p95` is not a rule"),
        (&["--rate", "5", "--until", "p95 itl ±5%"], "is not a rule"),
        (&["--rate", "5", "--min-duration", "5s"], "--until"),
        (&["--rate", "inf", "--num-requests", "5", "--until", "p95 ttft ±5%"], "a burst"),
        (&["--schedule", "5s@5,5s@9", "--until", "p95 ttft ±5%"], "a changing rate"),
        (&["--rate", "5", "--no-stream", "--until", "p95 ttft ±5%"], "have no ttft"),
        (
            &["--rate", "5", "--until", "p95 e2e ±5%", "--min-duration", "9s", "--duration", "8s"],
            "longer than the run",
        ),
    ];
    for (args, expected) in cases {
        let outcome = session.run(&[&["run", "mock"], args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}");
        assert!(outcome.stderr.contains(expected), "{args:?}: {}", outcome.stderr);
    }
}

#[test]
fn what_it_takes_is_said_before() {
    let session = Session::new();
    let said = |args: &[&str]| session.run(&[&["run", "mock", "--dry-run"], args].concat()).stderr;
    let usual = said(&["--rate", "1"]);
    assert!(usual.contains("p95 TTFT to ±10 % needs about 810 requests: 14 min"), "{usual}");
    let asked = said(&["--rate", "100", "--until", "mean e2e ±5%"]);
    assert!(asked.contains("mean E2E to ±5 % needs about 500 requests: 5 s"), "{asked}");
    for args in [&["--concurrency", "4"][..], &["--rate", "1", "--quiet"]] {
        assert!(!said(args).contains("needs about"), "{args:?}");
    }
    // A target that does not answer is the first thing to say, and the only one.
    let gone = session.run(&["run", "http://127.0.0.1:1", "--rate", "1"]);
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(!gone.stderr.contains("needs about"), "{}", gone.stderr);
    let there = session.run(&["run", "mock", "--rate", "100", "--num-requests", "5", "--osl", "2"]);
    assert!(there.stderr.contains("p95 TTFT to ±10 % needs about"), "{}", there.stderr);
}

/// A point of a sweep that offers more than the server can do: it ends early, requests in flight
/// count as far as they are known, and it is not called interrupted.
#[test]
fn a_point_out_of_reach_is_given_up() {
    timed(|| {
        let session = Session::new();
        let load = ["run", "mock:slots=2,ttft=200ms,itl=2ms", "--rate", "30", "--max-tokens", "5"];
        let rest =
            ["--duration", "1s", "--warmup", "0s", "--slo", "p90 ttft < 400ms", "--out", "short"];
        session.run(&[&load[..], &rest].concat());
        let plan = std::fs::read_to_string(session.path("short/plan.toml")).unwrap();
        let plan = plan.replace("duration = \"1s\"", "duration = \"20s\"");
        let plan = plan.replace("[measure]\n", "[measure]\nstop_early = \"hopeless\"\n");
        std::fs::write(session.path("point.toml"), plan).unwrap();
        let outcome = session.run(&["run", "--plan", "point.toml", "--out", "out", "--json"]);
        let summary: Value = serde_json::from_str(&outcome.stdout).expect(&outcome.stderr);
        about_time(|| {
            assert_eq!(
                (at(&summary, "run.state"), at(&summary, "run.ended_by")),
                (&"complete".into(), &"hopeless".into())
            );
        });
        let stopped = number(&summary, "run.stopped_s");
        about_time(|| assert!(stopped < 20.0, "{stopped}"));
        assert_eq!(number(&summary, "window.end_s"), stopped);
        // A backlog of more than a second was not waited for.
        let cut = number(&summary, "requests.errors.cut_off");
        about_time(|| {
            assert!(cut >= 10.0 && number(&summary, "slo.failed_share") == 0.0, "{cut}");
            // Each of them had waited too long already, or says nothing.
            assert_eq!(number(&summary, "slo.misses.timed_out"), 0.0);
            assert_eq!(at(&summary, "slo.state"), "missed");
        });
        let page = session.run(&["report", "out", "-v"]).stdout;
        for said in ["ended early: the SLO was out of reach", "ended early: hopeless"] {
            assert!(page.contains(said), "{page}");
        }
        assert!(!page.contains("stopped before its planned end"), "{page}");
    });
}
