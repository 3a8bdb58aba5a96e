//! What GPUs say about the figures.

use goodput_model::{Caveat, CaveatCode, Severity};

use super::Evidence;
use crate::summary::GpuDevice;

/// Reasons that a healthy GPU does not have; clocks that were set on purpose do not count.
const TROUBLE: [(&str, &str); 3] = [
    ("power_brake", "the power brake of its machine"),
    ("thermal", "heat"),
    ("hw_slowdown", "a hardware slowdown"),
];

/// Many GPUs work at their power limit under load.
const LIMIT: [(&str, &str); 1] = [("power", "its power limit")];

/// Below this share of the busy samples, throttling is not reported.
const SHARE: f64 = 0.1;

/// A GPU below its clocks serves more slowly, and not each time alike.
pub(super) fn check_gpu_throttling(e: &Evidence<'_>) -> Option<Caveat> {
    let devices = e.gpu.map(|gpu| gpu.devices.as_slice()).unwrap_or_default();
    let of = |message: String, severity| Caveat::new(CaveatCode::GpuThrottled, severity, message);
    let trouble = throttled_text(devices, &TROUBLE).map(|message| {
        of(message, Severity::Warn).advise(
            "check the GPU's cooling and the machine's power supply; until then runs are \
                     not comparable",
        )
    });
    trouble.or_else(|| {
        let caveat = of(throttled_text(devices, &LIMIT)?, Severity::Info);
        Some(caveat.advise(
            "this can be normal under load; compare runs under the same power \
                            limit",
        ))
    })
}

/// The GPU that was held back most by one of these reasons, where that is worth a word.
fn throttled_text(devices: &[GpuDevice], reasons: &[(&str, &str)]) -> Option<String> {
    let share = |device: &GpuDevice, reason: &str| {
        device.throttled.as_ref()?.get(reason).copied().filter(|share| *share > SHARE)
    };
    let all = devices.iter().enumerate().flat_map(|(place, device)| {
        let found = move |(reason, words): &(&str, _)| Some((share(device, reason)?, *words));
        reasons.iter().filter_map(found).map(move |(share, words)| (share, words, place, device))
    });
    let (most, words, place, device) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let is_held =
        |device: &&GpuDevice| reasons.iter().any(|(reason, _)| share(device, reason).is_some());
    let several = devices.iter().filter(is_held).count();
    let count = devices.len();
    let others =
        if several > 1 { format!(", as {several} of {count} GPUs were") } else { String::new() };
    let clocks = device.levels.get("sm_clock_mhz").map_or_else(String::new, |clock| {
        format!("; its clock was {:.0} MHz on average, {:.0} at most", clock.mean, clock.max)
    });
    Some(format!(
        "GPU {place} was throttled by {words} in {:.0} % of the samples while it was \
         busy{others}{clocks}",
        most * 100.0
    ))
}

/// GPUs that did nothing are in the energy of a token all the same.
pub(super) fn check_idle_gpus(e: &Evidence<'_>) -> Option<Caveat> {
    let gpu = e.gpu?;
    let idle = || gpu.devices.iter().filter(|device| device.was_idle());
    let (count, all) = (idle().count(), gpu.devices.len());
    if count == 0 || count == all {
        return None;
    }
    // Where parts of a board share a meter, the share of each is unknown.
    let each: Option<Vec<f64>> = gpu.devices.iter().map(|device| device.energy_j).collect();
    let joules: f64 = idle().filter_map(|device| device.energy_j).sum();
    let total = each.map(|each| each.iter().sum::<f64>()).filter(|total| *total > 0.0);
    let used = total.map_or_else(String::new, |total| {
        format!("; they used {:.0} % of the energy", joules / total * 100.0)
    });
    let message = format!("{count} of {all} GPUs were idle{used}");
    let caveat = Caveat::new(CaveatCode::GpusIdle, Severity::Info, message);
    Some(caveat.advise(
        "select the GPUs that serve with `--gpu local:0,1` to count only their \
                        energy",
    ))
}

/// Power is an average over a time that the source chooses, looked at now and then.
pub(super) fn check_energy_source(e: &Evidence<'_>) -> Option<Caveat> {
    let gpu = e.gpu?;
    let energy = gpu.energy.as_ref().filter(|energy| energy.by == "power")?;
    let looks = gpu.devices.iter().filter_map(|device| device.levels.get("power_w"));
    let fewest = looks.map(|level| level.n).min().unwrap_or(0);
    let message = format!(
        "the GPUs have no energy counter: energy is summed from {fewest} power samples in {:.0} \
         s, and peaks between them are missing",
        energy.seconds
    );
    Some(Caveat::new(CaveatCode::GpuEnergyByPower, Severity::Info, message))
}
