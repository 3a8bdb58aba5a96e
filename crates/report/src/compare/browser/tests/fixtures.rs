//! A comparison made from runs whose figures are known by construction: B answers later under load,
//! C steps faster, and chance is a hundredth.

use std::collections::BTreeMap;

use goodput_campaign::compare::{
    CompareFacts, ComparedRun, Comparison, ComparisonContext, Design, Figure, Floor, Gate, Limit,
    Proof, RunAsk, Side, SideFacts, Stopped,
};
use goodput_campaign::sweep::Level;
use goodput_model::{Caveat, CaveatCode, Severity, Verdict};

/// Requests per second of the levels.
const RATES: [f64; 2] = [8.0, 16.0];
/// Blocks that were measured.
pub(crate) const BLOCKS: u32 = 8;

/// A number around 1 that hangs on its place alone, with a spread of one in a hundred.
fn chance(place: u64) -> f64 {
    let mut x = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995;
    let mut sum = 0.0;
    for _ in 0..4 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 32;
        sum += (x % 10_000) as f64 / 10_000.0 - 0.5;
    }
    1.0 + sum * 0.017
}

/// The figures of a run. Sides share the block's chance, as they share its requests.
fn figures(ask: RunAsk) -> BTreeMap<String, Figure> {
    let rate = RATES[ask.level as usize];
    let shared = chance(u64::from(ask.block) * 10 + u64::from(ask.level));
    let (first, step) = match (ask.side, ask.level) {
        (1, 1) => (1.12, 1.0),
        (2, _) => (0.99, 0.93),
        _ => (1.0, 1.0),
    };
    let own = |place: u64| shared * chance(u64::from(ask.number) * 100 + place);
    let ttft = 40.0 + 8.0 * rate;
    let tpot = 14.0 + 0.5 * rate;
    let bounded = |value: f64, share: f64| Figure {
        value,
        low: Some(value * (1.0 - share)),
        high: Some(value * (1.0 + share)),
    };
    let plain = |value: f64| Figure { value, low: None, high: None };
    let all = [
        ("ttft_p50", bounded(ttft * first * own(1), 0.02)),
        ("ttft_p99", bounded(ttft * 2.6 * first * own(2), 0.06)),
        ("tpot_p50", bounded(tpot * step * own(3), 0.01)),
        ("tpot_p99", bounded(tpot * 1.5 * step * own(4), 0.03)),
        ("e2e_p50", bounded((ttft * first + 160.0 * tpot * step) * own(5), 0.015)),
        ("output_tokens_per_s", plain(rate * 160.0 * own(6))),
        ("goodput_rps", plain(rate * 0.99 * own(7))),
        ("attainment", plain((0.985 / first.max(1.0) + 0.005 * (own(8) - 1.0)).min(1.0))),
        ("error_share", plain(0.001 * own(9))),
    ];
    all.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect()
}

fn cell(number: u32, block: u32, side: u32, level: u32) -> ComparedRun {
    let ask = RunAsk { number, block, side, level, seed: u64::from(block * 7 + level) };
    ComparedRun {
        ask,
        verdict: if number == 5 { Verdict::Suspect } else { Verdict::Valid },
        doubt: (number == 5).then(|| {
            Caveat::new(CaveatCode::NoWarmup, Severity::Warn, "its first seconds were slower")
        }),
        figures: figures(ask),
        facts: SideFacts {
            version: "0.9.0".to_owned(),
            host: "Linux 6.8, AMD EPYC, 16 processors".to_owned(),
            model: "llama-70b".to_owned(),
            api: "chat, streamed".to_owned(),
            transport: "HTTP/1.1, kept alive".to_owned(),
            workload: "chat: 540 tokens in, 160 out".to_owned(),
            workload_hash: "9c1e".repeat(16),
            shape: "chat".to_owned(),
            load: format!("open loop, {} req/s, poisson", RATES[level as usize]),
            requests: 240,
            ok: 240,
            output_source: "usage".to_owned(),
            input_mean: Some(540.0),
            output_mean: Some(160.0),
            server: server(side),
            ..SideFacts::default()
        },
    }
}

/// What a server says of itself: engines and hardware differ, one batch limit too, and one format is
/// not stated.
fn server(side: u32) -> BTreeMap<String, String> {
    let all = [
        ("engine", ["vllm", "sglang", "vllm"]),
        ("engine_version", ["0.32.0", "0.5.9", "0.32.0"]),
        ("gpu", ["NVIDIA H200", "NVIDIA H200", "NVIDIA B200"]),
        ("gpu_count", ["8", "8", "8"]),
        ("tensor_parallel", ["8", "8", "8"]),
        ("dtype", ["bfloat16", "bfloat16", ""]),
        ("max_num_seqs", ["256", "1024", "256"]),
    ];
    let stated = all.into_iter().map(|(name, values)| (name, values[side as usize]));
    let stated = stated.filter(|(_, value)| !value.is_empty());
    stated.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Three sides at two levels in eight blocks.
pub(crate) fn full() -> Comparison {
    let mut runs = Vec::new();
    for block in 1..=BLOCKS {
        for level in 0..2 {
            for side in 0..3 {
                runs.push(cell(runs.len() as u32 + 1, block, side, level));
            }
        }
    }
    let side = |name: &str, port: u32, price: f64| Side {
        name: name.to_owned(),
        target: format!("http://10.0.0.7:{port}"),
        model: "llama-70b".to_owned(),
        gpus: Some(8),
        price_per_gpu_hour: Some(price),
        ..Side::default()
    };
    let sides = vec![side("vllm", 8000, 2.5), side("sglang", 8001, 2.5), side("b200", 8002, 4.0)];
    let design = Design {
        sides: sides.iter().map(|side| side.name.clone()).collect(),
        levels: RATES.map(Level::Rate).to_vec(),
        under_test: vec!["engine".to_owned(), "hardware".to_owned()],
        ..Design::default()
    };
    let facts = CompareFacts {
        version: "0.9.0".to_owned(),
        started: "2026-11-16T10:00:00Z".to_owned(),
        stopped: Some(Stopped::Known),
        workload: "chat: 540 tokens in, 160 out".to_owned(),
        slo: "p99 ttft < 500ms".to_owned(),
        estimated_s: Some(3500.0),
        took_s: 1730.0,
        ..CompareFacts::default()
    };
    let rest = ComparisonContext { proof: Some(proof()), floor: Some(floor()), insists: false };
    Comparison::from_paired_runs(facts, design, sides, runs, rest)
}

/// The first two of them, with gates.
pub(crate) fn gated() -> Comparison {
    let full = full();
    let gate = |metric: &str, limit, change| Gate { metric: metric.to_owned(), limit, change };
    let design = Design {
        sides: full.design.sides[..2].to_vec(),
        gates: vec![
            gate("ttft_p99", Limit::Below, 0.05),
            gate("tpot_p50", Limit::Below, 0.03),
            gate("output_tokens_per_s", Limit::Above, -0.03),
        ],
        ..full.design
    };
    let runs = full.runs.into_iter().filter(|run| run.ask.side < 2).collect();
    let rest = ComparisonContext { proof: full.proof, floor: full.floor, insists: false };
    Comparison::from_paired_runs(full.comparison, design, full.sides[..2].to_vec(), runs, rest)
}

fn proof() -> Proof {
    Proof {
        compared: 5760,
        identical: 5760,
        same_instant: Some(5760),
        sha256: "5f".repeat(32),
        without_model: false,
    }
}

fn floor() -> Floor {
    Floor {
        schema: Floor::SCHEMA.to_owned(),
        date: "2026-11-14T09:00:00Z".to_owned(),
        machine: "here".to_owned(),
        target: "http://10.0.0.7:8000".to_owned(),
        model: "llama-70b".to_owned(),
        load: "8 req/s".to_owned(),
        workload: "chat".to_owned(),
        blocks: 8,
        run_s: 30.0,
        suspect_runs: 0,
        sd: BTreeMap::from([("tpot_p50".to_owned(), 0.008), ("ttft_p99".to_owned(), 0.014)]),
    }
}

/// The folders of its runs.
pub(crate) fn folders(comparison: &Comparison) -> Vec<(u32, String)> {
    let one = |run: &ComparedRun| {
        let side = &comparison.sides[run.ask.side as usize].name;
        (run.ask.number, format!("points/{:03}-b{:02}-{side}", run.ask.number, run.ask.block))
    };
    comparison.runs.iter().map(one).collect()
}
