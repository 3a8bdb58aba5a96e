//! What runs share ([`Lab`]), and what one run is among others ([`RunContext`]).

use std::path::Path;
use std::sync::Arc;

use goodput_engine::{Begin, FdLimit};
use goodput_model::{Repeat, Shard, ShardFacts};
use goodput_record::BuildFacts;
use goodput_stats::Summary;

use super::{Prepared, StartBarrier};
use crate::error::Failed;
use crate::events::ExpectedEnd;
use crate::events::{Observer, RunSink};
use crate::handle::RunHandle;
use crate::hooks::Hooks;
use crate::hub::Hub;
use crate::interrupt::Interrupt;

/// What all runs of one use of a verb share.
pub struct Lab {
    /// Hears what happens.
    pub observer: Arc<dyn Observer>,
    /// Where datasets and tokenizers come from.
    pub hub: Hub,
    /// Files that this process may open.
    pub fd_limit: FdLimit,
    /// The user's wish to stop.
    pub interrupt: Interrupt,
    /// What happens around every run.
    pub hooks: Hooks,
    /// Whether the target may be asked how it counts tokens.
    pub may_ask: bool,
    /// The part of the load that this client sends.
    pub shard: Shard,
    /// Another client decides what is measured.
    pub is_led: bool,
    /// What the program was built from, for the manifests of its runs.
    pub build: Option<BuildFacts>,
    /// The command that began all of it, without secrets; empty where there is none.
    pub command: String,
    /// Where runs are carried out.
    pub runner: Box<dyn Runner>,
}

impl Lab {
    /// The command that began all of it, as it may be written down: what endpoints have taken for
    /// a secret by now is left out too.
    pub(crate) fn redacted_command(&self) -> String {
        goodput_wire::scrub_secrets(self.command.clone())
    }

    /// Runs in this process, without hooks.
    pub fn new(observer: Arc<dyn Observer>, interrupt: Interrupt) -> Self {
        Self {
            hub: Hub::new(Arc::clone(&observer)),
            observer,
            fd_limit: goodput_engine::raise_fd_limit(),
            interrupt,
            hooks: Hooks::default(),
            may_ask: true,
            shard: Shard::WHOLE,
            is_led: false,
            build: None,
            command: String::new(),
            runner: Box::new(InProcess),
        }
    }
}

/// Where a run is carried out: in this process, or by a fleet.
pub trait Runner: Send + Sync {
    /// Sends the load, records it in a folder at `path`, and turns it into numbers.
    fn run(
        &self,
        prepared: Prepared,
        lab: &Lab,
        path: &Path,
        context: RunContext,
    ) -> Result<Summary, Failed>;
}

/// This process alone.
#[derive(Debug, Clone, Copy)]
pub struct InProcess;

impl Runner for InProcess {
    fn run(
        &self,
        prepared: Prepared,
        lab: &Lab,
        path: &Path,
        context: RunContext,
    ) -> Result<Summary, Failed> {
        prepared.run_in_process(lab, path, context)
    }
}

/// What a run is among others.
#[derive(Default)]
pub struct RunContext {
    /// Which of several runs of one plan.
    pub repeat: Option<Repeat>,
    /// What it is called among others, and what its progress line begins with.
    pub label: String,
    /// When everything that it is part of should end.
    pub end: Option<ExpectedEnd>,
    /// Another run shows the progress of both.
    pub is_silent: bool,
    /// Holds it back until others can begin too.
    pub start: Option<StartBarrier>,
    /// Which of several clients this is.
    pub shard: Option<ShardFacts>,
    /// Waits until all clients are ready; gives the common first instant on this machine's clock.
    pub begin: Option<Begin>,
    /// Counters and control.
    pub handle: RunHandle,
    /// Who follows it besides the observer.
    pub sinks: Vec<Box<dyn RunSink>>,
}
