//! Pages for a browser: one file each, with everything in it, that asks nobody for anything.

mod ui;

pub use ui::{
    UI_MOST_CURVES, UI_PAGE_SCRIPT, UI_PAGE_STYLE, UI_SCRIPT, UI_STYLE, UiCurve, UiFigure, UiList,
    UiOverlay, UiPoint, UiRow, UiRun, UiValue, ui_list, ui_message, ui_overlay, ui_report_policy,
    ui_run, ui_token,
};
