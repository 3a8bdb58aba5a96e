//! What can be typed about the server's side, and about what runs beside a run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::GpuPlan;

use super::positive_time;

/// What is looked at on the server's side; part of the plan.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server side")]
pub(crate) struct ObserveArgs {
    /// Whether the server's page of metrics is read beside the load [default: on]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) metrics: Option<MetricsSwitch>,

    /// Where the page is [default: /metrics of the target]; again for each replica
    #[arg(long = "metrics-url", value_name = "URL")]
    pub(crate) metrics_urls: Vec<String>,

    /// How often it is read; an answer may take as long, at least 1s and at most 5s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) metrics_interval: Option<Duration>,

    /// A TOML file that maps an engine's names onto ours (see docs/server-names.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_map: Option<PathBuf>,

    /// Who is asked about GPUs: `auto` (the driver, where the server runs on this machine), `local`
    /// (the driver, wherever it runs; `local:0,1` for these GPUs alone), `off`, or URLs of DCGM's or AMD's exporter [default: auto]
    #[arg(long, value_name = "WHO", value_parser = gpu)]
    pub(crate) gpu: Option<GpuPlan>,

    /// Watch the GPUs for so long before the load, for energy above that of an idle server
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) gpu_idle: Option<Duration>,

    /// What no endpoint tells, `key=value`: gpu, gpu_count, quantization, tensor_parallel,
    /// engine_flags, or anything else; may be repeated
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,

    /// The share of requests that are traced: `1%`, `0.05`; sends `traceparent` [default: 1%, if
    /// --traces is given]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) trace_share: Option<f64>,
}

/// What runs beside a run; not part of the plan.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Beside the run")]
pub(crate) struct BesideArgs {
    /// Show the run itself as Prometheus metrics at this address, such as 127.0.0.1:9400
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// Write traces of sampled requests as OTLP/JSON: to a file, or to a collector at a URL
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) traces: Option<String>,

    /// Run this before the load of each run; a failure ends it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) before_cmd: Option<String>,

    /// Run this after the load of each run
    #[arg(long, value_name = "COMMAND")]
    pub(crate) after_cmd: Option<String>,

    /// Have the server profile itself during the load (vLLM's and SGLang's /start_profile and
    /// /stop_profile)
    #[arg(long)]
    pub(crate) profile: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsSwitch {
    /// Read it
    On,
    /// Leave it alone
    Off,
}

fn gpu(text: &str) -> Result<GpuPlan, String> {
    match text {
        "auto" => Ok(GpuPlan::Auto),
        "off" => Ok(GpuPlan::Off),
        "local" => Ok(GpuPlan::Local),
        urls if urls.starts_with("http://") || urls.starts_with("https://") => {
            Ok(GpuPlan::Exporters(urls.split(',').map(|url| url.trim().to_owned()).collect()))
        }
        _ => {
            let numbers = text.strip_prefix("local:").map(|list| {
                list.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()
            });
            let wrong = "`auto`, `local`, `local:0,1`, `off`, or URLs with commas between them";
            numbers.flatten().map(GpuPlan::Devices).ok_or_else(|| wrong.to_owned())
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "a share of requests: `1%`, or a number above 0 and up to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_by_their_numbers() {
        assert_eq!(gpu("local"), Ok(GpuPlan::Local));
        assert_eq!(gpu("local:3"), Ok(GpuPlan::Devices(vec![3])));
        assert_eq!(gpu("local:0, 2"), Ok(GpuPlan::Devices(vec![0, 2])));
        for wrong in ["local:", "local:0,", "local:-1", "local:a", "locally", "0,1"] {
            assert!(gpu(wrong).unwrap_err().contains("`local:0,1`"), "{wrong}");
        }
    }
}
