//! Numbers and names in evidence.

use goodput_model::{Reported, ReportedMode};

/// About four digits, without zeros at the end.
pub(super) fn number_text(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 1e15 || !v.is_finite() => return format!("{value:e}"),
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in percent.
pub(super) fn percent_text(share: f64) -> String {
    format!("{} %", number_text(share * 100.0))
}

/// The load in words.
pub(super) fn load_text(run: &Reported) -> String {
    let users = run.load.concurrency.map_or("?".to_owned(), |n| n.to_string());
    let rate = run.load.rate_rps.map_or("?".to_owned(), number_text);
    let arrivals = run.load.arrivals.as_deref().unwrap_or("unnamed");
    match run.load.mode {
        ReportedMode::Open => format!("open loop, {rate} req/s, {arrivals} arrivals"),
        ReportedMode::Capped => {
            format!("{rate} req/s, {arrivals} arrivals, at most {users} requests at once")
        }
        ReportedMode::Burst => "every request at once".to_owned(),
        ReportedMode::Closed => format!("closed loop, {users} at once"),
        ReportedMode::Unknown => "load not stated".to_owned(),
    }
}

/// The run in one line.
pub(super) fn run_line(run: &Reported) -> String {
    let mut parts = Vec::new();
    parts.extend(run.model.as_ref().map(|model| format!("model {model}")));
    parts.push(load_text(run));
    parts.extend(requests_sent(run).map(|n| format!("{n} requests")));
    parts.extend(duration_s(run).map(|seconds| format!("{} s", number_text(seconds))));
    parts.extend(run.started.clone());
    parts.join(" · ")
}

/// Requests that were sent, by what is stated of them.
pub(super) fn requests_sent(run: &Reported) -> Option<u64> {
    let counted = run.ok.map(|ok| ok.saturating_add(run.failed.unwrap_or(0)));
    run.asked.max(counted)
}

/// How long it took, stated or by its own rate.
pub(super) fn duration_s(run: &Reported) -> Option<f64> {
    let by_rate = run.ok.zip(run.requests_per_s).filter(|(_, rate)| *rate > 0.0);
    run.duration_s.or(by_rate.map(|(ok, rate)| ok as f64 / rate))
}

/// The mean time of a request, as far as it is stated.
pub(super) fn mean_e2e_s(run: &Reported) -> Option<f64> {
    let e2e = run.metrics.get("e2e");
    let stated = e2e.and_then(|metric| metric.mean.or(metric.percentile(50.0)));
    // Without it: the first token and the others after it.
    let metric = |name: &str| run.metrics.get(name).and_then(|metric| metric.mean);
    let tokens = run.output_tokens.zip(run.ok).filter(|(_, ok)| *ok > 0);
    let length = tokens.map(|(tokens, ok)| tokens as f64 / ok as f64);
    let built = metric("ttft").zip(metric("tpot")).zip(length);
    let built = built.map(|((ttft, tpot), length)| ttft + tpot * (length - 1.0).max(0.0));
    stated.or(built).map(|ms| ms / 1e3).filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
}
