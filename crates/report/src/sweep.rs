//! The page of a sweep: the answer, then the curves, then every point.

mod answer;
pub(crate) mod browser;
mod cases;
mod charts;
mod design;
mod kept;
mod live;
mod loops;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub use browser::sweep_charts;
pub use design::sweep_design;
pub use live::{
    SweepAxes, point_words, sweep_axes, sweep_estimate, sweep_point_line, sweep_progress_page,
    sweep_so_far,
};

pub(crate) use answer::{
    answer_text, answer_words, bare_percent, no_search_reason, shape_words, sustained_text,
    unknown_reason,
};
pub(crate) use cases::sweep_suite;
pub(crate) use charts::{
    Latency, batch_medians, gpus_and_label, level_axis, peak_goodput, user_speeds,
};
pub(crate) use tables::{front_text, marked_value, point_standing_text, standing_text};

use goodput_campaign::curve::{by_level, is_on_curve};
use goodput_campaign::sweep::{
    Axis, Bounded, GoodputState, Level, PointSummary, Purpose, SweepState, SweepSummary,
    weighted_mean,
};
use goodput_model::Verdict;
use goodput_stats::rough_duration;

use crate::context;
use crate::view::SweepView;
use browser::{
    answer_sentence, distributions, load, reproduce, server, speeds_at_answer, throughput, users,
    view_of_point,
};
use goodput_document::TextPlot;
use goodput_document::number::{amount, duration, plural};
use goodput_document::render;
use goodput_document::{Answer, Block, Detail, Document, Fact, Formats, Section, Suites};

/// The page of a sweep, for a terminal.
pub fn sweep_text(summary: &SweepSummary, detail: Detail) -> String {
    render::text::render_page(&sweep_document(summary, None), detail)
}

/// The page of a sweep, for a pull request or a job summary.
pub fn sweep_markdown(summary: &SweepSummary) -> String {
    render::markdown::render_page(&sweep_document(summary, None))
}

/// The page of a sweep, for a browser.
pub fn sweep_html(view: &SweepView<'_>) -> String {
    render::html::render_page(&sweep_document(view.summary, Some(view)))
}

/// A test case for the answer, for the long run at it, and for each point. A sweep goes on until a
/// load is over the limit: a point above the confirmed load that misses the SLO is what it looked for, and
/// no failure.
pub fn sweep_junit(summary: &SweepSummary) -> String {
    render::junit::render_page(&sweep_document(summary, None))
}

/// Charts of points need their details, which only a page for a browser has.
pub(crate) fn sweep_document(summary: &SweepSummary, view: Option<&SweepView<'_>>) -> Document {
    let facts = &summary.sweep;
    let about = format!("model {} · {} · goodput {}", facts.model, facts.started, facts.version);
    let mut sections = short_sections(summary);
    sections.extend([
        setup_section(summary),
        Section::new("caveats", "Caveats")
            .with_on(Formats::HTML, Block::Caveats(summary.caveats.clone())),
    ]);
    sections.push(kept::kept_section(summary));
    sections.extend(curve_sections(summary));
    let has_page =
        |point: &PointSummary| view.is_some_and(|view| view_of_point(view, point).is_some());
    let every = tables::points_table(summary, has_page).into_block();
    let marks = every.is_some().then(|| mark_legend(summary));
    sections.push(
        Section::with_name("points", "Points", "All points")
            .with_some(Formats::WIDE, every)
            .with_some(Formats::MARKDOWN, marks),
    );
    sections.extend(view.map(|view| {
        let name = "Distributions";
        Section::charts("distributions", name, name, distributions::distribution_charts(view))
    }));
    sections.extend(side_sections(summary, view));
    sections.push(points_section(summary));
    sections.push(shape_section(summary));
    if let Some(view) = view {
        let explorer = Section::new("explorer", "SLO explorer");
        sections.push(explorer.with_some(Formats::HTML, browser::explorer_block(view)));
        sections.push(reproduce::reproduce_section(view));
    }
    sections.push(trust_section(summary));
    Document {
        title: format!("Sweep of {}", facts.target),
        about: about.clone(),
        head: vec![facts.target.clone(), about],
        headline: format!("{} · {}", facts.target, facts.model),
        heading: format!("Sweep: {}", sweep_word(summary)),
        answer: Some(Answer::new(answer_sentence(summary), summary.verdict)),
        sections,
        suites: Suites { name: "goodput sweep", suites: vec![sweep_suite(summary, None)] },
        ..Document::default()
    }
}

/// The short page: the answer, one chart, and ten points.
fn short_sections(summary: &SweepSummary) -> Vec<Section> {
    let short = Formats::SHORT;
    let is_short = |name: &str| !is_answer_label(name) && name != "TTFT bend";
    let more = answer_words(summary).into_iter().filter(|(name, _)| is_short(name));
    let facts = state_text(summary).map(|state| ("State", state)).into_iter().chain(more);
    let facts = facts.map(|(name, text)| Fact::new(name, text).also_in_short()).collect();
    let chart = charts::latency_over_load(summary).map(Block::Plot);
    vec![
        Section::untitled()
            .with_on(short, Block::note(answer_sentence(summary)))
            .with_on(short, Block::Facts(facts))
            .with_on(short, trust_block(summary)),
        Section::untitled().with_some(short, chart),
        Section::untitled().with_some(short, tables::short_points_table(summary).into_block()),
    ]
}

/// Whether this is the name of what stands in the answer's sentence.
fn is_answer_label(name: &str) -> bool {
    matches!(name, "Goodput" | "")
}

/// The whole in a few plain words.
fn sweep_word(summary: &SweepSummary) -> &'static str {
    match summary.goodput.as_ref().map(|goodput| goodput.state) {
        _ if summary.verdict == Verdict::Void => "void",
        Some(GoodputState::Found) => "goodput found",
        Some(GoodputState::AtLeast) => "goodput found, no load was over the limit",
        Some(GoodputState::Measured) => "goodput as measured, not confirmed",
        Some(GoodputState::Unreachable) => "no load keeps the SLO",
        Some(GoodputState::Unclear) => "goodput undecided",
        None => summary.verdict.name(),
    }
}

/// What was swept, what came of it, and on a terminal how far to believe it.
fn setup_section(summary: &SweepSummary) -> Section {
    let facts = &summary.sweep;
    let (markdown, long) = (Formats::MARKDOWN, Formats::LONG);
    let made = format!("goodput {}, {}", facts.version, facts.started);
    let mut all = vec![
        // Elsewhere they are at the head of the page.
        Fact::new("Target", facts.target.clone()).on(markdown),
        Fact::new("Model", facts.model.clone()).on(markdown),
        Fact::new("Workload", facts.workload.clone()),
    ];
    all.extend(context::system_facts(facts));
    all.push(Fact::new("Sweep", points_text(summary)));
    let slo = summary.plan.slo.as_ref();
    all.extend(slo.map(|slo| Fact::new("SLO", slo.to_string()).on(markdown)));
    all.extend(state_text(summary).map(|state| Fact::new("State", state)));
    // In Markdown the answer stands above.
    all.extend(answer_words(summary).into_iter().map(|(name, text)| {
        Fact::new(name, text).on(if is_answer_label(name) { long } else { Formats::ALL })
    }));
    all.extend(
        speeds_at_answer(summary).map(|text| Fact::new("At the goodput", text).on(Formats::HTML)),
    );
    all.push(Fact::new("Time", duration_text(summary)).on(markdown));
    all.push(Fact::new("Measured with", made).on(markdown));
    if !facts.command.is_empty() {
        // In a browser it stands with how to measure it again.
        all.push(Fact::new("Command", facts.command.clone()).on(Formats::FLAT));
    }
    // A void result has no good news.
    let void = if summary.verdict == Verdict::Void { "These numbers are void: " } else { "" };
    let none = Fact::new("Points", "none with usable results");
    let none = points_on_curve(&summary.points).is_empty().then(|| Block::Facts(vec![none]));
    Section::untitled()
        .with_on(markdown, Block::Strong(format!("{void}{}", answer_text(summary))))
        .with(Block::Facts(all))
        .with_on(Formats::TEXT, trust_block(summary))
        .with_some(Formats::TEXT, none)
}

fn trust_block(summary: &SweepSummary) -> Block {
    Block::verdict_block(summary.verdict, &summary.caveats)
}

fn trust_section(summary: &SweepSummary) -> Section {
    Section::untitled()
        .with_on(Formats::MARKDOWN, Block::Heading("How far to trust it".to_owned()))
        .with_on(Formats::MARKDOWN, trust_block(summary))
}

fn add_plot(section: Section, plot: Option<TextPlot>) -> Section {
    section.with_some(Formats::TEXT, plot.map(Block::Plot))
}

/// Latency, throughput and goodput over load.
fn curve_sections(summary: &SweepSummary) -> Vec<Section> {
    let drawn = |charts| (Formats::HTML, Block::Charts(charts));
    let mut latency = Section::with_name("latency", "Latency", "Latency over load");
    latency.blocks.push(drawn(load::latency_charts(summary)));
    let mut goodput = Section::with_name("goodput", "Goodput", "Goodput over load");
    goodput.blocks.push(drawn(load::goodput_charts(summary)));
    let mut throughput =
        Section::with_name("throughput", "Throughput", "Throughput against latency");
    if !points_on_curve(&summary.points).is_empty() {
        let no_gpus = summary.sweep.gpus.is_none_or(|gpus| gpus == 0);
        let marks = Fact::new("*", format!("{}; ms", front_text(summary)));
        let gpus = Fact::new("server", "GPU count not given (--gpus N)");
        let notes = std::iter::once(marks).chain(no_gpus.then_some(gpus)).collect();
        throughput.blocks.push(drawn(throughput::throughput_charts(summary)));
        throughput.blocks.push(drawn(throughput::percentile_charts(summary)));
        throughput = throughput
            .with_on(Formats::LONG, Block::Table(tables::throughput_table(summary)))
            .with_on(Formats::TEXT, Block::Facts(notes));
    }
    let percentiles = tables::percentiles_table(summary).into_block();
    // A terminal shows both curves one below the other.
    vec![
        add_plot(latency, charts::latency_over_load(summary))
            .with_on(Formats::TEXT, Block::Gap)
            .with_some(Formats::ALL, percentiles),
        add_plot(Section::untitled(), charts::goodput_plot(summary)),
        throughput,
        goodput,
    ]
}

/// What users and servers see of the same points.
fn side_sections(summary: &SweepSummary, view: Option<&SweepView<'_>>) -> Vec<Section> {
    let drawn = |charts| Block::Charts(charts);
    let users = Section::with_name("users", "Users", "Speed for each user")
        .with_on(Formats::HTML, drawn(users::user_charts(summary)));
    let mut server = Section::with_name("server", "Server", "The server's side");
    if let Some(view) = view {
        server = server
            .with_on(Formats::HTML, drawn(server::server_charts(view)))
            .with_some(Formats::HTML, server::server_table(view));
    }
    vec![
        add_plot(users, charts::user_speed_plot(summary)),
        add_plot(Section::untitled(), charts::batch_plot(summary)),
        loops::section(summary),
        server,
    ]
}

/// What signs in the table of all points mean.
fn mark_legend(summary: &SweepSummary) -> Block {
    let text = format!("*: {}; ~: one end of its interval is unknown", front_text(summary));
    Block::note(text)
}

/// Every point on a terminal, which has no room for all of its columns side by side.
fn points_section(summary: &SweepSummary) -> Section {
    let text = Formats::TEXT;
    let mut section =
        Section::untitled().with_some(text, tables::points_seen_table(summary).into_block());
    if summary.plan.slo.is_some() && !summary.points.is_empty() {
        let judged = tables::points_judged_table(summary).into_block();
        section = section.with_on(text, Block::Gap).with_some(text, judged);
    }
    let open = Fact::new("~", "one end of its interval is unknown");
    let open = tables::has_open_ends(summary).then(|| Block::Facts(vec![open]));
    section.with_some(text, open)
}

/// What the points say together beyond the answer, and how long it took.
fn shape_section(summary: &SweepSummary) -> Section {
    let named = |(name, text): (&str, String)| Fact::new(name, text);
    let more =
        answer_words(summary).into_iter().filter(|(name, _)| matches!(*name, "Knee" | "Sustained"));
    let more = more.map(|found| named(found).on(Formats::HTML));
    let shapes = shape_words(summary).map(|found| named(found).on(Formats::LONG));
    let time = Fact::new("Time", duration_text(summary)).on(Formats::TEXT);
    let all = more.chain(shapes).chain([time]).collect();
    Section::with_name("shape", "Shape", "Shape and long run").with(Block::Facts(all))
}

/// How many points of what.
pub(crate) fn points_text(summary: &SweepSummary) -> String {
    let what = match summary.plan.axis {
        Axis::Rate => "open-loop rates",
        Axis::Concurrency => "users of a closed loop",
    };
    format!("{} over {what}", plural(points_on_curve(&summary.points).len() as u64, "point"))
}

/// How it ended; nothing of one that is complete.
pub(crate) fn state_text(summary: &SweepSummary) -> Option<String> {
    let state = match summary.sweep.state {
        SweepState::Complete => return None,
        SweepState::Interrupted => "stopped by the user",
        SweepState::TargetLost => {
            "ended because the target became unreachable and did not come back"
        }
        SweepState::TimeUp => "ended because its time was over (--max-time)",
        SweepState::NoGoodAnswer => "ended because the target answered, but no request completed",
        SweepState::Unfinished => "still running, or killed",
    };
    Some(format!("{state}: this is what was measured so far; --resume continues"))
}

/// How long it took, and how long it was said to take.
pub(crate) fn duration_text(summary: &SweepSummary) -> String {
    let took = duration(summary.sweep.took_s);
    match &summary.sweep.estimated {
        Some(said) if (summary.sweep.took_s / said.seconds).is_finite() => format!(
            "{took}; estimated before: {} ({:+.0} %)",
            rough_duration(said.seconds),
            (summary.sweep.took_s / said.seconds - 1.0) * 100.0
        ),
        _ => took,
    }
}

/// A level on its axis: whole users, rates with their digits.
pub(crate) fn level_value_text(axis: Axis, value: f64) -> String {
    match axis {
        _ if !value.is_finite() || value < 0.0 => "–".to_owned(),
        Axis::Concurrency => format!("{value:.0}"),
        // Steps of a search are small.
        Axis::Rate if value < 9.995 => format!("{value:.2}"),
        Axis::Rate => amount(value),
    }
}

pub(crate) fn axis_unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    }
}

/// The level of a point, without its unit.
pub(crate) fn level_text(level: Level) -> String {
    level_value_text(level.axis(), level.value())
}

/// The same in a column of this axis: levels of the other one are marked.
pub(crate) fn level_on_axis_text(axis: Axis, of: Level) -> String {
    match of {
        _ if of.axis() == axis => level_text(of),
        // The column has no room for more.
        Level::Users(users) => format!("C{users}"),
        Level::Rate(_) => format!("{}/s", level_text(of)),
    }
}

pub(crate) fn purpose_text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::WarmUp => "warm-up",
        Purpose::Grid => "grid",
        Purpose::Anchor => "anchor",
        Purpose::Bracket => "bracket",
        Purpose::Bisect => "bisect",
        Purpose::Focus => "focus",
        Purpose::Confirm => "confirm",
        Purpose::Sustain => "sustain",
        Purpose::Twin => "twin",
    }
}

/// A figure by level: the mean of its runs by their requests, inside all of their intervals.
pub(crate) fn pool_by_level(
    points: &[&PointSummary],
    of: impl Fn(&PointSummary) -> Option<Bounded>,
) -> Vec<(f64, Bounded)> {
    let one = |(level, points): (f64, Vec<&PointSummary>)| {
        let runs = points.into_iter();
        let runs = runs.filter_map(|point| Some((of(point)?, point.point.figures.requests)));
        Some((level, weighted_mean(runs)?))
    };
    by_level(points).into_iter().filter_map(one).collect()
}

/// A value without an interval.
pub(crate) fn without_interval(value: Option<f64>) -> Option<Bounded> {
    value.map(Bounded::bare)
}

/// The points of the curve.
pub(crate) fn points_on_curve(points: &[PointSummary]) -> Vec<&PointSummary> {
    points.iter().filter(|point| is_on_curve(point)).collect()
}
