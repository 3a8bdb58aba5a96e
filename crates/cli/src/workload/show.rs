//! A look at a workload: what it holds, and its first requests.

use std::collections::BTreeMap;

use goodput_model::{Nanos, Session, WorkloadPlan};
use goodput_report::{Histogram, Preview, ServedView, WorkloadView, workload_text};
use goodput_wire::Dialect;
use goodput_workload::Workload;

use crate::error::Failed;
use crate::output;

/// Requests whose bodies are shown, and characters of each end of a long one.
const PREVIEWS: usize = 3;
const SHOWN: usize = 300;

/// Prints the first requests of a workload, as a page or as JSON.
pub(super) fn print(
    plan: &WorkloadPlan,
    workload: &Workload,
    dialect: &Dialect,
    served: Option<ServedView>,
    (requests, json): (u64, bool),
) -> Result<(), Failed> {
    let view = WorkloadView { served, ..view(plan, workload, dialect, requests) };
    if json {
        let page = serde_json::to_string_pretty(&view)
            .map_err(|error| Failed::internal(error.to_string()))?;
        return output::data((page + "\n").as_bytes());
    }
    output::page(&workload_text(&view))
}

fn view(
    plan: &WorkloadPlan,
    workload: &Workload,
    dialect: &Dialect,
    requests: u64,
) -> WorkloadView {
    let mut seen = Seen::default();
    for number in 0.. {
        if seen.requests >= requests {
            break;
        }
        let Some(session) = workload.session(number) else { break };
        seen.arrivals.extend(workload.arrival(number).map(Nanos::as_secs));
        seen.add(&session, dialect);
    }
    let source = plan.calibration.as_ref().map(|found| found.source.name());
    let gaps: Vec<f64> = seen.arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let has_sessions = seen.sessions < seen.requests;
    WorkloadView {
        name: plan.name.clone(),
        description: goodput_workload::describe(plan),
        hash: workload.hash(),
        counted_by: source.unwrap_or("the file").to_owned(),
        notes: [workload.notes(), &workload.repeats(seen.sessions)].concat(),
        sessions: seen.sessions,
        requests: seen.requests,
        all_sessions: workload.sessions(),
        classes: seen.classes.into_iter().collect(),
        constraints: seen.constraints.into_iter().collect(),
        images: seen.images,
        input_tokens: Histogram::from_values(seen.input),
        output_tokens: Histogram::from_values(seen.output),
        turns: Histogram::from_values(seen.turns).filter(|_| has_sessions),
        pauses_s: Histogram::from_values(seen.pauses),
        span_s: seen.arrivals.last().copied().filter(|_| !gaps.is_empty()),
        gaps_s: Histogram::from_values(gaps),
        arrivals_s: Histogram::from_values(seen.arrivals).filter(|arrivals| arrivals.n > 1),
        served: None,
        expected_hit_rate: workload.cache_estimate(seen.sessions),
        previews: seen.previews,
    }
}

/// What has been seen so far.
#[derive(Default)]
struct Seen {
    sessions: u64,
    requests: u64,
    images: u64,
    classes: BTreeMap<String, u64>,
    constraints: BTreeMap<String, u64>,
    input: Vec<f64>,
    output: Vec<f64>,
    turns: Vec<f64>,
    pauses: Vec<f64>,
    arrivals: Vec<f64>,
    previews: Vec<Preview>,
}

impl Seen {
    fn add(&mut self, session: &Session, dialect: &Dialect) {
        self.sessions += 1;
        self.turns.push(session.requests() as f64);
        for (place, step) in session.steps.iter().enumerate() {
            if place > 0 {
                self.pauses.push(step.after.as_secs());
            }
            for request in &step.requests {
                let planned = &request.planned;
                self.requests += 1;
                self.images += u64::from(planned.images);
                *self.classes.entry(planned.class.to_string()).or_default() += 1;
                let constraint = planned.constraint.map_or("none", |kind| kind.name());
                *self.constraints.entry(constraint.to_owned()).or_default() += 1;
                self.input.push(f64::from(planned.input_tokens));
                self.output.extend(planned.output_tokens.map(f64::from));
                if place == 0 && self.previews.len() < PREVIEWS {
                    let body = dialect.encode(&[], request);
                    self.previews.push(Preview {
                        class: planned.class.to_string(),
                        input_tokens: planned.input_tokens,
                        output_tokens: planned.output_tokens,
                        body: cut(&String::from_utf8_lossy(&body)),
                    });
                }
            }
        }
    }
}

/// A text with its middle left out, where it is long.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= 2 * SHOWN + 20 {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN).collect();
    let tail: String = text.chars().skip(length - SHOWN).collect();
    format!("{head} … {} characters … {tail}", length - 2 * SHOWN)
}
