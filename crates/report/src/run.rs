//! The page of one run.

mod breakdown;
mod browser;
pub(crate) mod clients;
mod facts;
mod gpu;
mod junit;
pub(crate) mod latency;
mod markdown;
pub(crate) mod server;
mod slo;
mod workload;

pub use browser::{run_charts, run_html};
pub use facts::text;
pub use junit::run_junit;
pub use markdown::run_markdown;

pub(crate) use facts::about;
pub(crate) use workload::name as workload_name;
