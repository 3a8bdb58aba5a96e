//! A sweep as test cases: one for its answer, for its long run, and for each point.

use goodput_campaign::sweep::{Goodput, GoodputState, PointStanding, PointSummary, SweepSummary};
use goodput_model::Verdict;

use super::{
    answer_text, axis_unit, level_text, point_standing_text, purpose_text, sustained_text,
};
use goodput_document::{Fault, Suite, TestCase};

/// The cases of a sweep, or of one among several configurations.
pub(crate) fn sweep_suite(summary: &SweepSummary, configuration: Option<&str>) -> Suite {
    let facts = &summary.sweep;
    let mut cases = vec![answer_case(summary)];
    cases.extend(summary.sustained.as_ref().map(|run| {
        let text = sustained_text(run, summary.plan.axis);
        TestCase::new("sustained", text, standing_fault(&run.standing))
    }));
    cases.extend(summary.points.iter().map(|point| point_case(summary, point)));
    let class = std::iter::once("sweep".to_owned()).chain(configuration.map(str::to_owned));
    let mut suite = Suite {
        name: configuration
            .map_or_else(|| format!("{} on {}", facts.workload, facts.target), str::to_owned),
        class: class.collect(),
        seconds: facts.took_s,
        started: facts.started.clone(),
        properties: vec![
            ("goodput", facts.version.clone()),
            ("verdict", summary.verdict.name().to_owned()),
            ("model", facts.model.clone()),
        ],
        cases,
        said: answer_text(summary),
    };
    if summary.verdict == Verdict::Void {
        suite.mark_void("verdict", &summary.caveats);
    }
    suite
}

fn answer_case(summary: &SweepSummary) -> TestCase {
    let fault = match summary.goodput.as_ref().map(|goodput| goodput.state) {
        // No SLO was given.
        None | Some(GoodputState::Found | GoodputState::AtLeast | GoodputState::Measured) => None,
        Some(GoodputState::Unreachable) => Some(Fault::Failure("unreachable")),
        Some(GoodputState::Unclear) => Some(Fault::Error("unclear")),
    };
    TestCase::new("goodput", answer_text(summary), fault)
}

fn standing_fault(standing: &PointStanding) -> Option<Fault> {
    match standing {
        PointStanding::Met => None,
        PointStanding::Missed(_) => Some(Fault::Failure("missed")),
        PointStanding::Unclear(_) => Some(Fault::Error("unclear")),
    }
}

fn point_case(summary: &SweepSummary, point: &PointSummary) -> TestCase {
    let ask = &point.point.ask;
    let name = format!(
        "point {} · {} {} · {}",
        ask.number,
        level_text(ask.level),
        axis_unit(ask.level.axis()),
        purpose_text(ask.purpose)
    );
    let goodput = summary.goodput.as_ref();
    let confirmed = goodput.and_then(Goodput::level);
    let is_above = ask.level.axis() == summary.plan.axis
        && confirmed.is_some_and(|confirmed| ask.level.value() > confirmed * (1.0 + 1e-9));
    let said = point_standing_text(point);
    match &point.standing {
        // Nothing was promised.
        PointStanding::Unclear(_) if summary.plan.slo.is_none() && point.point.figures.ok > 0 => {
            TestCase::new(name, said, None)
        }
        PointStanding::Missed(_) if is_above => {
            let is_confirmed = goodput.is_some_and(|goodput| goodput.confirmed.is_some());
            let how = if is_confirmed { "confirmed" } else { "measured" };
            TestCase::new(name, format!("{said}; above the {how} load, as expected"), None)
        }
        other => TestCase::new(name, said, standing_fault(other)),
    }
}
