//! Comparisons: is B really faster than A, and by how much.

pub mod floor;
pub mod gates;
pub mod live;
pub mod names;
pub mod proof;
pub mod saved;

use goodput_model::Measure;
use goodput_record::Host;

/// An SLO as it is typed, and the share of requests that must keep it; empty if it has none.
pub fn slo_text(measure: &Measure) -> String {
    let share = measure.attainment.map_or_else(String::new, |share| {
        format!(", by {} % of the requests", (share * 1e4).round() / 1e2)
    });
    measure.slo.as_ref().map_or_else(String::new, |slo| slo.to_string() + &share)
}

/// The machine that measured, in words.
pub fn machine_text(host: &Host) -> String {
    format!("{}, {}, {} processors", host.system, host.cpu, host.cpus)
}
