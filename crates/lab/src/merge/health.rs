//! How each rank of a merged run fared, by its own record.

use goodput_model::{
    Caveat, CaveatCode, EndedBy, Nanos, Severity, Shard, ShardPart, Verdict, have_common_start,
};
use goodput_record::{Host, Manifest, Merged, State};
use goodput_stats::{Requests, Summary, is_failure_outlier, median_failure_share};

use super::check::ShardFolder;
use crate::error::Failed;
use crate::saved;

/// Ranks that stop together do so within this time.
const TOGETHER_S: f64 = 1.0;

/// Characters of what a machine calls itself.
const LONGEST: usize = 120;

/// Every rank of the plan, those that left no record too.
pub(super) fn describe_shards(ranks: &[(&ShardFolder, &Merged)]) -> Result<Vec<ShardPart>, Failed> {
    let Some((first, _)) = ranks.first() else { return Ok(Vec::new()) };
    let (of, fleet) = (first.facts.shard.count(), &first.facts.fleet);
    let begun = first_instants(ranks);
    let (mut found, mut requests) = (Vec::new(), Vec::new());
    for ((rank, merged), begun) in ranks.iter().zip(begun) {
        let summary = shard_summary(rank, merged)?;
        found.push(ShardPart { late_ms: begun, ..shard_part(rank, merged, &summary) });
        requests.push(summary.requests);
    }
    set_failures(&mut found, &requests);
    drop_common_caveats(&mut found);
    set_cuts(ranks, &mut found);
    let mut found = found.into_iter().peekable();
    let shards = (0..of).filter_map(|index| Shard::new(index, of));
    Ok(shards
        .map(|shard| {
            let there = found.next_if(|part| part.facts.shard == shard);
            there.unwrap_or_else(|| ShardPart::missing(shard, fleet.clone()))
        })
        .collect())
}

fn shard_part(rank: &ShardFolder, merged: &Merged, summary: &Summary) -> ShardPart {
    let of_client =
        |caveat: &&Caveat| caveat.code.is_about_client() || is_network_caveat(caveat.code);
    let mut caveats: Vec<Caveat> = summary.caveats.iter().filter(of_client).cloned().collect();
    let manifest = &rank.manifest;
    // What is no longer in a log, to the frame, looks like any other end of one.
    let cut = manifest.records.unwrap_or(0).saturating_sub(merged.records);
    caveats.extend((cut > 0 && !merged.is_damaged).then(|| cut_log_caveat(cut, merged)));
    let is_ended = manifest.state == State::Complete && manifest.ended_by != Some(EndedBy::User);
    let is_whole = is_ended && !merged.is_damaged;
    ShardPart {
        facts: rank.facts.clone(),
        host: host_text(&manifest.host),
        is_there: true,
        is_whole,
        late_ms: None,
        cut_s: None,
        requests: merged.records,
        lost_records: manifest.lost_records.saturating_add(cut),
        failed_alone: 0,
        verdict: Verdict::from_caveats(&caveats),
        caveats,
    }
}

/// Its numbers as it wrote them, or computed from its log where it could not, or where the log is not
/// what it was then.
fn shard_summary(rank: &ShardFolder, merged: &Merged) -> Result<Summary, Failed> {
    let written = rank.folder.read_summary::<Summary>().filter(|summary| {
        summary.schema == Summary::SCHEMA
            && rank.manifest.state != State::Running
            && summary.run.log_damaged == merged.is_damaged
            && counted_requests(summary) == merged.records
    });
    match written {
        Some(summary) => Ok(summary),
        None => saved::summarize_run(&rank.folder, &rank.plan, &rank.manifest, 0),
    }
}

fn counted_requests(summary: &Summary) -> u64 {
    let requests = &summary.requests;
    requests.scheduled + requests.warmup + requests.cooldown
}

fn cut_log_caveat(cut: u64, merged: &Merged) -> Caveat {
    let message = format!(
        "its log has {} records, but had {} when it was closed: the rest is lost",
        merged.records,
        merged.records + cut
    );
    Caveat::new(CaveatCode::RecordsLost, Severity::Void, message).advise("copy its folder again")
}

/// Those whose requests fail more often than those of most others are cut off from a server that is
/// well.
fn set_failures(parts: &mut [ShardPart], requests: &[Requests]) {
    let counts: Vec<_> = requests.iter().map(|one| (one.failed, one.scheduled)).collect();
    let usual = median_failure_share(&counts);
    for (part, (failed, due)) in parts.iter_mut().zip(counts) {
        if is_failure_outlier(failed, due, usual) {
            part.failed_alone = failed;
            let message = format!(
                "{failed} of its {due} requests failed, but only {:.1} % of the median rank's: the \
                 cause is between this rank and the server, not in the server",
                usual * 100.0
            );
            let is_most = 2 * failed > due;
            let severity = if is_most { Severity::Void } else { Severity::Warn };
            part.caveats.push(Caveat::new(CaveatCode::Errors, severity, message));
            part.verdict = Verdict::from_caveats(&part.caveats);
        }
    }
}

/// What lies between a rank and the server: its own where the others do not have it.
fn is_network_caveat(code: CaveatCode) -> bool {
    matches!(code, CaveatCode::PacketsLost | CaveatCode::ConnectInTtft)
}

/// Where half of the ranks or more have it, it is of the server, and is said of the whole.
fn drop_common_caveats(parts: &mut [ShardPart]) {
    for code in [CaveatCode::PacketsLost, CaveatCode::ConnectInTtft] {
        let has = |part: &ShardPart| part.caveats.iter().any(|caveat| caveat.code == code);
        if 2 * parts.iter().filter(|part| has(part)).count() < parts.len() {
            continue;
        }
        for part in &mut *parts {
            part.caveats.retain(|caveat| caveat.code != code);
            part.verdict = Verdict::from_caveats(&part.caveats);
        }
    }
}

/// How long after the first each began, in milliseconds.
fn first_instants(ranks: &[(&ShardFolder, &Merged)]) -> Vec<Option<f64>> {
    let is_common = have_common_start(ranks.iter().map(|(rank, _)| &rank.facts));
    let instant = |rank: &ShardFolder| {
        let manifest = &rank.manifest;
        let epoch = i128::from(manifest.epoch_ns?);
        Some(if is_common {
            epoch - rank.facts.clock.map_or(0, |clock| i128::from(clock.offset_ns))
        } else {
            i128::from(manifest.unix_ns(Nanos::ZERO))
        })
    };
    let all: Vec<Option<i128>> = ranks.iter().map(|(rank, _)| instant(rank)).collect();
    let first = all.iter().flatten().min().copied().unwrap_or_default();
    all.into_iter().map(|at| Some((at? - first) as f64 / 1e6)).collect()
}

/// When a rule ended the run for all, in seconds since its first instant.
pub(super) fn rule_stop_s(ranks: &[(&ShardFolder, &Merged)]) -> Option<f64> {
    let decided = |manifest: &&Manifest| {
        !matches!(manifest.ended_by, None | Some(EndedBy::Plan | EndedBy::User))
    };
    let all = ranks.iter().map(|(rank, _)| &rank.manifest).filter(decided);
    all.filter_map(|manifest| manifest.stopped_s).min_by(f64::total_cmp)
}

/// Those that ended before the others, and when: stopped alone, killed, or with a log that was cut.
/// Who went on until a rule ended the run was there to its end.
fn set_cuts(ranks: &[(&ShardFolder, &Merged)], parts: &mut [ShardPart]) {
    let end = |(rank, merged): &(&ShardFolder, &Merged)| {
        rank.manifest.stopped_s.unwrap_or(merged.last_end.as_secs())
    };
    let decided = rule_stop_s(ranks).unwrap_or(f64::INFINITY);
    for (part, rank) in parts.iter_mut().zip(ranks) {
        part.is_whole |= !rank.1.is_damaged && end(rank) + TOGETHER_S >= decided;
    }
    let has_whole = parts.iter().any(|part| part.is_whole);
    let last = ranks.iter().map(end).fold(0.0, f64::max);
    for (part, rank) in parts.iter_mut().zip(ranks) {
        let at = end(rank);
        let stopped_alone = has_whole || at + TOGETHER_S < last;
        let is_killed = rank.0.manifest.state == State::Running && ranks.len() > 1;
        if !part.is_whole && (stopped_alone || is_killed) {
            part.cut_s = Some(at);
        }
    }
}

/// A machine in a few words.
fn host_text(host: &Host) -> String {
    let about = format!("{} × {}", host.cpus, host.cpu);
    let text = host.name.as_ref().map_or_else(|| about.clone(), |name| format!("{name}, {about}"));
    text.chars().take(LONGEST).collect()
}
