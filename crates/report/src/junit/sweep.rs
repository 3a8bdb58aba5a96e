//! A sweep as JUnit XML: a case for its answer, for its long run, and for each point.

use goodput_campaign::sweep::{
    Configuration, GoodputState, PointSummary, Standing, SweepSummary, Sweeps,
};
use goodput_model::Verdict;

use super::{Case, Fault, Suite, file};
use crate::sweep::{answer, level, long_run, purpose, stands, unit};
use crate::sweeps;

/// A test case for the answer, for the long run at it, and for each point. A sweep goes on until a
/// load is too much: a point above the confirmed load that misses the SLO is what it looked for, and
/// no failure.
pub fn sweep_junit(summary: &SweepSummary) -> String {
    file("goodput sweep", &[suite(summary, None)])
}

/// The same of each configuration; one that could not be measured is an error.
pub fn sweeps_junit(all: &Sweeps) -> String {
    let one = |one: &Configuration| {
        let name = sweeps::name(one);
        one.sweep.as_ref().map_or_else(
            || {
                let why = one.failed.as_deref().unwrap_or("no reason is known");
                let fault = Some(Fault::Error("failed"));
                Suite {
                    name: name.clone(),
                    class: vec!["sweep".to_owned(), name.clone()],
                    cases: vec![Case::new("configuration", why, fault)],
                    ..Suite::default()
                }
            },
            |sweep| suite(sweep, Some(&name)),
        )
    };
    let mut suites: Vec<Suite> = all.configurations.iter().map(one).collect();
    if suites.is_empty() {
        let fault = Some(Fault::Error("no_verdict"));
        let cases = vec![Case::new("configurations", "there is none", fault)];
        suites.push(Suite { name: "sweeps".to_owned(), cases, ..Suite::default() });
    }
    file("goodput sweep", &suites)
}

fn suite(summary: &SweepSummary, configuration: Option<&str>) -> Suite {
    let facts = &summary.sweep;
    let mut cases = vec![of_answer(summary)];
    cases.extend(summary.sustained.as_ref().map(|run| {
        let text = long_run(run, summary.plan.axis);
        Case::new("sustained", text, fault(&run.standing))
    }));
    cases.extend(summary.points.iter().map(|point| of_point(summary, point)));
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
        said: answer(summary),
    };
    if summary.verdict == Verdict::Void {
        suite.void(&summary.caveats);
    }
    suite
}

fn of_answer(summary: &SweepSummary) -> Case {
    let fault = match summary.goodput.as_ref().map(|goodput| goodput.state) {
        // Nobody asked.
        None | Some(GoodputState::Found | GoodputState::AtLeast) => None,
        Some(GoodputState::Unreachable) => Some(Fault::Failure("unreachable")),
        Some(GoodputState::Unclear) => Some(Fault::Error("unclear")),
    };
    Case::new("goodput", answer(summary), fault)
}

fn fault(standing: &Standing) -> Option<Fault> {
    match standing {
        Standing::Met => None,
        Standing::Missed(_) => Some(Fault::Failure("missed")),
        Standing::Unclear(_) => Some(Fault::Error("unclear")),
    }
}

fn of_point(summary: &SweepSummary, point: &PointSummary) -> Case {
    let ask = &point.point.ask;
    let name = format!(
        "point {} · {} {} · {}",
        ask.number,
        level(ask.level),
        unit(ask.level.axis()),
        purpose(ask.purpose)
    );
    let confirmed = summary.goodput.as_ref().and_then(|goodput| goodput.confirmed);
    let is_above = ask.level.axis() == summary.plan.axis
        && confirmed.is_some_and(|confirmed| ask.level.value() > confirmed * (1.0 + 1e-9));
    let said = stands(point);
    match &point.standing {
        // Nothing was promised.
        Standing::Unclear(_) if summary.plan.slo.is_none() && point.point.figures.ok > 0 => {
            Case::new(name, said, None)
        }
        Standing::Missed(_) if is_above => {
            Case::new(name, format!("{said}; above the confirmed load, as it should be"), None)
        }
        other => Case::new(name, said, fault(other)),
    }
}
