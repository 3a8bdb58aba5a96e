//! The load: warm-up, loop, arrivals, rate, and what of the run the throughput covers.

#![expect(clippy::unnecessary_wraps, reason = "checks have one signature")]

use goodput_model::{Reported, ReportedMetric, ReportedMode, SourceTool};

use super::Source::{Checklist, MeasurementTraps};
use super::words::{self, mean_e2e_s, number_text, percent_text, requests_sent};
use super::{Check, CheckFinding, flow};

const WARM_REQUESTS: u64 = 50;
const WARM_SECONDS: f64 = 30.0;
/// Requests below which sends are not compared with answers, and the share that follow one by chance.
const FEWEST: usize = 100;
const CHANCE: f64 = 0.02;

pub(super) const CHECKS: [Check; 7] = [
    Check::new(Checklist, "warmup", "warm-up", check_warmup),
    Check::new(Checklist, "open_loop", "open loop", check_open_loop),
    Check::new(Checklist, "arrivals", "arrival process", check_arrivals),
    Check::new(MeasurementTraps, "delivered_rate", "rate delivered", check_delivered_rate),
    Check::new(Checklist, "sweep", "several loads", check_sweep),
    Check::new(MeasurementTraps, "drain", "throughput window", check_drain),
    Check::new(MeasurementTraps, "latency_origin", "latency from schedule", check_latency_origin),
];

fn check_warmup(run: &Reported) -> Option<CheckFinding> {
    let advice =
        "send at least 50 requests, or 30 s of load, of the measured shape before measuring";
    let cold = "the first requests pay for compilation, graph capture, and empty caches, and p99 shows \
         it";
    let (requests, seconds) = (run.warmup.requests, run.warmup.seconds);
    let said: Vec<_> = [
        requests.map(|n| format!("{n} requests")),
        seconds.map(|s| format!("{} s", number_text(s))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_enough = requests.is_some_and(|n| n >= WARM_REQUESTS)
        || seconds.is_some_and(|seconds| seconds >= WARM_SECONDS);
    let is_none = requests.unwrap_or(0) == 0 && seconds.unwrap_or(0.0) <= 0.0;
    Some(match () {
        () if said.is_empty() => {
            CheckFinding::missing(format!("the file does not say; {cold}"), advice)
        }
        () if is_enough => CheckFinding::ok(format!("warm-up of {}", said.join(", "))),
        () if is_none => CheckFinding::doubtful(format!("no warm-up; {cold}"), advice),
        () => {
            CheckFinding::doubtful(format!("a warm-up of only {}; {cold}", said.join(", ")), advice)
        }
    })
}

fn check_open_loop(run: &Reported) -> Option<CheckFinding> {
    let load = words::load_text(run);
    let advice = "offer a rate that does not depend on the answers, without a cap";
    Some(match run.load.mode {
        ReportedMode::Open if let Some(share) = share_sent_after_answer(run) => {
            CheckFinding::doubtful(
                format!(
                    "{load} according to the file, but {} of the requests were sent right when an \
                 answer ended: users waited for answers, so the loop was closed",
                    percent_text(share)
                ),
                advice,
            )
        }
        ReportedMode::Open => CheckFinding::ok(load),
        ReportedMode::Capped => CheckFinding::doubtful(
            format!("{load}: once the cap binds, arrivals wait for answers and the loop is closed"),
            advice,
        ),
        ReportedMode::Burst => CheckFinding::doubtful(
            format!(
                "{load} (request rate inf): latencies measure the queue that the burst itself \
                 creates, and depend on the number of requests"
            ),
            advice,
        ),
        ReportedMode::Closed => CheckFinding::doubtful(
            format!(
                "{load}: a slow server receives fewer requests, so latency under a given load is \
                 understated and saturation stays hidden"
            ),
            advice,
        ),
        ReportedMode::Unknown => {
            CheckFinding::missing(load, "state rate, arrivals and concurrency")
        }
    })
}

/// The share of the requests that were sent just after an answer ended, where it is far more than chance
/// makes: that soon after an end are 2 % of all instants.
fn share_sent_after_answer(run: &Reported) -> Option<f64> {
    // Equal gaps and equal answers may well keep step.
    let is_drawn = run.load.arrivals.as_deref() == Some("poisson");
    let times = flow::send_and_end_times(run).filter(|times| is_drawn && times.len() >= FEWEST)?;
    let mut ends: Vec<f64> = times.iter().map(|(_, end)| *end).collect();
    ends.sort_by(f64::total_cmp);
    let soon = CHANCE * (ends.last()? - ends.first()?) / ends.len() as f64;
    let follows = |start: f64| {
        let before = ends.partition_point(|end| *end <= start);
        before.checked_sub(1).and_then(|last| ends.get(last)).is_some_and(|end| start - end < soon)
    };
    let n = times.iter().filter(|(start, _)| follows(*start)).count();
    Some(n as f64 / times.len() as f64).filter(|share| *share > 0.5)
}

fn check_arrivals(run: &Reported) -> Option<CheckFinding> {
    if !matches!(run.load.mode, ReportedMode::Open | ReportedMode::Capped) {
        return None;
    }
    let Some(arrivals) = &run.load.arrivals else {
        return Some(CheckFinding::missing(
            "no arrival process is stated",
            "state it; use Poisson",
        ));
    };
    let is_poisson = arrivals == "poisson";
    Some(match run.tool {
        SourceTool::Guidellm if is_poisson => CheckFinding::doubtful(
            "Poisson by GuideLLM: up to 0.8.1 its worker processes share one seed, so arrivals come \
             in groups of equal gaps",
            "run it with one worker process, or compare the gaps in the file with an exponential",
        ),
        SourceTool::VllmPython | SourceTool::VllmRust if is_poisson => CheckFinding::ok(
            "Poisson, with gaps stretched so that they sum to requests/rate exactly: slightly too \
             regular",
        ),
        _ if is_poisson || arrivals.starts_with("gamma") || arrivals == "trace" => {
            CheckFinding::ok(arrivals.clone())
        }
        _ if arrivals == "constant" => CheckFinding::note(
            "equal gaps: real users come in bursts, and equal gaps hide the queues that bursts \
             create",
            "use Poisson arrivals",
        ),
        _ => CheckFinding::note(arrivals.clone(), "a constant mean rate is easier to interpret"),
    })
}

/// How many requests were sent in how many seconds: by their own instants, which may hold those of
/// the warm-up, else over the duration without the wait for the last answer.
fn sent_count_and_s(run: &Reported) -> Option<(u64, f64)> {
    let starts = || run.details.iter().flatten().filter_map(|request| request.start_s);
    let (first, last) = starts()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), start| (a.min(start), b.max(start)));
    if last > first {
        return Some((starts().count() as u64, last - first));
    }
    let seconds = run.duration_s? - mean_e2e_s(run).unwrap_or(0.0);
    Some((requests_sent(run)?, seconds)).filter(|(_, seconds)| *seconds > 0.0)
}

/// By how much longer than a mean answer the wait for the last one may have been; nothing if the
/// instants of sending are known.
fn longest_drain_s(run: &Reported) -> f64 {
    let is_known = run.details.iter().flatten().any(|request| request.start_s.is_some());
    let e2e = run.metrics.get("e2e").filter(|_| !is_known);
    let longest = e2e.and_then(|metric| metric.max.or_else(|| longest_possible(metric, run.ok?)));
    longest.map_or(0.0, |ms| (ms / 1e3 - mean_e2e_s(run).unwrap_or(0.0)).max(0.0))
}

/// How long the slowest of `n` may have taken, where it is not stated: no value is further from the mean
/// than sqrt(n − 1) standard deviations, and of a hundred and more hardly one is beyond twice the p99.
fn longest_possible(metric: &ReportedMetric, n: u64) -> Option<f64> {
    let by_deviation = (metric.mean.zip(metric.std))
        .map(|(mean, std)| mean + std * (n.saturating_sub(1) as f64).sqrt());
    let by_tail = metric.percentile(99.0).filter(|_| n >= 100).map(|p99| 2.0 * p99);
    by_deviation.into_iter().chain(by_tail).reduce(f64::min)
}

/// By how much the rate of `n` arrivals may differ from the one asked for.
fn rate_tolerance(run: &Reported, n: f64) -> f64 {
    let is_vllm = matches!(run.tool, SourceTool::VllmPython | SourceTool::VllmRust);
    if is_vllm || run.load.arrivals.as_deref() == Some("constant") {
        // The last one is due at n/rate exactly; the ends of the schedule are one gap each.
        0.1 + 2.0 / n
    } else {
        // Three standard deviations of a Poisson count.
        (3.0 / n.sqrt()).max(0.1)
    }
}

fn check_delivered_rate(run: &Reported) -> Option<CheckFinding> {
    // Ours states the instants themselves, and its caveats judge them.
    if run.tool == SourceTool::Goodput {
        return None;
    }
    let asked = run.load.rate_rps.filter(|rate| *rate > 0.0)?;
    let (n, seconds) = sent_count_and_s(run)?;
    let rate = n as f64 / seconds;
    let share = rate / asked;
    let chance = rate_tolerance(run, n.max(1) as f64);
    let said = format!("{} req/s requested, {} sent", number_text(asked), number_text(rate));
    // The last answer may have been a long one.
    let at_most = n as f64 / (seconds - longest_drain_s(run)).max(f64::MIN_POSITIVE);
    Some(match share {
        share if share < 1.0 - chance && at_most < asked * (1.0 - chance) => {
            CheckFinding::doubtful(
                format!(
                    "{said}: the client or its cap could not keep the rate, so every latency \
                 describes a lighter load (or the client)"
                ),
                "lower the rate, lift the cap, or use a faster client; check the client's CPU",
            )
        }
        share if share > 1.0 + chance => CheckFinding::doubtful(
            format!("{said}: the server saw more load than the file says"),
            "read these figures as those of the rate that was sent",
        ),
        _ => CheckFinding::ok(said),
    })
}

fn check_sweep(run: &Reported) -> Option<CheckFinding> {
    Some(if run.siblings > 0 {
        CheckFinding::ok(format!("{} results in this file", run.siblings + 1))
    } else {
        CheckFinding::missing(
            "only one load: the file cannot show where the server saturates",
            "measure several rates up to and past the knee",
        )
    })
}

fn check_drain(run: &Reported) -> Option<CheckFinding> {
    if run.tool == SourceTool::Goodput {
        return Some(CheckFinding::ok("tokens are counted by their arrival inside the window"));
    }
    run.requests_per_s.or(run.output_tokens_per_s)?;
    let rule = "throughput is divided by the time to the last answer, with the drain in it";
    let n = requests_sent(run)? as f64;
    match (run.load.mode, run.load.concurrency) {
        (ReportedMode::Burst, _) => Some(CheckFinding::doubtful(
            format!(
                "{rule}; all {} requests were sent at once, so most of the run is drain",
                number_text(n)
            ),
            "read it as the makespan of a batch, not as a rate that can be sustained",
        )),
        (ReportedMode::Closed, Some(users)) => {
            let rounds = n / users.max(1) as f64;
            let said =
                format!("{rule}; {} requests for each of {users} users", number_text(rounds));
            Some(if rounds < 20.0 {
                CheckFinding::doubtful(
                    format!(
                        "{said}: with answers of unequal length, 5 requests each show about 52 % \
                         of the true rate, 10 show 66 %, and 20 show 80 %"
                    ),
                    "send at least 50 requests for each user, or count tokens inside a window",
                )
            } else {
                CheckFinding::ok(said)
            })
        }
        _ => {
            let share = mean_e2e_s(run)? / run.duration_s.filter(|seconds| *seconds > 0.0)?;
            let said = format!("{rule}; one answer takes {} of the run", percent_text(share));
            Some(if share > 0.1 {
                CheckFinding::doubtful(
                    said,
                    "measure for at least ten times as long as an answer takes",
                )
            } else {
                CheckFinding::ok(said)
            })
        }
    }
}

fn check_latency_origin(run: &Reported) -> Option<CheckFinding> {
    let is_open = matches!(run.load.mode, ReportedMode::Open | ReportedMode::Capped);
    if run.tool == SourceTool::Goodput {
        return Some(CheckFinding::ok("latency counts from the scheduled instant"));
    }
    if !is_open {
        return None;
    }
    if run.metrics.contains_key("e2e_sched") {
        return Some(CheckFinding::note(
            "the file has E2E from the scheduled instant; TTFT counts from the send",
            "read E2E from schedule; TTFT leaves the client's own delay out",
        ));
    }
    let said = format!(
        "{} counts from the send, not from the scheduled instant: it leaves out what a user waits \
         before the send",
        run.tool.name()
    );
    let advice = "compare with a tool that counts from schedule, or make sure that nothing waited";
    Some(if run.load.mode == ReportedMode::Capped {
        CheckFinding::doubtful(format!("{said}, and here a cap makes requests wait"), advice)
    } else {
        CheckFinding::note(said, advice)
    })
}
