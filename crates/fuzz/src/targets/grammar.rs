//! What stands in one flag: every grammar, and what it writes is what it reads.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use goodput_campaign::compare::Gate;
use goodput_dataset::{DatasetFormat, TraceFormat};
use goodput_mock::{MockFault, PageTrouble};
use goodput_model::{
    ArrivalProcess, Delay, ErrorClass, LengthDistribution, LoadExtent, LoadShape, MetricName, Rate,
    Shard, Slo, Until,
};
use goodput_wire::SessionHeader;

use super::{FuzzTarget, ParserInput, SHORT, USUAL, check_same, text_seeds};

macro_rules! grammars {
    ($(($name:literal, $type:ty, $seeds:expr, $words:expr)),* $(,)?) => {
        vec![$(FuzzTarget {
            name: $name,
            seeds: || text_seeds(&$seeds),
            words: &$words,
            check: check_round_trip::<$type>,
            limits: USUAL,
            short: SHORT,
        }),*]
    };
}

const TIMES: [&str; 10] =
    ["ns", "us", "ms", "s", "m", "h", "days", " ", ".", "1000000000000000000000s"];

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn targets() -> Vec<FuzzTarget> {
    let mut all = grammars![
        (
            "slo",
            Slo,
            [
                "p99 ttft < 500ms, mean tpot <= 50ms, errors < 1%",
                "ttft < 1s",
                "fluidity > 0.9, rps >= 5"
            ],
            [
                "p99", "p99.9", "mean", "ttft", "tpot", "errors", "<", "<=", ">", ">=", "ms", "%",
                ",", "chat"
            ]
        ),
        (
            "until",
            Until,
            ["p95 ttft ±10%, mean tpot +-5%", "p50 e2e +/-1.5%"],
            ["±", "+-", "+/-", "%", "p", "mean ", "ttft", ",", "max_gap"]
        ),
        ("shape", LoadShape, ["1m@5,2m@20", "30s@0..50", "sine:5:4:10m", "bursts:50/30s"], TIMES),
        ("rate", Rate, ["20", "20/s", "90/m", "inf", "1e3/h"], ["/s", "/m", "/h", "inf", "e", "."]),
        ("arrivals", ArrivalProcess, ["poisson", "constant", "gamma:2.5"], ["gamma:", "."]),
        ("extent", LoadExtent, ["10s", "50", "auto", "1m 30s"], TIMES),
        (
            "delay",
            Delay,
            ["50ms", "uniform:40ms:60ms", "exp:50ms", "lognormal:50ms:0.5", "0"],
            TIMES
        ),
        (
            "lengths",
            LengthDistribution,
            ["512", "uniform:5:9", "normal:100:20", "lognormal:100:0.5", "zipf:10:1.2"],
            ["uniform:", "normal:", "lognormal:", "zipf:", "..", ":", "@"]
        ),
        ("shard", Shard, ["0/4", "3/4"], ["/"]),
        ("metric", MetricName, ["ttft", "e2el", "max-gap"], ["_", "-", "tokens_per_s"]),
        ("error-class", ErrorClass, ["http_500", "timeout", "bad_event"], ["http_", "_"]),
        (
            "fault",
            MockFault,
            [
                "500:10%",
                "stall=2s:1/10@5s+3s",
                "refuse@5s+3s",
                "drip=8/20ms",
                "429=1s:5%",
                "huge_event=1MB",
            ],
            ["=", ":", "@", "+", "%", "1/", "ms", "reset", "truncate", "pings", "slow_headers="]
        ),
    ];
    all.push(FuzzTarget {
        name: "words",
        seeds: || {
            text_seeds(&[
                "sharegpt",
                "mooncake",
                "slow:3s",
                "huge:1MB",
                "reset:5s",
                "x-session",
                "ttft<+5%,errors<1%",
            ])
        },
        words: &["+5%", "-5%", "<", ">", ",", ":"],
        check: fuzz_words,
        limits: USUAL,
        short: SHORT,
    });
    all
}

/// What reads must be written in a form that reads as the same.
fn check_round_trip<T>(case: &ParserInput<'_>) -> Result<(), String>
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    let Some(text) = case.text() else { return Ok(()) };
    match text.parse::<T>() {
        Err(error) => drop(error.to_string()),
        Ok(value) => {
            let written = value.to_string();
            let again = written.parse::<T>();
            let again = again.map_err(|error| format!("`{written}` was written: {error}"))?;
            check_same("written and read again", &again.to_string(), &written)?;
        }
    }
    Ok(())
}

/// Grammars without a form to be written in.
#[expect(clippy::unnecessary_wraps, reason = "as all checks are")]
fn fuzz_words(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    drop(text.parse::<DatasetFormat>().map_err(|error| error.to_string()));
    drop(text.parse::<TraceFormat>().map_err(|error| error.to_string()));
    drop(text.parse::<PageTrouble>());
    drop(text.parse::<SessionHeader>().map_err(|_| ()));
    drop(Gate::parse_all(text).map_err(|error| error.to_string()));
    let _ = (goodput_tokens::hub::is_id(text), goodput_tokens::hub::looks_like_id(text));
    Ok(())
}
