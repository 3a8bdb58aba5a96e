//! Arguments about results and progress.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use goodput_report::Detail;

use super::value::parse_percentile;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Folder for the result [default: runs/TIME-WORKLOAD-VERB]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the whole report
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print only the folder of the result, and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// How to show progress on a terminal
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    pub(crate) screen: ScreenName,

    /// Percentiles to report, such as `p50,p99` or `50,99` [default: 50,75,90,95,99,99.9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_percentile)]
    pub(crate) percentiles: Option<Vec<f64>>,

    /// Add MLPerf's early-stopping estimate to each percentile: an upper bound with 99 % confidence
    #[arg(long)]
    pub(crate) early_stopping: bool,

    /// Keep prompts and answers in the run folder (text.jsonl)
    #[arg(long)]
    pub(crate) save_text: bool,

    /// Print what would be sent, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl OutputArgs {
    /// How much of a result to print.
    pub(crate) fn detail_level(&self) -> Detail {
        if self.verbose { Detail::Full } else { Detail::Short }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScreenName {
    /// Full screen when stderr and stdin are a terminal
    Auto,
    /// One new line every few seconds, as without a terminal
    Off,
    /// One line that is rewritten in place
    Line,
}
