//! What tokens and requests cost.

use serde::{Deserialize, Serialize};

use super::{Basis, Expected, Fleets, MONTH_HOURS, Question};

/// A price, and the best case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// At the confirmed rate.
    pub value: f64,
    /// At the rejected rate, which is a little too high; none without one.
    pub best_case: Option<f64>,
}

/// Cost per unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnitCost {
    /// Of everything included in this cost.
    pub per_hour: f64,
    /// For 730 hours.
    pub per_month: f64,
    /// Of a thousand requests.
    pub per_1000_requests: Price,
    /// Of a million prompt tokens, as if they carried the whole cost.
    pub per_million_input: Option<Price>,
    /// Of a million output tokens, as if they carried the whole cost.
    pub per_million_output: Option<Price>,
    /// Of a million tokens of both kinds.
    pub per_million_total: Option<Price>,
    /// Of a million output tokens of requests that kept the SLO.
    pub per_million_good_output: Option<Price>,
}

/// Money, in the unit of the price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Price of a GPU per hour.
    pub price_per_gpu_hour: f64,
    /// One replica at the confirmed rate.
    pub full_use: UnitCost,
    /// The replicas with headroom under the target load: idle capacity is paid for, too.
    pub at_target: UnitCost,
}

impl Cost {
    pub(super) fn new(
        basis: &Basis,
        question: &Question,
        fleets: &Fleets,
        here: &Expected,
    ) -> Option<Self> {
        let price = question.price_per_gpu_hour?;
        let gpus = f64::from(question.gpus_per_replica?);
        let hour = price * gpus;
        let full = Paid {
            per_hour: hour,
            rps: basis.confirmed_rps,
            best: basis.most_rps().map(|most| (hour, most)),
        };
        let fleet = fleets.with_headroom;
        let target = Paid {
            per_hour: hour * fleet.replicas as f64,
            rps: question.target_rps,
            best: fleet.best_case.map(|best| (hour * best.replicas as f64, question.target_rps)),
        };
        Some(Self {
            price_per_gpu_hour: price,
            full_use: full.unit_cost(here),
            at_target: target.unit_cost(here),
        })
    }
}

/// So much money for so much load.
struct Paid {
    per_hour: f64,
    rps: f64,
    /// The same at best.
    best: Option<(f64, f64)>,
}

impl Paid {
    fn unit_cost(&self, here: &Expected) -> UnitCost {
        let million = |each: Option<f64>| {
            each.filter(|each| *each > 0.0).map(|each| self.price_of(1e6, each))
        };
        let (input, output) = (here.input_tokens, here.output_tokens);
        let total = input.zip(output).map(|(input, output)| input + output);
        let good = output.zip(here.good_share).map(|(output, share)| output * share);
        UnitCost {
            per_hour: self.per_hour,
            per_month: self.per_hour * MONTH_HOURS,
            per_1000_requests: self.price_of(1e3, 1.0),
            per_million_input: million(input),
            per_million_output: million(output),
            per_million_total: million(total),
            per_million_good_output: million(good),
        }
    }

    /// Of this many units, of which each request brings this many.
    fn price_of(&self, units: f64, each: f64) -> Price {
        let of = |(per_hour, rps): (f64, f64)| per_hour / (rps * each * 3600.0) * units;
        Price { value: of((self.per_hour, self.rps)), best_case: self.best.map(of) }
    }
}
