//! The bucket bounds of the engines.

/// vLLM 0.32.0, time to first token.
pub(super) const VLLM_TTFT: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];

/// vLLM 0.32.0, between tokens and per output token.
pub(super) const VLLM_GAP: [f64; 19] = [
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];

/// vLLM 0.32.0, whole requests and their phases.
pub(super) const VLLM_REQUEST: [f64; 21] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// vLLM 0.32.0, tokens of a request, as with a context of 4,096: the bounds end below it.
pub(super) const VLLM_TOKENS: [f64; 11] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// vLLM 0.32.0, the parameter `n`.
pub(super) const VLLM_N: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 20.0];

/// SGLang, time to first token.
pub(super) const SGLANG_TTFT: [f64; 18] = [
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0,
];

/// SGLang, between tokens.
pub(super) const SGLANG_GAP: [f64; 23] = [
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2,
    0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0,
];

/// SGLang, whole requests.
pub(super) const SGLANG_REQUEST: [f64; 22] = [
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0, 600.0, 1200.0, 1800.0, 2400.0,
];

/// SGLang, in the queue.
pub(super) const SGLANG_QUEUE: [f64; 40] = [
    0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0, 30.0,
    40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0,
    900.0, 1000.0, 1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0,
];

/// How late an event was written, in fine steps.
pub(super) const LATENESS: [f64; 16] = [
    0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
    0.2, 0.5, 1.0,
];

/// TGI's 35 bounds of every duration: each half as much again as the one before.
pub(super) fn tgi_durations() -> Vec<f64> {
    std::iter::successors(Some(0.000_1 * 1.5), |bound| Some(bound * 1.5)).take(35).collect()
}

/// TGI's bounds of token counts: hundredths of `--max-total-tokens`, here 4,096.
pub(super) fn tgi_tokens() -> Vec<f64> {
    (1..=100).map(|part| 4_096.0 / 100.0 * f64::from(part)).collect()
}
