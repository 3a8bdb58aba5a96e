//! *The pages*: a [`Summary`](goodput_stats::Summary) for people: text, HTML, pictures.
//!
//! Pure: the same summary gives the same page. Text that came from a server or a file is made
//! harmless by [`plain`] wherever it is shown.

mod audit;
mod breakdown;
mod calibration;
mod capacity;
mod chart;
mod clients;
mod clip;
mod colour;
mod column;
mod compare;
mod confidence;
mod gpu;
mod html;
mod junit;
mod latency;
mod markdown;
mod number;
mod plain;
mod preview;
mod repeats;
mod reported;
mod scale;
mod server;
mod slo;
mod svg;
mod sweep;
mod sweeps;
mod text;
mod workload;
mod wrap;

#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tests;

pub use audit::{audit_markdown, audit_text};
pub use calibration::{calibration, calibration_step};
pub use capacity::capacity_text;
pub use colour::coloured;
pub use column::column_text;
pub use compare::{
    CompareLevel, CompareRow, compare_before, compare_design, compare_floor, compare_junit,
    compare_markdown, compare_so_far, compare_step, compare_text,
};
pub use confidence::{Sending, confidence_before, confidence_live};
pub use html::{
    Circumstances, CompareView, Picture, PointView, RunView, SweepView, capacity_html,
    compare_charts, compare_html, repeats_html, run_charts, run_html, sweep_charts, sweep_html,
    sweeps_html,
};
pub use html::{
    UI_MOST_CURVES, UI_PAGE_SCRIPT, UI_PAGE_STYLE, UI_SCRIPT, UI_STYLE, UiCurve, UiFigure, UiList,
    UiOverlay, UiPoint, UiRow, UiRun, UiValue, ui_list, ui_message, ui_overlay, ui_report_policy,
    ui_run, ui_token,
};
pub use junit::{repeats_junit, run_junit, sweep_junit, sweeps_junit};
pub use markdown::{repeats_markdown, run_markdown, sweep_markdown, sweeps_markdown};
pub use plain::plain;
pub use preview::{Histogram, Preview, ServedView, WorkloadView, workload_text};
pub use repeats::repeats_text;
pub use reported::{files_text, reported_markdown, reported_text};
pub use sweep::{
    SweepAxes, sweep_axes, sweep_before, sweep_live, sweep_so_far, sweep_step, sweep_text,
    sweep_words,
};
pub use sweeps::sweeps_text;
pub use text::text;
