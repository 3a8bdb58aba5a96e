//! Build scripts of dependencies: programs that run on this machine whenever it builds.

use std::collections::BTreeSet;

use super::CheckedPackage;

/// Packages with a build script that is not in the list, and lines of the list without one. A line is
/// `name: what its script does`.
pub(super) fn faults(packages: &[CheckedPackage], listed: &str) -> Vec<String> {
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .filter(|(_, reason)| !reason.trim().is_empty())
        .map(|(name, _)| name.trim())
        .collect();
    let with = packages.iter().filter(|package| package.has_build_script);
    let with: BTreeSet<&str> = with.map(|package| package.name.as_str()).collect();
    let unknown = with
        .difference(&listed)
        .map(|name| format!("{name} has a build script: review it and describe it in {FILE}"));
    let gone = listed
        .difference(&with)
        .map(|name| format!("{name} no longer has a build script: remove it from {FILE}"));
    unknown.chain(gone).collect()
}

const FILE: &str = "xtask/src/supply/build-scripts.txt";

#[cfg(test)]
mod tests {
    use super::super::tests::package;
    use super::*;

    #[test]
    fn new_and_old_scripts_are_found() {
        let packages =
            [package("a", "MIT", true), package("b", "MIT", false), package("c", "MIT", true)];
        assert_eq!(
            faults(&packages, "# why\na: asks rustc\nc: compiles C\n"),
            Vec::<String>::new()
        );
        let found = faults(&packages, "a: asks rustc\nb: nothing\nc: \n");
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("c has a build script"), "{}", found[0]);
        assert!(found[1].starts_with("b no longer has a build script"), "{}", found[1]);
    }
}
