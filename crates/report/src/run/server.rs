//! The server's side: its own figures over the window, beside those of the client, and what is known
//! of the system.

#[cfg(test)]
pub(crate) mod tests;

use std::fmt::{Error, Write};

use goodput_stats::{
    AgainstClient, EndpointSummary, LevelSummary, Mark, QueueBand, QueueSummary, Reconciled,
    RunFacts, ServerSummary, Summary, TimelinePoint, TtftByQueue,
};

use crate::clip::{left, right};
use crate::number::{amount, cell, count, percent};
use crate::render::text::{Fields, field};
use goodput_model::plain;

/// Columns of names and numbers in tables.
const NAME: usize = 22;
const CELL: usize = 11;
/// Totals have more digits, and differences a sign.
const TOTAL: usize = 14;

/// Endpoints, marks and facts that a page has room for.
const MOST_ENDPOINTS: usize = 8;
const MOST_MARKS: usize = 5;

/// Columns of a line over time.
const SPARK: usize = 60;

/// Levels of the table: name in the summary, words, and the unit's size.
const LEVELS: [(&str, &str, f64); 6] = [
    ("running", "running", 1.0),
    ("waiting", "waiting", 1.0),
    ("batch_size", "sequences in a step", 1.0),
    ("kv_usage", "KV cache in use, %", 100.0),
    ("kv_usage_max", "its fullest engine, %", 100.0),
    ("speculative_length", "tokens per draft step", 1.0),
];

/// Everything that the server says; nothing where it says nothing.
pub(crate) fn block(page: &mut String, summary: &Summary) -> Result<(), Error> {
    let Some(server) = &summary.server else { return Ok(()) };
    page.push('\n');
    endpoints(page, &server.endpoints);
    levels(page, server)?;
    over_time(page, &server.timeline);
    if let Some(queue) = &server.queue {
        let is_growing = summary.saturation.as_ref().is_some_and(|found| found.over_saturated);
        field(page, "Queue", &queue_text(queue, is_growing));
    }
    let shares = shares(server);
    if !shares.is_empty() {
        field(page, "Work", &shares.join("; "));
    }
    against_client(page, server)?;
    if let Some(by_queue) = &server.ttft_by_queue {
        ttft_by_queue(page, by_queue)?;
    }
    if !server.marks.is_empty() {
        page.push('\n');
        marks(page, &server.marks);
    }
    Ok(())
}

pub(crate) fn endpoints(page: &mut impl Fields, endpoints: &[EndpointSummary]) {
    for (index, endpoint) in endpoints.iter().take(MOST_ENDPOINTS).enumerate() {
        field(page, if index == 0 { "Server" } else { "" }, &endpoint_text(endpoint));
    }
    if endpoints.len() > MOST_ENDPOINTS {
        field(page, "", &format!("and {} more pages", endpoints.len() - MOST_ENDPOINTS));
    }
    if endpoints.is_empty() {
        field(page, "Server", "no page of metrics was read");
    }
}

fn endpoint_text(endpoint: &EndpointSummary) -> String {
    let engine = match endpoint.engine.as_str() {
        "" => "names that nobody knows (--metrics-map)".to_owned(),
        engine => format!("the names of {}", plain(engine)),
    };
    let mut text = format!(
        "{}, {engine}: {} answers, {} failures",
        plain(&endpoint.url),
        count(endpoint.answers),
        count(endpoint.failures)
    );
    let failure = endpoint.last_failure.as_ref().filter(|_| endpoint.failures > 0);
    text.extend(failure.map(|failure| format!(" (the last: {})", plain(failure))));
    if endpoint.took_ms.n > 0 {
        let (mean, max) = (cell(endpoint.took_ms.mean), cell(endpoint.took_ms.max));
        text.extend([", ", &mean, " ms each, ", &max, " ms at most"]);
    }
    if endpoint.longest_gap_s > 0.0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "; {:.1} s between answers at most", endpoint.longest_gap_s);
    }
    if endpoint.several_servers {
        text.push_str("; several servers answer there in turn: no totals");
    }
    for (n, what) in [
        (
            if endpoint.several_servers { 0 } else { endpoint.resets },
            "totals began anew: the server started again",
        ),
        (endpoint.malformed, "lines could not be read"),
    ] {
        if n > 0 {
            text.extend(["; ", &count(n), " ", what]);
        }
    }
    text
}

fn levels(page: &mut String, server: &ServerSummary) -> Result<(), Error> {
    let row = |name: &str, cells: [String; 5]| {
        let cells: String = cells.iter().map(|text| right(text, CELL)).collect();
        (left(name, NAME) + &cells).trim_end().to_owned()
    };
    let known = level_rows(server);
    if known.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n{}", row("server, by its page", LEVEL_HEADS.map(str::to_owned)))?;
    for (words, cells) in known {
        writeln!(page, "{}", row(words, cells))?;
    }
    Ok(())
}

/// What stands above [`level_rows`].
pub(crate) const LEVEL_HEADS: [&str; 5] = ["looks", "mean", "p50", "p99", "max"];

/// Levels that the server tells.
pub(crate) fn level_rows(server: &ServerSummary) -> Vec<(&'static str, [String; 5])> {
    let row = |(name, words, unit): &(&str, &'static str, f64)| {
        let LevelSummary { n, mean, p50, p99, max, .. } = *server.levels.get(*name)?;
        let [mean, p50, p99, max] = [mean, p50, p99, max].map(|value| cell(value * unit));
        Some((*words, [count(n), mean, p50, p99, max]))
    };
    LEVELS.iter().filter_map(row).collect()
}

/// How levels went, in a line each.
fn over_time(page: &mut String, timeline: &[TimelinePoint]) {
    type Level = fn(&TimelinePoint) -> Option<f64>;
    let lines: [(&str, Level); 3] = [
        ("running", |point| point.running),
        ("waiting", |point| point.waiting),
        ("KV cache", |point| point.kv_usage.map(|share| share * 100.0)),
    ];
    let (Some(first), Some(last)) = (timeline.first(), timeline.last()) else { return };
    let mut is_first = true;
    for (name, level) in lines {
        let values: Vec<_> = timeline.iter().filter_map(|p| Some((p.at_s, level(p)?))).collect();
        let most = values.iter().map(|(_, value)| *value).fold(0.0_f64, f64::max);
        if values.len() < 4 || most <= 0.0 || !most.is_finite() {
            continue;
        }
        if std::mem::take(&mut is_first) {
            page.push('\n');
        }
        let unit = if name == "KV cache" { " %" } else { "" };
        let line = spark(&values, (first.at_s, last.at_s), most);
        page.extend([&left(name, 10), &line, " ≤ ", &requests(most), unit, "\n"]);
    }
    if !is_first {
        let span = format!("{:.0} s to {:.0} s since the first instant", first.at_s, last.at_s);
        field(page, "", &span);
    }
}

/// The highest level of each part of the time, from nothing to `most`.
fn spark(values: &[(f64, f64)], (from, to): (f64, f64), most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = SPARK.min(values.len());
    let mut highest: Vec<Option<f64>> = vec![None; columns];
    for (at, value) in values {
        let share = if to > from { (at - from) / (to - from) } else { 0.0 };
        let place = (share * columns as f64) as usize;
        if let Some(cell) = highest.get_mut(place.min(columns.saturating_sub(1))) {
            *cell = Some(cell.unwrap_or(0.0).max(*value));
        }
    }
    let bar = |level: Option<f64>| {
        level.map_or(' ', |level| {
            let place = (level / most * (BARS.len() - 1) as f64).round() as usize;
            BARS[place.min(BARS.len() - 1)]
        })
    };
    // Looks are not quite even: a part without one is as the part before it.
    let mut last = None;
    highest
        .into_iter()
        .map(|level| bar(level.or(last).inspect(|level| last = Some(*level))))
        .collect()
}

/// Requests: whole ones without a fraction.
fn requests(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 { count(value as u64) } else { amount(value) }
}

pub(crate) fn queue_text(queue: &QueueSummary, is_growing: bool) -> String {
    if queue.waiting_max <= 0.0 {
        return "nobody was seen waiting".to_owned();
    }
    let mut parts = vec![format!(
        "{} waiting at most, {:.1} s after the first instant; some waited at {} of the looks",
        requests(queue.waiting_max),
        queue.waiting_max_at_s,
        percent(queue.waiting_share)
    )];
    if let Some(limit) = queue.batch_limit {
        let share = queue.at_limit_share.map_or(String::new(), |share| {
            format!(", which it was at in {} of the looks", percent(share))
        });
        parts.push(format!("the batch seems to be limited to {}{share}", requests(limit)));
    }
    if let Some(wait) = queue.wait_mean_ms {
        let share = queue
            .wait_share_of_ttft
            .map_or(String::new(), |share| format!(", {} of its TTFT", percent(share)));
        let wait = cell(wait);
        // Of those that still wait the server has counted nothing yet.
        parts.push(if is_growing {
            format!(
                "requests that left it had waited {wait} ms by the server's count{share}; it grew, \
                 and later ones wait longer"
            )
        } else {
            format!(
                "requests that left it had waited {wait} ms on average by the server's count{share}"
            )
        });
    }
    parts.join("; ")
}

/// What the server's work was like.
pub(crate) fn shares(server: &ServerSummary) -> Vec<String> {
    let total = |name: &str| server.counters.get(name).map(|counter| counter.total);
    let mean = |name: &str| server.levels.get(name).map(|level| level.mean);
    let share = |counted: Option<f64>, level: &str, what: &str| match (counted, mean(level)) {
        (Some(share), _) => Some(format!("{} {what}", percent(share))),
        (None, Some(share)) => {
            Some(format!("{} {what} (as the server averages it)", percent(share)))
        }
        (None, None) => None,
    };
    let whole = |n: f64| count(n.max(0.0).round() as u64);
    [
        share(
            server.prefix_hit_rate_counted,
            "prefix_hit_rate",
            "of the prompt tokens from the prefix cache",
        ),
        share(
            server.speculative_acceptance_counted,
            "speculative_acceptance",
            "of the drafted tokens accepted",
        ),
        total("preemptions").map(|n| format!("{} preemptions", whole(n))),
        total("rejections").filter(|n| *n > 0.0).map(|n| format!("{} turned away", whole(n))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn against_client(page: &mut String, server: &ServerSummary) -> Result<(), Error> {
    let Some(both) = &server.against_client else { return Ok(()) };
    let rows = both_rows(both);
    if rows.is_empty() {
        return Ok(());
    }
    let row = |name: &str, cells: [String; 4]| {
        let cells: String = cells.iter().map(|text| right(text, TOTAL)).collect();
        (left(name, NAME) + &cells).trim_end().to_owned()
    };
    let heads = ["client", "server", "difference", ""].map(str::to_owned);
    writeln!(page, "\n{}", row("counted by both", heads))?;
    for (name, cells) in rows {
        writeln!(page, "{}", row(name, cells))?;
    }
    if both.ttft_mean_ms.is_some() || both.e2e_mean_ms.is_some() {
        field(page, "", OUTSIDE);
    }
    Ok(())
}

/// What times of the two differ by.
pub(crate) const OUTSIDE: &str = "times are from the send; the difference is outside what the server \
    counts: network, gateway, reading and tokenising the prompt";

/// What both count: by the client, by the server, the difference, and its share.
pub(crate) fn both_rows(both: &AgainstClient) -> Vec<(&'static str, [String; 4])> {
    let rows = [
        ("output tokens", both.output_tokens),
        ("prompt tokens", both.prompt_tokens),
        ("output tok/s", both.output_tokens_per_s),
        ("TTFT, mean ms", both.ttft_mean_ms),
        ("E2E, mean ms", both.e2e_mean_ms),
    ];
    let row = |(name, pair): (&'static str, Option<Reconciled>)| {
        let Reconciled { client, server, difference, share } = pair?;
        let share = share.map_or(String::new(), |share| format!("{:+.2} %", share * 100.0));
        let value = |value: f64| match name {
            "output tokens" | "prompt tokens" => count(value.max(0.0).round() as u64),
            _ => cell(value),
        };
        let sign = if difference < 0.0 { "-" } else { "+" };
        let difference = format!("{sign}{}", value(difference.abs()));
        Some((name, [value(client), value(server), difference, share]))
    };
    rows.into_iter().filter_map(row).collect()
}

fn ttft_by_queue(page: &mut String, by_queue: &TtftByQueue) -> Result<(), Error> {
    if by_queue.bands.is_empty() {
        return Ok(());
    }
    let row = |cells: [&str; 4]| {
        let [name, n, p50, p99] = cells;
        let line = left(name, NAME) + &right(n, CELL) + &right(p50, CELL) + &right(p99, CELL);
        line.trim_end().to_owned()
    };
    writeln!(page, "\n{}", row(["TTFT by queue, ms", "n", "p50", "p99"]))?;
    for [range, n, p50, p99] in by_queue.bands.iter().map(queue_row) {
        writeln!(page, "{}", row([&range, &n, &p50, &p99]))?;
    }
    field(page, "", &queue_source(by_queue));
    Ok(())
}

/// A queue of some length, requests that found it, and their TTFT.
pub(crate) fn queue_row(band: &QueueBand) -> [String; 4] {
    let QueueBand { from, to, n, ttft_p50_ms, ttft_p99_ms } = band;
    let [from, to] = [from, to].map(|n| format!("{n:.0}"));
    let range =
        if from == to { format!("{from} waiting") } else { format!("{from}–{to} waiting") };
    let [p50, p99] = [ttft_p50_ms, ttft_p99_ms].map(|ms| ms.map_or("–".to_owned(), cell));
    [range, count(*n), p50, p99]
}

/// Who knows how many waited, and how much it has to do with TTFT.
pub(crate) fn queue_source(by_queue: &TtftByQueue) -> String {
    let source = match by_queue.source.as_str() {
        "server" => "waiting by the server's page when the request was sent",
        _ => {
            "waiting: requests sent and without a first token; the server's page tells of no queue"
        }
    };
    let together = by_queue
        .rank_correlation
        .map_or(String::new(), |rank| format!("; rank correlation with TTFT {rank:+.2}"));
    format!("{source}{together}")
}

/// What a page has room for first. A queue comes and goes; the others do not.
fn weight(mark: &Mark) -> usize {
    const ORDER: [&str; 5] = ["restart", "no_answer", "preemptions", "kv_pressure", "rejections"];
    let known = ORDER.iter().position(|kind| *kind == mark.kind);
    known.unwrap_or(ORDER.len() + usize::from(mark.kind == "queue"))
}

pub(crate) fn marks(page: &mut impl Fields, marks: &[Mark]) {
    let mut shown: Vec<&Mark> = marks.iter().collect();
    shown.sort_by(|a, b| weight(a).cmp(&weight(b)).then(b.value.total_cmp(&a.value)));
    shown.truncate(MOST_MARKS);
    shown.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    for (index, mark) in shown.into_iter().enumerate() {
        let Mark { kind, start_s, end_s, value } = mark;
        let n = requests(value.max(0.0));
        let (times, were) = if *value == 1.0 { ("time", "was") } else { ("times", "were") };
        let several = if *value == 1.0 { "request" } else { "requests" };
        let what = match kind.as_str() {
            "kv_pressure" => format!("the KV cache was full to {}", percent(*value)),
            "preemptions" => format!("{n} {several} had to leave the batch"),
            "queue" => format!("up to {n} {several} waited"),
            "restart" => "the server started again".to_owned(),
            "no_answer" => format!("its page did not answer ({n} {times})"),
            "rejections" => format!("{n} {several} {were} turned away"),
            other => format!("{} ({n})", plain(other)),
        };
        let text = format!("{start_s:.1} s to {end_s:.1} s: {what}");
        field(page, if index == 0 { "Marks" } else { "" }, &text);
    }
    if marks.len() > MOST_MARKS {
        field(page, "", &format!("and {} more in summary.json", marks.len() - MOST_MARKS));
    }
}

/// Facts of the page by their names in the manifest, with the words before them.
const FACTS: [(&str, &str); 13] = [
    ("model_path", "model "),
    ("dtype", ""),
    ("quantization", "quantisation "),
    ("tensor_parallel", "TP "),
    ("pipeline_parallel", "PP "),
    ("data_parallel", "DP "),
    ("max_model_len", "sequences of "),
    ("max_num_seqs", "batches of "),
    ("max_batched_tokens", "tokens per batch "),
    ("kv_cache_dtype", "KV cache as "),
    ("attention_backend", "attention by "),
    ("speculative", "speculation by "),
    ("prefix_caching", "prefix caching "),
];

/// Words for the hardware that a user may choose.
pub(crate) const HARDWARE: [&str; 5] = ["gpu", "gpu_type", "gpu_name", "hardware", "accelerator"];

/// What is known of the system, by its own word and by the user's.
pub(crate) fn system(page: &mut impl Fields, run: &RunFacts) {
    let system = &run.system;
    let mut label = "System";
    let found = |name: &str| system.found.get(name).map(|value| plain(value));
    let engine = match (found("engine"), found("engine_version")) {
        (Some(engine), Some(version)) => Some(format!("{engine} {version}")),
        (engine, version) => engine.or_else(|| version.map(|version| format!("version {version}"))),
    };
    let facts = FACTS.iter().filter_map(|(name, word)| Some(format!("{word}{}", found(name)?)));
    let told: Vec<_> = engine.into_iter().chain(facts).collect();
    if !told.is_empty() {
        field(page, label, &format!("{} (by its own word)", told.join(", ")));
        label = "";
    }
    if !system.said.is_empty() {
        let said: Vec<_> = system
            .said
            .iter()
            .map(|(name, value)| format!("{} {}", plain(name), plain(value)))
            .collect();
        field(page, label, &format!("{} (by the user's word)", said.join(", ")));
        label = "";
    }
    let knows_hardware = !system.gpus.is_empty() || system.fact(&HARDWARE).is_some();
    if !knows_hardware && !run.is_simulated() {
        let text = "not known: what it runs on; tell with --meta gpu=… --meta gpu_count=…";
        field(page, label, text);
    }
}
