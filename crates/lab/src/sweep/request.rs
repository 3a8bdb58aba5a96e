//! What is asked of a sweep: what `sweep.toml` holds.

use goodput_campaign::sweep::SweepPlan;
use goodput_model::{Measure, Plan, REDACTED, SloTerm};
use goodput_record::Vary;
use serde::{Deserialize, Serialize};

use crate::error::Failed;
use crate::serve::without_secrets;

/// Everything that was request of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepRequest {
    /// Format name and version.
    pub schema: String,
    /// GPUs behind the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The server that is ours to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<ServerRequest>,
    /// What differs between configurations, as `name=value,value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<String>,
    /// The sweep ends after this many seconds with what is known; without it as
    /// [`super::time_limit_s`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// Levels and effort.
    pub sweep: SweepPlan,
    /// What every point has in common.
    pub plan: Plan,
}

/// A server that is ours to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerRequest {
    /// The command, with its placeholders.
    pub command: String,
    /// How long it may take to become ready, in seconds.
    pub timeout_s: f64,
}

impl SweepRequest {
    const SCHEMA: &'static str = "goodput.sweep-plan/1";

    /// A sweep of one configuration, of a server that is not ours.
    pub fn new(sweep: SweepPlan, plan: Plan) -> Self {
        let schema = Self::SCHEMA.to_owned();
        Self { schema, gpus: None, serve: None, vary: Vec::new(), max_s: None, sweep, plan }
    }

    /// As it may be written down.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let hidden = |serve: &ServerRequest| ServerRequest {
            command: without_secrets(&serve.command),
            ..serve.clone()
        };
        Self { serve: self.serve.as_ref().map(hidden), ..self.clone() }
    }

    /// Whether there is one configuration, of a server that is not ours.
    pub fn has_one_configuration(&self) -> bool {
        self.vary.is_empty() && self.serve.is_none()
    }

    /// Whether configurations differ in where requests go, or how.
    pub fn varies_target(&self) -> bool {
        let is_of_target =
            |text: &&String| text.starts_with("target.") && !text.starts_with("target.model=");
        self.vary.iter().any(|text| is_of_target(&text))
    }

    /// What flags and files can both get wrong.
    pub fn check(&self) -> Result<(), Failed> {
        if self.schema != Self::SCHEMA {
            let found = &self.schema;
            let message = format!("the sweep's format is `{found}`, not `{}`", Self::SCHEMA);
            return Err(Failed::usage(message));
        }
        if self.serve.as_ref().is_some_and(|serve| serve.command.contains(REDACTED)) {
            return Err(Failed::usage(
                "the server command contains a secret, which is never saved",
            )
            .hint("pass it in an environment variable, so that --resume can repeat the command"));
        }
        self.variations().map(drop)
    }

    /// What differs between configurations.
    pub fn variations(&self) -> Result<Vec<Vary>, Failed> {
        let read = |text: &String| {
            text.parse().map_err(|error: goodput_record::VaryError| {
                Failed::usage(error.to_string()).hint("write --vary workload.isl=512,2048,8192")
            })
        };
        self.vary.iter().map(read).collect()
    }
}

/// Promises about single requests are kept by a share of them: without a word, by 99 %.
pub fn set_default_attainment(measure: &mut Measure) {
    let is_of_each = measure.slo.iter().flat_map(|slo| &slo.terms).any(SloTerm::is_per_request);
    if is_of_each {
        measure.attainment.get_or_insert(USUAL);
    }
}

/// The share of requests that should be good where nothing is said.
const USUAL: f64 = 0.99;
