//! Runs of other tools' files that hold no single requests: each term of the SLO is held against the
//! figure that the file states for it.

use goodput_campaign::sweep::{Bounded, Figures, PointSpread, TermFigure};
use goodput_model::{
    MetricName, Reported, ReportedMode, SloMetric, SloQuestion, SloStatistic, SloTerm,
};
use goodput_stats::SloState;

/// The figures of a run as its file states them, or what the file would have to state too.
pub(super) fn stated_figures(
    result: &Reported,
    question: &SloQuestion,
) -> Result<Figures, Vec<String>> {
    let mut missing = Vec::new();
    let mut terms = Vec::new();
    for term in question.slo.iter().flat_map(|slo| &slo.terms) {
        match stated(result, term) {
            Ok(value) => terms.push(judged(result, term, value)),
            Err(figure) => missing.push(figure),
        }
    }
    if let Some(share) = question.attainment {
        missing.push(format!("its single requests, to see whether {} % are good", share * 100.0));
    }
    if result.load.mode == ReportedMode::Burst {
        missing.push("a rate: all requests were sent at once".to_owned());
    }
    let ok = result.ok.filter(|ok| *ok > 0);
    if ok.is_none() {
        missing.push("the number of completed requests".to_owned());
    }
    if !missing.is_empty() {
        return Err(missing);
    }
    let (ok, failed) = (ok.unwrap_or_default(), result.failed.unwrap_or_default());
    let is_kept = terms.iter().all(|term| term.kept == Some(true));
    let each = |sum: Option<u64>| sum.map(|sum| sum as f64 / ok.max(1) as f64);
    Ok(Figures {
        is_complete: true,
        window_s: result.duration_s.unwrap_or_default(),
        requests: ok.saturating_add(failed),
        ok,
        failed,
        offered_rps: result.load.rate_rps,
        requests_per_s: result.requests_per_s,
        output_tps: result.output_tokens_per_s,
        total_tps: result.total_tokens_per_s,
        in_flight: result.load.mean_concurrency,
        ttft_ms: spread(result, MetricName::Ttft),
        tpot_ms: spread(result, MetricName::Tpot),
        itl_ms: spread(result, MetricName::Itl),
        e2e_ms: spread(result, MetricName::E2e),
        input_tokens: each(result.input_tokens),
        output_tokens: each(result.output_tokens),
        terms,
        slo_state: Some(if is_kept { SloState::Undecided } else { SloState::Missed }),
        ..Figures::default()
    })
}

/// The figure that a term limits, or its name where the file does not state it.
fn stated(result: &Reported, term: &SloTerm) -> Result<f64, String> {
    let (name, statistic) = (term.metric.name(), term.statistic);
    if term.limit.per_token != 0.0 {
        return Err(format!("its single requests: the limit on {name} grows with the prompt"));
    }
    let found = match (term.metric, statistic) {
        (SloMetric::Errors, _) => result
            .ok
            .zip(result.failed)
            .map(|(ok, failed)| 100.0 * failed as f64 / ok.saturating_add(failed).max(1) as f64),
        (SloMetric::Rps, _) => result.requests_per_s,
        (SloMetric::OutputTps, _) => result.output_tokens_per_s,
        (_, SloStatistic::Percentile(percent)) => {
            result.metrics.get(name).and_then(|metric| metric.percentile(percent))
        }
        (_, SloStatistic::Mean) => result.metrics.get(name).and_then(|metric| metric.mean),
        (_, SloStatistic::Plain) => {
            return Err(format!(
                "its single requests: percentiles do not say how many kept `{term}`"
            ));
        }
    };
    let figure = match (term.metric, statistic) {
        (SloMetric::Errors, _) => "the number of failed requests".to_owned(),
        (_, SloStatistic::Percentile(percent)) => format!("the p{percent} of {name}"),
        (_, SloStatistic::Mean) => format!("the mean of {name}"),
        (_, SloStatistic::Plain) => format!("the figure {name}"),
    };
    found.filter(|value| value.is_finite()).ok_or(figure)
}

/// A term and its figure. Percentiles in these files leave failed requests out: where more failed
/// than the percentile leaves above it, the percentile of all of them lies beyond any limit.
fn judged(result: &Reported, term: &SloTerm, value: f64) -> TermFigure {
    let all = result.ok.unwrap_or(0).saturating_add(result.failed.unwrap_or(0)).max(1);
    let failed = result.failed.unwrap_or(0) as f64 / all as f64;
    let (kind, is_beyond) = match term.statistic {
        SloStatistic::Percentile(percent) => ("percentile", failed > 1.0 - percent / 100.0),
        SloStatistic::Mean => ("mean", false),
        SloStatistic::Plain => ("run", false),
    };
    let kept = !is_beyond && term.relation.holds(value, term.limit.base);
    TermFigure {
        term: term.to_string(),
        kind: kind.to_owned(),
        limit: term.limit.base,
        value: Some(Bounded::bare(value)),
        attainment: None,
        state: Some(if kept { SloState::Undecided } else { SloState::Missed }),
        kept: Some(kept),
        target_state: None,
        target_kept: None,
    }
}

/// The percentiles of a curve, as far as the file states them.
fn spread(result: &Reported, name: MetricName) -> PointSpread {
    let Some(metric) = result.metrics.get(name.name()) else { return PointSpread::default() };
    let of =
        |percent| metric.percentile(percent).filter(|value| value.is_finite()).map(Bounded::bare);
    PointSpread { p50: of(50.0), p90: of(90.0), p99: of(99.0), mean: metric.mean }
}
