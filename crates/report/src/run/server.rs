//! The server's side: its own figures over the window, next to those of the client, and what is known
//! of the system.

mod scaling;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write;
use std::ops::Range;

use goodput_stats::{
    AgainstClient, EndpointSummary, LevelSummary, Mark, QueueBand, QueueSummary, Reconciled,
    RunFacts, ServerSummary, Summary, TimelinePoint, TtftByQueue,
};

use super::{HTML, TEXT};
use goodput_document::clip::align_left;
use goodput_document::number::{amount, cell_number, count, percent};
use goodput_document::{Block, Cell, Column, Fact, Formats, Lines, Section, Table};

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

/// Everything that the server says; nothing if it says nothing. A terminal shows what happened
/// first, a browser what both sides count.
pub(super) fn server_section(summary: &Summary) -> Section {
    let section = Section::with_name("server", "Server", "Server against client");
    let Some(server) = &summary.server else { return section };
    let (levels, both) =
        (levels_block(server), server.against_client.as_ref().and_then(client_server_block));
    let by_queue = server.ttft_by_queue.as_ref().filter(|found| !found.bands.is_empty());
    let mut work = Vec::new();
    work.extend(server.queue.as_ref().map(|queue| {
        let is_growing = summary.saturation.as_ref().is_some_and(|found| found.over_saturated);
        Fact::new("Queue", queue_text(queue, is_growing))
    }));
    let shares = work_lines(server);
    if !shares.is_empty() {
        work.push(Fact::new("Work", shares.join("; ")));
    }
    work.extend(server.scaling.as_ref().map(scaling::fact));
    let (endpoints, marks) = (endpoint_facts(&server.endpoints), mark_facts(&server.marks));
    let facts = [endpoints.clone(), work.clone(), marks.clone()].concat();

    let mut section = section.with_on(TEXT, Block::Facts(endpoints));
    let gap = |section: Section| section.with_on(TEXT, Block::Gap);
    if let Some(levels) = &levels {
        section = gap(section).with_on(TEXT, levels.clone());
    }
    if let Some([lines, span]) = timeline_blocks(&server.timeline) {
        section = gap(section).with_on(TEXT, lines).with_on(TEXT, span);
    }
    section = section.with_on(TEXT, Block::Facts(work));
    if let Some(table) = both {
        let times = server.against_client.as_ref();
        let has_times =
            times.is_some_and(|both| both.ttft_mean_ms.is_some() || both.e2e_mean_ms.is_some());
        let outside = has_times.then(|| Block::fact("", OUTSIDE));
        section = gap(section)
            .with_on(Formats::LONG, table)
            .with_some(TEXT, outside)
            .with_on(HTML, Block::remark_note(OUTSIDE));
    }
    section = section.with_some(HTML, levels);
    if let Some(by_queue) = by_queue {
        let source = queue_source(by_queue);
        section = gap(section)
            .with_on(Formats::LONG, ttft_by_queue(by_queue))
            .with_on(TEXT, Block::fact("", source.clone()))
            .with_on(HTML, Block::remark_note(source));
    }
    if !marks.is_empty() {
        section = gap(section).with_on(TEXT, Block::Facts(marks));
    }
    section.with_on(HTML, Block::Facts(facts))
}

fn endpoint_facts(endpoints: &[EndpointSummary]) -> Vec<Fact> {
    let more = endpoints.len().saturating_sub(MOST_ENDPOINTS);
    let more = (more > 0).then(|| format!("and {more} more pages"));
    let none = endpoints.is_empty().then(|| "no page of metrics was read".to_owned());
    let shown = endpoints.iter().take(MOST_ENDPOINTS).map(endpoint_text);
    Fact::several("Server", shown.chain(more).chain(none))
}

fn endpoint_text(endpoint: &EndpointSummary) -> String {
    let engine = match endpoint.engine.as_str() {
        "" => "unrecognized metric names (map them with --metrics-map)".to_owned(),
        engine => format!("the names of {engine}"),
    };
    let mut text = format!(
        "{}, {engine}: {} answers, {} failures",
        endpoint.url,
        count(endpoint.answers),
        count(endpoint.failures)
    );
    let failure = endpoint.last_failure.as_ref().filter(|_| endpoint.failures > 0);
    text.extend(failure.map(|failure| format!(" (the last: {failure})")));
    if endpoint.took_ms.n > 0 {
        let (mean, max) = (cell_number(endpoint.took_ms.mean), cell_number(endpoint.took_ms.max));
        text.extend([", ", &mean, " ms each, ", &max, " ms at most"]);
    }
    if endpoint.longest_gap_s > 0.0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "; {:.1} s between answers at most", endpoint.longest_gap_s);
    }
    if endpoint.several_servers {
        text.push_str("; several servers take turns at this address, so totals are unknown");
    }
    if endpoint.resets > 0 && !endpoint.several_servers {
        let times = match endpoint.resets {
            1 => "once".to_owned(),
            n => format!("{} times", count(n)),
        };
        let _ = write!(text, "; the server restarted {times}, which reset its totals");
    }
    if endpoint.malformed > 0 {
        let _ = write!(text, "; {} lines could not be read", count(endpoint.malformed));
    }
    text
}

/// Levels that the server tells.
fn levels_block(server: &ServerSummary) -> Option<Block> {
    type LevelFigure = fn(&LevelSummary) -> f64;
    let known = LEVELS.iter();
    let known = known.filter_map(|level| Some((level, server.levels.get(level.0)?)));
    let figures: [(&str, LevelFigure); 4] = [
        ("mean", |level| level.mean),
        ("p50", |level| level.p50),
        ("p99", |level| level.p99),
        ("max", |level| level.max),
    ];
    Table::from_subjects("", "By the server's page, over the window", known)
        .with(Column::left("", NAME).short("server, by its page"), |((_, words, _), _)| *words)
        .right("scrapes", CELL, |(_, level)| count(level.n))
        .each(
            figures,
            |(head, _)| Column::right(*head, CELL),
            |((.., unit), level), (_, figure)| cell_number(figure(level) * unit),
        )
        .table
        .into_block()
}

/// How levels went, in a line each, and over which time.
fn timeline_blocks(timeline: &[TimelinePoint]) -> Option<[Block; 2]> {
    type PointLevel = fn(&TimelinePoint) -> Option<f64>;
    let lines: [(&str, PointLevel, &str); 3] = [
        ("running", |point| point.running, ""),
        ("waiting", |point| point.waiting, ""),
        ("KV cache", |point| point.kv_usage.map(|share| share * 100.0), " %"),
    ];
    let (first, last) = timeline.first().zip(timeline.last())?;
    let mut text = String::new();
    for (name, level, unit) in lines {
        let values: Vec<_> = timeline.iter().filter_map(|p| Some((p.at_s, level(p)?))).collect();
        let most = values.iter().map(|(_, value)| *value).fold(0.0_f64, f64::max);
        if values.len() < 4 || most <= 0.0 || !most.is_finite() {
            continue;
        }
        let line = sparkline(&values, first.at_s..last.at_s, most);
        text.extend([&align_left(name, 10), &line, " ≤ ", &request_count_text(most), unit, "\n"]);
    }
    let span = format!("{:.0} s to {:.0} s since the first instant", first.at_s, last.at_s);
    let title = String::new();
    (!text.is_empty()).then(|| {
        let lines = Lines { title, text, is_folded: false };
        [Block::Lines(lines), Block::fact("", span)]
    })
}

/// The highest level of each part of the time, from nothing to `most`.
fn sparkline(values: &[(f64, f64)], span: Range<f64>, most: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = SPARK.min(values.len());
    let mut highest: Vec<Option<f64>> = vec![None; columns];
    for (at, value) in values {
        let Range { start, end } = span;
        let share = if end > start { (at - start) / (end - start) } else { 0.0 };
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
fn request_count_text(value: f64) -> String {
    if value.fract() == 0.0 && value >= 0.0 { count(value as u64) } else { amount(value) }
}

fn queue_text(queue: &QueueSummary, is_growing: bool) -> String {
    if queue.waiting_max <= 0.0 {
        return "no request was seen waiting".to_owned();
    }
    let mut parts = vec![format!(
        "{} waiting at most, {:.1} s after the first instant; some were waiting in {} of the \
         scrapes",
        request_count_text(queue.waiting_max),
        queue.waiting_max_at_s,
        percent(queue.waiting_share)
    )];
    if let Some(limit) = queue.batch_limit {
        let share = queue.at_limit_share.map_or(String::new(), |share| {
            format!(", which it reached in {} of the scrapes", percent(share))
        });
        parts
            .push(format!("the batch seems to be limited to {}{share}", request_count_text(limit)));
    }
    if let Some(wait) = queue.wait_mean_ms {
        let share = queue
            .wait_share_of_ttft
            .map_or(String::new(), |share| format!(", {} of its TTFT", percent(share)));
        let wait = cell_number(wait);
        // Of those that still wait the server has counted nothing yet.
        parts.push(if is_growing {
            format!(
                "requests that left the queue had waited {wait} ms by the server's count{share}; the \
                 queue grew, and later requests wait longer"
            )
        } else {
            format!(
                "requests that left the queue had waited {wait} ms on average by the server's count{share}"
            )
        });
    }
    parts.join("; ")
}

/// What the server's work was like.
fn work_lines(server: &ServerSummary) -> Vec<String> {
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
        total("rejections").filter(|n| *n > 0.0).map(|n| format!("{} rejected", whole(n))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What times of the two differ by.
const OUTSIDE: &str = "times are from the send; the difference is outside what the server \
    counts: network, gateway, reading and tokenizing the prompt";

/// What both count: by the client, by the server, the difference, and its share.
fn client_server_block(both: &AgainstClient) -> Option<Block> {
    let rows = [
        ("output tokens", both.output_tokens),
        ("prompt tokens", both.prompt_tokens),
        ("output tok/s", both.output_tokens_per_s),
        ("TTFT, mean ms", both.ttft_mean_ms),
        ("E2E, mean ms", both.e2e_mean_ms),
    ];
    let known = rows.into_iter().filter_map(|(name, pair)| Some((name, pair?)));
    let value = |name: &str, value: f64| match name {
        "output tokens" | "prompt tokens" => count(value.max(0.0).round() as u64),
        _ => cell_number(value),
    };
    Table::from_subjects("", "Counted by both", known)
        .with(Column::left("", NAME).short("counted by both"), |(name, _)| *name)
        .right("client", TOTAL, |(name, both)| value(name, both.client))
        .right("server", TOTAL, |(name, both)| value(name, both.server))
        .right("difference", TOTAL, |(name, Reconciled { difference, .. })| {
            let sign = if *difference < 0.0 { "-" } else { "+" };
            format!("{sign}{}", value(name, difference.abs()))
        })
        .with(Column::right("of the server's", TOTAL).short(""), |(_, both)| {
            both.share.map_or(String::new(), |share| format!("{:+.2} %", share * 100.0))
        })
        .table
        .into_block()
}

/// Queues of some length, requests that found them, and their TTFT.
fn ttft_by_queue(by_queue: &TtftByQueue) -> Block {
    let title = "TTFT by queue, ms";
    let table = Table::from_subjects("", title, &by_queue.bands)
        .with(Column::left("queue", NAME).short(title), |QueueBand { from, to, .. }| {
            let [from, to] = [from, to].map(|n| format!("{n:.0}"));
            let range = if from == to { from } else { format!("{from}–{to}") };
            format!("{range} waiting")
        })
        .right("n", CELL, |band| count(band.n))
        .right("p50", CELL, |band| Cell::number(band.ttft_p50_ms, cell_number))
        .right("p99", CELL, |band| Cell::number(band.ttft_p99_ms, cell_number))
        .table;
    Block::Table(table)
}

/// Who knows how many waited, and how much it has to do with TTFT.
fn queue_source(by_queue: &TtftByQueue) -> String {
    let source = match by_queue.source.as_str() {
        "server" => "waiting by the server's page when the request was sent",
        _ => {
            "waiting: requests sent and without a first token; the server's page does not report a \
             queue"
        }
    };
    let together = by_queue
        .rank_correlation
        .map_or(String::new(), |rank| format!("; rank correlation with TTFT {rank:+.2}"));
    format!("{source}{together}")
}

/// What a page has room for first. A queue comes and goes; the others do not.
fn mark_weight(mark: &Mark) -> usize {
    const ORDER: [&str; 5] = ["restart", "no_answer", "preemptions", "kv_pressure", "rejections"];
    let known = ORDER.iter().position(|kind| *kind == mark.kind);
    known.unwrap_or(ORDER.len() + usize::from(mark.kind == "queue"))
}

fn mark_facts(marks: &[Mark]) -> Vec<Fact> {
    let mut shown: Vec<&Mark> = marks.iter().collect();
    shown.sort_by(|a, b| mark_weight(a).cmp(&mark_weight(b)).then(b.value.total_cmp(&a.value)));
    shown.truncate(MOST_MARKS);
    shown.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let more = marks.len().saturating_sub(MOST_MARKS);
    let more = (more > 0).then(|| format!("and {more} more in summary.json"));
    Fact::several("Marks", shown.into_iter().map(mark_text).chain(more))
}

fn mark_text(mark: &Mark) -> String {
    let Mark { kind, start_s, end_s, value } = mark;
    let n = request_count_text(value.max(0.0));
    let (times, were) = if *value == 1.0 { ("time", "was") } else { ("times", "were") };
    let several = if *value == 1.0 { "request" } else { "requests" };
    let what = match kind.as_str() {
        "kv_pressure" => format!("the KV cache was up to {} full", percent(*value)),
        "preemptions" => format!("{n} {several} had to leave the batch"),
        "queue" => format!("up to {n} {several} waited"),
        "restart" => "the server restarted".to_owned(),
        "no_answer" => format!("its page did not answer ({n} {times})"),
        "rejections" => format!("{n} {several} {were} rejected"),
        other => format!("{other} ({n})"),
    };
    format!("{start_s:.1} s to {end_s:.1} s: {what}")
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
pub(super) const HARDWARE: [&str; 5] = ["gpu", "gpu_type", "gpu_name", "hardware", "accelerator"];

/// What is known of the system, by its own word and by the user's.
pub(super) fn system_facts(run: &RunFacts) -> Vec<Fact> {
    let system = &run.system;
    let found = |name: &str| system.found.get(name).cloned();
    let engine = match (found("engine"), found("engine_version")) {
        (Some(engine), Some(version)) => Some(format!("{engine} {version}")),
        (engine, version) => engine.or_else(|| version.map(|version| format!("version {version}"))),
    };
    let facts = FACTS.iter().filter_map(|(name, word)| Some(format!("{word}{}", found(name)?)));
    let told: Vec<_> = engine.into_iter().chain(facts).collect();
    let said: Vec<_> = system.said.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let words = [(told, "as it reports"), (said, "as stated by the user")];
    let words = words.into_iter().filter(|(all, _)| !all.is_empty());
    let words = words.map(|(all, by)| format!("{} ({by})", all.join(", ")));
    let knows_hardware = !system.gpus.is_empty() || system.fact(&HARDWARE).is_some();
    let unknown = (!knows_hardware && !run.is_simulated())
        .then(|| "hardware unknown; state it with --meta gpu=… --meta gpu_count=…".to_owned());
    Fact::several("System", words.chain(unknown))
}
