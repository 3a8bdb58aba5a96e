//! The vocabulary of goodput: what was asked ([`Plan`]), what happened to one request
//! ([`RequestRecord`]), and what may make a number untrustworthy ([`Caveat`], [`Verdict`]).
//!
//! Every other crate speaks these types. This one does no I/O, reads no clock and starts no task.

mod caveat;
mod closest;
mod distribution;
mod duration;
mod exchange;
mod failure;
mod feature;
mod finish;
mod health;
mod histogram;
mod metric;
mod name_lookup;
mod pair;
mod parse;
mod plain;
mod plan;
mod prometheus;
pub mod random;
mod reported;
mod request;
pub mod schedule;
mod secrets;
mod server;
mod shape;
mod shard;
mod slo;
mod system_context;
mod time;
mod trace;
mod until;
mod workload;

pub use caveat::{Caveat, CaveatCode, Explanation, Severity, Verdict};
pub use closest::closest_name;
pub use distribution::{Clip, Delay, LengthDistribution};
pub use duration::parse_duration;
pub use exchange::{
    AnswerJudgement, Chunk, Connect, Exchange, Phase, RequestRecord, Stamps, TcpFacts, TimeSpan,
    TokenCount, TokenSource,
};
pub use failure::{ErrorClass, Failure, FailureStage};
pub use feature::{Feature, LeftOut};
pub use finish::known_finish;
pub use health::{
    CanaryReading, Ceiling, HealthSample, HostSample, LoopLag, MachineMemory, Network,
    ThreadSample, Throttled,
};
pub use histogram::{BoundedHistogram, LogHistogram};
pub use metric::MetricName;
pub use name_lookup::NameLookup;
pub use pair::{Likeness, PairNote};
pub use parse::ParseError;
pub use plain::{escape_control, safe_excerpt};
pub use plan::{
    Api, ArrivalProcess, ConnectionPolicy, GpuPlan, Header, Http, Keep, Load, LoadExtent, Measure,
    Mode, ObservePlan, Plan, REDACTED, Rate, SloQuestion, StopEarly, Target,
};
pub use prometheus::{MetricsFormat, MetricsSheet, metrics_label};
pub use reported::{
    LengthRange, Reported, ReportedGoodput, ReportedLoad, ReportedMetric, ReportedMode,
    ReportedRequest, ReportedSetup, ReportedWarmup, SourceTool,
};
pub use request::{
    Constraint, ConstraintKind, History, Message, MessagePart, Planned, Request, Role, Session,
    SessionStep,
};
pub use secrets::{query_names, url_without_secrets};
pub use server::{
    Buckets, GpuFacts, GpuSample, MetricsSource, Scrape, ServerReading, Signal, SignalKind,
    SignalValue, SystemFacts,
};
pub use shape::{LoadShape, Stage as LoadStage};
pub use shard::{ClockOffset, Shard, ShardFacts, ShardPart, have_common_start};
pub use slo::{Slo, SloError, SloLimit, SloMetric, SloRelation, SloStatistic, SloTerm};
pub use system_context::{SystemContext, is_setting_meant};
pub use time::Nanos;
pub use trace::{TraceIds, Tracer};
pub use until::{EndedBy, Goal, Repeat, StopFigure, Until};
pub use workload::{
    CalibrationSource, ClassPlan, ConstraintDialect, DatasetPlan, ImageFormat, ImagesPlan, LogPlan,
    OutputLength, PrefixPlan, SessionPlan, SharedPlan, SourcePlan, StructuredPlan,
    TokenCalibration, ToolsPlan, TracePlan, WorkloadPlan, parse_weight,
};
