//! Several runs of one plan as JUnit XML: a case for each run.

use goodput_model::Verdict;
use goodput_stats::{OneRun, Repeats};

use super::{Case, Fault, Suite, file};
use crate::number::count;
use crate::repeats::state;

/// A test case for each run: one that the figures do not rest on, or that is void, is an error.
pub fn repeats_junit(repeats: &Repeats) -> String {
    let run = repeats.run.as_ref();
    let text =
        |of: fn(&goodput_stats::RunFacts) -> &String| run.map(of).cloned().unwrap_or_default();
    let mut cases: Vec<Case> = repeats.runs.iter().map(case).collect();
    if cases.is_empty() {
        cases.push(Case::new("runs", "there is no run", Some(Fault::Error("no_verdict"))));
    }
    let mut suite = Suite {
        name: format!("{} on {}", text(|run| &run.workload), text(|run| &run.target)),
        class: vec!["repeats".to_owned()],
        seconds: repeats.runs.iter().map(|run| run.window_s).sum(),
        started: text(|run| &run.started),
        properties: vec![
            ("goodput", text(|run| &run.version)),
            ("verdict", repeats.verdict.name().to_owned()),
            ("model", text(|run| &run.model)),
        ],
        cases,
        said: format!("{} of {} asked for are in these figures", repeats.used, repeats.asked),
    };
    if repeats.verdict == Verdict::Void {
        suite.void(&repeats.caveats);
    }
    file("goodput repeats", &[suite])
}

fn case(run: &OneRun) -> Case {
    let why = state(run);
    let text = format!(
        "{}{why}; seed {}, {} of {} requests ok",
        run.verdict.name(),
        run.seed,
        count(run.ok),
        count(run.scheduled)
    );
    let fault = match run.verdict {
        Verdict::Void => Some(Fault::Error("void")),
        _ if !run.is_used => Some(Fault::Error("not_used")),
        _ => None,
    };
    Case::new(format!("repeat-{}", run.number), text, fault)
}
