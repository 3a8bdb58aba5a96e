//! A plan from figures known by construction: a replica carries 20 requests/s, and 22 are too much.

use goodput_campaign::capacity::{
    Basis, Capacity, Expected, FanOut, LevelRisk, MeasuredLevel, Origin, PlanNote, PlanNoteKind,
    Question, Simulation, Traffic, expect_at, plan_capacity, plan_for_traffic,
};
use goodput_campaign::sweep::{Bounded, Figures, PointSpread};
use goodput_model::Verdict;

fn near(value: f64) -> Bounded {
    Bounded { value, low: Some(value * 0.93), high: Some(value * 1.08) }
}

fn spread(p50: f64, p99: f64) -> PointSpread {
    let p90 = Some(near((p50 * p99).sqrt()));
    PointSpread { p50: Some(near(p50)), p90, p99: Some(near(p99)), mean: Some(p50) }
}

fn level(number: usize, rps: f64, ttft: f64) -> MeasuredLevel {
    let figures = Figures {
        is_complete: true,
        requests: 1200,
        ok: 1200,
        requests_per_s: Some(rps),
        output_tps: Some(rps * 200.0),
        ttft_ms: spread(ttft, ttft * 3.0),
        tpot_ms: spread(20.0 + rps, 32.0 + 1.4 * rps),
        e2e_ms: spread(6000.0, 9000.0),
        input_tokens: Some(500.0),
        output_tokens: Some(200.0),
        attainment: Some(near(0.995)),
        goodput_output_tps: Some(rps * 200.0 * 0.99),
        gpu_power_w: Some(3000.0 + 100.0 * rps),
        ..Figures::default()
    };
    MeasuredLevel { rps, is_open: true, folder: format!("points/{number:03}"), figures }
}

pub(crate) fn basis() -> Basis {
    let rows = [(5.0, 80.0), (10.0, 95.0), (15.0, 120.0), (20.0, 160.0), (22.0, 420.0)];
    let levels = (1..).zip(rows).map(|(number, (rps, ttft))| level(number, rps, ttft));
    Basis {
        origin: Origin::Sweep,
        path: "runs/2026-11-15T10-22-07Z-chat-sweep".to_owned(),
        about: "llama-70b at http://10.0.0.7:8000, chat".to_owned(),
        verdict: Some(Verdict::Valid),
        slo: Some("p99 ttft < 500ms, p99 tpot < 80ms".to_owned()),
        confirmed_rps: 20.0,
        is_measured_only: false,
        rejected_rps: Some(22.0),
        crossing_rps: Some(21.2),
        crossing_low_rps: Some(19.2),
        crossing_high_rps: Some(22.5),
        over_claim_risk: Some(0.04),
        attainment: Some(0.995),
        attainment_target: Some(0.99),
        gpus: Some(8),
        levels: levels.collect(),
        notes: Vec::new(),
    }
}

/// 100 requests/s at the peak of a day, compared with five replicas.
pub(crate) fn full() -> Capacity {
    let basis = basis();
    let question = Question {
        target_rps: 100.0,
        headroom: 0.2,
        gpus_per_replica: Some(8),
        price_per_gpu_hour: Some(2.5),
        replicas: Some(4),
    };
    let mut capacity = plan_capacity(basis.clone(), question).unwrap();
    let risk = |rps: f64, missed: u64| LevelRisk {
        rps,
        stretches: 40,
        stretch_s: 300.0,
        missed,
        good_share: 1.0 - missed as f64 / 400.0,
    };
    let mut simulation = Simulation::refused("", "the logs of the sweep");
    simulation.refused = None;
    simulation.errors = [Some(0.02), Some(0.06), Some(0.01)];
    (simulation.slowness, simulation.max_num_seqs) = (Some(1.02), Some(64));
    simulation.levels =
        vec![risk(18.0, 0), risk(20.0, 1), risk(21.0, 9), risk(22.5, 31), risk(25.0, 40)];
    let traffic = Traffic::diurnal(100.0, 20.0, 14.0).unwrap();
    capacity.traffic = Some(plan_for_traffic(&basis, &question, &traffic, 4, simulation));
    let here: Expected = expect_at(&basis.levels, 20.0, "confirmed");
    capacity.fan_out = Some(FanOut::from_expected(10, &here));
    capacity.notes.push(PlanNote::new(PlanNoteKind::Doubt, "two points of the sweep are suspect"));
    capacity
}
