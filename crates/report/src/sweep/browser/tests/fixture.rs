//! A sweep that is made up: requests drawn from a server whose latency grows with load, counted here
//! one by one, so that everything on its page can be checked against them.

use std::collections::BTreeMap;

use goodput_campaign::curve::fit_curve;
use goodput_campaign::sweep::{
    Axis, Bounded, ColdStart, Configuration, Figures, Goodput, GoodputState, Level, Miss, Point,
    PointAsk, PointStanding, PointSummary, Purpose, Sustained, SweepFacts, SweepPlan, SweepState,
    SweepSummary, TimeEstimate,
};
use goodput_model::{Caveat, CaveatCode, Severity, Slo, StopEarly, SystemContext, Verdict};
use goodput_stats::{
    Audit, CounterSummary, Details, Distribution, Energy, GpuDevice, GpuSummary, Item,
    LevelSummary, PerToken, QueueSummary, ServerSummary, SloGrid, Source, Status, Summary,
};
use serde_json::{Value, json};

use crate::{Circumstances, PointView};

/// Seconds of a window.
const WINDOW_S: f64 = 60.0;
/// Requests per second that the server can carry.
const CAPACITY: f64 = 28.0;

/// A request that completed: TTFT and TPOT in milliseconds, output tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) ttft: f64,
    pub(crate) tpot: f64,
    pub(crate) tokens: u64,
}

/// Everything that a page is made of.
pub(crate) struct Sweep {
    pub(crate) summary: SweepSummary,
    pub(crate) points: Vec<PointView>,
    pub(crate) circumstances: Circumstances,
    pub(crate) audit: Audit,
}

/// Numbers that are the same each time (SplitMix64).
struct Dice(u64);

impl Dice {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About a normal distribution.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    fn around(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }
}

/// The requests of a minute at this rate.
pub(crate) fn requests(rate: f64, seed: u64) -> Vec<Made> {
    let mut dice = Dice(seed);
    let busy = rate / CAPACITY;
    let queue = if busy < 0.97 { 12.0 / (1.0 - busy) } else { 400.0 + 4000.0 * (busy - 0.97) };
    let n = (rate * WINDOW_S).round() as usize;
    (0..n)
        .map(|_| Made {
            ttft: dice.around(60.0 + queue, 0.25 + 0.42 * busy),
            tpot: dice.around(14.0 + 0.9 * rate, 0.12),
            tokens: dice.around(160.0, 0.5).round().max(2.0) as u64,
        })
        .collect()
}

/// The value that this share of these do not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn sorted(made: &[Made], of: impl Fn(&Made) -> f64) -> Vec<f64> {
    let mut all: Vec<f64> = made.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn metric(values: &[f64], unit: &str) -> Value {
    let percentiles: BTreeMap<String, Value> = [50.0, 90.0, 95.0, 99.0]
        .into_iter()
        .map(|percent| {
            let share = percent / 100.0;
            let value = quantile(values, share);
            let off = 1.96 * (share * (1.0 - share) / values.len() as f64).sqrt();
            let ends = [share - off, (share + off).min(1.0)].map(|end| quantile(values, end));
            (percent.to_string(), json!({"value": value, "low": ends[0], "high": ends[1]}))
        })
        .collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    json!({"unit": unit, "n": values.len(), "censored": 0, "mean": mean, "std": 1.0,
        "min": values.first(), "max": values.last(), "percentiles": percentiles})
}

fn distribution(values: &[f64]) -> Distribution {
    let share = |step: u32| f64::from(step) / 199.0;
    Distribution {
        n: values.len() as u64,
        censored: 0,
        quantiles: (0..200).map(|step| (share(step), quantile(values, share(step)))).collect(),
        histogram: Vec::new(),
    }
}

/// Twelve limits a decade, and this one.
pub(crate) fn edges(first: f64, asked: f64) -> Vec<f64> {
    let steps = [10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];
    let decade = |power: i32| {
        steps.map(|step| (f64::from(step) * first * 10f64.powi(power) * 1e3).round() / 1e4)
    };
    let mut all: Vec<f64> = (0..5).flat_map(decade).chain([first * 1e5, asked]).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// Every request in its cell, and so many that failed.
pub(crate) fn grid(made: &[Made], failed: u64) -> SloGrid {
    let (ttft_ms, tpot_ms) = (edges(1.0, 500.0), edges(0.1, 50.0));
    let place = |edges: &[f64], value: f64| edges.partition_point(|edge| *edge <= value) as u16;
    let mut cells: BTreeMap<(u16, u16), (u64, u64)> = BTreeMap::new();
    for one in made {
        let cell = cells.entry((place(&ttft_ms, one.ttft), place(&tpot_ms, one.tpot))).or_default();
        *cell = (cell.0 + 1, cell.1 + one.tokens);
    }
    if failed > 0 {
        let last = (ttft_ms.len() as u16, tpot_ms.len() as u16);
        cells.entry(last).or_default().0 += failed;
    }
    SloGrid {
        ttft_ms,
        tpot_ms,
        cells: cells.into_iter().map(|((a, b), (n, tokens))| (a, b, n, tokens)).collect(),
        requests: made.len() as u64 + failed,
        window_s: WINDOW_S,
    }
}

fn level(mean: f64, max: f64) -> LevelSummary {
    LevelSummary { n: 60, mean, min: 0.0, p50: mean, p99: max, max }
}

/// What the server would say at this rate.
fn server(rate: f64) -> ServerSummary {
    let busy = (rate / CAPACITY).min(1.0);
    let waiting = if rate > CAPACITY { 40.0 * (rate - CAPACITY) } else { busy.powi(6) * 4.0 };
    ServerSummary {
        levels: BTreeMap::from([
            ("running".to_owned(), level((rate * 4.2).min(118.0), (rate * 6.0).min(128.0))),
            ("waiting".to_owned(), level(waiting, waiting * 3.0)),
            ("kv_usage".to_owned(), level(0.85 * busy, (0.99 * busy).min(1.0))),
        ]),
        counters: BTreeMap::from([(
            "preemptions".to_owned(),
            CounterSummary { total: (waiting / 10.0).floor(), per_s: 0.0 },
        )]),
        queue: Some(QueueSummary { wait_mean_ms: Some(waiting * 12.0), ..QueueSummary::default() }),
        prefix_hit_rate_counted: Some(0.31),
        ..ServerSummary::default()
    }
}

fn gpu(rate: f64) -> GpuSummary {
    let busy = (rate / CAPACITY).min(1.0);
    let watts = 8.0 * (220.0 + 460.0 * busy);
    let device = GpuDevice {
        name: "NVIDIA H200".to_owned(),
        levels: BTreeMap::from([("busy".to_owned(), level(0.3 + 0.68 * busy, 1.0))]),
        ..GpuDevice::default()
    };
    let each = watts / (rate.min(CAPACITY) * 160.0);
    GpuSummary {
        source: "nvml".to_owned(),
        devices: vec![device; 8],
        energy: Some(Energy {
            mean_w: watts,
            joules_per: PerToken { output_token: Some(each), ..PerToken::default() },
            ..Energy::default()
        }),
    }
}

/// The summary and the details of a run with these requests.
fn run(rate: f64, made: &[Made]) -> Result<(Summary, Details), serde_json::Error> {
    let ttft = sorted(made, |one| one.ttft);
    let tpot = sorted(made, |one| one.tpot);
    let e2e = sorted(made, |one| one.ttft + one.tpot * (one.tokens - 1) as f64);
    let speed = sorted(made, |one| {
        1000.0 * one.tokens as f64 / (one.ttft + one.tpot * (one.tokens - 1) as f64)
    });
    let n = made.len();
    let tokens: u64 = made.iter().map(|one| one.tokens).sum();
    let answered = rate.min(CAPACITY * 0.9);
    let throughput = json!({"requests_per_s": answered, "output_tokens_per_s": answered * 160.0,
        "total_tokens_per_s": answered * 700.0});
    let summary: Summary = serde_json::from_value(json!({
        "schema": "goodput.summary/1", "verdict": "valid", "caveats": [],
        "run": {"version": "0.8.0", "started": "2026-11-16T05:00:00Z", "state": "complete",
            "target": "http://127.0.0.1:8000", "model": "llama-70b", "api": "chat", "stream": true,
            "workload": "chat", "seed": 1, "warmup": "20s", "lost_records": 0,
            "unwritten_records": 0, "log_damaged": false},
        "load": {"mode": "open", "arrivals": "poisson", "offered_rps": rate, "scheduled_rps": rate,
            "delivered_rps": rate, "delivered_share": 1.0, "gap_cv": 1.0, "concurrency": null,
            "max_concurrency": null, "delayed": 0, "slip_ms": {"p50": 0.1, "p99": 0.2, "max": 0.3},
            "in_flight_mean": (rate * 5.0).min(200.0), "in_flight_end": 0},
        "requests": {"scheduled": n, "ok": n, "failed": 0, "errors": {}, "errors_by_stage": {},
            "error_details": [], "warmup": 0, "cooldown": 0, "reconnects": 0, "connects": 1,
            "finish_reasons": {"stop": n}},
        "tokens": {"input": n * 540, "input_source": "usage", "output": tokens,
            "output_source": "usage", "cached": null, "chunks": tokens, "coalesced_chunks": 0},
        "throughput": throughput, "whole_run": throughput,
        "window": {"start_s": 20.0, "end_s": 20.0 + WINDOW_S, "kind": "steady"},
        "metrics": {"ttft": metric(&ttft, "ms"), "tpot": metric(&tpot, "ms"),
            "e2e": metric(&e2e, "ms"), "request_tokens_per_s": metric(&speed, "tokens/s")},
    }))?;
    let summary = Summary { server: Some(server(rate)), gpu: Some(gpu(rate)), ..summary };
    let named = [("ttft", &ttft), ("tpot", &tpot), ("e2e", &e2e), ("itl", &tpot)];
    let details = Details {
        distributions: named
            .map(|(name, values)| (name.to_owned(), distribution(values)))
            .into_iter()
            .collect(),
        slo_grid: grid(made, 0),
        ..Details::default()
    };
    Ok((summary, details))
}

/// A point at this rate, with its run.
fn point(
    number: u32,
    rate: f64,
    purpose: Purpose,
) -> Result<(PointSummary, PointView), serde_json::Error> {
    let made = requests(rate, u64::from(number));
    let (summary, details) = run(rate, &made)?;
    let good = made.iter().filter(|one| one.ttft < 500.0 && one.tpot < 50.0).count() as f64;
    let n = made.len() as f64;
    let share = good / n;
    let off = 1.96 * (share * (1.0 - share) / n).sqrt();
    let bounded = |times: f64| Bounded {
        value: share * times,
        low: Some((share - off).max(0.0) * times),
        high: Some((share + off).min(1.0) * times),
    };
    let is_lost = rate > CAPACITY;
    let figures = Figures {
        over_saturated: Some(is_lost),
        balance: Some(if is_lost { 0.84 } else { 1.0 }),
        attainment: Some(bounded(1.0)),
        goodput_rps: Some(bounded(rate)),
        ..Figures::from_summary(&summary)
    };
    let p99 = figures.ttft_ms.p99.map_or(f64::NAN, |p99| p99.value);
    let standing = match (is_lost, p99 < 500.0) {
        (true, _) => PointStanding::Missed(Miss::OverSaturated),
        (_, true) => PointStanding::Met,
        _ => PointStanding::Missed(Miss::Term("p99 ttft < 500ms".to_owned())),
    };
    let ask = PointAsk {
        number,
        purpose,
        level: Level::Rate(rate),
        burn_in_s: 20.0,
        seconds: WINDOW_S,
        requests: None,
        seed: u64::from(number),
        stops: Some(StopEarly::Hopeless),
    };
    let folder = format!("points/{number:03}");
    let view = PointView { folder: folder.clone(), summary, details };
    Ok((PointSummary { folder, point: Point { ask, figures }, standing }, view))
}

/// Twelve points, of which two confirm the answer.
pub(crate) fn sweep() -> Result<Sweep, serde_json::Error> {
    use Purpose::{Anchor, Bisect, Bracket, Confirm, Focus, Grid, Sustain, WarmUp};
    let asked = [
        (8.0, WarmUp),
        (5.0, Grid),
        (31.0, Bracket),
        (10.0, Grid),
        (15.0, Grid),
        (20.0, Bisect),
        (25.0, Bisect),
        (23.1, Focus),
        (5.0, Anchor),
        (22.4, Confirm),
        (22.4, Confirm),
        (22.4, Sustain),
    ];
    let (mut points, mut views) = (Vec::new(), Vec::new());
    for (number, (rate, purpose)) in (1..).zip(asked) {
        let (point, view) = point(number, rate, purpose)?;
        points.push(point);
        views.push(view);
    }
    points[0].point.ask.level = Level::Users(8);
    let slo: Option<Slo> = "p99 ttft < 500ms, p99 tpot < 50ms".parse().ok();
    let summary = SweepSummary {
        schema: SweepSummary::SCHEMA.to_owned(),
        verdict: Verdict::Valid,
        caveats: vec![Caveat::new(
            CaveatCode::Drifting,
            Severity::Info,
            "TTFT rose by 2 % over the minutes of point 7".to_owned(),
        )],
        sweep: facts(),
        goodput: Some(answer(slo.as_ref())),
        plan: SweepPlan { slo, ..SweepPlan::default() },
        kept_loads: Vec::new(),
        figures: Vec::new(),
        measured_with: None,
        sustained: Some(Sustained {
            level: 22.4,
            seconds: 300.0,
            standing: PointStanding::Met,
            drift: Vec::new(),
        }),
        curve: fit_curve(&points),
        points,
    };
    Ok(Sweep { summary, points: views, circumstances: circumstances(), audit: audit() })
}

fn facts() -> SweepFacts {
    SweepFacts {
        version: "0.8.0".to_owned(),
        started: "2026-11-16T05:00:00Z".to_owned(),
        state: SweepState::Complete,
        target: "http://127.0.0.1:8000".to_owned(),
        model: "llama-70b".to_owned(),
        workload: "chat: 540 prompt tokens, 160 output tokens on average".to_owned(),
        gpus: Some(8),
        estimated: Some(TimeEstimate {
            seconds: 1200.0,
            most_seconds: None,
            points: 12,
            parts: Vec::new(),
        }),
        took_s: 1130.0,
        system: SystemContext {
            hardware: "8 × NVIDIA H200, 18 NVLinks".to_owned(),
            model_size: "70B".to_owned(),
            precision: "fp8".to_owned(),
            engine: "vllm 0.32.0".to_owned(),
            parallelism: "TP 8".to_owned(),
            ..SystemContext::default()
        },
        command: "goodput sweep http://10.0.0.7:8000 --over rate".to_owned(),
        ..SweepFacts::default()
    }
}

fn answer(slo: Option<&Slo>) -> Goodput {
    Goodput {
        state: GoodputState::Found,
        because: String::new(),
        slo: slo.map_or(String::new(), ToString::to_string),
        axis: Axis::Rate,
        confirmed: Some(22.4),
        rejected: Some(23.1),
        confirmed_rps: Some(22.4),
        rejected_rps: Some(23.1),
        measured: None,
        measured_rps: None,
        attainment: Some(0.993),
        seen_attainment: Some(0.9951),
        attainment_low: Some(0.989),
        attainment_high: Some(0.996),
        crossing: Some(Bounded { value: 22.6, low: Some(21.6), high: Some(23.1) }),
        runs: 2,
        requests: 2688,
        over_claim_risk: Some(0.05),
    }
}

fn circumstances() -> Circumstances {
    let facts = [
        ("Client", "16 processors, 64 GB, Linux 6.1"),
        ("Server", "vLLM 0.11.0, 8 × NVIDIA H200, tensor parallel 8"),
    ];
    Circumstances {
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        plan: "[target]\nurl = \"http://127.0.0.1:8000\"\nmodel = \"llama-70b\"\n".to_owned(),
        command: "goodput sweep http://127.0.0.1:8000 --model llama-70b \\\n  \
                  --slo 'p99 ttft < 500ms, p99 tpot < 50ms' --gpus 8"
            .to_owned(),
    }
}

fn audit() -> Audit {
    let item = |title: &str, status, evidence: &str, advice: &str| Item {
        check: title.replace(' ', "_"),
        title: title.to_owned(),
        status,
        severity: Severity::Info,
        evidence: evidence.to_owned(),
        advice: advice.to_owned(),
        source: Source::Checklist,
    };
    Audit {
        subject: "points/011".to_owned(),
        tool: "goodput 0.8.0".to_owned(),
        run: "22.4 req/s".to_owned(),
        verdict: Verdict::Valid,
        items: vec![
            item("variance over runs", Status::Doubtful, "one run of a minute", "repeat it"),
            item("hardware", Status::Missing, "the clients' network is not given", "say it"),
            item("open loop", Status::Ok, "open loop, poisson arrivals at 22.4 req/s", ""),
            item("samples", Status::Ok, "1,344 requests carry a p99", ""),
        ],
    }
}

/// The same server under another configuration, this many times as fast.
pub(crate) fn configuration(value: &str, speed: f64) -> Result<Configuration, serde_json::Error> {
    let mut sweep = sweep()?.summary;
    if let Some(goodput) = &mut sweep.goodput {
        for rate in [&mut goodput.confirmed, &mut goodput.rejected] {
            *rate = rate.map(|rate| rate * speed);
        }
        (goodput.confirmed_rps, goodput.rejected_rps) = (goodput.confirmed, goodput.rejected);
        goodput.crossing = None;
    }
    let faster = |rate: Option<f64>| rate.map(|rate| rate * speed);
    for PointSummary { point, .. } in &mut sweep.points {
        let figures = &mut point.figures;
        point.ask.level =
            Level::from_value(point.ask.level.axis(), point.ask.level.value() * speed);
        for rate in [&mut figures.requests_per_s, &mut figures.output_tps, &mut figures.offered_rps]
        {
            *rate = faster(*rate);
        }
        figures.goodput_rps = figures.goodput_rps.map(|good| Bounded {
            value: good.value * speed,
            low: faster(good.low),
            high: faster(good.high),
        });
    }
    sweep.curve = fit_curve(&sweep.points);
    Ok(Configuration {
        values: BTreeMap::from([("batch".to_owned(), value.to_owned())]),
        folder: format!("configurations/{value}"),
        start: Some(ColdStart { ready_s: 42.31, first_token_ms: Some(812.0) }),
        failed: None,
        sweep: Some(sweep),
    })
}
