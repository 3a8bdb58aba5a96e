use proptest::prelude::*;

use super::*;

fn read(text: &str) -> String {
    text.parse::<Slo>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

fn refused(text: &str) -> String {
    match text.parse::<Slo>() {
        Ok(slo) => panic!("`{text}` is read as `{slo}`"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_grammar() {
    let cases = [
        ("p99 ttft < 500ms", "p99 ttft < 500ms"),
        ("p99  TTFT<500", "p99 ttft < 500ms"),
        ("mean tpot <= 0.05s", "mean tpot <= 50ms"),
        ("ttft < 2000ms", "ttft < 2s"),
        ("ttft < 1500ms", "ttft < 1500ms"),
        ("e2e < 2m", "e2e < 120s"),
        ("itl < 800us", "itl < 0.8ms"),
        ("max-gap ≤ 1s", "max_gap <= 1s"),
        ("errors < 1%", "errors < 1%"),
        ("errors <= 0%", "errors <= 0%"),
        ("error_rate < 0.01", "errors < 1%"),
        ("output_tps > 1000", "output_tps > 1000"),
        ("rps >= 20/s", "rps >= 20"),
        ("request_tokens_per_s > 20", "request_tokens_per_s > 20"),
        ("p5 request_tokens_per_s > 20", "p5 request_tokens_per_s > 20"),
        ("fluidity > 0.9, tpot < 50ms", "fluidity > 0.9, tpot < 50ms"),
        ("fluidity >= 1, itl < 50ms", "fluidity >= 1, itl < 50ms"),
        ("ttft < 200ms + 0.5ms/token", "ttft < 200ms + 0.5ms/token"),
        ("ttft < 0.5ms/token + 2s", "ttft < 2s + 0.5ms/token"),
        ("p99.9 e2e < 20ms/tok", "p99.9 e2e < 20ms/token"),
        ("ttft:p99:lt:500ms", "p99 ttft < 500ms"),
        ("ttft:lt:500ms", "ttft < 500ms"),
        ("tpot:mean:le:50", "mean tpot <= 50ms"),
        ("rps:gt:20, errors:le:1%", "rps > 20, errors <= 1%"),
        ("ttft:500,tpot:50", "ttft <= 500ms, tpot <= 50ms"),
        ("e2el:1000", "e2e <= 1s"),
        ("request_tokens_per_s:20", "request_tokens_per_s >= 20"),
        ("p99 ttft < 500ms, p50 ttft < 200ms", "p99 ttft < 500ms, p50 ttft < 200ms"),
        ("p99 ttft < 500ms, ttft < 2s", "p99 ttft < 500ms, ttft < 2s"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
        assert_eq!(read(expected), expected);
    }
}

#[test]
fn presets_are_their_terms() {
    for (name, terms) in Slo::PRESETS {
        assert_eq!(name.parse::<Slo>().unwrap(), terms.parse::<Slo>().unwrap());
    }
    assert_eq!(read("mlperf-llama2-70b"), "p99 ttft < 2s, p99 tpot < 200ms");
    assert_eq!(read("mlperf-deepseek-r1-interactive"), "p99 ttft < 1500ms, p99 tpot < 15ms");
    // A term next to a preset adds to it, or replaces its term.
    let expected = "ttft < 500ms, tpot < 30ms, errors < 1%, max_gap < 1s";
    assert_eq!(read("Interactive, tpot < 30ms, max_gap < 1s"), expected);
    assert_eq!(read("tpot < 30ms, interactive"), "tpot < 30ms, ttft < 500ms, errors < 1%");
    assert!(refused("interactive, batch").contains("term 1 already limits this figure"));
}

#[test]
fn errors_say_which_term_and_what_is_expected() {
    let cases = [
        ("", "SLO term 1, ``: expected a term like"),
        ("p99 ttft < 500ms,", "SLO term 2, ``: expected a term"),
        ("fast", "or a preset (interactive, batch, mlperf-llama2-70b"),
        ("p99 speed < 5", "`speed` is not a metric: expected ttft, ttfa"),
        ("q99 ttft < 5", "expected `mean` or a percentile like `p99`"),
        ("p100 ttft < 5", "expected `mean` or a percentile"),
        ("p0 ttft < 5", "expected `mean` or a percentile"),
        ("pNaN ttft < 5", "expected `mean` or a percentile"),
        ("ttft p99 very < 5", "expected a metric before the sign"),
        ("< 5", "expected a metric before the sign"),
        ("ttft < ", "expected a time above zero"),
        ("ttft < 0ms", "expected a time above zero"),
        ("ttft < -5ms", "expected a time above zero"),
        ("ttft < inf", "expected a time above zero"),
        ("ttft < 1e3", "expected a time above zero"),
        ("ttft < 5h", "expected a time above zero"),
        ("ttft < 99999999999s", "expected a time above zero"),
        ("ttft << 5", "expected a time above zero"),
        ("ttft > 500ms", "`ttft` has an upper limit: expected `<` or `<=`"),
        ("rps < 5", "`rps` has a lower limit: expected `>` or `>=`"),
        ("p99 errors < 1%", "`errors` is a figure of the whole run"),
        ("errors < 1", "expected a share like `1%` or `0.01`"),
        ("errors < 0%", "every run or no run would meet this"),
        ("errors < 101%", "every run or no run would meet this"),
        ("fluidity > 1, tpot < 5", "every run or no run would meet this"),
        ("fluidity > 0.9", "add a limit on tpot or itl"),
        ("rps > 0", "expected a positive number"),
        ("tpot < 50ms/token", "expected a plain time for `tpot`"),
        ("ttft < 1ms + 2ms", "expected a time, or a time and a time per token"),
        ("ttft:p99:below:5", "`METRIC:p99:lt:LIMIT`"),
        ("a:b:c:d:e", "`METRIC:p99:lt:LIMIT`"),
        ("ttft < 5ms, ttft < 5ms", "SLO term 2, `ttft < 5ms`: term 1 already limits this figure"),
        ("p99 ttft < 5, ttft:p99:le:6", "term 1 already limits this figure (`p99 ttft < 5ms`)"),
    ];
    for (text, expected) in cases {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    let hostile = refused(&format!("\u{1b}[2J{}", "x".repeat(10_000)));
    assert!(hostile.contains(r"`\u{1b}[2Jxxx") && hostile.len() < 700, "{hostile}");
    let many: Vec<String> = (1..40).map(|n| format!("p{n} ttft < 5")).collect();
    assert!(refused(&many.join(",")).contains("more than 32 terms"));
}

#[test]
fn limits_and_sides() {
    let slo: Slo = "p99 ttft < 2s, ttft < 200ms + 0.5ms/token, itl < 40ms".parse().unwrap();
    let limit = slo.limit_on(MetricName::Ttft).unwrap();
    assert_eq!((limit.limit_for(0), limit.limit_for(1000)), (200.0, 700.0));
    assert_eq!(slo.token_limit_ms(), Some(40.0));
    assert_eq!(slo.percentiles().collect::<Vec<_>>(), [99.0]);
    let sides = [
        (SloRelation::Below, [true, false, false]),
        (SloRelation::AtMost, [true, true, false]),
        (SloRelation::Above, [false, false, true]),
        (SloRelation::AtLeast, [false, true, true]),
    ];
    for (relation, expected) in sides {
        assert_eq!([1.0, 2.0, 3.0].map(|value| relation.holds(value, 2.0)), expected);
    }
}

fn terms() -> impl Strategy<Value = String> {
    let metric = prop::sample::select(vec!["ttft", "ttfa", "e2e"]);
    let statistic = prop_oneof![
        Just(String::new()),
        Just("mean ".to_owned()),
        (1u32..10_000).prop_map(|n| format!("p{} ", f64::from(n) / 100.0)),
    ];
    let limit = (0.000_01f64..1e6, prop::option::of(0.000_01f64..1e4));
    (statistic, metric, prop::bool::ANY, limit).prop_map(|(statistic, metric, strict, limit)| {
        let sign = if strict { "<" } else { "<=" };
        let more = limit.1.map_or(String::new(), |token| format!(" + {token}ms/token"));
        format!("{statistic}{metric} {sign} {}ms{more}", limit.0)
    })
}

proptest! {
    #[test]
    fn it_reads_back_what_it_writes(terms in prop::collection::vec(terms(), 1..4)) {
        let Ok(slo) = terms.join(", ").parse::<Slo>() else { return Ok(()) };
        prop_assert_eq!(slo.terms.len(), terms.len());
        prop_assert_eq!(&slo.to_string().parse::<Slo>().unwrap(), &slo);
    }

    #[test]
    fn hostile_text_is_refused_or_reads_back(
        text in "([pm0-9. ]{0,6}(ttft|tpot|errors|fluidity|rps)?[<>=:+,/%a-z0-9. µ≤-]{0,12}){0,4}",
    ) {
        if let Ok(slo) = text.parse::<Slo>() {
            prop_assert_eq!(&slo.to_string().parse::<Slo>().unwrap(), &slo);
        }
    }

    #[test]
    fn no_text_is_fatal(text in any::<String>()) {
        let _ = text.parse::<Slo>();
    }
}
