//! What is known of the tool that wrote the result: its definitions, and where they mislead.

#![expect(clippy::unnecessary_wraps, reason = "checks have one signature")]

use goodput_model::{Reported, SourceTool};

use super::Source::{CommonMistakes, MeasurementTraps};
use super::words::{number_text, percent_text};
use super::{Check, CheckFinding, phases};

pub(super) const CHECKS: [Check; 11] = [
    Check::new(MeasurementTraps, "failures", "failures", check_failures),
    Check::new(MeasurementTraps, "empty_answers", "empty answers", check_empty_answers),
    Check::new(MeasurementTraps, "first_token", "end point of TTFT", check_first_token),
    Check::new(MeasurementTraps, "connection_setup", "connections in TTFT", check_connection_setup),
    Check::new(MeasurementTraps, "tpot_definition", "TPOT and ITL defined", check_tpot_definition),
    Check::new(MeasurementTraps, "token_counts", "source of token counts", check_token_counts),
    Check::new(CommonMistakes, "tokenizer_time", "tokenizer time", check_tokenizer_time),
    Check::new(MeasurementTraps, "streaming", "streaming", check_streaming),
    Check::new(MeasurementTraps, "retries", "retries", check_retries),
    Check::new(MeasurementTraps, "client_health", "the client's own health", check_client_health),
    Check::new(MeasurementTraps, "own_remarks", "the tool's own warnings", check_own_remarks),
];

fn check_failures(run: &Reported) -> Option<CheckFinding> {
    let ok = run.ok?;
    let by_difference = run.asked.map(|asked| asked.saturating_sub(ok)).filter(|n| *n > 0);
    let Some(failed) = run.failed.or(by_difference) else {
        return Some(match run.asked {
            Some(asked) => CheckFinding::ok(format!("all {asked} requests completed")),
            None => CheckFinding::missing(
                "only successes are counted: the number of failures is unknown",
                "save the details, or state the number of requests sent",
            ),
        });
    };
    if failed == 0 {
        return Some(CheckFinding::ok("none"));
    }
    let share = failed as f64 / (ok.saturating_add(failed)) as f64;
    let rule = match run.tool {
        SourceTool::Goodput => "they stay in the denominator of goodput",
        _ => "they are left out of every latency, so an overloaded server looks better",
    };
    let said = format!("{failed} failed ({}); {rule}", percent_text(share));
    let advice = "find out why they failed; no percentile describes all scheduled requests";
    Some(match () {
        () if ok == 0 => CheckFinding::wrong(format!("all {failed} requests failed"), advice),
        () if share < 0.001 => CheckFinding::note(said, advice),
        () => CheckFinding::doubtful(said, advice),
    })
}

fn check_empty_answers(run: &Reported) -> Option<CheckFinding> {
    let advice = "count them as failures: they pull TTFT to zero and pass every SLO";
    let good = || run.details.iter().flatten().filter(|request| !request.is_failed);
    let total = good().count();
    let no_tokens = good().filter(|request| request.output_tokens == Some(0)).count();
    let no_ttft = good().filter(|request| request.ttft_ms.is_some_and(|ttft| ttft <= 0.0)).count();
    if no_tokens > 0 || no_ttft > 0 {
        return Some(CheckFinding::wrong(
            format!(
                "of {total} successes {no_ttft} have a TTFT of zero and {no_tokens} no output token"
            ),
            advice,
        ));
    }
    if run.details.is_some() {
        return Some(CheckFinding::ok(format!("none among {total} successes")));
    }
    let smallest = run.metrics.get("ttft").and_then(|metric| {
        metric
            .percentiles
            .first()
            .map(|(_, value)| *value)
            .into_iter()
            .chain(metric.min)
            .reduce(f64::min)
    });
    let is_empty = run.output_lengths.is_some_and(|range| range.min < 1.0);
    match smallest {
        _ if is_empty => {
            Some(CheckFinding::wrong("some completed requests have no output tokens", advice))
        }
        Some(ttft) if ttft <= 0.0 => {
            Some(CheckFinding::wrong("some successes have a TTFT of zero", advice))
        }
        Some(_) if run.metrics.get("ttft").is_some_and(|metric| metric.min.is_some()) => {
            Some(CheckFinding::ok("no TTFT of zero"))
        }
        _ => None,
    }
}

/// vLLM's tools take the first event with `choices`, which in chat names the role and no text.
fn check_first_token(run: &Reported) -> Option<CheckFinding> {
    let is_vllm = matches!(run.tool, SourceTool::VllmPython | SourceTool::VllmRust);
    run.metrics.get("ttft")?;
    if !is_vllm {
        return Some(CheckFinding::ok("the first event that carries text"));
    }
    let is_chat = run.backend.as_ref().is_none_or(|backend| backend.contains("chat"));
    if !is_chat {
        return Some(CheckFinding::note(
            "the first event with `choices`, also one without text",
            "check that the server sends no empty first event",
        ));
    }
    let advice = "TTFT is too low where the role comes early, and mean ITL too low by one gap \
                  in every answer; compare TPOT instead of ITL";
    let (at_once, late) = first_gap_shares(run).unwrap_or_default();
    if late > 0.5 {
        return Some(CheckFinding::doubtful(
            format!(
                "the first event with `choices`, which may name the role: in {} of the answers the next \
                 event takes more than twice as long as the others, as a first token does",
                percent_text(late)
            ),
            advice,
        ));
    }
    if at_once > 0.5 {
        return Some(CheckFinding::doubtful(
            format!(
                "the first event with `choices`, which names the role: in {} of the answers the next \
                 event follows at once",
                percent_text(at_once)
            ),
            advice,
        ));
    }
    let mean = |name: &str| run.metrics.get(name).and_then(|metric| metric.mean);
    match mean("itl").zip(mean("tpot")) {
        Some((itl, tpot)) if itl < 0.97 * tpot && is_role_event_likely(run, itl / tpot) => {
            Some(CheckFinding::doubtful(
                format!(
                    "the first event with `choices`, which names the role: mean ITL {} ms below mean \
                 TPOT {} ms shows a gap of zero in every answer",
                    number_text(itl),
                    number_text(tpot)
                ),
                advice,
            ))
        }
        _ => Some(CheckFinding::note(
            "the first event with `choices`, which in chat may name the role and carry no text",
            advice,
        )),
    }
}

/// Whether events without a token explain by how much ITL is below TPOT.
fn is_role_event_likely(run: &Reported, ratio: f64) -> bool {
    let later = phases::mean_tokens(run).map(|tokens| tokens - 1.0);
    later.is_none_or(|later| ratio >= 0.9 * later / phases::most_gaps(later))
}

/// The shares of the answers whose first gap is less than a tenth, and more than twice the mean of
/// the others; none if the file does not hold them.
fn first_gap_shares(run: &Reported) -> Option<(f64, f64)> {
    let good = run.details.iter().flatten().filter(|request| !request.is_failed);
    let (mut n, mut early, mut late) = (0_u64, 0_u64, 0_u64);
    for gaps in good.filter_map(|request| request.gaps_ms.as_deref()) {
        let [first, rest @ ..] = gaps else { continue };
        if rest.len() >= 2 {
            n += 1;
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            early += u64::from(*first < 0.1 * mean);
            late += u64::from(*first > 2.0 * mean);
        }
    }
    (n > 0).then(|| (early as f64 / n as f64, late as f64 / n as f64))
}

fn check_connection_setup(run: &Reported) -> Option<CheckFinding> {
    run.metrics.get("ttft")?;
    let advice = "measure over reused connections, or state that you do not: TLS alone takes a \
                  round trip or two";
    Some(match run.tool {
        SourceTool::Goodput => CheckFinding::ok(
            "connections are reused; those that had to be opened are \
                                      counted",
        ),
        SourceTool::Guidellm => CheckFinding::ok("TTFT begins after the connection is open"),
        SourceTool::Sglang => {
            CheckFinding::note("a new connection for each request, inside every TTFT", advice)
        }
        _ => CheckFinding::note(
            "TTFT begins before the connection is open, so it includes new \
                            connections",
            advice,
        ),
    })
}

fn check_tpot_definition(run: &Reported) -> Option<CheckFinding> {
    if !run.metrics.contains_key("tpot") && !run.metrics.contains_key("itl") {
        return None;
    }
    Some(match run.tool {
        SourceTool::Goodput => CheckFinding::ok("TPOT without the first token; ITL is every gap"),
        SourceTool::VllmPython | SourceTool::VllmRust => CheckFinding::ok(
            "TPOT without the first token, each request weighted equally; ITL is every gap between \
             events, whatever they carry",
        ),
        SourceTool::Sglang => CheckFinding::ok(
            "TPOT without the first token; ITL of the native API is spread over the tokens of an \
             event",
        ),
        SourceTool::Aiperf | SourceTool::GenaiPerf => CheckFinding::note(
            "its inter-token latency is the mean of each request (read here as TPOT): a stall \
             inside an answer does not show in its p99",
            "read inter-chunk latency for stalls; do not compare with ITL of other tools",
        ),
        SourceTool::Guidellm => CheckFinding::note(
            "its TPOT holds the first token too, and its ITL is a mean of each request, weighted by \
             tokens: a stall inside an answer shows in neither",
            "compare its ITL with TPOT of other tools, and its TPOT with none",
        ),
    })
}

fn check_token_counts(run: &Reported) -> Option<CheckFinding> {
    let tokens = run.output_tokens?;
    if let Some(recounted) = run.recounted_tokens.filter(|_| tokens > 0) {
        let ratio = recounted as f64 / tokens as f64;
        if (ratio - 1.0).abs() > 0.1 {
            return Some(CheckFinding::doubtful(
                format!(
                    "{tokens} output tokens stated, {recounted} by the tool's tokenizer ({}): the \
                     stated number may be the requested one",
                    percent_text(ratio)
                ),
                "use the server's usage as the count, and check that the server kept to the \
                 requested lengths",
            ));
        }
        return Some(CheckFinding::ok(format!(
            "{tokens} stated, {recounted} by the tool's tokenizer"
        )));
    }
    let Some(source) = &run.token_source else {
        return Some(CheckFinding::missing("not stated", "state how tokens were counted"));
    };
    let is_guess = source.contains("each") || source.contains("asked for");
    Some(if is_guess {
        CheckFinding::note(format!("by {source}"), "check that the server sends usage")
    } else {
        CheckFinding::ok(format!("by {source}"))
    })
}

fn check_tokenizer_time(run: &Reported) -> Option<CheckFinding> {
    run.metrics.get("ttft")?;
    Some(match run.tool {
        SourceTool::Goodput => CheckFinding::ok(
            "prompts are sent as text, so TTFT includes the server's tokenizer; ours runs after \
             the run",
        ),
        SourceTool::VllmPython | SourceTool::VllmRust | SourceTool::Sglang => CheckFinding::ok(
            "prompts are sent as text unless token ids were requested, so TTFT includes the \
             server's tokenizer; the tool's own runs outside",
        ),
        SourceTool::Aiperf | SourceTool::GenaiPerf | SourceTool::Guidellm => {
            CheckFinding::ok("prompts are sent as text, so TTFT includes the server's tokenizer")
        }
    })
}

fn check_streaming(run: &Reported) -> Option<CheckFinding> {
    Some(match run.streaming {
        Some(true) => CheckFinding::ok("answers were streamed"),
        Some(false) if run.metrics.contains_key("ttft") => CheckFinding::doubtful(
            "answers were not streamed, yet a TTFT is stated: it is the time of the whole answer",
            "use streaming, or leave TTFT out",
        ),
        Some(false) => CheckFinding::note("answers were not streamed: no TTFT, no TPOT", "stream"),
        None => CheckFinding::missing("not stated", "state it"),
    })
}

fn check_retries(run: &Reported) -> Option<CheckFinding> {
    match run.tool {
        SourceTool::VllmRust => Some(CheckFinding::note(
            "the tool tries a failed request up to three times and restarts its clock: failures \
             and seconds of waiting may be missing",
            "check the server's log for retries",
        )),
        _ => None,
    }
}

fn check_client_health(run: &Reported) -> Option<CheckFinding> {
    Some(match run.tool {
        SourceTool::Goodput => CheckFinding::ok("the run records schedule slip and client lag"),
        SourceTool::Guidellm => {
            CheckFinding::note("only how late requests were sent", "read request_dispatch_delay")
        }
        _ => CheckFinding::missing(
            "the file does not show whether the client kept up: a client without enough CPU makes \
             the server look slow",
            "watch the client's CPU; repeat with half the load from two machines",
        ),
    })
}

fn check_own_remarks(run: &Reported) -> Option<CheckFinding> {
    if run.remarks.is_empty() {
        return None;
    }
    let shown: Vec<String> =
        run.remarks.iter().take(4).map(|remark| remark.chars().take(160).collect()).collect();
    let rest = run.remarks.len() - shown.len();
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    Some(CheckFinding::doubtful(
        format!("{}{more}", shown.join("; ")),
        "repeat the run without them",
    ))
}
