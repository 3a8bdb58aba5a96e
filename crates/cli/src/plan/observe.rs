//! What to observe on the server's side.

use std::collections::BTreeMap;

use goodput_model::Plan;

use crate::args::{EndpointArgs, MetricsSwitch};
use crate::error::Failed;

/// The share of requests that are traced when nothing is said.
const TRACE_SHARE: f64 = 0.01;

/// Applies the flags that were typed; everything else stays as the plan has it.
pub(crate) fn apply_observe_flags(args: &EndpointArgs, plan: &mut Plan) -> Result<(), Failed> {
    let (typed, observe) = (&args.observe, &mut plan.observe);
    if typed.metrics == Some(MetricsSwitch::Off) && !typed.metrics_urls.is_empty() {
        return Err(Failed::usage("--metrics off and --metrics-url contradict each other")
            .hint("remove one of them"));
    }
    if let Some(switch) = typed.metrics {
        observe.metrics = switch == MetricsSwitch::On;
    }
    if let Some(interval) = typed.metrics_interval {
        observe.interval = interval;
    }
    if let Some(map) = &typed.metrics_map {
        observe.metrics_map = Some(map.display().to_string());
    }
    complete_urls(args, plan);
    let observe = &mut plan.observe;
    if let Some(idle) = typed.gpu_idle {
        observe.gpu_idle = idle;
    }
    let share = args.hooks.traces.as_ref().map(|_| TRACE_SHARE);
    observe.trace_share = typed.trace_share.or(observe.trace_share).or(share);
    plan.system.extend(parse_meta(&typed.meta)?);
    Ok(())
}

/// What was typed with `--meta`.
pub(crate) fn parse_meta(meta: &[String]) -> Result<BTreeMap<String, String>, Failed> {
    let pair = |pair: &String| {
        let (key, value) = pair
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
            .ok_or_else(|| Failed::usage("--meta without `=`").hint("write --meta gpu=H200"))?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    meta.iter().map(pair).collect()
}

/// A plan from disk lacks the query values of its URLs: they must be given again.
pub(super) fn complete_urls(args: &EndpointArgs, plan: &mut Plan) {
    let (typed, observe) = (&args.observe, &mut plan.observe);
    if !typed.metrics_urls.is_empty() {
        observe.metrics_urls.clone_from(&typed.metrics_urls);
    }
    if let Some(gpu) = &typed.gpu {
        observe.gpu = gpu.clone();
    }
}
