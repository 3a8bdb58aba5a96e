//! What a result file of another tool states, with what the audit found; and several side by side.

use goodput_campaign::compare::{FileComparison, FileFigure, ReportedSide};
use goodput_model::{Reported, Severity, Verdict};
use goodput_stats::{Audit, Item, Status};

use goodput_document::clip::clip;
use goodput_document::number::{amount, cell_number, count, known_or_dash};
use goodput_document::render;
use goodput_document::{Block, Column, Detail, Document, Formats, List, Section, Table};

/// Columns of names and of figures.
const NAME: usize = 23;
const FIGURE: usize = 11;

/// Percentiles of the table.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// Findings of the page at most; `goodput audit` has all.
const FINDINGS: usize = 8;

/// The page of one file, for a terminal.
pub fn reported_text(run: &Reported, audit: &Audit) -> String {
    render::text::render_page(&reported_document(run, audit), Detail::Full)
}

/// The same, for a pull request or a job summary.
pub fn reported_markdown(run: &Reported, audit: &Audit) -> String {
    render::markdown::render_page(&reported_document(run, audit))
}

pub(crate) fn reported_document(run: &Reported, audit: &Audit) -> Document {
    let about = format!("{} · {}", audit.tool, audit.run);
    let verdict = match audit.verdict {
        Verdict::Valid => "VALID: the audit found no reason to doubt these figures",
        other => render::text::figures_verdict_line(other),
    };
    let more = "`goodput audit` on the file lists every check, and what to do.";
    let found = Section::untitled()
        .with_on(Formats::MARKDOWN, Block::Strong(verdict.to_owned()))
        .with_on(Formats::TEXT, Block::note(verdict))
        .with(Block::facts(audit_findings(audit).into_iter().map(|finding| ("", finding))))
        .with_on(Formats::TEXT, Block::note(more));
    Document {
        head: vec![audit.subject.clone(), about.clone()],
        heading: audit.subject.clone(),
        sections: vec![
            Section::untitled()
                .with_on(Formats::MARKDOWN, Block::note(about))
                .with_on(Formats::MARKDOWN, Block::Gap)
                .with(Block::facts(reported_facts(run))),
            Section::untitled().with_some(Formats::ALL, latencies_table(run).into_block()),
            found,
        ],
        ..Document::default()
    }
}

/// Everything but distributions, as far as it is stated.
fn reported_facts(run: &Reported) -> Vec<(&'static str, String)> {
    let each = |tokens: Option<u64>| {
        let ok = run.ok.filter(|ok| *ok > 0)?;
        Some(amount(tokens? as f64 / ok as f64))
    };
    let requests = run.ok.map(|ok| {
        let failed = run.failed.map_or(String::new(), |n| format!(", {} failed", count(n)));
        format!("{} completed{failed}", count(ok))
    });
    let lengths = each(run.input_tokens)
        .zip(each(run.output_tokens))
        .map(|(input, output)| format!("{input} prompt and {output} output tokens per request"));
    let rate = |rate: Option<f64>, unit: &str| rate.map(|rate| format!("{} {unit}", amount(rate)));
    let rates: Vec<String> = [
        rate(run.requests_per_s, "req/s"),
        rate(run.output_tokens_per_s, "output tok/s"),
        rate(run.total_tokens_per_s, "tok/s in total"),
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

fn latencies_table(run: &Reported) -> Table {
    let names = ["ttft", "tpot", "itl", "e2e", "e2e_sched"];
    let stated = names.into_iter().filter_map(|name| Some((name, run.metrics.get(name)?)));
    Table::from_subjects("", "", stated)
        .left("latency, ms", NAME, |(name, _)| *name)
        .right("mean", FIGURE, |(_, metric)| known_or_dash(metric.mean, cell_number))
        .each(
            PERCENTILES,
            |percent| Column::right(format!("p{percent}"), FIGURE),
            |(_, metric), percent| known_or_dash(metric.percentile(*percent), cell_number),
        )
        .table
}

/// What speaks against the figures, worst first.
fn audit_findings(audit: &Audit) -> Vec<String> {
    let speaks = |item: &&Item| item.severity > Severity::Info && item.status != Status::Ok;
    let all: Vec<_> = audit.items.iter().filter(speaks).collect();
    let shown = all.iter().take(FINDINGS);
    let shown = shown.map(|item| format!("{}: {}", item.title, item.evidence));
    let more = all.len().saturating_sub(FINDINGS);
    shown.chain((more > 0).then(|| format!("and: {more} more"))).collect()
}

/// Files side by side.
pub fn files_text(comparison: &FileComparison) -> String {
    let side = |side: &ReportedSide| {
        format!("{} = {} ({})", side.name, side.path, side.reported.tool.name())
    };
    let reasons = incomparable_by_reason(comparison).into_iter();
    let reasons = reasons.map(|(because, families)| format!("{}: {because}", families.join(", ")));
    let reasons: Vec<String> = reasons.collect();
    let list = |title: &str, items: Vec<String>| {
        Section::untitled().with(Block::List(List { title: title.to_owned(), items }))
    };
    let mut sections = vec![Section::untitled().with(Block::Table(figures_table(comparison)))];
    if !reasons.is_empty() {
        sections.push(list("not comparable", reasons));
    }
    sections.push(list("notes", comparison.notes.clone()));
    let head = comparison.sides.iter().map(side).collect();
    render::text::render_page(&Document { head, sections, ..Document::default() }, Detail::Full)
}

fn figures_table(comparison: &FileComparison) -> Table {
    let narrow = |text: &str| clip(text, FIGURE - 1);
    let names: Vec<&str> = comparison.sides.iter().map(|side| side.name.as_str()).collect();
    let names = || names.iter().enumerate();
    let change = if comparison.sides.len() > 2 { " diff" } else { "" };
    Table::from_subjects("", "", &comparison.figures)
        .left("as stated", NAME, |one| clip(&format!("{} {}", one.name, one.unit), NAME - 1))
        .each(
            names(),
            |(_, name)| Column::right(narrow(name), FIGURE),
            |one, (place, _)| match one.values.get(*place) {
                Some(Some(value)) if one.unit == "requests" => count(*value as u64),
                value => known_or_dash(value.copied().flatten(), cell_number),
            },
        )
        .each(
            names().skip(1),
            |(_, name)| match change {
                "" => Column::right("change", FIGURE),
                change => Column::right(narrow(&format!("{name}{change}")), FIGURE),
            },
            |one, (place, _)| {
                let change = one.change_percent.get(*place).copied().flatten();
                known_or_dash(change, |percent| format!("{percent:+.1} %"))
            },
        )
        .table
}

fn figure_family(figure: &FileFigure) -> String {
    let first = figure.name.rsplit_once(' ').map(|(first, _)| first);
    let is_metric = figure.unit == "ms";
    first.filter(|_| is_metric).unwrap_or(&figure.name).to_owned()
}

/// What cannot be compared, by its reason.
fn incomparable_by_reason(comparison: &FileComparison) -> Vec<(&str, Vec<String>)> {
    let mut held: Vec<(&str, Vec<String>)> = Vec::new();
    for figure in comparison.figures.iter().filter(|figure| !figure.because.is_empty()) {
        let name = figure_family(figure);
        match held.iter_mut().find(|(because, _)| *because == figure.because) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => held.push((&figure.because, vec![name])),
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use goodput_model::{ReportedMetric, ReportedMode, SourceTool};
    use goodput_stats::audit_reported;
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use goodput_document::render::text::WIDTH;

    fn run(tool: SourceTool) -> Reported {
        let mut run = Reported::new(tool);
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
        let run = run(SourceTool::VllmPython);
        let page = reported_text(&run, &audit_reported(&run));
        assert!(page.contains("1,200 completed, 3 failed"), "{page}");
        assert!(page.contains("100.0 prompt and 20.0 output tokens per request"), "{page}");
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
        let sides =
            vec![side("a", SourceTool::VllmPython, 10.0), side("b", SourceTool::Sglang, 11.0)];
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
