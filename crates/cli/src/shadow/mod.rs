//! `goodput shadow`: users get the primary's answers; a candidate gets some of their requests too.

mod asked;
mod collect;
mod likeness;
mod metrics;
mod pairing;
mod progress;
mod result;
mod saved;
mod witness;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_live::{Mirror, Proxy, Tally};
use goodput_model::Nanos;
use goodput_report::plain;
use tokio::signal::unix::SignalKind;

pub(crate) use saved::{html, read};

use crate::args::ShadowArgs;
use crate::error::Failed;
use crate::{compare, listen, live, signals};
use collect::{Board, Collector};
use goodput_lab::host;
use pairing::Pairing;
use progress::Progress;
use saved::{Asked, Keeper};
use witness::{Shadow, Teller};

/// Words that may wait for the collector.
const WORDS: usize = 16_384;

/// How often the main thread looks up.
const EVERY: Duration = Duration::from_millis(50);

/// What goes on, for whoever shows it.
struct Live {
    began: Nanos,
    proxy: Arc<Tally>,
    mirror: Arc<Mirror>,
    board: Arc<Board>,
    /// Requests that clients sent, of the paths that can be mirrored.
    passed: Arc<AtomicU64>,
    /// Answers of the candidate that the collector could not take.
    lost: Arc<AtomicU64>,
}

impl Live {
    /// Requests that clients sent, of the paths that can be mirrored.
    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// As long, or as many pairs, as were asked for.
    Done,
    /// By a signal.
    Stopped,
    /// The proxy did.
    Broken,
}

/// Runs the verb.
pub(crate) fn shadow(args: &ShadowArgs) -> Result<ExitCode, Failed> {
    compare::check_files(&args.verdict.files)?;
    goodput_engine::raise_fd_limit();
    let upstreams = [
        live::upstream(&args.proxy, &args.primary)?,
        live::upstream(&args.proxy, &args.candidate)?,
    ];
    let [primary, candidate] = &upstreams;
    let mut settings = live::settings(&args.proxy, primary.clone())?;
    settings.keep_text = args.verdict.similarity;
    live::check_metrics(&args.proxy, args.shown.metrics_listen)?;
    live::check_loop(args.proxy.listen, candidate)?;
    let asked = asked::asked(args, [primary, candidate])?;
    let mirroring = asked::mirror(args, candidate.clone())?;
    let pairing = Pairing::new(&mirroring.caps);
    live::look_at(primary)?;

    // Whoever sees where it listens may send a signal.
    let ears = ears().map_err(|error| Failed::internal(error.to_string()))?;
    let (words, heard) = sync_channel(WORDS);
    let teller = Teller::new(words);
    let lost = teller.lost();
    let mirror = Mirror::start(mirroring, Arc::new(teller.clone()))
        .map_err(|error| Failed::internal(error.to_string()))?;
    let mirror = Arc::new(mirror);
    let began = now();
    let passed = Arc::default();
    let witness = Shadow { teller, mirror: Arc::clone(&mirror), passed: Arc::clone(&passed) };
    let proxy = live::start(settings, Arc::new(witness))?;
    // An address that cannot be had leaves no folder behind.
    let keeper = Keeper::create(&folder_path(args.shown.out.as_deref()), asked.clone())?;
    let board = Arc::new(Board::new());
    let live = Arc::new(Live {
        began,
        proxy: Arc::clone(proxy.tally()),
        mirror,
        board: Arc::clone(&board),
        passed,
        lost,
    });
    let progress = Progress::new(&args.shown);
    let is_over = Arc::new(AtomicBool::new(false));
    let collector = Collector {
        epoch: began,
        pairing,
        keeper,
        board,
        say: result::so_far(&live, &asked, progress.screen()),
    };
    let flag = Arc::clone(&is_over);
    let collecting = std::thread::Builder::new()
        .name("collector".to_owned())
        .spawn(move || collector.run(&heard, &flag))
        .map_err(|error| Failed::internal(error.to_string()))?;
    if let Some(address) = args.shown.metrics_listen {
        let own = Arc::clone(&live);
        listen::serve(address, args.shown.quiet, move |format| metrics::page(&own, format))?;
    }
    let ended = go_on(args, &live, (proxy, progress, ears), &asked);
    is_over.store(true, Ordering::Relaxed);
    let keeper = collecting.join().map_err(|_| Failed::internal("the collector broke"))?;
    result::give(args, &asked, &live, (keeper, ended))
}

/// Passes on until it is over, and drains.
fn go_on(
    args: &ShadowArgs,
    live: &Arc<Live>,
    (proxy, mut progress, ears): (Proxy, Progress, signals::Ears),
    asked: &Asked,
) -> Ended {
    let hello = format!(
        "answers come from {}; {} of what is asked goes to {} too",
        asked.sides[0].target,
        result::percent(asked.share),
        asked.sides[1].target
    );
    let end = args.duration.map(|time| live.began + Nanos::from(time));
    let mut ended = Ended::Broken;
    let mut draining: Option<JoinHandle<()>> = None;
    let mut proxy = Some(proxy);
    let mut crowd = live::Crowd::new(&args.proxy, &live.proxy);
    progress.say(&plain(&hello));
    let look = |heard: Option<SignalKind>| {
        if heard == Some(switch()) {
            live.mirror.switch();
        }
        progress.show(live);
        if let Some(news) = crowd.news() {
            progress.note(&news);
        }
        let is_stopped = heard.is_some_and(|kind| stops().contains(&kind));
        if let Some(draining) = &draining {
            return !draining.is_finished() && !is_stopped;
        }
        let is_stopped = is_stopped || progress.is_stopped();
        let is_done = end.is_some_and(|end| now() >= end)
            || args.pairs.is_some_and(|pairs| live.board.pairs() >= pairs);
        let is_running = proxy.as_ref().is_some_and(Proxy::is_running);
        ended = match (is_stopped, is_done, is_running) {
            (true, ..) => Ended::Stopped,
            (_, true, _) => Ended::Done,
            (_, _, false) => Ended::Broken,
            _ => return true,
        };
        progress.say("draining: no new requests; waiting for answers (again to stop at once)");
        draining = proxy.take().and_then(|proxy| drain(proxy, live, args.proxy.drain));
        draining.is_some()
    };
    ears.hear(EVERY, look);
    // What is still under way with the candidate ends here.
    live.mirror.drain(Duration::ZERO);
    progress.end();
    if let Some(words) = crowd.in_words() {
        progress.note(&words);
    }
    ended
}

/// What ends it.
fn stops() -> [SignalKind; 2] {
    [SignalKind::interrupt(), SignalKind::terminate()]
}

/// What turns mirroring off, and on again.
fn switch() -> SignalKind {
    SignalKind::user_defined1()
}

/// Hears of signals from now on.
fn ears() -> std::io::Result<signals::Ears> {
    // A limit on the size of files, or a terminal that closes, ends a process that does not hear of
    // it; users go on.
    let too_large = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let [interrupt, terminate] = stops();
    signals::Ears::new(&[interrupt, terminate, switch(), too_large, SignalKind::hangup()])
}

/// Lets what is under way come to its end, on a thread of its own.
fn drain(proxy: Proxy, live: &Arc<Live>, limit: Duration) -> Option<JoinHandle<()>> {
    let mirror = Arc::clone(&live.mirror);
    let drain = move || {
        let mirroring =
            std::thread::Builder::new().name("drain".to_owned()).spawn(move || mirror.drain(limit));
        proxy.drain(limit);
        if let Ok(mirroring) = mirroring {
            let _ = mirroring.join();
        }
    };
    std::thread::Builder::new().name("drain".to_owned()).spawn(drain).ok()
}

/// `--out`, or a name under `runs/` that is still free.
fn folder_path(out: Option<&Path>) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let name = format!("{}-live-shadow", host::timestamp().replace(':', "-"));
    let first = Path::new("runs").join(&name);
    let mut others = (2..1000).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    if first.exists() { others.find(|path| !path.exists()).unwrap_or(first) } else { first }
}
