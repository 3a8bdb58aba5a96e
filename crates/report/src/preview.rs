//! What a workload looks like before it is sent.

use std::fmt::Write;

use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use goodput_document::clip::fit;
use goodput_document::number::{amount, cell, count};
use goodput_document::wrap::wrap;
use goodput_model::plain;

/// What is shown of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct WorkloadView {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub description: String,
    /// Two workloads with the same hash send the same bytes.
    pub hash: String,
    /// Who counted the tokens of our words.
    pub counted_by: String,
    /// What was left out, repeated or sorted.
    pub notes: Vec<String>,
    /// Sessions looked at.
    pub sessions: u64,
    /// Requests in them.
    pub requests: u64,
    /// Sessions that there are, of a workload that ends.
    pub all_sessions: Option<u64>,
    /// Requests by class.
    pub classes: Vec<(String, u64)>,
    /// Requests by constraint, where there are any.
    pub constraints: Vec<(String, u64)>,
    /// Images in all requests.
    pub images: u64,
    /// Prompt lengths in tokens.
    pub input_tokens: Option<Histogram>,
    /// Answer lengths in tokens.
    pub output_tokens: Option<Histogram>,
    /// Requests of a session, where some have several.
    pub turns: Option<Histogram>,
    /// Pauses between the steps of a session, in seconds.
    pub pauses_s: Option<Histogram>,
    /// Gaps between arrivals of a trace, in seconds.
    pub gaps_s: Option<Histogram>,
    /// Arrivals over the length of a trace, in seconds from its beginning.
    pub arrivals_s: Option<Histogram>,
    /// Length of the trace in seconds.
    pub span_s: Option<f64>,
    /// How a recorded trace was served.
    pub served: Option<ServedView>,
    /// Share of prompt tokens that begin like an earlier prompt: what a warm cache
    /// without limits would answer.
    pub expected_hit_rate: f64,
    /// The first requests.
    pub previews: Vec<Preview>,
}

/// How the requests of a trace were served when they were recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ServedView {
    /// Requests by API.
    pub endpoints: Vec<(String, u64)>,
    /// Requests by model.
    pub models: Vec<(String, u64)>,
    /// Requests by HTTP status.
    pub statuses: Vec<(String, u64)>,
    /// Requests by finish reason or failure.
    pub ends: Vec<(String, u64)>,
    /// Times to the first token, in milliseconds.
    pub ttft_ms: Option<Histogram>,
    /// Share of prompt tokens that the server took from its cache, over requests whose answer says so.
    pub cache_hit_rate: Option<f64>,
}

/// One request, cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Its class.
    pub class: String,
    /// Prompt length in tokens.
    pub input_tokens: u32,
    /// Answer length in tokens.
    pub output_tokens: Option<u32>,
    /// The body that is sent, cut in the middle where it is long.
    pub body: String,
}

/// How many values fall where.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Number of values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Lower end (included), upper end, values between.
    pub bins: Vec<(f64, f64, u64)>,
}

/// Columns of the page.
const WIDTH: usize = 80;

/// Bars of a histogram, and columns of the longest.
const BINS: usize = 10;
const COLUMNS: usize = 40;

/// Values that span more than this many times their least are shown on a logarithmic scale.
const LOGARITHMIC: f64 = 20.0;

impl Histogram {
    /// Of these values; none of no values.
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        // Nearest rank, as everywhere.
        let percentile = |percent: f64| {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            values.get(rank.max(1) - 1).copied().unwrap_or(max)
        };
        let edges = edges(min, max);
        let below = |edge: f64| values.partition_point(|value| *value < edge) as u64;
        let bins = edges.windows(2).enumerate().map(|(place, edge)| {
            let is_last = place + 2 == edges.len();
            let upper = if is_last { values.len() as u64 } else { below(edge[1]) };
            (edge[0], edge[1], upper - below(edge[0]))
        });
        Some(Self {
            n: values.len() as u64,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p99: percentile(99.0),
            min,
            max,
            bins: bins.collect(),
        })
    }
}

/// The ends of the bins, from the smallest value to the largest.
fn edges(min: f64, max: f64) -> Vec<f64> {
    if min >= max {
        return vec![min, max];
    }
    let at = |place: usize| {
        let part = place as f64 / BINS as f64;
        match place {
            0 => min,
            BINS => max,
            _ if min > 0.0 && max / min > LOGARITHMIC => min * (max / min).powf(part),
            _ => min + (max - min) * part,
        }
    };
    (0..=BINS).map(at).collect()
}

/// The page of a workload.
pub fn workload_text(view: &WorkloadView) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, view);
    fit(&page, WIDTH)
}

fn write_page(page: &mut String, view: &WorkloadView) -> std::fmt::Result {
    field(page, &plain(&view.name), &plain(&view.description))?;
    let hash = view.hash.get(..16).unwrap_or(&view.hash);
    field(page, "Hash", &plain(hash))?;
    field(page, "Tokens", &format!("of our words counted by {}", plain(&view.counted_by)))?;
    let sessions = match view.sessions {
        n if n == view.requests => String::new(),
        n => format!(" in {} sessions", count(n)),
    };
    let rest = match view.all_sessions {
        Some(all) if all > view.sessions => format!(": the first of {} sessions", count(all)),
        _ => String::new(),
    };
    field(page, "Requests", &format!("{}{sessions}{rest}", count(view.requests)))?;
    for (title, parts) in [("Classes", &view.classes), ("Constraint", &view.constraints)] {
        if parts.len() > 1 {
            field(page, title, &shares(parts))?;
        }
    }
    if let Some(served) = &view.served {
        recorded(page, served)?;
    }
    if view.images > 0 {
        field(page, "Images", &count(view.images))?;
    }
    if let Some(span) = view.span_s {
        let rate = view.sessions as f64 / span.max(1e-9);
        field(page, "Span", &format!("{} s, {} arrivals/s", amount(span), amount(rate)))?;
    }
    let hits = 100.0 * view.expected_hit_rate;
    field(page, "Cache", &format!("{hits:.1} % of prompt tokens begin like an earlier prompt"))?;
    for note in &view.notes {
        field(page, "Note", &plain(note))?;
    }
    histogram(page, "Prompt tokens", view.input_tokens.as_ref())?;
    histogram(page, "Answer tokens", view.output_tokens.as_ref())?;
    histogram(page, "Requests of a session", view.turns.as_ref())?;
    histogram(page, "Pauses in sessions, s", view.pauses_s.as_ref())?;
    histogram(page, "Gaps between arrivals, s", view.gaps_s.as_ref())?;
    histogram(page, "Arrivals over time, s", view.arrivals_s.as_ref())?;
    let served = view.served.as_ref();
    histogram(page, "TTFT as served, ms", served.and_then(|served| served.ttft_ms.as_ref()))?;
    for preview in &view.previews {
        let output = preview.output_tokens.map_or_else(|| "any".to_owned(), |n| n.to_string());
        writeln!(
            page,
            "\n{} · {} tokens in, {output} out",
            plain(&preview.class),
            preview.input_tokens
        )?;
        for line in wrap(&plain(&preview.body), WIDTH - 2) {
            for piece in pieces(&line, WIDTH - 2) {
                writeln!(page, "  {piece}")?;
            }
        }
    }
    Ok(())
}

/// A line in pieces of at most so many columns: bodies need not have blanks.
fn pieces(line: &str, columns: usize) -> Vec<String> {
    let (mut pieces, mut used) = (Vec::new(), columns);
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > columns {
            pieces.push(String::new());
            used = 0;
        }
        used += width;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// How it was served when it was recorded.
fn recorded(page: &mut String, served: &ServedView) -> std::fmt::Result {
    let ServedView { endpoints, models, statuses, ends, .. } = served;
    let parts = [("APIs", endpoints), ("Models", models), ("Status", statuses), ("Ended", ends)];
    for (title, parts) in parts {
        if !parts.is_empty() {
            field(page, title, &shares(parts))?;
        }
    }
    match served.cache_hit_rate {
        Some(rate) => {
            field(page, "Served", &format!("{:.1} % from the server's cache", 100.0 * rate))
        }
        None => Ok(()),
    }
}

/// Names with their numbers and shares; what is rare is counted together.
fn shares(parts: &[(String, u64)]) -> String {
    const SHOWN: usize = 12;
    let all = parts.iter().map(|(_, n)| n).sum::<u64>().max(1);
    let part = |name: &str, n: u64| {
        format!("{} {} ({:.1} %)", plain(name), count(n), 100.0 * n as f64 / all as f64)
    };
    let mut sorted: Vec<_> = parts.iter().collect();
    if sorted.len() > SHOWN {
        sorted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    }
    let (shown, rest) = sorted.split_at(sorted.len().min(SHOWN));
    let mut shown: Vec<String> = shown.iter().map(|(name, n)| part(name, *n)).collect();
    if !rest.is_empty() {
        let rare = rest.iter().map(|(_, n)| n).sum();
        shown.push(part(&format!("{} others", rest.len()), rare));
    }
    shown.join(", ")
}

fn field(page: &mut String, name: &str, text: &str) -> std::fmt::Result {
    for (place, line) in wrap(text, 66).into_iter().enumerate() {
        writeln!(page, "{:<11} {line}", if place == 0 { name } else { "" })?;
    }
    Ok(())
}

fn histogram(page: &mut String, title: &str, histogram: Option<&Histogram>) -> std::fmt::Result {
    let Some(shown) = histogram else { return Ok(()) };
    let Histogram { mean, p50, p90, p99, min, max, bins, .. } = shown;
    writeln!(
        page,
        "\n{title}: mean {}, p50 {}, p90 {}, p99 {}, from {} to {}",
        cell(*mean),
        cell(*p50),
        cell(*p90),
        cell(*p99),
        cell(*min),
        cell(*max)
    )?;
    let most = bins.iter().map(|(.., n)| *n).max().unwrap_or(0).max(1);
    for (low, high, n) in bins {
        let columns = (*n as f64 / most as f64 * COLUMNS as f64).round() as usize;
        // What is there is seen.
        let columns = if *n > 0 { columns.max(1) } else { 0 };
        writeln!(page, "{:>9} – {:<9} {:>7} {}", cell(*low), cell(*high), n, "█".repeat(columns))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let histogram = Histogram::from_values((1..=1000).map(f64::from).collect()).unwrap();
        assert_eq!((histogram.n, histogram.min, histogram.max), (1000, 1.0, 1000.0));
        assert_eq!((histogram.p50, histogram.p90, histogram.p99), (500.0, 900.0, 990.0));
        assert_eq!(histogram.bins.iter().map(|(.., n)| n).sum::<u64>(), 1000);
        // 1 to 1000 in ten steps of the same ratio: the first three hold 1, 2 to 3, and 4 to 7.
        let counts: Vec<u64> = histogram.bins.iter().map(|(.., n)| *n).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 62, 126, 250, 499]);
    }

    #[test]
    fn narrow_values_are_shown_in_even_steps() {
        let histogram = Histogram::from_values((0..100).map(f64::from).collect()).unwrap();
        assert_eq!(histogram.bins.len(), 10);
        assert_eq!(histogram.bins.iter().map(|(.., n)| *n).max(), Some(10));
        let single = Histogram::from_values(vec![7.0; 5]).unwrap();
        assert_eq!(single.bins, [(7.0, 7.0, 5)]);
        assert_eq!(Histogram::from_values(vec![f64::NAN]), None);
    }

    #[test]
    fn no_line_is_longer_than_the_page() {
        let long = "m".repeat(200);
        let served = ServedView { models: vec![(long.clone(), 1)], ..ServedView::default() };
        let view = WorkloadView {
            name: long.clone(),
            served: Some(served),
            gaps_s: Histogram::from_values(vec![-123_456.789, 123_456.789]),
            previews: vec![Preview {
                class: long,
                input_tokens: 1,
                output_tokens: None,
                body: "Z".repeat(200),
            }],
            ..WorkloadView::default()
        };
        let page = workload_text(&view);
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        // Of a body nothing is left out.
        assert_eq!(page.matches('Z').count(), 200);
    }

    #[test]
    fn foreign_text_is_harmless_on_the_page() {
        let view = WorkloadView {
            name: "x".to_owned(),
            notes: vec!["evil \u{1b}[2J".to_owned()],
            previews: vec![Preview {
                class: "\u{202e}c".to_owned(),
                input_tokens: 1,
                output_tokens: None,
                body: "{\u{7}}".to_owned(),
            }],
            ..WorkloadView::default()
        };
        let page = workload_text(&view);
        assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
        assert!(page.contains("1 tokens in, any out"), "{page}");
    }
}
