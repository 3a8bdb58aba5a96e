use goodput_campaign::sweep::{Bounded, GoodputState, KeptLoad, KeptSupport, StatedFigure};
use goodput_document::Detail;

use super::super::tests::summary as swept;
use crate::{sweep_markdown, sweep_text};

fn load(term: Option<&str>, support: KeptSupport, level: Option<f64>) -> KeptLoad {
    KeptLoad {
        term: term.map(str::to_owned),
        support,
        level,
        rps: level,
        runs: 1,
        requests: 1200,
        value: term.map(|_| Bounded { value: 431.0, low: Some(400.0), high: Some(470.0) }),
        attainment: Some(Bounded { value: 0.995, low: None, high: None }),
        output_tps: Some(3200.0),
        missed: Some(40.0),
        kept_above: None,
    }
}

fn figure(metric: &str, unit: &str, value: f64) -> StatedFigure {
    StatedFigure {
        metric: metric.to_owned(),
        value: Some(Bounded { value, low: None, high: None }),
        unit: unit.to_owned(),
        condition: "open loop, 20 req/s, chat, 1200 requests".to_owned(),
    }
}

/// The same sweep, judged by an SLO that was given afterwards.
fn judged() -> goodput_campaign::sweep::SweepSummary {
    let mut summary = swept();
    summary.plan.search = false;
    summary.measured_with = Some("p99 ttft < 500ms".to_owned());
    let goodput = summary.goodput.as_mut().unwrap();
    goodput.state = GoodputState::Measured;
    goodput.slo = "p99 ttft < 450ms, p99 itl < 50ms".to_owned();
    (goodput.confirmed, goodput.confirmed_rps) = (None, None);
    (goodput.measured, goodput.measured_rps) = (Some(20.0), Some(20.0));
    (goodput.rejected, goodput.runs, goodput.crossing) = (Some(40.0), 1, None);
    summary.kept_loads = vec![
        load(None, KeptSupport::Measured, Some(20.0)),
        load(Some("p99 ttft < 450ms"), KeptSupport::Confirmed, Some(35.0)),
        load(Some("p99 itl < 50ms"), KeptSupport::Missed, None),
    ];
    summary.figures = vec![
        figure("TTFT p99", "ms", 180.0),
        figure("goodput", "tok/s", 3200.0),
        figure("goodput per GPU", "tok/s", 400.0),
    ];
    summary
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn an_answer_as_measured_says_so() {
    let page = lines(&sweep_text(&judged(), Detail::Full));
    let has = |line: &str| assert!(page.iter().any(|l| l == line), "{line}: {page:#?}");
    let whole = page.join(" ");
    assert!(whole.contains("Goodput 20.0 req/s as measured (not confirmed by independent runs; 40.0 over the limit) with p99 ttft < 450ms"), "{whole}");
    assert!(whole.contains("Each term 35.0 req/s for p99 ttft < 450ms; none for p99 itl < 50ms"));
    assert!(
        whole.contains(
            "In tokens 3,200 output tok/s (400.0 per GPU) at p99 ttft < 450ms, p99 itl < 50ms"
        ),
        "{whole}"
    );
    assert!(whole.contains(
        "by an SLO given afterwards, from 10 saved points; measured with p99 ttft < 500ms"
    ));
    has("20.0 40.0 as measured, 1 run 99.5 % good all together");
    has("35.0 40.0 confirmed, 1 run 431.0 p99 ttft < 450ms");
    has("– 40.0 no load keeps it 431.0 p99 itl < 50ms");
    has("TTFT p99 180.0 ms open loop, 20 req/s, chat, 1200");
    assert!(page.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_tables_stand_in_markdown_too() {
    let page = sweep_markdown(&judged());
    assert!(page.starts_with("## Sweep: goodput as measured, not confirmed"), "{page}");
    for row in [
        "| highest | missed at | support | there | SLO term |",
        "| 35.0 | 40.0 | confirmed, 1 run | 431.0 | p99 ttft &lt; 450ms |",
        "| TTFT p99 | 180.0 ms | open loop, 20 req/s, chat, 1200 requests |",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
    // A void result has no good news.
    let mut void = judged();
    void.verdict = goodput_model::Verdict::Void;
    assert!(!sweep_text(&void, Detail::Full).contains("In tokens"));
}
