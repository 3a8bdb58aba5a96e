//! A comparison, of runs or of live traffic, as a document.

pub(crate) mod answer;
pub(crate) mod browser;
mod cases;
mod effects;
mod live;
pub(crate) mod notes;
mod servers;
pub(crate) mod shadow;
pub(crate) mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod wanting;
pub(crate) mod words;

pub use browser::{CompareView, compare_charts};
pub use live::{
    CompareLevel, CompareRow, compare_block_line, compare_design_text, compare_estimate,
    compare_so_far,
};

use goodput_campaign::compare::{Comparison, Design, Finding, Floor, tested_metrics};
use goodput_campaign::shadow::ShadowReport;

use goodput_document::markup::Html;
use goodput_document::render;
use goodput_document::render::text::WIDTH;
use goodput_document::{
    Answer, Block, Detail, Document, Fact, Folded, Formats, Section, Standing, Suites, Table,
    TableCut,
};
use tables::{BARE, BETTER, CHANGE, LESS_SURE, NEXT_TO_TEST, SHORT, SURE, UNITS, VALUES};

/// The noise floor of a rig in a sentence, by the figures that are usually tested.
pub fn noise_floor_text(floor: &Floor) -> String {
    let usual = tested_metrics(&Design::default());
    format!("noise floor: {}", notes::floor_text(floor, |name| usual.contains(name)))
}

/// The page of a comparison, for a terminal.
pub fn compare_text(comparison: &Comparison, detail: Detail) -> String {
    render::text::render_page(&comparison_document(comparison.into()), detail)
}

/// The page of a comparison, for a pull request or a job summary.
pub fn compare_markdown(comparison: &Comparison) -> String {
    render::markdown::render_page(&comparison_document(comparison.into()))
}

/// The page of a comparison, for a browser.
pub fn compare_html<'a>(view: impl Into<CompareView<'a>>) -> String {
    render::html::render_page(&comparison_document(view.into()))
}

/// A test case for each gate, or for each tested figure without gates.
pub fn compare_junit(comparison: &Comparison) -> String {
    render::junit::render_page(&comparison_document(comparison.into()))
}

pub(crate) fn comparison_document(view: CompareView<'_>) -> Document {
    let comparison = view.comparison;
    let mut sentences = answer::answer_sentences(comparison).into_iter();
    let answer = sentences.next().map(|sentence| Answer {
        sentence,
        more: sentences.collect(),
        standing: Standing::Verdict(comparison.verdict),
        doubt: None,
    });
    let heading = format!("{}: {}", shadow::page_name(comparison), words::overall_word(comparison));
    let caveats = Section::new("caveats", "Caveats")
        .with_on(Formats::HTML, Block::Caveats(notes::remaining_caveats(comparison)));
    let mut sections = vec![answer_section(comparison), effects::section(comparison), caveats];
    sections.extend([setup_section(comparison), servers_section(comparison)]);
    sections
        .extend(comparison.shadow.as_ref().map(|found| live_traffic_section(comparison, found)));
    let gates = || tables::gates_table(comparison).map(Block::Table);
    sections.push(Section::new("gates", "Gates").with_some(Formats::WIDE, gates()));
    sections.push(differences_section(comparison));
    sections.push(Section::untitled().with_some(Formats::TEXT.with_short(), gates()));
    let blocks = Html::from_fn(|html| browser::blocks::write_block_charts(html, comparison));
    sections.push(
        Section::new("blocks", "Block by block").with_on(Formats::HTML, Block::Widget(blocks)),
    );
    sections.extend([axes_section(comparison), ranking_section(comparison)]);
    sections.extend(check_sections(comparison));
    sections.push(trust_section(comparison));
    sections.extend([
        Section::new("runs", browser::runs::runs_title(comparison))
            .with_some(Formats::HTML, browser::runs::runs_block(view)),
        Section::new("time", "Time")
            .with_on(Formats::HTML, Block::Facts(browser::repeat::time_facts(comparison))),
        browser::repeat::repeat_section(view),
    ]);
    let name = match comparison.shadow {
        Some(_) => "goodput shadow",
        None => "goodput compare",
    };
    Document {
        headline: about_line(comparison),
        title: heading.clone(),
        about: about_line(comparison),
        heading,
        answer,
        sections,
        suites: Suites { name, suites: cases::comparison_suites(comparison) },
        ..Document::default()
    }
}

/// Who, when, and by which version.
fn about_line(comparison: &Comparison) -> String {
    let against: Vec<String> = words::candidate_places(comparison)
        .map(|side| words::side_label(comparison, side))
        .collect();
    let facts = &comparison.comparison;
    let mut parts = Vec::new();
    if !against.is_empty() {
        parts.push(format!("{} against {}", against.join(", "), words::side_label(comparison, 0)));
    }
    parts.extend([&facts.workload, &facts.started].into_iter().filter(|s| !s.is_empty()).cloned());
    if !facts.version.is_empty() {
        parts.push(format!("goodput {}", facts.version));
    }
    parts.join(" · ")
}

/// The answer where pages begin with it: a sentence for each candidate.
fn answer_section(comparison: &Comparison) -> Section {
    let mut section = Section::untitled();
    let mut labeled = Vec::new();
    for (place, sentence) in answer::answer_sentences(comparison).into_iter().enumerate() {
        labeled.push((if place == 0 { "Answer" } else { "" }, sentence.clone()));
        section = section
            .with_on(Formats::MARKDOWN, Block::Strong(sentence.clone()))
            .with_on(Formats::SHORT, Block::note(sentence));
    }
    section.with_on(Formats::TEXT, Block::facts(labeled))
}

/// Sides, workload, load, blocks and the test; in a browser below what speaks against it.
fn setup_section(comparison: &Comparison) -> Section {
    Section::new("compared", "What was compared").with(Block::facts(notes::setup_notes(comparison)))
}

/// What the servers are, side by side.
fn servers_section(comparison: &Comparison) -> Section {
    let mut section = Section::new("servers", servers::TITLE);
    for table in servers::settings_tables(comparison, true) {
        section = section.with_on(Formats::TEXT, Block::Table(table));
    }
    for table in servers::settings_tables(comparison, false) {
        section = section.with_on(Formats::WIDE, Block::Table(table));
    }
    if section.blocks.is_empty() {
        section
    } else {
        section.with(Block::reading_note(servers::MARKS))
    }
}

/// What live traffic showed in addition to the figures.
fn live_traffic_section(comparison: &Comparison, found: &ShadowReport) -> Section {
    let counts = shadow::counts_table(comparison, found).map(Block::Table);
    Section::new("live", shadow::TITLE)
        .with_on(Formats::FLAT, Block::Heading(shadow::TITLE.to_owned()))
        .with(Block::facts(shadow::live_notes(found)))
        .with_some(Formats::ALL, counts)
}

/// For each candidate and level: what changed, how sure that is, and figures that were not tested.
fn differences_section(comparison: &Comparison) -> Section {
    let mut section = Section::new("differences", "Differences")
        .with_some(Formats::HTML, browser::forest::forest_block(comparison));
    // One run says nothing about how sure.
    let is_sure = |one: &Finding| one.is_tested && one.sd.or(one.p).is_some();
    let is_sure = comparison.findings.iter().any(is_sure);
    let (mut sure, mut others) = (Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for pair in tables::candidates_by_level(comparison) {
        if let Some(tested) = tables::figures_table(comparison, pair, true) {
            let title = tested.title.clone();
            let ways =
                if is_sure { change_and_confidence_cuts(&title) } else { all_change_cuts(&title) };
            let short = Table { ways: change_cuts(&title), ..tested.clone() };
            section = section
                .with_on(Formats::SHORT, Block::Table(short))
                .with_on(Formats::TEXT, Block::Table(Table { ways, ..tested.clone() }))
                .with_on(Formats::MARKDOWN, Block::Table(tested.clone()));
            shown.push(Block::Table(tested.with_columns(&TableCut::new(&title, &CHANGE))));
            sure.push(Block::Table(tested.with_columns(&TableCut::new(&title, &SURE))));
        }
        if let Some(other) = tables::figures_table(comparison, pair, false) {
            let ways = all_change_cuts(&other.title);
            section = section.with_on(Formats::TEXT, Block::Table(Table { ways, ..other.clone() }));
            others.push(Block::Table(other));
        }
    }
    for table in shown {
        section = section.with_on(Formats::HTML, table);
    }
    section = section
        .with_some(Formats::HTML, fold_blocks("How certain each one is", sure))
        .with_some(Formats::HTML, fold_blocks("Other figures: described, not tested", others));
    for text in tables::table_remarks(comparison) {
        section = section.with_on(Formats::LONG, Block::note(text));
    }
    section
}

fn fold_blocks(title: &str, blocks: Vec<Block>) -> Option<Block> {
    (!blocks.is_empty()).then(|| Block::Folded(Folded { title: title.to_owned(), blocks }))
}

/// What changed and how sure that is, in as few tables as there is room for.
fn change_and_confidence_cuts(title: &str) -> Vec<Vec<TableCut>> {
    let sure = || TableCut::new("How certain", &LESS_SURE);
    let units = || TableCut::new("In units, and the change by ranks", &NEXT_TO_TEST);
    vec![
        vec![TableCut::new(title, &CHANGE), TableCut::new("How certain", &SURE)],
        vec![TableCut::new(title, &SHORT), sure(), units()],
        vec![TableCut::new(title, &BARE), sure(), TableCut::new(VALUES.0, &VALUES.1), units()],
    ]
}

/// What changed, as far as one table has room for it.
fn change_cuts(title: &str) -> Vec<Vec<TableCut>> {
    [CHANGE.as_slice(), &SHORT, &BARE].map(|cut| vec![TableCut::new(title, cut)]).to_vec()
}

/// What changed, in as few tables as there is room for.
fn all_change_cuts(title: &str) -> Vec<Vec<TableCut>> {
    let units = || TableCut::new("In units", &UNITS);
    vec![
        vec![TableCut::new(title, &CHANGE)],
        vec![TableCut::new(title, &SHORT), units()],
        vec![TableCut::new(title, &BARE), TableCut::new(VALUES.0, &VALUES.1), units()],
    ]
}

/// All figures of all sides; a terminal has room for some sides at once.
fn axes_section(comparison: &Comparison) -> Section {
    let mut section = Section::new("axes", "All axes");
    for table in tables::axes_tables(comparison, Some(WIDTH)) {
        section = section.with_on(Formats::TEXT, Block::Table(table));
    }
    for table in tables::axes_tables(comparison, None) {
        section = section.with_on(Formats::WIDE, Block::Table(table));
    }
    if !section.blocks.is_empty() {
        section = section.with(Block::reading_note(BETTER));
    }
    for text in tables::table_remarks(comparison) {
        section = section.with_on(Formats::MARKDOWN, Block::note(text));
    }
    section
}

fn ranking_section(comparison: &Comparison) -> Section {
    let ranking = tables::ranking_rows(comparison);
    let section = Section::new("ranking", "Ranking");
    if ranking.is_empty() {
        return section;
    }
    let all = ranking.into_iter().map(|(figure, order)| Fact::new(figure, order)).collect();
    section
        .with_on(Formats::MARKDOWN, Block::Heading("Ranking".to_owned()))
        .with_on(Formats::WIDE, Block::Facts(all))
}

/// How much is chance, whether all were sent the same, and what differs: sections of their own where
/// there is a navigation.
fn check_sections(comparison: &Comparison) -> Vec<Section> {
    let one = |id, title, text: fn(&Comparison) -> String| {
        // Each pair of live traffic is one request.
        let is_run = comparison.shadow.is_none();
        let text = is_run.then(|| Block::note(text(comparison)));
        Section::new(id, title).with_some(Formats::HTML, text)
    };
    vec![
        one("noise", "Noise floor", notes::noise_floor_note),
        one("requests", "Same requests", notes::proof_text),
        Section::new("differs", "What differs")
            .with_on(Formats::HTML, Block::note(notes::differences_text(comparison)))
            .with_on(Formats::HTML, Block::Marks(notes::difference_marks(comparison)))
            .with_some(Formats::HTML, browser::sides::sides_block(comparison)),
    ]
}

/// The same at the end of a page that is read from its top, with the verdict.
fn trust_section(comparison: &Comparison) -> Section {
    let ranks = tables::ranking_rows(comparison).into_iter().enumerate();
    let ranks = ranks.map(|(place, (figure, order))| {
        let label = if place == 0 { "Ranking" } else { "" };
        (label, format!("{figure}: {order}"))
    });
    let verdict = comparison.verdict;
    let judgement = Block::verdict_block(verdict, &notes::remaining_caveats(comparison));
    let pairs = tables::candidates_by_level(comparison).into_iter();
    let others = pairs.filter_map(|pair| tables::figures_table(comparison, pair, false));
    let others = fold_blocks("Other figures", others.map(Block::Table).collect());
    Section::untitled()
        .with_on(Formats::TEXT, Block::facts(ranks))
        .with_on(Formats::MARKDOWN, Block::Heading("How far to trust it".to_owned()))
        .with_on(Formats::FLAT, Block::fact("Differs", notes::differences_text(comparison)))
        .with_on(Formats::FLAT, Block::Marks(notes::difference_marks(comparison)))
        .with_on(Formats::FLAT, Block::facts(notes::sent_notes(comparison)))
        .with_on(Formats::FLAT.with_short(), judgement)
        .with_some(Formats::MARKDOWN, others)
}
