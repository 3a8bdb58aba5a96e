//! *The run on disk*: a folder that survives `kill -9` and can be reported on at any time.
//!
//! ```text
//! plan.toml       what was asked; repeats the run
//! manifest.json   versions, host, target, clocks, state: running | complete | interrupted
//! requests.log    one checksummed frame per request, append-only
//! server.log      what was observed in addition to the requests, in the same form
//! judgements.log  what was found out about the answers after the run, in the same form
//! summary.json    every number; written once the run is over, and by `report`
//! text.jsonl      prompts and answers, only with --save-text
//! ```
//!
//! No header value, key or query value reaches any of them, and no prompt or answer unless asked.

mod artifact;
mod campaign;
mod draft;
mod error;
mod folder;
mod frame;
mod framed;
mod judgement;
mod layout;
mod lock;
mod log;
mod manifest;
mod merge;
mod nesting;
mod sample;
mod series;
mod shadow;
mod spool;
mod tail;
mod toml_file;
pub mod vary;
mod workload;

pub use artifact::{Artifact, ArtifactKind, SummaryFolder};
pub use campaign::{BegunPoint, Campaign, CampaignFolder};
pub use draft::Draft;
pub use error::FolderError;
pub use folder::{
    Logs, RunFolder, TextWriter, parse_plan, plan_text, read_plan, replace_in_folder,
};
pub use framed::Framed;
pub use judgement::JudgementLog;
pub use log::{Damage, LogReader, LogWriter, Unwritten};
pub use manifest::{BuildFacts, Clocks, Host, Manifest, State, TargetFacts, WorkloadFacts};
pub use merge::{MergeError, MergePart, Merged, merge_logs};
pub use series::SeriesFolder;
pub use shadow::{PairLogs, PairUnwritten, ShadowFolder, ShadowPairs};
pub use spool::{Spool, Spooled};
pub use tail::LogTail;
pub use toml_file::{read_toml, read_toml_inside};
pub use vary::{Vary, VaryError};
pub use workload::read_workload;
