//! Licenses of dependencies: each must leave us a choice that asks for no more than a notice.

use super::CheckedPackage;

/// Those that ask for a notice, or for nothing.
const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "IJG",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages whose license is not allowed.
pub(super) fn faults(packages: &[CheckedPackage]) -> Vec<String> {
    let refused = packages.iter().filter(|package| !is_allowed(&package.license));
    let say = |package: &CheckedPackage| {
        let CheckedPackage { name, version, license, .. } = package;
        format!("{name} {version}: the license `{license}` is not among those allowed")
    };
    refused.map(say).collect()
}

/// Whether an SPDX expression leaves a choice that is allowed.
fn is_allowed(license: &str) -> bool {
    // An old form of `OR`.
    let text = license.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = any(&mut rest);
    allowed == Some(true) && rest.is_empty()
}

/// `A OR B`; none where it cannot be read.
fn any(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = all(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        // Both are read, whatever the first says.
        let other = all(words)?;
        allowed |= other;
    }
    Some(allowed)
}

/// `A AND B`.
fn all(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        let other = one(words)?;
        allowed &= other;
    }
    Some(allowed)
}

/// A license, one with an exception, or an expression in parentheses.
fn one(words: &mut &[&str]) -> Option<bool> {
    match **words {
        ["(", ref rest @ ..] => {
            *words = rest;
            let allowed = any(words)?;
            let [")", rest @ ..] = *words else { return None };
            *words = rest;
            Some(allowed)
        }
        [license, "WITH", exception, ref rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(&format!("{license} WITH {exception}").as_str()))
        }
        [license, ref rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(&license))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::package;
    use super::*;

    #[test]
    fn a_choice_is_enough_and_a_duty_is_not() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/GPL-3.0",
            "(MIT OR Apache-2.0) AND IJG",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND AGPL-3.0",
            "GPL-2.0 WITH Classpath-exception-2.0",
            "MIT OR",
            "(MIT",
            "MIT MIT",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        let packages = [package("a", "GPL-3.0", false), package("b", "MIT", false)];
        assert_eq!(
            faults(&packages),
            ["a 1.0.0: the license `GPL-3.0` is not among those allowed"]
        );
    }
}
