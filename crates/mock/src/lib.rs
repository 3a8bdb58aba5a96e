//! *The simulated engine*: OpenAI endpoints whose timing is known by construction.
//!
//! A request waits in arrival order for one of `slots`, then its first token comes after a TTFT
//! and each next one after an ITL, both fixed or drawn. Token instants are absolute, so nothing
//! drifts: a client that reports something else measured itself.

mod answer;
#[allow(dead_code, unused_imports, reason = "the server is about to use it")]
mod api;
mod delay;
pub mod faults;
pub mod metrics;
mod request;
mod server;
mod settings;

pub use delay::Delay;
pub use server::{Mock, ServeError, TlsFiles};
pub use settings::{Settings, SettingsError};
