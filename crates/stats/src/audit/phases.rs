//! The phases of a request are one sum: E2E is TTFT and the tokens after the first.

use goodput_model::{Reported, SourceTool};

use super::Source::Arithmetic;
use super::words::number_text;
use super::{Check, CheckFinding};

/// Rounding, and the wait for the last event, which carries no token.
const SLACK: f64 = 0.02;
/// GuideLLM weighs its figures by tokens, and counts the last event in E2E only.
const WEIGHTED: f64 = 0.05;
/// ITL that is further than this from what its events explain.
const APART: f64 = 0.1;
/// ITL and TPOT within this distance have one token for each event.
const ALIKE: f64 = 0.03;
/// Events of an answer that carry no token: one names the role, one the reason to stop.
const EMPTY_EVENTS: f64 = 2.0;

pub(super) const CHECKS: [Check; 1] =
    [Check::new(Arithmetic, "phases_add_up", "TTFT and TPOT make E2E", check_phases_add_up)];

/// Means of one answer, in milliseconds and tokens.
struct AnswerMeans {
    /// Tokens after the first.
    later: f64,
    /// Time after the first token, where E2E and TTFT are stated.
    decode: Option<f64>,
    tpot: Option<f64>,
    itl: Option<f64>,
}

impl AnswerMeans {
    fn has_token_per_gap(&self, itl: f64) -> bool {
        self.tpot.is_some_and(|tpot| (itl - tpot).abs() <= ALIKE * tpot)
    }
}

/// Output tokens of an answer on average.
pub(super) fn mean_tokens(run: &Reported) -> Option<f64> {
    Some(run.output_tokens? as f64 / run.ok.filter(|n| *n > 0)? as f64)
}

/// How many gaps an answer may have at most: one for each later token, and those of events without a
/// token.
pub(super) fn most_gaps(later: f64) -> f64 {
    later + EMPTY_EVENTS
}

fn answer_means(run: &Reported) -> Option<AnswerMeans> {
    let mean = |name: &str| run.metrics.get(name)?.mean.filter(|mean| *mean > 0.0);
    let later = mean_tokens(run).map(|tokens| tokens - 1.0).filter(|later| *later > 0.0)?;
    let decode = mean("e2e").zip(mean("ttft")).map(|(e2e, ttft)| e2e - ttft);
    // A TTFT above E2E is told elsewhere.
    let decode = decode.filter(|decode| *decode > 0.0);
    Some(AnswerMeans { later, decode, tpot: mean("tpot"), itl: mean("itl") })
}

fn check_phases_add_up(run: &Reported) -> Option<CheckFinding> {
    let answer = answer_means(run)?;
    let pace = check_by_tpot(run, &answer);
    let gaps = check_by_itl(run, &answer);
    [pace.clone(), gaps.clone()].into_iter().flatten().max_by_key(|found| found.severity)
}

/// Each answer's own TPOT times its own tokens is exact. The mean of one times the mean of the other
/// is off by their covariance, which is at most the product of the standard deviations.
fn check_by_tpot(run: &Reported, answer: &AnswerMeans) -> Option<CheckFinding> {
    let (tpot, decode, later) = (answer.tpot?, answer.decode?, answer.later);
    let (what, count, time) = match run.tool {
        // Its TPOT has the first token in it.
        SourceTool::Guidellm => ("E2E is", later + 1.0, run.metrics.get("e2e")?.mean?),
        _ => ("E2E less TTFT leaves", later, decode),
    };
    let said = format!(
        "{what} {} ms for {} tokens, {} ms each; TPOT is {} ms",
        number_text(time),
        number_text(count),
        number_text(time / count),
        number_text(tpot)
    );
    let off = (tpot * count - time).abs();
    let is_off = match (run.tool, run.metrics.get("tpot").and_then(|metric| metric.std)) {
        // Ours leaves out of one figure what failed, and out of the other what has no count.
        (SourceTool::Goodput, _) | (_, None) => !(0.5..=2.0).contains(&(time / (tpot * count))),
        (SourceTool::Guidellm, Some(_)) => off > WEIGHTED * time,
        (_, Some(std)) => off > SLACK * time + std * token_count_spread(run, later) * later,
    };
    Some(if is_off {
        CheckFinding::wrong(
            format!("{said}: TPOT, E2E or the number of tokens comes from another run"),
            super::arithmetic::ADVICE,
        )
    } else {
        CheckFinding::ok(said)
    })
}

/// The coefficient of variation of the tokens after the first: by the requests, or the most that
/// their range allows, or that of an exponential distribution.
fn token_count_spread(run: &Reported, later: f64) -> f64 {
    let good = run.details.iter().flatten().filter(|request| !request.is_failed);
    let lengths: Vec<f64> =
        good.filter_map(|request| Some(request.output_tokens? as f64)).collect();
    if lengths.len() > 1 {
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        let squares: f64 = lengths.iter().map(|length| (length - mean).powi(2)).sum();
        return (squares / lengths.len() as f64).sqrt() / later;
    }
    let most =
        run.output_lengths.map(|range| (range.max - later - 1.0) * (later + 1.0 - range.min));
    most.filter(|most| *most >= 0.0).map_or(1.0, |most| most.sqrt() / later)
}

/// All gaps together are the time after the first token; how many they are is known, or bounded by the
/// number of tokens.
fn check_by_itl(run: &Reported, answer: &AnswerMeans) -> Option<CheckFinding> {
    let (itl, later) = (answer.itl?, answer.later);
    // Where the gaps themselves are in the file, they are counted.
    let has_gaps = run.details.iter().flatten().any(|request| request.gaps_ms.is_some());
    if has_gaps || run.tool == SourceTool::Goodput {
        return None;
    }
    let counted = run.metrics.get("itl").and_then(|metric| metric.n).zip(run.ok);
    let counted = counted.map(|(gaps, ok)| gaps as f64 / ok.max(1) as f64);
    let exact = match run.tool {
        SourceTool::Guidellm => Some((later, WEIGHTED)),
        SourceTool::Aiperf | SourceTool::GenaiPerf => counted.map(|gaps| (gaps, SLACK)),
        _ => None,
    };
    if let Some((gaps, slack)) = exact {
        let decode = answer.decode?;
        let said = format!(
            "E2E less TTFT leaves {} ms, {} gaps of ITL make {} ms",
            number_text(decode),
            number_text(gaps),
            number_text(itl * gaps)
        );
        return Some(if (itl * gaps - decode).abs() > slack * decode {
            CheckFinding::wrong(
                format!("{said}: ITL, E2E or the number of tokens comes from another run"),
                super::arithmetic::ADVICE,
            )
        } else {
            CheckFinding::ok(said)
        });
    }
    let time = answer.decode.or(answer.tpot.map(|tpot| tpot * later))?;
    let gaps = time / itl;
    let said = format!(
        "{} tokens after the first take {} ms, which is {} gaps of the mean ITL of {} ms",
        number_text(later),
        number_text(time),
        number_text(gaps),
        number_text(itl)
    );
    let is_one_each = answer.has_token_per_gap(itl);
    let advice = "find out what an event carries; compare TPOT instead of ITL";
    Some(match gaps {
        gaps if gaps > most_gaps(later) * (1.0 + APART) => CheckFinding::doubtful(
            format!(
                "{said}: ITL or TPOT comes from another run, or most events carry no token (one \
                 for the role and one for the end explain {})",
                number_text(most_gaps(later))
            ),
            advice,
        ),
        gaps if gaps < later * (1.0 - APART) && is_one_each && answer.decode.is_some() => {
            CheckFinding::wrong(
                format!(
                    "{said}, although TPOT of {} ms means one token for each: E2E or the number \
                     of tokens comes from another run",
                    number_text(answer.tpot.unwrap_or_default())
                ),
                super::arithmetic::ADVICE,
            )
        }
        _ => CheckFinding::ok(said),
    })
}

/// Tokens of an event, where ITL leaves room for fewer gaps than tokens and the gaps themselves are not
/// in the file.
pub(super) fn tokens_per_gap(run: &Reported) -> Option<f64> {
    let answer = answer_means(run)?;
    let has_count = run.metrics.get("itl").is_some_and(|metric| metric.n.is_some());
    let is_counted = match run.tool {
        SourceTool::Guidellm | SourceTool::Goodput => true,
        SourceTool::Aiperf | SourceTool::GenaiPerf => has_count,
        SourceTool::VllmPython | SourceTool::VllmRust | SourceTool::Sglang => false,
    };
    let time = answer.decode.or(answer.tpot.map(|tpot| tpot * answer.later))?;
    let itl = answer.itl.filter(|_| !is_counted)?;
    let ratio = answer.later * itl / time;
    (ratio * (1.0 - APART) > 1.0 && !answer.has_token_per_gap(itl)).then_some(ratio)
}
