//! What a workload looks like before it is sent.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use goodput_document::clip::fit_page;
use goodput_document::number::{amount, cell_number, count};
use goodput_document::wrap::wrap;
use goodput_model::escape_control;
use goodput_stats::{Histogram, ServedView, WorkloadView};

/// Columns of the page.
const WIDTH: usize = 80;

/// Columns of the longest bar.
const COLUMNS: usize = 40;

/// The page of a workload.
pub fn workload_text(view: &WorkloadView) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, view);
    fit_page(&page, WIDTH)
}

fn write_page(page: &mut String, view: &WorkloadView) -> std::fmt::Result {
    write_field(page, &escape_control(&view.name), &escape_control(&view.description))?;
    let hash = view.hash.get(..16).unwrap_or(&view.hash);
    write_field(page, "Hash", &escape_control(hash))?;
    write_field(page, "Tokens", &format!("counted by {}", escape_control(&view.counted_by)))?;
    let sessions = match view.sessions {
        n if n == view.requests => String::new(),
        n => format!(" in {} sessions", count(n)),
    };
    let rest = match view.all_sessions {
        Some(all) if all > view.sessions => format!(": the first of {} sessions", count(all)),
        _ => String::new(),
    };
    write_field(page, "Requests", &format!("{}{sessions}{rest}", count(view.requests)))?;
    for (title, parts) in [("Classes", &view.classes), ("Constraint", &view.constraints)] {
        if parts.len() > 1 {
            write_field(page, title, &shares_text(parts))?;
        }
    }
    if let Some(served) = &view.served {
        write_recorded_service(page, served)?;
    }
    if view.images > 0 {
        write_field(page, "Images", &count(view.images))?;
    }
    if let Some(span) = view.span_s {
        let rate = view.sessions as f64 / span.max(1e-9);
        write_field(page, "Span", &format!("{} s, {} arrivals/s", amount(span), amount(rate)))?;
    }
    let hits = 100.0 * view.expected_hit_rate;
    write_field(
        page,
        "Cache",
        &format!("{hits:.1} % of prompt tokens begin like an earlier prompt"),
    )?;
    for note in &view.notes {
        write_field(page, "Note", &escape_control(note))?;
    }
    write_histogram(page, "Prompt tokens", view.input_tokens.as_ref())?;
    write_histogram(page, "Answer tokens", view.output_tokens.as_ref())?;
    write_histogram(page, "Requests of a session", view.turns.as_ref())?;
    write_histogram(page, "Pauses in sessions, s", view.pauses_s.as_ref())?;
    write_histogram(page, "Gaps between arrivals, s", view.gaps_s.as_ref())?;
    write_histogram(page, "Arrivals over time, s", view.arrivals_s.as_ref())?;
    let served = view.served.as_ref();
    write_histogram(page, "TTFT as served, ms", served.and_then(|served| served.ttft_ms.as_ref()))?;
    for preview in &view.previews {
        let output = preview.output_tokens.map_or_else(|| "any".to_owned(), |n| n.to_string());
        writeln!(
            page,
            "\n{} · {} tokens in, {output} out",
            escape_control(&preview.class),
            preview.input_tokens
        )?;
        for line in wrap(&escape_control(&preview.body), WIDTH - 2) {
            for piece in split_line(&line, WIDTH - 2) {
                writeln!(page, "  {piece}")?;
            }
        }
    }
    Ok(())
}

/// A line in pieces of at most this many columns: bodies need not have blanks.
fn split_line(line: &str, columns: usize) -> Vec<String> {
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
fn write_recorded_service(page: &mut String, served: &ServedView) -> std::fmt::Result {
    let ServedView { endpoints, models, statuses, ends, .. } = served;
    let parts = [("APIs", endpoints), ("Models", models), ("Status", statuses), ("Ended", ends)];
    for (title, parts) in parts {
        if !parts.is_empty() {
            write_field(page, title, &shares_text(parts))?;
        }
    }
    match served.cache_hit_rate {
        Some(rate) => {
            write_field(page, "Served", &format!("{:.1} % from the server's cache", 100.0 * rate))
        }
        None => Ok(()),
    }
}

/// Names with their numbers and shares; what is rare is counted together.
fn shares_text(parts: &[(String, u64)]) -> String {
    const SHOWN: usize = 12;
    let all = parts.iter().map(|(_, n)| n).sum::<u64>().max(1);
    let part = |name: &str, n: u64| {
        format!("{} {} ({:.1} %)", escape_control(name), count(n), 100.0 * n as f64 / all as f64)
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

fn write_field(page: &mut String, name: &str, text: &str) -> std::fmt::Result {
    for (place, line) in wrap(text, 66).into_iter().enumerate() {
        writeln!(page, "{:<11} {line}", if place == 0 { name } else { "" })?;
    }
    Ok(())
}

fn write_histogram(
    page: &mut String,
    title: &str,
    histogram: Option<&Histogram>,
) -> std::fmt::Result {
    let Some(shown) = histogram else { return Ok(()) };
    let Histogram { mean, p50, p90, p99, min, max, bins, .. } = shown;
    writeln!(
        page,
        "\n{title}: mean {}, p50 {}, p90 {}, p99 {}, from {} to {}",
        cell_number(*mean),
        cell_number(*p50),
        cell_number(*p90),
        cell_number(*p99),
        cell_number(*min),
        cell_number(*max)
    )?;
    let most = bins.iter().map(|(.., n)| *n).max().unwrap_or(0).max(1);
    for (low, high, n) in bins {
        let columns = (*n as f64 / most as f64 * COLUMNS as f64).round() as usize;
        // What is there is seen.
        let columns = if *n > 0 { columns.max(1) } else { 0 };
        writeln!(
            page,
            "{:>9} – {:<9} {:>7} {}",
            cell_number(*low),
            cell_number(*high),
            n,
            "█".repeat(columns)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use goodput_stats::Preview;

    use super::*;

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
