//! A real Prometheus as the judge of `goodput run … --metrics-listen`, with our own configuration
//! and dashboard: it scrapes a run, and answers everything that the dashboard asks.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::server::Prometheus;
use super::tools::Tools;
use super::{ask, free_address, http, lint, query};
use crate::running::{Mock, TemporaryFolder};

const CONFIG: &str = include_str!("../../../integrations/prometheus.yml");
const DASHBOARD: &str = include_str!("../../../integrations/grafana-goodput.json");

/// Where the configuration looks.
const CONFIGURED: &str = "127.0.0.1:9400";

/// What the page of this run lacks: an open loop has no users, and the engine states neither the
/// sequences of a step nor rejections.
const NOT_THERE: [&str; 3] =
    ["goodput_users", "goodput_server_batch_sequences", "rate(goodput_server_rejections_total"];

/// A GPU as an exporter of DCGM tells of it: utilization in percent, memory in MiB.
const GPU: &str = "\
DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-0\"} 97
DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\",UUID=\"GPU-0\"} 0.75
DCGM_FI_PROF_DRAM_ACTIVE{gpu=\"0\",UUID=\"GPU-0\"} 0.5
DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-0\"} 2048
DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-0\"} 321
DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\"} 42
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu=\"0\",UUID=\"GPU-0\"} 0
";

/// Requests per second.
const RATE: f64 = 20.0;

/// Scrapes a run of this build of `goodput`.
pub(super) fn check(tools: &Tools, goodput: &Path) -> Result<(), String> {
    if !CONFIG.contains(CONFIGURED) {
        return Err(format!("integrations/prometheus.yml does not scrape {CONFIGURED}"));
    }
    let target = free_address()?;
    let mut prometheus = Prometheus::start(tools, &CONFIG.replace(CONFIGURED, &target))?;
    prometheus.until(|address| http::get(address, "/-/ready").map(drop))?;
    let scratch = TemporaryFolder::new()?;
    let exporter = exporter()?;
    let run = start(goodput, (&target, &exporter), &scratch)?;
    if run.address() != format!("{target}/metrics") {
        return Err(format!("the run serves its page at {}", run.address()));
    }
    prometheus.until(judge)?;
    for expression in expressions()? {
        let path = format!("/api/v1/query?query={}", http::encode(&expression));
        let is_there = ask(prometheus.address(), &path)?["result"][0].is_object();
        if is_there == NOT_THERE.iter().any(|name| expression.starts_with(name)) {
            return Err(format!("the dashboard asks for `{expression}`: {is_there}"));
        }
    }
    lint(tools, &http::get(&target, "/metrics")?)
}

/// A load whose answers take some 70 ms each; it is ended as soon as enough is seen.
fn start(
    goodput: &Path,
    (target, exporter): (&str, &str),
    scratch: &TemporaryFolder,
) -> Result<Mock, String> {
    let out = scratch.path("run");
    Mock::run(
        Command::new(goodput)
            .args(["run", "mock:ttft=50ms,itl=2ms", "--isl", "30", "--osl", "10"])
            .args(["--rate", &RATE.to_string(), "--duration", "30s", "--metrics-listen", target])
            .args(["--metrics-interval", "200ms", "--gpu", exporter])
            .arg("--out")
            .arg(out),
    )
}

/// Serves [`GPU`] until the process ends; its URL.
fn exporter() -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let address = listener.local_addr().map_err(text)?;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{GPU}",
        GPU.len()
    );
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The head of a request for a page fits into one read, and a client that is gone is.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    Ok(format!("http://{address}/metrics"))
}

/// What is still missing for a good verdict of the Prometheus at this address.
fn judge(address: &str) -> Result<(), String> {
    let wanted: [(&str, f64, f64); 14] = [
        (r#"min_over_time(up{job="goodput"}[2s])"#, 1.0, 1.0),
        ("goodput_requests_scheduled_total", 2.0 * RATE, 1e3),
        ("goodput_requests_ok_total", RATE, 1e3),
        ("goodput_output_tokens_total", 10.0 * RATE, 1e4),
        ("goodput_ttft_seconds_count", RATE, 1e3),
        // No answer begins before 50 ms have passed, which is a bound.
        (r#"goodput_ttft_seconds_bucket{le="0.03"}"#, 0.0, 0.0),
        ("histogram_quantile(0.5, rate(goodput_ttft_seconds_bucket[10s]))", 0.03, 10.0),
        ("goodput_offered_requests_per_second", RATE, RATE),
        (r#"goodput_run_phase{phase="measured"}"#, 1.0, 1.0),
        // What the engine and the exporter of a GPU say, again.
        ("goodput_server_scrape_success", 1.0, 1.0),
        ("goodput_server_generation_tokens_total", 10.0 * RATE, 1e4),
        ("goodput_gpu_busy_ratio", 0.97, 0.97),
        ("goodput_gpu_power_watts", 321.0, 321.0),
        ("goodput_gpu_memory_used_bytes", 2048.0 * 1_048_576.0, 2048.0 * 1_048_576.0),
    ];
    for (expression, least, most) in wanted {
        let value = query(address, expression)?;
        if !(least..=most).contains(&value) {
            return Err(format!("{expression} is {value}, not from {least} to {most}"));
        }
    }
    Ok(())
}

/// What the dashboard asks, with all of its variables open.
fn expressions() -> Result<Vec<String>, String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).map_err(|error| error.to_string())?;
    let panels = dashboard["panels"].as_array().cloned().unwrap_or_default();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let open = |text: &str| {
        let text = text.replace("$__rate_interval", "10s");
        text.replace("$target", ".*").replace("$run", ".*")
    };
    let all: Vec<String> = targets.filter_map(|asked| asked["expr"].as_str().map(open)).collect();
    if all.is_empty() { Err("the dashboard has no queries".to_owned()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboard_leaves_no_variable_open() {
        let all = expressions().unwrap();
        assert!(all.iter().any(|expression| expression.starts_with(NOT_THERE[0])));
        assert!(all.iter().all(|expression| !expression.contains('$')), "{all:?}");
    }

    #[test]
    #[ignore = "runs Prometheus and a built goodput: cargo test -p xtask prometheus -- --ignored"]
    fn prometheus_scrapes_a_run() {
        check(&Tools::find().unwrap(), &crate::target_folder().join("debug/goodput")).unwrap();
    }
}
