//! *The simulated engine*: OpenAI endpoints over a model of a serving engine, with faults on demand.
//!
//! `server` has the sockets, `service` the routes, `generate` the life of one request, `driver` the
//! engine model in real time, and `answer` the body that leaves token by token. What is asked and
//! answered (`api`), what goes wrong on purpose ([`faults`]) and what `/metrics` says ([`metrics`])
//! are pure.

mod answer;
mod api;
mod driver;
pub mod faults;
mod generate;
mod line;
pub mod metrics;
mod outbox;
mod reading;
mod routes;
mod server;
mod service;
mod settings;
mod spin_budget;
mod tally;
mod trouble;
mod truth;

pub use faults::{FaultError, MockFault};
pub use metrics::MetricNames;
pub use server::{MockServer, ServeError, ServerTlsFiles};
pub use settings::{MockSettings, SettingsError};
pub use tally::MockTally;
pub use trouble::PageTrouble;
