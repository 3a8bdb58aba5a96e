//! How many replicas carry a load, what they cost and draw, and when they would not be enough.
//!
//! Everything rests on what one replica was seen to carry, the rate that was *confirmed* to keep the
//! SLO, and on the interval in which its limit lies. [`plan_capacity`] divides by all three; a
//! [`Traffic`] is looked at hour by hour; and [`Fitted`] is the engine model of `goodput_sim`,
//! calibrated from the measured points, for the chance of missing the SLO in between.

mod basis;
mod cost;
mod energy;
mod expect;
mod fan_out;
mod fleet;
mod risk;
mod simulated;
#[cfg(test)]
mod tests;
mod traffic;

use serde::{Deserialize, Serialize};

pub use basis::{Basis, MeasuredLevel, Origin, Refused};
pub use cost::{Cost, Price, UnitCost};
pub use energy::{EnergyPlan, EnergyUse};
pub use expect::{Expected, Footing, expect_at};
pub use fan_out::{FanFigure, FanOut, StepLatency, single_call_shares as fan_out_shares};
pub use fleet::{BestCase, Fleet, Fleets};
pub use risk::{
    Enough, Hour, HourState, Hours, LevelRisk, STRETCHES, Simulation, TrafficPlan,
    plan_for_traffic, play_levels, rates_to_simulate,
};
pub use simulated::{FitPoint, Fitted, Played, Sizes, calibrate_model};
pub use traffic::{Traffic, TrafficSlot};

/// A chance of this much that a replica carries less is said.
const RISKY: f64 = 0.05;

/// Hours of a month: a twelfth of a year.
pub const MONTH_HOURS: f64 = 730.0;

/// The question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Requests per second to carry.
    pub target_rps: f64,
    /// Headroom, as a share of the target.
    pub headroom: f64,
    /// GPUs of a replica.
    pub gpus_per_replica: Option<u32>,
    /// Price of a GPU per hour.
    pub price_per_gpu_hour: Option<f64>,
    /// An additional number of replicas to look at.
    pub replicas: Option<u64>,
}

/// Why a note of the plan matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanNoteKind {
    /// The plan holds only if this does.
    Assumed,
    /// It lies beyond what was measured.
    Extrapolated,
    /// It is not known.
    Missing,
    /// The measurement itself is in doubt.
    Doubt,
}

/// What to know about the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanNote {
    /// Why.
    pub kind: PlanNoteKind,
    /// In words.
    pub text: String,
}

impl PlanNote {
    /// A note.
    pub fn new(kind: PlanNoteKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Rates at the confirmed level, and at the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Requests per second.
    pub requests_per_s: f64,
    /// Prompt tokens per second; none if they were not counted.
    pub input_tps: Option<f64>,
    /// Output tokens per second.
    pub output_tps: Option<f64>,
    /// Both.
    pub total_tps: Option<f64>,
}

impl Rates {
    fn scaled_by(self, factor: f64) -> Self {
        let scaled = |rate: Option<f64>| rate.map(|rate| rate * factor);
        Self {
            requests_per_s: self.requests_per_s * factor,
            input_tps: scaled(self.input_tps),
            output_tps: scaled(self.output_tps),
            total_tps: scaled(self.total_tps),
        }
    }
}

/// What the fleet does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FleetThroughput {
    /// One replica at the confirmed rate.
    pub replica: Rates,
    /// One of its GPUs there.
    pub gpu: Option<Rates>,
    /// Everything at the target rate.
    pub total: Rates,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// `goodput.capacity/1`
    pub schema: String,
    /// What one replica carries, and how that is known.
    pub basis: Basis,
    /// What was asked.
    pub question: Question,
    /// The number of replicas, by spare capacity.
    pub fleets: Fleets,
    /// Rates.
    pub throughput: FleetThroughput,
    /// Latency to expect: at the confirmed rate, at the target with headroom, with one lost.
    pub expected: Vec<Expected>,
    /// Money; none without a price.
    pub cost: Option<Cost>,
    /// Joules of the GPUs per output token at the confirmed rate; none if not measured.
    pub energy_j_per_output_token: Option<f64>,
    /// Energy of the GPUs; none if it was not measured.
    #[serde(default)]
    pub energy: Option<EnergyPlan>,
    /// Hour by hour; none without traffic.
    pub traffic: Option<TrafficPlan>,
    /// Steps of several calls; none unless requested.
    pub fan_out: Option<FanOut>,
    /// What it rests on.
    pub notes: Vec<PlanNote>,
}

impl Capacity {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.capacity/1";
}

/// The plan for a constant load. Traffic and fan-out are added by who has them.
pub fn plan_capacity(basis: Basis, question: Question) -> Result<Capacity, Refused> {
    question.check()?;
    let fleets = Fleets::new(&basis, &question)?;
    let confirmed = basis.confirmed_rps;
    let at = |rps: f64, about: &str| expect_at(&basis.levels, rps, about);
    let here = at(confirmed, "confirmed");
    let share = |fleet: &Fleet| question.target_rps / fleet.replicas as f64;
    let mut expectations = vec![here.clone()];
    let target = at(share(&fleets.with_headroom), "target");
    let energy = EnergyPlan::new(&question, &fleets, &here, &target);
    expectations.push(target);
    if fleets.with_headroom.replicas > 1 {
        let left = (fleets.with_headroom.replicas - 1) as f64;
        expectations.push(at(question.target_rps / left, "one lost"));
    }
    // A level above the confirmed one was either rejected or not measured at all.
    expectations
        .retain(|expected| expected.at_rps <= confirmed * (1.0 + 1e-9) && expected.has_latency());
    let throughput = fleet_throughput(&basis, &question, &here);
    let cost = Cost::new(&basis, &question, &fleets, &here);
    let mut notes = plan_notes(&basis, &here, &fleets);
    notes.extend(energy_note(&question, energy.as_ref()));
    Ok(Capacity {
        schema: Capacity::SCHEMA.to_owned(),
        basis,
        question,
        fleets,
        throughput,
        expected: expectations,
        cost,
        energy_j_per_output_token: energy
            .and_then(|energy| energy.full_use.joules_per_output_token),
        energy,
        traffic: None,
        fan_out: None,
        notes,
    })
}

impl Question {
    fn check(&self) -> Result<(), Refused> {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if !is_rate(self.target_rps) {
            return Err(Refused::new("the target rate must be a number above zero"));
        }
        if !(0.0..=5.0).contains(&self.headroom) {
            return Err(Refused::new("headroom must be between 0 % and 500 %"));
        }
        if self.gpus_per_replica == Some(0) || self.replicas == Some(0) {
            return Err(Refused::new(
                "the numbers of replicas and of GPUs per replica must be at least 1",
            ));
        }
        match (self.price_per_gpu_hour, self.gpus_per_replica) {
            (Some(price), _) if !(price.is_finite() && price >= 0.0) => {
                Err(Refused::new("a price is a number of at least zero"))
            }
            (Some(_), None) => {
                Err(Refused::new("a price per GPU needs the number of GPUs per replica")
                    .hint("add --gpus-per-replica"))
            }
            _ => Ok(()),
        }
    }
}

fn fleet_throughput(basis: &Basis, question: &Question, here: &Expected) -> FleetThroughput {
    let rate = basis.confirmed_rps;
    let tokens = |each: Option<f64>, rate: f64| each.map(|each| each * rate);
    let at = |rate: f64| {
        let (input, output) = (tokens(here.input_tokens, rate), tokens(here.output_tokens, rate));
        let total = input.zip(output).map(|(input, output)| input + output);
        Rates { requests_per_s: rate, input_tps: input, output_tps: output, total_tps: total }
    };
    let replica = at(rate);
    FleetThroughput {
        replica,
        gpu: question.gpus_per_replica.map(|gpus| replica.scaled_by(1.0 / f64::from(gpus))),
        total: at(question.target_rps),
    }
}

fn plan_notes(basis: &Basis, here: &Expected, fleets: &Fleets) -> Vec<PlanNote> {
    let mut notes = basis.notes.clone();
    let mut add = |kind, text: String| notes.push(PlanNote::new(kind, text));
    if fleets.most_replicas() > 1 {
        add(
            PlanNoteKind::Extrapolated,
            format!(
                "the figures are those of one replica; {} replicas are assumed to carry {} times \
                 as much, behind a load balancer that adds no loss",
                fleets.most_replicas(),
                fleets.most_replicas()
            ),
        );
    }
    if basis.most_rps().is_none() {
        let text = "no upper limit of a replica is known: fewer replicas may be enough";
        add(PlanNoteKind::Missing, text.to_owned());
    }
    match basis.over_claim_risk {
        Some(risk) if risk >= RISKY => add(
            PlanNoteKind::Doubt,
            format!(
                "the limit of a replica is more than 3 % below the confirmed rate with a \
                 probability of about {:.0} %: plan for the worst case",
                100.0 * risk
            ),
        ),
        None if basis.origin == Origin::Sweep => add(
            PlanNoteKind::Missing,
            "the probability that a replica carries less than the confirmed rate is unknown"
                .to_owned(),
        ),
        _ => {}
    }
    if !here.partial.is_empty() {
        add(
            PlanNoteKind::Doubt,
            format!(
                "not every run at the confirmed rate has {}: the value is that of the runs that \
                 have it, which may be the better ones",
                here.partial.join(", ")
            ),
        );
    }
    if here.footing == Footing::AboveMeasured {
        add(
            PlanNoteKind::Extrapolated,
            "no point was measured at the confirmed rate; tokens per request are those of the \
             nearest point"
                .to_owned(),
        );
    }
    if here.footing == Footing::Nothing {
        let text = "no measured points: latency, tokens, and their prices are unknown";
        add(PlanNoteKind::Missing, text.to_owned());
    } else {
        let text = "future traffic has the measured prompts, answers, and arrivals (Poisson)";
        add(PlanNoteKind::Assumed, text.to_owned());
    }
    notes
}

fn energy_note(question: &Question, energy: Option<&EnergyPlan>) -> Option<PlanNote> {
    match energy {
        Some(_) => Some(PlanNote::new(
            PlanNoteKind::Assumed,
            "the measured GPUs are those of one replica; energy covers the GPUs only, without the \
             processors, fans, and losses of their nodes",
        )),
        None if question.price_per_gpu_hour.is_some() => {
            Some(PlanNote::new(PlanNoteKind::Missing, "energy was not measured"))
        }
        None => None,
    }
}
