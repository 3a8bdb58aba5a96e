//! Known holes: `Cargo.lock` against a checkout of the RustSec advisory database.

use std::fs;
use std::path::{Path, PathBuf};

use semver::{Version, VersionReq};
use serde::Deserialize;

/// Names the folder of the database.
pub(super) const VARIABLE: &str = "GOODPUT_ADVISORY_DB";

/// Advisories that are known and bearable, with the reason.
const BEARABLE: [(&str, &str); 1] = [(
    "RUSTSEC-2024-0436",
    "paste is not maintained; tokenizers needs it while it compiles, and no input reaches it",
)];

/// As much of an advisory as is asked here.
#[derive(Deserialize)]
struct Advisory {
    advisory: About,
    versions: Versions,
}

#[derive(Deserialize)]
struct About {
    id: String,
    #[serde(default)]
    withdrawn: Option<String>,
    #[serde(default)]
    informational: Option<String>,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<String>,
    #[serde(default)]
    unaffected: Vec<String>,
}

/// The folder of the database: the one that is named, or where `cargo audit` keeps its own.
pub(super) fn database() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let folder = named.or_else(|| home.map(|home| home.join("advisory-db")))?;
    folder.join("crates").is_dir().then_some(folder)
}

/// What is known about the locked versions, and an exception that nothing needs any more.
pub(super) fn faults(database: &Path, lock: &str) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    let mut borne = Vec::new();
    for (name, version) in locked(lock) {
        for path in files(&database.join("crates").join(name)) {
            let failed = |error: String| format!("{}: {error}", path.display());
            let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let Some(said) = concerns(&text, version).map_err(failed)? else { continue };
            if let Some((id, _)) = BEARABLE.iter().find(|(id, _)| said.id == *id) {
                borne.push(*id);
                continue;
            }
            let kind = said.informational.as_deref().unwrap_or("vulnerability");
            faults.push(format!("{name} {version}: {} ({kind})", said.id));
        }
    }
    let needless = BEARABLE.iter().filter(|(id, _)| !borne.contains(id));
    faults.extend(needless.map(|(id, _)| format!("{id} no longer applies: remove it")));
    Ok(faults)
}

/// The packages of crates.io in a `Cargo.lock`, by name and version.
fn locked(lock: &str) -> Vec<(&str, &str)> {
    let value = |block: &'_ str, key: &str| -> Option<(usize, usize)> {
        let start = block.find(key)? + key.len();
        Some((start, start + block[start..].find('"')?))
    };
    let packages = lock.split("[[package]]").skip(1);
    let packages = packages.filter(|block| block.contains("source = \"registry+"));
    packages
        .filter_map(|block| {
            let (name, version) = (value(block, "name = \"")?, value(block, "version = \"")?);
            Some((&block[name.0..name.1], &block[version.0..version.1]))
        })
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths
}

/// The advisory, where it is about this version.
fn concerns(text: &str, version: &str) -> Result<Option<About>, String> {
    // TOML in a fence, then words.
    let toml = text.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
    let toml = toml.ok_or("it has no TOML block")?;
    let said: Advisory = toml::from_str(toml).map_err(|error| error.to_string())?;
    let version = Version::parse(version).map_err(|error| error.to_string())?;
    let requirements = said.versions.patched.iter().chain(&said.versions.unaffected);
    let mut is_safe = said.advisory.withdrawn.is_some();
    for requirement in requirements {
        let requirement = VersionReq::parse(requirement).map_err(|error| error.to_string())?;
        is_safe |= requirement.matches(&version);
    }
    Ok((!is_safe).then_some(said.advisory))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
version = 4

[[package]]
name = "goodput"
version = "0.1.0"
dependencies = [
 "open",
]

[[package]]
name = "open"
version = "1.2.3"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "00"

[[package]]
name = "paste"
version = "1.0.15"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

    fn advisory(id: &str, package: &str, more: &str, patched: &str) -> String {
        format!(
            "```toml\n[advisory]\nid = \"{id}\"\npackage = \"{package}\"\ndate = \"2026-01-01\"\n{more}\n\
             [versions]\npatched = [{patched}]\nunaffected = [\"< 1.0\"]\n```\n\n# A hole\n"
        )
    }

    #[test]
    fn only_packages_of_others_are_looked_up() {
        assert_eq!(locked(LOCK), [("open", "1.2.3"), ("paste", "1.0.15")]);
    }

    #[test]
    fn an_advisory_concerns_versions_that_are_neither_patched_nor_older() {
        let text = |more, patched| advisory("RUSTSEC-2026-0001", "open", more, patched);
        let about = |text: &str, version| concerns(text, version).unwrap().map(|about| about.id);
        let open = text("", "\">= 1.2.4\"");
        assert_eq!(about(&open, "1.2.3").as_deref(), Some("RUSTSEC-2026-0001"));
        for safe in ["1.2.4", "2.0.0", "0.9.9"] {
            assert_eq!(about(&open, safe), None, "{safe}");
        }
        // In two lines of versions.
        let both = text("", "\"^1.2.4\", \">= 2.0.1\"");
        assert_eq!(about(&both, "1.3.0"), None);
        assert!(about(&both, "2.0.0").is_some());
        assert_eq!(about(&text("withdrawn = \"2026-02-01\"", ""), "1.2.3"), None);
        assert!(concerns("# no facts", "1.2.3").is_err());
    }

    #[test]
    fn what_is_known_and_not_borne_is_a_fault() {
        let folder =
            std::env::temp_dir().join(format!("goodput-advisories-{}", std::process::id()));
        let write = |package: &str, id: &str, more: &str| {
            let folder = folder.join("crates").join(package);
            fs::create_dir_all(&folder).unwrap();
            let text = advisory(id, package, more, "");
            fs::write(folder.join(format!("{id}.md")), text).unwrap();
        };
        write("paste", "RUSTSEC-2024-0436", "informational = \"unmaintained\"");
        let quiet = faults(&folder, LOCK);
        write("open", "RUSTSEC-2026-0001", "");
        let loud = faults(&folder, LOCK);
        let without = faults(&folder, "");
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(quiet.unwrap(), Vec::<String>::new());
        assert_eq!(loud.unwrap(), ["open 1.2.3: RUSTSEC-2026-0001 (vulnerability)"]);
        assert_eq!(without.unwrap(), ["RUSTSEC-2024-0436 no longer applies: remove it"]);
    }
}
