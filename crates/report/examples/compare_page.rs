//! Writes the pages of a comparison and of a capacity plan that are made by hand, and the forest plot
//! as a file of its own, into a folder: `cargo run -p goodput-report --example compare_page -- DIR`.

#![allow(clippy::unwrap_used, dead_code, reason = "an example over what tests are made of")]

#[path = "../src/capacity/tests/fixtures.rs"]
mod capacity;
#[path = "../src/compare/browser/tests/fixtures.rs"]
mod compare;

use std::path::PathBuf;

use goodput_report::{Circumstances, CompareView, capacity_html, compare_charts, compare_html};

fn main() -> std::io::Result<()> {
    let to = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    std::fs::create_dir_all(&to)?;
    let circumstances = Circumstances {
        facts: vec![("Sent from".to_owned(), "Linux 6.8, AMD EPYC, 16 processors".to_owned())],
        plan: "[design]\nsides = [\"vllm\", \"sglang\", \"b200\"]\nmargin = 0.03\n".to_owned(),
        command: "goodput compare --resume runs/2026-11-16T10-00-00Z-chat-compare".to_owned(),
    };
    for (name, comparison) in [("compare", compare::full()), ("gated", compare::gated())] {
        let folders = compare::folders(&comparison);
        let view = CompareView {
            comparison: &comparison,
            folders: &folders,
            circumstances: Some(&circumstances),
        };
        std::fs::write(to.join(format!("{name}.html")), compare_html(view))?;
        for picture in compare_charts(&comparison) {
            std::fs::write(to.join(format!("{name}-{}.svg", picture.name)), picture.svg)?;
        }
    }
    std::fs::write(to.join("capacity.html"), capacity_html(&capacity::full()))
}
