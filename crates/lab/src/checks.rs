//! What a plan and its workload must satisfy before a run, beyond what their types say.

use std::path::Path;

use goodput_model::{Api, Mode, Plan, WorkloadPlan};
use goodput_observe::MetricsMap;
use goodput_record::read_toml;
use goodput_wire::{BaseUrl, SessionHeader, UrlError};
use goodput_workload::Workload;

use crate::error::Failed;

/// What is only known once the workload is there.
pub fn check_workload(plan: &Plan, workload: &Workload) -> Result<(), Failed> {
    if matches!(plan.load.mode, Mode::Replay { .. }) && workload.arrival(0).is_none() {
        return Err(Failed::usage("how much load? the workload does not say when")
            .hint("--rate 20 sends 20 requests per second; --concurrency 64 plays 64 users"));
    }
    let has_images = plan.workload.classes.iter().any(|class| class.images.is_some());
    if has_images && plan.target.api == Api::Completions {
        return Err(Failed::usage("completions cannot carry images").hint("use --api chat"));
    }
    Ok(())
}

/// The header that tells sessions apart, where one was asked for.
pub fn session_header(plan: &WorkloadPlan) -> Result<Option<SessionHeader>, Failed> {
    let header = plan.session_header.as_deref().map(str::parse).transpose();
    header.map_err(|error: goodput_wire::EndpointError| {
        Failed::usage(error.to_string()).hint("write --session-header x-session-id")
    })
}

/// A URL of a page.
pub fn page_url(url: &str) -> Result<BaseUrl, Failed> {
    url.parse().map_err(|UrlError { url, reason, .. }: UrlError| {
        Failed::usage(format!("`{url}` is not the URL of a page: {reason}"))
            .hint("a page of metrics looks like http://localhost:8000/metrics")
    })
}

/// The map of names that the plan wants to be used.
pub fn metrics_map(plan: &Plan) -> Result<Option<MetricsMap>, Failed> {
    let Some(path) = &plan.observe.metrics_map else { return Ok(None) };
    let map: MetricsMap = read_toml(Path::new(path)).map_err(|error| {
        Failed::usage(error.to_string()).hint("docs/server-names.md shows such a file")
    })?;
    map.check().map_err(|why| Failed::usage(format!("`{path}` cannot be used: {why}")))?;
    Ok(Some(map))
}
