use proptest::prelude::*;

use super::*;

fn one(text: &str) -> Gate {
    Gate::try_from(text.to_owned()).unwrap()
}

fn gate(metric: &str, limit: Limit, change: f64) -> Gate {
    Gate { metric: metric.to_owned(), limit, change }
}

fn error(text: &str) -> String {
    Gate::parse_all(text).unwrap_err().0
}

#[test]
fn conditions_read_as_people_write_them() {
    let both = Gate::parse_all("p99 ttft < +5%, goodput > -3%").unwrap();
    let expected = [gate("ttft_p99", Limit::Below, 0.05), gate("goodput_rps", Limit::Above, -0.03)];
    assert_eq!(both, expected);
    for same in
        ["p99 ttft<5%", "TTFT P99 <= +5 %", "ttft_p99 ≤ 5.0%", "time-to-first-token p99 < +5%"]
    {
        assert_eq!(one(same), gate("ttft_p99", Limit::Below, 0.05), "{same}");
    }
    for same in ["goodput_rps>=-3%", "Goodput ≥ −3%", "goodput > – 3%", "goodput > -3.00%"] {
        assert_eq!(one(same), gate("goodput_rps", Limit::Above, -0.03), "{same}");
    }
    for (words, name) in [
        ("output tokens/s", "output_tokens_per_s"),
        ("output_tokens_per_s", "output_tokens_per_s"),
        ("Output Tokens per second", "output_tokens_per_s"),
        ("total tok/s", "total_tokens_per_s"),
        ("rps", "requests_per_s"),
        ("requests/s", "requests_per_s"),
        ("errors", "error_share"),
        ("error_share", "error_share"),
        ("attainment", "attainment"),
        ("median tpot", "tpot_p50"),
        ("mean ttft", "ttft_mean"),
        ("p99.9 e2e", "e2e_p99.9"),
        ("e2el p90", "e2e_p90"),
        ("itl-p50", "itl_p50"),
        ("characters/s", "characters_per_s"),
    ] {
        assert_eq!(one(&format!("{words} < 1%")).metric, name, "{words}");
    }
}

#[test]
fn a_share_is_limited_in_points() {
    assert_eq!(one("attainment > -0.5%").change.to_bits(), (-0.005_f64).to_bits());
    assert_eq!(one("errors < +1%").change.to_bits(), 0.01_f64.to_bits());
    assert!(error("errors < +101%").contains("in points"), "{}", error("errors < +101%"));
    assert_eq!(one("p99 ttft < +101%").change.to_bits(), 1.01_f64.to_bits());
}

#[test]
fn errors_name_the_piece_what_is_known_and_an_example() {
    let unknown = error("p99 ttft < 5%, speed > 3%");
    assert!(unknown.starts_with("gate 2, `speed > 3%`: `speed` is not a figure"), "{unknown}");
    assert!(unknown.contains("ttft, tpot, itl, e2e"), "{unknown}");
    assert!(unknown.contains("goodput_rps, attainment, error_share"), "{unknown}");
    assert!(unknown.ends_with("`p99 ttft < +5%, goodput > -3%`"), "{unknown}");
    for (text, part) in [
        ("", "is empty"),
        ("p99 ttft < 5%,", "gate 2, ``: the condition is empty"),
        ("p99 ttft", "`<` or `>` is missing"),
        ("ttft < 5%", "expected a percentile of it, as in `p99 ttft`"),
        ("p99 goodput < 5%", "expected it without `p99`"),
        ("p50 p99 ttft < 5%", "two percentiles"),
        ("p100 ttft < 5%", "not a figure"),
        ("mode ttft < 5%", "not a figure"),
        ("p99 ttft < 5", "has no `%`"),
        ("p99 ttft < 500ms", "has no `%`"),
        ("p99 ttft < %", "is not a number"),
        ("p99 ttft < nan%", "is not a number"),
        ("p99 ttft < infe%", "is not a number"),
        ("p99 ttft < 1e3%", "is not a number"),
        ("p99 ttft < +-3%", "is not a number"),
        ("p99 ttft > -100%", "out of range"),
        ("p99 ttft < 10001%", "out of range"),
        ("p99 ttft < 0.00000000001%", "too small"),
        ("p99 ttft < 5%, ttft p99 <= 6%", "`p99 ttft < +5%` already limits the same figure"),
        ("p99 ttft <> 5%", "is not a number"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
    let hostile = error(&format!("\u{1b}[31m{} < 5%", "x".repeat(10_000)));
    assert!(hostile.len() < 1_000 && !hostile.contains('\u{1b}'), "{hostile}");
    assert!(Gate::try_from("p99 ttft < 5%, rps > 0%".to_owned()).is_err());
    assert!(error(&"p99 ttft < 5%,".repeat(10_000)).len() < 1_000);
}

#[test]
fn a_figure_may_be_limited_on_both_sides() {
    let both = Gate::parse_all("goodput > -3%, goodput < +3%").unwrap();
    assert_eq!(both.len(), 2);
}

#[test]
fn text_is_what_is_typed() {
    for text in [
        "p99 ttft < +5%",
        "p99.9 e2e < +0.1%",
        "goodput_rps > -3%",
        "attainment > -0.5%",
        "requests_per_s > 0%",
        "p50 tpot < +120%",
        "p50 tpot < -12.5%",
        "p50 itl < +1000%",
    ] {
        assert_eq!(one(text).to_string(), text);
    }
    assert_eq!(one("rps > -0%").change.to_bits(), 0.0_f64.to_bits());
    let json = serde_json::to_string(&one("p99 ttft < 5%")).unwrap();
    assert_eq!(json, "\"p99 ttft < +5%\"");
    assert_eq!(serde_json::from_str::<Gate>(&json).unwrap(), one("p99 ttft < 5%"));
    // What no text can say does not panic.
    for change in [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE] {
        assert!(gate("ttft_p99", Limit::Below, change).to_string().ends_with('%'));
    }
}

proptest! {
    #[test]
    fn every_gate_reads_back_to_the_bit(
        name in prop::sample::select(vec!["ttft_p99", "e2e_p99.9", "tpot_p50", "rps"]),
        is_below: bool,
        digits in 1_u64..(1 << 53),
        exponent in -24_i32..2,
        is_negative: bool,
    ) {
        let size = digits as f64 * 10_f64.powi(exponent);
        prop_assume!(size > 1e-9 && size < 100.0);
        let change = if is_negative { -(size % 1.0) } else { size };
        prop_assume!(change.abs() >= 1e-9);
        let name = if name == "rps" { "requests_per_s" } else { name };
        let limit = if is_below { Limit::Below } else { Limit::Above };
        let gate = gate(name, limit, change);
        let read = Gate::try_from(gate.to_string()).unwrap();
        prop_assert_eq!(read.change.to_bits(), change.to_bits());
        prop_assert_eq!(read, gate);
    }

    #[test]
    fn no_text_is_too_much(text in "\\PC{0,60}", pieces in "[p0-9a-z <>=%+−,._/-]{0,60}") {
        for text in [text, pieces] {
            if let Ok(gates) = Gate::parse_all(&text) {
                for gate in gates {
                    prop_assert_eq!(Gate::try_from(gate.to_string()).unwrap(), gate);
                }
            }
        }
    }
}

fn finding(metric: &str, side: u32, ends: Option<(f64, f64)>) -> Finding {
    Finding {
        metric: metric.to_owned(),
        side,
        level: 0,
        n: 6,
        reference: 100.0,
        candidate: 101.0,
        change: 0.01,
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
        confidence: 0.95,
        p: None,
        wilcoxon_p: None,
        hodges_lehmann: None,
        sd: None,
        is_tested: true,
        margin: 0.03,
        outcome: FigureOutcome::Inconclusive,
        further_blocks: None,
        is_doubtful: false,
    }
}

fn judged(text: &str, metric: &str, ends: (f64, f64)) -> FigureOutcome {
    let results = judge_gates(&[one(text)], &[finding(metric, 1, Some(ends))]);
    assert_eq!(results.len(), 1);
    results[0].outcome
}

#[test]
fn a_gate_holds_where_the_whole_interval_does() {
    use FigureOutcome::{Equivalent, Inconclusive, Worse};
    let ttft = |ends| judged("p99 ttft < +5%", "ttft_p99", ends);
    assert_eq!(ttft((-0.02, 0.049)), Equivalent);
    assert_eq!(ttft((0.01, 0.049)), Equivalent, "a little worse is allowed");
    assert_eq!(ttft((-0.04, -0.01)), Equivalent, "a gate says nothing about zero");
    assert_eq!(ttft((-0.02, 0.05)), Inconclusive, "the limit itself is outside");
    assert_eq!(ttft((0.05, 0.08)), Worse);
    assert_eq!(ttft((f64::NAN, f64::NAN)), Inconclusive);
    let goodput = |ends| judged("goodput > -3%", "goodput_rps", ends);
    assert_eq!(goodput((-0.029, 0.02)), Equivalent);
    assert_eq!(goodput((0.001, 0.02)), Equivalent);
    assert_eq!(goodput((-0.03, 0.02)), Inconclusive);
    assert_eq!(goodput((-0.06, -0.03)), Worse);
    // A limit on a gain: too good to be true is missed, and a loss is not a gain.
    let most = |ends| judged("goodput < +5%", "goodput_rps", ends);
    assert_eq!(most((0.06, 0.09)), Worse);
    assert_eq!(most((-0.09, -0.06)), Equivalent);
    assert_eq!(most((0.01, 0.02)), Equivalent);
}

#[test]
fn a_gate_without_a_figure_does_not_hold() {
    let gates = Gate::parse_all("p99 ttft < +5%, attainment > -1%").unwrap();
    let refused = Finding {
        outcome: FigureOutcome::NoVerdict,
        ..finding("ttft_p99", 1, Some((-0.01, 0.01)))
    };
    let results = judge_gates(&gates, &[refused, finding("ttft_p99", 2, None)]);
    let outcomes: Vec<_> = results.iter().map(|result| (result.side, result.outcome)).collect();
    assert_eq!(outcomes, [1, 2, 1, 2].map(|side| (side, FigureOutcome::NoVerdict)));
    assert_eq!(results[0].high, Some(0.01), "its interval is shown all the same");
    assert_eq!(results[2].change, None);
    assert!(judge_gates(&gates, &[]).is_empty());
    // What is not in the family has an interval of its own choice.
    let described = Finding { is_tested: false, ..finding("ttft_p99", 1, Some((-0.01, 0.01))) };
    assert_eq!(judge_gates(&gates, &[described])[0].outcome, FigureOutcome::NoVerdict);
}
