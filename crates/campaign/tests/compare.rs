//! How often a comparison is right, in simulated time.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod lab;

use std::collections::BTreeMap;

use goodput_campaign::compare::{
    Better, Design, FigureOutcome, Finding, RunAsk, Stopped, comparable_figures, find_metric,
};
use goodput_campaign::sweep::{Figures, Level};
use goodput_sim::EngineProfile;
use goodput_stats::{Energy, GpuSummary, PerToken, RecountSummary, Summary};
use lab::{
    Compared, REQUEST_FIGURES, Request, Rig, Server, compare, per_request_p, quick_run, run,
    slower_steps, whole_run,
};

/// Runs of one server differ by so much: what is asked of the default design.
const NOISE: f64 = 0.02;

fn server() -> Server {
    Server::chat("demo", 3_600_000, 99.0)
}

/// The candidate's steps take this many times as long.
fn rig(factor: f64) -> Rig {
    let (reference, mut candidate) = (server(), server());
    candidate.profile = slower_steps(&candidate.profile, factor);
    Rig { sides: vec![reference, candidate], noise: NOISE, slo: None }
}

/// Steps that prefill more than 1,800 tokens take longer on the candidate: few requests are that long.
fn tail_rig() -> Rig {
    let mut rig = rig(1.0);
    let EngineProfile::Batching(batching) = &mut rig.sides[1].profile.engine else {
        panic!("no steps")
    };
    let at_1800 = 1.6 + (13.5 - 1.6) * (1800.0 - 64.0) / (2048.0 - 64.0);
    batching.step.prefill_ms = vec![(64, 1.6), (1800, at_1800), (2048, 13.5 + 6.0)];
    rig
}

/// The default design, at less than half of what the server carries.
fn design(luck: u64) -> Design {
    Design {
        sides: vec!["a".to_owned(), "b".to_owned()],
        levels: vec![Level::Rate(20.0)],
        seed: 1000 * luck,
        ..Design::default()
    }
}

/// Shorter runs, for tests that are built without optimization.
fn short(luck: u64) -> Design {
    Design { run_s: 6.0, burn_in_s: 2.0, ..design(luck) }
}

fn tested(compared: &Compared) -> impl Iterator<Item = &Finding> {
    compared.comparison.findings.iter().filter(|finding| finding.is_tested)
}

fn outcome(compared: &Compared, metric: &str) -> FigureOutcome {
    tested(compared).find(|finding| finding.metric == metric).unwrap().outcome
}

fn is_alarm(finding: &Finding) -> bool {
    matches!(finding.outcome, FigureOutcome::Better | FigureOutcome::Worse)
}

fn quick(rig: &Rig, luck: u64) -> Compared {
    let design = short(luck);
    compare(&design, |ask| quick_run(rig, &design, ask, luck))
}

#[test]
fn equal_servers_raise_no_alarm() {
    let alarms = (0..4).filter(|luck| tested(&quick(&rig(1.0), *luck)).any(is_alarm)).count();
    assert_eq!(alarms, 0);
}

#[test]
fn steps_that_take_five_percent_longer_are_found() {
    let all: Vec<Compared> = (0..4).map(|luck| quick(&rig(1.05), luck)).collect();
    for compared in &all {
        assert_eq!(outcome(compared, "tpot_p50"), FigureOutcome::Worse);
        assert_eq!(compared.comparison.outcome, FigureOutcome::Worse);
    }
    // Most end before the last look.
    let blocks: u32 = all.iter().map(|compared| compared.comparison.comparison.blocks).sum();
    assert!(blocks < 4 * 16, "{blocks} blocks");
}

#[test]
fn a_difference_in_the_tail_alone_is_found_as_such() {
    let compared = quick(&tail_rig(), 0);
    assert_eq!(outcome(&compared, "ttft_p99"), FigureOutcome::Worse);
    for calm in ["ttft_p50", "tpot_p50", "output_tokens_per_s"] {
        let said = outcome(&compared, calm);
        assert!(
            matches!(said, FigureOutcome::Equivalent | FigureOutcome::Inconclusive),
            "{calm}: {said:?}"
        );
    }
}

/// What the tests above look at is what a run would have said.
#[test]
fn quick_figures_are_those_of_the_analysis() {
    let (rig, design) = (rig(1.0), short(3));
    let ask = RunAsk { number: 1, block: 1, side: 1, level: 0, seed: 5 };
    let (whole, _) = run(&rig, &design, &ask, 3);
    let quick = quick_run(&rig, &design, &ask, 3);
    assert_eq!(quick.len(), 6);
    for (name, figure) in &quick {
        let apart = (figure.value - whole[name].value).abs();
        let is_near = apart <= 1e-6 * whole[name].value;
        assert!(is_near, "{name}: {figure:?} is not {:?}", whole[name]);
    }
    // Too few for an interval of its own, and it counts all the same: blocks tell how sure it is.
    assert_eq!(whole["ttft_p99"].high, None);
}

#[test]
fn figures_are_taken_from_all_over_the_summary() {
    let rig = Rig { slo: Some("ttft < 14ms"), ..rig(1.0) };
    let ask = RunAsk { number: 1, block: 1, side: 0, level: 0, seed: 5 };
    let (mut summary, requests) = whole_run(&rig, &short(3), &ask, 3);
    let value = |summary: &Summary, name: &str| {
        comparable_figures(summary).get(name).map(|found| found.value)
    };
    let good =
        |request: &&Request| request.first.is_some_and(|at| (at - request.at).as_ms() < 14.0);
    let share = requests.iter().filter(good).count() as f64 / requests.len() as f64;
    assert!(share > 0.05 && share < 0.95, "{share}");
    assert!((value(&summary, "attainment").unwrap() - share).abs() < 1e-9);
    let ttft = &summary.metrics["ttft"];
    assert_eq!(value(&summary, "ttft_mean"), ttft.mean);
    let [p99, p50] = ["99", "50"].map(|percent| ttft.percentiles[percent].value.unwrap());
    assert_eq!(value(&summary, "ttft_p99_over_p50"), Some(p99 / p50));
    let rate = summary.load.scheduled_rps.unwrap();
    assert!((value(&summary, "goodput_rps").unwrap() - share * rate).abs() < 1e-9);
    assert_eq!(
        value(&summary, "goodput_tokens_per_s"),
        summary.slo.as_ref().unwrap().goodput_output_tps
    );
    assert_eq!(value(&summary, "error_share"), Some(0.0));
    assert_eq!(value(&summary, "recounted_tokens_per_s"), None);
    assert_eq!(value(&summary, "characters_per_s"), None);
    let recount = RecountSummary {
        output_tokens: 100,
        characters: 450,
        output_tps: Some(20.0),
        ..RecountSummary::default()
    };
    summary.recount = Some(recount);
    assert_eq!(value(&summary, "recounted_tokens_per_s"), Some(20.0));
    assert_eq!(value(&summary, "characters_per_s"), Some(90.0));
    assert_eq!(value(&summary, "joules_per_output_token"), None);
    let joules_per = PerToken { output_token: Some(0.4), ..PerToken::default() };
    let energy = Energy { mean_w: 500.0, joules_per, ..Energy::default() };
    summary.gpu = Some(GpuSummary { energy: Some(energy), ..GpuSummary::default() });
    assert_eq!(value(&summary, "joules_per_output_token"), Some(0.4));
    assert_eq!(find_metric("joules_per_output_token").unwrap().better, Better::Lower);
    let point = Figures::from_summary(&summary);
    assert_eq!((point.gpu_power_w, point.joules_per_output_token), (Some(500.0), Some(0.4)));
    // A value beyond the time limit is missing, whatever the field holds.
    assert!(value(&summary, "ttft_p99").is_some());
    summary.metrics.get_mut("ttft").unwrap().percentiles.get_mut("99").unwrap().is_censored = true;
    assert_eq!(value(&summary, "ttft_p99"), None);
    assert!(comparable_figures(&summary).keys().all(|name| find_metric(name).is_some()));
}

/// How often each was said, over comparisons of one kind under one design.
#[derive(Default)]
struct Tally {
    comparisons: u32,
    alarms: u32,
    blocks: u32,
    known: u32,
    doubtful: u32,
    outcomes: BTreeMap<String, BTreeMap<String, u32>>,
    changes: BTreeMap<String, Vec<f64>>,
}

impl Tally {
    fn add(&mut self, compared: &Compared) {
        self.comparisons += 1;
        self.alarms += u32::from(tested(compared).any(is_alarm));
        self.blocks += compared.comparison.comparison.blocks;
        self.known += u32::from(compared.stopped == Stopped::Known);
        self.doubtful += u32::from(tested(compared).any(|finding| finding.is_doubtful));
        for finding in tested(compared) {
            let outcomes = self.outcomes.entry(finding.metric.clone()).or_default();
            *outcomes.entry(format!("{:?}", finding.outcome)).or_default() += 1;
            self.changes.entry(finding.metric.clone()).or_default().push(finding.change);
        }
    }

    fn print(&self, name: &str) {
        let n = f64::from(self.comparisons);
        println!(
            "{name:24} {} comparisons: alarms {:.3}, mean blocks {:.2}, known {:.2}, doubtful {:.3}",
            self.comparisons,
            f64::from(self.alarms) / n,
            f64::from(self.blocks) / n,
            f64::from(self.known) / n,
            f64::from(self.doubtful) / n,
        );
        for (metric, outcomes) in &self.outcomes {
            let changes = &self.changes[metric];
            let mean = changes.iter().sum::<f64>() / changes.len() as f64;
            println!("    {metric:20} mean change {:+.2} % {outcomes:?}", 100.0 * mean);
        }
    }
}

/// Each simulated run is carried out once, and every design takes those it asks for.
#[test]
#[ignore = "a study: 200 comparisons of each kind, for docs/design/016"]
fn study() {
    let number = |name: &str, usual: f64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
    };
    let lucks = number("LAB_SEEDS", 200.0) as u64;
    let noise = number("LAB_NOISE", NOISE);
    let wanted = std::env::var("LAB_CASE").unwrap_or_default();
    let kinds = [("equal", rig(1.0)), ("steps 1.05", rig(1.05)), ("tail", tail_rig())];
    for (kind, mut rig) in kinds.into_iter().filter(|kind| kind.0.contains(&wanted)) {
        rig.noise = noise;
        let designs: [(&str, &[u32]); 4] =
            [("6/8/12/16", &[6, 8, 12, 16]), ("8", &[8]), ("16", &[16]), ("6", &[6])];
        let mut tallies: Vec<Tally> = designs.iter().map(|_| Tally::default()).collect();
        let mut by_request = BTreeMap::new();
        for luck in 0..lucks {
            let mut runs = BTreeMap::new();
            for ((_, looks), tally) in designs.iter().zip(&mut tallies) {
                let design = Design { looks: looks.to_vec(), ..design(luck) };
                let mut carry_out = |ask: &RunAsk| {
                    let run = || run(&rig, &design, ask, luck);
                    runs.entry((ask.block, ask.side)).or_insert_with(run).0.clone()
                };
                tally.add(&compare(&design, &mut carry_out));
            }
            for (name, of) in REQUEST_FIGURES {
                let side = |side: u32| -> Vec<f64> {
                    let runs = runs.iter().filter(|(key, _)| key.1 == side && key.0 <= 6);
                    runs.flat_map(|(_, run)| run.1.iter().filter_map(of)).collect()
                };
                let p = per_request_p(&side(0), &side(1));
                *by_request.entry(name).or_insert(0u32) += u32::from(p < 0.05);
            }
        }
        for ((name, _), tally) in designs.iter().zip(&tallies) {
            tally.print(&format!("{kind}, looks {name}"));
        }
        println!("    by request, 6 blocks, p < 0.05: {by_request:?} of {lucks}");
    }
}
