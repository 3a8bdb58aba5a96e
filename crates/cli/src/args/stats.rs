//! Arguments of `goodput stats`.

use std::path::PathBuf;

use clap::Args;

use super::value::parse_percentile;

const STATS_EXAMPLES: &str = "\
Examples:
  goodput stats latencies.txt
      One number per line, in the order in which they were measured
  goodput stats requests.csv --column ttft_ms --percentiles p50,p99
      A column of a table, by its name
  goodput stats requests.csv --column 3 --json
      A column by its number, with the result as JSON

`inf` stands for a value beyond a time limit.

Exit codes:
  0    success
  2    wrong usage or bad input";

/// Analyze a column of numbers: percentiles, intervals, trend
///
/// Applies the statistics of a run to latencies that another program wrote down, in the order in
/// which they were measured: percentiles with intervals, warm-up, trend, and two groups.
#[derive(Debug, Args)]
#[command(after_long_help = STATS_EXAMPLES)]
pub(crate) struct StatsArgs {
    /// File with one number per line, or a table (CSV, TSV)
    pub(crate) file: PathBuf,

    /// Column to read, by name or by number from 1 [default: the first]
    #[arg(long, value_name = "NAME|N")]
    pub(crate) column: Option<String>,

    /// Percentiles to report, such as `p50,p99` or `50,99` [default: 50,75,90,95,99,99.9]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_percentile)]
    pub(crate) percentiles: Option<Vec<f64>>,

    /// Add MLPerf's early-stopping estimate to each percentile
    #[arg(long)]
    pub(crate) early_stopping: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
