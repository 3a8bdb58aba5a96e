//! Pages for a browser: one file each, with everything in it, that asks nobody for anything.

mod run;
#[cfg(test)]
pub(crate) mod tests;

pub use run::{run_charts, run_html};
