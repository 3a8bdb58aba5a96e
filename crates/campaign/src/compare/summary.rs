//! The shape of a comparison's `summary.json`, version 1. Paths are added, never renamed.

use std::collections::BTreeMap;

use goodput_model::{Caveat, SystemContext, Verdict};
use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::doubts;
use super::settings::{self, server_settings};
use super::table::paired_table;
use super::together::{all_differences, server_facts};
use super::{
    ComparedRun, Design, Difference, FigureOutcome, Finding, Floor, GateResult, Rank,
    ServerSetting, findings, judge_gates, rank_sides,
};
use crate::shadow_report::ShadowReport;
use crate::sweep::Level;

/// Everything that a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// `goodput.comparison/1`
    pub schema: String,
    /// Whether to believe it.
    pub verdict: Verdict,
    /// Reasons to doubt it, and what to know.
    pub caveats: Vec<Caveat>,
    /// How it went.
    pub comparison: CompareFacts,
    /// What was asked.
    pub design: Design,
    /// The sides; the first is the reference.
    pub sides: Vec<Side>,
    /// Whether runs were paired in blocks; otherwise they are runs of their own.
    pub is_paired: bool,
    /// The overall outcome: the worst of the gates, or of the tested figures, over all candidates.
    pub outcome: FigureOutcome,
    /// Differences between the sides that should not exist.
    pub differences: Vec<Difference>,
    /// What the servers say of themselves and the user says of them, side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<ServerSetting>,
    /// Whether all sides were sent the same requests; none for saved runs without hashes.
    pub proof: Option<Proof>,
    /// Every figure.
    pub findings: Vec<Finding>,
    /// The gates, and whether they hold.
    pub gates: Vec<GateResult>,
    /// The order of more than two sides.
    pub ranking: Vec<Rank>,
    /// All axes of all sides, level by level.
    pub levels: Vec<LevelComparison>,
    /// The rig's noise floor, if it is known.
    pub floor: Option<Floor>,
    /// Every run; for a shadow every block, once for each side.
    pub runs: Vec<ComparedRun>,
    /// What live traffic showed in addition to the figures, if live traffic was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowReport>,
}

impl Comparison {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.comparison/1";
}

/// How a comparison went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CompareFacts {
    /// Version of goodput.
    pub version: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// How it ended.
    pub state: CompareState,
    /// Why it ended where it did.
    pub stopped: Option<Stopped>,
    /// The workload in one line.
    pub workload: String,
    /// The SLO that goodput and attainment refer to, and where it comes from; empty without an SLO.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub slo: String,
    /// Whether the runs of a saved baseline were measured again on a server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_baseline: bool,
    /// Complete blocks.
    pub blocks: u32,
    /// Runs that were set aside and repeated because a target was unreachable.
    pub repeats: u32,
    /// Estimate before the start: seconds at most.
    pub estimated_s: Option<f64>,
    /// Seconds that it took.
    pub took_s: f64,
    /// The command that began it, without secrets; empty in files of older versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// How a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompareState {
    /// Everything requested was measured.
    #[default]
    Complete,
    /// By the user.
    Interrupted,
    /// A target became unreachable and did not come back.
    TargetLost,
    /// The time for it was over (`--max-time`).
    TimeUp,
    /// Still running, or killed.
    Unfinished,
}

/// Why it ended where it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// Every tested figure was decided at a test.
    Known,
    /// The last test.
    LastLook,
    /// Too many runs were void.
    Void,
}

/// One of those compared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// URL without secrets, or the folder of saved runs.
    pub target: String,
    /// Model asked for.
    pub model: String,
    /// GPUs behind it.
    pub gpus: Option<u32>,
    /// Price of one of them per hour.
    pub price_per_gpu_hour: Option<f64>,
    /// Hardware, model, precision, engine, and parallelism, as far as they are stated.
    #[serde(skip_serializing_if = "SystemContext::is_empty")]
    pub system: SystemContext,
}

/// Whether all sides were sent the same requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Proof {
    /// Requests whose bytes were sent to every side.
    pub compared: u64,
    /// Those that were byte-identical (except for the model's name, if that differs).
    pub identical: u64,
    /// Of them, those scheduled at the same instant on every side; none in a closed loop.
    pub same_instant: Option<u64>,
    /// SHA-256 over the bodies of all that were identical, in their order.
    pub sha256: String,
    /// Whether the names of models differ and were left out.
    pub without_model: bool,
}

/// All axes at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelComparison {
    /// The load; none if goodput was searched for.
    pub level: Option<Level>,
    /// A row for each figure, in the order of the table.
    pub rows: Vec<AxisRow>,
}

/// One axis over all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AxisRow {
    /// Name of the figure: a metric, or `output_tokens_per_s_per_gpu`, `cost_per_million_good_tokens`…
    pub figure: String,
    /// For people.
    pub title: String,
    /// Of the values.
    pub unit: String,
    /// The value of each side over its runs, as in [`Finding`]; none if it was not measured.
    pub values: Vec<Option<f64>>,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            verdict: Verdict::Valid,
            caveats: Vec::new(),
            comparison: CompareFacts::default(),
            design: Design::default(),
            sides: Vec::new(),
            is_paired: true,
            outcome: FigureOutcome::NoVerdict,
            differences: Vec::new(),
            settings: Vec::new(),
            proof: None,
            findings: Vec::new(),
            gates: Vec::new(),
            ranking: Vec::new(),
            levels: Vec::new(),
            floor: None,
            runs: Vec::new(),
            shadow: None,
        }
    }
}

impl Comparison {
    /// What blocks say.
    pub fn from_paired_runs(
        facts: CompareFacts,
        design: Design,
        sides: Vec<Side>,
        runs: Vec<ComparedRun>,
        evidence: ComparisonContext,
    ) -> Self {
        let ComparisonContext { proof, floor, insists } = evidence;
        let differences = all_differences(&design, &runs);
        let servers = server_facts(&design, &runs);
        let sides = with_context(sides, &servers);
        let settings = server_settings(&servers, &settings::meant(&design));
        let mut findings = findings(&design, &runs);
        let spoiled = if insists { &[][..] } else { &differences };
        doubts::clear_void_verdicts(&mut findings, spoiled);
        let ranking = rank_sides(&design, &runs, &findings, spoiled);
        let gates = judge_gates(&design.gates, &findings);
        let blocks = Blocks::new(&design, &runs).count_complete();
        let mut caveats = doubts::difference_caveats(&design, &differences, &findings, insists);
        caveats.extend(settings::difference_caveats(&settings, &design.sides));
        caveats.extend(doubts::block_caveats(&design, &facts, &runs));
        let of_findings =
            doubts::finding_caveats(&design, &findings, floor.as_ref(), proof.as_ref());
        caveats.extend(of_findings);
        caveats.extend(settings::setting_notes(&settings, &design.sides, &design.under_test));
        Self {
            verdict: Verdict::from_caveats(&caveats),
            caveats,
            comparison: CompareFacts { blocks, ..facts },
            outcome: overall_outcome(&gates, &findings),
            levels: paired_table(&design, &sides, &runs),
            design,
            sides,
            differences,
            settings,
            proof,
            findings,
            gates,
            ranking,
            floor,
            runs,
            ..Self::default()
        }
    }
}

/// The sides with what is known of the systems behind them.
pub(super) fn with_context(
    mut sides: Vec<Side>,
    servers: &[BTreeMap<String, String>],
) -> Vec<Side> {
    for (side, server) in sides.iter_mut().zip(servers) {
        side.system = SystemContext::new(&side.model, server);
    }
    sides
}

/// The whole in one word: of the gates, or of the tested figures if no gate is given. What is worse
/// wins over inconclusive, and that over all else.
pub(crate) fn overall_outcome(gates: &[GateResult], findings: &[Finding]) -> FigureOutcome {
    let tested = findings.iter().filter(|finding| finding.is_tested && gates.is_empty());
    let outcomes: Vec<FigureOutcome> = gates
        .iter()
        .map(|result| result.outcome)
        .chain(tested.map(|finding| finding.outcome))
        .collect();
    let order = [
        FigureOutcome::Worse,
        FigureOutcome::NoVerdict,
        FigureOutcome::Inconclusive,
        FigureOutcome::Better,
    ];
    let first = order.into_iter().find(|outcome| outcomes.contains(outcome));
    let rest =
        if outcomes.is_empty() { FigureOutcome::NoVerdict } else { FigureOutcome::Equivalent };
    first.unwrap_or(rest)
}

/// What is known in addition to the runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonContext {
    /// Whether all sides were sent the same requests.
    pub proof: Option<Proof>,
    /// The rig's noise floor.
    pub floor: Option<Floor>,
    /// Whether the user wants a verdict though sides are not comparable.
    pub insists: bool,
}
