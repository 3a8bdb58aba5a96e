//! What is asked of a comparison of live targets: what `compare.toml` holds.

use goodput_campaign::compare::{Design, estimate_remaining_s};
use goodput_campaign::sweep::{Effort, SweepPlan};
use goodput_model::{Plan, REDACTED};
use serde::{Deserialize, Serialize};

use super::run::planned_run_s;
use super::switch;
use super::targets::TargetSpec;
use super::vary::is_mock;
use crate::compare::slo_text;
use crate::error::Failed;
use crate::serve::without_secrets;

/// Everything that was asked of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareRequest {
    /// Format name and version.
    pub schema: String,
    /// What makes a side's engine the one that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_cmd: Option<String>,
    /// Whether there should be a verdict though the sides are not comparable.
    pub anyway: bool,
    /// Measured seconds of the points of a search, where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_s: Option<f64>,
    /// The comparison ends after this many seconds with what is known; without it as
    /// [`crate::sweep::time_limit_s`] says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
    /// Whether the SLO is the default: a search without one takes a preset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slo_is_default: bool,
    /// Sides, levels and blocks.
    pub design: Design,
    /// Who is compared.
    pub targets: Vec<TargetSpec>,
    /// What all runs have in common.
    pub plan: Plan,
}

impl CompareRequest {
    /// The format's name and version.
    pub const SCHEMA: &'static str = "goodput.comparison-plan/1";

    /// As it may be written down.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let hidden = self.switch_cmd.as_deref().map(without_secrets);
        Self { switch_cmd: hidden, ..self.clone() }
    }

    /// What flags and files can both get wrong.
    pub fn check(&self) -> Result<(), Failed> {
        if self.schema != Self::SCHEMA {
            let found = &self.schema;
            let message = format!("the comparison's format is `{found}`, not `{}`", Self::SCHEMA);
            return Err(Failed::usage(message));
        }
        let names = self.targets.iter().map(|one| &one.name);
        if !names.eq(&self.design.sides) || self.targets.len() < 2 {
            return Err(Failed::usage("the comparison's sides are not its targets"));
        }
        if let Some(odd) = self.switch_cmd.as_deref().and_then(switch::unknown_placeholder) {
            return Err(Failed::usage(format!("--switch-cmd has the unknown placeholder {odd}"))
                .hint(
                    "use {side}, {vary} and {url}; write a shell variable `${name}` without braces",
                ));
        }
        let is_started = |one: &TargetSpec| is_mock(&one.url) || self.switch_cmd.is_some();
        let lone = self.targets.iter().find(|one| !one.varied.is_empty() && !is_started(one));
        if let Some(TargetSpec { url, varied, .. }) = lone {
            return Err(Failed::usage(format!("--vary cannot set `{varied}` on {url}")).hint(
                "add --switch-cmd './start-server {vary}', which starts it with each setting",
            ));
        }
        // A program would take it for a flag.
        let is_flag = |one: &&TargetSpec| one.name.starts_with('-') || one.url.starts_with('-');
        if let Some(one) = self.targets.iter().find(is_flag).filter(|_| self.switch_cmd.is_some()) {
            return Err(Failed::usage(format!(
                "`{}` would be read as a flag by --switch-cmd",
                one.name
            ))
            .hint("name the target: NAME=TARGET"));
        }
        if self.switch_cmd.as_ref().is_some_and(|command| command.contains(REDACTED)) {
            return Err(Failed::usage(
                "the switch command contains a secret, which is never saved",
            )
            .hint("pass it in an environment variable, so that --resume can repeat the command"));
        }
        Ok(())
    }

    /// What to know where two targets are one, and no command makes them differ.
    pub(super) fn twin_warning(&self) -> Option<String> {
        if self.design.same_target || self.switch_cmd.is_some() {
            return None;
        }
        let is_twin = |one: &TargetSpec, other: &TargetSpec| {
            (&one.url, &one.model) == (&other.url, &other.model)
        };
        let twin = |(place, one): (usize, &TargetSpec)| {
            let other = self.targets.iter().skip(place + 1).find(|other| is_twin(one, other))?;
            Some(format!(
                "`{}` and `{}` are the same target; to measure the noise floor use --aa",
                one.name, other.name
            ))
        };
        self.targets.iter().enumerate().find_map(twin)
    }

    /// The SLO that goodput and attainment refer to, and where it comes from; empty without an SLO.
    pub fn slo_text(&self) -> String {
        let who = if self.slo_is_default { " (preset, the default of --search)" } else { "" };
        match slo_text(&self.plan.measure) {
            slo if slo.is_empty() => slo,
            slo => slo + who,
        }
    }

    /// Seconds to the first look, and to the end at most, before anything is measured.
    pub fn estimate_s(&self) -> (f64, f64) {
        estimate_remaining_s(&self.design, &[], planned_run_s(&self.design))
    }

    /// The search of one run.
    pub fn search_plan(&self, seed: u64) -> SweepPlan {
        let measure = &self.plan.measure;
        SweepPlan {
            effort: Effort::Quick,
            sustained_s: Some(0.0),
            point_s: self.point_s,
            settle_s: self.design.settle_s,
            seed,
            slo: measure.slo.clone(),
            attainment: measure.attainment,
            ..SweepPlan::default()
        }
    }
}
