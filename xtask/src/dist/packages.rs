//! The packages that the program is made of, as Cargo resolves them for its target and features.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A package, ours or from outside.
#[derive(Debug, Default, Clone)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) license: String,
    pub(super) authors: Vec<String>,
    pub(super) repository: String,
    /// Where the source lies; none for ours.
    pub(super) folder: Option<PathBuf>,
    /// SHA-256 of what crates.io serves; none for ours.
    pub(super) checksum: Option<String>,
    /// Whether the program contains it. All others ran while the program was built.
    pub(super) is_linked: bool,
    /// What it depends on.
    pub(super) needs: BTreeSet<PackageId>,
}

/// Name and version.
pub(super) type PackageId = (String, String);

pub(super) type Packages = BTreeMap<PackageId, Package>;

/// Of the program for this target with these features.
pub(super) fn packages(target: &str, features: &str) -> Result<Packages, String> {
    let linked = graph(&tree(target, features, "normal,no-proc-macro")?);
    let graph = graph(&tree(target, features, "no-dev")?);
    let metadata = read_metadata()?;
    let checksums = checksums()?;
    let mut packages = Packages::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let id = (text("name"), text("version"));
        let Some(needs) = graph.get(&id) else { continue };
        let folder = || Path::new(package["manifest_path"].as_str()?).parent().map(Path::to_owned);
        let authors = package["authors"].as_array().into_iter().flatten();
        let found = Package {
            name: id.0.clone(),
            version: id.1.clone(),
            // An old form of `OR`.
            license: text("license").replace('/', " OR "),
            authors: authors.filter_map(|author| author.as_str().map(str::to_owned)).collect(),
            repository: text("repository"),
            folder: package["source"].as_str().and_then(|_| folder()),
            checksum: checksums.get(&id).cloned(),
            is_linked: linked.contains_key(&id),
            needs: needs.clone(),
        };
        packages.insert(id, found);
    }
    if packages.len() == graph.len() {
        Ok(packages)
    } else {
        Err("`cargo tree` and `cargo metadata` name different packages".to_owned())
    }
}

/// Each package with what it depends on, from lines such as `2 clap_builder v4.6.7`.
fn graph(tree: &str) -> BTreeMap<PackageId, BTreeSet<PackageId>> {
    let mut graph: BTreeMap<PackageId, BTreeSet<PackageId>> = BTreeMap::new();
    let mut path: Vec<PackageId> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let depth = words.next().and_then(|word| word.parse().ok());
        let version = |word: &str| word.strip_prefix('v').map(str::to_owned);
        let package = words.next().zip(words.next().and_then(version));
        let Some((depth, (name, version))) = depth.zip(package) else { continue };
        let id = (name.to_owned(), version);
        path.truncate(depth);
        if let Some(needing) = path.last().and_then(|needing| graph.get_mut(needing)) {
            needing.insert(id.clone());
        }
        graph.entry(id.clone()).or_default();
        path.push(id);
    }
    graph
}

fn tree(target: &str, features: &str, edges: &str) -> Result<String, String> {
    let words = ["tree", "--locked", "--package", "goodput", "--no-default-features"];
    let asked = ["--features", features, "--target", target, "--edges", edges];
    run_cargo(&[&words[..], &asked, &["--prefix", "depth", "--format", " {p}"]].concat())
}

fn read_metadata() -> Result<Value, String> {
    let text = run_cargo(&["metadata", "--locked", "--format-version", "1"])?;
    serde_json::from_str(&text).map_err(|error| format!("cannot read cargo metadata: {error}"))
}

fn run_cargo(words: &[&str]) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo).args(words).output();
    let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Of all packages that Cargo.lock names, of this and of other systems.
fn checksums() -> Result<BTreeMap<PackageId, String>, String> {
    let path = super::root().join("Cargo.lock");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lock: toml::Table = text.parse().map_err(|e| format!("{}: {e}", path.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let of = |package: &toml::Value| {
        let text = |name: &str| package.get(name)?.as_str().map(str::to_owned);
        Some(((text("name")?, text("version")?), text("checksum")?))
    };
    Ok(packages.filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_read_as_a_graph() {
        let tree = "0 goodput v0.1.0 (/x/crates/cli)\n1 a v1.0.0\n2 b v2.0.0+c.1 (proc-macro)\n\
                    1 c v3.0.0\n2 a v1.0.0 (*)\n";
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let (a, b, c) = (id("a", "1.0.0"), id("b", "2.0.0+c.1"), id("c", "3.0.0"));
        let expected = BTreeMap::from([
            (id("goodput", "0.1.0"), BTreeSet::from([a.clone(), c.clone()])),
            (a.clone(), BTreeSet::from([b.clone()])),
            (b, BTreeSet::new()),
            (c, BTreeSet::from([a])),
        ]);
        assert_eq!(graph(tree), expected);
    }

    #[test]
    fn every_package_of_the_program_is_described() {
        let packages = packages("x86_64-unknown-linux-gnu", "full").unwrap();
        let of = |name: &str| packages.values().find(|package| package.name == name).unwrap();
        let (ours, ring, derive) = (of("goodput"), of("ring"), of("serde_derive"));
        assert!(ours.is_linked && ours.folder.is_none() && ours.checksum.is_none());
        assert!(ring.is_linked && ring.checksum.as_ref().is_some_and(|sum| sum.len() == 64));
        assert!(ring.folder.as_ref().is_some_and(|folder| folder.join("Cargo.toml").exists()));
        assert!(!derive.is_linked && !derive.license.is_empty());
        assert!(packages.values().all(|package| package.name != "goodput-testkit"));
    }
}
