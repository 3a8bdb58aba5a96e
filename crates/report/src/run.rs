//! The page of one run: what was run, how it went, and how far to believe it.

mod answer;
mod breakdown;
mod client;
mod distributions;
mod facts;
mod gaps;
mod gpu;
pub(crate) mod latency;
pub(crate) mod ranks;
mod reproduce;
pub(crate) mod server;
mod short;
mod slo;
mod steps;
mod timeline;
mod workload;

pub(crate) use facts::about_line;
pub(crate) use workload::workload_name;

use goodput_model::Verdict;
use goodput_stats::{ErrorDetail, LoadGrid, RunFacts, SloLimits, Summary};

use crate::explorer;
use crate::view::{Picture, RunView, to_pictures};
use goodput_document::markup::Html;
use goodput_document::number::{count, percent};
use goodput_document::render;
use goodput_document::render::pieces::write_cards;
use goodput_document::svg::{Rule, standalone_stack};
use goodput_document::{
    Answer, Block, Detail, Document, Fact, Formats, Section, Suites, Table, TableStyle,
};

const HTML: Formats = Formats::HTML;
const TEXT: Formats = Formats::TEXT;
const MARKDOWN: Formats = Formats::MARKDOWN;

/// The page of one run, for a terminal.
pub fn run_text(summary: &Summary, detail: Detail) -> String {
    render::text::render_page(&run_document(summary, None), detail)
}

/// The page of a run, for a pull request or a job summary.
pub fn run_markdown(summary: &Summary) -> String {
    render::markdown::render_page(&run_document(summary, None))
}

/// The page of a run, for a browser.
pub fn run_html(view: &RunView<'_>) -> String {
    render::html::render_page(&run_document(view.summary, Some(view)))
}

/// A test case for each term of the SLO and for the share of good requests that was asked for; without
/// an SLO one for the verdict.
pub fn run_junit(summary: &Summary) -> String {
    render::junit::render_page(&run_document(summary, None))
}

/// Its charts as files.
pub fn run_charts(view: &RunView<'_>) -> Vec<Picture> {
    let parts = [
        distributions::distribution_charts(view),
        gaps::position_charts(view),
        gaps::stall_charts(view),
        timeline::timeline_charts(view),
    ];
    let mut all = to_pictures(&parts.concat());
    let stack = steps::waterfall_stack(view.summary).filter(|stack| !stack.is_empty());
    all.extend(
        stack.map(|stack| Picture { name: stack.name.to_owned(), svg: standalone_stack(&stack) }),
    );
    all
}

/// Charts over time need details, which only a page for a browser has.
pub(crate) fn run_document(summary: &Summary, view: Option<&RunView<'_>>) -> Document {
    let run = &summary.run;
    let about = about_line(run, facts::streaming_text(summary));
    let mut sections = short::short_sections(summary);
    sections.extend([
        setup_section(summary),
        Section::new("caveats", "Caveats").with_on(HTML, Block::Caveats(summary.caveats.clone())),
        slo::short_slo_section(summary),
        latency::latency_section(summary),
    ]);
    sections.extend(view.map(|view| {
        let charts = distributions::distribution_charts(view);
        Section::charts("distributions", "Distributions", "Latency distributions", charts)
    }));
    sections.push(steps::waterfall_section(summary));
    if let Some(view) = view {
        let places = gaps::position_charts(view);
        sections.push(Section::charts("positions", "Positions", "ITL over the answer", places));
        sections.extend([gaps::gaps_section(view), timeline::timeline_section(view)]);
    }
    sections.extend([
        breakdown::breakdown_section(summary),
        server::server_section(summary),
        gpu::gpu_section(summary),
        outcome_section(summary),
        client::client_section(summary),
        ranks::ranks_section(summary),
        errors_section(summary),
        slo::slo_section(summary),
    ]);
    if let Some(view) = view {
        let explorer = Section::new("explorer", "SLO explorer");
        sections.push(explorer.with_some(HTML, explorer_block(view)));
        sections
            .extend([reproduce::reproduce_section(view), reproduce::checklist_section(view.audit)]);
    }
    sections.push(trust_section(summary));
    Document {
        title: format!("{} at {}", run.model, run.target),
        about: about.clone(),
        head: vec![run.target.clone(), about],
        headline: short::short_headline(summary),
        heading: format!("Run: {}", verdict_words(summary)),
        answer: Some(Answer::new(answer::answer_sentence(summary), summary.verdict)),
        sections,
        keeps_long_lines: true,
        suites: Suites { name: "goodput run", suites: vec![slo::slo_suite(summary)] },
    }
}

/// The whole in a few words. A void result has no good news.
fn verdict_words(summary: &Summary) -> &'static str {
    let kept = summary.slo.as_ref().filter(|_| !is_void(summary));
    kept.map_or(summary.verdict.name(), |slo| slo::state_text(summary, slo))
}

/// What was run.
fn setup_section(summary: &Summary) -> Section {
    let answer = match &summary.slo {
        Some(promise) => format!("goodput {}", slo::goodput_text(promise)),
        None => facts::throughput_text(summary),
    };
    let void = if is_void(summary) { "These numbers are void: " } else { "" };
    let figures = Html::from_fn(|html| write_cards(html, &answer::figure_cards(summary)));
    Section::untitled()
        .with_on(MARKDOWN, Block::Strong(format!("{void}{answer}")))
        .with_some(HTML, (!is_void(summary)).then_some(Block::Widget(figures)))
        .with(Block::Facts(facts::run_facts(summary)))
        .with_some(Formats::FLAT, command(&summary.run))
}

/// What was typed. In a browser it stands with how to measure it again.
fn command(run: &RunFacts) -> Option<Block> {
    (!run.command.is_empty()).then(|| Block::fact("Command", run.command.clone()))
}

/// How it went and how far to believe it, on a terminal.
fn outcome_section(summary: &Summary) -> Section {
    let mut all = facts::rate_facts(summary);
    all.extend(slo::slo_facts(summary));
    all.extend(client::client_facts(summary));
    all.extend(ranks::rank_facts(summary));
    all.extend(Fact::several("Errors", summary.requests.error_details.iter().map(error_text)));
    Section::untitled()
        .with_on(TEXT, Block::Facts(all))
        .with_on(TEXT, Block::verdict_block(summary.verdict, &summary.caveats))
}

/// The same in Markdown.
fn trust_section(summary: &Summary) -> Section {
    let errors = summary.requests.error_details.iter();
    let errors = errors.map(|detail| Fact::new("Error", error_text(detail))).collect();
    Section::untitled()
        .with_on(MARKDOWN, Block::Heading("How far to trust it".to_owned()))
        .with_on(MARKDOWN, Block::verdict_block(summary.verdict, &summary.caveats))
        .with_on(MARKDOWN, Block::Facts(errors))
}

/// How often, what, and what was said.
fn error_text(detail: &ErrorDetail) -> String {
    let ErrorDetail { class, stage, message, .. } = detail;
    format!("{} × {class} ({stage}): {message}", count(detail.count))
}

/// What failed, where, and what was said.
fn errors_section(summary: &Summary) -> Section {
    let section = Section::new("errors", "Errors");
    let requests = &summary.requests;
    if requests.error_details.is_empty() {
        return section;
    }
    let text = format!(
        "{} of {} requests failed ({}). They stay in the denominator; those that hit a time limit \
         count as longer than it in the percentiles.",
        count(requests.failed),
        count(requests.scheduled),
        percent(requests.failed as f64 / requests.scheduled.max(1) as f64)
    );
    let table = Table::from_subjects("Errors", "By class and stage", &requests.error_details)
        .left("class", 0, |detail| detail.class.clone())
        .left("stage", 0, |detail| detail.stage.clone())
        .left("requests", 0, |detail| count(detail.count))
        .left("first message", 0, |detail| detail.message.clone())
        .table;
    section
        .with_on(HTML, Block::note(text))
        .with_on(HTML, Block::Table(Table { look: TableStyle::Words, ..table }))
}

/// The explorer. Limits that void numbers keep do not count as kept.
fn explorer_block(view: &RunView<'_>) -> Option<Block> {
    let summary = view.summary;
    if is_void(summary) {
        return None;
    }
    let asked = SloLimits::from_summary(summary.slo.as_ref());
    let (label, grid) = (summary.run.target.clone(), &view.details.slo_grid);
    let points = [LoadGrid { level: 0.0, label, grid }];
    let inside = Html::from_fn(|html| {
        explorer::write_explorer(html, &points, reproduce::gpu_count(summary), asked, None);
    });
    (!inside.is_empty()).then_some(Block::Widget(inside))
}

/// Whether figures may not stand as a result.
fn is_void(summary: &Summary) -> bool {
    summary.verdict == Verdict::Void
}

/// What lies outside the window, in charts over time.
fn outside_window_rules(summary: &Summary, end: f64) -> Vec<Rule> {
    let window = &summary.window;
    let parts = [
        (0.0, window.start_s, "warm-up"),
        (window.end_s, end, if summary.requests.cooldown > 0 { "cooldown" } else { "after" }),
    ];
    let parts = parts.into_iter().filter(|(from, to, _)| to - from > 1e-3);
    parts.map(|(from, to, name)| Rule::Span(from, to, name.to_owned())).collect()
}
