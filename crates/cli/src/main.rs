//! `goodput`: arguments in, one verb run, an exit code out.

mod args;
mod audit;
mod calibrate;
mod capacity;
mod compare;
mod error;
mod explicit_flags;
mod fleet;
mod listen;
mod live;
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
mod ui;
mod verdict;
mod workload;

use std::process::ExitCode;

use args::{Arguments, Verb};
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Arguments { verb, color } = Arguments::parse();
    output::choose_colour(color);
    let outcome = match verb {
        Verb::Run(args) => run::run(&args),
        Verb::Sweep(args) => sweep::sweep(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Merge(args) => merge::merge(&args),
        Verb::Audit(args) => audit::audit(&args),
        Verb::Stats(args) => stats::stats(&args),
        Verb::Plan(args) => capacity::capacity(&args),
        Verb::Mock(args) => mock::mock(&args),
        Verb::Workload(verb) => workload::workload(&verb),
        Verb::Calibrate(args) => calibrate::calibrate(&args),
        Verb::Record(args) => record::record(&args),
        Verb::Shadow(args) => shadow::shadow(&args),
        Verb::Ui(args) => ui::ui(&args),
        Verb::Fleet(args) => fleet::fleet(&args),
        Verb::Completions { shell } => output::completions(shell),
        Verb::Man { verb } => output::man_page(verb.as_deref()),
        Verb::ColdStart(args) => serve::cold_start(&args),
        Verb::Supervise(args) => serve::supervise(&args),
    };
    terminal::close();
    outcome.unwrap_or_else(|failed| error::show(&failed))
}
