//! What shows a run while it runs: the live screen, the progress line and the page of metrics.
//!
//! | module | what it holds |
//! |---|---|
//! | `view`, `panes`, `words` | a [`ScreenView`] as plain data, and [`draw_screen`], which is pure: the same view gives the same screen |
//! | `latest_snapshot`, `keys` | what is known of the current runs ([`LatestSnapshot`]), made a view; what keys choose of it |
//! | `progress`, `ticker` | the line of a run, and when and how lines are shown |
//! | [`metrics`] | `--metrics-listen`: the runs of one use of a verb as Prometheus metrics |
//! | [`traffic`] | the same for live traffic that passes a proxy, is recorded, or is tried on a candidate |
//! | `course` | where a run stands in its plan |
//!
//! Who owns the terminal draws and prints. Foreign text must have been made harmless before it gets here.

mod course;
mod keys;
mod latest_snapshot;
pub mod metrics;
mod panes;
mod progress;
mod ticker;
pub mod traffic;
mod view;
mod words;

#[cfg(test)]
mod tests;

pub use keys::Keys;
pub use latest_snapshot::{LatestSnapshot, RunTally, ScreenRun};
pub use panes::draw_screen;
pub use progress::ProgressLine;
pub use ticker::Ticker;
pub use view::{
    CampaignView, ClientView, ComparisonView, DifferenceView, LatencyView, LevelView,
    LivePointView, LiveRunView, LiveSweepView, OfferedView, Pane, Percentiles, RunPhase,
    ScreenView, ServerView, StatusColor,
};
