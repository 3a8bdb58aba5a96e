//! What a page says about the workload, where there is something to say.

use goodput_stats::{
    CacheRotation, CacheSummary, LengthCheck, RecountSummary, RunFacts, SessionsSummary, Summary,
};

use super::facts::three_figures;
use goodput_document::Fact;
use goodput_document::number::{amount, count, known_or_dash, percent};

/// Digits of a hash that people compare.
const HASH: usize = 12;

/// The workload in one line, with the beginning of its hash.
pub(crate) fn workload_name(run: &RunFacts) -> String {
    let hash: String = run.workload_hash.chars().take(HASH).collect();
    let hash = if hash.is_empty() { hash } else { format!(" · hash {hash}") };
    run.workload.clone() + &hash
}

/// Lengths, cache, replay, constraints, sessions and notes.
pub(super) fn workload_facts(summary: &Summary) -> Vec<Fact> {
    let mut all = Vec::new();
    all.extend(lengths_text(summary).map(|text| Fact::new("Lengths", text)));
    all.extend(cache_text(summary).map(|text| Fact::new("Cache", text)));
    if let Some(replay) = &summary.replay {
        let text = format!(
            "{} of a trace, {} kept, time × {}; scheduled off by {}; sent off by {}",
            requests_text(replay.n),
            replay.keep,
            replay.time_scale,
            three_figures(&replay.drift_ms),
            three_figures(&replay.sent_drift_ms)
        );
        all.push(Fact::new("Replay", text));
    }
    let structured = summary.structured.iter().map(|(kind, kept)| {
        let outcome = match kept.valid_share {
            Some(share) => format!("{} of {} keep it", percent(share), count(kept.checked)),
            None => "none could be checked".to_owned(),
        };
        let (asked, answered) = (count(kept.asked), count(kept.answered));
        format!("{kind}: {asked} requested, {answered} answered; {outcome}")
    });
    all.extend(Fact::several("Structured", structured));
    let sessions = summary.sessions.as_ref();
    all.extend(sessions.map(|sessions| Fact::new("Sessions", sessions_text(sessions))));
    all.extend(Fact::several("Notes", summary.run.notes.iter().cloned()));
    all
}

fn requests_text(n: u64) -> String {
    format!("{} requests", count(n))
}

fn lengths_text(summary: &Summary) -> Option<String> {
    let side = |name: &str, check: &LengthCheck| {
        let exact = percent(check.exact_share);
        let error = match check.max_error {
            0 => String::new(),
            error => format!(", off by {} at most", count(error)),
        };
        format!(
            "{name} {:.1} planned, {:.1} actual, {exact} exact{error}",
            check.planned_mean, check.actual_mean
        )
    };
    let sides = [("input", summary.lengths.input), ("output", summary.lengths.output)];
    let mut text: Vec<_> =
        sides.iter().filter_map(|(name, check)| Some(side(name, check.as_ref()?))).collect();
    if text.is_empty() {
        return None;
    }
    text.extend(summary.run.calibration.as_deref().map(|by| format!("calibrated: {by}")));
    Some(text.join("; "))
}

fn cache_text(summary: &Summary) -> Option<String> {
    let cache = summary.cache.as_ref()?;
    let is_quiet = cache.requested.is_none() && cache.observed.is_none_or(|share| share == 0.0);
    if is_quiet {
        return None;
    }
    let requested = cache.requested.map_or("nothing".to_owned(), percent);
    let observed = match cache.observed {
        Some(share) if cache.source == "counters" => {
            format!("{} observed (by the server's counters, over the whole run)", percent(share))
        }
        Some(share) => format!(
            "{} observed (by the {} of {} of the answers)",
            percent(share),
            cache.source,
            percent(cache.reported_by)
        ),
        None => "not reported by the server".to_owned(),
    };
    let rotation = cache.rotation.map_or(String::new(), |rotation| rotation_text(cache, rotation));
    Some(format!("{requested} of prompt tokens requested, {observed}{rotation}"))
}

/// A hit rate below the planned one by more than this does not come from rounding to blocks.
const FEWER: f64 = 0.05;

/// How many rotations were measured, and whether they evict.
fn rotation_text(cache: &CacheSummary, rotation: CacheRotation) -> String {
    let CacheRotation { contexts, measured } = rotation;
    let of = format!("of {} contexts measured", count(contexts));
    let rotations = match measured {
        1.0 => format!("1 whole rotation {of}"),
        n if n > 0.0 && n.fract() == 0.0 => format!("{} whole rotations {of}", count(n as u64)),
        n => {
            format!("{n:.2} rotations {of} (whole ones: --num-requests in multiples of {contexts})")
        }
    };
    // The server's counters hold the first rotation, which finds nothing.
    let misses = cache.source == "usage"
        && cache.requested.zip(cache.observed).is_some_and(|(asked, seen)| asked - seen > FEWER);
    let evicts =
        if misses { "; the cache evicts contexts before they come again, or is off" } else { "" };
    format!("; {rotations}{evicts}")
}

fn sessions_text(sessions: &SessionsSummary) -> String {
    let average = format!(
        "{} of {:.1} requests on average, up to {} turns",
        count(sessions.n),
        sessions.requests_mean,
        count(sessions.turns_max.into())
    );
    let begun = sessions.arrivals_per_s.map(|rate| format!("{} started per second", amount(rate)));
    let thinking = sessions.thinking_mean.map(|n| format!("{} thinking on average", amount(n)));
    let cut = Some(sessions.cut_requests).filter(|n| *n > 0);
    let cut = cut.map(|n| format!("{} cut at the end", requests_text(n)));
    let parts: Vec<_> = [Some(average), begun, thinking, cut].into_iter().flatten().collect();
    parts.join("; ")
}

/// Answers in the unit of one tokenizer.
pub(super) fn recount_text(summary: &Summary) -> Option<String> {
    let recount = summary.recount.as_ref()?;
    let RecountSummary {
        tokenizer, output_tokens, characters, output_tps, ratio_to_server, ..
    } = recount;
    let ratio = ratio_to_server
        .map_or(String::new(), |ratio| format!(", {ratio:.3} times what the server counts"));
    Some(format!(
        "{} output tok/s by {tokenizer}: {} tokens in {} characters{ratio}",
        known_or_dash(*output_tps, amount),
        count(*output_tokens),
        count(*characters)
    ))
}
