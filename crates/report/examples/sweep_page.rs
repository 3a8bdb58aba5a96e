//! Writes the page of a made-up sweep into a file, that of several configurations as `sweeps.html`
//! next to it, and the charts: `cargo run -p goodput-report --example sweep_page -- page.html`.

use std::error::Error;
use std::path::PathBuf;

use goodput_campaign::curve::best_configuration;
use goodput_campaign::sweep::{Configuration, Sweeps};
use goodput_model::Verdict;
use goodput_report::{Circumstances, PointView, SweepView, sweep_charts, sweep_html, sweeps_html};

#[path = "../src/sweep/browser/tests/fixture.rs"]
mod fixture;

fn main() -> Result<(), Box<dyn Error>> {
    let path: PathBuf = std::env::args().nth(1).unwrap_or("sweep.html".to_owned()).into();
    let made = fixture::sweep()?;
    let view = SweepView {
        summary: &made.summary,
        points: &made.points,
        circumstances: &made.circumstances,
        audit: Some(&made.audit),
    };
    std::fs::write(&path, sweep_html(&view))?;
    for picture in sweep_charts(&view) {
        std::fs::write(path.with_file_name(format!("{}.svg", picture.name)), picture.svg)?;
    }
    std::fs::write(path.with_file_name("sweeps.html"), sweeps_html(&sweeps()?))?;
    Ok(())
}

/// Three configurations, of which one did not start.
fn sweeps() -> Result<Sweeps, serde_json::Error> {
    let broken = Configuration {
        start: None,
        sweep: None,
        failed: Some("the server ended with 1 before it was ready\nout of memory".to_owned()),
        ..fixture::configuration("8192", 1.0)?
    };
    let configurations =
        vec![fixture::configuration("2048", 0.82)?, fixture::configuration("4096", 1.0)?, broken];
    let (best, because) = best_configuration(&configurations);
    let schema = Sweeps::SCHEMA.to_owned();
    Ok(Sweeps { schema, verdict: Verdict::Valid, configurations, best, because })
}
