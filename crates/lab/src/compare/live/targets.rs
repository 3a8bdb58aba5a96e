//! Who is compared: targets as they were typed, or a list of them in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use goodput_model::{Header, Plan, REDACTED};
use goodput_wire::BaseUrl;
use serde::{Deserialize, Serialize};

use super::request::CompareRequest;
use super::vary::variants;
use crate::compare::names::{
    LONGEST, MOST, RESERVED, bad_name_error, facts_by_side, one_per_side, put_reference_first,
    side_letter, split_name,
};
use crate::error::Failed;

/// One of those compared, as far as it differs from the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// What it is called.
    pub name: String,
    /// Base URL, or `mock[:…]`.
    pub url: String,
    /// Model name, where it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Environment variable that holds its API key, where it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Extra headers of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// GPUs behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Price of one of them per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_gpu_hour: Option<f64>,
    /// What the user states about it (`--meta NAME.KEY=VALUE`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The settings by which it differs from the baseline (`--vary`); empty of the baseline, and
    /// where nothing is varied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub varied: String,
}

impl TargetSpec {
    fn new(name: String, url: &str) -> Self {
        Self {
            name,
            url: url.to_owned(),
            model: None,
            api_key_env: None,
            headers: Vec::new(),
            gpus: None,
            price_per_gpu_hour: None,
            meta: BTreeMap::new(),
            varied: String::new(),
        }
    }

    /// The plan that all share, with this target.
    pub(super) fn target_plan(&self, base: &Plan) -> Plan {
        let mut plan = base.clone();
        let target = &mut plan.target;
        target.url.clone_from(&self.url);
        if self.model.is_some() {
            target.model.clone_from(&self.model);
        }
        if let Some(name) = &self.api_key_env {
            target.api_key_env.clone_from(name);
        }
        for own in &self.headers {
            target.headers.retain(|header| !header.name.eq_ignore_ascii_case(&own.name));
            target.headers.push(own.clone());
        }
        plan.system.extend(self.meta.clone());
        plan
    }
}

/// The file of `--targets`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetsFile {
    target: Vec<TargetEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetEntry {
    name: Option<String>,
    url: String,
    model: Option<String>,
    api_key_env: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    gpus: Option<u32>,
    price_per_gpu_hour: Option<f64>,
    #[serde(default)]
    meta: BTreeMap<String, String>,
}

/// Targets as they were typed, or a file that lists them.
#[derive(Debug, Clone, Copy)]
pub struct NamedTargets<'a> {
    /// A TOML file with a table for each target.
    pub list: Option<&'a Path>,
    /// `NAME=TARGET` each, without a list.
    pub typed: &'a [String],
    /// The name of the one that the others are compared with; the first where it has none.
    pub reference: Option<&'a str>,
    /// The only one should be compared with itself.
    pub with_itself: bool,
    /// Settings that the only one should be compared with, each as `KEY=VALUE`.
    pub vary: &'a [String],
    /// GPUs behind each: one number for all, or one for each.
    pub gpus: &'a [u32],
    /// What one of them costs for an hour, likewise.
    pub prices: &'a [f64],
}

impl NamedTargets<'_> {
    fn read_targets(&self) -> Result<Vec<TargetSpec>, Failed> {
        self.list.map_or_else(|| Ok(parse_targets(self.typed)), read_list)
    }
}

/// Everyone, the reference first.
pub fn resolve_targets(named: &NamedTargets<'_>) -> Result<Vec<TargetSpec>, Failed> {
    if let Some(failed) = named.typed.iter().find_map(|text| bad_name_error(text)) {
        return Err(failed);
    }
    let mut all = named.read_targets()?;
    if named.with_itself {
        let [only] = all.as_mut_slice() else {
            return Err(Failed::usage(format!("--aa takes one target, not {}", all.len()))
                .hint("remove --aa to compare them with each other"));
        };
        let again = TargetSpec { name: format!("{}'", only.name), ..only.clone() };
        all.push(again);
    }
    if !named.vary.is_empty() {
        all = variants(&all, named.vary)?;
    }
    check_targets(&all)?;
    assign_hardware(&mut all, named)?;
    put_reference_first(&mut all, named.reference, |one| &one.name)?;
    Ok(all)
}

/// Gives each target what the facts of a plan state about it alone; what is left in the plan is of
/// all targets.
pub fn assign_facts(system: &mut BTreeMap<String, String>, targets: &mut [TargetSpec]) {
    let names: Vec<&str> = targets.iter().map(|one| one.name.as_str()).collect();
    let each = facts_by_side(system, &names);
    let is_shared = |name: &String, value: &String| {
        each.iter().any(|own| own.get(name).is_some_and(|own| own == value))
    };
    let shared: BTreeMap<String, String> =
        std::mem::take(system).into_iter().filter(|(name, value)| is_shared(name, value)).collect();
    for (one, own) in targets.iter_mut().zip(each) {
        one.meta.extend(own.into_iter().filter(|(name, value)| shared.get(name) != Some(value)));
    }
    *system = shared;
}

fn parse_targets(targets: &[String]) -> Vec<TargetSpec> {
    let one = |(place, text): (usize, &String)| {
        let (name, url) = split_name(text);
        TargetSpec::new(name.map_or_else(|| side_letter(place), str::to_owned), url)
    };
    targets.iter().enumerate().map(one).collect()
}

fn read_list(path: &Path) -> Result<Vec<TargetSpec>, Failed> {
    let list: TargetsFile = goodput_record::read_toml(path).map_err(|error| {
        Failed::usage(error.to_string())
            .hint("each target is a table: [[target]], name = \"…\", url = \"http://…\"")
    })?;
    let one = |(place, listed): (usize, TargetEntry)| {
        let headers = listed.headers.into_iter();
        TargetSpec {
            name: listed.name.unwrap_or_else(|| side_letter(place)),
            url: listed.url,
            model: listed.model,
            api_key_env: listed.api_key_env,
            headers: headers.map(|(name, value)| Header { name, value }).collect(),
            gpus: listed.gpus,
            price_per_gpu_hour: listed.price_per_gpu_hour,
            meta: listed.meta,
            varied: String::new(),
        }
    };
    Ok(list.target.into_iter().enumerate().map(one).collect())
}

fn check_targets(all: &[TargetSpec]) -> Result<(), Failed> {
    match all {
        [] => {
            return Err(Failed::usage("no targets to compare")
                .hint("goodput compare http://localhost:8000 http://localhost:8001 --rate 8"));
        }
        [_] => {
            return Err(Failed::usage("a comparison needs two targets")
                .hint("add a second target, or --aa to compare it with itself"));
        }
        _ if all.len() > MOST => {
            return Err(Failed::usage(format!(
                "{} targets given, at most {MOST} allowed",
                all.len()
            )));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for TargetSpec { name, gpus, price_per_gpu_hour, .. } in all {
        // A target and itself have one name between them.
        let letters = name.strip_suffix('\'').unwrap_or(name).chars();
        if name.trim().is_empty() || letters.count() > LONGEST || name.chars().any(char::is_control)
        {
            return Err(Failed::usage(format!(
                "a target's name is empty, longer than {LONGEST} characters, or contains a control character"
            ))
            .hint("give it a name: NAME=TARGET"));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(Failed::usage(format!("a target cannot be named `{name}`"))
                .hint("the tables use that word; choose another name: NAME=TARGET"));
        }
        if !seen.insert(name) {
            return Err(Failed::usage(format!("two targets are named `{name}`"))
                .hint("give each its own name: NAME=TARGET"));
        }
        let is_price = |price: f64| price.is_finite() && price >= 0.0;
        if *gpus == Some(0) || price_per_gpu_hour.is_some_and(|price| !is_price(price)) {
            return Err(Failed::usage(format!(
                "`{name}` needs at least one GPU and a price that is not negative"
            )));
        }
    }
    Ok(())
}

/// GPUs and prices: give one for all targets, or one for each.
fn assign_hardware(all: &mut [TargetSpec], named: &NamedTargets<'_>) -> Result<(), Failed> {
    let gpus = one_per_side(named.gpus, all.len(), "--gpus")?;
    let prices = one_per_side(named.prices, all.len(), "--price-per-gpu-hour")?;
    for (one, (gpus, price)) in all.iter_mut().zip(gpus.into_iter().zip(prices)) {
        one.gpus = gpus.or(one.gpus);
        one.price_per_gpu_hour = price.or(one.price_per_gpu_hour);
    }
    Ok(())
}

/// Secrets are not kept: where targets are given again, they are those, each by its name. Nothing else
/// about a target may change.
pub fn restore_secrets(
    request: &mut CompareRequest,
    targets: &NamedTargets<'_>,
) -> Result<(), Failed> {
    let given = targets.read_targets()?;
    let is_same = request.design.same_target;
    let kept = &mut request.targets;
    if let Some(other) = given.iter().find(|one| kept.iter().all(|kept| kept.name != one.name)) {
        let names: Vec<&str> = kept.iter().map(|one| one.name.as_str()).collect();
        return Err(Failed::usage(format!("this comparison has no target `{}`", other.name))
            .hint(format!("its targets are {}; name one with NAME=TARGET", names.join(", "))));
    }
    for one in kept {
        let by_name = given.iter().find(|given| given.name == one.name);
        if let Some(again) = by_name.or_else(|| given.first().filter(|_| is_same)) {
            if shown_url(&again.url) != shown_url(&one.url) {
                let (name, was, is) = (&one.name, shown_url(&one.url), shown_url(&again.url));
                return Err(Failed::usage(format!("`{name}` was {was}, and is now {is}"))
                    .hint("start a new comparison to measure another target"));
            }
            one.url.clone_from(&again.url);
            // Headers stand in a list alone.
            if targets.list.is_some() {
                one.headers.clone_from(&again.headers);
            }
        }
        if one.url.contains(REDACTED) {
            return Err(Failed::usage(format!("the URL of `{}` contains a secret", one.name))
                .hint("secrets are never saved: give the targets again with --resume"));
        }
        if let Some(header) = one.headers.iter().find(|header| header.value == REDACTED) {
            let (name, side) = (&header.name, &one.name);
            return Err(Failed::usage(format!(
                "the value of header `{name}` of `{side}` was not saved"
            ))
            .hint("header values are never saved: add --targets FILE to --resume"));
        }
    }
    Ok(())
}

/// A URL without its secrets, as it is kept.
fn shown_url(url: &str) -> String {
    url.parse::<BaseUrl>().map_or_else(|_| url.to_owned(), |url| url.shown())
}
