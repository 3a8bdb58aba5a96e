//! Rank 0: gathers the others, says what is measured and when, and makes one result of it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_engine::{Begin, Snapshot};
use goodput_fleet::{
    Coordinator, CoordinatorSettings, Order, OrderKind, PeerLimits, RankPhase, RankState, Totals,
};
use goodput_model::{ClockOffset, Nanos, Plan, ShardFacts};
use goodput_record::{RunFolder, State, plan_text};
use goodput_stats::Summary;

use super::{
    Meeting, check_sharded_plan, fleet_failed, marker_path, resolve_rendezvous, shard_folder,
};
use crate::error::{Failed, folder_failed};
use crate::events::Observer;
use crate::handle::RunHandle;
use crate::interrupt::Patience;
use crate::run::{Lab, Prepared, RunContext, Runner};
use crate::{host, merge};

/// How long ranks may take to prepare a plan: files, tokenizers, the server's first answer.
const PREPARING: Nanos = Nanos::from_millis(180_000);

/// From the word to begin to the first instant: longer than a word takes to the farthest rank.
const AHEAD: Nanos = Nanos::from_millis(500);

/// How long ranks may take, after this one is done, to wait for their answers and hand over what
/// they measured.
const HANDING_OVER: Nanos = Nanos::from_millis(900_000);

/// How long a rank that was lost may take to come back before the next run.
const COMING_BACK: Nanos = Nanos::from_millis(10_000);

/// A record that has not grown for so long will not: a rank that is well adds to it every second.
const STANDS_STILL: Nanos = Nanos::from_millis(5_000);

/// How often the coordinator checks the progress of the others.
const EVERY: Nanos = Nanos::from_millis(200);

/// Rank 0, with the others.
pub struct Leading {
    coordinator: Arc<Coordinator>,
    meeting: Meeting,
    fleet: String,
    /// Whether more than one run follows.
    has_several: bool,
    orders: AtomicU64,
}

impl fmt::Debug for Leading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leading").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.coordinator.announce_end();
    }
}

impl Meeting {
    /// Leads: listens, and waits until all are there, or for as long as was asked.
    pub fn gather_ranks(
        self,
        lab: &Lab,
        plan: &Plan,
        has_several: bool,
    ) -> Result<Leading, Failed> {
        let meeting = self;
        check_sharded_plan(plan, meeting.shard)?;
        let fleet = format!("{}-{:08x}", host::timestamp(), now().0 as u32);
        let settings = CoordinatorSettings {
            of: meeting.shard.count(),
            token: meeting.token.clone(),
            fleet: fleet.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limits: PeerLimits::default(),
        };
        let address = listening_address(&meeting)?;
        let coordinator =
            Coordinator::listen(address, settings).map_err(|error| fleet_failed(&error))?;
        let others = meeting.shard.count() - 1;
        lab.observer.note(format!(
            "rank 0 of {}: listening at {}, waiting for {others} more",
            meeting.shard.count(),
            coordinator.address()
        ));
        lab.interrupt.listen_once().map_err(|error| Failed::internal(error.to_string()))?;
        let mut there_before = 0;
        let deadline = now() + Nanos::from(meeting.join_within);
        let there = coordinator.gather(deadline, |there| {
            if there.len() != there_before {
                there_before = there.len();
                lab.observer.note(format!("{} of {others} have joined", there.len()));
            }
            !lab.interrupt.is_interrupted()
        });
        if lab.interrupt.is_interrupted() {
            coordinator.announce_end();
            return Err(Failed::interrupted("stopped before the other ranks had joined"));
        }
        let coordinator = Arc::new(coordinator);
        let leading =
            Leading { coordinator, meeting, fleet, has_several, orders: AtomicU64::new(0) };
        leading.check_present(&there, &*lab.observer)?;
        Ok(leading)
    }
}

impl Runner for Leading {
    /// A run of all ranks: each measures its shard into a folder of its own, of which one is made at
    /// `path`.
    fn run(
        &self,
        prepared: Prepared,
        lab: &Lab,
        path: &Path,
        context: RunContext,
    ) -> Result<Summary, Failed> {
        RunFolder::check_free(path).map_err(|error| folder_failed(&error))?;
        if self.has_several {
            // One that was lost may come back.
            let deadline = now() + COMING_BACK;
            let there = self.coordinator.gather(deadline, |_| !lab.interrupt.is_interrupted());
            self.check_present(&there, &*lab.observer)?;
        }
        let number = self.orders.fetch_add(1, Ordering::Relaxed) + 1;
        let kind = if self.has_several { OrderKind::Point } else { OrderKind::Run };
        let plan = plan_text(&prepared.plan).map_err(|error| folder_failed(&error))?;
        let parts = path.join(RunFolder::SHARDS);
        let mark = ShardsMarker::create(&parts, &self.fleet)?;
        let folder = mark.relative_folder();
        let order = Order { number, kind, plan, folder, workload: prepared.workload_hash() };
        self.coordinator.prepare(order).map_err(|error| fleet_failed(&error))?;
        let handle = RunHandle::default();
        let minding = self.watch_ranks(&handle);
        let context = RunContext {
            repeat: context.repeat,
            label: format!("{}{} ranks · ", context.label, self.meeting.shard.count()),
            is_silent: context.is_silent,
            shard: Some(ShardFacts {
                shard: self.meeting.shard,
                fleet: Some(self.fleet.clone()),
                clock: Some(ClockOffset::default()),
            }),
            begin: Some(self.begin_all(lab)),
            handle,
            ..RunContext::default()
        };
        let own = prepared.run_in_process(lab, &shard_folder(&parts, 0), context);
        drop(minding);
        if own.is_err() {
            self.coordinator.abort();
        }
        own?;
        let folders = self.collect_shards(lab, &parts)?;
        drop(mark);
        merge::merge_folders(&folders, path, Some(self.meeting.shard.count()), &*lab.observer)
    }
}

impl Leading {
    /// Says who is missing. One run goes on without them; of several, none would be of the load that is
    /// asked about.
    fn check_present(&self, there: &[u32], observer: &dyn Observer) -> Result<(), Failed> {
        let missing = (1..self.meeting.shard.count()).filter(|rank| !there.contains(rank));
        let missing: Vec<String> = missing.map(|rank| rank.to_string()).collect();
        let missing = missing.join(", ");
        for (why, times) in self.coordinator.turned_away() {
            let times = if times == 1 { String::new() } else { format!(" ({times} times)") };
            observer.warn(format!("refused a connection: {why}{times}"));
        }
        match missing.as_str() {
            "" => Ok(()),
            _ if self.has_several => Err(Failed::void(format!(
                "rank {missing} did not join: the run would have a smaller load"
            ))
            .hint("start all ranks again; --resume FOLDER continues a sweep")),
            _ => {
                observer.warn(format!(
                    "starting without rank {missing}: its shard of the load will be missing"
                ));
                Ok(())
            }
        }
    }

    /// Waits until all are ready, and gives the instant at which they begin.
    fn begin_all(&self, lab: &Lab) -> Begin {
        let (coordinator, interrupt) = (Arc::clone(&self.coordinator), lab.interrupt.clone());
        let observer = Arc::clone(&lab.observer);
        Box::new(move || {
            let deadline = now() + PREPARING;
            let ranks = coordinator.wait_ready(deadline, || !interrupt.is_interrupted());
            for rank in &ranks {
                if let Some(why) = not_ready_reason(rank) {
                    observer.warn(format!("rank {} {why}", rank.rank));
                }
            }
            let go = coordinator.announce_start(AHEAD);
            let count = go.ranks.len() + 1;
            let begin = if count == 1 { "rank begins" } else { "ranks begin together" };
            observer.note(format!("{count} {begin}"));
            go.at
        })
    }

    /// Stops the others when this rank stops, and shows what they have done.
    fn watch_ranks(&self, handle: &RunHandle) -> Minding {
        let (coordinator, handle) = (Arc::clone(&self.coordinator), handle.clone());
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let mind = move || {
            let (mut has_stopped, mut has_aborted) = (false, false);
            loop {
                // One more look when it is over: a stop may come last.
                let is_over = flag.load(Ordering::Relaxed);
                let others =
                    coordinator.totals().into_iter().fold(Totals::default(), |mut sum, one| {
                        sum.merge(&one.1);
                        sum
                    });
                handle.live.set_others(to_snapshot(&others));
                *handle.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
                if handle.control.was_told_to_stop() && !has_stopped {
                    has_stopped = true;
                    coordinator.stop();
                }
                if handle.control.was_told_to_abort() && !has_aborted {
                    has_aborted = true;
                    coordinator.abort();
                }
                if is_over {
                    return;
                }
                pause(EVERY);
            }
        };
        // Without a thread others are neither shown nor stopped early, and nothing else is missing.
        let thread = std::thread::Builder::new().name("fleet".to_owned()).spawn(mind).ok();
        Minding { over, thread }
    }

    /// The folders of all parts that there are, of those that began. Who does not want to wait for the
    /// rest has what is here.
    fn collect_shards(&self, lab: &Lab, parts: &Path) -> Result<Vec<PathBuf>, Failed> {
        let patience =
            Patience::new(&lab.interrupt).map_err(|error| Failed::internal(error.to_string()))?;
        let deadline = now() + HANDING_OVER;
        let others = self.meeting.shard.count() as usize - 1;
        lab.observer.note("waiting for the shards of the other ranks".to_owned());
        let mut said = 0;
        let found = self.coordinator.collect(
            |rank| shard_folder(parts, rank),
            deadline,
            |settled| {
                if settled != said && settled < others {
                    said = settled;
                    lab.observer.note(format!("{settled} of {others} have arrived"));
                }
                !patience.has_run_out()
            },
        );
        let ranks = self.coordinator.ranks();
        let has_begun = |rank: u32| ranks.iter().any(|one| one.rank == rank && one.has_begun);
        let mut folders = vec![shard_folder(parts, 0)];
        for (rank, outcome) in found.into_iter().filter(|(rank, _)| has_begun(*rank)) {
            let folder = shard_folder(parts, rank);
            match outcome {
                Ok(folder) => folders.push(folder),
                // It shares our disk, and what it measured is here.
                Err(why) if RunFolder::open(&folder).is_ok() => {
                    lab.observer.warn(format!("rank {rank}: {why}"));
                    wait_closed(&folder, deadline, || !patience.has_run_out());
                    folders.push(folder);
                }
                Err(why) => lab.observer.warn(format!(
                    "nothing came from rank {rank}: {why}; if it measured anything, \
                     add the folder that it printed with `goodput merge`"
                )),
            }
        }
        Ok(folders)
    }
}

/// Waits until a rank that is not heard anymore has closed its record, as long as that grows.
fn wait_closed(folder: &Path, deadline: Nanos, mut look: impl FnMut() -> bool) {
    let size = || {
        let logs = ["requests.log", "server.log"].map(|name| std::fs::metadata(folder.join(name)));
        logs.into_iter().flatten().map(|file| file.len()).sum::<u64>()
    };
    let is_open = || {
        let manifest = RunFolder::open(folder).and_then(|folder| folder.read_manifest());
        manifest.is_ok_and(|manifest| manifest.state == State::Running)
    };
    let (mut last, mut since) = (size(), now());
    while is_open() && now() < deadline.min(since + STANDS_STILL) && look() {
        pause(EVERY);
        let size = size();
        if size != last {
            (last, since) = (size, now());
        }
    }
}

/// A marker file next to the shards, removed when this is dropped.
struct ShardsMarker {
    parts: PathBuf,
    mark: PathBuf,
}

impl ShardsMarker {
    fn create(parts: &Path, fleet: &str) -> Result<Self, Failed> {
        let mark = marker_path(parts, fleet);
        std::fs::create_dir_all(parts).and_then(|()| std::fs::write(&mark, fleet)).map_err(
            |error| {
                Failed::usage(format!("cannot write to `{}`: {error}", parts.display()))
                    .hint("choose another folder with --out")
            },
        )?;
        Ok(Self { parts: parts.to_owned(), mark })
    }

    /// Where the parts belong, from every folder.
    fn relative_folder(&self) -> String {
        std::fs::canonicalize(&self.parts)
            .map_or_else(|_| String::new(), |path| path.to_string_lossy().into_owned())
    }
}

impl Drop for ShardsMarker {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.mark);
    }
}

/// Why a rank does not begin with the others.
fn not_ready_reason(rank: &RankState) -> Option<String> {
    match &rank.phase {
        RankPhase::Ready => None,
        RankPhase::Refused(why) => Some(format!("cannot: {why}")),
        RankPhase::Lost(why) => Some(format!("was lost: {why}")),
        _ => Some("is not ready".to_owned()),
    }
}

fn to_snapshot(totals: &Totals) -> Snapshot {
    Snapshot {
        started: totals.started,
        ok: totals.ended.saturating_sub(totals.failed),
        failed: totals.failed,
        tokens: totals.output_tokens,
        ..Snapshot::default()
    }
}

/// A thread that looks after the others, until this is dropped.
struct Minding {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Minding {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The address to listen on. One that was named as such is meant; a name may mean several here, and may
/// be known to others before it is to this machine: with a token, which keeps strangers out, all of them.
fn listening_address(meeting: &Meeting) -> Result<SocketAddr, Failed> {
    let elsewhere = || {
        Failed::usage(format!("`{}` is not an address of this machine", meeting.at))
            .hint("rank 0 listens at --rendezvous; give its own name or address, or 0.0.0.0")
    };
    let is_own = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    if let Ok(address) = meeting.at.parse::<SocketAddr>() {
        return is_own(&address).then_some(address).ok_or_else(elsewhere);
    }
    let port = meeting.at.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let found = resolve_rendezvous(&meeting.at);
    match (&meeting.token, port, found) {
        (Some(_), Some(port), Ok(found)) if found.iter().any(is_own) => Ok(any_address(port)),
        (Some(_), Some(port), Err(_)) => Ok(any_address(port)),
        (_, _, found) => found?.into_iter().find(is_own).ok_or_else(elsewhere),
    }
}

/// All addresses of this machine, of IPv6 too where it has that.
fn any_address(port: u16) -> SocketAddr {
    let six = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let has_six = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if has_six { six } else { SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)) }
}
