//! Which crate may see which: the walls of ARCHITECTURE.md, checked against the manifests; and
//! which modules of a crate may see each other, checked against the source ([`crate::modules`]).

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// Our crates, from the bottom up, with those of ours that each may see.
const OURS: [(&str, &[&str]); 29] = [
    ("goodput-files", &[]),
    ("goodput-model", &[]),
    ("goodput-clock", &["goodput-model"]),
    ("goodput-http", &["goodput-model", "goodput-clock"]),
    ("goodput-tokens", &["goodput-model", "goodput-files"]),
    ("goodput-dataset", &["goodput-model", "goodput-files"]),
    ("goodput-workload", &["goodput-model", "goodput-files", "goodput-tokens", "goodput-dataset"]),
    ("goodput-wire", &["goodput-model", "goodput-clock"]),
    ("goodput-fleet", &["goodput-model", "goodput-clock"]),
    ("goodput-record", &["goodput-model", "goodput-files"]),
    ("goodput-stats", &["goodput-model"]),
    ("goodput-observe", &["goodput-model"]),
    ("goodput-sim", &["goodput-model"]),
    ("goodput-mock", &["goodput-model", "goodput-clock", "goodput-files", "goodput-sim"]),
    ("goodput-engine", &["goodput-model", "goodput-clock", "goodput-workload", "goodput-wire"]),
    ("goodput-campaign", &["goodput-model", "goodput-stats", "goodput-sim"]),
    (
        "goodput-exchange",
        &["goodput-model", "goodput-files", "goodput-record", "goodput-stats", "goodput-campaign"],
    ),
    ("goodput-truth", &["goodput-model", "goodput-clock"]),
    (
        "goodput-live",
        &[
            "goodput-model",
            "goodput-clock",
            "goodput-wire",
            "goodput-tokens",
            "goodput-dataset",
            "goodput-record",
            "goodput-campaign",
        ],
    ),
    (
        "goodput-lab",
        &[
            "goodput-model",
            "goodput-clock",
            "goodput-files",
            "goodput-tokens",
            "goodput-dataset",
            "goodput-workload",
            "goodput-wire",
            "goodput-record",
            "goodput-observe",
            "goodput-mock",
            "goodput-truth",
            "goodput-engine",
            "goodput-fleet",
            "goodput-stats",
            "goodput-campaign",
            "goodput-exchange",
            "goodput-live",
        ],
    ),
    ("goodput-document", &["goodput-model"]),
    ("goodput-report", &["goodput-model", "goodput-document", "goodput-stats", "goodput-campaign"]),
    (
        "goodput-ui",
        &[
            "goodput-model",
            "goodput-clock",
            "goodput-files",
            "goodput-http",
            "goodput-record",
            "goodput-document",
        ],
    ),
    (
        "goodput-monitor",
        &[
            "goodput-model",
            "goodput-clock",
            "goodput-http",
            "goodput-fleet",
            "goodput-engine",
            "goodput-stats",
            "goodput-campaign",
            "goodput-lab",
            "goodput-live",
            "goodput-report",
        ],
    ),
    ("goodput-testkit", &["goodput-model", "goodput-clock"]),
    (
        "goodput-bench",
        &["goodput-model", "goodput-clock", "goodput-truth", "goodput-wire", "goodput-record"],
    ),
    (
        "goodput-fuzz",
        &[
            "goodput-model",
            "goodput-clock",
            "goodput-tokens",
            "goodput-dataset",
            "goodput-workload",
            "goodput-wire",
            "goodput-live",
            "goodput-fleet",
            "goodput-exchange",
            "goodput-record",
            "goodput-stats",
            "goodput-observe",
            "goodput-campaign",
            "goodput-report",
            "goodput-sim",
            "goodput-mock",
        ],
    ),
    ("goodput-attack", &["goodput-model", "goodput-clock"]),
    ("xtask", &["goodput-model", "goodput-clock", "goodput-sim"]),
];

/// Foreign crates that stay behind a wall, with the crates of ours that may know them.
const WALLS: [(&str, &[&str]); 18] = [
    ("hyper", &["goodput-wire", "goodput-mock", "goodput-live"]),
    ("hyper-util", &["goodput-wire", "goodput-mock", "goodput-live"]),
    (
        "rustls",
        &["goodput-wire", "goodput-mock", "goodput-live", "goodput-fleet", "goodput-attack"],
    ),
    ("tokio-rustls", &["goodput-wire", "goodput-mock", "goodput-live", "goodput-fleet"]),
    ("ring", &["goodput-fleet"]),
    (
        "tokio",
        &[
            "goodput-clock",
            "goodput-wire",
            "goodput-engine",
            "goodput-mock",
            "goodput-live",
            "goodput-fleet",
            "goodput-fuzz",
            "goodput-lab",
            "goodput",
        ],
    ),
    ("clap", &["goodput"]),
    ("ratatui", &["goodput-monitor", "goodput"]),
    ("prost", &["goodput-record"]),
    ("toml", &["goodput-record", "goodput-sim", "xtask"]),
    ("rand_chacha", &["goodput-model"]),
    ("libm", &["goodput-model"]),
    ("tokenizers", &["goodput-tokens"]),
    ("tiktoken-rs", &["goodput-tokens"]),
    ("parquet", &["goodput-dataset", "goodput-exchange"]),
    ("csv", &["goodput-dataset", "goodput-exchange"]),
    ("statrs", &["goodput-stats"]),
    ("nvml-wrapper", &["goodput-observe"]),
];

/// Dependencies by crate, without those of tests.
type Graph = BTreeMap<String, Vec<String>>;

/// Fails with every breach.
pub(crate) fn check() -> Result<(), String> {
    let mut breaches = breaches(&graph()?);
    breaches.extend(crate::modules::breaches()?);
    if breaches.is_empty() { Ok(()) } else { Err(format!("\n  {}", breaches.join("\n  "))) }
}

fn graph() -> Result<Graph, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot read cargo metadata: {error}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let normal = |package: &Value| {
        let is_normal = |dependency: &&Value| dependency["kind"].is_null();
        let dependencies = list(&package["dependencies"]);
        dependencies.iter().filter(is_normal).map(|d| text(&d["name"])).collect()
    };
    Ok(list(&metadata["packages"]).iter().map(|p| (text(&p["name"]), normal(p))).collect())
}

fn breaches(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (name, dependencies) in graph {
        let allowed = OURS.iter().find(|(ours, _)| ours == name).map(|(_, allowed)| *allowed);
        if allowed.is_none() && name != "goodput" {
            found.push(format!("{name} is missing in xtask/src/layers.rs"));
        }
        for dependency in dependencies {
            let is_ours = dependency.starts_with("goodput-");
            let sees = allowed.is_none_or(|allowed| allowed.contains(&dependency.as_str()));
            if is_ours && !sees {
                found.push(format!("{name} must not depend on {dependency}"));
            }
            let wall = WALLS.iter().find(|(foreign, _)| foreign == dependency);
            if wall.is_some_and(|(_, knowing)| !knowing.contains(&name.as_str())) {
                found.push(format!("{name} must not depend on {dependency}"));
            }
        }
        if dependencies.iter().any(|dependency| dependency == "goodput-testkit") {
            found.push(format!("{name} uses the test kit outside its tests"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walls_stand() {
        assert_eq!(breaches(&graph().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn a_breach_is_found() {
        let graph = |name: &str, dependency: &str| {
            Graph::from([(name.to_owned(), vec![dependency.to_owned()])])
        };
        assert_eq!(breaches(&graph("goodput-stats", "goodput-record")).len(), 1);
        assert_eq!(breaches(&graph("goodput-stats", "tokio")).len(), 1);
        assert_eq!(breaches(&graph("goodput-report", "clap")).len(), 1);
        assert_eq!(breaches(&graph("goodput-document", "goodput-stats")).len(), 1);
        assert_eq!(breaches(&graph("goodput-ui", "goodput-report")).len(), 1);
        assert_eq!(breaches(&graph("goodput", "goodput-testkit")).len(), 1);
        assert_eq!(breaches(&graph("goodput-new", "serde")).len(), 1);
        assert_eq!(breaches(&graph("goodput-wire", "hyper")).len(), 0);
    }
}
