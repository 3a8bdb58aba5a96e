//! What of a plan this record holds, where several clients share it.

use goodput_model::{Load, Mode, Plan, Shard, ShardPart, SloMetric};

use crate::paired::share_interval;
use crate::summary::{GpuSummary, PerToken, RunFacts, ServerSummary};

/// Which part of the plan one client has sent.
pub(crate) fn shard_of_run(run: &RunFacts) -> Shard {
    run.shard.as_ref().map_or(Shard::WHOLE, |facts| facts.shard)
}

/// Whether requests of the plan are not in this record, by nature or by loss. Their server has answered
/// others too, and the gaps between those that are left are not those of the schedule.
pub(crate) fn is_partial(run: &RunFacts) -> bool {
    shard_of_run(run).is_part() || run.shards.iter().any(ShardPart::has_gap)
}

/// The rate that this client was to offer of a rate over all.
pub(crate) fn shard_of_rate(mode: &Mode, shard: Shard, rate: f64) -> f64 {
    // That of a replay is counted from the record itself.
    if matches!(mode, Mode::Replay { .. }) { rate } else { rate / f64::from(shard.count()) }
}

/// What those whose record this is were to send.
pub(crate) fn shard_load(load: &Load, run: &RunFacts) -> Load {
    let shard = shard_of_run(run);
    let mut own = shard.shard_load(load);
    let is_closed = matches!(load.mode, Mode::Closed { .. });
    if shard.is_part() && !is_closed {
        // Sessions are dealt out by their number, so that this is right to within one of them.
        own.num_requests = load.num_requests.map(|limit| limit / u64::from(shard.count()));
    }
    if run.shards.iter().any(ShardPart::has_gap) {
        let whole = || run.shards.iter().filter(|part| !part.has_gap());
        let there = || run.shards.iter().filter(|part| part.is_there);
        let sum = |count: u64| whole().map(|part| part.facts.shard.share_of(count)).sum::<u64>();
        own.num_requests = load.num_requests.map(sum);
        if let Mode::Closed { concurrency, .. } = &mut own.mode {
            let each = |part: &ShardPart| part.facts.shard.share_of((*concurrency).into());
            let users: u64 = there().map(each).sum();
            *concurrency = u32::try_from(users).unwrap_or(*concurrency);
        }
    }
    own
}

/// The same of a plan. What was promised of the rate of all is not for one client to keep.
pub(crate) fn shard_plan(plan: &Plan, run: &RunFacts) -> Plan {
    let mut own = plan.clone();
    own.load = shard_load(&plan.load, run);
    if shard_of_run(run).is_part()
        && let Some(slo) = &mut own.measure.slo
    {
        slo.terms.retain(|term| !matches!(term.metric, SloMetric::Rps | SloMetric::OutputTps));
        if slo.terms.is_empty() {
            own.measure.slo = None;
        }
    }
    own
}

/// The server's totals cover all ranks: next to the figures of some ranks they say nothing.
pub(crate) fn clear_server_totals(
    run: &RunFacts,
    server: Option<&mut ServerSummary>,
    gpu: Option<&mut GpuSummary>,
) {
    if !is_partial(run) {
        return;
    }
    if let Some(server) = server {
        server.against_client = None;
    }
    if let Some(energy) = gpu.and_then(|gpu| gpu.energy.as_mut()) {
        energy.joules_per = PerToken::default();
        energy.above_idle_joules_per = None;
    }
}

/// Failures are told from those of the server with this confidence.
const ALPHA: f64 = 0.001;
/// The odds must differ by this factor: failures come in bursts, which intervals ignore.
const ODDS: f64 = 3.0;
/// A share of failures that does not matter.
const FEW: f64 = 0.01;

/// The share of failures of the client in the middle, of those that had requests (failed, due).
pub fn median_failure_share(clients: &[(u64, u64)]) -> f64 {
    let due = clients.iter().filter(|(_, due)| *due > 0);
    let mut shares: Vec<f64> = due.map(|(failed, due)| *failed as f64 / *due as f64).collect();
    shares.sort_by(f64::total_cmp);
    // Of two the better one: the server does answer.
    shares.get(shares.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// Whether a client with this many failures is alone with them, where this share is usual.
pub fn is_failure_outlier(failed: u64, due: u64, usual: f64) -> bool {
    let odds = |share: f64| share / (1.0 - share).max(1e-9);
    let low = share_interval(failed, due, ALPHA).map_or(0.0, |[low, _]| low);
    low > FEW && odds(low) > ODDS * odds(usual)
}

#[cfg(test)]
mod tests {
    use goodput_model::ShardFacts;

    use super::*;
    use crate::summary::{AgainstClient, Energy};

    #[test]
    fn one_whose_requests_fail_where_those_of_others_do_not() {
        let alone = |clients: &[(u64, u64)]| -> Vec<bool> {
            let usual = median_failure_share(clients);
            clients.iter().map(|(failed, due)| is_failure_outlier(*failed, *due, usual)).collect()
        };
        // Cut off in the middle, while the server leaves some of all unanswered.
        assert_eq!(alone(&[(46, 383), (257, 383), (46, 382)]), [false, true, false]);
        // Of two, the other shows that the server answers; both together show nothing.
        assert_eq!(alone(&[(0, 10), (10, 10)]), [false, true]);
        assert_eq!(alone(&[(10, 10), (10, 10)]), [false, false]);
        // Some more than others are chance, one of few too, and who had none has not failed.
        assert_eq!(alone(&[(46, 383), (60, 383), (30, 382)]), [false; 3]);
        assert_eq!(alone(&[(0, 4), (1, 4), (0, 0), (0, 4)]), [false; 4]);
        assert_eq!(alone(&[]), [false; 0]);
    }

    #[test]
    fn totals_of_all_do_not_apply_to_a_shard() {
        let facts = |index, of| {
            let shard = Shard::new(index, of).unwrap();
            let shard = Some(ShardFacts { shard, fleet: None, clock: None });
            RunFacts { shard, ..RunFacts::default() }
        };
        for (run, is_kept) in
            [(RunFacts::default(), true), (facts(0, 1), true), (facts(1, 2), false)]
        {
            let against_client = Some(AgainstClient::default());
            let mut server = ServerSummary { against_client, ..ServerSummary::default() };
            let joules_per = PerToken { output_token: Some(1.0), ..PerToken::default() };
            let energy = Some(Energy { joules: 5.0, joules_per, ..Energy::default() });
            let mut gpu = GpuSummary { energy, ..GpuSummary::default() };
            clear_server_totals(&run, Some(&mut server), Some(&mut gpu));
            let energy = gpu.energy.unwrap();
            assert_eq!(server.against_client.is_some(), is_kept);
            assert_eq!((energy.joules_per.output_token.is_some(), energy.joules), (is_kept, 5.0));
        }
    }
}
