//! Energy of GPUs whose every watt is written down here.

use std::collections::BTreeMap;

use goodput_model::{GpuFacts, GpuSample, HealthSample, SystemFacts};

use super::{WindowTokens, gpu_summary};
use crate::summary::{Energy, GpuSummary, PerToken};
use crate::tests::ms;
use crate::window::{Window, WindowKind};

fn window(start_s: f64, end_s: f64) -> Window {
    Window { start: ms(start_s * 1e3), end: ms(end_s * 1e3), kind: WindowKind::Time }
}

fn look(gpu: u32, at_s: f64) -> GpuSample {
    GpuSample { at: ms(at_s * 1e3), gpu, busy: Some(0.5), ..GpuSample::default() }
}

/// A counter at this many watts, looked at each second from 0.5 s on, that began long ago.
fn counter(gpu: u32, watts: f64) -> impl Iterator<Item = GpuSample> {
    (0..30).map(move |second| {
        let at = f64::from(second) + 0.5;
        GpuSample { energy_j: Some(1e8 + watts * at), ..look(gpu, at) }
    })
}

fn sampled(looks: impl IntoIterator<Item = GpuSample>) -> Vec<HealthSample> {
    looks
        .into_iter()
        .map(|look| HealthSample { gpus: vec![look], ..HealthSample::default() })
        .collect()
}

const TOKENS: WindowTokens =
    WindowTokens { output: 1000.0, total: 10_000.0, good_output: Some(500.0) };

fn summarized(looks: impl IntoIterator<Item = GpuSample>, window: Window) -> GpuSummary {
    let facts = SystemFacts { gpu_source: "nvml".to_owned(), ..SystemFacts::default() };
    gpu_summary(&sampled(looks), window, TOKENS, &facts).unwrap()
}

fn energy(looks: impl IntoIterator<Item = GpuSample>, window: Window) -> Energy {
    summarized(looks, window).energy.unwrap()
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
        "{value} is not {expected}"
    );
}

#[test]
fn a_counter_between_its_looks() {
    // Begins and ends between looks.
    let found = energy(counter(0, 500.0), window(2.2, 12.9));
    assert_eq!(found.by, "counter");
    near(found.joules, 500.0 * 10.7);
    near(found.seconds, 10.7);
    near(found.mean_w, 500.0);
    near(found.joules_per.output_token.unwrap(), 5.35);
    near(found.joules_per.total_token.unwrap(), 0.535);
    near(found.joules_per.good_output_token.unwrap(), 10.7);
    assert_eq!((found.idle_w, found.above_idle_joules_per), (None, None));
    // Looks that are missing cost nothing: the counter went on.
    let some = counter(0, 500.0).filter(|look| look.at < ms(4e3) || look.at > ms(11e3));
    near(energy(some, window(2.2, 12.9)).joules, 5350.0);
    let unsaid = counter(0, 500.0).enumerate().map(|(place, look)| GpuSample {
        energy_j: look.energy_j.filter(|_| place % 5 == 0),
        ..look
    });
    near(energy(unsaid, window(2.2, 12.9)).joules, 5350.0);
    // What ends before the window does is taken for the rest of it: tokens are those of all of it.
    let part = counter(0, 500.0).filter(|look| look.at < ms(9e3));
    let found = energy(part, window(2.5, 12.5));
    near(found.seconds, 6.0);
    near(found.joules, 3000.0);
    near(found.joules_per.output_token.unwrap(), 5.0);
    let hardly = counter(0, 500.0).filter(|look| look.at < ms(7e3));
    let hardly = summarized(hardly, window(2.5, 12.5));
    assert_eq!((hardly.energy, hardly.devices[0].energy_j), (None, None), "less than half");
}

#[test]
fn a_page_that_is_made_every_ten_seconds() {
    // The looks between show the old value: as a line through all of them it would lag.
    let stale = |first_s: f64| {
        let looks = counter(0, 500.0).filter(move |look| look.at.as_secs() > first_s);
        looks.map(|look| {
            let made = (look.at.as_secs() / 10.0).floor() * 10.0;
            GpuSample { energy_j: Some(500.0 * made), ..look }
        })
    };
    let found = energy(stale(0.0), window(11.0, 19.0));
    near(found.mean_w, 500.0);
    near(found.joules, 4000.0);
    // How old the page of the first look was is not known: what follows it is left out.
    let found = energy(stale(7.0), window(8.0, 20.5));
    near(found.mean_w, 500.0);
    near(found.seconds, 10.0);
}

#[test]
fn a_counter_that_starts_anew() {
    let anew = |power: Option<f64>| {
        counter(0, 500.0).map(move |look| {
            let since = look.at.as_secs() - 5.0;
            let energy_j = if since < 0.0 { look.energy_j } else { Some(500.0 * since) };
            GpuSample { energy_j, power_w: power, ..look }
        })
    };
    let window = window(2.0, 12.0);
    // With its power known nothing is lost; without, what it had not counted since the look at 4.5 s.
    near(energy(anew(Some(500.0)), window).joules, 5000.0);
    near(energy(anew(None), window).joules, 5000.0 - 250.0);
    // A step back that is not a restart must not count everything since the driver was loaded.
    let back = counter(0, 500.0).enumerate().map(|(place, look)| GpuSample {
        energy_j: look.energy_j.map(|joules| if place == 7 { joules - 600.0 } else { joules }),
        ..look
    });
    near(energy(back, window).joules, 5000.0);
}

#[test]
fn a_ramp_of_power_is_exact() {
    // 100 W at 0 s, 10 W more each second; looks every 0.7 s, some missing.
    let ramp = || {
        let all = (0..40).map(|place| f64::from(place) * 0.7);
        let told = all.enumerate().filter(|(place, _)| !(6..9).contains(place));
        told.map(|(_, at)| GpuSample { power_w: Some(100.0 + 10.0 * at), ..look(0, at) })
    };
    let found = energy(ramp(), window(2.0, 12.0));
    assert_eq!(found.by, "power");
    near(found.joules, 100.0 * 10.0 + 5.0 * (144.0 - 4.0));
    near(found.mean_w, 170.0);
    // A counter wins where there is one.
    let both = ramp().map(|look| GpuSample { energy_j: Some(look.at.as_secs()), ..look });
    let found = energy(both, window(2.0, 12.0));
    assert_eq!(found.by, "counter");
    near(found.joules, 10.0);
    // But not one that stands still.
    let stuck = ramp().map(|look| GpuSample { energy_j: Some(0.0), ..look });
    assert_eq!(energy(stuck, window(2.0, 12.0)).by, "power");
}

#[test]
fn all_gpus_count_and_idle_power_is_taken_off() {
    let two = || counter(0, 500.0).chain(counter(1, 300.0));
    let known = |idle, gpus: usize| SystemFacts {
        gpu_idle_w: idle,
        gpus: vec![GpuFacts { name: "A GPU".to_owned(), ..GpuFacts::default() }; gpus],
        ..SystemFacts::default()
    };
    let at = window(2.2, 12.2);
    let found = gpu_summary(&sampled(two()), at, TOKENS, &known(Some(200.0), 2)).unwrap();
    near(found.devices[0].energy_j.unwrap(), 5000.0);
    near(found.devices[1].energy_j.unwrap(), 3000.0);
    assert_eq!(found.devices[1].name, "A GPU");
    let energy = found.energy.unwrap();
    near(energy.joules, 8000.0);
    near(energy.mean_w, 800.0);
    near(energy.joules_per.output_token.unwrap(), 8.0);
    assert_eq!(energy.idle_w, Some(200.0));
    let above = energy.above_idle_joules_per.unwrap();
    near(above.output_token.unwrap(), 6.0);
    near(above.total_token.unwrap(), 0.6);
    near(above.good_output_token.unwrap(), 12.0);
    // Idle that is more than busy was not idle.
    let odd =
        gpu_summary(&sampled(two()), at, TOKENS, &known(Some(900.0), 2)).unwrap().energy.unwrap();
    assert_eq!((odd.idle_w, odd.above_idle_joules_per), (Some(900.0), None));
    // One by counter, one by power: the weaker of the two is named.
    let power =
        counter(1, 0.0).map(|look| GpuSample { energy_j: None, power_w: Some(300.0), ..look });
    let mixed = gpu_summary(&sampled(counter(0, 500.0).chain(power)), at, TOKENS, &known(None, 2));
    let mixed = mixed.unwrap().energy.unwrap();
    near(mixed.joules, 8000.0);
    assert_eq!(mixed.by, "power");
    // A third that says nothing: the sum would be too small, so there is none.
    let found = gpu_summary(&sampled(two()), at, TOKENS, &known(None, 3)).unwrap();
    assert_eq!((found.devices.len(), found.energy), (3, None));
    near(found.devices[0].energy_j.unwrap(), 5000.0);
    assert_eq!(found.devices[2].energy_j, None);
}

/// As the exporters' pages are read: of two parts of one board the first tells the meter.
#[test]
fn parts_of_a_board_share_its_meter() {
    let parts = |boards: [&str; 3]| {
        let gpus = boards.map(|board| GpuFacts { board: board.to_owned(), ..GpuFacts::default() });
        let facts = SystemFacts { gpus: gpus.into(), ..SystemFacts::default() };
        let silent = (0..30).map(|second| look(1, f64::from(second) + 0.5));
        let looks = counter(0, 500.0).chain(silent).chain(counter(2, 300.0));
        gpu_summary(&sampled(looks), window(2.2, 12.2), TOKENS, &facts).unwrap()
    };
    let found = parts(["GPU-0", "GPU-0", "GPU-1"]);
    let energy = found.energy.unwrap();
    near(energy.joules, 8000.0);
    near(energy.joules_per.output_token.unwrap(), 8.0);
    assert_eq!(found.devices[1].energy_j, None);
    // One on a board of its own, or on an unnamed one, is missing from the sum.
    assert_eq!(parts(["GPU-0", "GPU-2", "GPU-1"]).energy, None);
    assert_eq!(parts(["", "", ""]).energy, None);
}

#[test]
fn power_says_nothing_of_times_without_looks() {
    // 200 W, but 900 W at the looks around each hole: a line over it would be far too high.
    let holed = |from: f64, to: f64| {
        let looks = (0..30).map(|second| f64::from(second) + 0.5);
        let told = looks.filter(move |at| *at <= from || *at >= to);
        told.map(move |at| {
            let power_w = Some(if at == from || at == to { 900.0 } else { 200.0 });
            GpuSample { power_w, ..look(0, at) }
        })
    };
    // 8 s are missing: 4 s at 200 W and 1 s that falls from 900 W to it or back, at each end.
    let found = energy(holed(7.5, 15.5), window(2.5, 20.5));
    near(found.seconds, 10.0);
    near(found.joules, 8.0 * 200.0 + 2.0 * 550.0);
    near(found.joules_per.output_token.unwrap(), 2700.0 / 10.0 * 18.0 / 1000.0);
    // Half of the window and less: the first look and the last alone say nothing.
    let gone = summarized(holed(4.5, 18.5), window(2.5, 20.5));
    assert_eq!((gone.energy, gone.devices[0].energy_j), (None, None));
}

#[test]
fn nothing_is_made_of_nothing() {
    let facts = SystemFacts::default();
    assert_eq!(gpu_summary(&[], window(0.0, 9.0), TOKENS, &facts), None);
    assert_eq!(gpu_summary(&[HealthSample::default()], window(0.0, 9.0), TOKENS, &facts), None);
    let none = WindowTokens::default();
    let found = gpu_summary(&sampled(counter(0, 500.0)), window(2.0, 9.0), none, &facts).unwrap();
    let energy = found.energy.unwrap();
    near(energy.joules, 3500.0);
    assert_eq!(energy.joules_per, PerToken::default());
    // No time, no rate, and looks outside say nothing about levels.
    let empty = summarized(counter(0, 500.0), window(2.0, 2.0));
    assert_eq!((empty.energy, empty.devices[0].levels.len()), (None, 0));
    let odd = counter(0, 500.0).map(|look| GpuSample {
        energy_j: Some(f64::NAN),
        power_w: Some(f64::INFINITY),
        ..look
    });
    let odd = summarized(odd, window(2.0, 9.0));
    assert!(odd.energy.is_none() && !odd.devices[0].levels.contains_key("power_w"), "{odd:?}");
}

#[test]
fn levels_and_throttling_inside_the_window() {
    // Ten looks inside, at 40, 50 … 130 W; two of them idle. A look at each end is outside.
    let looks = (1..=12).map(|place| {
        let at = f64::from(place);
        let throttled: &[&str] = match place {
            1 | 12 => &["thermal"],
            // Idle: what is said then does not count.
            2 | 3 => &["app_clocks"],
            4..=7 => &["power"],
            8 | 9 => &["power", "hw_slowdown"],
            _ => &[],
        };
        GpuSample {
            busy: Some(if (2..=3).contains(&place) { 0.0 } else { 0.9 }),
            power_w: Some(20.0 + 10.0 * at),
            memory_used: Some(at * 1e9),
            throttled: Some(throttled.iter().map(|word| (*word).to_owned()).collect()),
            ..look(0, at)
        }
    });
    let found = summarized(looks, window(1.5, 11.5));
    assert_eq!(found.source, "nvml");
    let device = &found.devices[0];
    let power = device.levels["power_w"];
    assert_eq!(
        (power.n, power.min, power.p50, power.p99, power.max),
        (10, 40.0, 80.0, 130.0, 130.0)
    );
    near(power.mean, 85.0);
    near(device.levels["memory_gb"].max, 11.0);
    assert!(!device.levels.contains_key("sm_active"));
    let throttled = device.throttled.as_ref().unwrap();
    let shares: Vec<_> = throttled.iter().map(|(word, share)| (&**word, *share)).collect();
    assert_eq!(shares, [("hw_slowdown", 0.25), ("power", 0.75)]);
    // "Not throttled" and "unknown" are different.
    let throttled = |told: Option<Vec<String>>| {
        let looks = (1..9).map(|at| GpuSample { throttled: told.clone(), ..look(0, at.into()) });
        summarized(looks, window(1.5, 7.5)).devices[0].throttled.as_ref().map(BTreeMap::len)
    };
    assert_eq!((throttled(Some(Vec::new())), throttled(None)), (Some(0), None));
}

#[test]
fn the_last_look_before_the_first_request_is_its_beginning() {
    // Ten seconds of waiting at 100 W, all at zero; then 500 W.
    let waiting =
        (0..10).map(|place| GpuSample { energy_j: Some(100.0 * f64::from(place)), ..look(0, 0.0) });
    let running = (1..10).map(|place| GpuSample {
        energy_j: Some(900.0 + 500.0 * f64::from(place)),
        ..look(0, f64::from(place))
    });
    near(energy(waiting.chain(running), window(0.0, 8.0)).joules, 4000.0);
}
