//! *The lab*: what makes a run correct, between arguments and pages. It never prints and never exits;
//! what happens is told to an [`Observer`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`run`] | one run: [`prepare_run`](run::prepare_run), [`Prepared::run`](run::Prepared::run), and what runs share ([`Lab`]) |
//! | [`campaign`] | many runs, each decided by those before it |
//! | [`series`] | the same plan several times |
//! | [`sweep`] | points at rising load, for one configuration or several |
//! | [`serve`] | a server that is ours to start, watch and end |
//! | [`compare`] | several targets or saved runs held against each other |
//! | [`handle`], [`interrupt`] | how another thread, or the user, sees and stops a run |
//! | [`readiness`] | from a plan to a target that answers |
//! | [`inputs`] | the files a workload is made of, from disk or from the [`hub`] |
//! | [`checks`] | what a plan must satisfy beyond its types |
//! | [`token_calibration`] | what a word costs in the server's tokens |
//! | [`server`] | the server's metrics and GPUs during a run |
//! | [`hooks`], [`shell`] | a user's commands, the server's profiler, and traces around a run |
//! | [`judge`] | answers checked after the run |
//! | [`fleet`] | several clients that send one load |
//! | [`saved`], [`merge`] | the numbers of a run's folder; shards made one run |
//! | [`results`], [`audit`], [`capacity`] | any artifact read: its numbers, what its page shows in addition, how far to believe it, what one replica carries |
//! | [`idle`] | waiting until a server has nothing left to do |
//! | [`system`] | what the server says about itself |
//! | [`calibrate`], [`canary`], [`host`] | this client and its machine |

pub mod audit;
pub mod calibrate;
pub mod campaign;
pub mod canary;
pub mod capacity;
pub mod checks;
pub mod compare;
pub mod convert;
mod error;
mod events;
mod features;
pub mod fleet;
mod folder_commands;
pub mod handle;
pub mod hooks;
pub mod host;
pub mod hub;
pub mod idle;
pub mod inputs;
pub mod interrupt;
pub mod judge;
pub mod merge;
pub mod preview;
pub mod readiness;
pub mod results;
pub mod run;
pub mod saved;
pub mod series;
pub mod serve;
mod served;
pub mod server;
pub mod shell;
pub mod sweep;
pub mod system;
pub mod token_calibration;
pub mod truth_log;

pub use error::{Failed, Problem, dataset_failed, folder_failed};
pub use events::{
    CompareProgress, Event, ExpectedEnd, Observation, Observer, RunSink, Silent, SweepProgress,
    SweepSoFar, UpcomingRun, time_left_text,
};
pub use features::features;
pub use folder_commands::{FolderCommand, FolderCommands};
pub use handle::RunHandle;
pub use interrupt::{Interrupt, Patience, Stopping};
pub use run::{InProcess, Lab, Prepared, RunContext, Runner};
pub use shell::shell_word;

#[cfg(test)]
mod testing {
    //! What tests of this crate share.

    use goodput_model::Plan;

    /// A plan for one request a second to this target.
    pub(crate) fn plan_for(url: &str) -> Plan {
        let mut plan = goodput_record::parse_plan(include_str!("../tests/plan.toml")).unwrap();
        url.clone_into(&mut plan.target.url);
        plan
    }
}
