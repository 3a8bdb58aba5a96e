//! `goodput`: arguments in, one verb run, an exit code out.

mod args;
mod audit;
mod build;
mod calibrate;
mod capacity;
mod compare;
mod error;
mod explicit_flags;
mod fleet;
mod help;
mod init;
mod listen;
mod live;
mod man;
mod merge;
mod mock;
mod notes;
mod output;
mod plan;
mod printer;
mod record;
mod report;
mod result;
mod run;
mod run_printer;
mod screen;
mod serve;
mod setup;
mod shadow;
mod signals;
mod stats;
mod sweep;
mod terminal;
mod typed_command;
mod ui;
mod verdict;
mod workload;

use std::process::ExitCode;

use args::{Arguments, Verb};
use error::Failed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    signals::stop_with_parent();
    let outcome = args::read().and_then(run_verb);
    terminal::close_screen();
    outcome.unwrap_or_else(|failed| error::show_failure(&failed))
}

fn run_verb(arguments: Arguments) -> Result<ExitCode, Failed> {
    output::set_color(arguments.color);
    match arguments.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Sweep(args) => sweep::sweep(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Merge(args) => merge::merge(&args),
        Verb::Audit(args) => audit::audit(&args),
        Verb::Stats(args) => stats::stats(&args),
        Verb::Capacity(args) => capacity::capacity(&args),
        Verb::Mock(args) => mock::mock(&args),
        Verb::Workload(verb) => workload::workload(&verb),
        Verb::Calibrate(args) => calibrate::calibrate(&args),
        Verb::Record(args) => record::record(&args),
        Verb::Shadow(args) => shadow::shadow(&args),
        Verb::Ui(args) => ui::ui(&args),
        Verb::Fleet(args) => fleet::fleet(&args),
        Verb::Init(args) => init::init(&args),
        Verb::Help { words } => help::help(&words),
        Verb::Completions { shell } => output::print_completions(shell),
        Verb::Man { verb } => man::man(verb.as_deref()),
        Verb::Version => output::print_version(),
        Verb::ColdStart(args) => serve::cold_start(&args),
        Verb::Supervise(args) => serve::supervise(&args),
    }
}
