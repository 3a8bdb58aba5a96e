//! *The numbers*: a pure function from the records of a run to its [`Summary`].
//!
//! No clock, no file, no task: the same records give the same summary, live or a year later.
//! Percentiles are exact order statistics over all samples of the window (nearest rank: the
//! smallest sample that at least q percent of all samples do not exceed). Requests that ran into a
//! time limit enter as "longer than that", so slow answers cannot leave the tail by failing.

// Groups of modules, each of which uses only itself and the groups above it.

// What a summary says: data alone.
mod summary;

// Statistics of plain numbers.
mod estimate;
mod kolmogorov;
pub mod modes;
pub mod paired;

// Requests and their values.
mod cuts;
mod request;
mod runs;
mod sample;
mod series;
mod streamed;
mod tally;
mod waterfall;

// The run over time: its window, whether it was steady, whether the server kept up.
mod course;
pub mod saturation;
pub mod steady;
mod window;

// The parts of a summary, each filled by a pass over the records.
mod caveats;
mod client;
mod flow;
mod gpu;
mod metrics;
mod server;
mod share;
mod slo;
mod until;
mod watch;
mod workload;

// What callers ask for.
mod analyze;
mod audit;
mod column;
mod details;
mod each;
mod preview;
mod repeats;

#[cfg(test)]
mod tests;

pub use analyze::{analyze_run, analyze_with_facts};
pub use audit::{Audit, Item, Source, Status, audit_reported, audit_run, own_items};
pub use caveats::flag_time;
pub use column::{ColumnShift, ColumnTrend, NumberColumn};
pub use details::{
    Details, Distribution, LimitTally, LoadGrid, PositionBand, SloAnswer, SloCounts, SloGrid,
    SloLimits, SloLoad, SloStart, StallView, StatedAnswer, Timeline, chart_details,
    complete_records,
};
pub use each::{Each, RequestFigures};
pub use estimate::{
    DEFAULT_SIGMA, minimum_for_bound, minimum_for_figure, minimum_for_interval, normal_quantile,
    requests_before, requests_before_mean, requests_needed, student_quantile,
};
pub use preview::{Histogram, Preview, ServedView, WorkloadView};
pub use repeats::{Headline, OneRun, Repeats, summarize_repeats};
pub use request::{gaps_ms, tpot_ms};
pub use sample::Sample;
pub use series::{Medians, Series, SeriesTally};
pub use share::{is_failure_outlier, median_failure_share};
pub use summary::{
    AgainstClient, Breakdown, BucketPercentile, CacheRotation, CacheSummary, CanarySummary,
    ClientSummary, CounterSummary, EndpointSummary, Energy, ErrorDetail, FluiditySummary, GapTest,
    GoalSummary, GpuDevice, GpuSummary, HistogramSummary, HostSummary, LengthCheck, Lengths,
    LevelSummary, LittlesLaw, LoadSummary, Mark, Metric, PerToken, Percentile, Quality, QueueBand,
    QueueSummary, Quick, Reconciled, RecountSummary, ReplaySummary, ReplicaChange, Requests,
    RunFacts, RunState, ScalingSummary, ServerSummary, SessionsSummary, Slice, Slices, SloMisses,
    SloState, SloSummary, SloTermSummary, Spread, Stalls, StructuredSummary, Summary, TcpSummary,
    ThreadSummary, Throughput, TimelinePoint, Tokens, TtftByQueue, TtftFit, UntilSummary,
    Waterfall, WaterfallBand, WaterfallPart, WindowSummary,
};
pub use tally::{RequestTally, TimeTally};
pub use until::rough_duration;
pub use watch::{LiveFigure, Look, Watch, watch_goals};
