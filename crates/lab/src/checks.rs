//! What a plan and its workload must satisfy before a run, beyond what their types say.

use std::path::Path;
use std::time::Duration;

use goodput_model::{
    Api, GpuPlan, Load, Measure, MetricName, Mode, Plan, REDACTED, Rate, WorkloadPlan,
};
use goodput_observe::MetricsMap;
use goodput_record::read_toml;
use goodput_wire::{BaseUrl, SessionHeader, UrlError};
use goodput_workload::Workload;

use crate::error::Failed;

/// Pages are not read more often than this.
const SHORTEST: Duration = Duration::from_millis(100);

/// Threads that send and receive, at most.
const MOST_WORKERS: u32 = 256;

/// What flags and plan files can both get wrong.
pub fn check_plan(plan: &Plan) -> Result<(), Failed> {
    if plan.schema != Plan::SCHEMA {
        return Err(Failed::usage(format!(
            "the plan's format is `{}`, not `{}`",
            plan.schema,
            Plan::SCHEMA
        )));
    }
    if plan.target.url.contains(REDACTED) {
        return Err(Failed::usage(
            "the plan does not contain the query values of its URL, which are never saved",
        )
        .hint("give the target again: goodput run URL --plan FILE"));
    }
    if !(1..=MOST_WORKERS).contains(&plan.load.workers)
        || plan.measure.percentiles.iter().any(|p| !(*p > 0.0 && *p < 100.0))
    {
        return Err(Failed::usage(format!(
            "the plan has no workers or more than {MOST_WORKERS}, or a percentile outside 0 to 100"
        )));
    }
    check_observed(plan)?;
    check_slo(plan)?;
    check_until(plan)?;
    check_load(&plan.load)
}

/// What is looked at on the server's side.
fn check_observed(plan: &Plan) -> Result<(), Failed> {
    let observe = &plan.observe;
    let exporters: &[String] = match &observe.gpu {
        GpuPlan::Exporters(urls) => urls,
        _ => &[],
    };
    for (urls, flag) in [(&observe.metrics_urls[..], "--metrics-url"), (exporters, "--gpu")] {
        for (place, url) in urls.iter().enumerate() {
            let shown = parse_page_url(url)?.shown();
            if url.contains(REDACTED) {
                return Err(Failed::usage(format!(
                    "the plan does not contain the query of `{shown}`"
                ))
                .hint(format!(
                    "query values are never saved; give the URL again with {flag} URL"
                )));
            }
            if urls.iter().take(place).any(|other| other == url) {
                return Err(Failed::usage(format!("`{shown}` is named twice"))
                    .hint("remove one: its figures would count twice"));
            }
        }
    }
    if observe.interval < SHORTEST {
        return Err(Failed::usage("the metrics interval is too short")
            .hint("use --metrics-interval 100ms or longer"));
    }
    read_metrics_map(plan).map(drop)
}

/// Checks the SLO.
fn check_slo(plan: &Plan) -> Result<(), Failed> {
    let Measure { slo, attainment, .. } = &plan.measure;
    if attainment.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(Failed::usage("the plan's attainment must lie between 0 and 1"));
    }
    let Some(slo) = slo else {
        return match attainment {
            None => Ok(()),
            Some(_) => Err(Failed::usage("--attainment needs an SLO")
                .hint("add --slo 'ttft < 500ms, tpot < 50ms'")),
        };
    };
    match slo.terms.iter().find(|term| term.metric.needs_stream()) {
        Some(term) if !plan.target.stream => {
            let message = format!("`{term}` cannot be measured without streaming");
            Err(Failed::usage(message).hint("use e2e in the SLO, or remove --no-stream"))
        }
        _ => Ok(()),
    }
}

/// What rules of `--until` cannot be about.
fn check_until(plan: &Plan) -> Result<(), Failed> {
    let Some(until) = &plan.measure.until else { return Ok(()) };
    match plan.load.mode {
        Mode::Open { rate: Rate::Infinite, .. } => {
            return Err(Failed::usage(
                "--until does not apply to a burst: every request is sent at once",
            )
            .hint("remove --until"));
        }
        Mode::Shaped { .. } => {
            return Err(Failed::usage(
                "--until does not apply to a changing rate: its figures do not settle with time",
            )
            .hint("remove --until, or use a constant --rate"));
        }
        _ => {}
    }
    if plan.measure.min_duration > plan.load.duration && plan.load.duration.is_some() {
        return Err(Failed::usage("--min-duration is longer than the run")
            .hint("use a longer --duration or a shorter --min-duration"));
    }
    let of_streams = [MetricName::Ttft, MetricName::Ttfa, MetricName::Tpot, MetricName::MaxGap];
    match until.0.iter().find(|goal| of_streams.contains(&goal.metric)) {
        Some(goal) if !plan.target.stream => {
            let message = format!("without streaming, answers have no {}", goal.metric);
            Err(Failed::usage(message).hint("use --until 'p95 e2e ±10%', or remove --no-stream"))
        }
        _ => Ok(()),
    }
}

/// How much load, when, and for how long.
fn check_load(load: &Load) -> Result<(), Failed> {
    let no_room = Err(Failed::usage("the plan allows no request in flight"));
    let ends = load.duration.is_some() || load.num_requests.is_some();
    match load.mode {
        _ if load.num_requests == Some(0) => {
            Err(Failed::usage("the plan sends no requests: num_requests is 0")
                .hint("remove num_requests, or set it to 1 or more"))
        }
        _ if load.mode.most_in_flight() == Some(0) => no_room,
        Mode::Closed { concurrency: 0, .. } => no_room,
        Mode::Open { rate: Rate::Infinite, .. } => check_burst(load),
        Mode::Replay { time_scale, .. } if !(1e-6..=1e6).contains(&time_scale) => Err(
            Failed::usage(format!("the time scale {time_scale} must be a finite number above 0")),
        ),
        Mode::Replay { .. } => Ok(()),
        _ if !ends => {
            Err(Failed::usage("the plan has no end: set a duration or a number of requests"))
        }
        Mode::Shaped { .. } if load.duration.is_some_and(|duration| duration.is_zero()) => {
            Err(Failed::usage("warm-up and cooldown leave no part of the schedule to measure"))
        }
        _ => Ok(()),
    }
}

/// Everything at one instant: nothing comes before or after it, and it must end.
fn check_burst(load: &Load) -> Result<(), Failed> {
    if load.num_requests.is_none() {
        return Err(Failed::usage(
            "--rate inf sends everything at once and needs a number of requests",
        )
        .hint("add --num-requests N"));
    }
    if !load.warmup.is_none() || !load.cooldown.is_zero() {
        return Err(Failed::usage("a burst cannot have a warm-up or cooldown")
            .hint("warm the server up with a separate run"));
    }
    Ok(())
}

/// What is only known once the workload is there.
pub fn check_workload(plan: &Plan, workload: &Workload) -> Result<(), Failed> {
    if matches!(plan.load.mode, Mode::Replay { .. }) && workload.arrival(0).is_none() {
        return Err(Failed::usage("no load given: the workload has no arrival times")
            .hint("--rate 20 sends 20 requests per second; --concurrency 64 plays 64 users"));
    }
    let has_images = plan.workload.classes.iter().any(|class| class.images.is_some());
    if has_images && plan.target.api == Api::Completions {
        return Err(Failed::usage("the completions API cannot carry images").hint("use --api chat"));
    }
    Ok(())
}

/// The header that tells sessions apart, where one was asked for.
pub fn parse_session_header(plan: &WorkloadPlan) -> Result<Option<SessionHeader>, Failed> {
    let header = plan.session_header.as_deref().map(str::parse).transpose();
    header.map_err(|error: goodput_wire::EndpointError| {
        Failed::usage(error.to_string()).hint("write --session-header x-session-id")
    })
}

/// A URL of a page.
pub fn parse_page_url(url: &str) -> Result<BaseUrl, Failed> {
    url.parse().map_err(|UrlError { url, reason, .. }: UrlError| {
        Failed::usage(format!("`{url}` is not the URL of a metrics page: {reason}"))
            .hint("for example http://localhost:8000/metrics")
    })
}

/// The map of names that the plan wants to be used.
pub fn read_metrics_map(plan: &Plan) -> Result<Option<MetricsMap>, Failed> {
    let Some(path) = &plan.observe.metrics_map else { return Ok(None) };
    let map: MetricsMap = read_toml(Path::new(path)).map_err(|error| {
        Failed::usage(error.to_string()).hint("docs/server-names.md has an example")
    })?;
    map.check().map_err(|why| Failed::usage(format!("`{path}` cannot be used: {why}")))?;
    Ok(Some(map))
}
