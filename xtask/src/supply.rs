//! `cargo xtask supply`: what the dependencies bring along: known holes, licenses, build scripts.

mod advisories;
mod build_scripts;
mod licenses;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The systems that the program is made for: what only others need is not looked at.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// A package from outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    license: String,
    repository: String,
    has_build_script: bool,
    /// Whether it is part of the program, and not only of its tests.
    is_shipped: bool,
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

/// Writes the packages of the program with their licenses to a file, for those who hand it on.
#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
pub(crate) fn write_licenses(words: &[String]) -> Result<(), String> {
    let packages = packages(&metadata()?);
    let target = crate::target_folder().join("THIRD_PARTY.md");
    let path = words.first().map_or(target.as_path(), Path::new);
    std::fs::write(path, licenses::page(&packages))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
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
fn packages(metadata: &Value) -> Vec<Package> {
    let shipped = shipped(metadata);
    let mut packages: Vec<Package> = list(&metadata["packages"])
        .filter(|package| !package["source"].is_null())
        .map(|package| Package {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: text(&package["license"]),
            repository: text(&package["repository"]),
            has_build_script: list(&package["targets"])
                .any(|target| list(&target["kind"]).any(|kind| kind == "custom-build")),
            is_shipped: shipped.contains(&text(&package["id"])),
        })
        .collect();
    packages.sort();
    packages
}

/// The ids of everything that the program is made of, or with.
fn shipped(metadata: &Value) -> Vec<String> {
    let nodes: Vec<&Value> = list(&metadata["resolve"]["nodes"]).collect();
    let program = list(&metadata["packages"]).find(|package| package["name"] == "goodput");
    let mut found: Vec<String> = program.map(|package| text(&package["id"])).into_iter().collect();
    let mut next = 0;
    while let Some(id) = found.get(next).cloned() {
        next += 1;
        let node = nodes.iter().find(|node| node["id"] == id.as_str());
        for dependency in node.into_iter().flat_map(|node| list(&node["deps"])) {
            let is_of_tests = list(&dependency["dep_kinds"]).all(|kind| kind["kind"] == "dev");
            let id = text(&dependency["pkg"]);
            if !is_of_tests && !found.contains(&id) {
                found.push(id);
            }
        }
    }
    found
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
    pub(super) fn package(name: &str, license: &str, has_build_script: bool) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            repository: String::new(),
            has_build_script,
            is_shipped: true,
        }
    }

    #[test]
    fn packages_of_tests_are_not_shipped() {
        let package = |name: &str, kind: &str| {
            json!({"name": name, "version": "1.0.0", "id": name, "license": "MIT", "repository": null,
                "source": if name == "goodput" { Value::Null } else { json!("crates.io") },
                "targets": [{"kind": [kind]}]})
        };
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("goodput", "bin"), package("a", "lib"), package("b", "custom-build"),
                package("c", "lib")],
            "resolve": {"nodes": [
                {"id": "goodput", "deps": [needs("a", Value::Null), needs("c", json!("dev"))]},
                {"id": "a", "deps": [needs("b", json!("build"))]},
            ]}
        });
        let found: Vec<_> = packages(&metadata)
            .into_iter()
            .map(|package| (package.name, package.has_build_script, package.is_shipped))
            .collect();
        let expected = [("a", false, true), ("b", true, true), ("c", false, false)];
        assert_eq!(
            found,
            expected.map(|(name, script, shipped)| (name.to_owned(), script, shipped))
        );
    }
}
