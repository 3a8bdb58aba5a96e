//! Runs that came to their end, and what may have made them void.

use std::path::Path;
use std::process::{Command, Output};

use goodput_model::{Caveat, CaveatCode, Severity};
use serde_json::Value;

/// What other programs on this machine can do to a client, and a defect of the server, of the load
/// or of the records cannot.
pub(crate) const BUSY_MACHINE: &[CaveatCode] = &[
    CaveatCode::ScheduleSlip,
    CaveatCode::ClientStarved,
    CaveatCode::ClientStalled,
    CaveatCode::ClientLag,
    CaveatCode::TokensMerged,
    CaveatCode::CpuThrottled,
    CaveatCode::Canary,
    // Of a client whose own caveats are looked at, too.
    CaveatCode::ShardSick,
];

/// What came of one use of the binary.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What makes its result void, by what it printed or left.
    pub(crate) void_by: Vec<CaveatCode>,
    /// Too little was measured to decide what was asked (`--slo`, `--until`), which is exit code 5, too.
    pub(crate) is_undecided: bool,
}

impl Outcome {
    /// The run came to its end. On a busy machine the client may have been late, and the verdict
    /// (exit code 5) rightly says so; what is asserted of such a run must not depend on time.
    pub(crate) fn assert_finished(&self, context: &str) {
        self.assert_finished_despite(&[], context);
    }

    /// The same where these caveats, too, may make it void.
    pub(crate) fn assert_finished_despite(&self, expected: &[CaveatCode], context: &str) {
        let Self { code, stderr, void_by, is_undecided, .. } = self;
        assert!(matches!(code, Some(0 | 5)), "{context}: {code:?} {stderr}");
        if *code == Some(5) {
            let is_allowed =
                |code: &CaveatCode| BUSY_MACHINE.contains(code) || expected.contains(code);
            let is_explained =
                (*is_undecided || !void_by.is_empty()) && void_by.iter().all(is_allowed);
            assert!(is_explained, "{context}: void by {void_by:?} {stderr}");
        }
    }

    /// The same with what the summaries say that lie anywhere in this folder, if it is void.
    pub(crate) fn with_folder(mut self, folder: &Path) -> Self {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop().filter(|_| self.code == Some(5)) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                // Links are not followed, and what is not a plain file is not opened.
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() && entry.file_name() == "summary.json" {
                    let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                    let summary = serde_json::from_str(&text).unwrap_or_default();
                    self.void_by.extend(void_by(&summary));
                    self.is_undecided |= is_undecided(&summary);
                }
            }
        }
        self
    }
}

/// What a process printed, without a look at its folder.
pub(crate) fn outcome(output: Output) -> Outcome {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let printed: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let (void_by, is_undecided) = (void_by(&printed), is_undecided(&printed));
    let (code, stderr) = (output.status.code(), String::from_utf8(output.stderr).unwrap());
    Outcome { code, stdout, stderr, void_by, is_undecided }
}

/// Runs to its end. What makes a result void is also read from the folders among the arguments: not
/// every result is printed as JSON, and that of several runs does not say what became of each.
pub(crate) fn outcome_of(command: &mut Command) -> Outcome {
    let outcome = outcome(command.output().unwrap());
    let begin = command.get_current_dir().map(Path::to_owned).unwrap_or_default();
    command.get_args().fold(outcome, |outcome, name| outcome.with_folder(&begin.join(name)))
}

fn is_undecided(summary: &Value) -> bool {
    summary["slo"]["state"] == "undecided" || summary["until"]["met"] == false
}

fn void_by(summary: &Value) -> Vec<CaveatCode> {
    let shards = summary["run"]["shards"].as_array().into_iter().flatten();
    let all = [summary].into_iter().chain(shards).flat_map(|it| {
        serde_json::from_value::<Vec<Caveat>>(it["caveats"].clone()).unwrap_or_default()
    });
    all.filter(|caveat| caveat.severity == Severity::Void).map(|caveat| caveat.code).collect()
}
