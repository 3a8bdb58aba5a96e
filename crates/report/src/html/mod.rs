//! Pages for a browser: one file each, with everything in it, that asks nobody for anything.

mod capacity;
mod compare;
mod explorer;
mod markup;
mod page;
mod pieces;
mod repeats;
mod run;
mod sweep;
mod sweeps;
#[cfg(test)]
mod tests;
mod ui;
mod view;

pub use capacity::capacity_html;
pub use compare::{CompareView, compare_charts, compare_html};
pub use repeats::repeats_html;
pub use run::{run_charts, run_html};
pub use sweep::{sweep_charts, sweep_html};
pub use sweeps::sweeps_html;
pub use ui::{
    UI_MOST_CURVES, UI_PAGE_SCRIPT, UI_PAGE_STYLE, UI_SCRIPT, UI_STYLE, UiCurve, UiFigure, UiList,
    UiOverlay, UiPoint, UiRow, UiRun, UiValue, ui_list, ui_message, ui_overlay, ui_report_policy,
    ui_run, ui_token,
};
pub use view::{Circumstances, Picture, PointView, RunView, SweepView};

pub(crate) use markup::escape;
