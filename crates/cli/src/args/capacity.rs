//! Arguments of `goodput capacity`.

use std::path::PathBuf;

use super::SavedSloArgs;
use clap::{ArgGroup, Args};

const EXAMPLES: &str = "\
Examples:
  goodput capacity runs/2026-11-15T10-22-07Z-chat-sweep --target-rps 100 --gpus-per-replica 8
      Replicas and GPUs for 100 requests per second, from the sweep of one replica
  goodput capacity --goodput-rps 22 --gpus-per-replica 8 --target-rps 100
      The same from a figure measured elsewhere: 5 replicas and 40 GPUs, 6 and 48 with headroom
  goodput capacity runs/… --target-rps 100 --gpus-per-replica 8 --price-per-gpu-hour 2.5
      Also the cost per hour, per million tokens, and per 1,000 requests
  goodput capacity runs/… --diurnal 100:20:14 --replicas 6
      A day between 20 and 100 requests per second with its peak at 14 h: hours at risk
  goodput capacity runs/… --traffic week.csv --json
      Load from a file: columns `time_s,rps` or `hour,rps`, or a trace of requests
  goodput capacity runs/… --target-rps 100 --fan-out 10
      Also the latency of a step that makes ten calls at once
  goodput capacity runs/… --diurnal 100:20:14 --html plan.html
      Also as one HTML file with charts

docs/capacity.md has the formulas, assumptions, and limits.

Exit codes:
  0    success
  2    wrong usage or bad input, or a sweep without a result";

/// Compute the replicas, GPUs, and cost that a load needs
///
/// RESULT is the folder or summary.json of a sweep, of a sweep over several configurations (the
/// best one counts), or of a run that met its SLO. The plan says where it goes beyond the measured
/// range. goodput makes no network requests.
#[derive(Debug, Args)]
#[command(
    after_long_help = EXAMPLES,
    group = ArgGroup::new("load").required(true).multiple(true).args(["target_rps", "traffic", "diurnal"])
)]
pub(crate) struct CapacityArgs {
    /// Sweep, or a run that met its SLO: its folder or its summary.json
    #[arg(value_name = "RESULT", required_unless_present = "goodput_rps")]
    pub(crate) run: Option<PathBuf>,

    /// Instead of RESULT: the goodput of one replica, in requests per second, measured elsewhere
    #[arg(long, value_name = "RPS", value_parser = parse_rate, conflicts_with = "run", allow_negative_numbers = true)]
    pub(crate) goodput_rps: Option<f64>,

    /// Load above --goodput-rps at which the replica missed the SLO
    #[arg(long, value_name = "RPS", value_parser = parse_rate, requires = "goodput_rps", allow_negative_numbers = true)]
    pub(crate) rejected_rps: Option<f64>,

    /// Use this configuration of the sweep, as NAME=VALUE; can be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "goodput_rps", value_parser = parse_pair)]
    pub(crate) configuration: Vec<(String, String)>,

    /// Requests per second to carry [default: the highest five minutes of the traffic]
    #[arg(long, value_name = "RPS", value_parser = parse_rate, allow_negative_numbers = true)]
    pub(crate) target_rps: Option<f64>,

    /// Spare load in addition to the target, such as `20%` or `0.2`
    #[arg(long, value_name = "SHARE", value_parser = parse_headroom, default_value = "20%", allow_hyphen_values = true)]
    pub(crate) headroom: f64,

    /// GPUs per replica [default: as stated in the sweep]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    pub(crate) gpus_per_replica: Option<u32>,

    /// Price of one GPU per hour, in any currency
    #[arg(long, value_name = "PRICE", value_parser = parse_price, allow_negative_numbers = true)]
    pub(crate) price_per_gpu_hour: Option<f64>,

    /// Load over time: a table with `time_s,rps` or `hour,rps`, or a trace of requests
    #[arg(long, value_name = "FILE", conflicts_with = "diurnal")]
    pub(crate) traffic: Option<PathBuf>,

    /// Load of a day as a sine: requests per second at peak and trough, and the hour of the peak
    /// [default hour: 14]
    #[arg(long, value_name = "PEAK:TROUGH[:HOUR]", value_parser = parse_day, allow_negative_numbers = true)]
    pub(crate) diurnal: Option<Day>,

    /// Check the load against this many replicas [default: the number with headroom]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) replicas: Option<u64>,

    /// Also compute the latency of a step that makes this many parallel calls
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(2..=100_000), allow_negative_numbers = true)]
    pub(crate) fan_out: Option<u32>,

    /// Also write the plan as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) slo: SavedSloArgs,
}

/// The value of `--diurnal`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Day {
    pub(crate) peak: f64,
    pub(crate) trough: f64,
    pub(crate) peak_hour: f64,
}

fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = parse_number(text).filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| "a rate is a number of requests per second, above zero".to_owned())
}

pub(super) fn parse_price(text: &str) -> Result<f64, String> {
    let price = parse_number(text).filter(|price| *price >= 0.0);
    price.ok_or_else(|| "a price is a number of at least zero, without a currency".to_owned())
}

/// `20%` or `0.2`. A bare `20` could mean either.
fn parse_headroom(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => parse_number(percent).map(|percent| percent / 100.0),
        None => parse_number(text).filter(|share| *share < 1.0),
    };
    share
        .filter(|share| (0.0..=5.0).contains(share))
        .ok_or_else(|| "write `20%` or `0.2`, from 0 % to 500 %".to_owned())
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `name=value`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn parse_day(text: &str) -> Result<Day, String> {
    const FORM: &str = "write `PEAK:TROUGH` or `PEAK:TROUGH:HOUR`, as in `100:20:14`";
    let parts: Option<Vec<f64>> = text.split(':').map(parse_number).collect();
    let (peak, trough, peak_hour) = match parts.as_deref() {
        Some([peak, trough]) => (*peak, *trough, 14.0),
        Some([peak, trough, hour]) => (*peak, *trough, *hour),
        _ => return Err(FORM.to_owned()),
    };
    Ok(Day { peak, trough, peak_hour })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headroom_is_a_share() {
        assert_eq!(parse_headroom("20%").unwrap(), 0.2);
        assert_eq!(parse_headroom("0.2").unwrap(), 0.2);
        assert_eq!(parse_headroom("0").unwrap(), 0.0);
        assert_eq!(parse_headroom("500 %").unwrap(), 5.0);
        for text in ["20", "1", "1000%", "-5%", "-0.1", "nan", "nan%", "inf", "", "%", "much"] {
            assert!(parse_headroom(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days_and_rates() {
        assert_eq!(
            parse_day("100:20").unwrap(),
            Day { peak: 100.0, trough: 20.0, peak_hour: 14.0 }
        );
        assert_eq!(parse_day("5:1:3.5").unwrap().peak_hour, 3.5);
        for text in ["", "100", "a:b", "1:2:3:4", "nan:1", "100:"] {
            assert!(parse_day(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "nan", "inf", "", "ten"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert!(
            parse_price("0").is_ok() && parse_price("-1").is_err() && parse_price("$2").is_err()
        );
    }
}
