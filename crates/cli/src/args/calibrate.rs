//! Arguments of `goodput calibrate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::value::parse_positive_time;

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  goodput calibrate
      About two minutes; later runs on this machine warn above half of the ceiling it finds
  goodput calibrate --workers 4 --json > calibration.json
      With four worker threads, as JSON

goodput saves the result in $XDG_STATE_HOME/goodput (or ~/.local/state/goodput) for runs with the
same number of workers on the same machine. With --output it writes that file instead, and runs do
not use it.";

/// Measure how exact and how fast this client is on this machine
///
/// goodput raises the load on a server of known timing inside this process. It reports the error of
/// TTFT and ITL at rising numbers of streams, the schedule slip at rising request rates, and the
/// rates at which the error passes 1 ms. Keep the machine idle during the measurement.
#[derive(Debug, Args)]
#[command(after_long_help = CALIBRATE_EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// Threads that send and receive, from 1 to 256 [default: as in `goodput run`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: Option<u32>,

    /// Measured time of each level, from 3s to 10m
    #[arg(long, value_name = "TIME", value_parser = parse_level_time, default_value = "4s")]
    pub(crate) level_duration: Duration,

    /// Most time for the calibration; the result has what was measured by then
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "4m")]
    pub(crate) max_time: Duration,

    /// Write the result to this file instead of the state folder; runs then do not use it
    #[arg(long = "output", short, alias = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only the file of the result, and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Answers take two seconds, so a shorter level would contain none.
fn parse_level_time(text: &str) -> Result<Duration, String> {
    let time = parse_positive_time(text)?;
    let is_fit = (Duration::from_secs(3)..=Duration::from_mins(10)).contains(&time);
    if is_fit { Ok(time) } else { Err("between 3s and 10m".to_owned()) }
}
