//! Result files of other tools.

use std::path::Path;
use std::time::Duration;

use goodput_exchange::parse_results;

use super::{FuzzTarget, InputLimits, ParserInput, SHORT};

macro_rules! results {
    ($($name:literal),* $(,)?) => {
        vec![$(include_bytes!(concat!("../../../exchange/tests/results/", $name)).to_vec()),*]
    };
}

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![FuzzTarget {
        name: "results",
        seeds: || {
            results![
                "aiperf-faults.json",
                "aiperf-poisson-goodput.json",
                "genai-perf.json",
                "guidellm-poisson.json",
                "sglang.jsonl",
                "vllm-python-burst.json",
                "vllm-rust-closed.json",
                "vllm-rust-open-detailed.json",
            ]
        },
        words: &[
            "\"completed\":",
            "\"request_throughput\":",
            "\"benchmarks\":[]",
            "\"aiperf_version\":",
            "\"num_prompts\":",
            "\"duration\":",
            "\"ttfts\":",
            "\"itls\":",
            "NaN",
            "Infinity",
        ],
        check: fuzz_results,
        limits: InputLimits { bytes: 8 << 20, per_byte: 256, time: Duration::from_secs(4) },
        short: SHORT / 4,
    }]
}

#[expect(clippy::unnecessary_wraps, reason = "as all checks are")]
fn fuzz_results(case: &ParserInput<'_>) -> Result<(), String> {
    match parse_results(Path::new("results.json"), case.input) {
        Ok(runs) => {
            for run in runs {
                let audit = goodput_stats::audit_reported(&run);
                drop(goodput_report::audit_text(&audit));
                drop(goodput_report::reported_text(&run, &audit));
            }
        }
        Err(error) => drop(error.to_string()),
    }
    Ok(())
}
