//! Whether a run came to know what `--until` asked for.

use goodput_model::{Caveat, CaveatCode, EndedBy, Goal, Nanos, Plan, RequestRecord, Severity};

use crate::cuts::Cuts;
use crate::request::{Latencies, LatencyValue};
use crate::summary::{GoalSummary, RunFacts, RunState, UntilSummary};
use crate::watch::{LiveFigure, estimate_figure, to_live_figure};

/// Collects the values that the rule is about.
#[derive(Debug, Default)]
pub(crate) struct UntilTally {
    goals: Vec<Goal>,
    stream: bool,
    values: Vec<Vec<(Nanos, f64)>>,
}

impl UntilTally {
    pub(crate) fn new(plan: &Plan) -> Self {
        let goals = plan.measure.until.as_ref().map(|until| until.0.clone()).unwrap_or_default();
        let values = vec![Vec::new(); goals.len()];
        Self { goals, stream: plan.target.stream, values }
    }

    /// Takes a measured request.
    pub(crate) fn add(&mut self, record: &RequestRecord, cuts: &Cuts) {
        let latencies = Latencies::new(record, self.stream, cuts);
        for (goal, values) in self.goals.iter().zip(&mut self.values) {
            match latencies.get(goal.metric) {
                LatencyValue::Value(value) => values.push((record.scheduled, value)),
                LatencyValue::Beyond => values.push((record.scheduled, f64::INFINITY)),
                LatencyValue::FailedAfter(_) | LatencyValue::Nothing => {}
            }
        }
    }

    /// None if nothing was asked.
    pub(crate) fn finish(self, window_s: f64) -> Option<(UntilSummary, Vec<LiveFigure>)> {
        let figures = self.goals.iter().zip(self.values).map(|(goal, mut values)| {
            values.sort_by_key(|value| value.0);
            let values: Vec<f64> = values.into_iter().map(|value| value.1).collect();
            to_live_figure(*goal, estimate_figure(goal.figure, &values), window_s)
        });
        let figures: Vec<LiveFigure> = figures.collect();
        let goal = |figure: &LiveFigure| GoalSummary {
            rule: figure.goal.to_string(),
            value: figure.value,
            within: figure.within,
            asked: figure.goal.within,
            n: figure.n,
            n_eff: figure.n_eff,
            more_s: figure.left_s.filter(|_| !figure.is_enough()),
            met: figure.is_enough(),
        };
        let goals: Vec<GoalSummary> = figures.iter().map(goal).collect();
        let rule = goals.iter().map(|goal| goal.rule.as_str()).collect::<Vec<_>>().join(", ");
        let met = goals.iter().all(|goal| goal.met);
        let missed = figures.iter().any(LiveFigure::is_far);
        (!goals.is_empty()).then_some((UntilSummary { rule, met, missed, goals }, figures))
    }
}

/// What is known, and what was asked: for each figure that is not known well enough.
pub(crate) fn until_caveat(figures: &[LiveFigure], run: &RunFacts) -> Option<Caveat> {
    let short: Vec<String> =
        figures.iter().filter(|figure| !figure.is_enough()).map(shortfall_text).collect();
    if short.is_empty() || run.state == RunState::Unfinished {
        return None;
    }
    let short = short.join("; ");
    let is_missed = figures.iter().any(LiveFigure::is_far);
    let (severity, message, advice) = if run.ended_by == Some(EndedBy::Until) && !is_missed {
        let message = format!("with the requests that were still in flight at the stop: {short}");
        (Severity::Info, message, None)
    } else if run.state == RunState::Interrupted {
        (Severity::Info, format!("stopped before --until was reached: {short}"), None)
    } else {
        let advice = "a longer --duration, or a wider interval in --until";
        (Severity::Warn, format!("the run ended before --until was reached: {short}"), Some(advice))
    };
    let caveat = Caveat::new(CaveatCode::FewSamples, severity, message);
    Some(match advice {
        Some(advice) => caveat.advise(advice),
        None => caveat,
    })
}

fn shortfall_text(figure: &LiveFigure) -> String {
    let (title, asked) = (figure.goal.title(), figure.goal.percent());
    match (figure.within, figure.left_s) {
        _ if figure.is_queueing => format!(
            "{title} cannot be known from one run: requests wait for one another (neighbors are \
             alike), so its interval is too narrow"
        ),
        (Some(within), Some(left)) if within > figure.goal.within => format!(
            "{title} is known to ±{:.1} %, not ±{asked} %; needs {} more",
            within * 100.0,
            rough_duration(left)
        ),
        (Some(_), _) => format!("{title} rests on {} requests, too few for it", figure.n),
        _ if figure.n == 0 => format!("{title} has no value"),
        _ if figure.value.is_none() => format!("{title} lies beyond the time limit"),
        _ => format!(
            "{title} has no interval: {} requests are worth {:.0} independent ones",
            figure.n,
            figure.n_eff.floor()
        ),
    }
}

/// A length of time as one says it: `about 40 s`, `about 4 min`.
pub fn rough_duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("about {:.0} s", s.max(1.0)),
        s if s < 5400.0 => format!("about {:.0} min", s / 60.0),
        s if s < 86_400.0 * 3.0 => format!("about {:.0} h", s / 3600.0),
        _ => "days".to_owned(),
    }
}
