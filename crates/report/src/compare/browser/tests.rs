//! The page has everything in its order, with the numbers of the text page, and nothing from outside
//! is markup.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod fixtures;

use goodput_campaign::compare::{Comparison, Finding};
use goodput_model::Verdict;

use super::*;
use crate::compare::tests::fixtures::{hostile, refused, saved, search, three, two};
use crate::compare::words::FigureWords;
use crate::compare::{answer as answers, tables};
use crate::compare_html;
use crate::compare_text;
use fixtures::{BLOCKS, folders, full, gated};

fn page(comparison: &Comparison) -> String {
    compare_html(comparison)
}

#[test]
fn sections_stand_in_their_order() {
    let page = page(&gated());
    let ids = ["answer", "caveats", "compared", "gates", "differences", "forest", "blocks"];
    let ids = ids.into_iter().chain(["axes", "noise", "requests", "differs", "runs", "time"]);
    let places: Vec<usize> =
        ids.chain(["repeat"]).map(|id| page.find(&format!(" id=\"{id}\"")).expect(id)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Two sides have no ranking, and the navigation names none.
    assert!(!page.contains("#ranking"));
    let full = compare_html(&full());
    assert!(full.contains("href=\"#ranking\"") && full.contains("<h2>Ranking</h2>"));
    assert!(full.contains("<h1>Comparison: worse</h1>"));
    assert!(full.len() < 1_500_000, "{}", full.len());
}

/// Only what was tested stands out: E2E is described, and no side is named for it.
#[test]
fn what_is_described_does_not_stand_out() {
    let page = page(&two());
    let row = |title: &str| {
        let axes = page.split(" id=\"axes\"").nth(1).unwrap();
        let row = axes.split("<tr").find(|row| row.contains(title)).unwrap();
        (row.contains("\"best\""), row.contains("higher in these runs"))
    };
    assert_eq!(row("p50 TPOT"), (true, false));
    assert_eq!(row("p50 E2E"), (false, true));
}

/// What a row says is what the text page says of its figure.
#[test]
fn the_forest_has_a_row_for_each_tested_figure() {
    let full = full();
    let tested: Vec<&Finding> = full.findings.iter().filter(|one| one.is_tested).collect();
    // Eight figures of two candidates at two levels.
    assert_eq!(tested.len(), 32);
    let forest = forest::forest_plot(&full);
    let svg = forest.inline_svg();
    assert_eq!(svg.matches("class=\"row\"").count(), 32);
    assert_eq!(svg.matches("class=\"interval").count(), 32);
    assert_eq!(svg.matches("class=\"margin\"").count(), 32);
    let says = svg.split("<desc id=\"forest-d\">").nth(1).unwrap().split("</desc>").next().unwrap();
    for one in &tested {
        let known = FigureWords::new(&one.metric);
        let row =
            format!("{} {}, margin", known.name_in_sentence(), known.change_with_interval(one));
        assert!(says.contains(&row), "{row} is not in {says}");
    }
    // A round case, by hand.
    let svg = forest::forest_plot(&two()).inline_svg();
    let row = "p50 TPOT +5.1 % (+3.9 % to +6.2 %), margin 3 %, WORSE";
    assert_eq!(svg.matches(row).count(), 2, "{svg}");
    assert!(
        svg.contains("<text class=\"word worse\" x=\"732\" y=\"128.5\">✗ WORSE</text>"),
        "{svg}"
    );
    assert!(svg.contains("= equivalent") && svg.contains("p99 TTFT +0.5 % (-1.5 % to +2.5 %)"));
}

#[test]
fn places_are_in_proportion() {
    use goodput_document::svg::forest::{Forest, ForestGroup, ForestMark, ForestRow};
    let row = |change: f64, ends| ForestRow {
        name: "x".to_owned(),
        change: Some(change),
        ends: Some(ends),
        margin: (-2.0, 2.0),
        text: String::new(),
        mark: ForestMark::Better,
        word: String::new(),
        says: String::new(),
    };
    let forest = |rows: Vec<ForestRow>| Forest {
        name: "forest",
        title: String::new(),
        groups: vec![ForestGroup { title: String::new(), rows }],
    };
    let places = |svg: &str, class: &str, attribute: &str| -> Vec<f64> {
        let before = format!("class=\"{class}\" {attribute}=\"");
        let parts = svg.split(&before).skip(1);
        parts.map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
    };
    // From -10 to +10 with a twentyfifth of room at each end: 0 is in the middle.
    let svg = forest(vec![row(0.0, (-10.0, 10.0)), row(5.0, (4.0, 6.0))]).inline_svg();
    assert_eq!(places(&svg, "zero", "x1"), [345.0]);
    // 310 wide over 21.6: 5 lies 71.8 to the right.
    assert_eq!(places(&svg, "point better", "cx"), [345.0, 416.8]);
    assert_eq!(places(&svg, "margin", "x"), [316.3, 316.3]);
    // One that is far longer than the others is cut, and has an arrow.
    let long = vec![row(1.0, (0.0, 2.0)), row(1.0, (0.0, 2.0)), row(1.0, (0.0, 900.0))];
    let svg = forest(long).inline_svg();
    let ends: Vec<&str> = svg.split("class=\"interval better\" d=\"").skip(1).collect();
    assert!(!ends[0].split('"').next().unwrap().contains('l'), "{}", ends[0]);
    assert!(ends[2].split('"').next().unwrap().contains("l6.0 5l-6.0 5"), "{}", ends[2]);
    // What is not a number is not drawn.
    let svg = forest(vec![row(f64::NAN, (f64::NEG_INFINITY, f64::NAN))]).inline_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn blocks_are_drawn_in_pairs() {
    let gated = gated();
    let charts = blocks::figure_charts(&gated);
    // Three figures at two levels, each with its sides and its changes.
    assert_eq!(charts.len(), 6);
    let all: Vec<&Chart> = charts.iter().flat_map(|one| &one.charts).collect();
    assert_eq!(all.len(), 12);
    let (sides, changes) = (all[0], all[1]);
    assert_eq!(sides.series.len(), 2);
    assert!(sides.series.iter().all(|series| series.dots.len() == BLOCKS as usize));
    // The mean of the logarithms of the blocks is the change that is tested.
    let dots = &changes.series[1].dots;
    let mean = dots.iter().map(|dot| (1.0 + dot.y / 100.0).ln()).sum::<f64>() / dots.len() as f64;
    let tested = gated.findings.iter().find(|one| one.metric == "ttft_p99" && one.level == 0);
    assert!((mean.exp_m1() - tested.unwrap().change).abs() < 1e-9);
    assert_eq!(changes.series[0].dots[0].y, tested.unwrap().change * 100.0);
    // A void run has no pair.
    let mut void = gated.clone();
    void.runs[0].verdict = Verdict::Void;
    assert_eq!(blocks::figure_charts(&void)[0].charts[1].series[1].dots.len(), BLOCKS as usize - 1);
    // Every chart is a file, and the forest is the first; no two have one name.
    let pictures = compare_charts(&gated);
    assert_eq!((pictures.len(), pictures[0].name.as_str()), (13, "forest"));
    let names: std::collections::BTreeSet<&str> =
        pictures.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(names.len(), 13);
    assert!(pictures.iter().all(|picture| picture.svg.contains("<style>")));
}

/// A cell of the text page, wherever it stands there, stands in the page.
#[test]
fn numbers_are_those_of_the_text_page() {
    for comparison in [two(), three(), gated(), refused(), saved(), search()] {
        let page = page(&comparison);
        let tables = tables::axes_tables(&comparison, None);
        let gates = tables::gates_table(&comparison);
        let pairs = tables::candidates_by_level(&comparison);
        let figures = pairs.into_iter().flat_map(|pair| {
            [true, false].map(|tested| tables::figures_table(&comparison, pair, tested))
        });
        let text = compare_text(&comparison, crate::Detail::Full);
        for table in tables.into_iter().chain(gates).chain(figures.flatten()) {
            for cell in
                table.rows.iter().flatten().map(|cell| &cell.text).filter(|cell| !cell.is_empty())
            {
                let mut escaped = String::new();
                goodput_document::markup::push_escaped(&mut escaped, cell);
                assert!(page.contains(&format!(">{escaped}<")), "{cell}");
            }
        }
        for sentence in answers::answer_sentences(&comparison) {
            let words = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(&words), "{words}");
            let mut escaped = String::new();
            goodput_document::markup::push_escaped(&mut escaped, &sentence);
            assert!(page.contains(&escaped), "{sentence}");
        }
    }
}

#[test]
fn runs_lead_to_their_own_pages() {
    let full = full();
    let folders = folders(&full);
    let view = CompareView { comparison: &full, folders: &folders, circumstances: None };
    let page = compare_html(view);
    assert_eq!(page.matches("/report.html\"").count(), 48);
    assert!(page.contains("href=\"./points/001-b01-vllm/report.html\""), "{page}");
    let evil = [(1, "javascript:alert(1)//\"><b>?#%".to_owned()), (2, "//evil/x".to_owned())];
    let page = compare_html(CompareView { comparison: &full, folders: &evil, circumstances: None });
    assert!(
        page.contains("href=\"./javascript%3Aalert%281%29//%22%3E%3Cb%3E%3F%23%25/report.html\"")
    );
    assert!(page.contains("href=\"./evil/x/report.html\""));
    assert_eq!(compare_html(&full).matches("/report.html").count(), 0);
}

#[test]
fn hostile_names_are_text() {
    let mut evil = full();
    let text = "</script><img src=x onerror=alert(1)>\"'&\u{202e}<b>".to_owned();
    for run in &mut evil.runs {
        run.facts.model.clone_from(&text);
        run.facts.host.clone_from(&text);
    }
    evil.sides[1].name.clone_from(&text);
    evil.design.sides[1].clone_from(&text);
    let circumstances = Circumstances {
        facts: vec![(text.clone(), text.clone())],
        plan: format!("a = 1\n{text}"),
        command: text.clone(),
    };
    let whole =
        CompareView { comparison: &evil, folders: &[], circumstances: Some(&circumstances) };
    for page in [compare_html(whole), page(&hostile())] {
        for raw in ["<img", "<b>", "<script> ", "<!-- ", "\u{202e}", "\x1b", "onerror=alert(1)>"] {
            assert!(!page.contains(raw), "{raw:?}");
        }
        assert_eq!(page.matches("</script>").count(), 1);
        for picture in compare_charts(&evil) {
            assert!(!picture.svg.contains("<img") && !picture.svg.contains("<b>"));
        }
    }
}

#[test]
fn odd_comparisons_have_pages() {
    let empty = page(&Comparison::default());
    assert!(empty.contains("nothing was compared"));
    assert!(compare_charts(&Comparison::default()).is_empty());
    let mut void = two();
    void.verdict = Verdict::Void;
    let void = page(&void);
    assert!(void.contains("NOT SHOWN") && !void.contains("✗ WORSE"), "{void}");
    for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        let mut comparison = gated();
        for one in &mut comparison.findings {
            (one.change, one.low, one.high, one.margin) = (odd, Some(odd), Some(odd), odd);
        }
        for figure in comparison.runs.iter_mut().flat_map(|run| run.figures.values_mut()) {
            (figure.value, figure.low, figure.high) = (odd, Some(odd), Some(odd));
        }
        let page = page(&comparison);
        // The script has words of its own.
        let drawn = page.split("<script>").next().unwrap().replace("class=\"info\"", "");
        assert!(!drawn.contains("NaN") && !drawn.contains("\"inf"), "{odd}");
    }
}
