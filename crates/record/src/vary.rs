//! Any value of a run's plan by its path in `plan.toml`, so that a sweep can vary it.

mod values;

pub use values::{Vary, all_configurations};

use std::collections::BTreeSet;
use std::time::Duration;

use goodput_model::{ArrivalProcess, LengthDistribution, Mode, Plan, Rate, SourcePlan};
use serde::Deserialize;
use toml::Value;

/// Short names, each with what it stands for.
const ALIASES: [(&str, Alias); 11] = [
    ("isl", Alias::Input),
    ("workload.isl", Alias::Input),
    ("osl", Alias::Output),
    ("workload.osl", Alias::Output),
    ("max_tokens", Alias::MaxTokens),
    ("rate", Alias::Rate),
    ("load.rate", Alias::Rate),
    ("concurrency", Alias::Concurrency),
    ("load.concurrency", Alias::Concurrency),
    ("seed", Alias::Path("load.seed")),
    ("model", Alias::Path("target.model")),
];

/// What a short name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alias {
    /// Prompt lengths of every synthetic class.
    Input,
    /// Answer lengths of every synthetic class.
    Output,
    /// Answers of this length, whatever prompts come from.
    MaxTokens,
    /// An open loop at this rate.
    Rate,
    /// A closed loop with this many users.
    Concurrency,
    /// A value of the plan.
    Path(&'static str),
}

/// What cannot be varied, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaryError {
    /// The plan has no such value.
    #[error("the plan has no `{path}`{}; {}", suggestion.as_ref().map_or(String::new(), |near| format!(": \
                                                                                                        did \
                                                                                                        you \
                                                                                                        mean \
                                                                                                        `{near}`?")), available_text(place, names))]
    NoSuchValue {
        /// What was asked for.
        path: String,
        /// The part of the path that is there.
        place: String,
        /// What is at that place.
        names: Vec<String>,
        /// A path that reads much the same.
        suggestion: Option<String>,
    },
    /// The value does not fit.
    #[error("`{path}` cannot be `{value}`: {because}{}", now.as_ref().map_or(String::new(), |now| format!("; it is currently {now}")))]
    WrongValue {
        /// Where it was to go.
        path: String,
        /// What was given.
        value: String,
        /// Why it does not fit.
        because: String,
        /// What stands there, as in `plan.toml`.
        now: Option<String>,
    },
    /// A text that is no `path=value,value`.
    #[error("`{0}` cannot be varied: {1}")]
    NotValues(String, String),
    /// Too much of it.
    #[error("{0}")]
    TooMany(String),
}

fn available_text(place: &str, names: &[String]) -> String {
    let at = if place.is_empty() { "it".to_owned() } else { format!("`{place}`") };
    match names {
        [] => format!("{at} is a value and does not contain others"),
        names => format!("{at} holds {}", names.join(", ")),
    }
}

/// The plan with another value at this path (`load.mode.rate`, `workload.classes.0.source.input`) or
/// under this short name (`isl`, `osl`, `max_tokens`, `rate`, `concurrency`, `seed`, `model`). Whether
/// the plan makes sense as a whole is for the caller to check.
pub fn set_value(plan: &Plan, path: &str, value: &str) -> Result<Plan, VaryError> {
    let wrong = |because: String, now: Option<String>| VaryError::WrongValue {
        path: path.to_owned(),
        value: value.to_owned(),
        because,
        now,
    };
    let mut varied = plan.clone();
    let alias = ALIASES.iter().find(|(name, _)| *name == path).map(|(_, alias)| *alias);
    match alias {
        None => return set_by_path(plan, path, value),
        Some(Alias::Path(path)) => return set_by_path(plan, path, value),
        Some(Alias::Rate) => {
            let rate: Rate = value.parse().map_err(|error| wrong(format!("{error}"), None))?;
            varied.load.mode = mode_at_rate(&plan.load.mode, rate);
        }
        Some(Alias::Concurrency) => {
            let users = value.parse().ok().filter(|users| *users > 0);
            let users = users
                .ok_or_else(|| wrong("it is not a number of users (1, 2, …)".to_owned(), None))?;
            varied.load.mode = mode_with_users(&plan.load.mode, users);
        }
        Some(alias @ (Alias::Input | Alias::Output | Alias::MaxTokens)) => {
            let lengths: LengthDistribution = value.parse().map_err(|error| wrong(error, None))?;
            let is_one = matches!(lengths, LengthDistribution::Fixed(_));
            if alias == Alias::MaxTokens && !is_one {
                return Err(wrong("it is not a number of tokens".to_owned(), None));
            }
            let classes = &mut varied.workload.classes;
            let changed = classes
                .iter_mut()
                .filter_map(|class| set_lengths(&mut class.source, alias, lengths))
                .count();
            if changed == 0 {
                let because = "no class of the workload has lengths to set; files and traces \
                               bring their own";
                return Err(wrong(because.to_owned(), None));
            }
        }
    }
    Ok(varied)
}

/// Sets the lengths of a source that has some.
fn set_lengths(source: &mut SourcePlan, alias: Alias, lengths: LengthDistribution) -> Option<()> {
    match (source, alias) {
        (SourcePlan::Synthetic { input, .. }, Alias::Input) => *input = lengths,
        (SourcePlan::Synthetic { output, .. }, Alias::Output | Alias::MaxTokens) => {
            *output = lengths;
        }
        (SourcePlan::Dataset(data), Alias::MaxTokens) => data.output = Some(lengths),
        _ => return None,
    }
    Some(())
}

fn mode_at_rate(mode: &Mode, rate: Rate) -> Mode {
    match *mode {
        Mode::Open { arrivals, max_concurrency, .. }
        | Mode::Shaped { arrivals, max_concurrency, .. } => {
            Mode::Open { rate, arrivals, max_concurrency }
        }
        Mode::Replay { max_concurrency, .. } => {
            Mode::Open { rate, arrivals: ArrivalProcess::Poisson, max_concurrency }
        }
        Mode::Closed { .. } => {
            Mode::Open { rate, arrivals: ArrivalProcess::Poisson, max_concurrency: None }
        }
    }
}

fn mode_with_users(mode: &Mode, concurrency: u32) -> Mode {
    match *mode {
        Mode::Closed { think_time, pause_first, .. } => {
            Mode::Closed { concurrency, think_time, pause_first }
        }
        _ => Mode::Closed { concurrency, think_time: Duration::ZERO, pause_first: false },
    }
}

/// Sets a value as it would be edited in `plan.toml`, and reads the plan back.
fn set_by_path(plan: &Plan, path: &str, text: &str) -> Result<Plan, VaryError> {
    let whole = Value::try_from(plan).map_err(|error| VaryError::WrongValue {
        path: path.to_owned(),
        value: text.to_owned(),
        because: format!("the plan cannot be written: {error}"),
        now: None,
    })?;
    let now = find_value(&whole, path)?;
    let mut refusal = None;
    for value in parse_readings(text, now) {
        let mut varied = whole.clone();
        put_value(&mut varied, path, value);
        match Plan::deserialize(varied) {
            Ok(plan) => return Ok(plan),
            // The first reading is the likeliest.
            Err(error) => refusal = refusal.or(Some(error.message().trim().to_owned())),
        }
    }
    let because = refusal.unwrap_or_else(|| format!("it is {}", expected_text(now)));
    if now.is_none() && because.starts_with("unknown field") {
        return Err(unknown_step_error(&whole, path, &because));
    }
    let now = now.map(value_text);
    Err(VaryError::WrongValue { path: path.to_owned(), value: text.to_owned(), because, now })
}

/// The steps of a path, as `plan.toml` calls them.
fn path_steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').map(|step| if step == "classes" { "class" } else { step })
}

fn child_value<'a>(value: &'a Value, step: &str) -> Option<&'a Value> {
    match value {
        Value::Table(table) => table.get(step),
        Value::Array(values) => values.get(step.parse::<usize>().ok()?),
        _ => None,
    }
}

/// What stands at a path; none if nothing does, but something might.
fn find_value<'a>(whole: &'a Value, path: &str) -> Result<Option<&'a Value>, VaryError> {
    let (mut here, mut place) = (whole, Vec::new());
    let last = path_steps(path).count().saturating_sub(1);
    for (index, step) in path_steps(path).enumerate() {
        match child_value(here, step) {
            Some(value) => here = value,
            // Values that may be left out are not there until they are set.
            None if index == last && here.is_table() && !step.is_empty() => return Ok(None),
            None => return Err(no_such_step_error(whole, path, &place.join("."), &names_at(here))),
        }
        place.push(step);
    }
    Ok(Some(here))
}

fn put_value(whole: &mut Value, path: &str, value: Value) {
    let mut here = whole;
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    for step in path_steps(parents).filter(|step| !step.is_empty()) {
        let next = match here {
            Value::Table(table) => table.get_mut(step),
            Value::Array(values) => {
                step.parse::<usize>().ok().and_then(|index| values.get_mut(index))
            }
            _ => None,
        };
        let Some(next) = next else { return };
        here = next;
    }
    let last = path_steps(last).next().unwrap_or(last);
    match here {
        Value::Table(table) => {
            table.insert(last.to_owned(), value);
        }
        Value::Array(values) => {
            let place = last.parse::<usize>().ok().and_then(|index| values.get_mut(index));
            if let Some(place) = place {
                *place = value;
            }
        }
        _ => {}
    }
}

/// The ways in which a text can be read as a value, the likeliest first: like what stands there; where
/// nothing does, as TOML or as a text.
fn parse_readings(text: &str, now: Option<&Value>) -> Vec<Value> {
    let as_toml = || {
        let table: Option<toml::Table> = format!("v = {text}").parse().ok();
        table.filter(|table| table.len() == 1).and_then(|mut table| table.remove("v"))
    };
    let string = || Value::String(text.to_owned());
    match now {
        Some(Value::String(_)) => vec![string()],
        Some(Value::Integer(_)) => {
            text.trim().parse().ok().map(Value::Integer).into_iter().collect()
        }
        Some(Value::Float(_)) => text.trim().parse().ok().map(Value::Float).into_iter().collect(),
        Some(Value::Boolean(_)) => {
            text.trim().parse().ok().map(Value::Boolean).into_iter().collect()
        }
        Some(_) => as_toml().into_iter().collect(),
        None => as_toml().into_iter().chain([string()]).collect(),
    }
}

fn expected_text(now: Option<&Value>) -> &'static str {
    match now {
        Some(Value::Integer(_)) => "not a whole number",
        Some(Value::Float(_)) => "not a number",
        Some(Value::Boolean(_)) => "neither true nor false",
        Some(Value::Array(_)) => "not a list in TOML",
        Some(Value::Table(_)) => "not a table in TOML; name one of its values",
        _ => "not a value",
    }
}

/// What stands there, in a line.
fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Table(_) => format!("a table of {}", names_at(value).join(", ")),
        Value::Array(values) => format!("a list of {}", values.len()),
        other => other.to_string(),
    };
    if text.chars().count() > 80 { text.chars().take(80).chain(['…']).collect() } else { text }
}

/// What there is at a place.
fn names_at(value: &Value) -> Vec<String> {
    match value {
        Value::Table(table) => table.keys().cloned().collect(),
        Value::Array(values) => (0..values.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// A last step that the plan does not know, though something else could stand there.
fn unknown_step_error(whole: &Value, path: &str, because: &str) -> VaryError {
    let place = path.rsplit_once('.').map_or("", |(place, _)| place);
    let here = path_steps(place).filter(|step| !step.is_empty()).try_fold(whole, child_value);
    let mut known: BTreeSet<String> = here.map(names_at).unwrap_or_default().into_iter().collect();
    // "unknown field `x`, expected one of `a`, `b`": with those that are left out now.
    known.extend(because.split('`').skip(3).step_by(2).map(str::to_owned));
    no_such_step_error(whole, path, place, &known.into_iter().collect::<Vec<_>>())
}

fn no_such_step_error(whole: &Value, path: &str, place: &str, here: &[String]) -> VaryError {
    let inside = if place.is_empty() { String::new() } else { format!("{place}.") };
    let mut known: Vec<String> = here.iter().map(|name| format!("{inside}{name}")).collect();
    known.extend(ALIASES.iter().map(|(name, _)| (*name).to_owned()));
    collect_paths(whole, "", &mut known);
    let distance = |known: &String| {
        let whole = edit_distance(path, known);
        // `timeout` may mean `target.timeout`.
        let last = known.rsplit_once('.').map_or(known.as_str(), |(_, last)| last);
        let only_last = if path.contains('.') { usize::MAX } else { edit_distance(path, last) };
        whole.min(only_last.saturating_add(usize::from(last != known)))
    };
    let near = known.iter().map(|known| (distance(known), known)).min();
    let suggestion =
        near.filter(|(edits, _)| *edits <= 1 + path.len() / 6).map(|near| near.1.clone());
    VaryError::NoSuchValue {
        path: path.to_owned(),
        place: place.to_owned(),
        names: here.to_vec(),
        suggestion,
    }
}

/// The paths of all values.
fn collect_paths(value: &Value, path: &str, found: &mut Vec<String>) {
    let inside = names_at(value);
    for name in &inside {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(value) = child_value(value, name) {
            collect_paths(value, &path, found);
        }
    }
    if inside.is_empty() {
        found.push(path.to_owned());
    }
}

/// Letters that must be changed, added or left out to make one word of the other.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let kept = row.get(j).copied().unwrap_or_default() + usize::from(a != *b);
            let added = next.get(j).copied().unwrap_or_default() + 1;
            let left_out = row.get(j + 1).copied().unwrap_or_default() + 1;
            next.push(kept.min(added).min(left_out));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
