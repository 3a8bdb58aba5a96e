//! Was it the client? Check by check.

use goodput_model::{Caveat, CaveatCode, ConnectionPolicy, LoadShape, Mode, Severity};

use super::{Evidence, advice};
use crate::share::shard_load;
use crate::summary::{ClientSummary, ThreadSummary};

/// What may be off without harm, max(1 ms, 1 % of the TTFT median).
pub(super) fn harmless_error_ms(e: &Evidence<'_>) -> f64 {
    (e.key.ttft_p50_ms.unwrap_or(0.0) * 0.01).max(1.0)
}

/// How large an error may be before it makes a run suspect, and before it makes it void.
struct ErrorLimits {
    warn_ms: f64,
    void_ms: f64,
}

impl ErrorLimits {
    /// Of what is added to TTFT: 2 % and 10 % of its median, and no less than a processor needs to
    /// wake a thread. Where no TTFT is known, what they are for one of 50 ms.
    fn for_slip(e: &Evidence<'_>) -> Self {
        let ttft = e.key.ttft_p50_ms.unwrap_or(50.0);
        Self { warn_ms: (ttft * 0.02).max(0.5), void_ms: (ttft * 0.1).max(1.0) }
    }

    /// The canary is asked five times a second, so its p99 is nearly the worst of a run.
    fn for_canary(e: &Evidence<'_>) -> Self {
        let ttft = e.key.ttft_p50_ms.unwrap_or(0.0);
        Self { warn_ms: (ttft * 0.05).max(1.0), void_ms: (ttft * 0.1).max(2.0) }
    }

    fn severity(&self, error_ms: f64) -> Option<Severity> {
        (error_ms > self.warn_ms).then_some(if error_ms > self.void_ms {
            Severity::Void
        } else {
            Severity::Warn
        })
    }
}

pub(super) fn check_schedule_slip(e: &Evidence<'_>) -> Option<Caveat> {
    // A burst is due at one instant and cannot leave at one, so it has no schedule to keep.
    let is_bursts =
        matches!(e.plan.load.mode, Mode::Shaped { shape: LoadShape::Bursts { .. }, .. });
    let p99 = e.load.slip_ms.p99.filter(|_| e.load.mode != "burst" && !is_bursts)?;
    let limits = ErrorLimits::for_slip(e);
    let severity = limits.severity(p99)?;
    let message = format!(
        "the client sent requests late: p99 of schedule slip is {p99:.2} ms, above {:.2} ms",
        limits.warn_ms
    );
    Some(
        Caveat::new(CaveatCode::ScheduleSlip, severity, message).advise(advice::more_cpu_advice(e)),
    )
}

/// A closed loop of C users keeps C of them busy or thinking, by Little's law.
pub(super) fn check_starved_loop(e: &Evidence<'_>) -> Option<Caveat> {
    let load = shard_load(&e.plan.load, e.run);
    let Mode::Closed { concurrency, think_time, .. } = load.mode else { return None };
    let between_steps = e.figures.sessions.and_then(|sessions| sessions.thinking_mean);
    let between_visits = match e.figures.sessions {
        // A user pauses after a session, not after each of its requests.
        Some(sessions) => e.completions_per_s? / sessions.requests_mean.max(1.0),
        None => e.completions_per_s?,
    } * think_time.as_secs_f64();
    let thinking = between_visits + between_steps.unwrap_or(0.0);
    let share = (e.load.in_flight_mean? + thinking) / f64::from(concurrency);
    (share < 0.95 && !e.window.is_makespan()).then(|| {
        let severity = if share < 0.8 { Severity::Void } else { Severity::Warn };
        let message = format!(
            "only {:.1} of {concurrency} users were active on average: the client could not keep \
             all of them busy",
            share * f64::from(concurrency)
        );
        Caveat::new(CaveatCode::ClientStarved, severity, message).advise(advice::more_cpu_advice(e))
    })
}

/// The whole client stood still: stopped, swapped out, or kept from its processors for long.
pub(super) fn check_stalls(e: &Evidence<'_>) -> Option<Caveat> {
    let stalls = &e.client.stalls;
    let longest = stalls.longest_ms?;
    let share = stalls.total_ms / 1e3 / e.window.seconds().max(1e-9);
    let severity = if share > 0.05 { Severity::Void } else { Severity::Warn };
    let times =
        if stalls.count == 1 { "once".to_owned() } else { format!("{} times", stalls.count) };
    let message = format!(
        "the client stalled {times} for {:.0} ms in total, the longest for {longest:.0} ms at \
         {:.1} s: it was stopped or had no CPU; latencies of {} requests that span a stall are \
         cut there",
        stalls.total_ms,
        stalls.longest_at_s.unwrap_or(0.0),
        stalls.requests
    );
    let advice = "give the client its own cores, and find out what stopped it (swap, a paused \
                  virtual machine, `kill -STOP`)";
    Some(Caveat::new(CaveatCode::ClientStalled, severity, message).advise(advice))
}

/// How late bytes were read. Where the kernel stamped them the latencies stand, up to packets that
/// were merged while they waited; where it did not, the delay of the loop is in every stamp.
pub(super) fn check_loop_lag(e: &Evidence<'_>) -> Option<Caveat> {
    let by_kernel = e.client.stamps == "kernel";
    let (what, p99, allowed) = if by_kernel {
        ("read answers late", e.client.lag_ms.p99?, 10.0)
    } else {
        ("ran late, and this system provides no receive timestamps", e.client.loop_lag_ms.p99?, 1.0)
    };
    let limit = allowed * harmless_error_ms(e);
    (p99 > limit).then(|| {
        let is_void = !by_kernel && p99 > 5.0 * limit;
        let severity = if is_void { Severity::Void } else { Severity::Warn };
        let message = format!("the client {what}: {p99:.2} ms at p99, above {limit:.2} ms");
        Caveat::new(CaveatCode::ClientLag, severity, message).advise(advice::more_cpu_advice(e))
    })
}

/// Even the kernel's stamps suffer when the loop is called later than tokens come: those that wait
/// together are merged, and share the stamp of the last.
pub(super) fn check_merged_reads(e: &Evidence<'_>) -> Option<Caveat> {
    let (p99, itl) = (e.client.loop_lag_ms.p99?, e.key.itl_p50_ms?);
    let limit = itl.max(harmless_error_ms(e));
    (p99 > limit).then(|| {
        let severity = if p99 > 5.0 * limit { Severity::Void } else { Severity::Warn };
        let message = format!(
            "the client's event loop ran {p99:.1} ms late at p99 while tokens came every {itl:.1} \
             ms: tokens that waited together share one timestamp"
        );
        Caveat::new(CaveatCode::TokensMerged, severity, message).advise(advice::more_cpu_advice(e))
    })
}

/// The threads that send and receive.
fn worker_threads(client: &ClientSummary) -> impl Iterator<Item = (&String, &ThreadSummary)> {
    client.threads.iter().filter(|(name, _)| name.starts_with("worker-"))
}

/// Other programs used the same CPUs: a worker was ready to run for longer than this process's
/// other threads can explain.
pub(super) fn check_contention(e: &Evidence<'_>) -> Option<Caveat> {
    let own: f64 = e
        .client
        .threads
        .iter()
        .filter(|(name, _)| !name.starts_with("worker-"))
        .map(|(_, thread)| thread.cpu_share)
        .sum();
    // Spread over the processors, as the system would.
    let own = own / f64::from(e.client.cpus.max(1));
    let (name, waited, cpu) = worker_threads(e.client)
        .map(|(name, thread)| (name, thread.waited_share - own, thread.cpu_share))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = waited / (cpu + waited).max(1e-9);
    (waited > 0.03 && share > 0.2).then(|| {
        let message = format!(
            "other programs took the client's CPUs: {name} was ready to run but waited {:.0} % of \
             that time",
            share * 100.0
        );
        let workers = e.plan.load.workers;
        let fewer =
            if workers > 1 { format!(", or use --workers {}", workers / 2) } else { String::new() };
        let advice = format!("give the client its own cores (`taskset`) or its own machine{fewer}");
        Caveat::new(CaveatCode::CpuContended, Severity::Warn, message).advise(advice)
    })
}

/// No worker above 70 % of its core.
pub(super) fn check_busy_workers(e: &Evidence<'_>) -> Option<Caveat> {
    let worst = worker_threads(e.client).max_by(|a, b| a.1.cpu_share.total_cmp(&b.1.cpu_share))?;
    (worst.1.cpu_share > 0.7).then(|| {
        let message = format!(
            "{} used {:.0} % of a core: the client is near its limit",
            worst.0,
            worst.1.cpu_share * 100.0
        );
        Caveat::new(CaveatCode::ClientBusy, Severity::Warn, message)
            .advise(advice::more_cpu_advice(e))
    })
}

/// No processor was free: whether that hurt cannot be ruled out, even where no thread was seen to
/// wait for long.
pub(super) fn check_crowded_cpus(e: &Evidence<'_>) -> Option<Caveat> {
    let (idle, used) = (e.client.idle_share?, e.client.used_share?);
    let others = 1.0 - idle - used;
    (idle < 0.1 && others > 0.3).then(|| {
        let message = format!(
            "other programs used {:.0} % of the CPUs that the client may use and left {:.0} % \
             idle",
            others * 100.0,
            idle * 100.0
        );
        Caveat::new(CaveatCode::CpuCrowded, Severity::Warn, message)
            .advise("stop them, or give the client its own cores")
    })
}

pub(super) fn check_cpu_throttling(e: &Evidence<'_>) -> Option<Caveat> {
    let throttled_ms = e.client.throttled_ms.filter(|ms| *ms > 0.0)?;
    let share = throttled_ms / 1e3 / e.window.seconds().max(1e-9);
    let severity = if share > 0.05 { Severity::Void } else { Severity::Warn };
    let message = format!("the container's CPU limit stopped the client for {throttled_ms:.0} ms");
    let advice = format!("raise the limit, or {}", advice::half_load_flag(e));
    Some(Caveat::new(CaveatCode::CpuThrottled, severity, message).advise(advice))
}

pub(super) fn check_stolen_time(e: &Evidence<'_>) -> Option<Caveat> {
    let share = e.client.steal_share.filter(|share| *share > 0.05)?;
    let message = format!(
        "the hypervisor gave {:.0} % of this machine's CPU time to other machines: latencies \
         include those pauses",
        share * 100.0
    );
    let advice = "use a machine or an instance type with dedicated CPUs";
    Some(Caveat::new(CaveatCode::CpuStolen, Severity::Warn, message).advise(advice))
}

pub(super) fn check_canary(e: &Evidence<'_>) -> Option<Caveat> {
    let p99 = e.client.canary?.ttft_error_beyond_chance_ms?;
    let limits = ErrorLimits::for_canary(e);
    let severity = limits.severity(p99)?;
    let message = format!(
        "the instrument error is too large: on the canary, a server of known timing, TTFT was off \
         by {p99:.2} ms at p99, above {:.2} ms",
        limits.warn_ms
    );
    Some(Caveat::new(CaveatCode::Canary, severity, message).advise(advice::more_cpu_advice(e)))
}

/// What would have told of trouble is missing.
pub(super) fn check_missing_observations(e: &Evidence<'_>) -> Option<Caveat> {
    let is_long = e.window.seconds() > 2.0 && !e.window.is_makespan();
    let is_silent = e.plan.measure.canary && e.client.canary.is_none_or(|canary| canary.n == 0);
    let ends_early = e.client.observed_until_s + 3.0 < e.run_end_s.min(e.window.end.as_secs());
    let (what, advice) = match (e.client.loop_lag_ms.p50, is_silent) {
        (None, _) => (
            "the client's observations of itself are missing (server.log), so nothing shows \
             whether it kept up",
            "copy the whole run folder, server.log included",
        ),
        _ if ends_early => (
            "the client's observations of itself end early (server.log), so nothing shows whether \
             it kept up",
            "check that the disk has room, and let the run finish",
        ),
        (_, true) => (
            "the canary did not answer, so the instrument error is unknown",
            "read the warning at the start of the run, or pass --canary off",
        ),
        _ => return None,
    };
    is_long.then(|| Caveat::new(CaveatCode::NotObserved, Severity::Warn, what).advise(advice))
}

/// Warn above half of what this machine was found to carry.
pub(super) fn check_ceiling(e: &Evidence<'_>) -> Option<Caveat> {
    let ceiling = e.run.ceiling?;
    let share = |rate: Option<f64>, most: Option<f64>| {
        rate.zip(most.filter(|most| *most > 0.0)).map_or(0.0, |(rate, most)| rate / most)
    };
    let events = share(e.client.events_per_s, ceiling.events_per_s);
    let requests = share(e.load.delivered_rps, ceiling.requests_per_s);
    let worst = events.max(requests);
    (worst > 0.5).then(|| {
        let what = if events >= requests { "events" } else { "requests" };
        let message = format!(
            "the load is {:.0} % of the {what} per second that this client can handle on this \
             machine by `goodput calibrate`",
            worst * 100.0
        );
        let advice = format!("stay below half: {}", advice::more_cpu_advice(e));
        Caveat::new(CaveatCode::NearCeiling, Severity::Warn, message).advise(advice)
    })
}

/// Arrivals that should be Poisson and did not leave like that.
pub(super) fn check_poisson(e: &Evidence<'_>) -> Option<Caveat> {
    let test = e.load.sent_gaps?;
    (test.p < 0.001 && test.distance > 0.05).then(|| {
        let message = format!(
            "requests were not sent as a Poisson process: the distribution of the gaps between \
             them is off by {:.3} (Kolmogorov–Smirnov, {} gaps)",
            test.distance, test.n
        );
        Caveat::new(CaveatCode::NotPoisson, Severity::Warn, message)
            .advise(advice::more_cpu_advice(e))
    })
}

/// The run's own figures must agree.
pub(super) fn check_littles_law(e: &Evidence<'_>) -> Option<Caveat> {
    // A load that changes is not steady by intention; its ends may weigh more than its mean.
    let is_steady = matches!(e.plan.load.mode, Mode::Open { .. } | Mode::Closed { .. });
    let law = e.client.littles_law.filter(|_| is_steady)?;
    (law.residual > law.limit).then(|| {
        let message = format!(
            "Little's law does not hold: {:.1} requests in flight, but {:.1} arrivals per second \
             × {:.3} s = {:.1}",
            law.in_flight,
            law.arrivals_per_s,
            law.residence_s,
            law.arrivals_per_s * law.residence_s
        );
        let warmup = if e.course.cut.is_some() { "" } else { "add --warmup auto, or " };
        let advice = format!(
            "the load was not steady, or records are missing: {warmup}{}",
            advice::longer_run_flags(e, 2.0 * e.window.seconds())
        );
        Caveat::new(CaveatCode::LittlesLaw, Severity::Warn, message).advise(advice)
    })
}

pub(super) fn check_local_limit(e: &Evidence<'_>) -> Option<Caveat> {
    let count = *e.requests.errors.get("local_limit")?;
    let message = format!(
        "{count} requests failed because this machine ran out of file descriptors or local ports"
    );
    let is_wasteful = e.plan.target.connections == ConnectionPolicy::PerRequest;
    let advice = if is_wasteful {
        "keep connections with --connections reuse, or raise `ulimit -n`"
    } else {
        "raise `ulimit -n`, or bound the load with --max-concurrency"
    };
    Some(Caveat::new(CaveatCode::ClientLimited, Severity::Void, message).advise(advice))
}

/// Not the client: but who looks for the cause of slow answers should know.
pub(super) fn check_slow_reader(e: &Evidence<'_>) -> Option<Caveat> {
    let mean_ms = e.client.tcp.window_limited_ms / e.requests.scheduled.max(1) as f64;
    (mean_ms > harmless_error_ms(e)).then(|| {
        let message = format!(
            "the server was slow to read: requests waited {mean_ms:.1} ms on average for room in \
             its receive window, which is part of TTFT"
        );
        Caveat::new(CaveatCode::ServerReadsSlowly, Severity::Info, message)
            .advise("check the server's front end: its event loop or its proxy is busy")
    })
}

/// Not the client either.
pub(super) fn check_packet_loss(e: &Evidence<'_>) -> Option<Caveat> {
    let tcp = &e.client.tcp;
    let share = (tcp.retransmits + tcp.out_of_order) as f64 / e.requests.scheduled.max(1) as f64;
    (share > 0.01 && tcp.retransmits + tcp.out_of_order > 10).then(|| {
        let message = format!(
            "the network lost or reordered packets: {} sent again, {} out of order",
            tcp.retransmits, tcp.out_of_order
        );
        Caveat::new(CaveatCode::PacketsLost, Severity::Info, message).advise(
            "check the network path (`ip -s link`, `ss -ti`), or measure from closer to the \
             server",
        )
    })
}
