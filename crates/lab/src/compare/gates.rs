//! Gates as they were typed, and whether runs can have what they ask for.

use goodput_campaign::compare::{Better, Gate, GateError, Limit, find_metric};
use goodput_model::Plan;

use crate::error::Failed;
use crate::events::Observer;

/// Metrics that only an SLO gives a run.
const BY_SLO: [&str; 3] = ["goodput_rps", "goodput_tokens_per_s", "attainment"];

/// Metrics that only `--count-with` gives a run.
const BY_RECOUNT: [&str; 2] = ["recounted_tokens_per_s", "characters_per_s"];

/// What was typed.
pub fn parse_gates(texts: &[String], observer: &dyn Observer) -> Result<Vec<Gate>, Failed> {
    let mut gates = Vec::new();
    for text in texts {
        gates.extend(Gate::parse_all(text).map_err(|GateError(why)| {
            Failed::usage(why).hint("write --gate 'p99 ttft < +5%, goodput > -3%'")
        })?);
    }
    for odd in gates.iter().filter(|gate| asks_for_worse(gate)) {
        observer.warn(format!("the gate `{odd}` passes only if the figure gets worse"));
    }
    Ok(gates)
}

/// Whether a gate holds only for a change for the worse.
fn asks_for_worse(gate: &Gate) -> bool {
    let better = find_metric(&gate.metric).map(|metric| metric.better);
    match gate.limit {
        Limit::Above => better == Some(Better::Lower) && gate.change >= 0.0,
        Limit::Below => better == Some(Better::Higher) && gate.change <= 0.0,
    }
}

/// Percentiles of the table, and those that gates name.
pub fn reported_percentiles(gates: &[Gate]) -> Vec<f64> {
    let named = gates.iter().filter_map(|gate| gate.metric.rsplit_once("_p")?.1.parse().ok());
    let fits = |percent: &f64| *percent > 0.0 && *percent < 100.0;
    [50.0, 90.0, 99.0].into_iter().chain(named.filter(fits)).collect()
}

/// Refuses gates that nothing can be said about from runs of this plan.
pub fn check_gates(gates: &[Gate], plan: &Plan, whose: &str) -> Result<(), Failed> {
    let (has_slo, has_count) = (plan.measure.slo.is_some(), plan.workload.count_with.is_some());
    for gate in gates {
        let (needs, hint) = match gate.metric.as_str() {
            name if BY_SLO.contains(&name) && !has_slo => {
                ("an SLO", "add --slo interactive, or --slo 'ttft < 500ms, tpot < 50ms'")
            }
            name if BY_RECOUNT.contains(&name) && !has_count => {
                ("token counts from one tokenizer", "measure with --count-with FILE")
            }
            _ => continue,
        };
        let message = format!("the gate `{gate}` needs {needs}, and {whose} has none");
        return Err(Failed::usage(message).hint(hint));
    }
    Ok(())
}

/// Refuses gates that nothing can be said about where only searches are compared.
pub fn check_search(gates: &[Gate]) -> Result<(), Failed> {
    let Some(gate) = gates.iter().find(|gate| gate.metric != "goodput_rps") else { return Ok(()) };
    let message = format!("the gate `{gate}` needs runs at one load, and a search has none");
    Err(Failed::usage(message).hint("write --gate 'goodput > -3%', or compare at a --rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gate_names_is_measured() {
        let gates = Gate::parse_all("p98 ttft < +5%, p99.9 e2e < +5%, goodput > -3%").unwrap();
        assert_eq!(reported_percentiles(&gates), [50.0, 90.0, 99.0, 98.0, 99.9]);
        assert!(!gates.iter().any(asks_for_worse));
        let odd = Gate::parse_all("p99 ttft > +50%, goodput < -5%").unwrap();
        assert!(odd.iter().all(asks_for_worse));
    }
}
