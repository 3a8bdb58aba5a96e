//! Pages of metrics in both text forms.

use std::sync::Arc;

use goodput_model::Nanos;
use goodput_observe::{
    EndpointFollower, GpuExporter, MappedSignal, MetricsMap, ParsedPage, QueueDepth,
};

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, USUAL, text_seeds};

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![FuzzTarget {
        name: "metrics",
        seeds: page_seeds,
        words: &[
            "# TYPE ",
            "# HELP ",
            "# EOF\n",
            "_bucket{le=\"",
            "le=\"+Inf\"",
            "_sum",
            "_count",
            "_total",
            "vllm:num_requests_running",
            "vllm:time_to_first_token_seconds",
            "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\"} ",
            "engine=\"0\"",
            "\\\"",
            " # {trace_id=\"a\"} 1.0",
            "NaN",
            "+Inf",
            "-Inf",
        ],
        check: fuzz_metrics_page,
        limits: InputLimits { bytes: 2 << 20, per_byte: 512, ..USUAL },
        short: SHORT / 2,
    }]
}

fn page_seeds() -> Vec<Vec<u8>> {
    let vllm = include_str!("../../../observe/tests/pages/vllm.txt");
    // A part of the long page: what it repeats is found in a tenth of it.
    let part: Vec<&str> = vllm.lines().step_by(7).collect();
    let mut all =
        text_seeds(&[include_str!("../../../observe/tests/pages/llamacpp.txt"), &part.join("\n")]);
    all.extend(text_seeds(&[
        "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",modelName=\"H200\"} 97\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\"} 650.5\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-1\"} 1234567\n",
        "# TYPE x histogram\nx_bucket{le=\"0.1\"} 1\nx_bucket{le=\"+Inf\"} 3\nx_sum 0.5\nx_count 3\n# EOF\n",
        "sglang:num_running_reqs{engine_type=\"unified\"} 3\nsglang:num_queue_reqs 4 1794820145000\n",
    ]));
    all
}

fn fuzz_metrics_page(case: &ParserInput<'_>) -> Result<(), String> {
    let text = String::from_utf8_lossy(case.input);
    let page = ParsedPage::parse(&text);
    let lines = text.lines().count();
    if page.series.len() > lines {
        return Err(format!("{} series on {lines} lines", page.series.len()));
    }
    let _ = QueueDepth::read(&text);
    let signal = MappedSignal {
        series: page.series.iter().take(2).map(|series| series.name.to_string()).collect(),
        labels: std::collections::BTreeMap::new(),
        scale: 0.001,
    };
    let signals = [("running".to_owned(), signal.clone()), ("ttft".to_owned(), signal)];
    let map = MetricsMap { name: "x".to_owned(), signals: signals.into_iter().collect() };
    // The other half of the page comes first: totals that fall, series that come and go.
    let half = text.char_indices().nth(text.len() / 2).map_or("", |(at, _)| &text[at..]);
    for map in [None, Some(Arc::new(map))] {
        let mut follower = EndpointFollower::new(map);
        for page in [half, &text, &text, half] {
            drop(follower.read(page));
        }
        drop(follower.engine().to_owned());
    }
    let mut exporter = GpuExporter::default();
    for (look, page) in [half, &text, half].into_iter().enumerate() {
        drop(exporter.read(0, page, Nanos::from_millis(look as u64 * 1000)));
    }
    let _ = exporter.facts();
    Ok(())
}
