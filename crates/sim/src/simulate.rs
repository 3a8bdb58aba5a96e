//! Runs an engine in simulated time.

use std::collections::HashMap;

use goodput_model::Nanos;

use crate::engine::SimEngine;
use crate::job::{Output, SimJob};

/// A request and when it comes.
#[derive(Debug, Clone)]
pub struct JobArrival {
    /// When.
    pub at: Nanos,
    /// What.
    pub job: SimJob,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobOutcome {
    /// Which.
    pub id: u64,
    /// When it came.
    pub arrived: Nanos,
    /// The queue was full.
    pub refused: bool,
    /// When it was first scheduled.
    pub admitted: Option<Nanos>,
    /// When its first token came.
    pub first_token: Option<Nanos>,
    /// When its last token came.
    pub finished: Option<Nanos>,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens that came.
    pub output_tokens: u32,
    /// Tokens of its prompt that the prefix cache had.
    pub cached_tokens: u32,
    /// How often it lost its place.
    pub preemptions: u32,
}

/// Lets the engine serve all of these, which come in order of time, and says what became of each,
/// in order of their ids. Those of one instant arrive together.
pub fn simulate(
    engine: &mut SimEngine,
    arrivals: impl IntoIterator<Item = JobArrival>,
) -> Vec<JobOutcome> {
    let mut outcomes: Vec<JobOutcome> = Vec::new();
    let mut places = HashMap::new();
    let mut outputs = Vec::new();
    let mut now = None;
    for JobArrival { at, job } in arrivals {
        if now.is_none_or(|now| at > now) {
            engine.advance(at, &mut outputs);
            note_outputs(&mut outcomes, &places, &mut outputs);
            now = Some(at);
        }
        places.insert(job.id, outcomes.len());
        let mut outcome = JobOutcome {
            id: job.id,
            arrived: at,
            prompt_tokens: u32::try_from(job.prompt.len()).unwrap_or(u32::MAX),
            ..JobOutcome::default()
        };
        outcome.refused = engine.submit(at, job).is_err();
        outcomes.push(outcome);
    }
    while let Some(at) = engine.next() {
        engine.advance(at, &mut outputs);
        note_outputs(&mut outcomes, &places, &mut outputs);
    }
    outcomes.sort_by_key(|outcome| outcome.id);
    outcomes
}

fn note_outputs(
    outcomes: &mut [JobOutcome],
    places: &HashMap<u64, usize>,
    outputs: &mut Vec<Output>,
) {
    for output in outputs.drain(..) {
        let place = places.get(&output.id).and_then(|place| outcomes.get_mut(*place));
        let Some(outcome) = place else { continue };
        outcome.admitted = Some(output.admitted);
        if output.total_tokens > 0 {
            outcome.first_token.get_or_insert(output.at);
        }
        outcome.output_tokens = output.total_tokens;
        outcome.cached_tokens = output.cached_tokens;
        outcome.preemptions = output.preemptions;
        if output.finished {
            outcome.finished = Some(output.at);
        }
    }
}
