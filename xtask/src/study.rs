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

/// What studies of the statistics have in common.
const STATS: Study =
    Study { name: "", package: "stats", file: None, test: "", prints: "", page: "" };

/// Those of planners over many simulated runs.
const SEARCH: Study = Study { package: "campaign", file: Some("search"), ..STATS };

const STUDIES: [Study; 29] = [
    Study {
        name: "decisions",
        test: "estimate::tests::decisions::decisions_study",
        prints: "how often what is said of an SLO is wrong; RUNS=200, ONLY=\"32 slots\"",
        page: "docs/confidence.md",
        ..STATS
    },
    Study {
        name: "stops",
        test: "watch::tests::stops_study",
        prints: "where `--until` ends runs, and how often the figure is then right",
        page: "docs/confidence.md",
        ..STATS
    },
    Study {
        name: "intervals",
        test: "estimate::tests::coverage::study",
        prints: "how often intervals of percentiles hold the truth, by ways to make them",
        page: "docs/design/012-intervals.md",
        ..STATS
    },
    Study {
        name: "speed-samples",
        test: "tests::speed::ten_million_samples",
        prints: "seconds for percentiles and intervals of ten million values",
        page: "docs/design/012-intervals.md",
        ..STATS
    },
    Study {
        name: "speed-gaps",
        test: "tests::speed::ten_million_gaps",
        prints: "seconds for ten million gaps between tokens",
        page: "docs/design/012-intervals.md",
        ..STATS
    },
    Study {
        name: "speed-run",
        test: "tests::speed::a_million_requests",
        prints: "seconds for everything about a run of a million requests",
        page: "crates/stats/src/tests/speed.rs",
        ..STATS
    },
    Study {
        name: "steady",
        test: "steady::tests::study::tables",
        prints: "what is cut as warm-up and called drifting, by load and length; SEEDS=300",
        page: "docs/design/013-steady-state.md",
        ..STATS
    },
    Study {
        name: "steady-audit",
        test: "audit::study::tables",
        prints: "the same by the rules for other tools' results; SEEDS=200",
        page: "docs/design/013-steady-state.md",
        ..STATS
    },
    Study {
        name: "modes",
        test: "modes::tests::rates",
        prints: "how often a sample is said to have two groups",
        page: "docs/design/013-steady-state.md",
        ..STATS
    },
    Study {
        name: "caveats",
        test: "tests::clean::how_often_clean_runs_raise_a_caveat",
        prints: "caveats of clean runs, by utilisation",
        page: "docs/design/014-caveats.md",
        ..STATS
    },
    Study {
        name: "caveats-half-hour",
        test: "tests::clean::how_often_clean_half_hours_raise_a_caveat",
        prints: "the same of half an hour",
        page: "docs/design/014-caveats.md",
        ..STATS
    },
    Study {
        name: "caveats-long",
        test: "tests::clean::how_often_clean_runs_of_long_answers_raise_a_caveat",
        prints: "the same with answers of 8 s",
        page: "docs/design/014-caveats.md",
        ..STATS
    },
    Study {
        name: "looks",
        test: "paired::tests::study::study",
        prints: "the error over several looks, by Pocock's constant and by ours",
        page: "docs/design/016-comparison.md",
        ..STATS
    },
    Study {
        name: "family",
        test: "paired::tests::family::study",
        prints: "misses and wrong words over several figures, by rule",
        page: "docs/design/016-comparison.md",
        ..STATS
    },
    Study {
        name: "family-saved",
        test: "paired::tests::family::study_of_saved_runs",
        prints: "the same for saved runs",
        page: "docs/design/016-comparison.md",
        ..STATS
    },
    Study {
        name: "family-counts",
        test: "paired::tests::family::study_of_counts",
        prints: "how often shares of errors are called equivalent",
        page: "docs/design/016-comparison.md",
        ..STATS
    },
    Study {
        name: "family-price",
        test: "paired::tests::family::price",
        prints: "what one level for all figures costs",
        page: "docs/design/016-comparison.md",
        ..STATS
    },
    Study {
        name: "slo",
        test: "slo::tests::the_interval_holds_the_truth_as_often_over_many_runs",
        prints: "how often the interval of an SLO's share holds the truth",
        page: "docs/slo.md",
        ..STATS
    },
    Study {
        name: "repeats",
        test: "repeats::tests::false_alarms_are_as_rare_as_promised_by_many_draws",
        prints: "how often runs that are alike are said to differ",
        page: "crates/stats/src/repeats/tests.rs",
        ..STATS
    },
    Study {
        name: "time-left",
        test: "watch::tests::the_time_left_is_about_right_over_many_runs",
        prints: "how far the time that `--until` says is left is off",
        page: "crates/stats/src/watch/tests.rs",
        ..STATS
    },
    Study {
        name: "needed",
        test: "estimate::tests::what_a_run_says_it_needs_is_reached_in_half_of_the_runs",
        prints: "how often the number of requests that a run asks for is enough",
        page: "crates/stats/src/estimate/tests.rs",
        ..STATS
    },
    Study {
        name: "probe",
        test: "watch::probe::study::probe_study",
        prints: "how often a point of a sweep is ended early, rightly and wrongly",
        page: "crates/stats/src/watch/probe/decide.rs",
        ..STATS
    },
    Study {
        name: "search",
        test: "study",
        prints: "how often a sweep's answer is right, and what it costs; LAB_CASE=queue, \
         LAB_EFFORT=quick, LAB_SEEDS=100, LAB_LOUD=1",
        page: "docs/design/015-goodput-search.md",
        ..SEARCH
    },
    Study {
        name: "search-plain",
        test: "plain_study",
        prints: "the same for plain bisection; LAB_CASE, LAB_SEEDS",
        page: "docs/design/015-goodput-search.md",
        ..SEARCH
    },
    Study {
        name: "search-truth",
        test: "truth",
        prints: "the true answers of these cases; LAB_CASE, LAB_N=300000",
        page: "docs/design/015-goodput-search.md",
        ..SEARCH
    },
    Study {
        name: "compare",
        file: Some("compare"),
        test: "study",
        prints: "how often a comparison is right; LAB_CASE=equal, LAB_NOISE, LAB_SEEDS=200",
        page: "docs/design/016-comparison.md",
        ..SEARCH
    },
    Study {
        name: "shadow",
        file: Some("shadow"),
        test: "a_study",
        prints: "how often a shadow's words are wrong",
        page: "docs/design/018-shadow.md",
        ..SEARCH
    },
    Study {
        name: "profiles",
        package: "sim",
        file: Some("profiles"),
        test: "print_the_70b_curve",
        prints: "TTFT of the 70B profile by rate",
        page: "docs/profiles.md",
    },
    Study {
        name: "fleet-scale",
        package: "fleet",
        file: None,
        test: "tests::scale::scale",
        prints: "what one leader carries, by number of members",
        page: "docs/design/019-fleet.md",
    },
];

/// Runs the study of this name; without one, lists all.
#[expect(clippy::print_stdout, reason = "the list is the answer")]
pub(crate) fn run(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else {
        for study in &STUDIES {
            println!("{:18} {} ({})", study.name, study.prints, study.page);
        }
        return Ok(());
    };
    let found = STUDIES.iter().find(|study| study.name == name);
    let study = found
        .ok_or_else(|| format!("there is no study `{name}`: `cargo xtask study` lists them"))?;
    study.require_its_test()?;
    super::cargo(&words(&study.arguments(&["--nocapture"])), &[])
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

impl Study {
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
            count => Err(format!("{count} tests are called `{}` in {}", self.test, self.package)),
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
        let known = STUDIES.iter().map(|study| {
            (study.package.to_owned(), study.file.map(str::to_owned), study.test.to_owned())
        });
        assert_eq!(found, known.collect());
    }

    #[test]
    fn names_are_unique_and_pages_exist() {
        let names: BTreeSet<&str> = STUDIES.iter().map(|study| study.name).collect();
        assert_eq!(names.len(), STUDIES.len());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for study in &STUDIES {
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
