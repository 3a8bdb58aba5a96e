//! Writes the page of a run that was made up, to look at it: `cargo run --example page FILE`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unreachable_pub,
    dead_code,
    missing_docs,
    reason = "it is for developers"
)]

#[path = "../src/tests/browser/fixture.rs"]
mod fixture;

use goodput_report::{Circumstances, RunView, run_charts, run_html};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "report.html".to_owned());
    let summary = fixture::summary(|_| {});
    let details = fixture::details();
    let audit = fixture::audit();
    let circumstances = fixture::circumstances();
    let view = RunView {
        summary: &summary,
        details: &details,
        audit: &audit,
        circumstances: &circumstances,
    };
    std::fs::write(&file, run_html(&view))?;
    if let Some(folder) = args.next() {
        for picture in run_charts(&view) {
            std::fs::write(format!("{folder}/{}.svg", picture.name), picture.svg)?;
        }
    }
    Ok(())
}
