//! Paths of source files and tests that a page names in backquotes.

use std::path::Path;

use regex::Regex;

/// Pages that name files of an earlier layout, and files of other projects.
const ELSEWHERE: [&str; 2] = ["docs/design/020-house.md", "docs/server-names.md"];

/// Named files that do not exist. A path begins at the root, at `crates/`, or at a crate, whose
/// `src/` may be left out.
pub(super) fn missing(root: &Path, page: &str, text: &str) -> Vec<String> {
    let Ok(code) = Regex::new(r"`([\w.-]+(?:/[\w.{},-]+)+)/?`") else { return Vec::new() };
    if ELSEWHERE.contains(&page) {
        return Vec::new();
    }
    let named = code.captures_iter(text).map(|found| found[1].to_owned());
    let named = named.filter(|path| is_ours(path)).flat_map(|path| alternatives(&path));
    let lost = named.filter(|path| !exists(root, path));
    lost.map(|path| format!("`{path}` does not exist")).collect()
}

/// Whether this looks like a source file or a test.
fn is_ours(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
        || path.contains("/tests/")
        || path.ends_with("/tests")
}

/// `a/{b,c}.rs` names two files.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| {
        let (names, after) = rest.split_once('}')?;
        Some(names.split(',').map(|name| format!("{before}{name}{after}")).collect())
    });
    parts.unwrap_or_else(|| vec![path.to_owned()])
}

fn exists(root: &Path, path: &str) -> bool {
    let inside = path.split_once('/').map(|(krate, rest)| format!("crates/{krate}/src/{rest}"));
    let places = [Some(path.to_owned()), Some(format!("crates/{path}")), inside];
    places.into_iter().flatten().any(|place| root.join(place).exists())
}
