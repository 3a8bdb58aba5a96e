//! The page of several runs of one plan.

use goodput_model::{Severity, Verdict};
use goodput_stats::{Headline, Repeats};

use super::markup::Html;
use super::page::Page;
use super::pieces::{Cell, answer, caveats, facts, figures, remark, section, table};
use crate::number::{cell, count};
use crate::repeats::{ROWS, signed, state};
use crate::svg::{Axis, Chart, Dot, Series, Shape};
use crate::text::about;
use crate::workload;

/// Figures that are drawn run by run, and the names of their charts.
const DRAWN: [(&str, &str); 6] = [
    ("requests_per_s", "runs-requests"),
    ("output_tokens_per_s", "runs-tokens"),
    ("ttft_p50", "runs-ttft-p50"),
    ("ttft_p99", "runs-ttft-p99"),
    ("tpot_p99", "runs-tpot-p99"),
    ("goodput_rps", "runs-goodput"),
];

/// A section: its id, its name, and what fills it.
type Part = (&'static str, &'static str, fn(&mut Html, &Repeats));

/// The page of several runs of one plan.
pub fn repeats_html(repeats: &Repeats) -> String {
    let mut body = Html::default();
    let mut sections = vec![("answer", "Answer"), ("caveats", "Caveats")];
    answer(&mut body, &sentence(repeats), repeats.verdict);
    facts(&mut body, &known(repeats));
    caveats(&mut body, &repeats.caveats);
    let parts: [Part; 4] = [
        ("figures", "Figures over runs", over_runs),
        ("charts", "Run by run", |html, repeats| figures(html, &charts(repeats))),
        ("spread", "Between and within", between),
        ("runs", "Each run", each),
    ];
    for (id, name, fill) in parts {
        let inside = Html::of(|html| fill(html, repeats));
        if !inside.is_empty() {
            sections.push((id, name));
            section(&mut body, id, name, |html| {
                html.add(&inside);
            });
        }
    }
    let run = repeats.run.as_ref();
    let title = run.map_or("Repeated runs".to_owned(), |run| {
        format!("{} at {}, {} runs", run.model, run.target, repeats.used)
    });
    let about = run.map(|run| about(run, crate::repeats::streaming(run))).unwrap_or_default();
    Page { title: &title, about: &about, sections: &sections, body }.into_string()
}

/// The main figures with their intervals over runs. A void result has none.
fn sentence(repeats: &Repeats) -> String {
    if repeats.verdict == Verdict::Void {
        let worst = repeats.caveats.iter().find(|caveat| caveat.severity == Severity::Void);
        let why = worst.map_or(String::new(), |caveat| format!(": {}", caveat.message));
        return format!("No result: these numbers are void{why}");
    }
    let one = |(name, words, unit): (&str, &str, &str)| {
        let found = repeats.headlines.get(name)?;
        Some(format!("{words}{}{unit}{}", signed(found.mean), ends(found, 1.0)))
    };
    let rate = if repeats.headlines.contains_key("goodput_rps") {
        ("goodput_rps", "", " req/s of goodput")
    } else {
        ("requests_per_s", "", " req/s")
    };
    let tails = [("ttft_p99", "TTFT p99 ", " ms"), ("tpot_p99", "TPOT p99 ", " ms")];
    let all: Vec<_> = [rate].into_iter().chain(tails).filter_map(one).collect();
    if all.is_empty() {
        return "Nothing to compare: no run ended as planned with a good answer".to_owned();
    }
    format!("{}; means over {} runs", all.join(", "), repeats.used)
}

fn ends(found: &Headline, times: f64) -> String {
    let ends = found.low.zip(found.high);
    ends.map_or(String::new(), |(low, high)| {
        format!(" ({}–{})", signed(low * times), signed(high * times))
    })
}

fn known(repeats: &Repeats) -> Vec<(String, String)> {
    let workload = repeats.run.as_ref().map(|run| ("Workload".to_owned(), workload::name(run)));
    let runs = format!("{} of {} asked for are in these figures", repeats.used, repeats.asked);
    let rest = [("Load".to_owned(), repeats.load.clone()), ("Runs".to_owned(), runs)];
    workload.into_iter().chain(rest).collect()
}

fn over_runs(html: &mut Html, repeats: &Repeats) {
    let rows: Vec<Vec<Cell>> = ROWS
        .iter()
        .filter_map(|(name, label, times)| {
            let found = repeats.headlines.get(*name)?;
            let text =
                |value: Option<f64>| value.map_or("–".to_owned(), |value| signed(value * times));
            let cells = [
                (*label).to_owned(),
                signed(found.mean * times),
                text(found.low),
                text(found.high),
                text(found.sd),
                found.cv.map_or("–".to_owned(), |cv| format!("{:.1}", cv * 100.0)),
                signed(found.min * times),
                signed(found.max * times),
                count(found.n.into()),
            ];
            Some(cells.map(Cell::from).to_vec())
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let head = ["", "mean", "95 % low", "high", "SD", "CV, %", "min", "max", "runs"];
    table(html, "Over runs: the run is the unit, intervals by Student's t", &head, &rows);
}

fn charts(repeats: &Repeats) -> Vec<Chart> {
    let label = |name: &str| ROWS.iter().find(|(row, _, _)| *row == name).map_or("", |row| row.1);
    let chart = |(name, file): (&str, &'static str)| {
        let found = repeats.headlines.get(name)?;
        let dots: Vec<Dot> = repeats
            .runs
            .iter()
            .filter_map(|run| {
                let value = *run.figures.get(name)?;
                let note = format!("{} in run {}{}", cell(value), run.number, state(run));
                Some(Dot { note, ..Dot::new(f64::from(run.number), value) })
            })
            .collect();
        let (first, last) = (dots.first()?.x, dots.last()?.x);
        let (from, to) = if last > first { (first, last) } else { (first - 0.5, first + 0.5) };
        let mean = |x| Dot { low: found.low, high: found.high, ..Dot::new(x, found.mean) };
        let label = label(name);
        Some(Chart {
            name: file,
            title: format!("{label}, run by run"),
            says: format!(
                "Mean {}{}, from {} to {}.",
                signed(found.mean),
                ends(found, 1.0),
                signed(found.min),
                signed(found.max)
            ),
            x: Axis { from_zero: false, ..Axis::linear("run") },
            y: Axis::linear(label),
            series: vec![
                Series {
                    name: "mean over runs, 95 %".to_owned(),
                    shape: Shape::Line,
                    tone: 1,
                    dots: vec![mean(from), mean(to)],
                },
                Series { name: "run".to_owned(), shape: Shape::Marks, tone: 0, dots },
            ],
            rules: Vec::new(),
        })
    };
    DRAWN.into_iter().filter_map(chart).collect()
}

/// Between runs, against what each of them says of itself.
fn between(html: &mut Html, repeats: &Repeats) {
    let rows: Vec<Vec<Cell>> = ROWS
        .iter()
        .filter_map(|(name, label, _)| {
            let found = repeats.headlines.get(*name)?;
            let (sd, own, ratio) = (found.sd?, found.within_sd?, found.ratio?);
            let mut row = [(*label).to_owned(), cell(sd), cell(own), format!("{ratio:.2}")]
                .map(Cell::from)
                .to_vec();
            row.push(if found.differs {
                Cell { text: "differ".to_owned(), class: "doubt" }
            } else {
                Cell::from("alike")
            });
            Some(row)
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let head = ["", "SD between", "SD within", "ratio", "runs"];
    table(html, "How far runs lie apart, and how far their own intervals let them", &head, &rows);
    remark(
        html,
        "A ratio of about 1 is chance; where runs differ, one of them alone says too much.",
    );
}

fn each(html: &mut Html, repeats: &Repeats) {
    let rows: Vec<Vec<Cell>> = repeats
        .runs
        .iter()
        .map(|run| {
            let figure = |name: &str| run.figures.get(name).map_or("–".to_owned(), |v| cell(*v));
            let class = match run.verdict {
                Verdict::Valid => "",
                Verdict::Suspect => "doubt",
                Verdict::Void => "bad",
            };
            let cells = [
                format!("repeat-{}", run.number),
                run.seed.to_string(),
                format!("{:.1} s", run.window_s),
                count(run.ok),
                figure("requests_per_s"),
                figure("ttft_p50"),
                figure("ttft_p99"),
            ];
            let mut row = cells.map(Cell::from).to_vec();
            row.push(Cell { text: format!("{}{}", run.verdict.name(), state(run)), class });
            row
        })
        .collect();
    if !rows.is_empty() {
        let head = ["run", "seed", "window", "ok", "req/s", "TTFT p50", "TTFT p99", "verdict"];
        table(html, "Each has a page of its own in its folder; latencies in ms", &head, &rows);
    }
}
