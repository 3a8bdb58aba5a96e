//! *The pages*: a [`Summary`](goodput_stats::Summary) as text for people.
//!
//! Pure: the same summary gives the same page. Text that came from a server or a file is made
//! harmless by [`plain`] wherever it is shown.

mod audit;
mod breakdown;
mod calibration;
mod capacity;
mod chart;
mod clip;
mod column;
mod compare;
mod confidence;
mod gpu;
mod latency;
mod number;
mod plain;
mod preview;
mod repeats;
mod server;
mod slo;
mod sweep;
mod sweeps;
mod text;
mod workload;
mod wrap;

#[cfg(test)]
mod tests;

pub use audit::{audit_markdown, audit_text};
pub use calibration::{calibration, calibration_step};
pub use capacity::capacity_text;
pub use column::column_text;
pub use compare::{
    compare_before, compare_design, compare_floor, compare_junit, compare_markdown, compare_step,
    compare_text,
};
pub use confidence::{confidence_before, confidence_live};
pub use plain::plain;
pub use preview::{Histogram, Preview, WorkloadView, workload_text};
pub use repeats::repeats_text;
pub use sweep::{sweep_before, sweep_live, sweep_step, sweep_text};
pub use sweeps::sweeps_text;
pub use text::text;
