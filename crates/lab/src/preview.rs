//! A workload that is not sent: what it holds, its first requests, and a file of them.

use std::collections::BTreeMap;
use std::path::Path;

use goodput_dataset::frozen::{FrozenHeader, FrozenWriter};
use goodput_model::{Api, Nanos, OutputLength, Plan, Session, WorkloadPlan};
use goodput_stats::{Histogram, Preview, ServedView, WorkloadView};
use goodput_wire::RequestFormat;
use goodput_workload::{Setting, Workload};

use crate::convert::exists_error;
use crate::error::{Failed, dataset_failed};
use crate::hub::Hub;
use crate::inputs::{self, WorkloadInputs};
use crate::{checks, readiness, run, served, token_calibration};

/// Requests whose bodies are shown, and characters of each end of a long one.
const PREVIEWS: usize = 3;
const SHOWN: usize = 300;

/// Requests of a dry run that are looked at.
const LOOKED_AT: u64 = 1_000;

/// What a run of this plan would send.
pub fn preview_run(mut plan: Plan, hub: &Hub) -> Result<WorkloadView, Failed> {
    let inputs = run::gather_inputs(&mut plan, hub)?;
    token_calibration::calibrate_by_tokenizer(&mut plan.workload, inputs.tokenizer.as_ref())?;
    let served = served::recorded_service(&inputs);
    let workload = inputs.build_workload(&plan.workload)?;
    checks::check_workload(&plan, &workload)?;
    let model = plan.target.model.as_deref().unwrap_or("MODEL");
    let dialect = readiness::request_format(&plan, model)?;
    let requests = inputs::load_setting(&plan.load).requests.min(LOOKED_AT);
    let built = BuiltWorkload { plan: plan.workload, workload, served };
    Ok(built.preview_as(&dialect, requests))
}

/// A workload that no run has asked for, to be looked at or frozen.
pub struct BuiltWorkload {
    /// With everything settled that can be without a server.
    pub plan: WorkloadPlan,
    /// Its sessions.
    pub workload: Workload,
    /// How it was served, where it was recorded.
    served: Option<ServedView>,
}

impl BuiltWorkload {
    /// Reads what the plan names, and counts by its tokenizer.
    pub fn new(mut plan: WorkloadPlan, setting: Setting, hub: &Hub) -> Result<Self, Failed> {
        let inputs = WorkloadInputs::gather(&mut plan, setting, hub)?;
        token_calibration::calibrate_by_tokenizer(&mut plan, inputs.tokenizer.as_ref())?;
        let served = served::recorded_service(&inputs);
        let workload = inputs.build_workload(&plan)?;
        Ok(Self { plan, workload, served })
    }

    /// Its first requests, as a chat server would get them.
    pub fn preview(self, requests: u64) -> WorkloadView {
        let mut dialect =
            RequestFormat::new(Api::Chat, "MODEL", true).with_constraints(self.plan.constraints);
        if self.plan.output == OutputLength::Exact {
            dialect = dialect.with_exact_output();
        }
        self.preview_as(&dialect, requests)
    }

    fn preview_as(self, dialect: &RequestFormat, requests: u64) -> WorkloadView {
        let view = preview_requests(&self.plan, &self.workload, dialect, requests);
        WorkloadView { served: self.served, ..view }
    }

    /// Writes this number of requests to a new file. The header says what they are.
    pub fn freeze(&self, file: &Path, seed: u64, requests: u64) -> Result<FrozenHeader, Failed> {
        if file.exists() {
            return Err(exists_error(file));
        }
        let Self { plan, workload, .. } = self;
        let mut header = FrozenHeader::new(&plan.name, seed);
        let output = if plan.output == OutputLength::Exact { "exact" } else { "limit" };
        let facts = [
            ("description", goodput_workload::describe_workload(plan)),
            ("workload", workload.hash()),
            ("output", output.to_owned()),
            ("constraints", plan.constraints.name().to_owned()),
        ];
        header.facts.extend(facts.map(|(name, fact)| (name.to_owned(), fact)));
        let mut writer =
            FrozenWriter::create(file, header).map_err(|error| dataset_failed(&error))?;
        let mut left = requests;
        for number in 0.. {
            let Some(session) = workload.session(number).filter(|_| left > 0) else { break };
            left = left.saturating_sub(session.request_count());
            let arrival = workload.arrival(number);
            writer.write(arrival, &session).map_err(|error| dataset_failed(&error))?;
        }
        writer.finish().map_err(|error| dataset_failed(&error))
    }
}

fn preview_requests(
    plan: &WorkloadPlan,
    workload: &Workload,
    dialect: &RequestFormat,
    requests: u64,
) -> WorkloadView {
    let mut seen = Contents::default();
    for number in 0.. {
        if seen.requests >= requests {
            break;
        }
        let Some(session) = workload.session(number) else { break };
        seen.arrivals.extend(workload.arrival(number).map(Nanos::as_secs));
        seen.add_session(&session, dialect);
    }
    let source = plan.calibration.as_ref().map(|found| found.source.name());
    let gaps: Vec<f64> = seen.arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let has_sessions = seen.sessions < seen.requests;
    WorkloadView {
        name: plan.name.clone(),
        description: goodput_workload::describe_workload(plan),
        hash: workload.hash(),
        counted_by: source.unwrap_or("the file").to_owned(),
        notes: [workload.notes(), &workload.repeat_notes(seen.sessions)].concat(),
        sessions: seen.sessions,
        requests: seen.requests,
        all_sessions: workload.session_count(),
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

/// What the sessions so far hold.
#[derive(Default)]
struct Contents {
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

impl Contents {
    fn add_session(&mut self, session: &Session, dialect: &RequestFormat) {
        self.sessions += 1;
        self.turns.push(session.request_count() as f64);
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
                        body: shorten_middle(&String::from_utf8_lossy(&body)),
                    });
                }
            }
        }
    }
}

/// A text with its middle left out, where it is long.
fn shorten_middle(text: &str) -> String {
    let length = text.chars().count();
    if length <= 2 * SHOWN + 20 {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN).collect();
    let tail: String = text.chars().skip(length - SHOWN).collect();
    format!("{head} … {} characters … {tail}", length - 2 * SHOWN)
}
