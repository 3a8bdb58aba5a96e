//! The vocabulary of goodput: what was asked ([`Plan`]), what happened to one request
//! ([`RequestRecord`]), and what may make a number untrustworthy ([`Caveat`], [`Verdict`]).
//!
//! Every other crate speaks these types. This one does no I/O, reads no clock and starts no task.

mod caveat;
mod exchange;
mod failure;
mod health;
mod plan;
mod time;

pub use caveat::{Caveat, Severity, Verdict};
pub use exchange::{
    Chunk, Connect, Exchange, Phase, Planned, Prompt, RequestRecord, Span, Stamps, TcpFacts,
    TokenCount, TokenSource,
};
pub use failure::{ErrorClass, Failure, Stage};
pub use health::{Beat, CanaryReading, Ceiling, HostSample, Sample, ThreadSample, Throttled};
pub use plan::{
    Api, Arrivals, ConnectionPolicy, Extent, Header, Http, Load, Measure, Mode, ParseError, Plan,
    REDACTED, Rate, Target, WorkloadPlan,
};
pub use time::Nanos;
