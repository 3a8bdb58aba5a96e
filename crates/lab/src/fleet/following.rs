//! A rank that is led: prepares what it is told, begins with the others, and hands over what it
//! measured. What it measured stays on its own disk whatever becomes of rank 0.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use goodput_clock::{now, pause};
use goodput_engine::Begin;
use goodput_fleet::{JoinedRank, NextOrder, Order, OrderKind, RankSettings, Start};
use goodput_model::{LogHistogram, Nanos, Plan, RequestRecord, ShardFacts};
use goodput_record::{RunFolder, parse_plan};
use goodput_stats::RequestTally;

use super::{Meeting, fleet_failed, marker_path, shard_folder};
use crate::error::{Failed, folder_failed};
use crate::events::RunSink;
use crate::handle::RunHandle;
use crate::host;
use crate::interrupt::Patience;
use crate::run::{Lab, Prepared, RunContext, prepare_run};

/// How long to wait for a word before looking at other things.
const LOOK_UP: Nanos = Nanos::from_millis(100);

/// How often what was counted is told.
const EVERY: Nanos = Nanos::from_millis(1_000);

/// How long handing over may take.
const HANDING_OVER: Nanos = Nanos::from_millis(900_000);

/// What is counted of its requests.
type Tally = RequestTally<LogHistogram>;

/// How a rank that was led ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// It did all that it was told.
    Done,
    /// It could not do something that it was told.
    Refused,
    /// The user stopped it.
    Interrupted,
}

/// Checks a plan before it is carried out.
type Check<'a> = &'a dyn Fn(&Plan) -> Result<(), Failed>;

impl Meeting {
    /// Does what rank 0 says until it says that nothing follows. Where requests go, and with which
    /// keys, its own plan says: no other rank does.
    pub fn follow_coordinator(
        &self,
        mut lab: Lab,
        own: &Plan,
        path: &Path,
        check: Check<'_>,
    ) -> Result<Followed, Failed> {
        lab.is_led = true;
        let lab = &lab;
        let rank = Arc::new(self.join_fleet(lab)?);
        let path = own_path(path, self);
        let mut last = None;
        let mut worst = Followed::Done;
        loop {
            match rank.next_order(LOOK_UP) {
                NextOrder::Nothing if lab.interrupt.is_interrupted() => {
                    return Ok(Followed::Interrupted);
                }
                NextOrder::Nothing => {}
                NextOrder::End if last.is_none() && worst == Followed::Done => {
                    return Err(Failed::target(
                        "rank 0 (the coordinator) stopped before anything was measured",
                    )
                    .hint("its output says why"));
                }
                NextOrder::End => return Ok(worst),
                NextOrder::Lost(why) => {
                    lab.observer.warn(format!("lost the connection to rank 0: {why}"));
                    return Err(lost_coordinator(last.as_deref()));
                }
                NextOrder::Order(order) => {
                    let shared = shared_folder(&order, rank.fleet_name(), self);
                    let folder = shared.clone().unwrap_or_else(|| ordered_folder(&path, &order));
                    let measured = complete_plan(&order, own, check)
                        .and_then(|plan| prepare_same(lab, plan, &order))
                        .and_then(|prepared| self.run_ordered(lab, prepared, &rank, &folder));
                    match measured {
                        Ok(()) => {
                            hand_over(lab, &rank, &folder, shared.is_some());
                            last = Some(folder);
                        }
                        Err(failed) => {
                            let _ = rank.report_refusal(&failed.to_string());
                            lab.observer.warn(failed.to_string());
                            worst = Followed::Refused;
                        }
                    }
                }
            }
        }
    }

    fn join_fleet(&self, lab: &Lab) -> Result<JoinedRank, Failed> {
        let Meeting { shard, at, token, join_within } = self;
        lab.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
        let settings = RankSettings {
            shard: *shard,
            token: token.clone(),
            host: host::host_name(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            deadline: now() + Nanos::from(*join_within),
            clocks: goodput_clock::now_and_unix,
        };
        let joined = JoinedRank::join(at, &settings, |_| !lab.interrupt.is_interrupted());
        if lab.interrupt.is_interrupted() {
            return Err(Failed::interrupted("stopped before rank 0 was found"));
        }
        let rank = joined.map_err(|error| fleet_failed(&error))?;
        lab.observer.note(format!("rank {} of {}: joined {at}", shard.index(), shard.count()));
        Ok(rank)
    }

    /// One run.
    fn run_ordered(
        &self,
        lab: &Lab,
        prepared: Prepared,
        rank: &Arc<JoinedRank>,
        folder: &Path,
    ) -> Result<(), Failed> {
        let tally = Arc::new(Mutex::new(Tally::new(prepared.plan.target.stream)));
        let handle = RunHandle::default();
        let label = format!("rank {} of {} · ", self.shard.index(), self.shard.count());
        let context = RunContext {
            label,
            is_silent: true,
            shard: Some(ShardFacts {
                shard: self.shard,
                fleet: Some(rank.fleet_name().to_owned()),
                clock: rank.clock(),
            }),
            begin: Some(begin_with_fleet(rank, &handle)),
            handle: handle.clone(),
            sinks: vec![Box::new(ProgressCounter(Arc::clone(&tally)))],
            ..RunContext::default()
        };
        let over = Arc::new(AtomicBool::new(false));
        let telling = report_counts(rank, &handle, &tally, &over);
        let measured = prepared.run_in_process(lab, folder, context);
        over.store(true, Ordering::Relaxed);
        if let Some(telling) = telling {
            let _ = telling.join();
        }
        let summary = measured?;
        if handle.is_off.load(Ordering::Relaxed) {
            RunFolder::discard(folder);
            return Err(Failed::target("the other ranks began without this one, or not at all"));
        }
        let line = format!("{} requests, {:?}", summary.requests.scheduled, summary.verdict);
        let _ = rank.report_done(&line);
        Ok(())
    }
}

/// A run as it was ordered, unless this rank would send something else.
fn prepare_same(lab: &Lab, plan: Plan, order: &Order) -> Result<Prepared, Failed> {
    let prepared = prepare_run(lab, plan)?;
    if prepared.workload_hash() != order.workload {
        return Err(Failed::usage("this rank would send different requests than rank 0")
            .hint("every rank needs the same datasets, traces, and tokenizers"));
    }
    Ok(prepared)
}

/// What cannot be handed over is still here, and who leads says that it is missing.
fn hand_over(lab: &Lab, rank: &JoinedRank, folder: &Path, is_shared: bool) {
    let patience = Patience::new(&lab.interrupt).ok();
    let waits = || patience.as_ref().is_none_or(|patience| !patience.has_run_out());
    let handed =
        if is_shared { rank.report_kept() } else { rank.upload(folder, HANDING_OVER, waits) };
    if let Err(error) = handed {
        lab.observer.warn(format!("{error}; this rank's shard is in {}", folder.display()));
    }
}

/// The place of this rank among the shards, where rank 0 and this one share a disk.
fn shared_folder(order: &Order, fleet: &str, meeting: &Meeting) -> Option<PathBuf> {
    let parts = Path::new(&order.folder);
    let is_shared = parts.is_absolute() && marker_path(parts, fleet).is_file();
    is_shared.then(|| shard_folder(parts, meeting.shard.index()))
}

/// The plan, with what each rank settles for itself from its own: it lacks all secrets, and who leads
/// does not say where keys are sent.
fn complete_plan(order: &Order, own: &Plan, check: Check<'_>) -> Result<Plan, Failed> {
    let mut plan = parse_plan(&order.plan).map_err(|error| folder_failed(&error))?;
    let (target, own_target) = (&mut plan.target, &own.target);
    target.url.clone_from(&own_target.url);
    target.headers.clone_from(&own_target.headers);
    target.api_key_env.clone_from(&own_target.api_key_env);
    target.cacert.clone_from(&own_target.cacert);
    target.insecure = own_target.insecure;
    plan.observe.clone_from(&own.observe);
    check(&plan)?;
    Ok(plan)
}

/// Says that this rank is ready, and waits for the word.
fn begin_with_fleet(rank: &Arc<JoinedRank>, handle: &RunHandle) -> Begin {
    let (rank, control) = (Arc::clone(rank), handle.control.clone());
    let is_off = Arc::clone(&handle.is_off);
    let clock = Arc::clone(&handle.clock);
    Box::new(move || {
        let _ = rank.report_ready();
        loop {
            match rank.wait_for_start(LOOK_UP) {
                Start::At { at, clock: offset } => {
                    let _ = clock.set(offset);
                    return at;
                }
                Start::Waiting if !control.is_stopping() => {}
                Start::Waiting | Start::Missed | Start::End | Start::Lost(_) => {
                    // Nothing is sent of a run that begins elsewhere, or nowhere.
                    is_off.store(true, Ordering::Relaxed);
                    control.abort();
                    return now();
                }
            }
        }
    })
}

/// Counts what a rank tells while it runs.
struct ProgressCounter(Arc<Mutex<Tally>>);

impl RunSink for ProgressCounter {
    fn record(&mut self, record: &RequestRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(record);
    }
}

/// Tells rank 0 once a second what was counted, and stops when it says so.
fn report_counts(
    rank: &Arc<JoinedRank>,
    handle: &RunHandle,
    tally: &Arc<Mutex<Tally>>,
    over: &Arc<AtomicBool>,
) -> Option<std::thread::JoinHandle<()>> {
    let (rank, handle, over) = (Arc::clone(rank), handle.clone(), Arc::clone(over));
    let tally = Arc::clone(tally);
    let tell = move || {
        let mut next = now();
        while !over.load(Ordering::Relaxed) {
            if rank.is_aborted() {
                handle.control.abort();
            } else if rank.is_stopping() {
                handle.control.stop();
            }
            if now() >= next {
                next = now() + EVERY;
                rank.report_totals(super::totals::totals_from_handle(&handle, &tally));
            }
            pause(Nanos::from_millis(50));
        }
        rank.report_totals(super::totals::totals_from_handle(&handle, &tally));
    };
    std::thread::Builder::new().name("fleet".to_owned()).spawn(tell).ok()
}

/// Where this rank saves its shard: next to the folder of rank 0, so that both may
/// lie on one disk.
fn own_path(path: &Path, meeting: &Meeting) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-shard-{:04}", meeting.shard.index()));
    path.with_file_name(name)
}

fn ordered_folder(path: &Path, order: &Order) -> PathBuf {
    match &order.kind {
        OrderKind::Run => path.to_owned(),
        OrderKind::Point => path.join(format!("{:04}", order.number)),
    }
}

/// Rank 0 is gone: what there is can be merged by hand.
fn lost_coordinator(last: Option<&Path>) -> Failed {
    let failed = Failed::target("rank 0 stopped before it announced the end");
    match last {
        Some(folder) => failed.hint(format!(
            "this rank's shard is in {}; `goodput merge` combines the folders of all ranks into one run",
            folder.display()
        )),
        None => failed.hint("this rank measured nothing"),
    }
}
