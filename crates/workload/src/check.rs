//! Plans that cannot work, refused before anything is made.

use goodput_model::{
    ClassPlan, LengthDistribution, PrefixPlan, SessionPlan, SharedPlan, SourcePlan, WorkloadPlan,
};

use crate::WorkloadError;

/// More tokens than any context holds: such a text would only fill the memory.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;
/// Most requests in addition to the main one.
const MOST_FAN_OUT: u32 = 1_000;
/// Classes of a mix, at most: a share is at least one in a thousand.
const MOST_CLASSES: usize = 1_000;

/// Fails with the first thing that is wrong.
pub(crate) fn check_plan(plan: &WorkloadPlan) -> Result<(), WorkloadError> {
    if plan.classes.is_empty() || plan.classes.len() > MOST_CLASSES {
        return Err(WorkloadError::new(
            format!(
                "the workload has {} classes: expected 1 to {MOST_CLASSES}",
                plan.classes.len()
            ),
            "a plan has one [[workload.class]] table for each class",
        ));
    }
    let mut names: Vec<&str> = plan.classes.iter().map(|class| class.name.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(WorkloadError::new(
            format!("two classes are named `{twice}`"),
            "classes need different names",
        ));
    }
    if let Some(found) = &plan.calibration
        && found.template_tokens.max(found.message_tokens) > MOST_TOKENS
    {
        return Err(WorkloadError::new(
            format!("a template of {} tokens: no context holds that many", found.template_tokens),
            "remove `calibration` from the plan",
        ));
    }
    let is_mix = plan.classes.len() > 1;
    plan.classes.iter().try_for_each(|class| {
        check_class(class, is_mix).map_err(|(message, hint)| {
            WorkloadError::new(format!("class `{}`: {message}", class.name), hint)
        })
    })
}

/// What is wrong, and what to do about it.
type Wrong = (String, &'static str);

fn check_class(class: &ClassPlan, is_mix: bool) -> Result<(), Wrong> {
    let is_generated =
        matches!(class.source, SourcePlan::Synthetic { .. } | SourcePlan::Pairs { .. });
    let is_dataset = matches!(class.source, SourcePlan::Dataset(_));
    if is_mix && !is_generated && !is_dataset {
        return Err((
            "a trace or a frozen workload cannot be part of a mix: it brings its own instants"
                .to_owned(),
            "run it alone",
        ));
    }
    match &class.source {
        SourcePlan::Synthetic { input, output } => {
            check_lengths("input", *input)?;
            check_lengths("output", *output)?;
        }
        SourcePlan::Dataset(data) => {
            data.output.map_or(Ok(()), |output| check_lengths("output", output))?;
            if data.turns == Some(0) {
                return Err(zero_error("turns"));
            }
        }
        _ => {}
    }
    if let Some(prefix) = &class.prefix {
        check_prefix(prefix, is_generated, is_dataset)?;
    }
    if let Some(session) = &class.session {
        if !is_generated {
            return Err((
                "a session plan needs generated text".to_owned(),
                "conversations of a file are played as the file has them: remove `session`",
            ));
        }
        check_session(session)?;
    }
    if let Some(structured) = &class.structured
        && !(0.0..=1.0).contains(&structured.share)
    {
        return Err((
            format!("a constraint on a share of {} of the requests", structured.share),
            "the share must be between 0 and 1",
        ));
    }
    Ok(())
}

fn check_prefix(plan: &PrefixPlan, is_generated: bool, is_dataset: bool) -> Result<(), Wrong> {
    if plan.system_tokens > 0 && !is_generated && !is_dataset {
        return Err((
            "a system prompt cannot be added to a trace or a frozen workload".to_owned(),
            "its lengths are those of the file: remove `prefix`",
        ));
    }
    check_tokens("system_tokens", plan.system_tokens)?;
    let Some(shared) = plan.shared else { return Ok(()) };
    if !is_generated {
        return Err((
            "a shared prefix needs generated text".to_owned(),
            "prompts from a file are sent as they are; only `system_tokens` can be added",
        ));
    }
    match shared {
        SharedPlan::Groups { groups, tokens: shared, zipf } => {
            let is_power = (0.0..=10.0).contains(&zipf);
            if !is_power {
                return Err((
                    format!("a popularity exponent of {zipf}"),
                    "zipf must be between 0 (even) and 10",
                ));
            }
            check_positive("groups", groups)?;
            check_positive("tokens", shared)?;
            check_tokens("tokens", shared)
        }
        SharedPlan::HitRate { share, groups } => {
            if !(0.0..=1.0).contains(&share) {
                return Err((
                    format!("a hit rate of {share}"),
                    "a hit rate must be between 0 and 1 (0% and 100%)",
                ));
            }
            check_positive("groups", groups)
        }
        SharedPlan::Tiling { contexts, tokens: context } => {
            check_positive("contexts", contexts)?;
            check_positive("tokens", context)?;
            check_tokens("tokens", context)
        }
        SharedPlan::Repeat { prompts } => check_positive("prompts", prompts),
    }
}

fn check_session(plan: &SessionPlan) -> Result<(), Wrong> {
    check_lengths("turns", plan.turns)?;
    plan.turn_input.map_or(Ok(()), |input| check_lengths("turn_input", input))?;
    let Some(tools) = &plan.tools else { return Ok(()) };
    check_lengths("calls", tools.calls)?;
    check_lengths("result", tools.result)?;
    if tools.fan_out > MOST_FAN_OUT {
        return Err((
            format!("a fan-out of {}: expected at most {MOST_FAN_OUT}", tools.fan_out),
            "fan_out is the number of requests in addition to the main one",
        ));
    }
    Ok(())
}

fn check_lengths(name: &str, lengths: LengthDistribution) -> Result<(), Wrong> {
    if are_lengths_valid(lengths) {
        return Ok(());
    }
    Err((
        format!("{name}: `{lengths}` can be below one, or is not a distribution"),
        "the minimum must be at least 1, and not above the maximum",
    ))
}

fn check_positive(name: &'static str, value: u32) -> Result<(), Wrong> {
    if value == 0 { Err(zero_error(name)) } else { Ok(()) }
}

fn check_tokens(name: &str, value: u32) -> Result<(), Wrong> {
    if value <= MOST_TOKENS {
        return Ok(());
    }
    Err((format!("{name} is {value}: expected at most {MOST_TOKENS}"), "no context holds more"))
}

fn zero_error(name: &str) -> Wrong {
    (format!("{name} is 0: expected at least 1"), "remove the table to do without it")
}

/// Whether lengths can be drawn from it.
fn are_lengths_valid(lengths: LengthDistribution) -> bool {
    let real = |x: f64| x.is_finite() && x >= 0.0;
    let order = |low: u32, high: u32| low >= 1 && low <= high;
    match lengths {
        LengthDistribution::Fixed(tokens) => tokens >= 1,
        LengthDistribution::Uniform(low, high) => order(low, high),
        LengthDistribution::Exponential(mean) => mean >= 1,
        LengthDistribution::Normal(mean, sd, clip) => {
            real(mean) && real(sd) && order(clip.low, clip.high)
        }
        LengthDistribution::LogNormal(median, sigma, clip) => {
            real(median) && real(sigma) && order(clip.low, clip.high)
        }
        LengthDistribution::Zipf(exponent, clip) => real(exponent) && order(clip.low, clip.high),
    }
}
