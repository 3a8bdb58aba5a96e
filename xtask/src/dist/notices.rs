//! What the licenses of others ask for: their texts, next to the program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::packages::{Package, Packages};

/// Below a package, the folders that may hold software of others, and are not too deep.
const DEPTH: usize = 4;

/// The page for those who hand the program on: a table of packages, then every text once.
pub(super) fn page(packages: &Packages) -> Result<String, String> {
    let linked: Vec<&Package> =
        packages.values().filter(|package| package.is_linked && package.folder.is_some()).collect();
    let mut page = "# Third-party software in goodput\n\n\
                    goodput is linked from these packages of crates.io, each under the license in \
                    its row. The texts follow. The notices of Rust's standard library are in \
                    `RUST-LIBRARY.html`.\n\n\
                    | package | version | license | source |\n|---|---|---|---|\n"
        .to_owned();
    // Texts that differ only in spaces are one text.
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut without = Vec::new();
    for package in linked {
        let Package { name, version, license, repository, folder, .. } = package;
        // Writing to a text cannot fail.
        let _ = writeln!(page, "| {name} | {version} | {license} | {repository} |");
        let found = license_files(folder.as_deref().unwrap_or(Path::new("")), DEPTH)?;
        if found.is_empty() {
            without.push(package);
        }
        for file in found {
            let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let words: Vec<&str> = text.split_whitespace().collect();
            let (_, of) = texts.entry(words.join(" ")).or_insert((text.clone(), Vec::new()));
            let of_this = format!("{name} {version}");
            if of.last() != Some(&of_this) {
                of.push(of_this);
            }
        }
    }
    if !without.is_empty() {
        page +=
            "\n## Packages without a text of their own\n\nThe text of the license is below.\n\n";
    }
    for Package { name, version, license, authors, .. } in without {
        let by = if authors.is_empty() { "its authors".to_owned() } else { authors.join(", ") };
        let _ = writeln!(page, "- {name} {version}: {license}, copyright {by}");
    }
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by_cached_key(|(_, of)| of.clone());
    for (text, of) in texts {
        let _ =
            write!(page, "\n## {}\n\n~~~~text\n{}\n~~~~\n", of.join(", "), text.trim_matches('\n'));
    }
    Ok(page)
}

/// The files of a package that hold a license or a notice, sorted.
fn license_files(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() {
            if depth > 0 && !name.starts_with('.') {
                found.extend(license_files(&path, depth - 1)?);
            }
            continue;
        }
        let is_license =
            ["LICEN", "UNLICENSE", "NOTICE", "COPYRIGHT"].iter().any(|word| name.starts_with(word));
        // Deeper down it is the choice that we do not take: zstd's is the GPL.
        if is_license || (depth == DEPTH && name.starts_with("COPYING")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with these files.
    fn package(root: &Path, name: &str, files: &[(&str, &str)]) -> Package {
        let folder = root.join(name);
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(&folder).unwrap();
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            authors: vec!["Ada".to_owned()],
            folder: Some(folder),
            is_linked: true,
            ..Package::default()
        }
    }

    #[test]
    fn every_text_is_there_once() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let mut packages = [
            package(root, "a", &[("LICENSE-MIT", "may be used\n"), ("src/lib.rs", "")]),
            package(root, "b", &[("license", "may  be\nused"), ("c/inner/NOTICE.txt", "by Bob")]),
            package(root, "c", &[("COPYING", "as you like"), ("zstd/COPYING", "the GPL")]),
            package(root, "d", &[]),
            package(root, "e", &[("LICENSE", "of the build")]),
        ];
        packages[4].is_linked = false;
        let packages =
            packages.into_iter().map(|one| ((one.name.clone(), one.version.clone()), one));
        let page = page(&packages.collect()).unwrap();
        for (text, times) in [
            ("| a | 1.0.0 | MIT |", 1),
            ("## a 1.0.0, b 1.0.0\n\n~~~~text\nmay be used\n~~~~\n", 1),
            ("may  be", 0),
            ("## b 1.0.0\n\n~~~~text\nby Bob\n~~~~\n", 1),
            ("## c 1.0.0\n\n~~~~text\nas you like\n~~~~\n", 1),
            ("the GPL", 0),
            ("- d 1.0.0: MIT, copyright Ada\n", 1),
            ("of the build", 0),
        ] {
            assert_eq!(page.matches(text).count(), times, "{text}\n{page}");
        }
    }
}
