//! Every page through a strict reader of the text format, and values known by construction.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::faults::{Faults, MockFault};

/// A family as it stands on the page.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// Name, labels and value of each sample.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Reads a page and panics at anything the format does not allow, and at more than our pages need.
fn read(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n'), "the last line has no end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && !help.contains('\\'), "{line}");
            let next = lines.next().unwrap();
            let kind = next.strip_prefix(&format!("# TYPE {name} ")).expect(next);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{next}");
            let family = Family { kind: kind.to_owned(), samples: Vec::new() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} comes twice");
            name.clone_into(&mut current);
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = families.get_mut(&current).expect("a sample before any family");
        let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{name} in {current}"));
        match family.kind.as_str() {
            "histogram" => assert!(["_bucket", "_count", "_sum"].contains(&suffix), "{name}"),
            _ => assert_eq!(suffix, "", "{name} in {current}"),
        }
        assert!(value.is_finite() && value >= 0.0, "{line}");
        family.samples.push((name, labels, value));
    }
    families
}

fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    let is_name = |text: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
    };
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label) && !label.contains(':'), "{line}");
            let (value, after) = text(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            let Some(after) = after.strip_prefix(',') else {
                rest = after.strip_prefix('}').expect(line);
                break;
            };
            rest = after;
        }
    }
    let number = rest.strip_prefix(' ').expect(line);
    (name.to_owned(), labels, number.parse().expect(line))
}

/// A label's text up to its closing quote, and what follows.
fn text(quoted: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return (text, &quoted[index + 1..]),
            '\\' => match characters.next().unwrap().1 {
                'n' => text.push('\n'),
                same @ ('\\' | '"') => text.push(same),
                other => panic!("\\{other}"),
            },
            other => text.push(other),
        }
    }
    panic!("no closing quote: {quoted}");
}

fn check_histograms(families: &BTreeMap<String, Family>) {
    for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
        let of = |suffix: &str| {
            let full = format!("{name}{suffix}");
            family.samples.iter().filter(move |(name, ..)| *name == full).collect::<Vec<_>>()
        };
        let buckets = of("_bucket");
        let bounds: Vec<f64> =
            buckets.iter().map(|(_, labels, _)| labels["le"].parse().unwrap()).collect();
        assert!(bounds.is_sorted_by(|a, b| a < b), "{name}: {bounds:?}");
        assert_eq!(bounds.last(), Some(&f64::INFINITY), "{name}");
        assert!(buckets.is_sorted_by_key(|(.., value)| *value), "{name} is not cumulative");
        let (counts, sums) = (of("_count"), of("_sum"));
        assert_eq!((counts.len(), sums.len()), (1, 1), "{name}");
        assert_eq!(buckets.last().unwrap().2, counts[0].2, "{name}");
        assert!(counts[0].2 > 0.0 || sums[0].2 == 0.0, "{name}");
    }
}

const MS: u64 = 1_000_000;

/// Four requests: two by length, one tool call, one aborted.
fn four_requests() -> MockMetrics {
    let faults: Vec<MockFault> =
        ["503:1/10", "cut:10%", "refuse@1s"].map(|text| text.parse().unwrap()).to_vec();
    let faults = Faults::new(faults, 1);
    let mut metrics = MockMetrics::new(16, faults.labels());
    for (reason, output) in [
        (FinishReason::Length, 5),
        (FinishReason::Length, 5),
        (FinishReason::ToolCalls, 1),
        (FinishReason::Abort, 2),
    ] {
        metrics.count_connect();
        metrics.count_arrival();
        metrics.add_prefill(100, 32, Nanos(10 * MS), Nanos(50 * MS));
        metrics.add_first_token(Nanos(60 * MS));
        metrics.count_event(Some(Nanos::from_micros(20)));
        for _ in 1..output {
            metrics.add_tokens(1, Nanos(25 * MS));
            metrics.count_event(Some(Nanos::from_micros(1_001)));
        }
        let decode = Nanos(25 * MS * (output - 1));
        metrics.add_finished(&Finished {
            reason,
            e2e: Nanos(60 * MS) + decode,
            prefill: Nanos(50 * MS),
            decode,
            prompt_tokens: 100,
            cached_tokens: 32,
            output_tokens: output,
            max_tokens: (reason != FinishReason::Abort).then_some(5),
            n: 1,
        });
    }
    metrics.count_disconnect();
    metrics.count_refusal(503);
    metrics.count_refusal(503);
    metrics.count_fault(faults.labels().next().unwrap());
    metrics.count_fault(faults.labels().next().unwrap());
    metrics.note_scrape(Nanos(2_000 * MS));
    metrics
}

const GAUGES: Gauges = Gauges {
    running: 3,
    waiting: 7,
    kv_blocks_used: 25,
    kv_blocks_total: 100,
    prefix_queries: 400,
    prefix_hits: 128,
    preemptions: 2,
    steps: 13,
    spec_drafted: 40,
    spec_accepted: 30,
};

fn value(page: &BTreeMap<String, Family>, name: &str, wanted: &[(&str, &str)]) -> f64 {
    let samples = page.values().flat_map(|family| &family.samples);
    let found: Vec<f64> = samples
        .filter(|(own, labels, _)| {
            let has = |(label, text): &(&str, &str)| labels.get(*label).is_some_and(|t| t == text);
            own == name && wanted.iter().all(has)
        })
        .map(|(.., value)| *value)
        .collect();
    assert_eq!(found.len(), 1, "{name} {wanted:?}: {found:?}");
    found[0]
}

#[test]
fn every_page_is_well_formed() {
    let hostile = "a \"quoted\" \\ name\nwith a line";
    for (dialect, name) in MetricNames::NAMES {
        assert_eq!(name.parse(), Ok(dialect));
        for metrics in [MockMetrics::new(16, std::iter::empty()), four_requests()] {
            for gauges in [Gauges::default(), GAUGES] {
                let page = read(&metrics.render(dialect, &gauges, hostile));
                check_histograms(&page);
                let models: BTreeSet<&String> = page
                    .values()
                    .flat_map(|family| &family.samples)
                    .filter_map(|(_, labels, _)| labels.get("model_name"))
                    .collect();
                assert!(models.iter().all(|model| *model == hostile), "{models:?}");
                assert_eq!(
                    models.is_empty(),
                    matches!(dialect, MetricNames::Tgi | MetricNames::Llamacpp)
                );
            }
        }
    }
    assert!("vLLM".parse::<MetricNames>().unwrap_err().contains("sglang"));
}

#[test]
fn the_reader_is_strict() {
    for bad in [
        "# HELP a b\n# TYPE a counter\na 1",
        "# HELP a b\n# TYPE a counter\na NaN\n",
        "# HELP a b\n# TYPE a counter\nb 1\n",
        "# HELP a b\n# TYPE a counter\n# HELP a b\n# TYPE a counter\n",
        "# HELP a b\na 1\n",
        "a 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"1\",x=\"2\"} 1\n",
        "# HELP a b\n# TYPE a counter\na{x=\"\\x\"} 1\n",
    ] {
        assert!(std::panic::catch_unwind(|| read(bad)).is_err(), "{bad}");
    }
}

/// Names, types and bounds of a real engine: `NAME TYPE BOUND…` in each line.
fn real(families: &'static str) -> BTreeMap<&'static str, (&'static str, Vec<f64>)> {
    families
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let (name, kind) = (words.next().unwrap(), words.next().unwrap());
            (name, (kind, words.map(|word| word.parse().unwrap()).collect()))
        })
        .collect()
}

#[test]
fn what_we_call_vllm_is_in_vllm() {
    let real = real(include_str!("vllm-families.txt"));
    let page = read(&four_requests().render(MetricNames::Vllm, &GAUGES, "m"));
    let ours: Vec<_> = page.iter().filter(|(name, _)| name.starts_with("vllm:")).collect();
    assert!(ours.len() > 25, "{}", ours.len());
    for (name, family) in ours {
        // The engine of the sample did not speculate.
        if name.starts_with("vllm:spec_decode_") {
            assert_eq!(family.kind, "counter");
            continue;
        }
        let (kind, bounds) = real.get(name.as_str()).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(family.kind, *kind, "{name}");
        let own: Vec<f64> = family
            .samples
            .iter()
            .filter_map(|(_, labels, _)| labels.get("le")?.parse().ok())
            .filter(|bound: &f64| bound.is_finite())
            .collect();
        assert_eq!(own, *bounds, "{name}");
    }
}

#[test]
fn what_we_call_llamacpp_is_in_llamacpp() {
    let real = real(include_str!("llamacpp-families.txt"));
    let page = read(&four_requests().render(MetricNames::Llamacpp, &GAUGES, "m"));
    let ours: Vec<_> = page.iter().filter(|(name, _)| name.starts_with("llamacpp:")).collect();
    assert!(ours.len() + 1 >= real.len(), "{}", ours.len());
    for (name, family) in ours {
        assert_eq!(real.get(name.as_str()).map(|(kind, _)| *kind), Some(family.kind.as_str()));
    }
}

#[test]
fn samples_look_like_vllms() {
    let page = four_requests().render(MetricNames::Vllm, &GAUGES, "m");
    for line in [
        "vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 13.0",
        "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"m\"} 2.0",
        "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"1.0\",model_name=\"m\"} 3.0",
        "vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 3.0",
    ] {
        assert!(page.lines().any(|own| own == line), "{line}\n{page}");
    }
}

#[test]
fn vllm_values_are_those_of_the_requests() {
    let page = read(&four_requests().render(MetricNames::Vllm, &GAUGES, "m"));
    let at = |name: &str, labels: &[(&str, &str)]| value(&page, name, labels);
    assert_eq!(at("vllm:prompt_tokens_total", &[]), 400.0);
    assert_eq!(at("vllm:prompt_tokens_cached_total", &[]), 128.0);
    assert_eq!(at("vllm:num_requests_waiting", &[]), 7.0);
    assert_eq!(at("vllm:kv_cache_usage_perc", &[]), 0.25);
    assert_eq!(at("vllm:cache_config_info", &[("kv_cache_size_tokens", "1600")]), 1.0);
    let success = |reason| at("vllm:request_success_total", &[("finished_reason", reason)]);
    assert_eq!(["stop", "length", "abort", "error"].map(success), [1.0, 2.0, 1.0, 0.0]);
    let ttft = |le| at("vllm:time_to_first_token_seconds_bucket", &[("le", le)]);
    assert_eq!(["0.04", "0.06", "+Inf"].map(ttft), [0.0, 4.0, 4.0]);
    // 5 + 5 + 1 + 2 tokens, of which four are first ones.
    let gaps = |le| at("vllm:inter_token_latency_seconds_bucket", &[("le", le)]);
    assert_eq!(["0.01", "0.025", "+Inf"].map(gaps), [0.0, 9.0, 9.0]);
    assert_eq!(at("vllm:inter_token_latency_seconds_sum", &[]), 0.225);
    // The aborted one has no times; an answer of one token has a time per token of zero.
    let per_token = |le| at("vllm:request_time_per_output_token_seconds_bucket", &[("le", le)]);
    assert_eq!(["0.01", "0.025"].map(per_token), [1.0, 3.0]);
    assert_eq!(at("vllm:e2e_request_latency_seconds_sum", &[]), 0.16 + 0.16 + 0.06);
    assert_eq!(at("vllm:request_inference_time_seconds_sum", &[]), 0.35);
    assert_eq!(at("vllm:request_prefill_kv_computed_tokens_sum", &[]), 3.0 * 68.0);
    assert_eq!(at("vllm:request_params_max_tokens_sum", &[]), 15.0);
    assert_eq!(at("vllm:spec_decode_num_accepted_tokens_total", &[]), 30.0);
}

#[test]
fn the_mocks_own_values() {
    for (dialect, _) in MetricNames::NAMES {
        let page = read(&four_requests().render(dialect, &GAUGES, "m"));
        let at = |name: &str, labels: &[(&str, &str)]| value(&page, name, labels);
        assert_eq!(at("mock_events_total", &[]), 13.0);
        assert_eq!(at("mock_late_events_total", &[]), 9.0);
        let le = if matches!(dialect, MetricNames::Vllm | MetricNames::Sglang) {
            "2e-5"
        } else {
            "0.00002"
        };
        assert_eq!(at("mock_event_lateness_seconds_bucket", &[("le", le)]), 4.0);
        assert_eq!(at("mock_faults_total", &[("kind", "503")]), 2.0);
        assert_eq!(at("mock_faults_total", &[("kind", "cut")]), 0.0);
        assert_eq!(at("mock_refused_total", &[("status", "503")]), 2.0);
        assert_eq!(at("mock_connections", &[]), 3.0);
        assert_eq!(at("mock_connections_opened_total", &[]), 4.0);
    }
}

#[test]
fn values_of_the_other_dialects() {
    let mut metrics = four_requests();
    // Three tokens in one step: one gap for vLLM, three thirds of it for SGLang.
    metrics.add_tokens(3, Nanos(24 * MS));
    metrics.add_tokens(0, Nanos(24 * MS));
    let sglang = read(&metrics.render(MetricNames::Sglang, &GAUGES, "m"));
    assert_eq!(
        value(&sglang, "sglang:inter_token_latency_seconds_bucket", &[("le", "0.008")]),
        3.0
    );
    assert_eq!(value(&sglang, "sglang:inter_token_latency_seconds_count", &[]), 12.0);
    assert_eq!(value(&sglang, "sglang:gen_throughput", &[]), 6.5);
    assert_eq!(value(&sglang, "sglang:cache_hit_rate", &[]), 0.32);
    assert_eq!(value(&sglang, "sglang:num_used_tokens", &[]), 400.0);
    assert_eq!(value(&sglang, "sglang:num_requests_total", &[]), 3.0);
    let tgi = read(&metrics.render(MetricNames::Tgi, &GAUGES, "m"));
    assert_eq!(value(&tgi, "tgi_request_count", &[]), 6.0);
    assert_eq!(value(&tgi, "tgi_request_success", &[]), 3.0);
    assert_eq!(value(&tgi, "tgi_request_failure", &[("err", "overloaded")]), 2.0);
    assert_eq!(value(&tgi, "tgi_request_failure", &[("err", "dropped")]), 1.0);
    assert_eq!(value(&tgi, "tgi_request_generated_tokens_bucket", &[("le", "40.96")]), 3.0);
    assert_eq!(tgi["tgi_request_duration"].samples.len(), 35 + 3);
    let llama = read(&metrics.render(MetricNames::Llamacpp, &GAUGES, "m"));
    assert_eq!(value(&llama, "llamacpp:prompt_tokens_total", &[]), 272.0);
    assert_eq!(value(&llama, "llamacpp:tokens_predicted_total", &[]), 16.0);
    assert_eq!(value(&llama, "llamacpp:prompt_seconds_total", &[]), 0.2);
    assert_eq!(value(&llama, "llamacpp:n_tokens_max", &[]), 105.0);
    assert_eq!(value(&llama, "llamacpp:requests_deferred", &[]), 7.0);
}
