//! A real Prometheus as the judge of the simulated engine's `/metrics`, and of a run's own.
//!
//! `promtool` reads the page of every dialect, and a Prometheus scrapes a running `goodput mock`
//! and must then know exactly the tokens that were asked for.

pub(crate) mod http;
mod live;
mod server;
mod tools;

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::running::Mock;
use server::Prometheus;
use tools::Tools;

/// The names of the dialects, as `goodput mock --metrics` takes them.
const DIALECTS: [&str; 4] = ["vllm", "sglang", "tgi", "llamacpp"];

/// Requests, and tokens of each.
const LOAD: (u64, u64) = (8, 25);

/// What promtool says of names that are not ours to choose: the engines' own colon, which
/// Prometheus keeps for recording rules.
const COLON: &str = "metric names should not contain ':'";
const ENGINES: [&str; 3] = ["vllm:", "sglang:", "llamacpp:"];

/// And its other complaints, word for word. Each is a name and a type of a real engine.
const FORCED: [&str; 5] = [
    r#"llamacpp:n_tokens_max counter metrics should have "_total" suffix"#,
    r#"tgi_request_count counter metrics should have "_total" suffix"#,
    r#"tgi_request_count non-histogram and non-summary metrics should not have "_count" suffix"#,
    r#"tgi_request_failure counter metrics should have "_total" suffix"#,
    r#"tgi_request_success counter metrics should have "_total" suffix"#,
];

/// Checks this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(reason) => {
            eprintln!("SKIPPED: the check by Prometheus: {reason}");
            return Ok(());
        }
    };
    for dialect in DIALECTS {
        let mock = Mock::start(goodput, &["--metrics", dialect])?;
        let tokens = load(mock.address())?;
        let page = http::get(mock.address(), "/metrics")?;
        lint(&tools, &page).map_err(|error| format!("{dialect}: {error}"))?;
        if dialect == "vllm" {
            scrape(&tools, mock.address(), ("vllm:generation_tokens_total", tokens))?;
        }
        eprintln!("  prometheus reads the page of {dialect}");
    }
    live::check(&tools, goodput).map_err(|error| format!("a run's own page: {error}"))?;
    eprintln!("  prometheus reads the page of a run, and what the dashboard asks of it");
    Ok(())
}

/// Sends requests and says how many tokens they asked for.
fn load(address: &str) -> Result<u64, String> {
    let (requests, tokens) = LOAD;
    let body = format!(
        r#"{{"model":"mock","messages":[{{"role":"user","content":"hi"}}],"max_tokens":{tokens},"ignore_eos":true}}"#
    );
    for _ in 0..requests {
        http::post(address, "/v1/chat/completions", &body)?;
    }
    Ok(requests * tokens)
}

/// `promtool check metrics` has nothing to say but what the engines' names force upon us.
fn lint(tools: &Tools, page: &str) -> Result<(), String> {
    let mut child = Command::new(&tools.promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run promtool: {error}"))?;
    // It reads all of it before it says anything; the pipe closes at the end of this statement.
    let sent = child.stdin.take().map(|mut stdin| stdin.write_all(page.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !matches!(sent, Some(Ok(()))) {
        return Err("promtool rejects the page".to_owned());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let complaints = complaints(&said);
    // Status 3: it could read the page but does not like it.
    if complaints.is_empty() && matches!(output.status.code(), Some(0 | 3)) {
        return Ok(());
    }
    Err(format!("promtool ({}):\n{}", output.status, complaints.join("\n")))
}

/// What promtool said, without what is forced upon us.
fn complaints(said: &str) -> Vec<&str> {
    let is_forced = |line: &str| {
        let is_colon = line.split_once(' ').is_some_and(|(name, complaint)| {
            complaint == COLON && ENGINES.iter().any(|engine| name.starts_with(engine))
        });
        is_colon || FORCED.contains(&line)
    };
    said.lines().filter(|line| !line.is_empty() && !is_forced(line)).collect()
}

/// A Prometheus scrapes this server without an error until it knows the counter's value.
fn scrape(tools: &Tools, target: &str, counter: (&str, u64)) -> Result<(), String> {
    let config = format!(
        "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n  \
         - job_name: mock\n    static_configs:\n      - targets: ['{target}']\n"
    );
    Prometheus::start(tools, &config)?.until(|address| judge(address, counter))
}

/// What is still missing for a good verdict of the Prometheus at this address.
fn judge(address: &str, counter: (&str, u64)) -> Result<(), String> {
    let targets = ask(address, "/api/v1/targets")?;
    let target = &targets["activeTargets"][0];
    let (health, error) = (text(&target["health"]), text(&target["lastError"]));
    if health != "up" || !error.is_empty() {
        return Err(format!("the target is `{health}`: {error}"));
    }
    // Three scrapes, and none of them failed.
    let scrapes = query(address, "count_over_time(up[5m])")?;
    let worst = query(address, "min_over_time(up[5m])")?;
    if scrapes < 3.0 || worst < 1.0 {
        return Err(format!("{scrapes} scrapes, the worst with up = {worst}"));
    }
    let (name, expected) = counter;
    let value = query(address, name)?;
    if value == expected as f64 {
        Ok(())
    } else {
        Err(format!("{name} is {value}, not {expected}"))
    }
}

/// The one value of an expression.
fn query(address: &str, expression: &str) -> Result<f64, String> {
    let data = ask(address, &format!("/api/v1/query?query={}", http::encode(expression)))?;
    let value = data["result"][0]["value"][1].as_str().and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("{expression} has no value: {data}"))
}

/// The data of an answer of Prometheus' API.
fn ask(address: &str, path: &str) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(&http::get(address, path)?)
        .map_err(|error| format!("{path}: {error}"))?;
    if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer.to_string()) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A port that was free a moment ago; Prometheus cannot say which one it took.
fn free_address() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
