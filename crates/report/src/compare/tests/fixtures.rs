//! Comparisons made by hand: figures are round, intervals are given.

use std::collections::BTreeMap;

use goodput_campaign::compare::{
    AxisRow, CompareFacts, ComparedRun, Comparison, Design, Difference, Figure, FigureOutcome,
    Finding, Floor, Gate, GateResult, LevelComparison, Limit, Matter, Proof, Quantity, Rank,
    RunAsk, ServerSetting, SettingAgreement, Side, SideFacts, Stopped,
};
use goodput_campaign::sweep::Level;
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

use crate::compare::compare_text;

pub(crate) fn finding(
    metric: &str,
    values: (f64, f64),
    half: f64,
    outcome: FigureOutcome,
) -> Finding {
    let (reference, candidate) = values;
    let is_share = matches!(metric, "attainment" | "error_share");
    let change = if is_share { candidate - reference } else { candidate / reference - 1.0 };
    Finding {
        metric: metric.to_owned(),
        side: 1,
        level: 0,
        n: 8,
        reference,
        candidate,
        change,
        low: Some(change - half),
        high: Some(change + half),
        confidence: 0.9954,
        p: Some(if change.abs() > half { 0.000_02 } else { 0.4211 }),
        wilcoxon_p: Some(if change.abs() > half { 0.0078 } else { 0.3828 }),
        hodges_lehmann: Some(change),
        sd: Some(half),
        is_tested: true,
        margin: 0.03,
        outcome,
        further_blocks: (outcome == FigureOutcome::Inconclusive).then_some(6),
        is_doubtful: false,
    }
}

pub(crate) fn side(name: &str, port: u32) -> Side {
    Side {
        name: name.to_owned(),
        target: format!("http://127.0.0.1:{port}"),
        model: "llama-70b".to_owned(),
        gpus: Some(8),
        price_per_gpu_hour: Some(2.5),
        ..Side::default()
    }
}

pub(crate) fn row(figure: &str, title: &str, unit: &str, values: &[f64]) -> AxisRow {
    AxisRow {
        figure: figure.to_owned(),
        title: title.to_owned(),
        unit: unit.to_owned(),
        values: values.iter().map(|value| Some(*value)).collect(),
    }
}

/// B has longer steps by five percent; the first token is as fast.
pub(crate) fn two() -> Comparison {
    let mut others = finding("e2e_p50", (5000.0, 5200.0), 0.012, FigureOutcome::Worse);
    others.is_tested = false;
    Comparison {
        comparison: CompareFacts {
            version: "0.8.0".to_owned(),
            started: "2026-11-15T10:00:00Z".to_owned(),
            stopped: Some(Stopped::Known),
            workload: "chat".to_owned(),
            blocks: 8,
            took_s: 592.0,
            ..CompareFacts::default()
        },
        design: Design {
            sides: vec!["A".to_owned(), "B".to_owned()],
            levels: vec![Level::Rate(8.0)],
            ..Design::default()
        },
        sides: vec![side("A", 8000), side("B", 8001)],
        outcome: FigureOutcome::Worse,
        proof: Some(proof()),
        findings: vec![
            finding("ttft_p50", (100.0, 100.4), 0.01, FigureOutcome::Equivalent),
            finding("ttft_p99", (200.0, 201.0), 0.02, FigureOutcome::Equivalent),
            finding("tpot_p50", (20.0, 21.02), 0.0115, FigureOutcome::Worse),
            finding("attainment", (0.992, 0.97), 0.004, FigureOutcome::Equivalent),
            others,
        ],
        levels: vec![LevelComparison { level: Some(Level::Rate(8.0)), rows: rows(&[1.0, 1.05]) }],
        floor: Some(floor()),
        ..Comparison::default()
    }
}

fn proof() -> Proof {
    Proof {
        compared: 3840,
        identical: 3840,
        same_instant: Some(3840),
        sha256: "5f".repeat(32),
        without_model: false,
    }
}

pub(crate) fn floor() -> Floor {
    Floor {
        schema: Floor::SCHEMA.to_owned(),
        date: "2026-11-14T09:00:00Z".to_owned(),
        machine: "here".to_owned(),
        target: "http://127.0.0.1:8000".to_owned(),
        model: "llama-70b".to_owned(),
        load: "8 req/s".to_owned(),
        workload: "chat".to_owned(),
        blocks: 8,
        run_s: 30.0,
        suspect_runs: 0,
        sd: BTreeMap::from([
            ("tpot_p50".to_owned(), 0.012),
            ("attainment".to_owned(), 0.004),
            ("e2e_p50".to_owned(), 0.02),
        ]),
    }
}

/// A row of each kind, where each side is slower by its factor.
pub(crate) fn rows(slower: &[f64]) -> Vec<AxisRow> {
    let times = |value: f64| -> Vec<f64> { slower.iter().map(|by| value * by).collect() };
    let rates = |value: f64| -> Vec<f64> { slower.iter().map(|by| value / by).collect() };
    let mut rows = vec![
        row("output_tokens_per_s", "output", "tok/s", &rates(3360.0)),
        row("output_tokens_per_s_per_gpu", "output per GPU", "tok/s", &rates(420.0)),
        row("ttft_p50", "p50 TTFT", "ms", &times(100.0)),
        row("tpot_p50", "p50 TPOT", "ms", &times(20.0)),
        row("e2e_p50", "p50 E2E", "ms", &times(5000.0)),
        row("attainment", "attainment", "", &rates(0.992)),
        row("cost_per_million_good_tokens", "cost of 1M good tokens", "", &times(1.6534)),
    ];
    rows[6].values[0] = None;
    rows
}

/// Both candidates against A; C is the best, A and B are as good.
pub(crate) fn three() -> Comparison {
    let mut three = two();
    three.design.sides.push("C".to_owned());
    three.sides.push(side("C", 8002));
    three.findings = vec![
        finding("tpot_p50", (20.0, 20.1), 0.01, FigureOutcome::Equivalent),
        Finding { side: 2, ..finding("tpot_p50", (20.0, 18.0), 0.01, FigureOutcome::Better) },
    ];
    three.levels[0].rows = rows(&[1.0, 1.005, 0.9]);
    let rank = |side, rank, value| Rank {
        metric: "tpot_p50".to_owned(),
        level: 0,
        side,
        rank,
        value,
        behind: if rank > 1 { vec![2] } else { Vec::new() },
        like: Vec::new(),
    };
    three.ranking = vec![rank(2, 1, 18.0), rank(0, 2, 20.0), rank(1, 2, 20.1)];
    three
}

pub(crate) fn gate(metric: &str, limit: Limit, change: f64, outcome: FigureOutcome) -> GateResult {
    GateResult {
        gate: Gate { metric: metric.to_owned(), limit, change },
        side: 1,
        level: 0,
        outcome,
        change: Some(0.08),
        low: Some(0.061),
        high: Some(0.102),
    }
}

pub(crate) fn gated(results: Vec<GateResult>) -> Comparison {
    let mut comparison = two();
    comparison.design.gates = results.iter().map(|one| one.gate.clone()).collect();
    comparison.gates = results;
    comparison
}

/// Outputs of B are shorter: nothing can be said of what depends on them.
pub(crate) fn refused() -> Comparison {
    let mut refused = two();
    refused.outcome = FigureOutcome::NoVerdict;
    for finding in &mut refused.findings {
        finding.outcome = FigureOutcome::NoVerdict;
    }
    let difference = |code: &str, matter, message: &str, spoils: &[&str]| Difference {
        code: code.to_owned(),
        matter,
        side: 1,
        message: message.to_owned(),
        advice: "send ignore_eos".to_owned(),
        spoils: spoils.iter().map(|&name| name.to_owned()).collect(),
    };
    refused.differences = vec![
        difference("version", Matter::Info, "goodput 0.7.0 and 0.8.0", &[]),
        difference("path_rtt", Matter::Warn, "round trips of 0.1 and 2.0 ms", &["ttft_p50", "e2e"]),
        difference("output_length", Matter::Refuse, "answers have 210 and 160 tokens", &[]),
    ];
    refused
}

/// Runs of both sides where each of `b` says whether B has this figure; A always has it.
pub(crate) fn runs(metric: &str, b: &[bool]) -> Vec<ComparedRun> {
    let cell = |block: usize, side: u32, has: bool| ComparedRun {
        ask: RunAsk { number: 1, block: block as u32, side, level: 0, seed: 1 },
        verdict: Verdict::Valid,
        doubt: None,
        figures: (has.then(|| (metric.to_owned(), Figure { value: 1.0, low: None, high: None })))
            .into_iter()
            .collect(),
        facts: SideFacts::default(),
    };
    let block = |(block, has): (usize, &bool)| [cell(block, 0, true), cell(block, 1, *has)];
    b.iter().enumerate().flat_map(block).collect()
}

/// One saved run on each side, and no floor.
pub(crate) fn saved() -> Comparison {
    let mut saved = two();
    (saved.is_paired, saved.floor, saved.proof) = (false, None, None);
    saved.outcome = FigureOutcome::NoVerdict;
    for finding in &mut saved.findings {
        (finding.outcome, finding.n, finding.p) = (FigureOutcome::NoVerdict, 1, None);
        (finding.low, finding.high, finding.wilcoxon_p) = (None, None, None);
        (finding.hodges_lehmann, finding.sd) = (None, None);
    }
    saved
}

/// The load within the SLO is what is compared.
pub(crate) fn search() -> Comparison {
    let mut search = two();
    (search.design.quantity, search.design.levels) = (Quantity::Goodput, Vec::new());
    search.findings = vec![finding("goodput_rps", (20.0, 21.6), 0.03, FigureOutcome::Better)];
    search.levels = vec![LevelComparison {
        level: None,
        rows: vec![row("goodput_rps", "goodput", "/s", &[20.0, 21.6])],
    }];
    search
}

/// Every foreign text tries to get out of its place.
pub(crate) fn hostile() -> Comparison {
    let evil =
        "a|b <script> [x](y) `c` @team **bold** <!-- ]]> &x; \"'\x1b[2J\u{202e}日本\u{ffff}\r\n| z"
            .repeat(3);
    let mut hostile = refused();
    for side in &mut hostile.sides {
        (side.name, side.target, side.model) = (evil.clone(), evil.clone(), evil.clone());
        (side.system.engine, side.system.hardware) = (evil.clone(), evil.clone());
    }
    hostile.comparison.workload.clone_from(&evil);
    hostile.comparison.version.clone_from(&evil);
    hostile.comparison.started.clone_from(&evil);
    for one in &mut hostile.differences {
        (one.code, one.message, one.advice) = (evil.clone(), evil.clone(), evil.clone());
        one.spoils = vec![evil.clone()];
    }
    hostile.settings = vec![ServerSetting {
        name: evil.clone(),
        values: vec![Some(evil.clone()), None],
        agreement: SettingAgreement::Unknown,
    }];
    hostile.findings[0].metric.clone_from(&evil);
    for row in &mut hostile.levels[0].rows {
        (row.figure, row.title, row.unit) = (evil.clone(), evil.clone(), evil.clone());
    }
    if let Some(proof) = &mut hostile.proof {
        proof.sha256.clone_from(&evil);
    }
    if let Some(floor) = &mut hostile.floor {
        (floor.target, floor.load, floor.date) = (evil.clone(), evil.clone(), evil.clone());
        floor.sd.insert(evil.clone(), 0.1);
    }
    hostile.caveats = vec![Caveat::new(CaveatCode::Drifting, Severity::Warn, evil)];
    hostile
}

pub(crate) fn has(page: &str, line: &str) {
    assert!(page.contains(line), "{line:?} is not in\n{page}");
}

/// The answers in one line.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let page = compare_text(comparison, crate::Detail::Full);
    let lines = page.lines().take_while(|line| !line.is_empty());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

pub(crate) fn changed(change: impl FnOnce(&mut Comparison)) -> Comparison {
    let mut comparison = two();
    change(&mut comparison);
    comparison
}
