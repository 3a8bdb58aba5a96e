//! What tokens cost in energy: of GPUs alone, not of the nodes around them.

use serde::{Deserialize, Serialize};

use super::{Expected, Fleets, Question};

/// Joules of a kilowatt-hour.
const KWH_J: f64 = 3.6e6;

/// Energy for a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EnergyUse {
    /// Power of all GPUs that carry it, in watts.
    pub gpu_power_w: f64,
    /// Kilowatt-hours per day.
    pub kwh_per_day: f64,
    /// Joules per output token, as if output tokens used all of it.
    pub joules_per_output_token: Option<f64>,
    /// Kilowatt-hours per million output tokens.
    pub kwh_per_million_output: Option<f64>,
}

/// Energy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EnergyPlan {
    /// One replica at the confirmed rate.
    pub full_use: EnergyUse,
    /// The replicas with headroom under the target load; none without a power measurement there.
    pub at_target: Option<EnergyUse>,
}

impl EnergyPlan {
    /// None without a power measurement at the confirmed rate.
    pub(super) fn new(
        question: &Question,
        fleets: &Fleets,
        here: &Expected,
        at_target: &Expected,
    ) -> Option<Self> {
        let replicas = fleets.with_headroom.replicas as f64;
        let target = at_target.gpu_power_w.map(|watts| {
            // Answers are as long as at the confirmed rate, as for every other figure of the plan.
            EnergyUse::from_power(watts * replicas, here.output_tokens, question.target_rps)
        });
        Some(Self {
            full_use: EnergyUse::from_power(here.gpu_power_w?, here.output_tokens, here.at_rps),
            at_target: target,
        })
    }
}

impl EnergyUse {
    fn from_power(watts: f64, output_tokens: Option<f64>, rps: f64) -> Self {
        let rate = output_tokens.map(|each| each * rps).filter(|rate| *rate > 0.0);
        let joules = rate.map(|rate| watts / rate);
        Self {
            gpu_power_w: watts,
            kwh_per_day: watts * 86_400.0 / KWH_J,
            joules_per_output_token: joules,
            kwh_per_million_output: joules.map(|joules| joules * 1e6 / KWH_J),
        }
    }
}
