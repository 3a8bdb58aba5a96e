//! Whether folders are the shards of one run.

use std::path::PathBuf;

use goodput_model::{Plan, ShardFacts};
use goodput_record::{Artifact, FolderError, Manifest, RunFolder};
use serde_json::Value;

use crate::error::Failed;
use crate::events::Observer;

/// The folder of one rank.
pub(super) struct ShardFolder {
    pub(super) folder: RunFolder,
    pub(super) plan: Plan,
    pub(super) manifest: Manifest,
    pub(super) facts: ShardFacts,
}

impl ShardFolder {
    fn display_text(&self) -> String {
        format!("`{}`", self.folder.path().display())
    }
}

/// What each rank settles for itself, or what is compared elsewhere.
const OWN: [&str; 10] = [
    "/observe",
    "/target/url",
    "/target/model",
    "/target/cacert",
    "/target/api_key_env",
    "/target/insecure",
    "/target/probe",
    "/target/wait_ready",
    "/load/workers",
    "/load/pin",
];

/// Opens the folders, in the order of their ranks.
pub(super) fn open_shards(folders: &[PathBuf]) -> Result<Vec<ShardFolder>, Failed> {
    let unreadable = |error: FolderError| {
        Failed::usage(error.to_string()).hint(
            "name the run folders of the shards, each with plan.toml, manifest.json, and \
             requests.log",
        )
    };
    let mut ranks = Vec::new();
    for path in folders {
        let folder = match Artifact::open(path) {
            Ok(Artifact::Run(folder) | Artifact::Shard(folder)) => folder,
            Err(error) => return Err(unreadable(error)),
            // It says what is missing.
            Ok(_) => RunFolder::open(path).map_err(unreadable)?,
        };
        let plan = folder.read_plan().map_err(unreadable)?;
        let manifest = folder.read_manifest().map_err(unreadable)?;
        let Some(facts) = manifest.shard.clone() else {
            let what =
                if manifest.shards.is_empty() { "a whole run" } else { "a merged run already" };
            return Err(Failed::usage(format!("`{}` is {what}, not a shard", path.display()))
                .hint("shards are measured with --shard K/N; to compare whole runs use `goodput compare`"));
        };
        ranks.push(ShardFolder { folder, plan, manifest, facts });
    }
    ranks.sort_by_key(|rank| rank.facts.shard.index());
    Ok(ranks)
}

/// No folder at all.
pub(super) fn no_folder_error() -> Failed {
    Failed::usage("no shards to merge").hint("name the run folders of the shards")
}

/// Refuses what does not belong together; `force` lets pass what may have a reason.
pub(super) fn check_agreement(
    ranks: &[ShardFolder],
    expected: Option<u32>,
    force: bool,
    observer: &dyn Observer,
) -> Result<(), Failed> {
    let Some(first) = ranks.first() else { return Err(no_folder_error()) };
    let of = first.facts.shard.count();
    if let Some(expected) = expected.filter(|expected| *expected != of) {
        let message = format!("{} is one of {of} shards, not of {expected}", first.display_text());
        return Err(Failed::usage(message).hint("merge the shards of one run"));
    }
    for pair in ranks.windows(2) {
        let [one, other] = pair else { continue };
        let shards = (one.facts.shard, other.facts.shard);
        if shards.0.count() != shards.1.count() {
            let message = format!(
                "{} is shard {} and {} is shard {}: not the same number of shards",
                one.display_text(),
                shards.0,
                other.display_text(),
                shards.1
            );
            return Err(Failed::usage(message).hint("merge the shards of one run"));
        }
        if shards.0 == shards.1 {
            let message = format!(
                "{} and {} are both shard {}",
                one.display_text(),
                other.display_text(),
                shards.0
            );
            return Err(Failed::usage(message).hint("name each shard once"));
        }
    }
    ranks[1..].iter().try_for_each(|rank| check_same_load(first, rank, force, observer))
}

/// Whether two ranks sent parts of one load to one server.
fn check_same_load(
    one: &ShardFolder,
    other: &ShardFolder,
    force: bool,
    observer: &dyn Observer,
) -> Result<(), Failed> {
    let refuse = |what: &str, a: &str, b: &str| {
        let message = format!(
            "{} and {} differ in {what}: {a} and {b}",
            one.display_text(),
            other.display_text()
        );
        Failed::usage(message)
    };
    let parts = "the shards of a run share one plan: run all of them with the same flags";
    if let Some((field, a, b)) =
        first_difference(&comparable_plan(&one.plan), &comparable_plan(&other.plan), "")
    {
        return Err(refuse(&format!("plan ({field})"), &a, &b).hint(parts));
    }
    let (a, b) = (&one.manifest.workload.hash, &other.manifest.workload.hash);
    if a != b {
        let hint = "the ranks had different datasets, traces, or tokenizers";
        return Err(refuse("workload (its hash)", a, b).hint(hint));
    }
    let fleet = |rank: &ShardFolder| rank.facts.fleet.clone().unwrap_or_else(|| "none".to_owned());
    let may_differ = [
        ("target", one.plan.target.url.clone(), other.plan.target.url.clone()),
        ("model", one.manifest.target.model.clone(), other.manifest.target.model.clone()),
        ("goodput version", one.manifest.version.clone(), other.manifest.version.clone()),
        ("common start", fleet(one), fleet(other)),
    ];
    for (what, a, b) in may_differ.iter().filter(|(_, a, b)| a != b) {
        let refused = refuse(what, a, b);
        if !force {
            return Err(refused.hint("--force merges them anyway"));
        }
        observer.warn(refused.to_string());
    }
    Ok(())
}

/// A plan without what each rank settles for itself.
fn comparable_plan(plan: &Plan) -> Value {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    for pointer in OWN {
        if let Some(field) = value.pointer_mut(pointer) {
            *field = Value::Null;
        }
    }
    // Absent in one and named in the other is the same then.
    if let Some(target) = value.pointer_mut("/target").and_then(Value::as_object_mut) {
        target.retain(|_, value| !value.is_null());
    }
    value
}

/// The first field that differs, and both its values.
fn first_difference(one: &Value, other: &Value, path: &str) -> Option<(String, String, String)> {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match (one, other) {
        _ if one == other => None,
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            let of = |fields: &serde_json::Map<String, Value>, name: &str| {
                fields.get(name).cloned().unwrap_or_default()
            };
            let mut all =
                names.map(|name| first_difference(&of(a, name), &of(b, name), &below(name)));
            all.find_map(|found| found)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut all = a.iter().zip(b).enumerate();
            all.find_map(|(place, (a, b))| first_difference(a, b, &below(&place.to_string())))
        }
        _ => Some((path.to_owned(), shorten_value(one), shorten_value(other))),
    }
}

fn shorten_value(value: &Value) -> String {
    let text = if value.is_null() { "nothing".to_owned() } else { value.to_string() };
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let plan = |rate: &str, seed: u64| json!({"load": {"mode": {"rate": rate}, "seed": seed}, "list": [1, 2]});
        assert_eq!(first_difference(&plan("2/s", 1), &plan("2/s", 1), ""), None);
        let found = first_difference(&plan("2/s", 1), &plan("3/s", 1), "");
        let expected = ("load.mode.rate".to_owned(), "\"2/s\"".to_owned(), "\"3/s\"".to_owned());
        assert_eq!(found, Some(expected));
        let found = first_difference(&json!({"a": [1, 2]}), &json!({"a": [1, 3]}), "");
        assert_eq!(found, Some(("a.1".to_owned(), "2".to_owned(), "3".to_owned())));
        let found = first_difference(&json!({}), &json!({"b": 1}), "");
        assert_eq!(found, Some(("b".to_owned(), "nothing".to_owned(), "1".to_owned())));
    }
}
