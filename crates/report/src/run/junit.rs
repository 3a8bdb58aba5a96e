//! A run as JUnit XML: a case for each term of its SLO.

use goodput_model::Verdict;
use goodput_stats::{SloState, SloSummary, Summary};

use super::slo;
use crate::document::{Case, Fault, Suite};
use crate::render::junit::file;

/// A test case for each term of the SLO and for the share of good requests that was asked for; without
/// an SLO one for the verdict.
pub fn run_junit(summary: &Summary) -> String {
    let run = &summary.run;
    let mut suite = Suite {
        name: format!("{} on {}", run.workload, run.target),
        class: vec!["run".to_owned()],
        seconds: summary.window.end_s - summary.window.start_s,
        started: run.started.clone(),
        properties: vec![
            ("goodput", run.version.clone()),
            ("verdict", summary.verdict.name().to_owned()),
            ("model", run.model.clone()),
            ("seed", run.seed.to_string()),
        ],
        cases: summary.slo.as_ref().map(cases).unwrap_or_default(),
        said: match &summary.slo {
            Some(promise) => {
                format!("{}; goodput {}", slo::state(summary, promise), slo::goodput(promise))
            }
            None => crate::run::facts::throughput(summary),
        },
    };
    if summary.verdict == Verdict::Void {
        suite.void(&summary.caveats);
    } else if suite.cases.is_empty() {
        // A file without a case would say nothing.
        let text = format!("{}; no SLO was asked for", summary.verdict.name());
        suite.cases.push(Case::new("verdict", text, None));
    }
    file("goodput run", &[suite])
}

fn cases(promise: &SloSummary) -> Vec<Case> {
    let one = |(place, term): (usize, &goodput_stats::SloTermSummary)| {
        // Cases of one name are one case to a CI.
        let twin = promise.terms.iter().take(place).any(|other| other.term == term.term);
        let name = if twin { format!("{} ({})", term.term, place + 1) } else { term.term.clone() };
        Case::new(name, format!("{}: {}", term.term, slo::figure(term)), fault(term.state))
    };
    let mut all: Vec<Case> = promise.terms.iter().enumerate().map(one).collect();
    if promise.target.is_some() {
        all.push(Case::new("attainment", slo::goodput(promise), fault(promise.attainment_state)));
    }
    all
}

fn fault(state: SloState) -> Option<Fault> {
    match state {
        // What was only asked to be reported cannot fail.
        SloState::Met | SloState::Reported => None,
        SloState::Missed => Some(Fault::Failure("missed")),
        SloState::Undecided => Some(Fault::Error("undecided")),
    }
}
