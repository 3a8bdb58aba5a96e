//! What this program was built from.

use std::sync::LazyLock;

use goodput_lab::features;
use goodput_model::Feature;
use goodput_record::BuildFacts;

/// What is known of the build.
pub(crate) fn facts() -> BuildFacts {
    BuildFacts {
        commit: env!("GOODPUT_COMMIT").to_owned(),
        committed: env!("GOODPUT_COMMIT_DATE").to_owned(),
        target: env!("GOODPUT_TARGET").to_owned(),
        features: features().map(|feature| feature.name().to_owned()).collect(),
    }
}

/// `0.1.0 (1c0d6d6f31 2026-11-19, x86_64-unknown-linux-gnu, features: nvml parquet)`
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(describe);
    &VERSION
}

fn describe() -> String {
    let facts = facts();
    let features = match facts.features.len() {
        0 => "none".to_owned(),
        count if count == Feature::ALL.len() => "full".to_owned(),
        _ => facts.features.join(" "),
    };
    let commit = format!("{} {}", facts.commit, facts.committed);
    let parts = [commit.trim().to_owned(), facts.target, format!("features: {features}")];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{} ({})", env!("CARGO_PKG_VERSION"), parts.join(", "))
}
