//! Open against closed loops: what each shows of one server, over what the server completes and over
//! how much is in flight.

#[cfg(test)]
mod tests;

use goodput_campaign::sweep::{Bounded, Level, PointSpread, PointSummary, Purpose, SweepSummary};
use goodput_model::Verdict;

use super::browser::named_level;
use super::charts::{Latency, to_text_plot};
use super::{level_text, points_on_curve, pool_by_level, without_interval};
use goodput_document::number::{amount, cell_number};
use goodput_document::svg::{Chart, ChartAxis, ChartSeries, Dot, Shape};
use goodput_document::{Block, Cell, Column, Formats, Section, Table, TextPlot};

/// A twin is one where as many are in flight, within this share.
const ALIKE: f64 = 0.25;

/// What both loops show; nothing of a sweep with points of one loop alone.
pub(super) fn section(summary: &SweepSummary) -> Section {
    let section = Section::with_name("loops", "Loops", "Open and closed loops");
    let points = LoopPoints::new(summary);
    let Some(says) = points.says() else { return section };
    let pairs = pairs(summary);
    let ttft = points.chart(Latency::Ttft);
    let title = format!("{}, in ms (logarithmic)", ttft.title);
    let mut section = section
        .with_some(Formats::TEXT, to_text_plot(ttft, &title).map(Block::Plot))
        .with_on(Formats::HTML, Block::Charts(charts(summary)))
        .with_on(Formats::TEXT, Block::Gap)
        .with_on(Formats::LONG, Block::Table(points.table()));
    if let Some(text) = widest(&pairs) {
        section = section
            .with_on(Formats::TEXT, Block::Gap)
            .with_some(Formats::TEXT, twins(&pairs).map(Block::Plot))
            .with_on(Formats::TEXT, Block::Gap)
            .with_on(Formats::LONG, Block::Table(pair_table(&pairs)))
            .with_on(Formats::TEXT, Block::fact("Loops", text));
    } else {
        section = section.with_on(Formats::TEXT, Block::fact("Loops", says));
    }
    section
}

/// Both loops over what the server completes, then over how much is in flight.
pub(super) fn charts(summary: &SweepSummary) -> Vec<Chart> {
    let points = LoopPoints::new(summary);
    let Some(says) = points.says() else { return Vec::new() };
    let by_rate = [Latency::Ttft, second(summary)].map(|latency| {
        let chart = points.chart(latency);
        chart.with_caption(format!(
            "{says} Filled marks are the p50, hollow ones the p99; bars are 95 % intervals."
        ))
    });
    let all = by_rate.into_iter().chain(pair_chart(&pairs(summary)));
    all.filter(|chart| !chart.is_empty()).collect()
}

/// The points of a sweep by the loop that made them.
struct LoopPoints<'a> {
    open: Vec<&'a PointSummary>,
    closed: Vec<&'a PointSummary>,
}

impl<'a> LoopPoints<'a> {
    fn new(summary: &'a SweepSummary) -> Self {
        let is_open = |point: &&PointSummary| matches!(point.point.ask.level, Level::Rate(_));
        let is_twin = |point: &&PointSummary| {
            point.point.ask.purpose == Purpose::Twin
                && !is_open(point)
                && point.point.figures.verdict != Verdict::Void
        };
        let open = points_on_curve(&summary.points).into_iter().filter(is_open).collect();
        Self { open, closed: summary.points.iter().filter(is_twin).collect() }
    }

    /// The highest that each loop shows; none if one of them shows nothing.
    fn says(&self) -> Option<String> {
        let most = |points: &[&PointSummary]| {
            let all = by_rate(points, |point| point.point.figures.ttft_ms.p50).into_iter();
            all.max_by(|a, b| a.y.total_cmp(&b.y))
        };
        let (open, closed) = most(&self.open).zip(most(&self.closed))?;
        let at = |dot: &Dot| {
            format!("{} ms at {} completed req/s", cell_number(dot.y), cell_number(dot.x))
        };
        Some(format!(
            "The highest p50 TTFT is {} in the open loop and {} in the closed one.",
            at(&open),
            at(&closed)
        ))
    }

    /// p50 and p99 of a latency over what the server completes, a tone for each loop.
    fn chart(&self, latency: Latency) -> Chart {
        let both = [("open loop", 0, &self.open), ("closed loop", 1, &self.closed)];
        let series = both.into_iter().flat_map(|(name, tone, points)| {
            let one = |which: &str, shape, of: fn(PointSpread) -> Option<Bounded>| {
                let dots = by_rate(points, |point| of(latency.spread_of(&point.point.figures)));
                ChartSeries::new(format!("{name} {which}"), shape, tone, dots)
            };
            [one("p50", Shape::Points, |of| of.p50), one("p99", Shape::Rings, |of| of.p99)]
        });
        let title = format!("p50 and p99 {} over completed req/s", latency.title());
        Chart::new(latency.loops_chart(), title)
            .with_axes("completed req/s", ChartAxis::log("ms"))
            .with_series(series)
    }

    /// The same in numbers, loop by loop.
    fn table(&self) -> Table {
        let rows = |name: &'static str, points: &[&'a PointSummary]| {
            let mut points = points.to_vec();
            points.sort_by(|a, b| a.point.ask.level.value().total_cmp(&b.point.ask.level.value()));
            points.into_iter().map(move |point| (name, point)).collect::<Vec<_>>()
        };
        let all = [rows("open", &self.open), rows("closed", &self.closed)].concat();
        let ms = |of: fn(&PointSummary) -> Option<Bounded>| {
            move |(_, point): &(&str, &PointSummary)| {
                Cell::number(of(point), |ms| cell_number(ms.value))
            }
        };
        let caption = "What each point of both loops completed, and its latencies";
        let table = Table::from_subjects("Both loops over completed req/s", caption, all)
            .with(Column::left("loop", 8), |(name, _)| *name)
            .with(Column::right("load", 11), |(_, point)| {
                let at = point.point.ask.level;
                Cell::from(named_level(at)).short(level_text(at))
            })
            .with(Column::right("completed req/s", 11).short("completed\nreq/s"), |(_, point)| {
                Cell::number(point.point.figures.requests_per_s, cell_number)
            })
            .with(Column::stacked("TTFT", "p50", 10), ms(|of| of.point.figures.ttft_ms.p50))
            .with(Column::stacked("TTFT", "p99", 10), ms(|of| of.point.figures.ttft_ms.p99))
            .with(Column::stacked("E2E", "p50", 10), ms(|of| of.point.figures.e2e_ms.p50))
            .with(Column::stacked("E2E", "p99", 10), ms(|of| of.point.figures.e2e_ms.p99))
            .table;
        Table { above: "Both loops by load; latencies in ms".to_owned(), ..table }
    }
}

/// The latency that is drawn next to TTFT: the first other one that was promised, else that of
/// the whole answer, which has all of the queue in it.
fn second(summary: &SweepSummary) -> Latency {
    let slo = summary.plan.slo.as_ref();
    let mut others = Latency::ALL.into_iter().filter(|of| *of != Latency::Ttft);
    others.find(|of| of.slo_line(slo).is_some()).unwrap_or(Latency::E2e)
}

/// A figure over completed requests per second, in the order of the load; runs at one load are
/// combined.
fn by_rate(points: &[&PointSummary], of: impl Fn(&PointSummary) -> Option<Bounded>) -> Vec<Dot> {
    let rates = pool_by_level(points, |point| without_interval(point.point.figures.requests_per_s));
    let dot = |(level, found): (f64, Bounded)| {
        let x = rates.iter().find(|(at, _)| *at == level)?.1.value;
        let named = points.iter().map(|point| point.point.ask.level);
        let named = named.into_iter().find(|of| of.value() == level).map(named_level);
        let note = format!(
            "{}, {} completed req/s, {} ms",
            named?,
            cell_number(x),
            cell_number(found.value)
        );
        Some(Dot::with_note(x, found.value, note).with_interval(found.low, found.high))
    };
    pool_by_level(points, of).into_iter().filter_map(dot).collect()
}

/// A closed-loop point and the open-loop one with as many in flight: how many, and p99 TTFT.
struct LoopTwins {
    users: f64,
    open: (f64, f64),
    closed: (f64, f64),
}

impl LoopTwins {
    /// How many times as long the open loop takes.
    fn ratio(&self) -> f64 {
        self.open.1 / self.closed.1
    }
}

/// The closed-loop points that have a partner, by how many are in flight.
fn pairs(summary: &SweepSummary) -> Vec<LoopTwins> {
    let figures = |point: &&PointSummary| {
        let figures = &point.point.figures;
        let in_flight = figures.in_flight.filter(|n| n.is_finite() && *n > 0.0)?;
        Some((in_flight, figures.ttft_ms.p99?.value)).filter(|(_, p99)| p99.is_finite())
    };
    let points = LoopPoints::new(summary);
    let open: Vec<(f64, f64)> = points.open.iter().filter_map(figures).collect();
    let pair = |point: &PointSummary| {
        let closed = figures(&point)?;
        let apart = |open: &(f64, f64)| (open.0 / closed.0).ln().abs();
        let open = open.iter().min_by(|a, b| apart(a).total_cmp(&apart(b)))?;
        let is_alike = apart(open) <= (1.0 + ALIKE).ln();
        is_alike.then(|| LoopTwins { users: point.point.ask.level.value(), open: *open, closed })
    };
    let mut pairs: Vec<LoopTwins> = points.closed.into_iter().filter_map(pair).collect();
    pairs.sort_by(|a, b| a.closed.0.total_cmp(&b.closed.0));
    pairs
}

/// The same number in flight, made by open and by closed loops.
fn pair_chart(pairs: &[LoopTwins]) -> Option<Chart> {
    let says = widest(pairs)?;
    let series = |name: &str, tone, of: fn(&LoopTwins) -> (f64, f64)| {
        let dot = |pair: &LoopTwins| {
            let (x, y) = of(pair);
            Dot::with_note(x, y, format!("{} in flight, {} ms", cell_number(x), cell_number(y)))
        };
        let dots = pairs.iter().map(dot).collect();
        ChartSeries::new(name, Shape::Points, tone, dots)
    };
    Some(
        Chart::new("open-and-closed", "p99 TTFT over requests in flight")
            .with_caption(says + ".")
            .with_axes("requests in flight", ChartAxis::log("ms"))
            .with_series([
                series("open loop", 0, |pair| pair.open),
                series("closed loop", 1, |pair| pair.closed),
            ]),
    )
}

fn twins(pairs: &[LoopTwins]) -> Option<TextPlot> {
    to_text_plot(pair_chart(pairs)?, "p99 TTFT in ms (logarithmic) over requests in flight")
}

/// Closed-loop points and their partners.
fn pair_table(pairs: &[LoopTwins]) -> Table {
    let caption = "Closed-loop points and the open-loop points with as many requests in flight";
    let p99 = || Column::right("p99 TTFT, ms", 10).short("p99 TTFT");
    Table::from_subjects("Open and closed loops", caption, pairs)
        .right("users", 7, |pair| format!("{:.0}", pair.users))
        .right("open: in flight", 17, |pair| cell_number(pair.open.0))
        .with(p99(), |pair| cell_number(pair.open.1))
        .right("closed: in flight", 19, |pair| cell_number(pair.closed.0))
        .with(p99(), |pair| cell_number(pair.closed.1))
        .right("ratio", 7, |pair| cell_number(pair.ratio()))
        .table
}

/// What the widest pair says; nothing without pairs.
fn widest(pairs: &[LoopTwins]) -> Option<String> {
    let widest = pairs.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()))?;
    Some(format!(
        "with {} in flight, p99 TTFT is {} ms in the open loop and {} ms in the closed one: {:.1} \
         times. Users who wait for answers send less when the server is slow, so a closed loop \
         does not see the queue",
        amount(widest.open.0),
        cell_number(widest.open.1),
        cell_number(widest.closed.1),
        widest.ratio()
    ))
}
