//! Tables of the docs that take minutes: ignored tests, by a name each.

use std::process::Command;

/// One table and what makes it.
struct Study {
    /// What it is called on the command line.
    name: &'static str,
    /// The crate, without `goodput-`.
    package: &'static str,
    /// The test file of the crate; `None` for the crate itself.
    file: Option<&'static str>,
    /// The ignored test, with its modules.
    test: &'static str,
    /// What it prints, and the variables that shorten it.
    prints: &'static str,
    /// The page that holds its numbers, or the source file whose comments or limits do.
    page: &'static str,
}

/// A line each, with the fields of a [`Study`].
const STUDIES: &str = include_str!("study/studies.txt");

fn studies() -> impl Iterator<Item = Study> {
    STUDIES.lines().filter(|line| !line.starts_with('#')).filter_map(Study::parse)
}

/// Runs the study of this name; without one, lists all.
#[expect(clippy::print_stdout, reason = "the list is the answer")]
pub(crate) fn run(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else {
        for study in studies() {
            println!("{:18} {} ({})", study.name, study.prints, study.page);
        }
        return Ok(());
    };
    let found = studies().find(|study| study.name == name);
    let study =
        found.ok_or_else(|| format!("unknown study `{name}`; `cargo xtask study` lists them"))?;
    study.require_its_test()?;
    super::cargo(&words(&study.arguments(&["--nocapture"])), &[])
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

impl Study {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split(" | ").map(str::trim);
        let [name, package, file, test, page] = [(); 5].map(|()| fields.next());
        let file = file.filter(|file| *file != "-");
        let prints = fields.next()?;
        Some(Self { name: name?, package: package?, file, test: test?, prints, page: page? })
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let package = format!("goodput-{}", self.package);
        let target: &[&str] = match &self.file {
            Some(file) => &["--test", file],
            None => &["--lib"],
        };
        let cargo = ["test", "--release", "-p", &package];
        let test = ["--", "--ignored", "--exact", self.test];
        let all = [&cargo[..], target, &test, more].concat();
        all.into_iter().map(str::to_owned).collect()
    }

    /// A filter that finds nothing is a success for `cargo test`.
    fn require_its_test(&self) -> Result<(), String> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let listed = Command::new(cargo)
            .args(self.arguments(&["--list"]))
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        match listed.lines().filter(|line| line.ends_with(": test")).count() {
            1 => Ok(()),
            count => Err(format!("{count} tests are named `{}` in {}", self.test, self.package)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// An ignored test: crate, file of its own or none, and its name with its modules.
    type Ignored = (String, Option<String>, String);

    #[test]
    fn every_ignored_test_is_a_study_and_every_study_is_an_ignored_test() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut found = BTreeSet::new();
        for package in std::fs::read_dir(&crates).unwrap().flatten() {
            let name = package.file_name().into_string().unwrap();
            for folder in ["src", "tests"] {
                let root = package.path().join(folder);
                read(&root, &mut |path, text| {
                    let modules = modules(path.strip_prefix(&root).unwrap());
                    for test in ignored(text) {
                        found.insert(named(&name, folder == "tests", &modules, test));
                    }
                });
            }
        }
        let known = studies().map(|study| {
            (study.package.to_owned(), study.file.map(str::to_owned), study.test.to_owned())
        });
        assert_eq!(found, known.collect());
    }

    #[test]
    fn names_are_unique_and_pages_exist() {
        let names: BTreeSet<&str> = studies().map(|study| study.name).collect();
        assert_eq!(names.len(), STUDIES.lines().count() - 1);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for study in studies() {
            assert!(root.join(study.page).is_file(), "{}: no {}", study.name, study.page);
        }
    }

    fn named(package: &str, is_file: bool, modules: &[String], test: &str) -> Ignored {
        let (file, modules) = if is_file {
            (modules.first().cloned(), modules.get(1..).unwrap_or_default())
        } else {
            (None, modules)
        };
        let path = modules.iter().map(String::as_str).chain([test]).collect::<Vec<_>>();
        (package.to_owned(), file, path.join("::"))
    }

    fn read(folder: &Path, see: &mut dyn FnMut(&Path, &str)) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                read(&path, see);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                see(&path, &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// `a/b.rs` and `a/b/mod.rs` are `a::b`.
    fn modules(path: &Path) -> Vec<String> {
        let path = path.with_extension("");
        let parts = path.iter().map(|part| part.to_str().unwrap().to_owned());
        parts.filter(|part| !matches!(part.as_str(), "mod" | "lib" | "main")).collect()
    }

    /// The functions whose tests are left out of the suite, each with its reason.
    fn ignored(text: &str) -> impl Iterator<Item = &str> {
        text.split("\n#[ignore = ").skip(1).filter_map(|rest| {
            let name = rest.split_once("fn ")?.1;
            name.split_once('(').map(|(name, _)| name)
        })
    }
}
