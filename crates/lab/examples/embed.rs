//! goodput inside another program: a plan, a run on the simulated engine, its p99 TTFT and verdict, and
//! the page as Markdown. `cargo run --package goodput-lab --example embed`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use goodput_lab::run::prepare_run;
use goodput_lab::{Interrupt, Lab, RunContext, Silent};
use goodput_model::Plan;
use goodput_workload::find_preset;

#[expect(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let class = find_preset("chat").ok_or("no such preset")?;
    let plan = Plan::open_loop("mock:fast", class, 20.0, Duration::from_secs(2));

    let lab = Lab::new(Arc::new(Silent), Interrupt::default());
    let folder = tempfile::tempdir()?;
    let summary =
        prepare_run(&lab, plan)?.run(&lab, &folder.path().join("run"), RunContext::default())?;

    let p99 = summary.metrics.get("ttft").and_then(|ttft| ttft.percentiles.get("99")?.value);
    println!("p99 TTFT {p99:?} ms, verdict {:?}\n", summary.verdict);
    println!("{}", goodput_report::run_markdown(&summary));
    Ok(())
}
