//! A client that is led: prepares what it is told, begins with the others, and hands over what it
//! measured. What it measured stays on its own disk whatever becomes of client 0.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use goodput_clock::{now, pause};
use goodput_engine::Begin;
use goodput_fleet::{Member, MemberSettings, Next, Order, OrderKind, Start};
use goodput_model::{LogHistogram, Nanos, Plan, RequestRecord, ShardFacts};
use goodput_record::{RunFolder, plan_of};
use goodput_stats::RequestTally;

use super::{Meeting, fleet_failed, mark, part};
use crate::error::{Failed, folder_failed};
use crate::events::RunSink;
use crate::handle::RunHandle;
use crate::host;
use crate::interrupt::Patience;
use crate::run::{Lab, Prepared, RunContext, prepare};

/// How long to wait for a word before looking at other things.
const LOOK_UP: Nanos = Nanos::from_millis(100);

/// How often what was counted is told.
const EVERY: Nanos = Nanos::from_millis(1_000);

/// How long handing over may take.
const HANDING_OVER: Nanos = Nanos::from_millis(900_000);

/// What is counted of its requests.
type Tally = RequestTally<LogHistogram>;

/// How a client that was led ended.
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
    /// Does what client 0 says until it says that nothing follows. Where requests go, and with which
    /// keys, its own plan says: no other rank does.
    pub fn follow(
        &self,
        mut lab: Lab,
        own: &Plan,
        path: &Path,
        check: Check<'_>,
    ) -> Result<Followed, Failed> {
        lab.is_led = true;
        let lab = &lab;
        let member = Arc::new(self.join(lab)?);
        let path = own_path(path, self);
        let mut last = None;
        let mut worst = Followed::Done;
        loop {
            match member.next(LOOK_UP) {
                Next::Nothing if lab.interrupt.is_interrupted() => {
                    return Ok(Followed::Interrupted);
                }
                Next::Nothing => {}
                Next::End if last.is_none() && worst == Followed::Done => {
                    return Err(Failed::target(
                        "rank 0 (the coordinator) stopped before anything was measured",
                    )
                    .hint("its output says why"));
                }
                Next::End => return Ok(worst),
                Next::Lost(why) => {
                    lab.observer.warn(format!("lost the connection to rank 0: {why}"));
                    return Err(lost(last.as_deref()));
                }
                Next::Order(order) => {
                    let shared = shared(&order, member.fleet(), self);
                    let folder = shared.clone().unwrap_or_else(|| folder(&path, &order));
                    let measured = complete(&order, own, check)
                        .and_then(|plan| prepare_same(lab, plan, &order))
                        .and_then(|prepared| self.carry_out(lab, prepared, &member, &folder));
                    match measured {
                        Ok(()) => {
                            hand_over(lab, &member, &folder, shared.is_some());
                            last = Some(folder);
                        }
                        Err(failed) => {
                            let _ = member.refuse(&failed.to_string());
                            lab.observer.warn(failed.to_string());
                            worst = Followed::Refused;
                        }
                    }
                }
            }
        }
    }

    fn join(&self, lab: &Lab) -> Result<Member, Failed> {
        let Meeting { shard, at, token, join_within } = self;
        lab.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
        let settings = MemberSettings {
            shard: *shard,
            token: token.clone(),
            host: host::name(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            deadline: now() + Nanos::from(*join_within),
            clocks: goodput_clock::now_and_unix,
        };
        let joined = Member::join(at, &settings, |_| !lab.interrupt.is_interrupted());
        if lab.interrupt.is_interrupted() {
            return Err(Failed::interrupted("stopped before rank 0 was found"));
        }
        let member = joined.map_err(|error| fleet_failed(&error))?;
        lab.observer.note(format!("rank {} of {}: joined {at}", shard.index(), shard.count()));
        Ok(member)
    }

    /// One run.
    fn carry_out(
        &self,
        lab: &Lab,
        prepared: Prepared,
        member: &Arc<Member>,
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
                fleet: Some(member.fleet().to_owned()),
                clock: member.clock(),
            }),
            begin: Some(begin(member, &handle)),
            handle: handle.clone(),
            sinks: vec![Box::new(ProgressCounter(Arc::clone(&tally)))],
            ..RunContext::default()
        };
        let over = Arc::new(AtomicBool::new(false));
        let telling = tell(member, &handle, &tally, &over);
        let measured = prepared.run_here(lab, folder, context);
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
        let _ = member.done(&line);
        Ok(())
    }
}

/// A run as it was ordered, unless this client would send something else.
fn prepare_same(lab: &Lab, plan: Plan, order: &Order) -> Result<Prepared, Failed> {
    let prepared = prepare(lab, plan)?;
    if prepared.workload_hash() != order.workload {
        return Err(Failed::usage("this rank would send different requests than rank 0")
            .hint("every rank needs the same datasets, traces, and tokenizers"));
    }
    Ok(prepared)
}

/// What cannot be handed over is still here, and who leads says that it is missing.
fn hand_over(lab: &Lab, member: &Member, folder: &Path, is_shared: bool) {
    let patience = Patience::new(&lab.interrupt).ok();
    let waits = || patience.as_ref().is_none_or(|patience| !patience.is_over());
    let handed = if is_shared { member.keep() } else { member.upload(folder, HANDING_OVER, waits) };
    if let Err(error) = handed {
        lab.observer.warn(format!("{error}; this rank's shard is in {}", folder.display()));
    }
}

/// The place of this client among the parts, where client 0 and this one share a disk.
fn shared(order: &Order, fleet: &str, meeting: &Meeting) -> Option<PathBuf> {
    let parts = Path::new(&order.folder);
    let is_shared = parts.is_absolute() && mark(parts, fleet).is_file();
    is_shared.then(|| part(parts, meeting.shard.index()))
}

/// The plan, with what each client settles for itself from its own: it lacks all secrets, and who leads
/// does not say where keys are sent.
fn complete(order: &Order, own: &Plan, check: Check<'_>) -> Result<Plan, Failed> {
    let mut plan = plan_of(&order.plan).map_err(|error| folder_failed(&error))?;
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

/// Says that this client is ready, and waits for the word.
fn begin(member: &Arc<Member>, handle: &RunHandle) -> Begin {
    let (member, control) = (Arc::clone(member), handle.control.clone());
    let is_off = Arc::clone(&handle.is_off);
    let clock = Arc::clone(&handle.clock);
    Box::new(move || {
        let _ = member.ready();
        loop {
            match member.wait_go(LOOK_UP) {
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

/// Counts what a client tells while it runs.
struct ProgressCounter(Arc<Mutex<Tally>>);

impl RunSink for ProgressCounter {
    fn record(&mut self, record: &RequestRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(record);
    }
}

/// Tells client 0 once a second what was counted, and stops when it says so.
fn tell(
    member: &Arc<Member>,
    handle: &RunHandle,
    tally: &Arc<Mutex<Tally>>,
    over: &Arc<AtomicBool>,
) -> Option<std::thread::JoinHandle<()>> {
    let (member, handle, over) = (Arc::clone(member), handle.clone(), Arc::clone(over));
    let tally = Arc::clone(tally);
    let tell = move || {
        let mut next = now();
        while !over.load(Ordering::Relaxed) {
            if member.is_aborted() {
                handle.control.abort();
            } else if member.is_stopping() {
                handle.control.stop();
            }
            if now() >= next {
                next = now() + EVERY;
                member.report(super::totals::from_handle(&handle, &tally));
            }
            pause(Nanos::from_millis(50));
        }
        member.report(super::totals::from_handle(&handle, &tally));
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

fn folder(path: &Path, order: &Order) -> PathBuf {
    match &order.kind {
        OrderKind::Run => path.to_owned(),
        OrderKind::Point => path.join(format!("{:04}", order.number)),
    }
}

/// Client 0 is gone: what there is can be merged by hand.
fn lost(last: Option<&Path>) -> Failed {
    let failed = Failed::target("rank 0 stopped before it announced the end");
    match last {
        Some(folder) => failed.hint(format!(
            "this rank's shard is in {}; `goodput merge` combines the folders of all ranks into one run",
            folder.display()
        )),
        None => failed.hint("this rank measured nothing"),
    }
}
