//! The sides while they are measured: who is ready, and what all share.

use std::net::SocketAddr;
use std::sync::Arc;

use goodput_campaign::compare::Side;
use goodput_model::{OutputLength, Plan};

use super::request::CompareRequest;
use super::switch::SwitchCommand;
use super::targets::TargetSpec;
use crate::checks::check_plan;
use crate::error::Failed;
use crate::readiness::{self, Ready};
use crate::run::{Lab, prepare_on};

/// One side, ready to be measured.
pub(super) struct ReadyTarget {
    pub(super) spec: TargetSpec,
    /// The plan that all share with this target, with everything settled that it left open.
    pub(super) plan: Plan,
    pub(super) ready: Arc<Ready>,
    /// It has stood idle or has been started again: it is to be warmed up.
    pub(super) is_cold: bool,
}

impl ReadyTarget {
    /// Who it is, for the result.
    pub(super) fn side(&self) -> Side {
        Side {
            name: self.spec.name.clone(),
            target: self.plan.target.url.clone(),
            model: self.ready.model.clone(),
            gpus: self.spec.gpus,
            price_per_gpu_hour: self.spec.price_per_gpu_hour,
            ..Side::default()
        }
    }

    /// Its server was started again: `settled` is what it says, `base` what all share.
    pub(super) fn replace_server(
        &mut self,
        base: &Plan,
        settled: &Plan,
        mut ready: Ready,
    ) -> Result<(), Failed> {
        self.plan = side_plan(base, &self.spec, settled);
        ready.dialect = readiness::request_format(&self.plan, &ready.model)?;
        self.ready = Arc::new(ready);
        self.is_cold = true;
        Ok(())
    }
}

/// Waits for all targets. What all runs share is settled by the reference, and what one of them
/// refuses is sent to none.
pub(super) fn prepare_targets(
    lab: &Lab,
    request: &mut CompareRequest,
    switch: Option<&SwitchCommand>,
) -> Result<Vec<ReadyTarget>, Failed> {
    let mut found: Vec<(Plan, Arc<Ready>)> = Vec::new();
    for (place, one) in request.targets.clone().iter().enumerate() {
        if let Some((plan, ready)) = found.first().filter(|_| request.design.same_target).cloned() {
            found.push((plan, ready));
            continue;
        }
        let mut plan = one.target_plan(&request.plan);
        check_plan(&plan)?;
        let ready = Arc::new(make_side_ready(lab, &mut plan, one, switch)?);
        if place == 0 {
            // Words cost what they cost there: all sides should get the same prompts.
            plan = prepare_on(lab, plan, Arc::clone(&ready))?.plan;
            request.plan.workload.clone_from(&plan.workload);
        }
        request.plan.target.usage &= plan.target.usage;
        if plan.workload.output == OutputLength::Limit {
            request.plan.workload.output = OutputLength::Limit;
        }
        found.push((plan, ready));
    }
    check_shared_server(lab, request, &found)?;
    let contender = |((plan, ready), one): ((Plan, Arc<Ready>), &TargetSpec)| {
        Ok(ReadyTarget {
            plan: side_plan(&request.plan, one, &plan),
            spec: one.clone(),
            ready,
            is_cold: true,
        })
    };
    let all: Result<Vec<_>, Failed> =
        found.into_iter().zip(&request.targets).map(contender).collect();
    let mut all = all?;
    for one in &mut all {
        // Of a target and itself there is one.
        if let Some(ready) = Arc::get_mut(&mut one.ready) {
            ready.dialect = readiness::request_format(&one.plan, &ready.model)?;
        }
    }
    Ok(all)
}

/// What all share, with what was settled about this target.
fn side_plan(base: &Plan, one: &TargetSpec, settled: &Plan) -> Plan {
    let mut plan = one.target_plan(base);
    // Without the secrets of the URL, and with the model's name.
    plan.target.url.clone_from(&settled.target.url);
    plan.target.model.clone_from(&settled.target.model);
    plan
}

/// Makes this side the one that runs, where that takes a command, and waits for it unless the user
/// stops.
pub(super) fn make_side_ready(
    lab: &Lab,
    plan: &mut Plan,
    one: &TargetSpec,
    switch: Option<&SwitchCommand>,
) -> Result<Ready, Failed> {
    let is_stopped = || lab.interrupt.is_interrupted();
    let wait_ready = plan.target.wait_ready;
    if let Some(switch) = switch {
        switch.switch_to(one, &is_stopped)?;
        plan.target.wait_ready = switch.limit;
    }
    let stopped = || is_stopped().then(|| Failed::interrupted("stopped while waiting"));
    let ready = readiness::wait_ready_unless(plan, &*lab.observer, &stopped);
    plan.target.wait_ready = wait_ready;
    ready.map_err(|failed| failed.with_more(&format!(" (target `{}`)", one.name)))
}

/// Two sides of one server: the second would find the prompts of the first in its prefix cache, and
/// at once they would load it twice.
fn check_shared_server(
    lab: &Lab,
    request: &mut CompareRequest,
    found: &[(Plan, Arc<Ready>)],
) -> Result<(), Failed> {
    let addresses = found.iter().map(|(_, ready)| ready.endpoint.addresses());
    let Some([one, other]) =
        shared_addresses(addresses).and_then(|pair| side_names(&request.targets, pair))
    else {
        return Ok(());
    };
    if request.design.at_once {
        return Err(Failed::usage(format!("`{one}` and `{other}` are the same server"))
            .hint("remove --at-once: both sides would share its hardware"));
    }
    if request.plan.workload.reset_cache || !request.plan.target.probe {
        return Ok(());
    }
    if request.switch_cmd.is_some() {
        lab.observer.note(format!(
            "`{one}` and `{other}` share an address: the switch command must restart the server, or each run finds the prompts of the previous one in the prefix cache"
        ));
        return Ok(());
    }
    let forget = |(plan, ready): &(Plan, Arc<Ready>)| {
        let mut told = plan.clone();
        told.workload.reset_cache = true;
        readiness::reset_cache(&told, ready)
    };
    match found.iter().try_for_each(forget) {
        Ok(()) => request.plan.workload.reset_cache = true,
        Err(failed) => lab.observer.note(format!(
            "warning: `{one}` and `{other}` are the same server, and its prefix cache cannot be \
             cleared ({failed}): a run may find the prompts of the previous one in it"
        )),
    }
    Ok(())
}

/// The first two that have an address in common.
fn shared_addresses<'a>(all: impl Iterator<Item = &'a [SocketAddr]>) -> Option<[usize; 2]> {
    let mut seen: Vec<&[SocketAddr]> = Vec::new();
    for addresses in all {
        let is_same = |one: &&[SocketAddr]| one.iter().any(|address| addresses.contains(address));
        if let Some(place) = seen.iter().position(is_same) {
            return Some([place, seen.len()]);
        }
        seen.push(addresses);
    }
    None
}

fn side_names(all: &[TargetSpec], [one, other]: [usize; 2]) -> Option<[String; 2]> {
    Some([all.get(one)?.name.clone(), all.get(other)?.name.clone()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_looked_at() {
        let at = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let four = [
            at(&["10.0.0.1:8000"]),
            at(&["[::1]:8000", "127.0.0.1:8000"]),
            at(&["127.0.0.1:8001"]),
            at(&["127.0.0.1:8000"]),
        ];
        assert_eq!(shared_addresses(four.iter().map(Vec::as_slice)), Some([1, 3]));
        assert_eq!(shared_addresses(four.iter().take(3).map(Vec::as_slice)), None);
    }
}
