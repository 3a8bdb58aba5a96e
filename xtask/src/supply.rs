//! `cargo xtask supply`: what the dependencies bring along: known holes, licenses, build scripts.

mod advisories;
mod build_scripts;
mod licenses;

use std::process::Command;

use serde_json::Value;

/// The systems that the program is made for: what only others need is not looked at.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// A package from outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CheckedPackage {
    name: String,
    version: String,
    license: String,
    has_build_script: bool,
}

/// Fails with everything that is not as it should be.
#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
pub(crate) fn check() -> Result<(), String> {
    let packages = packages(&metadata()?);
    let mut faults = licenses::faults(&packages);
    faults.extend(build_scripts::faults(&packages, include_str!("supply/build-scripts.txt")));
    let lock = std::fs::read_to_string("Cargo.lock").map_err(|e| format!("Cargo.lock: {e}"))?;
    match advisories::database() {
        Some(folder) => faults.extend(advisories::faults(&folder, &lock)?),
        None => eprintln!(
            "SKIPPED advisories: no RustSec database here; clone \
             https://github.com/RustSec/advisory-db and set {}",
            advisories::VARIABLE
        ),
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("\n  {}", faults.join("\n  "))) }
}

fn metadata() -> Result<Value, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--locked", "--format-version", "1"]);
    for platform in PLATFORMS {
        command.args(["--filter-platform", platform]);
    }
    let output = command.output().map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("cannot read cargo metadata: {error}\n{said}")
    })
}

/// All packages from outside, sorted.
fn packages(metadata: &Value) -> Vec<CheckedPackage> {
    let mut packages: Vec<CheckedPackage> = list(&metadata["packages"])
        .filter(|package| !package["source"].is_null())
        .map(|package| CheckedPackage {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: text(&package["license"]),
            has_build_script: list(&package["targets"])
                .any(|target| list(&target["kind"]).any(|kind| kind == "custom-build")),
        })
        .collect();
    packages.sort();
    packages
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package of the tests below.
    pub(super) fn package(name: &str, license: &str, has_build_script: bool) -> CheckedPackage {
        CheckedPackage {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            has_build_script,
        }
    }

    #[test]
    fn packages_from_outside_are_read() {
        let package = |name: &str, source: Value, kind: &str| {
            json!({"name": name, "version": "1.0.0", "license": "MIT", "source": source,
                "targets": [{"kind": ["lib"]}, {"kind": [kind]}]})
        };
        let metadata = json!({"packages": [
            package("b", json!("crates.io"), "custom-build"),
            package("goodput", Value::Null, "bin"),
            package("a", json!("crates.io"), "test"),
        ]});
        assert_eq!(
            packages(&metadata),
            [self::package("a", "MIT", false), self::package("b", "MIT", true)]
        );
    }
}
