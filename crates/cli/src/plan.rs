//! From what was typed to a [`Plan`], and what may not be written beside it.

use goodput_model::{
    Api, Arrivals, ConnectionPolicy, Header, Http, Load, Measure, Mode, OutputLength, ParseError,
    Plan, REDACTED, Rate, SourcePlan, Target, WorkloadPlan,
};
use goodput_record::read_plan;
use goodput_workload::{PRESETS, preset};

use crate::args::{ApiName, ConnectionsName, EndpointArgs, LoadArgs, RunArgs, Switch};
use crate::error::Failed;

/// The plan of a run.
pub(crate) fn resolve(args: &RunArgs) -> Result<Plan, Failed> {
    let mut plan = match &args.plan {
        Some(path) => read_plan(path).map_err(|error| {
            Failed::usage(error.to_string()).hint("plan.toml of a run folder is such a file")
        })?,
        None => from_flags(args)?,
    };
    if args.plan.is_some() {
        if let Some(target) = &args.target {
            plan.target.url.clone_from(target);
        }
        complete_headers(&mut plan, args)?;
        if let Some(asked) = &args.output.percentiles {
            plan.measure.percentiles = percentiles(asked);
        }
        plan.workload.save_text |= args.output.save_text;
        if args.endpoint.model.is_some() {
            plan.target.model.clone_from(&args.endpoint.model);
        }
    }
    check(&plan)?;
    Ok(plan)
}

fn from_flags(args: &RunArgs) -> Result<Plan, Failed> {
    let url = args.target.clone().unwrap_or_default();
    Ok(Plan {
        schema: Plan::SCHEMA.to_owned(),
        target: target(url, &args.endpoint, &args.load)?,
        load: load(&args.load)?,
        workload: workload(args)?,
        measure: Measure {
            percentiles: percentiles(args.output.percentiles.as_deref().unwrap_or(&PERCENTILES)),
            canary: args.load.canary == Switch::On,
        },
    })
}

fn workload(args: &RunArgs) -> Result<WorkloadPlan, Failed> {
    let asked = &args.workload;
    let mut class = preset(&asked.workload).ok_or_else(|| {
        Failed::usage(format!("there is no workload named `{}`", asked.workload))
            .hint(format!("there is: {}", PRESETS.join(", ")))
    })?;
    if let SourcePlan::Synthetic { input, output } = &mut class.source {
        *input = asked.input_tokens.unwrap_or(*input);
        *output = asked.max_tokens.unwrap_or(*output);
    }
    let mut plan = WorkloadPlan::of(class);
    if asked.ignore_eos {
        plan.output = OutputLength::Exact;
    }
    plan.save_text = args.output.save_text;
    Ok(plan)
}

fn target(url: String, args: &EndpointArgs, load: &LoadArgs) -> Result<Target, Failed> {
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
        timeout: load.timeout,
        probe: !args.no_probe,
        wait_ready: args.wait_ready,
        api_key_env: args.api_key_env.clone().unwrap_or_else(|| DEFAULT_KEY_ENV.to_owned()),
        headers: headers(&args.headers)?,
        extra_body: args.extra_body.clone(),
        cacert: args.cacert.clone(),
        insecure: args.insecure,
    })
}

/// What is reported when nothing is said.
const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// Where the API key is looked for when nothing is said.
pub(crate) const DEFAULT_KEY_ENV: &str = "OPENAI_API_KEY";

fn headers(lines: &[String]) -> Result<Vec<Header>, Failed> {
    let read = |line: &String| match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err(Failed::usage("a --header has no colon").hint("write --header 'Name: value'")),
    };
    lines.iter().map(read).collect()
}

fn load(args: &LoadArgs) -> Result<Load, Failed> {
    let mode = match (args.rate, args.concurrency) {
        (Some(rate), _) => {
            Mode::Open { rate, arrivals: arrivals(args)?, max_concurrency: args.max_concurrency }
        }
        (None, Some(concurrency)) => {
            Mode::Closed { concurrency, think_time: args.think_time, pause_first: false }
        }
        (None, None) => {
            return Err(Failed::usage("how much load? neither --rate nor --concurrency is given")
                .hint("--rate 20 sends 20 requests per second; --concurrency 64 plays 64 users"));
        }
    };
    let is_burst = args.rate == Some(Rate::Infinite);
    let default_duration = args.num_requests.is_none().then_some(DEFAULT_DURATION);
    Ok(Load {
        seed: args.seed,
        duration: args.duration.or(default_duration).filter(|_| !is_burst),
        num_requests: args.num_requests,
        warmup: args.warmup,
        cooldown: args.cooldown,
        drain: args.drain,
        workers: args.workers.unwrap_or_else(default_workers),
        pin: args.pin,
        mode,
    })
}

/// METHOD 3.16: what a quick look takes.
const DEFAULT_DURATION: std::time::Duration = std::time::Duration::from_mins(1);

fn arrivals(args: &LoadArgs) -> Result<Arrivals, Failed> {
    let Some(shape) = args.burstiness else { return Ok(args.arrivals) };
    let wrong = |error: ParseError| Failed::usage(error.to_string());
    if shape <= 0.0 || !shape.is_finite() {
        return Err(Failed::usage("--burstiness must be a positive number").hint("1 is Poisson"));
    }
    format!("gamma:{}", 1.0 / shape.sqrt()).parse().map_err(wrong)
}

/// One core is left for pacing and recording where there is more than one.
pub(crate) fn default_workers() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores.saturating_sub(1).clamp(1, 64)).unwrap_or(1)
}

fn percentiles(asked: &[f64]) -> Vec<f64> {
    let mut percentiles = asked.to_vec();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    percentiles
}

/// A plan from disk lacks the values of its headers: they must be given again.
fn complete_headers(plan: &mut Plan, args: &RunArgs) -> Result<(), Failed> {
    for given in headers(&args.endpoint.headers)? {
        plan.target.headers.retain(|header| !header.name.eq_ignore_ascii_case(&given.name));
        plan.target.headers.push(given);
    }
    match plan.target.headers.iter().find(|header| header.value == REDACTED) {
        None => Ok(()),
        Some(header) => {
            let message = format!("the plan does not hold the value of header `{}`", header.name);
            let hint = format!("values are never saved; add --header '{}: …'", header.name);
            Err(Failed::usage(message).hint(hint))
        }
    }
}

/// Threads that send and receive, at most.
const MOST_WORKERS: u32 = 256;

/// What flags and plan files can both get wrong.
fn check(plan: &Plan) -> Result<(), Failed> {
    if plan.schema != Plan::SCHEMA {
        return Err(Failed::usage(format!(
            "the plan's format is `{}`, not `{}`",
            plan.schema,
            Plan::SCHEMA
        )));
    }
    if plan.target.url.contains(REDACTED) {
        return Err(Failed::usage("the plan does not hold the query values of its URL")
            .hint("give the target again: goodput run URL --plan FILE"));
    }
    let is_burst = matches!(plan.load.mode, Mode::Open { rate: Rate::Infinite, .. });
    if plan.load.duration.is_none() && plan.load.num_requests.is_none() && !is_burst {
        return Err(Failed::usage("the plan has neither a duration nor a number of requests"));
    }
    if !(1..=MOST_WORKERS).contains(&plan.load.workers)
        || plan.measure.percentiles.iter().any(|p| !(*p > 0.0 && *p < 100.0))
    {
        return Err(Failed::usage(format!(
            "the plan has no workers or more than {MOST_WORKERS}, or a percentile outside 0 to 100"
        )));
    }
    let no_room = Err(Failed::usage("the plan leaves no room for a single request in flight"));
    match plan.load.mode {
        _ if plan.load.mode.cap() == Some(0) => no_room,
        Mode::Closed { concurrency: 0, .. } => no_room,
        Mode::Open { rate: Rate::Infinite, .. } => check_burst(&plan.load),
        _ => Ok(()),
    }
}

/// Everything at one instant: nothing comes before or after it, and it must end.
fn check_burst(load: &Load) -> Result<(), Failed> {
    if load.num_requests.is_none() {
        return Err(Failed::usage("--rate inf sends everything at once: how many requests?")
            .hint("add --num-requests N"));
    }
    if !load.warmup.is_none() || !load.cooldown.is_zero() {
        return Err(Failed::usage("a burst has neither warm-up nor cooldown")
            .hint("warm the server up with a run of its own"));
    }
    Ok(())
}
