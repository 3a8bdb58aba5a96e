//! From what was typed to what `compare.toml` holds.

use std::path::Path;
use std::time::Duration;

use goodput_campaign::compare::{Design, Gate, Order, Quantity};
use goodput_campaign::sweep::{Effort, Level, SweepPlan};
use goodput_model::{GpuPlan, LoadExtent, Plan, REDACTED, Rate};
use goodput_record::{Campaign, CampaignFolder, FolderError};
use serde::{Deserialize, Serialize};

use super::switch;
use super::targets::{self, Contestant};
use crate::args::{CompareArgs, DesignArgs, LoadArgs, OrderName};
use crate::commands::FolderCommands;
use crate::error::Failed;
use crate::plan::{self, Flags};
use crate::printer::Printer;
use crate::{serve, sweep};
use goodput_lab::compare::gates;
use goodput_lab::compare::promised;

/// Everything that was asked of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Format name and version.
    schema: String,
    /// What makes a side's engine the one that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) switch_cmd: Option<String>,
    /// Whether there shall be a verdict though the sides are not comparable.
    pub(super) anyway: bool,
    /// Measured seconds of the points of a search, where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) point_s: Option<f64>,
    /// Whether nobody asked for the SLO: a search without one takes a preset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    slo_is_default: bool,
    /// Sides, levels and blocks.
    pub(super) design: Design,
    /// Who is compared.
    pub(super) targets: Vec<Contestant>,
    /// What all runs have in common.
    pub(super) plan: Plan,
}

/// Measured seconds of a run when nothing is said.
const RUN_S: f64 = 30.0;

/// Blocks after which it may end.
const LOOKS: [u32; 3] = [6, 8, 12];

impl Asked {
    const SCHEMA: &'static str = "goodput.comparison-plan/1";

    /// What was typed.
    pub(super) fn of(args: &CompareArgs) -> Result<Self, Failed> {
        let targets = targets::resolve(args)?;
        let mut slo = args.slo.clone();
        let slo_is_default = args.design.search && slo.slo.is_none() && slo.goodput.is_empty();
        if slo_is_default {
            // As `goodput sweep` has it.
            slo.slo = Some("interactive".to_owned());
        }
        let load = load(&args.design);
        let flags = Flags {
            target: targets.first().map(|first| first.url.as_str()),
            load: &load,
            workload: &args.workload,
            slo: &slo,
            endpoint: &args.endpoint,
            output: &args.output,
        };
        let mut plan = plan::of_flags(&flags)?;
        tell_sides_apart(&mut plan, args, targets.len())?;
        profile_in_turns(args, args.design.at_once)?;
        let gates = gates::read(&args.gate.gate, &Printer::new(false))?;
        gates::check(&gates, &plan, "this comparison")?;
        if args.design.search {
            gates::check_search(&gates)?;
            sweep::promise(&mut plan.measure);
        } else {
            let all = [&plan.measure.percentiles[..], &gates::percentiles(&gates)].concat();
            plan.measure.percentiles = plan::percentiles(Some(&all));
            // Proof that all sides were sent the same.
            plan.measure.hash_bodies = true;
        }
        let asked = Self {
            schema: Self::SCHEMA.to_owned(),
            switch_cmd: args.design.switch_cmd.clone(),
            anyway: args.gate.anyway,
            point_s: args.design.duration.map(|time| time.as_secs_f64()),
            slo_is_default,
            design: design(args, &targets, gates)?,
            targets,
            plan,
        };
        asked.check()?;
        Ok(asked)
    }

    /// What was asked of the comparison in this folder.
    pub(super) fn resume(
        path: &Path,
        args: &CompareArgs,
    ) -> Result<(CampaignFolder, Self), Failed> {
        let failed = |error: FolderError| {
            let failed = Failed::usage(error.to_string());
            match error {
                FolderError::Locked(_) => failed.hint("wait for it, or stop it"),
                _ => failed.hint("--resume takes the folder that a comparison printed"),
            }
        };
        if !path.exists() {
            return Err(Failed::usage(format!("`{}` does not exist", path.display()))
                .hint("--resume takes the folder that a comparison printed"));
        }
        let folder = CampaignFolder::resume(Campaign::Comparison, path).map_err(failed)?;
        let mut asked: Self = folder.asked().map_err(failed)?;
        targets::complete(&mut asked, args)?;
        if let Some(first) = asked.targets.first() {
            asked.plan.target.url.clone_from(&first.url);
        }
        asked.check()?;
        profile_in_turns(args, asked.design.at_once)?;
        plan::complete_headers(&mut asked.plan, &args.endpoint)?;
        plan::check(&asked.plan)?;
        Ok((folder, asked))
    }

    /// What the folder at `path` would run.
    pub(super) fn commands(
        &self,
        path: &Path,
        args: &CompareArgs,
    ) -> Result<FolderCommands, Failed> {
        let flag = |command: &Option<String>| -> Vec<_> {
            command.iter().map(|text| ("--switch-cmd", text.clone())).collect()
        };
        let typed = flag(&args.design.switch_cmd);
        FolderCommands::new(path, flag(&self.switch_cmd), &typed, args.allow_commands)
    }

    /// As it may be written down.
    pub(super) fn written(&self) -> Self {
        let hidden = self.switch_cmd.as_deref().map(serve::without_secrets);
        Self { switch_cmd: hidden, ..self.clone() }
    }

    /// What flags and files can both get wrong.
    fn check(&self) -> Result<(), Failed> {
        if self.schema != Self::SCHEMA {
            let found = &self.schema;
            let message = format!("the comparison's format is `{found}`, not `{}`", Self::SCHEMA);
            return Err(Failed::usage(message));
        }
        let names = self.targets.iter().map(|one| &one.name);
        if !names.eq(&self.design.sides) || self.targets.len() < 2 {
            return Err(Failed::usage("the comparison's sides are not its targets"));
        }
        if let Some(odd) = self.switch_cmd.as_deref().and_then(switch::unknown) {
            return Err(Failed::usage(format!("nothing is filled in for {odd} in --switch-cmd"))
                .hint(
                    "{side} and {url} are; of a shell's own `${name}` the braces may be left out",
                ));
        }
        // A program would take it for a flag.
        let is_flag = |one: &&Contestant| one.name.starts_with('-') || one.url.starts_with('-');
        if let Some(one) = self.targets.iter().find(is_flag).filter(|_| self.switch_cmd.is_some()) {
            return Err(Failed::usage(format!("`{}` looks like a flag to --switch-cmd", one.name))
                .hint("NAME=TARGET names a target"));
        }
        if self.switch_cmd.as_ref().is_some_and(|command| command.contains(REDACTED)) {
            return Err(Failed::usage("the switch command holds a secret, which is not kept")
                .hint("give it in the environment instead; --resume then knows the command"));
        }
        Ok(())
    }

    /// What to know where two targets are one, and no command makes them differ.
    pub(super) fn twins(&self) -> Option<String> {
        if self.design.same_target || self.switch_cmd.is_some() {
            return None;
        }
        let is_twin = |one: &Contestant, other: &Contestant| {
            (&one.url, &one.model) == (&other.url, &other.model)
        };
        let twin = |(place, one): (usize, &Contestant)| {
            let other = self.targets.iter().skip(place + 1).find(|other| is_twin(one, other))?;
            Some(format!(
                "`{}` and `{}` are the same target: --aa measures the noise floor",
                one.name, other.name
            ))
        };
        self.targets.iter().enumerate().find_map(twin)
    }

    /// What goodput and attainment are about, and who asked for it; empty without an SLO.
    pub(super) fn slo(&self) -> String {
        let who = if self.slo_is_default { " (preset, the default of --search)" } else { "" };
        match promised(&self.plan.measure) {
            slo if slo.is_empty() => slo,
            slo => slo + who,
        }
    }

    /// The search of one run.
    pub(super) fn search(&self, seed: u64) -> SweepPlan {
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

/// Load flags as `run` has them; the rate stands for the levels to come.
fn load(args: &DesignArgs) -> LoadArgs {
    LoadArgs {
        rate: Some(Rate::PerSecond(1.0)),
        arrivals: args.arrivals,
        schedule: None,
        idle: None,
        burstiness: None,
        max_concurrency: None,
        concurrency: None,
        think_time: Duration::ZERO,
        duration: args.duration,
        num_requests: None,
        until: None,
        min_duration: None,
        warmup: LoadExtent::Time(args.warmup),
        cooldown: Duration::ZERO,
        drain: args.drain,
        client: args.client.clone(),
    }
}

/// What is seen of the servers must be of one of them.
fn tell_sides_apart(plan: &mut Plan, args: &CompareArgs, targets: usize) -> Result<(), Failed> {
    let are_several = targets > 1 && args.design.switch_cmd.is_none();
    if are_several && !plan.observe.metrics_urls.is_empty() {
        return Err(Failed::usage("--metrics-url does not say whose page it is")
            .hint("leave it out: of each target the page beside its API is read"));
    }
    if are_several && matches!(plan.observe.gpu, GpuPlan::Exporters(_)) {
        return Err(Failed::usage("--gpu does not say whose GPUs these are")
            .hint("measure each target by itself with `goodput run`, or use --switch-cmd"));
    }
    if args.design.at_once {
        if args.endpoint.observe.gpu.as_ref().is_some_and(|gpu| *gpu != GpuPlan::Off) {
            return Err(Failed::usage("with --at-once nobody knows for whom a GPU works")
                .hint("leave --gpu out, or measure one after the other"));
        }
        plan.observe.gpu = GpuPlan::Off;
    }
    Ok(())
}

/// A profiler that writes out what it saw would slow what is measured beside it.
fn profile_in_turns(args: &CompareArgs, at_once: bool) -> Result<(), Failed> {
    if args.endpoint.beside.profile && at_once {
        return Err(Failed::usage("--profile does not go with --at-once")
            .hint("leave one of them out: in turns, no side's profiler slows another's run"));
    }
    Ok(())
}

fn design(args: &CompareArgs, targets: &[Contestant], gates: Vec<Gate>) -> Result<Design, Failed> {
    let DesignArgs { blocks, no_early_end, .. } = args.design;
    let early = LOOKS.into_iter().filter(|look| *look < blocks && !no_early_end);
    Ok(Design {
        sides: targets.iter().map(|one| one.name.clone()).collect(),
        quantity: if args.design.search { Quantity::Goodput } else { Quantity::Runs },
        levels: levels(&args.design)?,
        looks: early.chain([blocks]).collect(),
        order: match args.design.order {
            OrderName::Abba => Order::Abba,
            OrderName::Random => Order::Random,
        },
        at_once: args.design.at_once,
        run_s: args.design.duration.map_or(RUN_S, |time| time.as_secs_f64()),
        burn_in_s: args.design.warmup.as_secs_f64(),
        settle_s: args.design.settle.as_secs_f64(),
        seed: args.design.client.seed,
        margin: args.gate.margin,
        gates,
        same_target: args.aa,
        ..Design::default()
    })
}

/// Ascending, each once; empty where it is to be found.
fn levels(args: &DesignArgs) -> Result<Vec<Level>, Failed> {
    let mut levels: Vec<Level> = args.concurrency.iter().copied().map(Level::Users).collect();
    for rate in &args.rate {
        let Rate::PerSecond(rate) = rate else {
            return Err(Failed::usage("a comparison has no rate without end")
                .hint("--concurrency 64 loads a server as far as 64 users do"));
        };
        levels.push(Level::Rate(*rate));
    }
    levels.sort_by(|a, b| a.value().total_cmp(&b.value()));
    levels.dedup();
    Ok(levels)
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
