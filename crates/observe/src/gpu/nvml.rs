//! NVIDIA's driver, asked in this process.

use std::ffi::OsStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use goodput_model::{GpuFacts, GpuSample, Nanos};
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, GpmSample, Nvml as Driver, gpm};

/// The driver's library: by the loader's own search, and where it lies when the loader does not look
/// there, as in containers that were given the driver's folder.
const LIBRARIES: [&str; 5] = [
    "libnvidia-ml.so.1",
    "libnvidia-ml.so",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
];

/// More links no GPU has.
const LINKS: u32 = 18;

/// Counters of activity are compared over at least so long: over less they say little.
const ACTIVITY_SPAN: Nanos = Nanos::from_millis(200);

/// In the order of [`Activity`].
const ACTIVITIES: [GpmMetricId; 3] =
    [GpmMetricId::SmUtil, GpmMetricId::AnyTensorUtil, GpmMetricId::DramBwUtil];

/// Shares of cycles: multiprocessors, tensor cores, memory.
type Activity = [Option<f64>; 3];

/// The driver and its GPUs. Its library is loaded once for the process: that is slow, and shows up
/// as load.
#[derive(Debug)]
pub struct Nvml {
    driver: &'static Driver,
    gpus: Vec<Gpu>,
}

#[derive(Debug)]
struct Gpu {
    device: Device<'static>,
    /// The counters of activity at the last look; none if the GPU has no such counters.
    activity: Option<Mutex<Option<GpuCounters>>>,
}

#[derive(Debug)]
struct GpuCounters {
    at: Nanos,
    counters: GpmSample<'static>,
}

impl Nvml {
    /// Loads the driver's library, for all GPUs or only for some by their numbers; why not, in one
    /// line, where there is none.
    pub fn open(only: &[u32]) -> Result<Self, String> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        let driver = DRIVER.get_or_init(load_driver).as_ref().map_err(Clone::clone)?;
        let count = driver.device_count().map_err(|error| driver_error_text(&error))?;
        if let Some(other) = only.iter().find(|index| **index >= count) {
            return Err(format!(
                "the NVIDIA driver lists {count} GPUs, numbered from 0; GPU {other} does not exist"
            ));
        }
        // One that may not be looked at is left out.
        let wanted = (0..count).filter(|index| only.is_empty() || only.contains(index));
        let devices = wanted.filter_map(|index| driver.device_by_index(index).ok());
        let gpus: Vec<Gpu> = devices.map(Gpu::new).collect();
        if gpus.is_empty() {
            return Err("the NVIDIA driver lists no GPU on this machine".to_owned());
        }
        Ok(Self { driver, gpus })
    }

    /// The driver's version.
    pub fn driver(&self) -> String {
        self.driver.sys_driver_version().unwrap_or_default()
    }

    /// What the GPUs are.
    pub fn facts(&self) -> Vec<GpuFacts> {
        self.gpus.iter().map(|gpu| gpu_facts(&gpu.device)).collect()
    }

    /// One look at all of them.
    pub fn sample(&self, at: Nanos) -> Vec<GpuSample> {
        (0u32..).zip(&self.gpus).map(|(place, gpu)| gpu.sample(place, at, self.driver)).collect()
    }
}

fn load_driver() -> Result<Driver, String> {
    let mut because = None;
    for library in LIBRARIES {
        match Driver::builder().lib_path(OsStr::new(library)).init() {
            Ok(driver) => return Ok(driver),
            // What a library that is there says is worth more than that others are not.
            Err(NvmlError::LibloadingError(_)) => {}
            Err(error) => because = Some(error),
        }
    }
    Err(because
        .map_or_else(|| "no NVIDIA driver on this machine".to_owned(), |e| driver_error_text(&e)))
}

/// What the driver's own error means, in one line.
fn driver_error_text(error: &NvmlError) -> String {
    match error {
        NvmlError::DriverNotLoaded => "the NVIDIA driver of this machine is not running".to_owned(),
        NvmlError::NoPermission => "this user is not allowed to query the NVIDIA driver".to_owned(),
        NvmlError::LibRmVersionMismatch => {
            "the NVIDIA driver and its library have different versions".to_owned()
        }
        other => {
            let text = other.to_string();
            format!("the NVIDIA driver does not answer: {}", text.lines().next().unwrap_or(""))
        }
    }
}

fn gpu_facts(device: &Device<'_>) -> GpuFacts {
    // The generation goes down while a GPU is idle; the width does not.
    let width = device.current_pcie_link_width().or_else(|_| device.max_pcie_link_width());
    let active = |link: &u32| device.link_wrapper_for(*link).is_active().unwrap_or(false);
    let links = (0..LINKS).filter(active).count();
    GpuFacts {
        name: device.name().unwrap_or_default(),
        uuid: device.uuid().unwrap_or_default(),
        board: String::new(),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total as f64),
        power_limit_w: device
            .enforced_power_limit()
            .or_else(|_| device.power_management_limit())
            .ok()
            .map(|milliwatts| from_thousandths(u64::from(milliwatts))),
        interconnect: interconnect_text(device.max_pcie_link_gen().ok(), width.ok(), links),
    }
}

impl Gpu {
    fn new(device: Device<'static>) -> Self {
        let has_counters = device.gpm_support().unwrap_or(false);
        Self { device, activity: has_counters.then(|| Mutex::new(None)) }
    }

    fn sample(&self, place: u32, at: Nanos, driver: &'static Driver) -> GpuSample {
        let device = &self.device;
        let mhz = |clock| device.clock_info(clock).ok().map(f64::from);
        let [sm_active, tensor_active, dram_active] = self.activity(at, driver);
        GpuSample {
            at,
            gpu: place,
            busy: device
                .utilization_rates()
                .ok()
                .and_then(|rates| share_of_percent(f64::from(rates.gpu))),
            sm_active,
            tensor_active,
            dram_active,
            memory_used: device.memory_info().ok().map(|memory| memory.used as f64),
            power_w: device
                .power_usage()
                .ok()
                .map(|milliwatts| from_thousandths(milliwatts.into())),
            energy_j: device.total_energy_consumption().ok().map(from_thousandths),
            sm_clock_mhz: mhz(Clock::SM),
            memory_clock_mhz: mhz(Clock::Memory),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            throttled: device.current_throttle_reasons().map(throttle_reasons).ok(),
        }
    }

    /// What the GPU did since the look before. Where that was just now, nothing is said, and the
    /// earlier counters are kept.
    fn activity(&self, at: Nanos, driver: &'static Driver) -> Activity {
        let Some(kept) = &self.activity else { return Activity::default() };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_too_soon = |kept: &GpuCounters| kept.at < at && at - kept.at < ACTIVITY_SPAN;
        if kept.as_ref().is_some_and(is_too_soon) {
            return Activity::default();
        }
        let counters = self.device.gpm_sample().ok();
        let now = counters.map(|counters| GpuCounters { at, counters });
        // Samples before the first request are all zero, so they span no time.
        let before = kept.take().filter(|before| before.at < at);
        let found = before.as_ref().zip(now.as_ref()).and_then(|(before, now)| {
            gpm::gpm_metrics_get(driver, &before.counters, &now.counters, &ACTIVITIES).ok()
        });
        *kept = now;
        let mut shares = Activity::default();
        for (slot, metric) in shares.iter_mut().zip(found.into_iter().flatten()) {
            *slot = metric.ok().and_then(|metric| share_of_percent(metric.value));
        }
        shares
    }
}

/// A percentage as a share; none if it is none.
fn share_of_percent(percent: f64) -> Option<f64> {
    percent.is_finite().then(|| (percent / 100.0).clamp(0.0, 1.0))
}

/// Milliwatts as watts, millijoules as joules.
fn from_thousandths(amount: u64) -> f64 {
    amount as f64 / 1e3
}

fn interconnect_text(generation: Option<u32>, width: Option<u32>, links: usize) -> String {
    let pcie =
        generation.zip(width).map(|(generation, width)| format!("PCIe {generation} x{width}"));
    let nvlink = match links {
        0 => None,
        1 => Some("1 NVLink".to_owned()),
        several => Some(format!("{several} NVLinks")),
    };
    pcie.into_iter().chain(nvlink).collect::<Vec<_>>().join(", ")
}

/// Why clocks are lower than they could be. Being idle does not count as a reason.
fn throttle_reasons(bits: ThrottleReasons) -> Vec<String> {
    let words = [
        (ThrottleReasons::SW_POWER_CAP, "power"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power_brake"),
        (
            ThrottleReasons::SW_THERMAL_SLOWDOWN.union(ThrottleReasons::HW_THERMAL_SLOWDOWN),
            "thermal",
        ),
        (ThrottleReasons::HW_SLOWDOWN, "hw_slowdown"),
        (ThrottleReasons::SYNC_BOOST, "sync_boost"),
        (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "app_clocks"),
        (ThrottleReasons::DISPLAY_CLOCK_SETTING, "display_clocks"),
    ];
    let set = words.into_iter().filter(|(reason, _)| bits.intersects(*reason));
    set.map(|(_, word)| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_words() {
        let words =
            |bits: u64| throttle_reasons(ThrottleReasons::from_bits_truncate(bits)).join(" ");
        assert_eq!(words(0), "");
        assert_eq!(words(0x1), "", "idle does not count as a reason");
        assert_eq!(words(0x1 | 0x4), "power");
        // Both thermal ones are one word.
        assert_eq!((words(0x20), words(0x40), words(0x60)), tuple("thermal"));
        assert_eq!(words(0x8 | 0x40 | 0x80), "power_brake thermal hw_slowdown");
        assert_eq!(words(0x2 | 0x10 | 0x100), "sync_boost app_clocks display_clocks");
        assert_eq!(words(1 << 40), "", "unknown ones are left out");
    }

    fn tuple(word: &str) -> (String, String, String) {
        (word.to_owned(), word.to_owned(), word.to_owned())
    }

    #[test]
    fn units() {
        assert_eq!(from_thousandths(700_250), 700.25);
        assert_eq!(from_thousandths(123_456_789_012), 123_456_789.012);
        assert_eq!(
            (share_of_percent(0.0), share_of_percent(37.5), share_of_percent(100.4)),
            (Some(0.0), Some(0.375), Some(1.0))
        );
        assert_eq!((share_of_percent(f64::NAN), share_of_percent(-1e-9)), (None, Some(0.0)));
        assert_eq!(interconnect_text(Some(5), Some(16), 18), "PCIe 5 x16, 18 NVLinks");
        assert_eq!(interconnect_text(Some(4), Some(8), 1), "PCIe 4 x8, 1 NVLink");
        assert_eq!((interconnect_text(Some(4), None, 0), interconnect_text(None, None, 2)), {
            (String::new(), "2 NVLinks".to_owned())
        });
    }

    #[test]
    fn a_machine_without_a_driver_says_so_in_one_line() {
        fn is_send<T: Send>(_: &T) {}
        let opened = Nvml::open(&[]);
        is_send(&opened);
        match opened {
            Ok(nvml) => {
                assert!(!nvml.driver().is_empty());
                assert_eq!(nvml.facts().len(), nvml.sample(Nanos(5)).len());
                assert_eq!(Nvml::open(&[0]).unwrap().facts(), nvml.facts()[..1]);
                assert!(Nvml::open(&[0, 999]).unwrap_err().contains("no 999"));
            }
            Err(because) => {
                assert!(because.contains("NVIDIA") && because.lines().count() == 1, "{because}");
                // And the second time likewise: nothing is half open.
                assert_eq!(Nvml::open(&[]).unwrap_err(), because);
            }
        }
        // A message of several lines is cut to its first.
        let text = driver_error_text(&NvmlError::Unknown);
        assert!(text.starts_with("the NVIDIA driver does not answer: ") && !text.contains('\n'));
        assert!(driver_error_text(&NvmlError::DriverNotLoaded).contains("not running"));
    }
}
