//! [`summarize_repeats`]: what several runs of one plan say together.
//!
//! One run knows how its own requests spread; only several know how runs do. Where runs differ by
//! more than their own intervals explain, something changed between them, and the interval of one
//! run is too narrow whatever its size.

use std::collections::BTreeMap;

use goodput_model::{Caveat, CaveatCode, Severity, Verdict};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::estimate::{BATCHES, TAIL, student_quantile};
use crate::summary::{RunFacts, RunState, Summary};

/// The combined result of several runs of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// `goodput.repeats/1`
    pub schema: String,
    /// The worst verdict of the runs and of their combined caveats.
    pub verdict: Verdict,
    /// Reasons to doubt it, and what to know.
    pub caveats: Vec<Caveat>,
    /// Runs that were asked for.
    pub asked: u32,
    /// Runs that the figures rest on: those that ended as planned and measured something.
    pub used: u32,
    /// What was run, as in the first of them.
    pub run: Option<RunFacts>,
    /// The load in a few words.
    pub load: String,
    /// Each run.
    pub runs: Vec<OneRun>,
    /// The main figures over the runs used, by name.
    pub headlines: BTreeMap<String, Headline>,
}

impl Repeats {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.repeats/1";
}

/// One run among several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneRun {
    /// Its number, from 1; also that of its folder.
    pub number: u32,
    /// Seed of arrivals and prompts.
    pub seed: u64,
    /// How it ended.
    pub state: RunState,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Whether the figures rest on it.
    pub is_used: bool,
    /// Length of its window in seconds.
    pub window_s: f64,
    /// Measured requests that were scheduled.
    pub scheduled: u64,
    /// Completed requests.
    pub ok: u64,
    /// Its figures, by name.
    pub figures: BTreeMap<String, f64>,
}

/// One figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Runs that have it.
    pub n: u32,
    /// Mean over the runs.
    pub mean: f64,
    /// Standard deviation between the runs; none for a single run.
    pub sd: Option<f64>,
    /// The same, relative to the mean.
    pub cv: Option<f64>,
    /// Lower end of the mean's 95 % interval over runs (Student's t).
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation that the runs' own intervals explain: the root of their mean squared
    /// standard error. None if a run has no interval.
    pub within_sd: Option<f64>,
    /// Standard deviation between runs divided by what their own intervals explain; about 1 if only
    /// chance sets them apart.
    pub ratio: Option<f64>,
    /// Whether the runs differ by more than their intervals explain.
    pub differs: bool,
}

/// Where a figure is found in a summary, with its interval where it has one.
struct FigurePath {
    value: f64,
    ends: Option<(f64, f64)>,
}

/// Metrics and percentiles that are headlines. Their names are `ttft_p50` and so on.
const METRICS: [(&str, &[&str]); 4] = [
    ("ttft", &["50", "90", "99"]),
    ("tpot", &["50", "99"]),
    ("itl", &["50", "99"]),
    ("e2e", &["50", "99"]),
];

fn percent_value(percent: &str) -> f64 {
    percent.parse().unwrap_or(0.0)
}

/// Every headline of a run. A figure that is added here is on the page and in the file.
fn headline_figures(summary: &Summary) -> Vec<(String, FigurePath)> {
    let requests = &summary.requests;
    let errors = requests.failed as f64 / requests.scheduled.max(1) as f64;
    let plain = [
        ("requests_per_s", summary.throughput.requests_per_s),
        ("output_tokens_per_s", summary.throughput.output_tokens_per_s),
        ("error_share", (requests.scheduled > 0).then_some(errors)),
    ];
    let plain = plain.into_iter().filter_map(|(name, value)| {
        Some((name.to_owned(), FigurePath { value: value?, ends: None }))
    });
    let percentiles = METRICS.iter().flat_map(|(metric, percents)| {
        let stated = summary.metrics.get(*metric).map(|metric| &metric.percentiles);
        let named = percents.iter().map(|percent| (*percent).to_owned());
        let mut percents: Vec<String> =
            named.filter(|percent| stated.is_some_and(|all| all.contains_key(percent))).collect();
        // Where the tail was not asked for, what comes nearest to it.
        let last = stated.and_then(|all| {
            all.keys().max_by(|a, b| percent_value(a).total_cmp(&percent_value(b))).cloned()
        });
        if !percents.iter().any(|percent| percent == "99") {
            percents.extend(last.filter(|last| !percents.contains(last)));
        }
        percents.into_iter().filter_map(move |percent| {
            // What one run cannot say several do not either.
            let found = stated?.get(&percent).filter(|p| p.quality.has_interval())?;
            let ends = found.low.zip(found.high);
            Some((format!("{metric}_p{percent}"), FigurePath { value: found.value?, ends }))
        })
    });
    let slo = summary.slo.iter().flat_map(|slo| {
        let share = (slo.attainment, slo.attainment_low.zip(slo.attainment_high));
        // Its interval is that of the share: how many arrived is another chance.
        let rate = (slo.goodput_rps, None);
        [("attainment", share), ("goodput_rps", rate)]
    });
    let slo = slo.filter_map(|(name, (value, ends))| {
        Some((name.to_owned(), FigurePath { value: value?, ends }))
    });
    plain.chain(percentiles).chain(slo).collect()
}

/// Runs from which an interval over runs is worth something.
const ENOUGH: u32 = 5;

/// What these runs of one plan say together, in their order.
pub fn summarize_repeats(summaries: &[Summary]) -> Repeats {
    let runs: Vec<OneRun> =
        summaries.iter().enumerate().map(|(place, run)| summarize_run(place, run)).collect();
    let mut found: BTreeMap<String, Vec<FigurePath>> = BTreeMap::new();
    let used = summaries.iter().zip(&runs).filter(|(_, run)| run.is_used);
    for (name, figure) in used.flat_map(|(summary, _)| headline_figures(summary)) {
        found.entry(name).or_default().push(figure);
    }
    let count = runs.iter().filter(|run| run.is_used).count() as u32;
    // A figure that some runs lack would compare other runs than its neighbors do.
    found.retain(|_, figures| figures.len() == count as usize);
    let tests = found.values().filter(|figures| error_within_runs(figures).is_some()).count();
    let limit = sd_ratio_limit(count as usize, tests);
    let headlines: BTreeMap<_, _> = found
        .iter()
        .map(|(name, figures)| (name.clone(), headline_over_runs(figures, limit)))
        .collect();
    let planned = summaries.iter().filter_map(|run| run.run.repeat).map(|repeat| repeat.of);
    let asked = planned.max().unwrap_or(0).max(summaries.len() as u32);
    let mut caveats = repeat_caveats(&runs, asked, &headlines);
    caveats.extend(single_run_caveats(summaries));
    caveats.sort_by_key(|caveat| std::cmp::Reverse(caveat.severity));
    let worst = runs.iter().map(|run| run.verdict).max().unwrap_or(Verdict::Void);
    Repeats {
        schema: Repeats::SCHEMA.to_owned(),
        verdict: worst.max(Verdict::from_caveats(&caveats)),
        caveats,
        asked,
        used: count,
        run: summaries.first().map(|first| first.run.clone()),
        load: summaries.first().map(load_text).unwrap_or_default(),
        runs,
        headlines,
    }
}

fn summarize_run(place: usize, summary: &Summary) -> OneRun {
    let requests = &summary.requests;
    OneRun {
        number: summary.run.repeat.map_or(place as u32 + 1, |repeat| repeat.number),
        seed: summary.run.seed,
        state: summary.run.state,
        verdict: summary.verdict,
        is_used: summary.run.state == RunState::Complete && requests.ok > 0,
        window_s: summary.window.end_s - summary.window.start_s,
        scheduled: requests.scheduled,
        ok: requests.ok,
        figures: headline_figures(summary)
            .into_iter()
            .map(|(name, found)| (name, found.value))
            .collect(),
    }
}

fn load_text(summary: &Summary) -> String {
    let load = &summary.load;
    match (load.concurrency, load.offered_rps) {
        (Some(users), _) => format!("{} loop, {users} users", load.mode),
        (None, Some(rate)) => format!("{} loop, {rate} offered per second", load.mode),
        _ => format!("{} loop", load.mode),
    }
}

/// The mean squared standard error of the runs, by their 95 % intervals.
fn error_within_runs(figures: &[FigurePath]) -> Option<f64> {
    let errors = student_quantile(1.0 - TAIL, OWN_DEGREES);
    let squares = figures.iter().map(|figure| {
        let (low, high) = figure.ends?;
        Some(((high - low) / (2.0 * errors)).powi(2))
    });
    let sum: f64 = squares.sum::<Option<f64>>()?;
    (!figures.is_empty()).then(|| sum / figures.len() as f64)
}

fn headline_over_runs(figures: &[FigurePath], limit: f64) -> Headline {
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let sd = (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt());
    let margin = sd.map(|sd| student_quantile(1.0 - TAIL, n as u64 - 1) * sd / (n as f64).sqrt());
    let own = error_within_runs(figures).map(f64::sqrt);
    let ratio = sd.zip(own.filter(|own| *own > 0.0)).map(|(sd, own)| sd / own);
    Headline {
        n: n as u32,
        mean,
        sd,
        cv: sd.filter(|_| mean > 0.0).map(|sd| sd / mean),
        low: margin.map(|margin| mean - margin),
        high: margin.map(|margin| mean + margin),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        within_sd: own,
        ratio,
        differs: ratio.is_some_and(|ratio| ratio > limit),
    }
}

/// Standard deviations that differ by less than this may be chance, and are small.
const CLEAR: f64 = 3.0;

/// Chance of a false alarm in one of all headlines, where nothing but chance sets runs apart.
const ALARM: f64 = 0.01;

/// Degrees of freedom of one run's own interval.
const OWN_DEGREES: u64 = BATCHES as u64 - 1;

/// The ratio of standard deviations above which runs differ: the square root of the F quantile,
/// shared among this many tests (Bonferroni), and never below [`CLEAR`].
fn sd_ratio_limit(runs: usize, tests: usize) -> f64 {
    let between = runs.saturating_sub(1) as f64;
    let own = runs as f64 * OWN_DEGREES as f64;
    let share = 1.0 - ALARM / tests.max(1) as f64;
    let quantile = FisherSnedecor::new(between, own).map(|f| f.inverse_cdf(share));
    quantile.map_or(f64::INFINITY, f64::sqrt).max(CLEAR)
}

fn repeat_caveats(
    runs: &[OneRun],
    asked: u32,
    headlines: &BTreeMap<String, Headline>,
) -> Vec<Caveat> {
    let mut found = Vec::new();
    let used = runs.iter().filter(|run| run.is_used).count() as u32;
    if used == 0 {
        let message = "no run ended as planned with a completed request: nothing to compare";
        found.push(Caveat::new(CaveatCode::NothingMeasured, Severity::Void, message));
    }
    let differing: Vec<_> = headlines.iter().filter(|(_, figure)| figure.differs).collect();
    let worst = differing
        .iter()
        .max_by(|a, b| a.1.ratio.unwrap_or(0.0).total_cmp(&b.1.ratio.unwrap_or(0.0)));
    if let Some((name, Headline { ratio: Some(ratio), .. })) = worst {
        let others = match differing.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} other figures)"),
        };
        let message = format!(
            "runs differ by more than their own intervals explain: {name}{others} spreads \
             {ratio:.1} times as much between runs; something changed between them"
        );
        let advice = "trust the interval over runs, not that of one run; check whether the server \
                      restarted, warmed up, or served other clients";
        found.push(Caveat::new(CaveatCode::RunsDiffer, Severity::Warn, message).advise(advice));
    }
    if used < asked {
        let message = format!(
            "{used} of {asked} runs are in these figures: the others did not end as planned, or \
             completed no request"
        );
        found.push(Caveat::new(CaveatCode::NotComplete, Severity::Info, message));
    }
    if used > 0 && used < ENOUGH {
        let message = format!(
            "{used} {}: an interval over so few runs is wide, and cannot reveal an outlier",
            if used == 1 { "run" } else { "runs" }
        );
        let advice = "--repeat 5 or more";
        found.push(Caveat::new(CaveatCode::FewSamples, Severity::Info, message).advise(advice));
    }
    found
}

/// What makes single runs doubtful: each reason once, with how many runs have it.
fn single_run_caveats(summaries: &[Summary]) -> Vec<Caveat> {
    let mut found: BTreeMap<CaveatCode, (u32, Caveat)> = BTreeMap::new();
    let all = summaries.iter().flat_map(|summary| &summary.caveats);
    for caveat in all.filter(|caveat| caveat.severity > Severity::Info) {
        let (count, kept) = found.entry(caveat.code).or_insert((0, caveat.clone()));
        *count += 1;
        if caveat.severity > kept.severity {
            *kept = caveat.clone();
        }
    }
    let runs = summaries.len();
    let named = |(count, caveat): (u32, Caveat)| Caveat {
        message: format!("in {count} of {runs} runs: {}", caveat.message),
        ..caveat
    };
    found.into_values().map(named).collect()
}

#[cfg(test)]
mod tests;
