mod engines;

use std::fmt::Write;

use goodput_model::Buckets;
use proptest::prelude::*;

use super::ledger::LIMIT;
use super::*;
use crate::dialect::MappedSignal;

const VLLM: &str = include_str!("../../tests/pages/vllm.txt");

/// A follower that has seen the engine without its totals: those of the next page are all new.
fn fresh(gauge: &str) -> EndpointFollower {
    let mut follower = EndpointFollower::new(None);
    follower.read(gauge);
    assert!(follower.has_looked);
    follower
}

/// The numbers of a reading; distributions as count, sum and the first bucket with something in it.
fn shown(reading: &ServerReading) -> BTreeMap<&'static str, String> {
    let value = |value: &SignalValue| match value {
        SignalValue::Number(number) => number.to_string(),
        SignalValue::Buckets(Buckets { bounds, cumulative, sum, count }) => {
            let first = bounds.iter().zip(cumulative).find(|(_, count)| **count > 0.0);
            let first = first.map_or(String::new(), |(bound, count)| format!(" {count}<={bound}"));
            format!("n={count} sum={sum} of {}{first}", bounds.len())
        }
    };
    reading.values.iter().map(|(signal, of)| (signal.name(), value(of))).collect()
}

fn assert_shown(reading: &ServerReading, expected: &[(&'static str, &str)]) {
    let expected = expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    assert_eq!(shown(reading), expected);
}

fn number(reading: &ServerReading, signal: Signal) -> Option<f64> {
    match reading.values.get(&signal)? {
        SignalValue::Number(number) => Some(*number),
        SignalValue::Buckets(_) => None,
    }
}

/// A histogram of two buckets and a name.
fn histogram(name: &str, labels: &str, bound: &str, (few, all, sum): (u32, u32, f64)) -> String {
    let comma = if labels.is_empty() { "" } else { "," };
    format!(
        "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {few}\n{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {all}\n\
         {name}_count{{{labels}}} {all}\n{name}_sum{{{labels}}} {sum}\n"
    )
}

#[test]
fn totals_survive_restarts_and_new_series() {
    let mut follower = EndpointFollower::new(None);
    let mut totals = Vec::new();
    for (page, resets) in [
        ("vllm:prompt_tokens_total{engine=\"0\"} 1000\n", 0),
        ("vllm:prompt_tokens_total{engine=\"0\"} 1010\n", 0),
        // A second engine, and the first one again.
        (
            "vllm:prompt_tokens_total{engine=\"0\"} 1011\nvllm:prompt_tokens_total{engine=\"1\"} 5\n",
            0,
        ),
        // The first began again; the second did not move.
        ("vllm:prompt_tokens_total{engine=\"0\"} 3\nvllm:prompt_tokens_total{engine=\"1\"} 5\n", 1),
        // Gone for a look, and back.
        ("vllm:prompt_tokens_total{engine=\"1\"} 6\n", 0),
        ("vllm:prompt_tokens_total{engine=\"0\"} 7\nvllm:prompt_tokens_total{engine=\"1\"} 6\n", 0),
        // No number for a look, and the same line twice: the last counts.
        (
            "vllm:prompt_tokens_total{engine=\"0\"} NaN\nvllm:prompt_tokens_total{engine=\"1\"} 6\n",
            0,
        ),
        ("vllm:prompt_tokens_total{engine=\"0\"} 1\nvllm:prompt_tokens_total{engine=\"0\"} 9\n", 0),
    ] {
        let reading = follower.read(page);
        assert_eq!(reading.resets, resets, "{page}");
        totals.push(number(&reading, Signal::PromptTokens).unwrap());
    }
    assert_eq!(totals, [0.0, 10.0, 16.0, 19.0, 20.0, 24.0, 24.0, 26.0]);
    // Empty pages yield nothing, and pages of others are not a first scrape.
    assert_eq!(follower.read("").values, BTreeMap::new());
    let mut late = EndpointFollower::new(None);
    assert_eq!(late.read("<html>not yet</html>\nup 1\n").malformed, 1);
    assert_eq!(late.engine(), "");
    assert_eq!(
        number(&late.read("vllm:prompt_tokens_total 1000\n"), Signal::PromptTokens),
        Some(0.0)
    );
    // A counter that was not a number in the first scrape starts with the next.
    let mut odd = EndpointFollower::new(None);
    odd.read("vllm:num_requests_running 0\nvllm:prompt_tokens_total NaN\n");
    assert_eq!(number(&odd.read("vllm:prompt_tokens_total 90\n"), Signal::PromptTokens), Some(0.0));
    assert_eq!(number(&odd.read("vllm:prompt_tokens_total 95\n"), Signal::PromptTokens), Some(5.0));
}

#[test]
fn several_servers_behind_one_address_have_no_totals() {
    // Two replicas that do nothing, in turn; what they ever did is not of this run.
    let page = |total: u32, started: Option<u32>| {
        let started = started.map(|at| format!("process_start_time_seconds {at}\n"));
        format!(
            "vllm:num_requests_running 4\nvllm:generation_tokens_total {total}\n{}{}",
            histogram("vllm:time_to_first_token_seconds", "", "0.5", (total, total, 1.0)),
            started.unwrap_or_default()
        )
    };
    let told = |looks: &[(u32, Option<u32>)]| {
        let mut follower = EndpointFollower::new(None);
        let mut told = Vec::new();
        for (total, started) in looks {
            let reading = follower.read(&page(*total, *started));
            let has_total = reading.values.contains_key(&Signal::GenerationTokens);
            assert_eq!(has_total, reading.values.contains_key(&Signal::Ttft));
            assert_eq!(has_total, !reading.of_several);
            assert_eq!(number(&reading, Signal::Running), Some(4.0));
            told.push(has_total);
        }
        told
    };
    // The third time that totals fall; each fall is one, whatever number of series fell.
    let turns = [(1000, None), (500, None)].repeat(4);
    assert_eq!(told(&turns), [true, true, true, true, true, false, false, false]);
    // Their starts tell at once: at the second look, or when the earlier one comes back.
    assert_eq!(told(&[(1000, Some(90)), (500, Some(50)), (1000, Some(90))]), [true, false, false]);
    assert_eq!(told(&[(1000, Some(50)), (500, Some(90)), (1000, Some(50))]), [true, true, false]);
    // One server that starts again time and again, and one whose start is worked out again.
    let anew: Vec<_> = (0..6).map(|n| (100 - n, Some(1000 + 10 * n))).collect();
    assert_eq!(told(&anew), [true; 6]);
    let same: Vec<_> = (0..6).map(|n| (100 + n, Some(1000 + n % 2))).collect();
    assert_eq!(told(&same), [true; 6]);
}

#[test]
fn the_fullest_engine_is_kept_next_to_the_mean() {
    let mut follower = EndpointFollower::new(None);
    let page = |shares: &[f64]| {
        shares.iter().zip(0..).fold(String::new(), |mut page, (share, engine)| {
            writeln!(page, "vllm:kv_cache_usage_perc{{engine=\"{engine}\"}} {share}").unwrap();
            page
        })
    };
    let mut read = |shares: &[f64]| {
        let reading = follower.read(&page(shares));
        [Signal::KvUsage, Signal::KvUsageMax].map(|signal| number(&reading, signal))
    };
    assert_eq!(read(&[0.0, 1.0, 0.5, 0.5]), [Some(0.5), Some(1.0)]);
    assert_eq!(read(&[0.75, f64::NAN]), [Some(0.75), None]);
    assert_eq!(read(&[0.25]), [Some(0.25), None]);
}

#[test]
fn histograms_survive_restarts_and_other_bounds() {
    let name = "vllm:time_to_first_token_seconds";
    let page = |bound: &str, one: (u32, u32, f64), other: Option<(u32, u32, f64)>| {
        let other = other.map(|other| histogram(name, "engine=\"1\"", bound, other));
        histogram(name, "engine=\"0\"", "0.5", one) + &other.unwrap_or_default()
    };
    let mut follower = EndpointFollower::new(None);
    follower.read(&page("0.5", (10, 20, 30.0), None));
    let reading = follower.read(&page("0.50", (11, 22, 31.0), Some((1, 1, 0.25))));
    assert_shown(&reading, &[("ttft", "n=3 sum=1.25 of 2 2<=0.5")]);
    // Both are below what they were: two servers that began again.
    let reading = follower.read(&page("0.5", (0, 1, 2.0), Some((0, 0, 0.0))));
    assert_shown(&reading, &[("ttft", "n=4 sum=3.25 of 2 2<=0.5")]);
    assert_eq!((reading.resets, reading.malformed), (2, 0));
    // Other bounds cannot be added.
    let mut follower = EndpointFollower::new(None);
    follower.read(&page("0.7", (1, 1, 1.0), Some((9, 9, 9.0))));
    let reading = follower.read(&page("0.7", (2, 3, 2.0), Some((19, 19, 19.0))));
    assert_shown(&reading, &[("ttft", "n=2 sum=1 of 2 1<=0.5")]);
    assert_eq!(reading.malformed, 1);
    // Not whole: without a sum, without the last bucket, with a bound that is none.
    let mut follower = fresh("vllm:num_requests_running 0\n");
    let text = page("", (1, 4, 2.0), None);
    let without = |what: &str| -> String {
        text.lines().filter(|line| !line.contains(what)).fold(String::new(), |mut text, line| {
            writeln!(text, "{line}").unwrap();
            text
        })
    };
    let reading = follower.read(&without("_sum"));
    assert_eq!((reading.values.len(), reading.malformed), (0, 1));
    let reading = follower.read(&without("+Inf").replace("0.5", "half"));
    assert_shown(&reading, &[("ttft", "n=4 sum=2 of 0")]);
    assert_eq!(reading.malformed, 1);
    let mut follower = fresh("vllm:num_requests_running 0\n");
    assert_shown(&follower.read(&without("+Inf")), &[("ttft", "n=4 sum=2 of 2 1<=0.5")]);
}

#[test]
fn a_map_wins_and_the_rest_is_filled() {
    let mapped = |series: &[&str], labels: &[(&str, &str)], scale| MappedSignal {
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        labels: labels.iter().map(|(key, of)| ((*key).to_owned(), (*of).to_owned())).collect(),
        scale,
    };
    let signals = [
        ("running", mapped(&["my_load"], &[("kind", "batch")], 1.0)),
        ("kv_usage", mapped(&["my_cache_percent"], &[], 0.01)),
        ("prompt_tokens", mapped(&["my_in", "my_more"], &[], 2.0)),
        ("ttft", mapped(&["my_ttft_ms"], &[], 0.001)),
        ("preemptions", mapped(&["my_evictions"], &[], 1.0)),
    ];
    let signals = signals.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    let map = MetricsMap { name: "mine".to_owned(), signals };
    map.check().unwrap();
    let mut follower = EndpointFollower::new(Some(Arc::new(map)));
    assert_eq!(follower.engine(), "mine");
    follower.read("my_in 100\nmy_load 0\nmy_load{kind=\"batch\"} 0\n");
    let page = "my_in 103\nmy_more 4\nmy_load{kind=\"all\"} 9\nmy_load{kind=\"batch\"} 3\n\
        my_cache_percent 45\nvllm:num_requests_running 77\nvllm:num_requests_waiting 8\n\
        vllm:num_preemptions_total 6\nvllm:generation_tokens_total 5\n";
    let page = page.to_owned() + &histogram("my_ttft_ms", "", "250", (1, 2, 500.0));
    let reading = follower.read(&page);
    assert_shown(
        &reading,
        &[
            ("running", "3"),
            ("waiting", "8"),
            ("kv_usage", "0.45"),
            ("prompt_tokens", "14"),
            ("generation_tokens", "5"),
            ("ttft", "n=2 sum=0.5 of 2 1<=0.25"),
        ],
    );
    assert_eq!(follower.engine(), "mine");
}

#[test]
fn memory_is_bounded() {
    let mut follower = EndpointFollower::new(None);
    let mut page = String::new();
    for series in 0..LIMIT + 7 {
        writeln!(page, "vllm:prompt_tokens_total{{engine=\"{series}\"}} 1").unwrap();
    }
    assert_eq!(follower.read(&page).malformed, 7);
    assert_eq!(follower.ledger.size_for_tests(), LIMIT);
    let reading = follower.read(&page.replace("} 1", "} 2"));
    assert_eq!(number(&reading, Signal::PromptTokens), Some(LIMIT as f64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn totals_never_fall(looks in prop::collection::vec(prop::collection::vec((0..VLLM.len(), any::<u8>()), 0..8), 2..5)) {
        let mut follower = EndpointFollower::new(None);
        let mut before = BTreeMap::new();
        for cuts in looks {
            let mut bytes = VLLM.as_bytes().to_vec();
            for (at, byte) in cuts {
                bytes[at] = byte;
            }
            for (signal, value) in follower.read(&String::from_utf8_lossy(&bytes)).values {
                let total = match value {
                    SignalValue::Number(number) => number,
                    SignalValue::Buckets(buckets) => {
                        prop_assert_eq!(buckets.bounds.len(), buckets.cumulative.len());
                        prop_assert!(buckets.bounds.is_sorted());
                        buckets.count
                    }
                };
                prop_assert!(total.is_finite() && total >= 0.0);
                if signal.kind() != SignalKind::Gauge {
                    prop_assert!(before.insert(signal, total).is_none_or(|before| before <= total));
                }
            }
        }
    }
}
