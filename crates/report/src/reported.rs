//! What a result file of another tool states, with what the audit found; and several side by side.

use std::fmt::Write;

use goodput_campaign::compare::{FileComparison, FileFigure};
use goodput_model::{Reported, ReportedMetric, Severity, Verdict};
use goodput_stats::{Audit, Status};

use crate::clip::{clip, left, right};
use crate::number::{amount, cell, count, known};
use crate::render::markdown::escaped;
use crate::render::text::WIDTH;
use crate::wrap::wrap;
use goodput_model::plain;

/// Columns of labels and of figures.
const LABEL: usize = 16;
const FIGURE: usize = 11;

/// Percentiles of the table.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// Findings of the page at most; `goodput audit` has all.
const FINDINGS: usize = 8;

/// The page of one file.
pub fn reported_text(run: &Reported, audit: &Audit) -> String {
    let mut page = String::new();
    prose(&mut page, 0, &plain(&audit.subject));
    prose(&mut page, 0, &format!("{} · {}", plain(&audit.tool), plain(&audit.run)));
    page.push('\n');
    for (label, text) in facts(run) {
        for (place, line) in wrap(&plain(&text), WIDTH - LABEL).iter().enumerate() {
            let label = if place == 0 { label } else { "" };
            page.extend([&left(label, LABEL), line, "\n"]);
        }
    }
    let rows = metrics(run);
    if !rows.is_empty() {
        page.push('\n');
        row(&mut page, "latency, ms", &head());
        for (name, cells) in &rows {
            row(&mut page, name, cells);
        }
    }
    page.push('\n');
    prose(&mut page, 0, verdict(audit.verdict));
    for (title, evidence) in findings(audit) {
        prose(&mut page, 2, &format!("{title}: {evidence}"));
    }
    prose(&mut page, 0, "`goodput audit` of the file has every check, and what to do.");
    page
}

/// The same in Markdown.
pub fn reported_markdown(run: &Reported, audit: &Audit) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "## {}\n", escaped(&audit.subject));
    let _ = writeln!(page, "{} · {}\n", escaped(&audit.tool), escaped(&audit.run));
    let _ = writeln!(page, "| | |\n|---|---|");
    for (label, text) in facts(run) {
        let _ = writeln!(page, "| {label} | {} |", escaped(&text));
    }
    let rows = metrics(run);
    if !rows.is_empty() {
        let _ = writeln!(page, "\n| latency, ms | {} |", head().join(" | "));
        let _ = writeln!(page, "|---|{}", "---:|".repeat(head().len()));
        for (name, cells) in rows {
            let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
        }
    }
    let _ = writeln!(page, "\n**{}**\n", verdict(audit.verdict));
    for (title, evidence) in findings(audit) {
        let _ = writeln!(page, "- {}: {}", escaped(&title), escaped(&evidence));
    }
    page
}

/// Everything but distributions, as far as it is stated.
fn facts(run: &Reported) -> Vec<(&'static str, String)> {
    let each = |tokens: Option<u64>| {
        let ok = run.ok.filter(|ok| *ok > 0)?;
        Some(amount(tokens? as f64 / ok as f64))
    };
    let requests = run.ok.map(|ok| {
        let failed = run.failed.map_or(String::new(), |n| format!(", {} failed", count(n)));
        format!("{} ended well{failed}", count(ok))
    });
    let lengths = each(run.input_tokens)
        .zip(each(run.output_tokens))
        .map(|(input, output)| format!("{input} prompt and {output} output tokens a request"));
    let rate = |rate: Option<f64>, unit: &str| rate.map(|rate| format!("{} {unit}", amount(rate)));
    let rates: Vec<String> = [
        rate(run.requests_per_s, "req/s"),
        rate(run.output_tokens_per_s, "output tok/s"),
        rate(run.total_tokens_per_s, "tok/s in all"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let goodput = run.goodput.as_ref().and_then(|goodput| {
        let terms = if goodput.terms.is_empty() { "limits not stated" } else { &goodput.terms };
        goodput.requests_per_s.map(|rate| format!("{} req/s ({terms})", amount(rate)))
    });
    let setup = [&run.setup.hardware, &run.setup.engine, &run.setup.precision];
    let setup: Vec<String> = setup.into_iter().flatten().cloned().collect();
    let listed = |list: Vec<String>| (!list.is_empty()).then(|| list.join(" · "));
    let all = [
        ("requests", requests),
        ("lengths", lengths),
        ("tokens by", run.token_source.clone()),
        ("throughput", listed(rates)),
        ("goodput", goodput),
        ("duration", run.duration_s.map(|seconds| format!("{} s", amount(seconds)))),
        ("workload", run.workload.clone()),
        ("system", listed(setup)),
        ("remarks", listed(run.remarks.clone())),
    ];
    all.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
}

fn head() -> Vec<String> {
    let percentiles = PERCENTILES.iter().map(|percent| format!("p{percent}"));
    std::iter::once("mean".to_owned()).chain(percentiles).collect()
}

fn metrics(run: &Reported) -> Vec<(String, Vec<String>)> {
    let shown = |value: Option<f64>| known(value, cell);
    let cells = |metric: &ReportedMetric| {
        let percentiles = PERCENTILES.iter().map(|percent| shown(metric.percentile(*percent)));
        std::iter::once(shown(metric.mean)).chain(percentiles).collect()
    };
    let known = ["ttft", "tpot", "itl", "e2e", "e2e_sched"];
    let stated = known.iter().filter_map(|name| Some((*name, run.metrics.get(*name)?)));
    stated.map(|(name, metric)| (name.to_owned(), cells(metric))).collect()
}

/// What speaks against the figures, worst first.
fn findings(audit: &Audit) -> Vec<(String, String)> {
    let speaks =
        |item: &&goodput_stats::Item| item.severity > Severity::Info && item.status != Status::Ok;
    let all: Vec<_> = audit.items.iter().filter(speaks).collect();
    let mut found: Vec<(String, String)> =
        all.iter().take(FINDINGS).map(|item| (plain(&item.title), plain(&item.evidence))).collect();
    if all.len() > FINDINGS {
        found.push(("and".to_owned(), format!("{} more", all.len() - FINDINGS)));
    }
    found
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "VALID: the audit found nothing that speaks against these figures",
        Verdict::Suspect => "SUSPECT: read what is doubtful before using these figures",
        Verdict::Void => "VOID: do not use these figures as a result",
    }
}

/// Files side by side.
pub fn files_text(comparison: &FileComparison) -> String {
    let mut page = String::new();
    for side in &comparison.sides {
        let tool = side.reported.tool.name();
        let line = format!("{} = {} ({tool})", plain(&side.name), plain(&side.path));
        prose(&mut page, 0, &line);
    }
    page.push('\n');
    let names: Vec<String> = comparison.sides.iter().map(|side| plain(&side.name)).collect();
    let mut titles = names.clone();
    let change =
        |name: &String| if names.len() > 2 { format!("{name} diff") } else { "change".into() };
    titles.extend(names.iter().skip(1).map(change));
    row(&mut page, "as stated", &titles);
    for figure in &comparison.figures {
        let value = |value: &Option<f64>| match value {
            Some(value) if figure.unit == "requests" => count(*value as u64),
            value => known(*value, cell),
        };
        let mut cells: Vec<String> = figure.values.iter().map(value).collect();
        cells.extend(figure.change_percent.iter().skip(1).map(|change| changed(*change)));
        let name = format!("{} {}", figure.name, figure.unit);
        row(&mut page, &name, &cells);
    }
    let held = held(comparison);
    if !held.is_empty() {
        page.push_str("\nnot comparable\n");
        for (because, families) in held {
            prose(&mut page, 2, &format!("{}: {because}", families.join(", ")));
        }
    }
    page.push_str("\nto know\n");
    for note in &comparison.notes {
        prose(&mut page, 2, &plain(note));
    }
    page
}

fn family(figure: &FileFigure) -> String {
    let first = figure.name.rsplit_once(' ').map(|(first, _)| first);
    let is_metric = figure.unit == "ms";
    first.filter(|_| is_metric).unwrap_or(&figure.name).to_owned()
}

/// What cannot be compared, by its reason.
fn held(comparison: &FileComparison) -> Vec<(&str, Vec<String>)> {
    let mut held: Vec<(&str, Vec<String>)> = Vec::new();
    for figure in comparison.figures.iter().filter(|figure| !figure.because.is_empty()) {
        let name = family(figure);
        match held.iter_mut().find(|(because, _)| *because == figure.because) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => held.push((&figure.because, vec![name])),
        }
    }
    held
}

fn changed(percent: Option<f64>) -> String {
    percent.map_or_else(|| "–".to_owned(), |percent| format!("{percent:+.1} %"))
}

/// A label and figures that stand at the right of their columns.
fn row(page: &mut String, label: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| right(&clip(cell, FIGURE - 1), FIGURE)).collect();
    let line = left(&clip(label, LABEL + 6), LABEL + 7) + &cells;
    page.push_str(line.trim_end());
    page.push('\n');
}

fn prose(page: &mut String, indent: usize, text: &str) {
    for (place, line) in wrap(text, WIDTH - indent - 2).iter().enumerate() {
        let hang = if place > 0 && indent > 0 { 2 } else { 0 };
        page.extend(std::iter::repeat_n(' ', indent + hang));
        page.push_str(line);
        page.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use goodput_campaign::compare::ReportedSide;
    use goodput_model::{ReportedMode, Tool};
    use goodput_stats::audit_reported;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn run(tool: Tool) -> Reported {
        let mut run = Reported::of(tool);
        run.model = Some("a\u{1b}[31m|b".to_owned());
        run.load.mode = ReportedMode::Closed;
        run.load.concurrency = Some(8);
        (run.ok, run.failed) = (Some(1_200), Some(3));
        (run.input_tokens, run.output_tokens) = (Some(120_000), Some(24_000));
        run.requests_per_s = Some(12.34);
        let percentiles = vec![(99.0, 81.5)];
        let metric = ReportedMetric { mean: Some(50.25), percentiles, ..ReportedMetric::default() };
        run.metrics.insert("ttft".to_owned(), metric);
        run
    }

    #[test]
    fn a_file_is_shown_as_it_states_itself() {
        let run = run(Tool::VllmPython);
        let page = reported_text(&run, &audit_reported(&run));
        assert!(page.contains("1,200 ended well, 3 failed"), "{page}");
        assert!(page.contains("100.0 prompt and 20.0 output tokens a request"), "{page}");
        let ttft = page.lines().find(|line| line.starts_with("ttft")).unwrap();
        let cells: Vec<_> = ttft.split_whitespace().collect();
        assert_eq!(cells, ["ttft", "50.25", "–", "–", "–", "81.50"]);
        assert!(!page.contains('\u{1b}') && page.lines().all(|line| line.width() <= WIDTH));
        let markdown = reported_markdown(&run, &audit_reported(&run));
        assert!(markdown.contains("| ttft | 50.25 | – | – | – | 81.50 |"), "{markdown}");
        assert!(markdown.contains("\\|b"), "{markdown}");
    }

    #[test]
    fn files_side_by_side_have_differences_and_no_verdict() {
        let side = |name: &str, tool, rate| {
            let mut reported = run(tool);
            reported.requests_per_s = Some(rate);
            let path = format!("{name}.json");
            ReportedSide {
                name: name.to_owned(),
                path,
                is_converted: false,
                verdict: None,
                notes: Vec::new(),
                reported,
            }
        };
        let sides = vec![side("a", Tool::VllmPython, 10.0), side("b", Tool::Sglang, 11.0)];
        let page = files_text(&FileComparison::new(sides));
        let rate = page.lines().find(|line| line.starts_with("requests")).unwrap();
        assert!(rate.ends_with("10.00      11.00    +10.0 %"), "{page}");
        assert!(page.contains("failed requests                  3          3"), "{page}");
        assert!(page.contains("ttft: vLLM counts the role's event as a token"), "{page}");
        assert!(page.contains("each file is one run"), "{page}");
        assert!(page.lines().all(|line| line.width() <= WIDTH), "{page}");
        for word in ["better", "worse", "faster"] {
            assert!(!page.contains(word), "{page}");
        }
    }
}
