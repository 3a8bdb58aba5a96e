//! A run of ours in the form of the others, so that the same list is gone through.

use goodput_model::{
    Caveat, LengthDistribution, LengthRange, Plan, Reported, ReportedGoodput, ReportedLoad,
    ReportedMetric, ReportedMode, ReportedWarmup, Severity, SourcePlan, SourceTool, Verdict,
};

use super::{Audit, Item, Source, Status, audit_reported, system};
use crate::summary::{Metric, RunState, Summary};

/// What a run of ours is worth: its own verdict and caveats first, then the list. The plan knows the
/// lengths; a summary alone is read too.
pub fn audit_run(summary: &Summary, plan: Option<&Plan>) -> Audit {
    let run = to_reported(summary, plan);
    let mut items = own_items(summary.verdict, &summary.caveats, "run");
    let is_simulated = summary.run.is_simulated();
    // A simulated engine has no hardware that anybody could state.
    let could_exist = |item: &Item| {
        !(is_simulated && item.status == Status::Missing && system::CHECKS.contains(&&*item.check))
    };
    items.extend(audit_reported(&run).items.into_iter().filter(could_exist));
    Audit::new(&run, items)
}

/// The verdict of a result of ours and the caveats behind it; `what` it is, in a word.
pub fn own_items(verdict: Verdict, caveats: &[Caveat], what: &str) -> Vec<Item> {
    let of = |caveat: &Caveat| Item {
        check: format!("caveat_{}", caveat.code),
        title: caveat.code.name().replace('_', " "),
        status: if caveat.severity == Severity::Void { Status::Wrong } else { Status::Doubtful },
        severity: caveat.severity,
        evidence: caveat.message.clone(),
        advice: caveat.advice.clone().unwrap_or_default(),
        source: Source::OwnVerdict,
    };
    std::iter::once(own_verdict(verdict, caveats, what)).chain(caveats.iter().map(of)).collect()
}

fn own_verdict(stated: Verdict, all: &[Caveat], what: &str) -> Item {
    let title = format!("the {what}'s verdict");
    let by_caveats = Verdict::from_caveats(all);
    if stated != by_caveats {
        return Item {
            check: "own_verdict".to_owned(),
            title,
            status: Status::Wrong,
            severity: Severity::Void,
            evidence: format!(
                "{} is stated, {} follows from the caveats in the file",
                stated.name(),
                by_caveats.name()
            ),
            advice: super::arithmetic::ADVICE.to_owned(),
            source: Source::OwnVerdict,
        };
    }
    let (status, severity) = match stated {
        Verdict::Valid => (Status::Ok, Severity::Info),
        Verdict::Suspect => (Status::Doubtful, Severity::Warn),
        Verdict::Void => (Status::Wrong, Severity::Void),
    };
    let caveats = match all.len() {
        0 => "without caveats".to_owned(),
        1 => "with one caveat".to_owned(),
        n => format!("with {n} caveats"),
    };
    Item {
        check: "own_verdict".to_owned(),
        title,
        status,
        severity,
        evidence: format!("{} {caveats}", stated.name()),
        advice: String::new(),
        source: Source::OwnVerdict,
    }
}

/// The run in the words of [`Reported`].
fn to_reported(summary: &Summary, plan: Option<&Plan>) -> Reported {
    let mut run = Reported::new(SourceTool::Goodput);
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    run.version = text(&summary.run.version);
    run.model = text(&summary.run.model);
    run.backend = text(&summary.run.api);
    run.started = text(&summary.run.started);
    run.duration_s = Some(summary.window.end_s - summary.window.start_s);
    run.load = reported_load(summary);
    run.warmup = ReportedWarmup {
        requests: Some(summary.requests.warmup),
        seconds: (summary.requests.warmup > 0).then_some(summary.window.start_s),
    };
    run.asked = Some(summary.requests.scheduled);
    run.ok = Some(summary.requests.ok);
    run.failed = Some(summary.requests.failed);
    run.input_tokens = Some(summary.tokens.input);
    run.output_tokens = Some(summary.tokens.output);
    run.token_source = text(&summary.tokens.output_source);
    run.requests_per_s = summary.throughput.requests_per_s;
    run.output_tokens_per_s = summary.throughput.output_tokens_per_s;
    run.total_tokens_per_s = summary.throughput.total_tokens_per_s;
    for name in ["ttft", "tpot", "itl", "e2e"] {
        if let Some(stated) = summary.metrics.get(name).filter(|metric| metric.n > 0) {
            run.metrics.insert(name.to_owned(), reported_metric(stated));
        }
    }
    if run.metrics.contains_key("e2e") {
        run.metrics.insert("e2e_sched".to_owned(), run.metrics["e2e"].clone());
    }
    run.workload = text(&summary.run.workload);
    if let Some(plan) = plan {
        run.input_lengths = planned_lengths(plan, input_lengths);
        run.output_lengths = planned_lengths(plan, output_lengths);
    }
    run.goodput = summary.slo.as_ref().map(|slo| ReportedGoodput {
        terms: slo.slo.clone(),
        requests_per_s: slo.goodput_rps,
        share: slo.attainment,
    });
    run.repeats = summary.run.repeat.map(|repeat| repeat.of.into());
    run.setup = system::reported_setup(summary);
    run.seed = Some(summary.run.seed);
    run.streaming = Some(summary.run.stream);
    if summary.run.state != RunState::Complete {
        run.remarks.push("the run did not reach its planned end".to_owned());
    }
    run
}

fn reported_load(summary: &Summary) -> ReportedLoad {
    let load = &summary.load;
    let mode = match load.mode.as_str() {
        "open" | "shaped" | "replay" => ReportedMode::Open,
        "capped" => ReportedMode::Capped,
        "burst" => ReportedMode::Burst,
        "closed" => ReportedMode::Closed,
        _ => ReportedMode::Unknown,
    };
    let shape = load.shape.as_ref().map(|shape| format!("a rate that changes ({shape})"));
    let replay = (load.mode == "replay").then(|| "trace".to_owned());
    ReportedLoad {
        mode,
        rate_rps: load.offered_rps,
        arrivals: shape.or(replay).or_else(|| load.arrivals.clone()),
        burstiness: None,
        concurrency: load.concurrency.or(load.max_concurrency).map(u64::from),
        peak_concurrency: None,
        mean_concurrency: None,
    }
}

fn reported_metric(metric: &Metric) -> ReportedMetric {
    let value = |(percent, stated): (&String, &crate::summary::Percentile)| {
        Some((percent.parse::<f64>().ok()?, stated.value?))
    };
    let mut percentiles: Vec<_> = metric.percentiles.iter().filter_map(value).collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    ReportedMetric {
        n: Some(metric.n),
        mean: metric.mean,
        std: metric.std,
        median: None,
        min: metric.min,
        max: metric.max,
        percentiles,
    }
}

/// Lengths as planned: the least and the greatest that are drawn in any class.
fn planned_lengths(
    plan: &Plan,
    of: fn(&SourcePlan) -> Option<LengthDistribution>,
) -> Option<LengthRange> {
    let range = |lengths: LengthDistribution| match lengths {
        LengthDistribution::Fixed(n) => (f64::from(n), f64::from(n)),
        LengthDistribution::Uniform(low, high) => (f64::from(low), f64::from(high)),
        LengthDistribution::Normal(_, _, clip)
        | LengthDistribution::LogNormal(_, _, clip)
        | LengthDistribution::Zipf(_, clip) => (f64::from(clip.low), lengths.typical_most()),
        LengthDistribution::Exponential(_) => (1.0, lengths.typical_most()),
    };
    let mut all = plan.workload.classes.iter().map(|class| of(&class.source).map(range));
    let whole = all.try_fold((f64::INFINITY, 0.0_f64), |(min, max), each| {
        each.map(|(low, high)| (min.min(low), max.max(high)))
    });
    whole.filter(|(min, max)| min <= max).map(|(min, max)| LengthRange { min, max })
}

fn input_lengths(source: &SourcePlan) -> Option<LengthDistribution> {
    match source {
        SourcePlan::Synthetic { input, .. } => Some(*input),
        _ => None,
    }
}

fn output_lengths(source: &SourcePlan) -> Option<LengthDistribution> {
    match source {
        SourcePlan::Synthetic { output, .. } => Some(*output),
        _ => None,
    }
}
