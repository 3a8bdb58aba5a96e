//! Inside a crate, top-level modules form no cycle: the walls of ARCHITECTURE.md, one level down.

mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The top-level modules of a crate, with those that each uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// A cycle that stays.
struct Allowed {
    /// The folder of the crate.
    krate: &'static str,
    /// In alphabetical order, at most three.
    modules: &'static [&'static str],
    /// Why the modules cannot be put in order.
    reason: &'static str,
}

const ALLOWED: [Allowed; 0] = [];

/// Every cycle that is not allowed, and every line of the list that is out of date.
pub(crate) fn breaches() -> Result<Vec<String>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = vec![("xtask".to_owned(), root.join("xtask/src"))];
    let crates = root.join("crates");
    let unreadable = |error: std::io::Error| format!("{}: {error}", crates.display());
    for entry in fs::read_dir(&crates).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        sources.push((name, entry.path().join("src")));
    }
    sources.sort();
    let mut found = Vec::new();
    let mut used = vec![false; ALLOWED.len()];
    for (krate, source) in &sources {
        for cycle in cycles_below(source)? {
            let modules: Vec<&str> = cycle.iter().map(String::as_str).collect();
            let allowed = ALLOWED.iter().position(|a| a.krate == krate && a.modules == modules);
            if let Some(place) = allowed {
                used[place] = true;
            } else {
                found.push(format!("{krate}: modules in a cycle: {}", modules.join(", ")));
            }
        }
    }
    let stale = ALLOWED.iter().zip(used).filter(|(_, used)| !used);
    found.extend(stale.map(|(allowed, _)| {
        format!(
            "{}: {:?} is no longer a cycle ({})",
            allowed.krate, allowed.modules, allowed.reason
        )
    }));
    Ok(found)
}

/// The cycles of the crate whose `lib.rs` or `main.rs` lies here; a crate of programs has none.
fn cycles_below(source: &Path) -> Result<Vec<Vec<String>>, String> {
    let root = [source.join("lib.rs"), source.join("main.rs")].into_iter().find(|f| f.exists());
    root.map_or_else(|| Ok(Vec::new()), |root: PathBuf| Ok(cycles(&source::graph(&root)?)))
}

/// Groups of modules of which each reaches all others, in alphabetical order.
fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|from| (from.as_str(), reach(graph, from))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, targets) in &reached {
        let back = |to: &&&str| reached.get(**to).is_some_and(|targets| targets.contains(from));
        let cycle: Vec<String> =
            targets.iter().filter(back).map(|&module| module.to_owned()).collect();
        if cycle.len() > 1 {
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

/// The modules to which a path of uses leads from this one.
fn reach<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let uses = |module: &str| graph.get(module).into_iter().flatten().map(String::as_str);
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = uses(from).collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(uses(module));
        }
    }
    reached
}
