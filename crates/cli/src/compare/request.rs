//! Builds a [`CompareRequest`] from the flags.

use std::path::Path;
use std::time::Duration;

use goodput_campaign::compare::{BlockOrder, Design, Gate, Quantity};
use goodput_campaign::sweep::Level;
use goodput_lab::FolderCommands;
use goodput_lab::compare::gates;
use goodput_lab::compare::live::{
    CompareRequest, NamedTargets, TargetSpec, assign_facts, resolve_targets, restore_secrets,
};
use goodput_lab::sweep::set_default_attainment;
use goodput_model::{GpuPlan, LoadExtent, Plan, Rate};
use goodput_record::{Campaign, CampaignFolder, FolderError};

use crate::args::{CompareArgs, DesignArgs, LoadArgs, OrderName};
use crate::error::Failed;
use crate::plan::{self, Flags};
use crate::printer::Printer;

/// Measured seconds of a run by default.
const RUN_S: f64 = 30.0;

/// Numbers of blocks after which the comparison can end early.
const LOOKS: [u32; 3] = [6, 8, 12];

/// What was typed.
pub(super) fn from_flags(args: &CompareArgs) -> Result<CompareRequest, Failed> {
    let mut targets = resolve_targets(&named_targets(args))?;
    let mut slo = args.slo.clone();
    let slo_is_default = args.design.search && slo.slo.is_none() && slo.goodput.is_empty();
    if slo_is_default {
        // As `goodput sweep` has it.
        slo.slo = Some("interactive".to_owned());
    }
    let load = load_args(&args.design);
    let flags = Flags {
        target: targets.first().map(|first| first.url.as_str()),
        load: &load,
        workload: &args.workload,
        slo: &slo,
        endpoint: &args.endpoint,
        output: &args.output,
    };
    let mut plan = plan::plan_from_flags(&flags)?;
    assign_facts(&mut plan.system, &mut targets);
    check_metrics_flags(&mut plan, args, targets.len())?;
    refuse_profile_at_once(args, args.design.at_once)?;
    let gates = gates::parse_gates(&args.gate.gate, &Printer::new(false))?;
    gates::check_gates(&gates, &plan, "this comparison")?;
    if args.design.search {
        gates::check_search(&gates)?;
        set_default_attainment(&mut plan.measure);
    } else {
        let all = [&plan.measure.percentiles[..], &gates::reported_percentiles(&gates)].concat();
        plan.measure.percentiles = plan::percentiles_or_default(Some(&all));
        // Proof that all sides were sent the same.
        plan.measure.hash_bodies = true;
    }
    let request = CompareRequest {
        schema: CompareRequest::SCHEMA.to_owned(),
        switch_cmd: args.design.switch_cmd.clone(),
        anyway: args.gate.anyway,
        point_s: args.design.duration.map(|time| time.as_secs_f64()),
        max_s: args.design.max_time.map(|time| time.as_secs_f64()),
        slo_is_default,
        design: build_design(args, &targets, gates)?,
        targets,
        plan,
    };
    request.check()?;
    Ok(request)
}

/// The saved request of the comparison in this folder, completed with the parts that are never
/// saved, such as secrets.
pub(super) fn resume_request(
    path: &Path,
    args: &CompareArgs,
) -> Result<(CampaignFolder, CompareRequest), Failed> {
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
    let mut request: CompareRequest = folder.read_asked().map_err(failed)?;
    restore_secrets(&mut request, &named_targets(args))?;
    if let Some(time) = args.design.max_time {
        request.max_s = Some(time.as_secs_f64());
    }
    if let Some(first) = request.targets.first() {
        request.plan.target.url.clone_from(&first.url);
    }
    request.check()?;
    refuse_profile_at_once(args, request.design.at_once)?;
    plan::complete_headers(&mut request.plan, &args.endpoint)?;
    plan::check(&request.plan)?;
    Ok((folder, request))
}

/// The commands that the folder at `path` would run.
pub(super) fn folder_commands(
    request: &CompareRequest,
    path: &Path,
    args: &CompareArgs,
) -> Result<FolderCommands, Failed> {
    let flag = |command: &Option<String>| -> Vec<_> {
        command.iter().map(|text| ("--switch-cmd", text.clone())).collect()
    };
    let typed = flag(&args.design.switch_cmd);
    FolderCommands::new(path, flag(&request.switch_cmd), &typed, args.allow_commands)
}

/// Who is compared.
fn named_targets(args: &CompareArgs) -> NamedTargets<'_> {
    NamedTargets {
        list: args.list.as_deref(),
        typed: &args.targets,
        reference: args.reference.as_deref(),
        with_itself: args.aa,
        vary: &args.vary,
        gpus: &args.gate.gpus,
        prices: &args.gate.price_per_gpu_hour,
    }
}

/// Load flags as `run` has them; the rate stands for the levels to come.
fn load_args(args: &DesignArgs) -> LoadArgs {
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
        warmup: Some(LoadExtent::Time(args.warmup)),
        cooldown: Duration::ZERO,
        drain: args.drain,
        client: args.client.clone(),
    }
}

/// Refuses metrics flags that do not say which side they are about.
fn check_metrics_flags(plan: &mut Plan, args: &CompareArgs, targets: usize) -> Result<(), Failed> {
    let are_several = targets > 1 && args.design.switch_cmd.is_none();
    if are_several && !plan.observe.metrics_urls.is_empty() {
        return Err(Failed::usage("--metrics-url does not say which target's page it is")
            .hint("remove it: goodput reads the metrics page next to the API of each target"));
    }
    if are_several && matches!(plan.observe.gpu, GpuPlan::Exporters(_)) {
        return Err(Failed::usage("--gpu does not say which target's GPUs these are")
            .hint("measure each target on its own with `goodput run`, or use --switch-cmd"));
    }
    if args.design.at_once {
        if args.endpoint.observe.gpu.as_ref().is_some_and(|gpu| *gpu != GpuPlan::Off) {
            return Err(Failed::usage(
                "with --at-once, goodput cannot tell which target a GPU works for",
            )
            .hint("remove --gpu, or measure the targets one after the other"));
        }
        plan.observe.gpu = GpuPlan::Off;
    }
    Ok(())
}

/// A profiler that writes its trace would slow down the other sides, which are measured at the same
/// time.
fn refuse_profile_at_once(args: &CompareArgs, at_once: bool) -> Result<(), Failed> {
    if args.endpoint.hooks.profile && at_once {
        return Err(Failed::usage("--profile cannot be combined with --at-once").hint(
            "remove one of them: when targets are measured in turn, one's profiler does not slow \
             another's run",
        ));
    }
    Ok(())
}

fn build_design(
    args: &CompareArgs,
    targets: &[TargetSpec],
    gates: Vec<Gate>,
) -> Result<Design, Failed> {
    let DesignArgs { blocks, no_early_end, .. } = args.design;
    let early = LOOKS.into_iter().filter(|look| *look < blocks && !no_early_end);
    Ok(Design {
        sides: targets.iter().map(|one| one.name.clone()).collect(),
        quantity: if args.design.search { Quantity::Goodput } else { Quantity::Runs },
        levels: sorted_levels(&args.design)?,
        looks: early.chain([blocks]).collect(),
        order: match args.design.order {
            OrderName::Abba => BlockOrder::Abba,
            OrderName::Random => BlockOrder::Random,
        },
        at_once: args.design.at_once,
        run_s: args.design.duration.map_or(RUN_S, |time| time.as_secs_f64()),
        burn_in_s: args.design.warmup.as_secs_f64(),
        settle_s: args.design.settle.as_secs_f64(),
        seed: args.design.client.seed,
        margin: args.gate.margin,
        gates,
        same_target: args.aa,
        under_test: args.gate.under_test.clone(),
        varied: if args.vary.is_empty() {
            Vec::new()
        } else {
            targets.iter().map(|one| one.varied.clone()).collect()
        },
        ..Design::default()
    })
}

/// The requested levels in ascending order without duplicates; empty if goodput chooses the level.
fn sorted_levels(args: &DesignArgs) -> Result<Vec<Level>, Failed> {
    let mut levels: Vec<Level> = args.concurrency.iter().copied().map(Level::Users).collect();
    for rate in &args.rate {
        let Rate::PerSecond(rate) = rate else {
            return Err(Failed::usage("a comparison cannot use --rate inf")
                .hint("use --concurrency 64, for example, to load a server with 64 users"));
        };
        levels.push(Level::Rate(*rate));
    }
    levels.sort_by(|a, b| a.value().total_cmp(&b.value()));
    levels.dedup();
    Ok(levels)
}

#[cfg(test)]
mod tests;
