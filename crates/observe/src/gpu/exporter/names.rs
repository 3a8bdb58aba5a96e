//! Names of exporters, and units.

use crate::text::ParsedSeries;

/// What a series tells of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GpuField {
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

impl GpuField {
    /// Whether parts of one board only repeat what the whole board does.
    pub(super) fn is_board_wide(self) -> bool {
        matches!(self, Self::Power | Self::PowerLimit | Self::Energy)
    }
}

const MIB: f64 = 1_048_576.0;

/// DCGM and AMD's driver say by numbers of this size that they have none.
const BLANK: f64 = 140_737_488_355_328.0;

const DCGM: [(&str, GpuField, f64); 20] = [
    ("DCGM_FI_DEV_GPU_UTIL", GpuField::Busy, 0.01),
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", GpuField::EngineActive, 1.0),
    ("DCGM_FI_PROF_SM_ACTIVE", GpuField::SmActive, 1.0),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", GpuField::TensorActive, 1.0),
    ("DCGM_FI_PROF_DRAM_ACTIVE", GpuField::DramActive, 1.0),
    ("DCGM_FI_DEV_FB_USED", GpuField::MemoryUsed, MIB),
    ("DCGM_FI_DEV_FB_FREE", GpuField::MemoryFree, MIB),
    ("DCGM_FI_DEV_FB_RESERVED", GpuField::MemoryReserved, MIB),
    ("DCGM_FI_DEV_FB_TOTAL", GpuField::MemoryTotal, MIB),
    ("DCGM_FI_DEV_POWER_USAGE", GpuField::Power, 1.0),
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", GpuField::Power, 1.0),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", GpuField::PowerLimit, 1.0),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", GpuField::PowerLimit, 1.0),
    // Millijoules.
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", GpuField::Energy, 1e-3),
    ("DCGM_FI_DEV_SM_CLOCK", GpuField::SmClock, 1.0),
    ("DCGM_FI_DEV_MEM_CLOCK", GpuField::MemoryClock, 1.0),
    ("DCGM_FI_DEV_GPU_TEMP", GpuField::Temperature, 1.0),
    ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", GpuField::Reasons, 1.0),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", GpuField::Reasons, 1.0),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASON", GpuField::Reasons, 1.0),
];

const TRITON: [(&str, GpuField, f64); 6] = [
    ("nv_gpu_utilization", GpuField::Busy, 1.0),
    ("nv_gpu_memory_used_bytes", GpuField::MemoryUsed, 1.0),
    ("nv_gpu_memory_total_bytes", GpuField::MemoryTotal, 1.0),
    ("nv_gpu_power_usage", GpuField::Power, 1.0),
    ("nv_gpu_power_limit", GpuField::PowerLimit, 1.0),
    ("nv_energy_consumption", GpuField::Energy, 1.0),
];

/// Without the prefix that an exporter may be told to put before them.
const AMD: [(&str, GpuField, f64); 10] = [
    ("gpu_gfx_activity", GpuField::Busy, 0.01),
    ("gpu_umc_activity", GpuField::DramActive, 0.01),
    ("gpu_used_vram", GpuField::MemoryUsed, MIB),
    ("gpu_total_vram", GpuField::MemoryTotal, MIB),
    ("gpu_package_power", GpuField::Power, 1.0),
    ("gpu_average_package_power", GpuField::Power, 1.0),
    ("gpu_power_usage", GpuField::Power, 1.0),
    // Microjoules.
    ("gpu_energy_consumed", GpuField::Energy, 1e-6),
    ("gpu_junction_temperature", GpuField::Temperature, 1.0),
    ("gpu_edge_temperature", GpuField::Temperature, 1.0),
];

/// What a series tells, in our units; none if it tells nothing of use.
pub(super) fn gpu_field(series: &ParsedSeries<'_>) -> Option<(GpuField, f64)> {
    let name = series.name.as_ref();
    let value = series.value;
    if !value.is_finite() || value < 0.0 {
        return None;
    }
    let find = |names: &[(&str, GpuField, f64)], name: &str| {
        let found = names.iter().find(|(own, _, _)| *own == name);
        found.map(|(_, field, scale)| (*field, value * scale))
    };
    if name.starts_with("DCGM_") {
        return find(&DCGM, name).filter(|_| value < BLANK);
    }
    find(&TRITON, name).or_else(|| {
        let name = name.strip_prefix("amd_").unwrap_or(name);
        let (field, value) = match name {
            "gpu_clock" => (clock_field(series.label("clock_type"))?, value),
            name => find(&AMD, name)
                .or_else(|| Some((throttle_field(name)?, value)).filter(|_| value < BLANK))?,
        };
        // Parts of a chip other than the first have no meter of their own, and say zero.
        let is_metered = value > 0.0 || !field.is_board_wide();
        (is_metered && !series.label("gpu_id").is_empty()).then_some((field, value))
    })
}

fn clock_field(kind: &str) -> Option<GpuField> {
    match kind.trim_start_matches("GPU_CLOCK_TYPE_").to_ascii_lowercase().as_str() {
        "system" => Some(GpuField::SmClock),
        "memory" => Some(GpuField::MemoryClock),
        _ => None,
    }
}

/// What holds an AMD GPU back.
fn throttle_field(name: &str) -> Option<GpuField> {
    let cause = name.strip_prefix("gpu_violation_")?;
    if cause == "current_accumulated_counter" {
        return Some(GpuField::HeldBackTime);
    }
    let reason = if cause.contains("thermal") || cause.starts_with("processor_hot") {
        "thermal"
    } else if cause.starts_with("ppt") || cause.contains("limit_power") {
        "power"
    } else {
        return None;
    };
    match cause.rsplit_once('_')?.1 {
        "percentage" => Some(GpuField::HeldBackShare(reason)),
        // Others come once for each part of the chip, and would add up to more than the time.
        "accumulated" if cause.contains("_residency_") => Some(GpuField::HeldBack(reason)),
        _ => None,
    }
}

/// The bits of NVIDIA's driver in words. Being idle does not count as a reason.
pub(super) fn throttle_reasons(bits: u64) -> Vec<&'static str> {
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
