//! What the statistics say of runs whose truth is known, from the command line to the page.
//!
//! Runs of one test go on side by side. What is asserted differs by hundreds of milliseconds, so that
//! a client on a busy machine may be late.

use crate::support::mock::MockProcess;
use crate::support::{Outcome, Session, about_time, at, number, percentile, signal, timed};
use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::Value;

/// Nothing is asked of the server ahead of the run, so that its faults begin with it.
const PLAIN: [&str; 10] = [
    "--canary",
    "off",
    "--model",
    "mock",
    "--no-probe",
    "--no-length-check",
    "--input-tokens",
    "30",
    "--out",
    "out",
];

/// A run with these arguments in a folder of its own.
fn run(target: &str, args: &[&str]) -> (Session, Outcome) {
    let session = Session::new();
    let outcome = run_in(&session, target, args);
    (session, outcome)
}

fn run_in(session: &Session, target: &str, args: &[&str]) -> Outcome {
    session.run(&[&["run", target, "-v"], &PLAIN[..], args].concat())
}

/// Several runs at the same time.
fn together<const N: usize>(runs: [(&str, &[&str]); N]) -> [(Session, Outcome); N] {
    std::thread::scope(|scope| {
        runs.map(|(target, args)| scope.spawn(move || run(target, args)))
            .map(|thread| thread.join().unwrap())
    })
}

fn summary(session: &Session) -> Value {
    let text = std::fs::read_to_string(session.path("out/summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn caveat<'a>(summary: &'a Value, code: &str) -> Option<&'a Value> {
    summary["caveats"].as_array().unwrap().iter().find(|caveat| caveat["code"] == code)
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_else(|| panic!("{path} is {}", at(value, path)))
}

/// Every interval holds its figure, and no figure claims more than its samples can say.
fn assert_percentiles(summary: &Value) {
    for (name, metric) in summary["metrics"].as_object().unwrap() {
        let n = number(metric, "n");
        for (percent, found) in metric["percentiles"].as_object().unwrap() {
            let context = format!("{name} p{percent} of {n}: {found}");
            let end = |name: &str| found[name].as_f64();
            if let (Some(low), Some(value)) = (end("low"), end("value")) {
                assert!(low <= value, "{context}");
            }
            if let (Some(high), Some(value)) = (end("high"), end("value")) {
                assert!(value <= high, "{context}");
            }
            assert!(end("n_eff").is_none_or(|n_eff| n_eff <= n), "{context}");
            let needed = match percent.as_str() {
                "50" => 20.0,
                "75" => 40.0,
                "90" => 100.0,
                "95" => 200.0,
                "99" => 1_000.0,
                "99.9" => 100_000.0,
                _ => continue,
            };
            assert!(n >= needed || found["quality"] != "ok", "{context}");
            let is_known = end("low").is_some() || found["is_censored"] == true;
            assert!(found["quality"] != "ok" || is_known, "{context}");
        }
    }
}

/// The row of the page with this label, in words.
fn row<'a>(page: &'a str, label: &str) -> Vec<&'a str> {
    let line = page.lines().find(|line| line.starts_with(&format!("{label} ")));
    line.unwrap_or_else(|| panic!("no {label}: {page}")).split_whitespace().collect()
}

#[test]
fn a_cold_start_is_cut_or_told_of() {
    timed(|| {
        let cold = "mock:ttft=20ms,itl=1ms,slots=1000,fault=slow-headers=400ms:100%@0s+5s";
        let warm = "mock:ttft=20ms,itl=1ms,slots=1000";
        let load = ["--rate", "50", "--duration", "20s", "--max-tokens", "2"];
        let judged = ["--warmup", "auto", "--early-stopping", "--slo", "p90 ttft < 10s, ttft < 5s"];
        let page = [&load[..], &judged].concat();
        let data = [&load[..], &judged, &["--json"]].concat();
        let whole = [&load[..], &["--warmup", "0s"]].concat();
        let [cut, told, clean] = together([(cold, &page), (cold, &whole), (warm, &data)]);

        let found = summary(&cut.0);
        // The window begins at a whole nanosecond.
        let (start, cut_s) = (number(&found, "window.start_s"), number(&found, "window.cut.cut_s"));
        assert!((start - cut_s).abs() < 2e-9, "{}", found["window"]);
        about_time(|| {
            assert!((0.5..=9.0).contains(&number(&found, "window.start_s")), "{}", found["window"]);
        });
        let ttft = at(&found, "window.cut.series.ttft");
        about_time(|| {
            assert!(number(ttft, "before") > number(ttft, "after") + 200.0, "{ttft}");
            assert!(number(ttft, "cut_s") > 0.0, "{ttft}");
        });
        // At 50 requests/s; what chance may add or take is far less than half.
        let cut_requests = 50.0 * number(&found, "window.start_s");
        let warmup = number(&found, "requests.warmup");
        about_time(|| {
            assert!((0.5..2.0).contains(&(warmup / cut_requests)), "{warmup} of {cut_requests}");
        });
        // The last bin of the cold start may be left: a third of a second of fifteen.
        about_time(|| {
            assert!(percentile(&found, "ttft", "95") < 400.0, "{}", at(&found, "metrics.ttft"));
        });
        let all = warmup + number(&found, "requests.scheduled");
        assert!((800.0..1_200.0).contains(&all), "{all}");
        about_time(|| assert!(caveat(&found, "cold_start").is_none()));
        assert_percentiles(&found);

        let found = summary(&told.0);
        assert_eq!(
            (number(&found, "window.start_s"), at(&found, "window.cut")),
            (0.0, &Value::Null)
        );
        let caveat_ = about_time(|| {
            caveat(&found, "cold_start").unwrap_or_else(|| panic!("{}", found["caveats"]))
        });
        assert!(text(caveat_, "advice").contains("--warmup"), "{caveat_}");
        assert!(text(caveat_, "message").contains("TTFT"), "{caveat_}");
        assert_eq!(caveat_["severity"], "warn");
        about_time(|| assert!(number(&found, "metrics.ttft.max") > 400.0));

        // A hiccup of this machine in the first seconds looks like a cold start, but not each time.
        let is_whole = |(session, _): &(Session, Outcome)| {
            number(&summary(session), "window.cut.cut_s") == 0.0
        };
        let again = std::iter::repeat_with(|| run(warm, &data)).take(3);
        let mut clean = std::iter::once(clean).chain(again);
        let clean = about_time(|| clean.find(is_whole).unwrap());
        let found = summary(&clean.0);
        assert_eq!(number(&found, "requests.warmup"), 0.0);
        about_time(|| assert!(caveat(&found, "cold_start").is_none()));

        // What a run printed is what a report of it prints.
        for (session, outcome, flags) in
            [(&cut.0, &cut.1, &[][..]), (&clean.0, &clean.1, &["--json"])]
        {
            let report = session.run(&[&["report", "out", "-v"], flags].concat());
            assert_eq!((report.code, report.stdout.as_str()), (Some(0), outcome.stdout.as_str()));
            assert!(report.stdout.len() > 2_000, "{}", report.stdout);
        }
        let saved = std::fs::read_to_string(cut.0.path("out/summary.json")).unwrap();
        assert_eq!(cut.0.run(&["report", "out", "--json"]).stdout, saved);
    });
}

#[test]
fn a_backlog_a_full_queue_and_a_shift_are_told_apart() {
    timed(|| {
        // Four at a time, 200 ms each: 20 requests/s, whenever the answers really leave.
        let server = "mock:ttft=200ms,slots=4";
        let small = "mock:ttft=200ms,slots=4,max_queue=5";
        // From the middle on answers wait.
        let shifting = "mock:ttft=20ms,slots=1000,fault=slow-headers=400ms:100%@10s";
        let common = ["--arrivals", "constant", "--max-tokens", "1", "--drain", "2s", "--quiet"];
        let at_rate = |rate, time| [&common[..], &["--rate", rate, "--duration", time]].concat();
        let [over, below, full, shifted] = together([
            (server, &at_rate("30", "32s")),
            (server, &at_rate("10", "32s")),
            (small, &at_rate("30", "32s")),
            (shifting, &at_rate("40", "20s")),
        ])
        .map(|(session, _)| summary(&session));

        about_time(|| {
            assert_eq!(at(&over, "saturation.over_saturated"), true, "{}", over["saturation"]);
            // 30 come and 20 go. The client may have been late with a few.
            let growth = number(&over, "saturation.backlog_growth_per_s");
            assert!((9.0..=11.0).contains(&growth), "{growth}");
            let message = text(caveat(&over, "overloaded").expect("overloaded"), "message");
            assert!(message.contains("30.0 req/s offered"), "{message}");
            assert!(caveat(&over, "queue_saturated").is_none());
            assert_ne!(at(&over, "steadiness.state"), "steady");
            assert_eq!(at(&below, "steadiness.state"), "steady", "{}", below["steadiness"]);

            assert_eq!(at(&below, "saturation.over_saturated"), false, "{}", below["saturation"]);
            assert_eq!(at(&below, "saturation.queue_limited"), false, "{}", below["saturation"]);
            assert!(
                caveat(&below, "overloaded").is_none()
                    && caveat(&below, "queue_saturated").is_none()
            );

            assert_eq!(at(&full, "saturation.queue_limited"), true, "{}", full["saturation"]);
            // A third finds no place.
            let refused = number(&full, "saturation.refused_share");
            assert!((0.28..=0.38).contains(&refused), "{refused}");
            let message =
                text(caveat(&full, "queue_saturated").expect("queue_saturated"), "message");
            assert!(message.contains("of the requests away (429, 503)"), "{message}");
            assert!(caveat(&full, "overloaded").is_none(), "{}", full["caveats"]);
            // A thousand answers take half as many requests more.
            let advice = text(caveat(&full, "few_samples").expect("few_samples"), "advice");
            assert!(advice.starts_with("--duration 5"), "{advice}");

            assert_eq!(at(&shifted, "steadiness.state"), "shifted", "{}", shifted["steadiness"]);
            // The server's time began a little before that of the run.
            let at_s = number(&shifted, "steadiness.shift.at_s");
            assert!((6.0..=11.0).contains(&at_s), "{at_s}");
            let (before, after) = ("steadiness.shift.before", "steadiness.shift.after");
            assert!(
                number(&shifted, after) > 2.0 * number(&shifted, before),
                "{}",
                shifted["steadiness"]
            );
            let message = text(caveat(&shifted, "level_shift").expect("level_shift"), "message");
            assert!(message.contains(&format!("changes its level at {at_s:.0} s")), "{message}");
        });
    });
}

#[test]
fn a_figure_says_how_much_it_is_worth() {
    timed(|| {
        let target = "mock:ttft=uniform:100ms:900ms,itl=1ms,slots=1000";
        let (few, many) = (["--num-requests", "300"], ["--num-requests", "1500"]);
        let load = ["--rate", "200", "--max-tokens", "2"];
        let stopping = [&load[..], &few, &["--early-stopping"]].concat();
        let [few, many, stopping] = together([
            (target, &[&load[..], &few].concat()),
            (target, &[&load[..], &many].concat()),
            (target, &stopping),
        ]);

        let found = summary(&few.0);
        assert_percentiles(&found);
        let p99 = at(&found, "metrics.ttft.percentiles")["99"].clone();
        assert!(matches!(text(&p99, "quality"), "few" | "rough"), "{p99}");
        about_time(|| assert!(number(&p99, "value") > 700.0, "{p99}"));
        assert_eq!(
            text(&at(&found, "metrics.ttft.percentiles")["99.9"], "quality"),
            "not_estimable"
        );
        // TTFT, n, mean, six percentiles and the largest.
        let ttft = row(&few.1.stdout, "TTFT");
        assert_eq!((ttft.len(), ttft[8]), (10, "n/e"), "{ttft:?}");
        // What a stall of the client spoiled is cut.
        about_time(|| assert_eq!(ttft[1], "300", "{ttft:?}"));
        assert!(ttft[7] == "n/e" || ttft[7].starts_with('~'), "{ttft:?}");
        assert!(ttft[3].parse::<f64>().is_ok(), "{ttft:?}");
        let advice = text(caveat(&found, "few_samples").expect("few_samples"), "message");
        assert!(advice.contains("p99 needs 1000"), "{advice}");
        assert_eq!(at(&found, "metrics.ttft.percentiles")["90"]["early_stopping"], Value::Null);
        assert!(!few.1.stdout.contains("early stopping"), "{}", few.1.stdout);

        let found = summary(&many.0);
        assert_percentiles(&found);
        about_time(|| {
            assert_eq!(text(&at(&found, "metrics.ttft.percentiles")["50"], "quality"), "ok");
        });
        // Evenly between 100 and 900 ms: four standard errors of a median of 1,500 are 41 ms.
        let p50 = percentile(&found, "ttft", "50");
        about_time(|| assert!((440.0..=620.0).contains(&p50), "{p50}"));
        assert!(row(&many.1.stdout, "TTFT")[3].parse::<f64>().is_ok());
        assert!(!row(&many.1.stdout, "TTFT")[8].starts_with(char::is_numeric));

        let found = summary(&stopping.0);
        for percent in ["50", "75", "90", "95"] {
            let found = &at(&found, "metrics.ttft.percentiles")[percent];
            assert!(
                number(found, "early_stopping") >= number(found, "value"),
                "p{percent}: {found}"
            );
        }
        // 662 requests are the fewest that MLPerf takes for p99.
        assert_eq!(at(&found, "metrics.ttft.percentiles")["99"]["early_stopping"], Value::Null);
    });
}

#[test]
fn a_time_limit_is_a_bound_and_no_value() {
    timed(|| {
        // Every tenth answer would take ten seconds.
        let target = "mock:ttft=20ms,slots=1000,fault=slow-headers=10s:1/10";
        let load =
            ["--rate", "200", "--num-requests", "500", "--max-tokens", "1", "--timeout", "3s"];
        let (session, outcome) = run(target, &[&load[..], &["--percentiles", "50,88,95"]].concat());
        let found = summary(&session);
        assert_eq!(
            (number(&found, "requests.errors.timeout"), number(&found, "requests.ok")),
            (50., 450.)
        );
        about_time(|| assert_eq!(number(&found, "metrics.ttft.censored"), 50.0));
        assert_percentiles(&found);
        let percentiles = at(&found, "metrics.ttft.percentiles");
        let (p50, p88, p95) = (&percentiles["50"], &percentiles["88"], &percentiles["95"]);
        let ttft = row(&outcome.stdout, "TTFT");
        about_time(|| {
            assert_eq!(
                (&p50["is_censored"], &p50["high_is_censored"]),
                (&false.into(), &false.into())
            );
            // 440 of 500 are below p88, and by chance up to 468 (1.96 standard deviations): there the
            // limit stands.
            assert_eq!(
                (&p88["is_censored"], &p88["high_is_censored"]),
                (&false.into(), &true.into())
            );
            assert!(number(p88, "value") < 3_000.0 && p88["high"].is_null(), "{p88}");
            assert_eq!((&p95["is_censored"], &p95["value"]), (&true.into(), &Value::Null));
            assert!(ttft[5].ends_with(">limit") && ttft[6] == ">limit", "{ttft:?}");
        });
        assert_eq!(ttft[2], "–", "no mean of what is not known: {ttft:?}");
    });
}

/// A file of two classes with these answer lengths.
fn two_classes(outputs: [u32; 2]) -> String {
    let class = |(name, output): (&str, u32)| {
        format!(
            "[[class]]\nname = \"{name}\"\nshare = 0.5\n[class.source]\nkind = \"synthetic\"\n\
             input = \"30\"\noutput = \"{output}\"\n"
        )
    };
    ["short", "long"].into_iter().zip(outputs).map(class).collect()
}

#[test]
fn two_kinds_of_requests_are_no_one_distribution() {
    timed(|| {
        // 40 ms with the first token and 20 ms with each other one: 60 ms and 620 ms.
        let target = "mock:ttft=40ms,itl=20ms,slots=1000";
        let load = ["--rate", "100", "--num-requests", "400", "--workers", "2", "--canary", "off"];
        let of = |flag: &str, name: &str, text: String| {
            let session = Session::new();
            std::fs::write(session.path(name), text).unwrap();
            let (outcome, found) = session.measure(target, &[&load[..], &[flag, name]].concat());
            (found, outcome.stdout)
        };
        let pairs = |rows: &str| of("--lengths", "pairs.csv", format!("input,output\n{rows}"));
        let classes = |outputs| of("--workload", "mix.toml", two_classes(outputs)).0;
        let ((two, printed), (one, _), mixed, equal) = std::thread::scope(|scope| {
            let two = scope.spawn(|| pairs("30,2\n100,30\n300,30\n"));
            let one = scope.spawn(|| pairs("30,30\n"));
            let mixed = scope.spawn(|| classes([2, 30]));
            let equal = classes([10, 10]);
            (two.join().unwrap(), one.join().unwrap(), mixed.join().unwrap(), equal)
        });
        about_time(|| {
            let message = text(caveat(&two, "bimodal").expect("bimodal"), "message");
            assert!(message.starts_with("E2E has two groups"), "{message}");
            assert!(caveat(&one, "bimodal").is_none() && caveat(&one, "bimodal_mix").is_none());
            assert!(
                text(caveat(&mixed, "bimodal_mix").expect("mix"), "message").contains("`long`")
            );
            assert!(caveat(&mixed, "bimodal").is_none(), "{}", mixed["caveats"]);
            assert!(caveat(&equal, "bimodal").is_none() && caveat(&equal, "bimodal_mix").is_none());
        });

        assert_dimension(&two, &printed, "input_tokens", &["16–31", "64–127", "256–511"]);
        assert_dimension(&two, &printed, "output_tokens", &["2–3", "16–31"]);
        assert_dimension(&two, &printed, "worker", &["0", "1"]);
        assert!(at(&one, "breakdown.input_tokens").is_null(), "{}", one["breakdown"]);
    });
}

/// A dimension has these values, in this order, and loses no request.
fn assert_dimension(summary: &Value, printed: &str, name: &str, values: &[&str]) {
    let slices = summary["breakdown"][name].as_object().expect(name);
    assert_eq!(slices.len(), values.len(), "{name}: {slices:?}");
    let sum: f64 = slices.values().map(|slice| number(slice, "scheduled")).sum();
    assert_eq!(sum, number(summary, "requests.scheduled"), "{name}");
    let breakdown = printed.find("\"breakdown\"").unwrap();
    let begin = breakdown + printed[breakdown..].find(&format!("\"{name}\"")).unwrap();
    let places: Vec<_> =
        values.iter().map(|value| printed[begin..].find(&format!("\"{value}\": {{"))).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{name}: {places:?}");
}

#[test]
fn a_column_of_numbers() {
    let session = Session::new();
    let write = |name: &str, text: &str| std::fs::write(session.path(name), text).unwrap();
    // 1 to 1,000 in an order without a trend: 619 and 1,000 have no common factor.
    let values: Vec<u32> = (0..1_000).map(|i| i * 619 % 1_000 + 1).collect();
    let lines =
        |value: &dyn Fn(u32) -> String| values.iter().map(|v| value(*v)).collect::<String>();
    write("bare.txt", &lines(&|v| format!("{v}\n")));
    write("table.csv", &lines(&|v| format!("{}x,{v}\n", v % 7)).replacen("", "name,ms\n", 1));
    let stats = |args: &[&str]| -> Value {
        let outcome = session.run(&[&["stats"], args, &["--json"]].concat());
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
        serde_json::from_str(&outcome.stdout).unwrap()
    };
    let bare = stats(&["bare.txt", "--early-stopping"]);
    assert_eq!(bare["schema"], "goodput.column/1");
    let metric = &bare["metric"];
    assert_eq!((&metric["n"], &metric["mean"]), (&1_000.into(), &500.5.into()));
    for (percent, value) in
        [("50", 500.0), ("75", 750.0), ("90", 900.0), ("99", 990.0), ("99.9", 999.0)]
    {
        let found = &metric["percentiles"][percent];
        assert_eq!(number(found, "value"), value, "p{percent}");
        let stopping = found["early_stopping"].as_f64();
        assert!(stopping.is_none_or(|stopping| stopping >= value), "p{percent}: {found}");
    }
    assert!(metric["percentiles"]["90"]["early_stopping"].is_number());
    assert_eq!(metric["percentiles"]["99"]["quality"], "ok");
    assert_eq!(metric["percentiles"]["99.9"]["quality"], "rough");
    // By name, by number, and the only column of a bare file: the same.
    let plain = stats(&["bare.txt"]);
    assert_eq!(plain["metric"]["percentiles"]["90"]["early_stopping"], Value::Null);
    assert_eq!(stats(&["table.csv", "--column", "ms"]), plain);
    assert_eq!(stats(&["table.csv", "--column", "2"]), plain);

    let page = session.run(&["stats", "bare.txt"]).stdout;
    let found = row(&page, "value");
    assert_eq!(found[..8], ["value", "1000", "500.5", "500.0", "750.0", "900.0", "950.0", "990.0"]);
    assert_eq!(found[8..], ["~999.0", "1000.0"]);
}

#[test]
fn a_column_with_a_time_limit_and_a_short_one() {
    let session = Session::new();
    let write = |name: &str, text: &str| std::fs::write(session.path(name), text).unwrap();
    // A fifth is beyond the limit: 17 and 1,000 have no common factor.
    let value = |i: u32| i * 17 % 1_000 + 1;
    let line = |v: u32| if v > 800 { "inf\n".to_owned() } else { format!("{v}\n") };
    write("limit.txt", &(0..1_000).map(value).map(line).collect::<String>());
    let outcome = session.run(&["stats", "limit.txt", "--percentiles", "50,80,90"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let found = row(&outcome.stdout, "value");
    assert_eq!(found, ["value", "1000", "–", "500.0", "800.0", ">limit", ">limit"], "{found:?}");
    let to = outcome.stdout.lines().find(|line| line.trim_start().starts_with("to ")).unwrap();
    assert!(to.contains(">limit"), "{to}");

    // Of three values the median is known roughly, and nothing above it.
    write("three.txt", "1\n2\n3\n");
    let page = session.run(&["stats", "three.txt"]).stdout;
    assert_eq!(
        row(&page, "value")[1..],
        ["3", "2.00", "~2.00", "n/e", "n/e", "n/e", "n/e", "n/e", "3.00"]
    );
    assert!(!page.contains("times p50"), "{page}");
}

#[test]
fn a_column_that_is_none() {
    let session = Session::new();
    let write = |name: &str, text: &str| std::fs::write(session.path(name), text).unwrap();
    write("table.csv", "ms,who\n1,me\n2,you\n");
    write("words.txt", "time\nlong\n");
    write("empty.txt", "");
    write("header.csv", "ms,who\n");
    write("nan.txt", "1\nnan\n");
    write("below.txt", "1\n-inf\n");
    let cases: [(&[&str], &str); 9] = [
        (&["table.csv", "--column", "who"], "table.csv, line 2: `me` in column 2 is not a number"),
        (&["table.csv", "--column", "size"], "no column `size`; columns there: `ms`, `who`"),
        (&["table.csv", "--column", "3"], "line 2: the row has no column 3"),
        (&["words.txt"], "words.txt, line 2: `long` in column 1 is not a number"),
        (&["empty.txt"], "empty.txt: is empty"),
        (&["header.csv"], "only a header"),
        (&["nan.txt"], "line 2: `nan` in column 1 is not a number"),
        (&["below.txt"], "line 2: `-inf` in column 1 is not a number"),
        (&["missing.txt"], "missing.txt: cannot be opened"),
    ];
    for (args, error) in cases {
        let outcome = session.run(&[&["stats"], args].concat());
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(outcome.stderr.contains(error), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("\nhint: "), "{args:?}: {}", outcome.stderr);
    }
}

fn wait_for_records(session: &Session, bytes: u64) {
    let deadline = now() + Nanos::from_millis(20_000);
    let size = || std::fs::metadata(session.path("out/requests.log")).map_or(0, |m| m.len());
    while size() < bytes {
        assert!(now() < deadline, "no records after 20 s");
        pause(Nanos::from_millis(20));
    }
}

#[test]
fn a_server_that_dies_in_the_middle() {
    let session = Session::new();
    let mut server = MockProcess::start(&session, &["--set", "ttft=20ms", "--set", "slots=1000"]);
    let url = server.url();
    let load = ["--rate", "50", "--duration", "10s", "--max-tokens", "1", "--quiet"];
    let mut child = session.spawn(&[&["run", &url], &PLAIN[..], &load].concat());
    // The log is written once a second.
    wait_for_records(&session, 2_000);
    pause(Nanos::from_millis(1_500));
    server.kill();
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(5));
    let found = summary(&session);
    assert_eq!(found["verdict"], "void", "{}", found["caveats"]);
    let errors = caveat(&found, "errors").unwrap_or_else(|| panic!("{}", found["caveats"]));
    assert_eq!(errors["severity"], "void");
    assert!(number(&found, "requests.ok") > 20.0 && number(&found, "requests.failed") > 100.0);
}

#[test]
fn a_run_stopped_at_once_is_not_valid() {
    let session = Session::new();
    let load = ["--rate", "20", "--duration", "60s", "--max-tokens", "1", "--quiet"];
    let mut child = session.spawn(&[&["run", "mock:ttft=20ms"], &PLAIN[..], &load].concat());
    // About 20 requests: a second or two of sixty.
    wait_for_records(&session, 1_000);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let found = summary(&session);
    assert_ne!(found["verdict"], "valid", "{}", found["caveats"]);
    assert!(number(&found, "requests.ok") > 0.0, "{}", found["requests"]);
    let told = caveat(&found, "not_complete").expect("not_complete");
    assert_eq!(told["severity"], "warn", "{told}");
}
