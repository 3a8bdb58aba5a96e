//! `goodput mock --curve`: what a profile does at rising load, in simulated time.

use std::sync::Arc;

use goodput_mock::MockSettings;
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{ArrivalProcess as Process, LengthDistribution, Nanos, Rate, SourcePlan};
use goodput_schedule::ArrivalSequence;
use goodput_sim::{JobArrival, JobOutcome, SimEngine, SimJob, simulate};
use goodput_stats::{Quick, Sample};
use goodput_workload::preset;
use serde_json::{Value, json};

use crate::args::MockArgs;
use crate::error::Failed;
use crate::output;

/// Below this share of arrivals finished in the second half, the backlog grows.
const BALANCE: f64 = 0.97;

/// And so many standard deviations of the number of arrivals must be left over.
const CHANCE: f64 = 3.0;

/// One rate.
struct Point {
    rate: f64,
    requests: usize,
    refused: usize,
    ttft_ms: Quick,
    tpot_ms: Quick,
    tokens_per_s: f64,
    is_saturated: bool,
}

/// Prints a table, or JSON.
pub(crate) fn print(settings: &MockSettings, args: &MockArgs) -> Result<(), Failed> {
    let lengths = chat()?;
    let length = Nanos::from(args.curve_duration);
    let mut points = Vec::new();
    if !args.json {
        let title =
            "   rate/s  requests  refused  TTFT p50   p99 ms  TPOT p50   p99 ms    tokens/s\n";
        output::data(title.as_bytes())?;
    }
    for rate in &args.curve {
        let point = point(settings, lengths, *rate, length);
        if args.json {
            points.push(json(&point));
        } else {
            output::data(row(&point).as_bytes())?;
        }
    }
    if args.json {
        let page = json!({"profile": args.profile, "workload": "chat", "simulated": true,
            "duration_s": length.as_secs(), "seed": settings.seed, "points": points});
        output::data(format!("{page:#}\n").as_bytes())?;
    }
    Ok(())
}

/// Lengths of prompts and answers.
fn chat() -> Result<(LengthDistribution, LengthDistribution), Failed> {
    match preset("chat").map(|class| class.source) {
        Some(SourcePlan::Synthetic { input, output }) => Ok((input, output)),
        _ => Err(Failed::internal("there is no chat workload")),
    }
}

fn point(
    settings: &MockSettings,
    (input, output): (LengthDistribution, LengthDistribution),
    rate: f64,
    length: Nanos,
) -> Point {
    let mut engine = SimEngine::new(&settings.profile, settings.seed, |seed, index| {
        (seed as u32).rotate_left(7) ^ index
    });
    let instants = ArrivalSequence::new(Rate::PerSecond(rate), Process::Poisson, settings.seed);
    let most = settings.profile.longest_request();
    let mut too_long = 0;
    let arrivals = (0u64..).zip(instants.take_while(|at| *at < length)).filter_map(|(id, at)| {
        let mut lengths = RandomStream::new(settings.seed, Domain::Lengths, id);
        let (input_tokens, output_tokens) = (input.draw(&mut lengths), output.draw(&mut lengths));
        // The server refuses these before the engine hears of them.
        if input_tokens + output_tokens > most {
            too_long += 1;
            return None;
        }
        // Every prompt is another: no two begin alike.
        let prompt: Arc<[u32]> =
            (0..input_tokens).map(|token| token ^ ((id as u32) << 12)).collect();
        Some(JobArrival { at, job: SimJob { id, prompt, output_tokens, answer_seed: id } })
    });
    let outcomes = simulate(&mut engine, arrivals);
    let mut point = measure(rate, length, &outcomes);
    point.requests += too_long;
    point.refused += too_long;
    point
}

fn measure(rate: f64, length: Nanos, outcomes: &[JobOutcome]) -> Point {
    let (mut ttft, mut tpot) = (Sample::default(), Sample::default());
    let mut tokens = 0.0;
    for outcome in outcomes {
        let (Some(first), Some(last)) = (outcome.first_token, outcome.finished) else { continue };
        ttft.push((first - outcome.arrived).as_ms());
        if outcome.output_tokens > 1 {
            tpot.push((last - first).as_ms() / f64::from(outcome.output_tokens - 1));
        }
        // The part of its tokens that came while requests still arrived.
        let inside = if first < last {
            (length.min(last) - first).as_secs() / (last - first).as_secs()
        } else {
            f64::from(first < length)
        };
        tokens += f64::from(outcome.output_tokens) * inside;
    }
    let half = Nanos(length.0 / 2);
    let is_late = |at: Nanos| at >= half && at < length;
    let is_taken = |outcome: &&JobOutcome| is_late(outcome.arrived) && !outcome.refused;
    let came = outcomes.iter().filter(is_taken).count() as f64;
    let went = outcomes.iter().filter(|outcome| outcome.finished.is_some_and(is_late)).count();
    let backlog = came - went as f64;
    Point {
        rate,
        requests: outcomes.len(),
        refused: outcomes.iter().filter(|outcome| outcome.refused).count(),
        ttft_ms: ttft.quick(),
        tpot_ms: tpot.quick(),
        tokens_per_s: tokens / length.as_secs(),
        is_saturated: backlog > (1.0 - BALANCE) * came && backlog > CHANCE * came.sqrt(),
    }
}

fn row(point: &Point) -> String {
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1}"));
    format!(
        "{:>9} {:>9} {:>8} {:>9} {:>8} {:>9} {:>8} {:>11.0}{}\n",
        point.rate,
        point.requests,
        point.refused,
        ms(point.ttft_ms.p50),
        ms(point.ttft_ms.p99),
        ms(point.tpot_ms.p50),
        ms(point.tpot_ms.p99),
        point.tokens_per_s,
        if point.is_saturated { "  saturated" } else { "" }
    )
}

fn json(point: &Point) -> Value {
    json!({
        "rate": point.rate,
        "requests": point.requests,
        "refused": point.refused,
        "ttft_ms": {"p50": point.ttft_ms.p50, "p99": point.ttft_ms.p99},
        "tpot_ms": {"p50": point.tpot_ms.p50, "p99": point.tpot_ms.p99},
        "output_tokens_per_s": point.tokens_per_s,
        "saturated": point.is_saturated,
    })
}
