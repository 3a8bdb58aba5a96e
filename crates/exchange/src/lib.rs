//! *Other people's shapes*: the records and numbers of a run as CSV, as Parquet, and as other tools
//! write theirs, in their definitions and not just under their names.
//!
//! Everything goes to a writer that the caller gives, line by line or row group by row group: memory
//! does not grow with the run, but for what percentiles need.
//!
//! [`read_results`] reads the result files of those tools.

mod aiperf;
mod chunks;
mod converted;
mod error;
mod export;
mod flat;
mod import;
mod instant;
mod json;
mod lines;
#[cfg(all(test, feature = "parquet"))]
mod no_rows;
mod numbers;
mod points;
mod requests;
#[cfg(feature = "parquet")]
mod rows;
#[cfg(not(feature = "parquet"))]
#[path = "no_rows.rs"]
mod rows;
mod server;
mod sglang;
mod table;
mod vllm;

#[cfg(test)]
mod tests;

pub use aiperf::write_aiperf;
pub use chunks::chunks_parquet;
pub use converted::ConvertedRun;
pub use error::ExchangeError;
pub use export::{FileShape, ParquetTable, RunExport};
pub use import::{FieldError, ImportError, UNDERSTOOD, parse_results, read_results};
pub use lines::{Field, write_csv};
pub use points::{sweep_csv, sweeps_csv};
pub use requests::{RequestRow, requests_csv, requests_parquet};
pub use server::server_parquet;
pub use sglang::write_sglang;
pub use vllm::write_vllm;
