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
    SweepAxes, sweep_axes, sweep_before, sweep_live, sweep_so_far, sweep_step, sweep_words,
};

pub(crate) use answer::{answer, bare_percent, long_run, not_asked, shape_words, unknown, words};
pub(crate) use cases::suite;
pub(crate) use charts::{Latency, batch_medians, level_axis, peak, per_gpu, user_speeds};
pub(crate) use tables::{front, marked, standing, stands};

use goodput_campaign::curve::{by_level, is_on_curve};
use goodput_campaign::sweep::{
    Axis, Bounded, GoodputState, Level, PointSummary, Purpose, SweepState, SweepSummary,
    weighted_mean,
};
use goodput_model::Verdict;
use goodput_stats::about;

use crate::context;
use crate::view::SweepView;
use browser::{distributions, found, load, reproduce, sentence, server, there, throughput, users};
use goodput_document::TextPlot;
use goodput_document::number::{amount, duration, plural};
use goodput_document::render;
use goodput_document::{Answer, Block, Detail, Document, Fact, Formats, Section, Suites};

/// The page of a sweep, for a terminal.
pub fn sweep_text(summary: &SweepSummary, detail: Detail) -> String {
    render::text::page(&document(summary, None), detail)
}

/// The page of a sweep, for a pull request or a job summary.
pub fn sweep_markdown(summary: &SweepSummary) -> String {
    render::markdown::page(&document(summary, None))
}

/// The page of a sweep, for a browser.
pub fn sweep_html(view: &SweepView<'_>) -> String {
    render::html::page(&document(view.summary, Some(view)))
}

/// A test case for the answer, for the long run at it, and for each point. A sweep goes on until a
/// load is over the limit: a point above the confirmed load that misses the SLO is what it looked for, and
/// no failure.
pub fn sweep_junit(summary: &SweepSummary) -> String {
    render::junit::page(&document(summary, None))
}

/// Charts of points need their details, which only a page for a browser has.
pub(crate) fn document(summary: &SweepSummary, view: Option<&SweepView<'_>>) -> Document {
    let facts = &summary.sweep;
    let about = format!("model {} · {} · goodput {}", facts.model, facts.started, facts.version);
    let mut sections = in_short(summary);
    sections.extend([
        beginning(summary),
        Section::new("caveats", "Caveats")
            .with_on(Formats::HTML, Block::Caveats(summary.caveats.clone())),
    ]);
    sections.push(kept::section(summary));
    sections.extend(curves(summary));
    let has_page = |point: &PointSummary| view.is_some_and(|view| found(view, point).is_some());
    let every = tables::points(summary, has_page).filled();
    let marks = every.is_some().then(|| marks(summary));
    sections.push(
        Section::named("points", "Points", "All points")
            .with_some(Formats::WIDE, every)
            .with_some(Formats::MARKDOWN, marks),
    );
    sections.extend(view.map(|view| {
        let name = "Distributions";
        Section::charts("distributions", name, name, distributions::charts(view))
    }));
    sections.extend(sides(summary, view));
    sections.push(points(summary));
    sections.push(shape(summary));
    if let Some(view) = view {
        let explorer = Section::new("explorer", "SLO explorer");
        sections.push(explorer.with_some(Formats::HTML, browser::explore(view)));
        sections.push(reproduce::section(view));
    }
    sections.push(believed(summary));
    Document {
        title: format!("Sweep of {}", facts.target),
        about: about.clone(),
        head: vec![facts.target.clone(), about],
        headline: format!("{} · {}", facts.target, facts.model),
        heading: format!("Sweep: {}", word(summary)),
        answer: Some(Answer::new(sentence(summary), summary.verdict)),
        sections,
        suites: Suites { name: "goodput sweep", suites: vec![suite(summary, None)] },
        ..Document::default()
    }
}

/// The short page: the answer, one chart, and ten points.
fn in_short(summary: &SweepSummary) -> Vec<Section> {
    let short = Formats::SHORT;
    let is_short = |name: &str| !is_answer(name) && name != "TTFT bend";
    let more = words(summary).into_iter().filter(|(name, _)| is_short(name));
    let facts = state(summary).map(|state| ("State", state)).into_iter().chain(more);
    let facts = facts.map(|(name, text)| Fact::new(name, text).in_short()).collect();
    let chart = charts::over_load(summary).map(Block::Plot);
    vec![
        Section::bare()
            .with_on(short, Block::note(sentence(summary)))
            .with_on(short, Block::Facts(facts))
            .with_on(short, judgement(summary)),
        Section::bare().with_some(short, chart),
        Section::bare().with_some(short, tables::in_short(summary).filled()),
    ]
}

/// Whether this is the name of what stands in the answer's sentence.
fn is_answer(name: &str) -> bool {
    matches!(name, "Goodput" | "")
}

/// The whole in a few plain words.
fn word(summary: &SweepSummary) -> &'static str {
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
fn beginning(summary: &SweepSummary) -> Section {
    let facts = &summary.sweep;
    let (markdown, long) = (Formats::MARKDOWN, Formats::LONG);
    let made = format!("goodput {}, {}", facts.version, facts.started);
    let mut all = vec![
        // Elsewhere they are at the head of the page.
        Fact::new("Target", facts.target.clone()).on(markdown),
        Fact::new("Model", facts.model.clone()).on(markdown),
        Fact::new("Workload", facts.workload.clone()),
    ];
    all.extend(context::facts(facts));
    all.push(Fact::new("Sweep", swept(summary)));
    let slo = summary.plan.slo.as_ref();
    all.extend(slo.map(|slo| Fact::new("SLO", slo.to_string()).on(markdown)));
    all.extend(state(summary).map(|state| Fact::new("State", state)));
    // In Markdown the answer stands above.
    all.extend(words(summary).into_iter().map(|(name, text)| {
        Fact::new(name, text).on(if is_answer(name) { long } else { Formats::ALL })
    }));
    all.extend(there(summary).map(|text| Fact::new("At the goodput", text).on(Formats::HTML)));
    all.push(Fact::new("Time", took(summary)).on(markdown));
    all.push(Fact::new("Measured with", made).on(markdown));
    if !facts.command.is_empty() {
        // In a browser it stands with how to measure it again.
        all.push(Fact::new("Command", facts.command.clone()).on(Formats::FLAT));
    }
    // A void result has no good news.
    let void = if summary.verdict == Verdict::Void { "These numbers are void: " } else { "" };
    let none = Fact::new("Points", "none with usable results");
    let none = on_curve(&summary.points).is_empty().then(|| Block::Facts(vec![none]));
    Section::bare()
        .with_on(markdown, Block::Strong(format!("{void}{}", answer(summary))))
        .with(Block::Facts(all))
        .with_on(Formats::TEXT, judgement(summary))
        .with_some(Formats::TEXT, none)
}

fn judgement(summary: &SweepSummary) -> Block {
    Block::judgement(summary.verdict, &summary.caveats)
}

fn believed(summary: &SweepSummary) -> Section {
    Section::bare()
        .with_on(Formats::MARKDOWN, Block::Heading("How far to trust it".to_owned()))
        .with_on(Formats::MARKDOWN, judgement(summary))
}

fn plot(section: Section, plot: Option<TextPlot>) -> Section {
    section.with_some(Formats::TEXT, plot.map(Block::Plot))
}

/// Latency, throughput and goodput over load.
fn curves(summary: &SweepSummary) -> Vec<Section> {
    let drawn = |charts| (Formats::HTML, Block::Charts(charts));
    let mut latency = Section::named("latency", "Latency", "Latency over load");
    latency.blocks.push(drawn(load::latencies(summary)));
    let mut goodput = Section::named("goodput", "Goodput", "Goodput over load");
    goodput.blocks.push(drawn(load::goodputs(summary)));
    let mut throughput = Section::named("throughput", "Throughput", "Throughput against latency");
    if !on_curve(&summary.points).is_empty() {
        let no_gpus = summary.sweep.gpus.is_none_or(|gpus| gpus == 0);
        let marks = Fact::new("*", format!("{}; ms", front(summary)));
        let gpus = Fact::new("server", "GPU count not given (--gpus N)");
        let notes = std::iter::once(marks).chain(no_gpus.then_some(gpus)).collect();
        throughput.blocks.push(drawn(throughput::charts(summary)));
        throughput.blocks.push(drawn(throughput::percentiles(summary)));
        throughput = throughput
            .with_on(Formats::LONG, Block::Table(tables::throughput(summary)))
            .with_on(Formats::TEXT, Block::Facts(notes));
    }
    let percentiles = tables::percentiles(summary).filled();
    // A terminal shows both curves one below the other.
    vec![
        plot(latency, charts::over_load(summary))
            .with_on(Formats::TEXT, Block::Gap)
            .with_some(Formats::ALL, percentiles),
        plot(Section::bare(), charts::goodput(summary)),
        throughput,
        goodput,
    ]
}

/// What users and servers see of the same points.
fn sides(summary: &SweepSummary, view: Option<&SweepView<'_>>) -> Vec<Section> {
    let drawn = |charts| Block::Charts(charts);
    let users = Section::named("users", "Users", "Speed for each user")
        .with_on(Formats::HTML, drawn(users::charts(summary)));
    let mut server = Section::named("server", "Server", "The server's side");
    if let Some(view) = view {
        server = server
            .with_on(Formats::HTML, drawn(server::charts(view)))
            .with_some(Formats::HTML, server::table(view));
    }
    vec![
        plot(users, charts::users(summary)),
        plot(Section::bare(), charts::batches(summary)),
        loops::section(summary),
        server,
    ]
}

/// What signs in the table of all points mean.
fn marks(summary: &SweepSummary) -> Block {
    let text = format!("*: {}; ~: one end of its interval is unknown", front(summary));
    Block::note(text)
}

/// Every point on a terminal, which has no room for all of its columns side by side.
fn points(summary: &SweepSummary) -> Section {
    let text = Formats::TEXT;
    let mut section = Section::bare().with_some(text, tables::seen(summary).filled());
    if summary.plan.slo.is_some() && !summary.points.is_empty() {
        let judged = tables::judged(summary).filled();
        section = section.with_on(text, Block::Gap).with_some(text, judged);
    }
    let open = Fact::new("~", "one end of its interval is unknown");
    let open = tables::has_open_ends(summary).then(|| Block::Facts(vec![open]));
    section.with_some(text, open)
}

/// What the points say together beyond the answer, and how long it took.
fn shape(summary: &SweepSummary) -> Section {
    let named = |(name, text): (&str, String)| Fact::new(name, text);
    let more = words(summary).into_iter().filter(|(name, _)| matches!(*name, "Knee" | "Sustained"));
    let more = more.map(|found| named(found).on(Formats::HTML));
    let shapes = shape_words(summary).map(|found| named(found).on(Formats::LONG));
    let time = Fact::new("Time", took(summary)).on(Formats::TEXT);
    let all = more.chain(shapes).chain([time]).collect();
    Section::named("shape", "Shape", "Shape and long run").with(Block::Facts(all))
}

/// How many points of what.
pub(crate) fn swept(summary: &SweepSummary) -> String {
    let what = match summary.plan.axis {
        Axis::Rate => "open-loop rates",
        Axis::Concurrency => "users of a closed loop",
    };
    format!("{} over {what}", plural(on_curve(&summary.points).len() as u64, "point"))
}

/// How it ended; nothing of one that is complete.
pub(crate) fn state(summary: &SweepSummary) -> Option<String> {
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
pub(crate) fn took(summary: &SweepSummary) -> String {
    let took = duration(summary.sweep.took_s);
    match &summary.sweep.estimated {
        Some(said) if (summary.sweep.took_s / said.seconds).is_finite() => format!(
            "{took}; estimated before: {} ({:+.0} %)",
            about(said.seconds),
            (summary.sweep.took_s / said.seconds - 1.0) * 100.0
        ),
        _ => took,
    }
}

/// A level on its axis: whole users, rates with their digits.
pub(crate) fn level_number(axis: Axis, value: f64) -> String {
    match axis {
        _ if !value.is_finite() || value < 0.0 => "–".to_owned(),
        Axis::Concurrency => format!("{value:.0}"),
        // Steps of a search are small.
        Axis::Rate if value < 9.995 => format!("{value:.2}"),
        Axis::Rate => amount(value),
    }
}

pub(crate) fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Rate => "req/s",
        Axis::Concurrency => "users",
    }
}

/// The level of a point, without its unit.
pub(crate) fn level(level: Level) -> String {
    level_number(level.axis(), level.value())
}

/// The same in a column of this axis: levels of the other one are marked.
pub(crate) fn level_on(axis: Axis, of: Level) -> String {
    match of {
        _ if of.axis() == axis => level(of),
        // The column has no room for more.
        Level::Users(users) => format!("C{users}"),
        Level::Rate(_) => format!("{}/s", level(of)),
    }
}

pub(crate) fn purpose(purpose: Purpose) -> &'static str {
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
pub(crate) fn pooled(
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
pub(crate) fn bare(value: Option<f64>) -> Option<Bounded> {
    value.map(Bounded::bare)
}

/// The points of the curve.
pub(crate) fn on_curve(points: &[PointSummary]) -> Vec<&PointSummary> {
    points.iter().filter(|point| is_on_curve(point)).collect()
}
