//! A shadow: clients get the primary's answers; a candidate gets some of their requests too.
//!
//! `mirror` is the proxy's witness: it sends chosen requests to the candidate and tells of both answers
//! as a `half` each. `collector`, on a thread of its own, puts halves together (`pairing`) and keeps
//! each pair as two records (`store`).

mod collector;
mod figures;
mod half;
mod likeness;
mod mirror;
mod pairing;
mod store;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_campaign::compare::{CompareState, Comparison};
use goodput_clock::now;
use goodput_model::Nanos;

use crate::error::LiveError;
use crate::observer::{LiveObserver, ObserverCommand};
use crate::proxy::{Drained, Proxy, Settings};
use crate::session::{self, EndReason, ProxySession};
use collector::Collector;
use pairing::Pairing;

pub use figures::{ShadowFigures, percent_text};
pub use half::{CandidateAnswer, Half, HalfSender, MemoryPermit};
pub use mirror::{
    By, Caps, Dropped, HeadRules, Mirror, MirrorSettings, MirrorStanding, MirrorTally, Rules,
    StopAt,
};
pub use store::{PairStore, ShadowPlan, TextPage, read_shadow};

/// Everything about a shadow.
pub struct ShadowOptions {
    /// The proxy in front of the primary.
    pub proxy: Settings,
    /// What the candidate is sent.
    pub mirror: MirrorSettings,
    /// What was asked, for the folder.
    pub plan: ShadowPlan,
    /// Where the folder is made.
    pub folder: PathBuf,
    /// What `report.txt` says.
    pub page: TextPage,
    /// How long it takes, where it ends by itself.
    pub duration: Option<Duration>,
    /// Pairs that are enough.
    pub pairs: Option<u64>,
    /// How long answers are waited for at the end.
    pub drain: Duration,
}

/// What a shadow said in the end.
#[derive(Debug)]
pub struct ShadowResult {
    /// What all pairs say.
    pub comparison: Comparison,
    /// Where they are.
    pub folder: PathBuf,
}

/// A shadow that has begun: clients can connect.
pub struct Shadow {
    proxy: Proxy,
    collecting: JoinHandle<PairStore>,
    is_over: Arc<AtomicBool>,
    traffic: ShadowTraffic,
}

impl Shadow {
    /// Starts the mirror, the proxy and the collector, and makes the folder.
    pub fn start(
        options: ShadowOptions,
        observer: Arc<dyn LiveObserver>,
    ) -> Result<Self, LiveError> {
        let ShadowOptions { proxy, mirror, plan, folder, page, duration, pairs, drain } = options;
        let pairing = Pairing::new(&mirror.caps);
        let (halves, queue) = HalfSender::new();
        let mirror = Arc::new(Mirror::start(mirror, halves.clone())?);
        let began = now();
        let witness = Arc::<Mirror>::clone(&mirror);
        let proxy = session::start_proxy(proxy, witness, &*observer)?;
        // An address that cannot be had leaves no folder behind.
        let store = PairStore::create(&folder, plan, page, Arc::clone(&observer))?;
        let figures = Arc::new(ShadowFigures {
            began,
            proxy: Arc::clone(proxy.tally()),
            mirror: Arc::clone(mirror.tally()),
            halves,
            pairs: AtomicU64::new(0),
            unpaired: AtomicU64::new(0),
            unjudged: AtomicU64::new(0),
        });
        let collector = Collector {
            pairing,
            store,
            figures: Arc::clone(&figures),
            observer: Arc::clone(&observer),
            models: BTreeSet::new(),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let collecting = std::thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || collector.run(&queue, &flag))?;
        let end = duration.map(|duration| began + Nanos::from(duration));
        let traffic = ShadowTraffic { mirror, figures, observer, end, pairs, drain };
        Ok(Self { proxy, collecting, is_over, traffic })
    }

    /// What goes on.
    pub fn figures(&self) -> &Arc<ShadowFigures> {
        &self.traffic.figures
    }

    /// Passes on until it is over; what the pairs say.
    pub fn run(self, commands: &Receiver<ObserverCommand>) -> Result<ShadowResult, LiveError> {
        let Self { proxy, collecting, is_over, mut traffic } = self;
        let end = session::run_session(proxy, &mut traffic, commands);
        // Requests in flight to the candidate end here.
        traffic.mirror.drain(Duration::ZERO);
        traffic.observer.passing_ended();
        is_over.store(true, Ordering::Relaxed);
        let store = collecting.join().map_err(|_| LiveError::Broken("the collector failed"))?;
        let has_end = traffic.end.is_some() || traffic.pairs.is_some();
        let state = match end.reason {
            // Without an end of its own a command is how it ends.
            EndReason::Stopped if has_end => CompareState::Interrupted,
            EndReason::Stopped | EndReason::Complete => CompareState::Complete,
            EndReason::Broken => CompareState::TargetLost,
        };
        let (facts, shadow) = traffic.figures.comparison_facts(store.plan(), state);
        let folder = store.path().to_owned();
        Ok(ShadowResult { comparison: store.finish(facts, &shadow), folder })
    }
}

/// A shadow while traffic passes.
struct ShadowTraffic {
    mirror: Arc<Mirror>,
    figures: Arc<ShadowFigures>,
    observer: Arc<dyn LiveObserver>,
    /// When it ends by itself.
    end: Option<Nanos>,
    /// Pairs that are enough.
    pairs: Option<u64>,
    drain: Duration,
}

impl ProxySession for ShadowTraffic {
    fn handle_command(&mut self, command: Option<ObserverCommand>, _: Option<&Proxy>) -> bool {
        if command == Some(ObserverCommand::Switch) {
            self.mirror.toggle();
        }
        self.observer.tick();
        self.end.is_some_and(|end| now() >= end)
            || self.pairs.is_some_and(|pairs| self.figures.pair_count() >= pairs)
    }

    fn drain(&mut self, proxy: Proxy) -> io::Result<JoinHandle<Drained>> {
        self.observer.note(
            "draining: no new requests; waiting for answers (press Ctrl-C again to stop now)",
        );
        let (mirror, limit) = (Arc::clone(&self.mirror), self.drain);
        let thread = || std::thread::Builder::new().name("drain".to_owned());
        let drain = move || {
            let mirroring = thread().spawn(move || mirror.drain(limit));
            let drained = proxy.drain(limit);
            if let Ok(mirroring) = mirroring {
                let _ = mirroring.join();
            }
            drained
        };
        thread().spawn(drain)
    }
}
