//! Result files of other tools as what one replica carries. Where a file holds every request, each is
//! judged as one of a run of ours; where it does not, the figures that it states have to do
//! ([`stated_figures`]). The error says what is missing.

use std::path::Path;
use std::time::Duration;

use goodput_campaign::capacity::{Basis, PlanNote, PlanNoteKind};
use goodput_campaign::sweep::{
    Axis, Figures, Level, Point, PointAsk, Purpose, SweepFacts, SweepPlan, SweepState, SweepSummary,
};
use goodput_model::{
    Chunk, ClassPlan, ErrorClass, Exchange, Failure, FailureStage, LengthDistribution, Measure,
    MetricName, Nanos, Phase, Plan, Planned, Reported, ReportedRequest, RequestRecord, Slo,
    SloMetric, SloQuestion, Stamps, TokenCount, TokenSource, Verdict, escape_control,
};
use goodput_stats::{RunFacts, Summary, analyze_run, audit_reported};

use super::refusal_error;
use super::stated::stated_figures;
use crate::error::Failed;
use crate::sweep::set_default_attainment;

/// The basis that these runs of a file are under this SLO.
pub(super) fn basis_of_reported(
    path: &Path,
    results: &[Reported],
    slo: &SloQuestion,
) -> Result<Basis, Failed> {
    let shown = path.display();
    let Some(terms) = &slo.slo else {
        return Err(Failed::usage(format!("`{shown}` states no SLO that a plan could rest on"))
            .hint("name one with --slo 'p99 ttft < 500ms'"));
    };
    let mut points = Vec::new();
    let mut is_stated = false;
    for (number, result) in (1..).zip(results) {
        let missing = missing_figures(result, terms);
        let figures = if missing.is_empty() {
            counted_figures(result, slo)
        } else {
            is_stated = true;
            stated_figures(result, slo).map_err(|figures| {
                // What single requests lack, where the file holds them.
                let holds_requests = result.details.as_ref().is_some_and(|all| !all.is_empty());
                lacking(path, result, terms, if holds_requests { &missing } else { &figures })
            })?
        };
        points.push((String::new(), sweep_point(number, result, figures)));
    }
    let axis = points.first().map_or(Axis::Rate, |(_, point)| point.ask.level.axis());
    let plan = SweepPlan { axis, search: false, ..sweep_plan_for(slo) };
    let summary = SweepSummary::new(sweep_facts(results), plan, points);
    let mut basis = Basis::from_sweep(&summary).map_err(refusal_error)?;
    basis.path = shown.to_string();
    basis.notes.extend(foreign_notes(path, results, is_stated));
    Ok(basis)
}

/// The settings of a list of loads under this SLO.
fn sweep_plan_for(slo: &SloQuestion) -> SweepPlan {
    let mut measure = Measure::new(Measure::PERCENTILES.to_vec());
    slo.apply_to(&mut measure);
    set_default_attainment(&mut measure);
    SweepPlan { slo: measure.slo, attainment: measure.attainment, ..SweepPlan::default() }
}

/// A file that neither holds nor states what the terms are about.
fn lacking(path: &Path, result: &Reported, terms: &Slo, missing: &[String]) -> Failed {
    let label = if result.label.is_empty() { "" } else { &format!(" ({})", result.label) };
    let what = format!(
        "`{}`{} cannot be judged by `{terms}`: it lacks {}",
        path.display(),
        escape_control(label),
        missing.join(", ")
    );
    Failed::usage(what).hint(
        "name a percentile that the file states, such as --slo 'p99 ttft < 500ms'; or save every \
         request: `vllm bench serve --save-result --save-detailed`, SGLang's --output-details, \
         GuideLLM's benchmarks.json; or give a figure with --goodput-rps",
    )
}

/// What these terms need of single requests and the file does not hold.
fn missing_figures(result: &Reported, slo: &Slo) -> Vec<String> {
    let Some(all) = result.details.as_deref().filter(|all| !all.is_empty()) else {
        return vec!["its single requests".to_owned()];
    };
    let lacks = |has: fn(&ReportedRequest) -> bool| {
        all.iter().filter(|request| !request.is_failed).any(|request| !has(request))
    };
    let about = |names: &[MetricName]| {
        let is =
            |metric: SloMetric| matches!(metric, SloMetric::Request(name) if names.contains(&name));
        slo.terms.iter().any(|term| is(term.metric))
    };
    let is_fluid = slo.terms.iter().any(|term| term.metric == SloMetric::Fluidity);
    let needs_gaps = is_fluid || about(&[MetricName::Itl, MetricName::MaxGap]);
    let mut missing = Vec::new();
    let mut check = |is_missing: bool, what| {
        if is_missing {
            missing.push(String::from(what));
        }
    };
    let starts = all.iter().all(|request| request.start_s.is_some());
    check(!starts, "the instant at which each request was sent");
    check(lacks(|request| request.ttft_ms.is_some()), "the TTFT of each request");
    check(lacks(|request| request.total_ms().is_some()), "the time that each request took");
    check(lacks(|request| request.output_tokens.is_some()), "the output tokens of each request");
    check(needs_gaps && lacks(|request| request.gaps_ms.is_some()), "the time between tokens");
    missing
}

/// What its single requests say, each judged as one of a run of ours.
fn counted_figures(result: &Reported, slo: &SloQuestion) -> Figures {
    let mut figures = Figures::from_summary(&judge_requests(result, slo));
    // Its client was another one, which left no trace of itself.
    (figures.verdict, figures.doubts) = (Verdict::Valid, Vec::new());
    figures
}

/// One run of the file as a point of a sweep.
fn sweep_point(number: u32, result: &Reported, figures: Figures) -> Point {
    let users = result.load.concurrency.filter(|_| result.load.rate_rps.is_none());
    let rate = result.load.rate_rps.or(figures.scheduled_rps).or(figures.requests_per_s);
    let level = match users.and_then(|users| u32::try_from(users).ok()) {
        Some(users) => Level::Users(users),
        None => Level::Rate(rate.unwrap_or(f64::NAN)),
    };
    let ask = PointAsk {
        number,
        purpose: Purpose::Grid,
        level,
        burn_in_s: 0.0,
        seconds: figures.window_s,
        requests: None,
        seed: result.seed.unwrap_or(0),
        stops: None,
    };
    Point { ask, figures }
}

/// The numbers of its requests, from the same analysis as those of a run of ours.
fn judge_requests(result: &Reported, slo: &SloQuestion) -> Summary {
    let all = result.details.as_deref().unwrap_or_default();
    let start = all.iter().filter_map(|request| request.start_s).fold(f64::INFINITY, f64::min);
    let last = all.iter().filter_map(|request| request.start_s).fold(start, f64::max);
    let rate = (all.len() as f64 / (last - start).max(1e-3)).clamp(1e-6, 1e9);
    let unknown = LengthDistribution::Fixed(1);
    let class = ClassPlan::synthetic("", unknown, unknown);
    let mut plan = Plan::open_loop("", class, rate, Duration::from_secs(1));
    (plan.load.duration, plan.load.num_requests) = (None, Some(all.len() as u64));
    let SweepPlan { slo, attainment, .. } = sweep_plan_for(slo);
    (plan.measure.slo, plan.measure.attainment) = (slo, attainment);
    let facts = RunFacts { stream: true, ..RunFacts::default() };
    let mut ordered: Vec<&ReportedRequest> = all.iter().collect();
    ordered.sort_by(|a, b| a.start_s.unwrap_or(0.0).total_cmp(&b.start_s.unwrap_or(0.0)));
    let records =
        || (0..).zip(&ordered).map(|(index, request)| request_record(index, request, start));
    analyze_run(&plan, facts, records, &[], std::iter::empty())
}

/// One request, counted from when it was sent: when it was due the file does not say.
fn request_record(index: u64, request: &ReportedRequest, start: f64) -> RequestRecord {
    let after = |from: Nanos, ms: f64| from + Nanos::from_secs_f64((ms / 1e3).clamp(0.0, 1e7));
    let sent = after(Nanos::ZERO, (request.start_s.unwrap_or(start) - start) * 1e3);
    let first = request.ttft_ms.filter(|_| !request.is_failed).map(|ms| after(sent, ms));
    let end = after(sent, request.total_ms().or(request.ttft_ms).unwrap_or(0.0));
    let count = |n: Option<u64>| {
        let n = u32::try_from(n?).unwrap_or(u32::MAX);
        Some(TokenCount { n, source: TokenSource::Usage })
    };
    let (input, output) = (count(request.input_tokens), count(request.output_tokens));
    let stamps = Stamps {
        dispatched: sent,
        sent_first: Some(sent),
        sent_last: Some(sent),
        headers: first,
        first_byte: first,
        first_token: first,
        first_answer: first,
        last_token: first.map(|first| end.max(first)),
        done: first.map(|first| end.max(first)),
        ended: first.map_or(end, |first| end.max(first)),
        ..Stamps::default()
    };
    let failure = request.is_failed.then(|| Failure {
        class: ErrorClass::Http(500),
        stage: FailureStage::FirstToken,
        message: String::new(),
    });
    let chunks = first.map_or_else(Vec::new, |first| token_chunks(request, first, end.max(first)));
    RequestRecord {
        index,
        phase: Phase::Measured,
        worker: 0,
        scheduled: sent,
        pacer_lag: None,
        cap_wait: Nanos::ZERO,
        planned: Planned::new("", input.map_or(0, |count| count.n), None),
        exchange: Exchange {
            stamps,
            chunks,
            status: failure.is_none().then_some(200),
            failure,
            input_tokens: input,
            output_tokens: output.filter(|_| !request.is_failed),
            ..Exchange::default()
        },
        prompt: None,
    }
}

/// The first token and those after each gap; without gaps the first and the last.
fn token_chunks(request: &ReportedRequest, first: Nanos, end: Nanos) -> Vec<Chunk> {
    let chunk =
        |at| Chunk { at, tokens: None, bytes: 1, choice: 0, coalesced: false, lag_us: None };
    let mut at = first;
    let gaps = request.gaps_ms.as_deref();
    let after = gaps.unwrap_or_default().iter().map(|gap| {
        at += Nanos::from_secs_f64((gap / 1e3).clamp(0.0, 1e7));
        chunk(at)
    });
    let mut all: Vec<Chunk> = std::iter::once(chunk(first)).chain(after).collect();
    if gaps.is_none() && end > first {
        all.push(chunk(end));
    }
    all
}

fn sweep_facts(results: &[Reported]) -> SweepFacts {
    let first = results.first();
    let text =
        |of: fn(&Reported) -> Option<&String>| first.and_then(of).map(|text| escape_control(text));
    SweepFacts {
        version: text(|run| run.version.as_ref()).unwrap_or_default(),
        started: text(|run| run.started.as_ref()).unwrap_or_default(),
        state: SweepState::Complete,
        target: first.map_or("", |run| run.tool.name()).to_owned(),
        model: text(|run| run.model.as_ref()).unwrap_or_else(|| "model not stated".to_owned()),
        workload: text(|run| run.workload.as_ref())
            .unwrap_or_else(|| "workload not stated".to_owned()),
        gpus: first.and_then(|run| u32::try_from(run.setup.gpus?).ok()),
        took_s: results.iter().filter_map(|run| run.duration_s).sum(),
        ..SweepFacts::default()
    }
}

/// What to know about figures that another tool measured.
fn foreign_notes(path: &Path, results: &[Reported], is_stated: bool) -> Vec<PlanNote> {
    let worst = results.iter().map(|run| audit_reported(run).verdict).max();
    let audit = worst.filter(|verdict| *verdict != Verdict::Valid).map(|verdict| {
        format!("the file is {}: see `goodput audit {}`", verdict.name(), path.display())
    });
    let text = "another tool measured it: latency counts from when a request was sent, not from \
                when it was due";
    let stated = is_stated.then(|| {
        "the SLO is judged by percentiles as stated by the file: they have no interval, and leave \
         failed requests out"
            .to_owned()
    });
    let all = std::iter::once(text.to_owned()).chain(stated).chain(audit);
    all.map(|text| PlanNote::new(PlanNoteKind::Doubt, text)).collect()
}
