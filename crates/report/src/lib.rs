//! *The pages*: a [`Summary`](goodput_stats::Summary) for people: text, HTML, pictures.
//!
//! Pure: the same summary gives the same page. Text that came from a server or a file is made
//! harmless by [`plain`] wherever it is shown.

mod audit;
mod calibration;
mod capacity;
mod column;
mod compare;
mod confidence;
mod context;
mod estimate;
mod explorer;
mod pages;
mod preview;
mod profile_curve;
mod repeats;
mod reported;
mod run;
mod sweep;
mod sweeps;
mod view;

#[cfg(test)]
mod tests;

pub use audit::{audit_markdown, audit_text};
pub use calibration::{calibration, calibration_step};
pub use capacity::{capacity_html, capacity_text};
pub use column::column_text;
pub use compare::{
    CompareLevel, CompareRow, CompareView, compare_before, compare_charts, compare_design,
    compare_floor, compare_html, compare_junit, compare_markdown, compare_so_far, compare_step,
    compare_text,
};
pub use confidence::{Sending, confidence_before, confidence_live};
pub use goodput_document::{Detail, colored};
pub use goodput_model::plain;
pub use pages::{PageFormat, charts, page};
pub use preview::workload_text;
pub use profile_curve::{PROFILE_CURVE_HEAD, profile_curve_line};
pub use repeats::{repeats_html, repeats_junit, repeats_markdown, repeats_text};
pub use reported::{files_text, reported_markdown, reported_text};
pub use run::{run_charts, run_html, run_junit, run_markdown, text};
pub use sweep::{
    SweepAxes, sweep_axes, sweep_before, sweep_charts, sweep_design, sweep_html, sweep_junit,
    sweep_live, sweep_markdown, sweep_so_far, sweep_step, sweep_text, sweep_words,
};
pub use sweeps::{sweeps_html, sweeps_junit, sweeps_markdown, sweeps_text};
pub use view::{Circumstances, Picture, PointView, RunView, SweepView};
