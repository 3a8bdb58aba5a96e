//! Names of exporters, and units.

use crate::text::Series;

/// What a series tells of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Busy,
    /// Busy, where the share of time is not told: the share of cycles with any work.
    EngineActive,
    SmActive,
    TensorActive,
    DramActive,
    MemoryUsed,
    MemoryFree,
    MemoryReserved,
    MemoryTotal,
    Power,
    PowerLimit,
    Energy,
    SmClock,
    MemoryClock,
    Temperature,
    /// A set of bits.
    Reasons,
    /// Share of time held back for a reason.
    HeldBackShare(&'static str),
    /// Time held back for a reason, in all.
    HeldBack(&'static str),
    /// The time of which that is a part.
    HeldBackTime,
}

impl Field {
    /// Whether parts of one board only repeat what the whole board does.
    pub(super) fn is_of_board(self) -> bool {
        matches!(self, Self::Power | Self::PowerLimit | Self::Energy)
    }
}

const MIB: f64 = 1_048_576.0;

/// DCGM and AMD's driver say by numbers of this size that they have none.
const BLANK: f64 = 140_737_488_355_328.0;

const DCGM: [(&str, Field, f64); 20] = [
    ("DCGM_FI_DEV_GPU_UTIL", Field::Busy, 0.01),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Field::EngineActive, 1.0),
    ("DCGM_FI_PROF_SM_ACTIVE", Field::SmActive, 1.0),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Field::TensorActive, 1.0),
    ("DCGM_FI_PROF_DRAM_ACTIVE", Field::DramActive, 1.0),
    ("DCGM_FI_DEV_FB_USED", Field::MemoryUsed, MIB),
    ("DCGM_FI_DEV_FB_FREE", Field::MemoryFree, MIB),
    ("DCGM_FI_DEV_FB_RESERVED", Field::MemoryReserved, MIB),
    ("DCGM_FI_DEV_FB_TOTAL", Field::MemoryTotal, MIB),
    ("DCGM_FI_DEV_POWER_USAGE", Field::Power, 1.0),
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", Field::Power, 1.0),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Field::PowerLimit, 1.0),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", Field::PowerLimit, 1.0),
    // Millijoules.
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Field::Energy, 1e-3),
    ("DCGM_FI_DEV_SM_CLOCK", Field::SmClock, 1.0),
    ("DCGM_FI_DEV_MEM_CLOCK", Field::MemoryClock, 1.0),
    ("DCGM_FI_DEV_GPU_TEMP", Field::Temperature, 1.0),
    ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Field::Reasons, 1.0),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", Field::Reasons, 1.0),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON", Field::Reasons, 1.0),
];

const TRITON: [(&str, Field, f64); 6] = [
    ("nv_gpu_utilization", Field::Busy, 1.0),
    ("nv_gpu_memory_used_bytes", Field::MemoryUsed, 1.0),
    ("nv_gpu_memory_total_bytes", Field::MemoryTotal, 1.0),
    ("nv_gpu_power_usage", Field::Power, 1.0),
    ("nv_gpu_power_limit", Field::PowerLimit, 1.0),
    ("nv_energy_consumption", Field::Energy, 1.0),
];

/// Without the prefix that an exporter may be told to put before them.
const AMD: [(&str, Field, f64); 10] = [
    ("gpu_gfx_activity", Field::Busy, 0.01),
    ("gpu_umc_activity", Field::DramActive, 0.01),
    ("gpu_used_vram", Field::MemoryUsed, MIB),
    ("gpu_total_vram", Field::MemoryTotal, MIB),
    ("gpu_package_power", Field::Power, 1.0),
    ("gpu_average_package_power", Field::Power, 1.0),
    ("gpu_power_usage", Field::Power, 1.0),
    // Microjoules.
    ("gpu_energy_consumed", Field::Energy, 1e-6),
    ("gpu_junction_temperature", Field::Temperature, 1.0),
    ("gpu_edge_temperature", Field::Temperature, 1.0),
];

/// What a series tells, in our units; none where it tells nothing of use.
pub(super) fn field(series: &Series<'_>) -> Option<(Field, f64)> {
    let name = series.name.as_ref();
    let value = series.value;
    if !value.is_finite() || value < 0.0 {
        return None;
    }
    let find = |names: &[(&str, Field, f64)], name: &str| {
        let found = names.iter().find(|(own, _, _)| *own == name);
        found.map(|(_, field, scale)| (*field, value * scale))
    };
    if name.starts_with("DCGM_") {
        return find(&DCGM, name).filter(|_| value < BLANK);
    }
    find(&TRITON, name).or_else(|| {
        let name = name.strip_prefix("amd_").unwrap_or(name);
        let (field, value) = match name {
            "gpu_clock" => (clock(series.label("clock_type"))?, value),
            name => find(&AMD, name)
                .or_else(|| Some((violation(name)?, value)).filter(|_| value < BLANK))?,
        };
        // Parts of a chip other than the first have no meter of their own, and say zero.
        let is_metered = value > 0.0 || !field.is_of_board();
        (is_metered && !series.label("gpu_id").is_empty()).then_some((field, value))
    })
}

fn clock(kind: &str) -> Option<Field> {
    match kind.trim_start_matches("GPU_CLOCK_TYPE_").to_ascii_lowercase().as_str() {
        "system" => Some(Field::SmClock),
        "memory" => Some(Field::MemoryClock),
        _ => None,
    }
}

/// What holds an AMD GPU back.
fn violation(name: &str) -> Option<Field> {
    let cause = name.strip_prefix("gpu_violation_")?;
    if cause == "current_accumulated_counter" {
        return Some(Field::HeldBackTime);
    }
    let reason = if cause.contains("thermal") || cause.starts_with("processor_hot") {
        "thermal"
    } else if cause.starts_with("ppt") || cause.contains("limit_power") {
        "power"
    } else {
        return None;
    };
    match cause.rsplit_once('_')?.1 {
        "percentage" => Some(Field::HeldBackShare(reason)),
        // Others come once for each part of the chip, and would add up to more than the time.
        "accumulated" if cause.contains("_residency_") => Some(Field::HeldBack(reason)),
        _ => None,
    }
}

/// The bits of NVIDIA's driver in words. Having nothing to do is no reason.
pub(super) fn reasons(bits: u64) -> Vec<&'static str> {
    let words = [
        (0x4, "power"),
        (0x80, "power_brake"),
        // By software and by hardware.
        (0x60, "thermal"),
        (0x8, "hw_slowdown"),
        (0x10, "sync_boost"),
        (0x2, "app_clocks"),
        (0x100, "display_clocks"),
    ];
    words.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| word).collect()
}
