//! Were all clients of a merged run there, well, and together?

use goodput_model::{
    Caveat, CaveatCode, LoadExtent, Mode, Rate, Severity, ShardPart, Verdict, have_common_start,
};

use super::{Check, Evidence};

/// Above this share, undelivered load makes the result void.
const SHORT: f64 = 0.05;
/// First instants may lie so far apart, in milliseconds: more is not the schedule, far more is another.
const APART_MS: f64 = 50.0;
const FAR_APART_MS: f64 = 1_000.0;
/// A wall clock that is off by more is worth a word.
const CLOCK_NS: u64 = 1_000_000_000;
/// More than this share of the clients makes all of them void.
const MOST: f64 = 0.5;
/// Clients that are named one by one.
const NAMED: usize = 4;

/// All of these.
const CHECKS: [Check; 5] = [
    check_missing_shards,
    check_cut_shards,
    check_distorted_shards,
    check_late_starts,
    check_clock_offsets,
];

/// Adds what is to be said of the clients of a merged run. Each was judged by its own record: one that
/// is sick spoils its part, not all.
pub(super) fn check_shards(e: &Evidence<'_>, found: &mut Vec<Caveat>) {
    if !e.run.shards.is_empty() {
        found.retain(|caveat| !caveat.code.is_about_client());
        found.extend(CHECKS.iter().filter_map(|check| check(e)));
    }
}

/// The load was never as large as planned, or part of it is not on record; the two cannot be told apart.
/// Either way what is here is the result of another load.
fn check_missing_shards(e: &Evidence<'_>) -> Option<Caveat> {
    let gone: Vec<_> = e.run.shards.iter().filter(|part| !part.is_there).collect();
    let of = e.run.shards.len();
    let share = gone.len() as f64 / of.max(1) as f64;
    (!gone.is_empty()).then(|| {
        let message = format!(
            "{} of {of} ranks left no records ({}): {:.1} % of the planned load{} is missing, so \
             these figures describe a smaller load",
            gone.len(),
            ranks_text(&gone),
            share * 100.0,
            missing_load_text(e, &gone)
        );
        let advice = "merge again with their folders if they exist; otherwise find out why they \
                      did not start, and run again";
        Caveat::new(CaveatCode::ShardMissing, severity_of_share(share), message).advise(advice)
    })
}

/// What the plan says of the load of these clients.
fn missing_load_text(e: &Evidence<'_>, gone: &[&ShardPart]) -> String {
    let load = &e.plan.load;
    let sum = |count: u64| gone.iter().map(|part| part.facts.shard.share_of(count)).sum::<u64>();
    let has_sessions = e.plan.workload.classes.iter().any(|class| class.session.is_some());
    let share = gone.len() as f64 / e.run.shards.len().max(1) as f64;
    match (&load.mode, load.num_requests, load.duration) {
        (Mode::Replay { .. }, ..) => String::new(),
        // Sessions are dealt out, and the lengths of other shards are unknown.
        (_, Some(requests), None) if !has_sessions => {
            format!(", {} of {requests} requests,", sum(requests))
        }
        (Mode::Closed { concurrency, .. }, ..) => {
            format!(", {} of {concurrency} users,", sum(u64::from(*concurrency)))
        }
        (Mode::Open { rate: Rate::PerSecond(rate), .. }, None, Some(duration)) => {
            let what = if has_sessions { "sessions" } else { "requests" };
            format!(", about {:.0} {what},", rate * duration.as_secs_f64() * share)
        }
        _ => String::new(),
    }
}

/// A client that died or was stopped: from then on the load was smaller.
fn check_cut_shards(e: &Evidence<'_>) -> Option<Caveat> {
    let cut: Vec<_> = e.run.shards.iter().filter_map(|part| Some((part, part.cut_s?))).collect();
    // By the time that is missing, or by what those had that were there to the end: a client that stood
    // still for long and was ended soon after lacks more than its last seconds.
    let whole: Vec<f64> =
        e.run.shards.iter().filter(|part| !part.has_gap()).map(requests_sent).collect();
    let usual = whole.iter().sum::<f64>() / whole.len().max(1) as f64;
    let lacks = |had: f64, of: f64| (1.0 - had / of.max(1e-9)).clamp(0.0, 1.0);
    let each = |(part, at): &(&ShardPart, f64)| {
        let by_count = if whole.is_empty() { 0.0 } else { lacks(requests_sent(part), usual) };
        lacks(*at, planned_duration_s(e)).max(by_count)
    };
    let share = cut.iter().map(each).sum::<f64>() / e.run.shards.len().max(1) as f64;
    (!cut.is_empty()).then(|| {
        let named = |(part, at): &(&ShardPart, f64)| format!("{} at {at:.1} s", shard_name(part));
        let message = format!(
            "{} stopped or died before the end ({}): about {:.1} % of the planned load is \
             missing, and the load was smaller from then on",
            clients_text(cut.len(), e.run.shards.len()),
            list_first(cut.iter().map(named), cut.len()),
            share * 100.0
        );
        let advice = "read the log of that rank; only figures from before that instant are \
                      comparable";
        Caveat::new(CaveatCode::ShardCut, severity_of_share(share), message).advise(advice)
    })
}

fn requests_sent(part: &ShardPart) -> f64 {
    part.requests as f64
}

/// How long the load was to last; as long as it did, where the plan does not say.
fn planned_duration_s(e: &Evidence<'_>) -> f64 {
    let load = &e.plan.load;
    let warmup = match load.warmup {
        LoadExtent::Time(time) => time.as_secs_f64(),
        LoadExtent::Requests(_) | LoadExtent::Auto => 0.0,
    };
    let length = match &load.mode {
        Mode::Shaped { shape, .. } => load.duration.or(shape.length()),
        _ => load.duration.filter(|_| load.num_requests.is_none()),
    };
    let planned = length.map(|length| warmup + length.as_secs_f64() + load.cooldown.as_secs_f64());
    // A rule, or the user, may have ended it for all.
    let stopped = e.run.stopped_s.unwrap_or(f64::INFINITY);
    planned.unwrap_or(e.run_end_s).min(stopped).max(1e-9)
}

/// One client that measured wrongly is in every figure.
fn check_distorted_shards(e: &Evidence<'_>) -> Option<Caveat> {
    let shards = &e.run.shards;
    let mut sick: Vec<_> =
        shards.iter().filter(|part| part.is_there && part.verdict > Verdict::Valid).collect();
    sick.sort_by_key(|part| std::cmp::Reverse(part.verdict));
    let void = sick.iter().filter(|part| part.verdict == Verdict::Void).count();
    // What only they could not deliver the server never had; what they lost is in no figure.
    let short: u64 =
        shards.iter().map(|part| part.failed_alone.saturating_add(part.lost_records)).sum();
    let lost: u64 = shards.iter().map(|part| part.lost_records).sum();
    let all = shards.iter().map(|part| part.requests).sum::<u64>().saturating_add(lost);
    let short = short as f64 / all.max(1) as f64;
    (!sick.is_empty()).then(|| {
        let named = |part: &&ShardPart| {
            let worst = Caveat::worst(&part.caveats);
            let why = worst.map_or("", |caveat| caveat.message.as_str());
            format!("{} is {}: {why}", shard_name(part), part.verdict.name())
        };
        let gone = match short * 100.0 {
            0.0 => String::new(),
            percent => format!(", and {percent:.1} % of the load was lost with them"),
        };
        let message = format!(
            "{} are suspect or void by their own records{gone}: {}",
            clients_text(sick.len(), shards.len()),
            list_first(sick.iter().map(named), sick.len())
        );
        let is_void = short > SHORT || void as f64 > MOST * shards.len() as f64;
        let severity = if is_void { Severity::Void } else { Severity::Warn };
        let advice = "give those ranks more CPU, or leave out their machines; their own folders \
                      hold the details";
        Caveat::new(CaveatCode::ShardSick, severity, message).advise(advice)
    })
}

/// The schedule of all holds only from one first instant on.
fn check_late_starts(e: &Evidence<'_>) -> Option<Caveat> {
    let there = || e.run.shards.iter().filter(|part| part.is_there);
    let is_common = have_common_start(there().map(|part| &part.facts));
    let error_ms = |part: &ShardPart| {
        let clock = part.facts.clock.filter(|_| is_common);
        clock.map_or(0.0, |clock| clock.error_ns as f64 / 1e6)
    };
    let first = there().find(|part| part.late_ms == Some(0.0)).map_or(0.0, error_ms);
    let late = |part: &ShardPart| Some(part.late_ms? + error_ms(part) + first);
    let by_late = |a: &&ShardPart, b: &&ShardPart| late(a).partial_cmp(&late(b));
    let last = there()
        .filter(|part| part.late_ms.is_some())
        .max_by(|a, b| by_late(a, b).unwrap_or(std::cmp::Ordering::Equal))?;
    let (ms, error) = (last.late_ms?, error_ms(last) + first);
    (ms + error > APART_MS).then(|| {
        let how = if is_common {
            format!("by clocks synchronized to {error:.1} ms")
        } else {
            "by their wall clocks, which may be off: they had no common start".to_owned()
        };
        let message = format!(
            "ranks did not start together: {} started {ms:.0} ms after the first, {how}; the \
             combined load was not the planned one",
            shard_name(last)
        );
        let is_void = ms + error > FAR_APART_MS;
        let severity = if is_void { Severity::Void } else { Severity::Warn };
        Caveat::new(CaveatCode::ShardsApart, severity, message)
            .advise("start them with --rendezvous, which gives all ranks the same start instant")
    })
}

/// Instants count on monotonic clocks, so that this harms nothing but times of day.
fn check_clock_offsets(e: &Evidence<'_>) -> Option<Caveat> {
    let wall = |part: &ShardPart| part.facts.clock.map_or(0, |clock| clock.wall_ns);
    let off = e.run.shards.iter().filter(|part| wall(part).unsigned_abs() > CLOCK_NS);
    let off: Vec<_> = off.collect();
    let named =
        |part: &&ShardPart| format!("{} by {:+.1} s", shard_name(part), wall(part) as f64 / 1e9);
    (!off.is_empty()).then(|| {
        let message = format!(
            "the wall clocks of {} differ from that of rank 0 ({}): no figure depends on them, \
             but times of day in their logs do",
            clients_text(off.len(), e.run.shards.len()),
            list_first(off.iter().map(named), off.len())
        );
        Caveat::new(CaveatCode::ShardClock, Severity::Info, message)
    })
}

fn severity_of_share(share: f64) -> Severity {
    if share > SHORT { Severity::Void } else { Severity::Warn }
}

fn clients_text(n: usize, of: usize) -> String {
    format!("{n} of {of} ranks")
}

/// A client by its rank, and its machine where that is known.
fn shard_name(part: &ShardPart) -> String {
    let rank = part.facts.shard.index();
    if part.host.is_empty() {
        format!("rank {rank}")
    } else {
        format!("rank {rank} ({})", part.host)
    }
}

/// The first of this many, and how many more there are.
fn list_first(all: impl Iterator<Item = String>, of: usize) -> String {
    let named: Vec<String> = all.take(NAMED).collect();
    let more = of.saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{}{more}", named.join("; "))
}

/// Ranks, neighbors together: `rank 3`, `ranks 1, 4–6`.
fn ranks_text(parts: &[&ShardPart]) -> String {
    let numbers: Vec<u32> = parts.iter().map(|part| part.facts.shard.index()).collect();
    let runs: Vec<&[u32]> = numbers.chunk_by(|a, b| a + 1 == *b).collect();
    let run = |run: &&[u32]| match **run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    };
    let word = if numbers.len() == 1 { "rank" } else { "ranks" };
    let mut named: Vec<String> = runs.iter().take(2 * NAMED).map(run).collect();
    if runs.len() > 2 * NAMED {
        named.push("…".to_owned());
    }
    format!("{word} {}", named.join(", "))
}
