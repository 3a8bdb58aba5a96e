//! The command line. Nothing past `plan` sees these types.

mod audit;
mod calibrate;
mod capacity;
mod command;
mod command_line;
mod compare;
#[cfg(test)]
pub(crate) mod documented;
mod endpoint;
mod fleet;
mod init;
mod load;
mod log;
mod merge;
mod mock;
mod observe;
mod output;
mod proxy;
mod record;
mod report;
mod run;
mod sections;
mod serve;
mod shadow;
mod shard;
mod slo;
mod stats;
mod sweep;
mod ui;
mod value;
mod workload;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use audit::{AuditArgs, AuditFormat};
pub(crate) use calibrate::CalibrateArgs;
pub(crate) use capacity::CapacityArgs;
pub(crate) use command::command;
pub(crate) use command_line::{read, unknown_command, words};
pub(crate) use compare::{CompareArgs, DesignArgs, FileArgs, OrderName};
pub(crate) use endpoint::{ApiName, ConnectionsName, EndpointArgs};
pub(crate) use fleet::{FleetArgs, FleetVerb, KubernetesArgs, LaunchArgs, RayArgs, SlurmArgs};
pub(crate) use init::InitArgs;
pub(crate) use load::{ClientArgs, LoadArgs, Switch};
pub(crate) use log::LogArgs;
pub(crate) use merge::MergeArgs;
pub(crate) use mock::MockArgs;
pub(crate) use observe::{HookArgs, MetricsSwitch, ObserveArgs};
pub(crate) use output::{OutputArgs, ScreenName};
pub(crate) use proxy::{HttpName, ProxyArgs};
pub(crate) use record::{RecordArgs, TraceFileArgs};
pub(crate) use report::{Format, ReportArgs};
pub(crate) use run::RunArgs;
pub(crate) use sections::Sections;
pub(crate) use serve::{ColdStartArgs, SuperviseArgs};
pub(crate) use shadow::{ByName, CandidateArgs, ShadowArgs};
pub(crate) use shard::{ShardArgs, ShardName};
pub(crate) use slo::{SavedSloArgs, SloArgs};
pub(crate) use stats::StatsArgs;
pub(crate) use sweep::{AxisName, LevelArgs, PointArgs, SweepArgs};
pub(crate) use ui::UiArgs;
pub(crate) use workload::{
    AmountArgs, ConvertArgs, DataArgs, HistoryName, MakeArgs, OutputName, ReplayName, SampleArgs,
    SessionArgs, ShapeArgs, ShowArgs, StructuredDialectName, TraceArgs, WorkloadArgs, WorkloadVerb,
};

/// Find the highest load that an LLM server carries within its latency limits
#[derive(Debug, Parser)]
#[command(version = crate::build::version(), max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// When to color output [default: on a terminal, unless NO_COLOR is set]
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        global = true,
        hide_short_help = true
    )]
    pub(crate) color: ColorName,
}

/// The values of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorName {
    /// On a terminal unless NO_COLOR is set; everywhere if CLICOLOR_FORCE is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Box<RunArgs>),
    Sweep(Box<SweepArgs>),
    Compare(Box<CompareArgs>),
    Report(ReportArgs),
    Merge(MergeArgs),
    Audit(AuditArgs),
    Stats(StatsArgs),
    #[command(alias = "plan")]
    Capacity(Box<CapacityArgs>),
    Mock(Box<MockArgs>),
    /// Show, make, convert, and sample workloads and traces
    #[command(subcommand)]
    Workload(WorkloadVerb),
    Calibrate(CalibrateArgs),
    Record(Box<RecordArgs>),
    Shadow(Box<ShadowArgs>),
    Ui(UiArgs),
    Fleet(FleetArgs),
    /// Print a completion script for a shell
    ///
    /// For bash: goodput completions bash > /etc/bash_completion.d/goodput
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Show or print the manual page of goodput or of one command
    Man {
        /// Command, such as `run`
        verb: Option<String>,
    },
    Init(InitArgs),
    /// Explain a topic, a command, or a caveat
    ///
    /// Topics: load, workload, dataset, trace, sessions, cache, slo, endpoint, server, fleet, output.
    /// A caveat is named by its code, such as `schedule_slip`.
    Help {
        /// Topic, command, or code of a caveat
        #[arg(value_name = "TOPIC|COMMAND|CODE")]
        words: Vec<String>,
    },
    /// Print the version
    #[command(hide = true)]
    Version,
    #[command(hide = true)]
    ColdStart(ColdStartArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
}
