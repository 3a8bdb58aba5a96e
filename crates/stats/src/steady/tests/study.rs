//! Runs of a simulated server, of which is known whether they are steady.

use std::collections::BTreeMap;
use std::sync::Arc;

use goodput_model::random::{Domain, RandomStream};
use goodput_model::{ErrorClass, FailureStage, Nanos, RequestRecord};
use goodput_sim::{Output, Profile, SimEngine, SimJob};
use goodput_testkit::{RecordBuilder, failure};

use crate::series::{Series, SeriesTally};
use crate::steady::{SteadyAnswer, judge_steadiness};

/// A Poisson stream of requests to a server with slots. A request takes 200 ms to its first token
/// and then a token each 190 ms; answers have 20 tokens on average, exponentially distributed, so
/// the time of service has mean 4 s and a CV of about 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) slots: u32,
    /// Offered load as a share of the capacity.
    pub(crate) load: f64,
    /// Time before the series begins.
    pub(crate) warm_s: f64,
    pub(crate) seconds: f64,
    pub(crate) max_queue: Option<u32>,
    pub(crate) change: Change,
}

/// What is wrong with the run, counted from the beginning of the series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    Nothing,
    /// TTFT is three times itself at first and decays to normal within this many seconds (to a
    /// twentieth of the excess).
    SlowFirst(f64),
    /// TPOT is 1.5 times itself for this many seconds.
    SlowTokens(f64),
    /// TPOT is multiplied by this factor from this instant on.
    Step(f64, f64),
    /// TPOT rises evenly by this share over the run.
    Drift(f64),
}

const SERVICE_S: f64 = 4.0;
/// The rules were chosen on the seeds below this; what the tables say is said by others.
const FRESH: u64 = 1_000_000;

impl Scene {
    pub(crate) fn new(seed: u64, load: f64, seconds: f64) -> Self {
        let (slots, warm_s) = (32, 120.0);
        Self { seed, slots, load, warm_s, seconds, max_queue: None, change: Change::Nothing }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.load * f64::from(self.slots) / SERVICE_S
    }

    pub(crate) fn series(&self) -> Series {
        let from = Nanos::from_secs_f64(self.warm_s);
        self.tally().series_between(from, from + Nanos::from_secs_f64(self.seconds))
    }

    pub(crate) fn tally(&self) -> SeriesTally {
        let mut tally = SeriesTally::default();
        for record in &self.records() {
            tally.add(record);
        }
        tally
    }

    pub(crate) fn records(&self) -> Vec<RequestRecord> {
        let mut profile = Profile::builtin("default").unwrap();
        let slots = self.slots.to_string();
        let settings = [
            ("slots", &slots[..]),
            ("ttft", "lognormal:196ms:0.2"),
            ("itl", "lognormal:186ms:0.2"),
        ];
        for (key, value) in settings {
            profile.set(key, value).unwrap();
        }
        if let Some(limit) = self.max_queue {
            profile.set("max_queue", &limit.to_string()).unwrap();
        }
        let mut engine = SimEngine::new(&profile, self.seed, |_, _| 0);
        let mut random = RandomStream::new(self.seed, Domain::Arrivals, 0);
        let mut outputs: Vec<Output> = Vec::new();
        let mut arrived: Vec<(Nanos, bool)> = Vec::new();
        let (mut at, end) = (0.0, self.warm_s + self.seconds);
        loop {
            at += random.draw_exponential() / self.rate();
            if at >= end {
                break;
            }
            let now = Nanos::from_secs_f64(at);
            engine.advance(now, &mut outputs);
            let tokens = (random.draw_exponential() * 20.0).ceil() as u32;
            let id = arrived.len() as u64;
            let job = SimJob { id, prompt: Arc::from([]), output_tokens: tokens, answer_seed: 0 };
            arrived.push((now, engine.submit(now, job).is_err()));
        }
        while let Some(next) = engine.next() {
            engine.advance(next, &mut outputs);
        }
        let mut instants = vec![Vec::new(); arrived.len()];
        for output in &outputs {
            instants[output.id as usize].push(output.at);
        }
        let records = arrived.iter().zip(instants);
        records.map(|((due, is_refused), at)| self.record(*due, *is_refused, &at)).collect()
    }

    fn record(&self, due: Nanos, is_refused: bool, instants: &[Nanos]) -> RequestRecord {
        let t = due.as_secs() - self.warm_s;
        let factor = |is: bool, by: f64| if is { by } else { 1.0 };
        let (wait, pace) = match self.change {
            Change::Nothing => (1.0, 1.0),
            Change::SlowFirst(within) => {
                (factor(t >= 0.0, 1.0 + 2.0 * (-3.0 * t / within).exp()), 1.0)
            }
            Change::SlowTokens(until) => (1.0, factor((0.0..until).contains(&t), 1.5)),
            Change::Step(from, by) => (1.0, factor(t >= from, by)),
            Change::Drift(share) => (1.0, 1.0 + share * t / self.seconds),
        };
        let first = instants.first().copied();
        let start = due + Nanos::from_secs_f64(first.map_or(0.0, |at| (at - due).as_secs()) * wait);
        let moved =
            |at: &Nanos| start + Nanos::from_secs_f64((*at - first.unwrap()).as_secs() * pace);
        let mut record = RecordBuilder::new(due).tokens(instants.iter().map(moved)).build();
        if is_refused {
            record.exchange.failure = Some(failure(ErrorClass::Http(429), FailureStage::Headers));
            record.exchange.output_tokens = None;
        }
        record
    }
}

/// Shares of seeds, in percent.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    pub(crate) states: BTreeMap<&'static str, f64>,
    /// Cuts and MSER-5's own cuts in seconds, sorted.
    pub(crate) cuts: Vec<f64>,
    pub(crate) asked: Vec<f64>,
}

impl Rates {
    pub(crate) fn measure(scene: Scene, seeds: u64) -> Self {
        let mut rates = Self::default();
        for seed in FRESH..FRESH + seeds {
            let records = Scene { seed, ..scene }.records();
            let mut tally = SeriesTally::default();
            for record in &records {
                tally.add(record);
            }
            let from = Nanos::from_secs_f64(scene.warm_s);
            let series = tally.series_between(from, from + Nanos::from_secs_f64(scene.seconds));
            let steadiness = judge_steadiness(&series);
            rates.cuts.push(steadiness.cut.cut_s);
            rates.asked.push(steadiness.cut.asked_s);
            let saturation = crate::saturation::judge_saturation(&series).unwrap();
            let measured = records.iter().filter(|record| record.scheduled >= from);
            let mut waits: Vec<f64> = measured
                .filter_map(|record| {
                    Some((record.exchange.stamps.first_token? - record.scheduled).as_ms())
                })
                .collect();
            waits.sort_by(f64::total_cmp);
            let facts = [
                ("never_steady", steadiness.state == SteadyAnswer::NeverSteady),
                ("drifting", steadiness.state == SteadyAnswer::Drifting),
                ("shifted", steadiness.state == SteadyAnswer::Shifted),
                ("cut", steadiness.cut.cut_s > 0.0),
                ("over_saturated", saturation.over_saturated),
                ("queue", saturation.queue_limited),
                ("bimodal", crate::modes::find_two_modes(&waits).is_some()),
            ];
            for (name, is) in facts {
                *rates.states.entry(name).or_default() +=
                    f64::from(u8::from(is)) * 100.0 / seeds as f64;
            }
        }
        rates.cuts.sort_by(f64::total_cmp);
        rates.asked.sort_by(f64::total_cmp);
        rates
    }

    pub(crate) fn get(&self, name: &str) -> f64 {
        self.states[name]
    }
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

fn print(scene: Scene, seeds: u64) {
    let rates = Rates::measure(scene, seeds);
    let names =
        ["never_steady", "drifting", "shifted", "cut", "over_saturated", "queue", "bimodal"];
    let shares: Vec<String> = names.iter().map(|name| format!("{:.1}", rates.get(name))).collect();
    let cuts = [5, 50, 95].map(|percent| quantile(&rates.cuts, percent));
    let asked = [5, 50, 95].map(|percent| quantile(&rates.asked, percent));
    println!(
        "| {} s {} x, {} slots, {:?}, queue {:?}, warm {} | {} | {cuts:?} | {asked:?} |",
        scene.seconds,
        scene.load,
        scene.slots,
        scene.change,
        scene.max_queue,
        scene.warm_s,
        shares.join(" | ")
    );
}

/// The tables of docs/design/013.
#[test]
#[ignore = "minutes; SEEDS=300 cargo test --release -p goodput-stats study -- --ignored --nocapture"]
fn tables() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for seconds in [60.0, 180.0, 600.0] {
        for load in [0.3, 0.6, 0.8, 0.9] {
            print(Scene::new(0, load, seconds), seeds);
        }
    }
    for load in [0.3, 0.6, 0.8, 0.9] {
        print(Scene { slots: 128, ..Scene::new(0, load, 180.0) }, seeds);
    }
    // A load that finds an empty server.
    for (load, slots) in [(0.3, 32), (0.6, 32), (0.8, 32), (0.9, 32), (0.6, 128), (0.9, 128)] {
        print(Scene { slots, warm_s: 0.0, ..Scene::new(0, load, 180.0) }, seeds);
    }
    for (load, slots) in [(1.1, 32), (1.1, 128), (1.3, 32), (1.5, 32)] {
        for warm_s in [0.0, 60.0] {
            print(Scene { slots, warm_s, ..Scene::new(0, load, 120.0) }, seeds);
        }
    }
    for (load, seconds) in [(0.9, 600.0), (1.1, 600.0), (1.3, 120.0), (1.3, 600.0), (1.5, 120.0)] {
        print(Scene { warm_s: 0.0, max_queue: Some(40), ..Scene::new(0, load, seconds) }, seeds);
    }
    let changes = [
        Change::SlowFirst(18.0),
        Change::SlowFirst(36.0),
        Change::SlowTokens(18.0),
        Change::SlowTokens(36.0),
        Change::Step(60.0, 1.1),
        Change::Step(90.0, 1.1),
        Change::Step(120.0, 1.1),
        Change::Drift(0.1),
        Change::Drift(0.2),
    ];
    for load in [0.3, 0.6, 0.8] {
        for change in changes {
            print(Scene { change, ..Scene::new(0, load, 180.0) }, seeds);
        }
    }
}
