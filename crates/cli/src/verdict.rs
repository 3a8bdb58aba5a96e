//! What a CI takes from a comparison: JUnit, Markdown, and the exit code.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use goodput_campaign::compare::{CompareState, Comparison, FigureOutcome, Gate};
use goodput_model::Verdict;

use crate::args::FileArgs;
use crate::error::{Failed, exit};
use crate::report::replace_file;

/// Whether the requested files can be written: an hour of work should not end at a wrong path.
pub(crate) fn check_files(args: &FileArgs) -> Result<(), Failed> {
    let asked = [("--junit", &args.junit), ("--markdown", &args.markdown)];
    for (flag, path) in asked.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?))) {
        let folder = parent_folder(path);
        let refused = |why: String| Err(Failed::usage(format!("{flag} {}: {why}", path.display())));
        if path.is_dir() {
            return refused("it is a folder".to_owned())
                .map_err(|failed| failed.hint("name a file in it"));
        }
        if !folder.is_dir() {
            let why = format!("the folder `{}` does not exist", folder.display());
            return refused(why).map_err(|failed| failed.hint("create it first"));
        }
    }
    Ok(())
}

/// Writes the files that were asked for.
pub(crate) fn write_files(args: &FileArgs, comparison: &Comparison) -> Result<(), Failed> {
    if let Some(path) = &args.junit {
        replace_file(path, goodput_report::compare_junit(comparison).as_bytes())?;
    }
    if let Some(path) = &args.markdown {
        append_page(path, &goodput_report::compare_markdown(comparison))?;
    }
    Ok(())
}

/// Appends a page to what others have written for the same job.
fn append_page(path: &Path, page: &str) -> Result<(), Failed> {
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    let write = |mut file: fs::File| {
        // The page must not begin on the last line of earlier text.
        let gap = if file.metadata()?.len() > 0 { "\n" } else { "" };
        file.write_all(format!("{gap}{}\n", page.trim_end()).as_bytes())
    };
    opened.and_then(write).map_err(|error| write_failure(path, &error))
}

fn write_failure(path: &Path, error: &io::Error) -> Failed {
    Failed::usage(format!("cannot write `{}`: {error}", path.display()))
}

/// The folder that a file lies in.
fn parent_folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// The exit code of a comparison.
pub(crate) fn exit_code(comparison: &Comparison) -> u8 {
    match comparison.comparison.state {
        CompareState::Interrupted => return exit::INTERRUPTED,
        CompareState::TargetLost => return exit::TARGET,
        CompareState::Complete | CompareState::Unfinished | CompareState::TimeUp => {}
    }
    if comparison.verdict == Verdict::Void {
        return exit::VOID;
    }
    if comparison.design.same_target {
        // A floor was asked for, not a verdict; a difference that must not be there is none of a
        // candidate.
        let mut tested = comparison.findings.iter().filter(|finding| finding.is_tested);
        let differs =
            tested.any(|one| matches!(one.outcome, FigureOutcome::Better | FigureOutcome::Worse));
        let is_good = comparison.floor.is_some() && !differs;
        return if is_good { exit::OK } else { exit::VOID };
    }
    let gates = &comparison.design.gates;
    if gates.is_empty() {
        return gates_exit_code([comparison.outcome]);
    }
    // What no run has a figure for was not judged, and does not hold.
    let is_judged = |gate: &Gate| comparison.gates.iter().any(|judged| judged.gate == *gate);
    let unjudged = gates.iter().any(|gate| !is_judged(gate)).then_some(FigureOutcome::NoVerdict);
    gates_exit_code(comparison.gates.iter().map(|judged| judged.outcome).chain(unjudged))
}

/// A figure that is known to be worse counts more than one that is undecided.
fn gates_exit_code(outcomes: impl IntoIterator<Item = FigureOutcome>) -> u8 {
    let code = |outcome| match outcome {
        FigureOutcome::Better | FigureOutcome::Equivalent => exit::OK,
        FigureOutcome::Inconclusive | FigureOutcome::NoVerdict | FigureOutcome::Described => {
            exit::VOID
        }
        FigureOutcome::Worse => exit::MISSED,
    };
    let rank = |code: &u8| [exit::OK, exit::VOID, exit::MISSED].iter().position(|of| of == code);
    outcomes.into_iter().map(code).max_by_key(rank).unwrap_or(exit::VOID)
}

#[cfg(test)]
mod tests {
    use goodput_campaign::compare::{CompareFacts, Floor, GateResult, Limit};

    use super::*;

    fn gate(metric: &str) -> Gate {
        Gate { metric: metric.to_owned(), limit: Limit::Below, change: 0.05 }
    }

    fn judged(outcomes: &[FigureOutcome]) -> Comparison {
        let result = |(index, outcome): (usize, &FigureOutcome)| GateResult {
            gate: gate(&index.to_string()),
            side: 1,
            level: 0,
            outcome: *outcome,
            change: None,
            low: None,
            high: None,
        };
        let mut comparison = Comparison {
            gates: outcomes.iter().enumerate().map(result).collect(),
            outcome: FigureOutcome::Better,
            ..Comparison::default()
        };
        comparison.design.gates = comparison.gates.iter().map(|it| it.gate.clone()).collect();
        comparison
    }

    #[test]
    fn gates_decide_where_there_are_any() {
        use FigureOutcome::{Better, Equivalent, Inconclusive, NoVerdict, Worse};
        for (outcomes, expected) in [
            (&[Better, Equivalent][..], 0),
            (&[Better, Inconclusive], 5),
            (&[NoVerdict], 5),
            (&[NoVerdict, Worse, Better], 4),
        ] {
            assert_eq!(exit_code(&judged(outcomes)), expected, "{outcomes:?}");
        }
        let mut unjudged = judged(&[Better]);
        unjudged.design.gates.push(gate("goodput_rps"));
        assert_eq!(exit_code(&unjudged), 5, "what the second gate needs was not measured");
    }

    #[test]
    fn the_whole_decides_where_there_is_none() {
        use FigureOutcome::{Better, Equivalent, Inconclusive, NoVerdict, Worse};
        for (outcome, expected) in
            [(Better, 0), (Equivalent, 0), (Worse, 4), (Inconclusive, 5), (NoVerdict, 5)]
        {
            let comparison = Comparison { outcome, ..Comparison::default() };
            assert_eq!(exit_code(&comparison), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_target_against_itself_gives_a_floor_or_not() {
        let floor = serde_json::json!({
            "schema": "goodput.floor/1", "date": "", "machine": "", "target": "", "model": "",
            "load": "", "workload": "", "blocks": 8, "run_s": 30.0, "sd": {},
        });
        let floor: Floor = serde_json::from_value(floor).unwrap();
        let itself = |outcome: &str, floor: Option<&Floor>| {
            let finding = serde_json::json!({
                "metric": "ttft_p99", "side": 1, "level": 0, "n": 8, "reference": 1.0,
                "candidate": 1.0, "change": 0.0, "low": null, "high": null, "confidence": 0.95,
                "p": null, "wilcoxon_p": null, "hodges_lehmann": null, "sd": null,
                "is_tested": true, "margin": 0.03, "outcome": outcome, "further_blocks": null,
                "is_doubtful": false,
            });
            let mut found = Comparison {
                outcome: serde_json::from_value(outcome.into()).unwrap(),
                findings: vec![serde_json::from_value(finding).unwrap()],
                floor: floor.cloned(),
                ..Comparison::default()
            };
            found.design.same_target = true;
            exit_code(&found)
        };
        assert_eq!(itself("equivalent", Some(&floor)), 0);
        assert_eq!(itself("inconclusive", Some(&floor)), 0);
        assert_eq!(itself("inconclusive", None), 5);
        assert_eq!((itself("worse", Some(&floor)), itself("better", Some(&floor))), (5, 5));
    }

    #[test]
    fn what_broke_off_or_is_void_says_nothing() {
        let ended = |state, verdict| Comparison {
            comparison: CompareFacts { state, ..CompareFacts::default() },
            verdict,
            outcome: FigureOutcome::Worse,
            ..Comparison::default()
        };
        assert_eq!(exit_code(&ended(CompareState::Interrupted, Verdict::Void)), 130);
        assert_eq!(exit_code(&ended(CompareState::TargetLost, Verdict::Valid)), 3);
        assert_eq!(exit_code(&ended(CompareState::Complete, Verdict::Void)), 5);
        assert_eq!(exit_code(&ended(CompareState::Complete, Verdict::Suspect)), 4);
    }

    #[test]
    fn a_page_stands_behind_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.md");
        append_page(&path, "# one\n").unwrap();
        append_page(&path, "# two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "# one\n\n# two\n");
        let report = folder.path().join("report.xml");
        replace_file(&report, b"first").unwrap();
        replace_file(&report, b"second").unwrap();
        assert_eq!(fs::read(&report).unwrap(), b"second");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        let nowhere = replace_file(&folder.path().join("no/report.xml"), b"").unwrap_err();
        assert!(nowhere.to_string().contains("no/report.xml"), "{nowhere}");
    }
}
