//! Was it the workload that was asked for?

use goodput_model::{
    CalibrationSource, Caveat, CaveatCode, ClassPlan, OutputLength, Severity, SharedPlan,
    SourcePlan,
};

use super::{Evidence, advice};
use crate::summary::{LengthCheck, Slice};

/// Lengths may differ by so much.
const LENGTH_TOLERANCE: f64 = 0.02;
/// An estimated length that is off by more than this factor is another workload.
const FAR: f64 = 2.0;
/// Shares of cached tokens may differ by so much.
const CACHE_TOLERANCE: f64 = 0.05;
/// Unplanned cache hits matter above this share.
const ACCIDENTAL_HITS: f64 = 0.01;
/// Medians further apart than this are two distributions.
const APART: f64 = 3.0;
/// A class below this share of requests hardly moves a percentile.
const NOTABLE_SHARE: f64 = 0.05;

/// 2 % are not more than 2 %, whatever binary fractions make of it.
fn exceeds_by_more(difference: f64, limit: f64) -> bool {
    difference > limit + 1e-9
}

fn is_off(check: &LengthCheck) -> bool {
    check.ratio.is_some_and(|ratio| exceeds_by_more((ratio - 1.0).abs(), LENGTH_TOLERANCE))
}

fn percent_text(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The server was told how long to answer, and answered otherwise.
pub(super) fn check_output_length(e: &Evidence<'_>) -> Option<Caveat> {
    let check = e.figures.lengths.output.filter(is_off)?;
    (e.plan.workload.output == OutputLength::Exact).then(|| {
        let message = format!(
            "answers do not have the requested length: {:.1} tokens on average instead of {:.1}, \
             {} of them exact",
            check.actual_mean,
            check.planned_mean,
            percent_text(check.exact_share)
        );
        let advice = "the server ignores max_tokens, min_tokens, or ignore_eos, or something else \
                      ends its answers (a constraint, a stop word, the model's context): add the \
                      parameters it needs with --extra-body, or let answers end on their own with \
                      --output-length limit";
        Caveat::new(CaveatCode::OutputLength, Severity::Warn, message).advise(advice)
    })
}

/// Either a tokenizer calibrated the words before the run and the server counts differently, or the
/// estimate is far off.
pub(super) fn check_input_length(e: &Evidence<'_>) -> Option<Caveat> {
    let calibration = e.plan.workload.calibration.as_ref();
    let counted = calibration.map(|calibration| calibration.source);
    let counted = counted.filter(|source| *source != CalibrationSource::Estimate);
    let check = e.figures.lengths.input.filter(is_off)?;
    let is_far = check.ratio.is_some_and(|ratio| !(1.0 / FAR..=FAR).contains(&ratio));
    (counted.is_some() || is_far).then(|| {
        let by = match counted {
            Some(source) => format!("although counted by {}", source.name()),
            None => "estimated without the model's tokenizer".to_owned(),
        };
        let message = format!(
            "prompts do not have the planned length: {:.1} tokens on average instead of {:.1}, \
             {by}",
            check.actual_mean, check.planned_mean,
        );
        let advice = "pass this model's tokenizer with --tokenizer, and check that the server's \
                      chat template is the one that was calibrated";
        Caveat::new(CaveatCode::InputLength, Severity::Warn, message).advise(advice)
    })
}

pub(super) fn check_cache_rate(e: &Evidence<'_>) -> Option<Caveat> {
    let cache = e.figures.cache.as_ref()?;
    let (requested, observed) = (cache.requested?, cache.observed?);
    // Counters hold the warm-up too, which fills the cache.
    if cache.source == "counters" && !e.plan.load.warmup.is_none() {
        return None;
    }
    // A rotation that is larger than the cache is meant to evict.
    if observed < requested && is_rotation(&e.plan.workload.classes) {
        return None;
    }
    exceeds_by_more((requested - observed).abs(), CACHE_TOLERANCE).then(|| {
        let advice = if observed > requested {
            format!(
                "the cache holds prompts of an earlier run: use a --seed other than {}, or clear \
                 the cache",
                e.plan.load.seed
            )
        } else if e.plan.load.warmup.is_none() {
            "the cache is off, too small, or was not warm yet: add a --warmup".to_owned()
        } else {
            "the cache is off or too small: check the server's settings".to_owned()
        };
        let message = format!(
            "{} of the prompt tokens could have come from the cache, {} did",
            percent_text(requested),
            percent_text(observed)
        );
        // Turns may come from the cache, but the plan does not say so.
        let is_shaped = |class: &ClassPlan| {
            class.prefix.is_some() || matches!(class.source, SourcePlan::Trace(_))
        };
        let is_asked = e.plan.workload.classes.iter().any(is_shaped);
        let severity = if is_asked { Severity::Warn } else { Severity::Info };
        Caveat::new(CaveatCode::CacheDiffers, severity, message).advise(advice)
    })
}

/// Whether contexts in rotation are all that prompts share by plan.
fn is_rotation(classes: &[ClassPlan]) -> bool {
    let rotates = |class: &ClassPlan| {
        let shared = class.prefix.as_ref().and_then(|prefix| prefix.shared);
        class.session.is_none() && matches!(shared, Some(SharedPlan::Tiling { .. }))
    };
    classes.iter().any(rotates)
        && classes.iter().filter(|class| shares_prefixes(class)).all(rotates)
}

/// Whether a class shares anything between its prompts by plan.
fn shares_prefixes(class: &ClassPlan) -> bool {
    class.prefix.is_some()
        || class.session.is_some()
        || matches!(class.source, SourcePlan::Trace(_))
}

/// A cache that flatters the result without anybody having asked for it.
pub(super) fn check_unplanned_cache(e: &Evidence<'_>) -> Option<Caveat> {
    let cache = e.figures.cache.as_ref().filter(|cache| cache.requested.is_none())?;
    let classes = &e.plan.workload.classes;
    if classes.iter().any(shares_prefixes) || e.figures.sessions.is_some() {
        return None;
    }
    // What the chat template puts before every prompt is the model's own.
    let template = e.plan.workload.calibration.as_ref().map_or(0, |c| c.template_tokens);
    let template =
        u64::from(template).saturating_mul(e.requests.ok) as f64 / e.tokens.input.max(1) as f64;
    let observed =
        cache.observed.filter(|share| exceeds_by_more(share - template, ACCIDENTAL_HITS))?;
    let is_ours = |class: &ClassPlan| {
        matches!(class.source, SourcePlan::Synthetic { .. } | SourcePlan::Pairs { .. })
    };
    // Prompts of a file may well begin alike.
    let severity = if classes.iter().all(is_ours) { Severity::Warn } else { Severity::Info };
    let message = format!(
        "{} of the prompt tokens came from the server's cache although the workload shares none: \
         the cache holds prompts of an earlier run, or prompts begin alike",
        percent_text(observed)
    );
    let advice = format!(
        "use a --seed other than {} or clear the cache, or plan for cache hits with --cache",
        e.plan.load.seed
    );
    Some(Caveat::new(CaveatCode::CacheUnplanned, severity, message).advise(advice))
}

pub(super) fn check_unseen_cache(e: &Evidence<'_>) -> Option<Caveat> {
    let cache = e.figures.cache.as_ref();
    let is_stated = cache.and_then(|cache| cache.requested).is_some_and(|share| share > 0.0);
    let is_asked = is_stated || e.plan.workload.classes.iter().any(|class| class.prefix.is_some());
    let is_seen = cache.is_some_and(|cache| cache.observed.is_some());
    (is_asked && !is_seen && e.requests.ok > 0).then(|| {
        let message = "the workload plans for cached prompt tokens, but the server does not \
                       report any: whether its cache served them is unknown";
        let advice = "start vLLM with --enable-prompt-tokens-details, SGLang with \
                      --enable-cache-report";
        Caveat::new(CaveatCode::CacheUnseen, Severity::Info, message).advise(advice)
    })
}

pub(super) fn check_invalid_answers(e: &Evidence<'_>) -> Option<Caveat> {
    let share = |valid: Option<f64>| valid.unwrap_or(1.0);
    let (kind, worst) = e
        .figures
        .structured
        .iter()
        .min_by(|a, b| share(a.1.valid_share).total_cmp(&share(b.1.valid_share)))?;
    let valid = worst.valid_share.filter(|share| *share < 0.99)?;
    let severity = if valid < 0.9 { Severity::Warn } else { Severity::Info };
    let message = format!(
        "only {} of {} answers under a {kind} constraint satisfy it",
        percent_text(valid),
        worst.checked
    );
    let advice = "max_tokens cuts them, or the server does not support this way to request a \
                  constraint: allow longer answers, or check which form its API takes";
    Some(Caveat::new(CaveatCode::StructuredInvalid, severity, message).advise(advice))
}

/// One percentile over two distributions describes neither.
pub(super) fn check_bimodal_mix(e: &Evidence<'_>) -> Option<Caveat> {
    let least = NOTABLE_SHARE * e.requests.scheduled as f64;
    let e2e = |slice: &Slice| slice.e2e_ms.p50;
    let ttft = |slice: &Slice| slice.ttft_ms.p50;
    ["class", "constraint"].into_iter().find_map(|dimension| {
        let slices = e.figures.breakdown.get(dimension)?;
        let notable: Vec<_> =
            slices.iter().filter(|(_, slice)| slice.scheduled as f64 >= least).collect();
        let (metric, [slow, fast]) = widest_pair(&notable, e2e)
            .map(|ends| ("E2E", ends))
            .or_else(|| Some(("TTFT", widest_pair(&notable, ttft)?)))?;
        let message = format!(
            "the median {metric} of {dimension} `{}` is {:.1} ms, that of `{}` {:.1} ms: a percentile \
             over both describes neither",
            slow.0, slow.1, fast.0, fast.1
        );
        let advice = format!("read the breakdown by {dimension}");
        Some(Caveat::new(CaveatCode::BimodalMix, Severity::Info, message).advise(advice))
    })
}

/// The slices with the largest and the smallest median, where those are far apart.
fn widest_pair<'a>(
    slices: &[(&'a String, &'a Slice)],
    median: impl Fn(&Slice) -> Option<f64>,
) -> Option<[(&'a String, f64); 2]> {
    let medians = || slices.iter().filter_map(|(name, slice)| Some((*name, median(slice)?)));
    let fastest = medians().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let slowest = medians().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (slowest.1 > APART * fastest.1).then_some([slowest, fastest])
}

pub(super) fn check_cut_sessions(e: &Evidence<'_>) -> Option<Caveat> {
    let cut = e.run.cut_requests;
    (cut > 0).then(|| {
        let message = format!(
            "{cut} requests of unfinished sessions were not sent, because an earlier request \
             failed or the run ended: later turns are rarer here than in the workload"
        );
        let seconds = 2.0 * e.window.seconds();
        Caveat::new(CaveatCode::SessionsCut, Severity::Info, message).advise(format!(
            "a longer run gives them their full weight: {}",
            advice::longer_run_flags(e, seconds)
        ))
    })
}
