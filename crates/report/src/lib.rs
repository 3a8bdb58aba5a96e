//! *The pages*: a [`Summary`](goodput_stats::Summary) for people: text, HTML, pictures.
//!
//! Pure: the same summary gives the same page. Text that came from a server or a file is made
//! harmless by [`escape_control`] wherever it is shown.

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
pub use calibration::{calibration_level_line, calibration_text};
pub use capacity::{capacity_html, capacity_text};
pub use column::column_text;
pub use compare::{
    CompareLevel, CompareRow, CompareView, compare_block_line, compare_charts, compare_design_text,
    compare_estimate, compare_html, compare_junit, compare_markdown, compare_so_far, compare_text,
    noise_floor_text,
};
pub use confidence::{Sending, live_confidence_text, samples_needed_text};
pub use goodput_document::{Detail, color_page};
pub use goodput_model::escape_control;
pub use pages::{PageFormat, render_page, result_charts};
pub use preview::workload_text;
pub use profile_curve::{PROFILE_CURVE_HEAD, profile_curve_line};
pub use repeats::{repeats_html, repeats_junit, repeats_markdown, repeats_text};
pub use reported::{files_text, reported_markdown, reported_text};
pub use run::{run_charts, run_html, run_junit, run_markdown, run_text};
pub use sweep::{
    SweepAxes, point_words, sweep_axes, sweep_charts, sweep_design, sweep_estimate, sweep_html,
    sweep_junit, sweep_markdown, sweep_point_line, sweep_progress_page, sweep_so_far, sweep_text,
};
pub use sweeps::{sweeps_html, sweeps_junit, sweeps_markdown, sweeps_text};
pub use view::{Circumstances, Picture, PointView, RunView, SweepView};
