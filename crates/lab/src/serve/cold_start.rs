//! A server from nothing to its first token, and back to nothing.

use std::path::Path;
use std::time::Duration;

use goodput_campaign::sweep::ColdStart;
use goodput_clock::now;
use goodput_model::{Plan, Scrape, Signal, SignalValue};
use serde::Serialize;

use super::{Command, ServerPlace, StartedServer, Values};
use crate::error::Failed;
use crate::events::Silent;
use crate::idle::{IdleState, wait_idle};
use crate::interrupt::Interrupt;
use crate::server::ServerWatch;

/// How long the server has to become empty.
const EMPTY_LIMIT: Duration = Duration::from_secs(30);

/// A server that is started, asked once, and stopped.
pub struct ColdStartTrial<'a> {
    /// Where it listens, and how it is asked.
    pub plan: Plan,
    /// The server's command, with its placeholders.
    pub command: &'a str,
    /// What stands for them.
    pub values: Values,
    /// Where the server's words are added.
    pub log: &'a Path,
    /// How long it may take until it answers.
    pub within: Duration,
    /// How long it has to end when it is told to.
    pub grace: Duration,
    /// Comes back when the server has been watched for long enough; none if it is not watched.
    pub hold: Option<&'a dyn Fn()>,
}

/// What has happened.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColdStartStep {
    /// It runs, in this process group.
    Group(Option<i32>),
    /// It answers.
    Start(ColdStart),
    /// What it said about its batch and its queue while it was watched; none if it printed nothing.
    Batch(Option<BatchLevels>),
    /// It was waited for until it was empty.
    Empty(IdleState),
    /// It has ended, and how.
    End(String),
}

/// A server's batch and queue, by what it says about them.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "requests, as the names say")]
pub struct BatchLevels {
    pub running_mean: f64,
    pub running_max: f64,
    pub waiting_mean: f64,
    pub waiting_max: f64,
    pub samples: usize,
}

impl ColdStartTrial<'_> {
    /// Starts the server, waits until it answers, and stops it; `say` hears of each step.
    pub fn measure_cold_start(
        mut self,
        interrupt: &Interrupt,
        say: impl Fn(&ColdStartStep) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let plan = &mut self.plan;
        let place = ServerPlace::from_plan(plan)?;
        let command = Command::parse(self.command, &self.values, &place.placeholder_values())?;
        let server = StartedServer::start(&command, self.log, &place, self.grace)?;
        say(&ColdStartStep::Group(server.process_group()))?;
        let (ready, start) = server.wait_ready(plan, self.within, &Silent)?;
        say(&ColdStartStep::Start(start))?;
        if let Some(hold) = self.hold {
            let (from, watch) = (now(), ServerWatch::start(plan, &ready, &Silent, interrupt)?);
            hold();
            let scrapes = watch.finish(plan, false, &Silent).scrapes(from);
            say(&ColdStartStep::Batch(BatchLevels::from_scrapes(&scrapes)))?;
            if let Some(failed) = server.crash_error() {
                return Err(failed);
            }
            let is_stopped = || interrupt.is_interrupted();
            say(&ColdStartStep::Empty(wait_idle(plan, &ready, EMPTY_LIMIT, &is_stopped)))?;
        }
        say(&ColdStartStep::End(server.stop()?.to_string()))
    }
}

impl BatchLevels {
    fn from_scrapes(scrapes: &[Scrape]) -> Option<Self> {
        let levels = scrapes.iter().filter_map(|scrape| {
            let reading = scrape.outcome.as_ref().ok()?;
            let level = |signal| match reading.values.get(&signal) {
                Some(SignalValue::Number(number)) => Some(*number),
                _ => None,
            };
            Some((level(Signal::Running)?, level(Signal::Waiting)?))
        });
        let (running, waiting): (Vec<f64>, Vec<f64>) = levels.unzip();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        (!running.is_empty()).then(|| Self {
            running_mean: mean(&running),
            running_max: max(&running),
            waiting_mean: mean(&waiting),
            waiting_max: max(&waiting),
            samples: running.len(),
        })
    }
}
