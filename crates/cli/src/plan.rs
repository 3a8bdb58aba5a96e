//! From arguments to a [`Plan`], and which flags cannot be combined with a plan file.

mod load;
mod observe;
mod slo;
mod workload;

pub(crate) use goodput_lab::checks::check_plan as check;
pub(crate) use load::default_workers;
pub(crate) use observe::parse_meta;
pub(crate) use slo::{apply_slo_flags as promise, slo_question};
pub(crate) use workload::{is_description, resolve_workload as workload};

use std::collections::BTreeMap;

use goodput_model::{
    Api, ConnectionPolicy, Header, Http, Measure, ObservePlan, Plan, REDACTED, Target,
};
use goodput_record::read_plan;

use crate::args::{
    ApiName, ConnectionsName, EndpointArgs, LoadArgs, OutputArgs, RunArgs, SloArgs, Switch,
    WorkloadArgs,
};
use crate::error::Failed;
use goodput_lab::token_calibration;

/// The plan of a run.
pub(crate) fn resolve_plan(args: &RunArgs) -> Result<Plan, Failed> {
    let mut plan = match &args.plan {
        Some(path) => read_plan(path).map_err(|error| {
            Failed::usage(error.to_string()).hint("the plan.toml of a run folder is one")
        })?,
        None => of_whole_rotations(args)?,
    };
    if args.plan.is_some() {
        if let Some(target) = &args.target {
            plan.target.url.clone_from(target);
        }
        complete_headers(&mut plan, &args.endpoint)?;
        if args.output.percentiles.is_some() {
            plan.measure.percentiles = percentiles_or_default(args.output.percentiles.as_deref());
        }
        plan.workload.save_text |= args.output.save_text;
        plan.measure.early_stopping |= args.output.early_stopping;
        if args.endpoint.model.is_some() {
            plan.target.model.clone_from(&args.endpoint.model);
        }
    }
    observe::apply_observe_flags(&args.endpoint, &mut plan)?;
    slo::apply_slo_flags(&args.slo, &mut plan.measure)?;
    check(&plan)?;
    Ok(plan)
}

/// The plan that the flags of a run describe, unchecked; a tiling ends with a whole rotation.
fn of_whole_rotations(args: &RunArgs) -> Result<Plan, Failed> {
    let mut plan = unchecked_plan(&args.into())?;
    load::end_with_a_rotation(&args.load, &plan.workload, &mut plan.load);
    Ok(plan)
}

/// What flags say about a run.
pub(crate) struct Flags<'a> {
    pub(crate) target: Option<&'a str>,
    pub(crate) load: &'a LoadArgs,
    pub(crate) workload: &'a WorkloadArgs,
    pub(crate) slo: &'a SloArgs,
    pub(crate) endpoint: &'a EndpointArgs,
    pub(crate) output: &'a OutputArgs,
}

impl<'a> From<&'a RunArgs> for Flags<'a> {
    fn from(args: &'a RunArgs) -> Self {
        Self {
            target: args.target.as_deref(),
            load: &args.load,
            workload: &args.workload,
            slo: &args.slo,
            endpoint: &args.endpoint,
            output: &args.output,
        }
    }
}

/// The plan of the runs of another verb.
pub(crate) fn plan_from_flags(flags: &Flags<'_>) -> Result<Plan, Failed> {
    let mut plan = unchecked_plan(flags)?;
    observe::apply_observe_flags(flags.endpoint, &mut plan)?;
    slo::apply_slo_flags(flags.slo, &mut plan.measure)?;
    check(&plan)?;
    Ok(plan)
}

/// The plan that the flags describe, without the server metrics, the SLO, and the checks.
fn unchecked_plan(args: &Flags<'_>) -> Result<Plan, Failed> {
    let url = args.target.unwrap_or_default().to_owned();
    let mut workload = workload::resolve_workload(args.workload)?;
    workload.save_text = args.output.save_text;
    let is_counted = workload.tokenizer.is_some();
    if args.workload.no_length_check && !is_counted && workload.calibration.is_none() {
        workload.calibration = Some(token_calibration::estimated_calibration());
    }
    goodput_lab::checks::parse_session_header(&workload)?;
    let load = load::resolve_load(args.load, &workload, &args.workload.trace)?;
    Ok(Plan {
        schema: Plan::SCHEMA.to_owned(),
        target: build_target(url, args.endpoint, args.load)?,
        measure: Measure {
            canary: args.load.client.canary == Switch::On,
            early_stopping: args.output.early_stopping,
            until: args.load.until.clone(),
            min_duration: load::shortest_duration(args.load, &load),
            ..Measure::new(percentiles_or_default(args.output.percentiles.as_deref()))
        },
        load,
        workload,
        observe: ObservePlan::default(),
        system: BTreeMap::new(),
    })
}

fn build_target(url: String, args: &EndpointArgs, load: &LoadArgs) -> Result<Target, Failed> {
    let named = url.parse::<goodput_wire::BaseUrl>().ok().and_then(|url| url.names_api());
    let api = match args.api {
        Some(ApiName::Chat) => Api::Chat,
        Some(ApiName::Completions) => Api::Completions,
        None => named.unwrap_or(Api::Chat),
    };
    Ok(Target {
        url,
        api,
        stream: !args.no_stream,
        usage: !args.no_usage && !args.no_stream,
        model: args.model.clone(),
        http: if args.http2 { Http::Http2 } else { Http::Http1 },
        connections: match args.connections {
            ConnectionsName::Reuse => ConnectionPolicy::Reuse,
            ConnectionsName::PerRequest => ConnectionPolicy::PerRequest,
        },
        timeout: load.client.timeout,
        probe: !args.no_probe,
        wait_ready: args.wait_ready,
        api_key_env: args.api_key_env.clone().unwrap_or_else(|| DEFAULT_KEY_ENV.to_owned()),
        headers: parse_headers(&args.headers)?,
        extra_body: args.extra_body.clone(),
        cacert: args.cacert.clone(),
        insecure: args.insecure,
    })
}

/// Where the API key is looked for when nothing is said.
pub(crate) use goodput_lab::readiness::DEFAULT_KEY_ENV;

fn parse_headers(lines: &[String]) -> Result<Vec<Header>, Failed> {
    let read = |line: &String| match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err(Failed::usage("--header without a colon").hint("write --header 'Name: value'")),
    };
    lines.iter().map(read).collect()
}

/// The requested percentiles in ascending order without duplicates, or the default ones.
pub(crate) fn percentiles_or_default(asked: Option<&[f64]>) -> Vec<f64> {
    let mut percentiles = asked.unwrap_or(&Measure::PERCENTILES).to_vec();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    percentiles
}

/// A plan from disk lacks the values of its headers and of its queries: they must be given again.
pub(crate) fn complete_headers(plan: &mut Plan, args: &EndpointArgs) -> Result<(), Failed> {
    observe::complete_urls(args, plan);
    for given in parse_headers(&args.headers)? {
        plan.target.headers.retain(|header| !header.name.eq_ignore_ascii_case(&given.name));
        plan.target.headers.push(given);
    }
    match plan.target.headers.iter().find(|header| header.value == REDACTED) {
        None => Ok(()),
        Some(header) => {
            let message =
                format!("the plan does not contain the value of header `{}`", header.name);
            let hint = format!("values are never saved; add --header '{}: …'", header.name);
            Err(Failed::usage(message).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use goodput_workload::find_preset;

    use super::*;
    use crate::args::{Arguments, Verb};

    #[test]
    fn a_plan_of_code_is_the_plan_of_the_same_flags() {
        let words = "goodput run http://127.0.0.1:9 --rate 5 --duration 3s --workers 1";
        let Verb::Run(args) = Arguments::parse_from(words.split(' ')).verb else {
            panic!("not a run")
        };
        let class = find_preset("chat").unwrap();
        let plan = Plan::open_loop("http://127.0.0.1:9", class, 5.0, Duration::from_secs(3));
        assert_eq!(resolve_plan(&args).unwrap(), plan);
    }
}
