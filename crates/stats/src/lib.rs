//! *The numbers*: a pure function from the records of a run to its [`Summary`].
//!
//! No clock, no file, no task: the same records give the same summary, live or a year later.
//! Percentiles are exact order statistics over all samples of the window (nearest rank: the
//! smallest sample that at least q percent of all samples do not exceed). Requests that ran into a
//! time limit enter as "longer than that", so slow answers cannot leave the tail by failing.

mod analyse;
mod audit;
mod caveats;
mod client;
mod column;
mod course;
mod cuts;
mod details;
mod each;
mod estimate;
mod flow;
mod gpu;
mod kolmogorov;
mod metrics;
pub mod modes;
pub mod paired;
mod repeats;
mod request;
mod runs;
mod sample;
pub mod saturation;
mod series;
mod server;
mod share;
mod slo;
pub mod steady;
mod streamed;
mod summary;
mod until;
mod watch;
mod waterfall;
mod window;
mod workload;

#[cfg(test)]
mod tests;

pub use analyse::{analyse, analyse_found};
pub use audit::{Audit, Item, Source, Status, audit_reported, audit_run};
pub use caveats::flag_time;
pub use column::{Column, ColumnShift, ColumnTrend};
pub use details::{
    Details, Distribution, PositionBand, SloGrid, StallView, Timeline, completed, details,
};
pub use each::{Each, RequestFigures};
pub use estimate::{
    DEFAULT_SIGMA, Quality, minimum_for_bound, minimum_for_figure, minimum_for_interval,
    normal_quantile, requests_before, requests_before_mean, requests_needed, student_quantile,
};
pub use gpu::{Energy, GpuDevice, GpuSummary, PerToken};
pub use repeats::{Headline, OneRun, Repeats, repeats};
pub use request::{gaps_ms, tpot_ms};
pub use sample::Sample;
pub use series::{Medians, Series, SeriesTally};
pub use server::{
    AgainstClient, BucketPercentile, CounterSummary, EndpointSummary, HistogramSummary,
    LevelSummary, Mark, QueueBand, QueueSummary, Reconciled, ServerSummary, TimelinePoint,
    TtftByQueue,
};
pub use share::{fails_alone, usual_failures};
pub use slo::{FluiditySummary, SloMisses, SloState, SloSummary, SloTermSummary, TtftFit};
pub use summary::{
    CanarySummary, ClientSummary, ErrorDetail, GapTest, HostSummary, LittlesLaw, LoadSummary,
    Metric, Percentile, Quick, Requests, RunFacts, RunState, Stalls, Summary, TcpSummary,
    ThreadSummary, Throughput, Tokens, Waterfall, WaterfallBand, WaterfallPart, WindowSummary,
};
pub use until::{GoalSummary, UntilSummary, about};
pub use watch::{LiveFigure, Look, Watch, goals};
pub use workload::{
    Breakdown, CacheSummary, LengthCheck, Lengths, RecountSummary, ReplaySummary, SessionsSummary,
    Slice, Slices, Spread, StructuredSummary,
};
