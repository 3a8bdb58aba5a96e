//! The vocabulary of goodput: what was asked ([`Plan`]), what happened to one request
//! ([`RequestRecord`]), and what may make a number untrustworthy ([`Caveat`], [`Verdict`]).
//!
//! Every other crate speaks these types. This one does no I/O, reads no clock and starts no task.

mod caveat;
mod distribution;
mod exchange;
mod failure;
mod finish;
mod health;
mod histogram;
mod metric;
mod pair;
mod parse;
mod plain;
mod plan;
mod prometheus;
pub mod random;
mod reported;
mod request;
mod server;
mod shape;
mod shard;
mod slo;
mod time;
mod trace;
mod until;
mod workload;

pub use caveat::{Caveat, CaveatCode, Explanation, Severity, Verdict};
pub use distribution::{Clip, Delay, Lengths};
pub use exchange::{
    Chunk, Connect, Exchange, Judgement, Phase, RequestRecord, Span, Stamps, TcpFacts, TokenCount,
    TokenSource,
};
pub use failure::{ErrorClass, Failure, Stage};
pub use finish::known_finish;
pub use health::{
    Beat, CanaryReading, Ceiling, HostSample, Memory, Network, Sample, ThreadSample, Throttled,
};
pub use histogram::{BoundedHistogram, LogHistogram};
pub use metric::MetricName;
pub use pair::{Likeness, PairNote};
pub use parse::ParseError;
pub use plain::plain;
pub use plan::{
    Api, Arrivals, ConnectionPolicy, Extent, GpuPlan, Header, Http, Keep, Load, Measure, Mode,
    ObservePlan, Plan, REDACTED, Rate, StopEarly, Target,
};
pub use prometheus::{MetricsFormat, MetricsSheet, metrics_label};
pub use reported::{
    LengthRange, Reported, ReportedGoodput, ReportedLoad, ReportedMetric, ReportedMode,
    ReportedRequest, ReportedSetup, ReportedWarmup, Tool,
};
pub use request::{
    Constraint, ConstraintKind, History, Message, Part, Planned, Request, Role, Session, Step,
};
pub use server::{
    Buckets, GpuFacts, GpuSample, MetricsSource, Reading, Scrape, Signal, SignalKind, SignalValue,
    SystemFacts,
};
pub use shape::{Shape, Stage as LoadStage};
pub use shard::{ClockOffset, Shard, ShardFacts, ShardPart, have_common_start};
pub use slo::{Slo, SloError, SloLimit, SloMetric, SloRelation, SloStatistic, SloTerm};
pub use time::Nanos;
pub use trace::{TraceIds, Tracer};
pub use until::{EndedBy, Figure, Goal, Repeat, Until};
pub use workload::{
    Calibration, CalibrationSource, ClassPlan, ConstraintDialect, DatasetPlan, ImageFormat,
    ImagesPlan, LogPlan, OutputLength, PrefixPlan, SessionPlan, SharedPlan, SourcePlan,
    StructuredPlan, ToolsPlan, TracePlan, WorkloadPlan,
};
