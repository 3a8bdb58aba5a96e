//! Arguments of `goodput report`.

use std::path::PathBuf;

use super::SavedSloArgs;
use clap::{Args, ValueEnum};
use goodput_campaign::curve::FrontLatency;
use goodput_report::Detail;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The page that the run printed
    Text,
    /// summary.json, computed again from the log
    Json,
    /// Markdown for a pull request or the summary of a CI job
    #[value(alias = "md")]
    Markdown,
    /// JUnit XML of the SLO terms or gates
    Junit,
    /// One HTML file with everything in it
    Html,
    /// Every chart as a file, in the folder given by --output
    Svg,
    /// One line for each request of a run or each point of a sweep
    Csv,
    /// Requests, chunks, and server metrics as Parquet files, in the folder given by --output
    Parquet,
    /// The format of `vllm bench serve --save-result`
    Vllm,
    /// The format of SGLang's bench_serving: one JSON line
    Sglang,
    /// The summary format of AIPerf and GenAI-Perf
    Aiperf,
}

/// The latency of a front of throughput against latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FrontName {
    /// Median TTFT
    TtftP50,
    /// 99th percentile of TTFT
    TtftP99,
    /// Median TPOT
    TpotP50,
    /// 99th percentile of TPOT
    TpotP99,
    /// Median E2E
    E2eP50,
    /// 99th percentile of E2E
    E2eP99,
}

impl From<FrontName> for FrontLatency {
    fn from(name: FrontName) -> Self {
        match name {
            FrontName::TtftP50 => Self::TtftP50,
            FrontName::TtftP99 => Self::TtftP99,
            FrontName::TpotP50 => Self::TpotP50,
            FrontName::TpotP99 => Self::TpotP99,
            FrontName::E2eP50 => Self::E2eP50,
            FrontName::E2eP99 => Self::E2eP99,
        }
    }
}

const REPORT_EXAMPLES: &str = "\
Examples:
  goodput report
      The newest result under runs/
  goodput report --open
      The same in a browser
  goodput report runs/
      A list of the results in a folder
  goodput report runs/2026-11-15T10-22-07Z-chat-run
      The page that the run printed
  goodput report runs/2026-11-15T10-22-07Z-chat-run --format html --output report.html
      One HTML file
  goodput report runs/2026-11-15T10-22-07Z-chat-sweep --slo 'p99 ttft < 300ms, p99 tpot < 40ms'
      What was measured, judged by another SLO: attainment of each point, highest load kept
  goodput report runs/2026-11-15T10-22-07Z-chat-run --json | jq .metrics.ttft
      The summary as JSON";

/// Show a saved result
///
/// The result can be a run, repeats, a sweep, a comparison, or a shadow, including one that was
/// killed before its end, or a result file of another tool.
#[derive(Debug, Args)]
#[command(after_long_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Folder of the result, a result file of another tool, or a folder of results, which are
    /// listed [default: the newest result under runs/]
    pub(crate) folder: Option<PathBuf>,

    /// Format to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Print the whole report
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Write the HTML page, to report.html in the folder of the result or to --output, and show it in
    /// a browser
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub(crate) open: bool,

    /// Print JSON; the same as --format json
    #[arg(long)]
    pub(crate) json: bool,

    /// Write to this file instead of stdout; for svg and parquet, to this folder
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// With --format vllm or sglang, include every request (--save-detailed, --output-details)
    #[arg(long)]
    pub(crate) detailed: bool,

    /// Sweeps: the latency of the front of throughput against latency [default: tpot-p50, or e2e-p50
    /// where fewer points have a TPOT]
    #[arg(long, value_enum, value_name = "LATENCY")]
    pub(crate) front: Option<FrontName>,

    /// Also write the traces of a run as OTLP/JSON, to a file or to the collector at a URL
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) traces: Option<String>,

    #[command(flatten)]
    pub(crate) slo: SavedSloArgs,
}

impl ReportArgs {
    /// How much of a result to print; a file gets everything.
    pub(crate) fn detail_level(&self) -> Detail {
        if self.verbose || self.output.is_some() { Detail::Full } else { Detail::Short }
    }
}
