//! Arguments about the server's metrics, and about what else happens during a run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use goodput_model::GpuPlan;

use super::value::{parse_positive_time, parse_url};

/// Which metrics of the server and its GPUs to read; part of the plan.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server metrics")]
pub(crate) struct ObserveArgs {
    /// Whether to read the server's metrics page during the load [default: on]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    pub(crate) metrics: Option<MetricsSwitch>,

    /// URL of the metrics page [default: /metrics of the target]; repeat it for each replica
    #[arg(long = "metrics-url", value_name = "URL", value_parser = parse_url)]
    pub(crate) metrics_urls: Vec<String>,

    /// How often to read it [default: 1s]; each scrape may take as long, from 1s to 5s
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) metrics_interval: Option<Duration>,

    /// TOML file that maps an engine's metric names to goodput's (docs/server-names.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_map: Option<PathBuf>,

    /// Where to read GPU metrics [default: auto]
    ///
    /// `auto` reads the driver if the server runs on this machine, `local` always reads it
    /// (`local:0,1` for these GPUs only), `off` reads nothing, and URLs name exporters of DCGM or
    /// AMD.
    #[arg(long, value_name = "SOURCE", value_parser = parse_gpu)]
    pub(crate) gpu: Option<GpuPlan>,

    /// Watch the GPUs for this long before the load, to report energy above that of an idle server
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) gpu_idle: Option<Duration>,

    /// State what no endpoint reports, as KEY=VALUE; can be repeated
    ///
    /// For example gpu, gpu_count, quantization, tensor_parallel, or engine_flags. In `compare`,
    /// NAME.KEY=VALUE states it of the side NAME alone.
    #[arg(long = "meta", value_name = "KEY=VALUE")]
    pub(crate) meta: Vec<String>,

    /// Share of requests to trace, such as `1%` or `0.05`; sends `traceparent` [default: 1% with
    /// --traces]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) trace_share: Option<f64>,
}

/// What else happens during a run; not part of the plan.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "During the run")]
pub(crate) struct HookArgs {
    /// Serve the progress of the run as Prometheus metrics at this address, such as 127.0.0.1:9400
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// Write traces of sampled requests as OTLP/JSON, to a file or to the collector at a URL
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) traces: Option<String>,

    /// Run this command before the load of each run; if it fails, the run ends
    #[arg(long, value_name = "COMMAND")]
    pub(crate) before_cmd: Option<String>,

    /// Run this command after the load of each run
    #[arg(long, value_name = "COMMAND")]
    pub(crate) after_cmd: Option<String>,

    /// Make the server profile itself during the load (/start_profile and /stop_profile of vLLM and
    /// SGLang)
    #[arg(long)]
    pub(crate) profile: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsSwitch {
    /// Read it
    On,
    /// Do not read it
    Off,
}

fn parse_gpu(text: &str) -> Result<GpuPlan, String> {
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
            let wrong = "expected `auto`, `local`, `local:0,1`, `off`, or URLs separated by commas";
            numbers.flatten().map(GpuPlan::Devices).ok_or_else(|| wrong.to_owned())
        }
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        "write a share of requests: `1%`, or a number above 0 and at most 1".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_by_their_numbers() {
        assert_eq!(parse_gpu("local"), Ok(GpuPlan::Local));
        assert_eq!(parse_gpu("local:3"), Ok(GpuPlan::Devices(vec![3])));
        assert_eq!(parse_gpu("local:0, 2"), Ok(GpuPlan::Devices(vec![0, 2])));
        for wrong in ["local:", "local:0,", "local:-1", "local:a", "locally", "0,1"] {
            assert!(parse_gpu(wrong).unwrap_err().contains("`local:0,1`"), "{wrong}");
        }
    }
}
