//! The same engine in fewer bits, or on more GPUs than its profile was measured on.
//!
//! Both are assumptions, not measurements: the factors stand in [`Hardware`]'s constants and in
//! `docs/profiles.md`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::BatchingProfile;
use super::check::MANY;

/// What an engine runs on, relative to what its profile describes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hardware {
    /// Bits of weights and of the KV cache.
    pub precision: Precision,
    /// Times as many GPUs, each with a part of every layer.
    pub tensor_parallel: u32,
    /// Share of twice the speed that each doubling of the GPUs brings: more than 0.5, at most 1.
    pub efficiency: f64,
}

/// Bits of weights and of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Those of the profile.
    #[default]
    Native,
    /// Eight, where the profile has sixteen.
    Fp8,
}

impl Default for Hardware {
    fn default() -> Self {
        Self { precision: Precision::Native, tensor_parallel: 1, efficiency: Self::EFFICIENCY }
    }
}

impl Hardware {
    /// What a step takes in FP8, of what it takes in the profile's precision. Half the bytes and
    /// twice the operations per second would be 0.5; scaling and what is not quantized cost the rest.
    pub const FP8_STEP: f64 = 0.6;
    /// Bytes of a KV token in FP8, of those in the profile's precision.
    pub const FP8_KV: f64 = 0.5;
    /// The default of [`Hardware::efficiency`].
    pub const EFFICIENCY: f64 = 0.85;

    /// Whether it is what the profile describes.
    pub(super) fn is_native(&self) -> bool {
        self.precision == Precision::Native && self.tensor_parallel == 1
    }

    /// How many times as fast more GPUs are.
    fn speed(&self) -> f64 {
        let doublings = f64::from(self.tensor_parallel.max(1)).log2();
        (2.0 * self.efficiency).powf(doublings)
    }

    /// `N`, or `N:EFFICIENCY`.
    pub(super) fn with_tensor_parallel(self, text: &str) -> Result<Self, String> {
        let wrong = || format!("tp is GPUS or GPUS:EFFICIENCY, as in `2` or `4:0.9`, not `{text}`");
        let (gpus, efficiency) = match text.split_once(':') {
            Some((gpus, efficiency)) => (gpus, efficiency.parse().map_err(|_| wrong())?),
            None => (text, Self::EFFICIENCY),
        };
        let tensor_parallel = gpus.parse().map_err(|_| wrong())?;
        Ok(Self { tensor_parallel, efficiency, ..self })
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Self { tensor_parallel, efficiency, .. } = *self;
        if !(1..=1024).contains(&tensor_parallel) {
            return Err(format!("tp ({tensor_parallel}) must be from 1 to 1024"));
        }
        if !(efficiency > 0.5 && efficiency <= 1.0) {
            return Err(format!(
                "the efficiency of tp ({efficiency}) must be more than 0.5 and at most 1"
            ));
        }
        Ok(())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(Self::Native),
            "fp8" => Ok(Self::Fp8),
            _ => Err(format!("precision is native or fp8, not `{text}`")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Fp8 => "fp8",
        })
    }
}

impl BatchingProfile {
    /// Blocks of the KV cache on this hardware: more GPUs have more memory, and FP8 needs less of it.
    pub fn kv_blocks(&self) -> u32 {
        let Hardware { precision, tensor_parallel, .. } = self.hardware;
        let bytes = if precision == Precision::Fp8 { Hardware::FP8_KV } else { 1.0 };
        let blocks = f64::from(self.kv.blocks) * f64::from(tensor_parallel) / bytes;
        blocks.min(f64::from(MANY)) as u32
    }

    /// The same engine with the times and the cache that this hardware gives it.
    pub(crate) fn on_hardware(&self) -> Self {
        let mut scaled = self.clone();
        let is_fp8 = self.hardware.precision == Precision::Fp8;
        let [step, kv] = if is_fp8 { [Hardware::FP8_STEP, Hardware::FP8_KV] } else { [1.0, 1.0] };
        let speed = self.hardware.speed();
        scaled.step.slow_down(step / speed);
        // Reading the cache takes what its bytes take.
        scaled.step.kv_ns = self.step.kv_ns * kv / speed;
        if let Some(split) = &mut scaled.disaggregated {
            split.ns_per_token *= kv;
        }
        scaled.kv.blocks = self.kv_blocks();
        scaled.hardware = Hardware::default();
        scaled
    }
}
