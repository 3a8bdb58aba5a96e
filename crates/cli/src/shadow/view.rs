//! What the user sees of a shadow: the progress line or the screen, and the figures of both sides.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::Pair;
use goodput_clock::now;
use goodput_live::shadow::ShadowFigures;
use goodput_live::{Command, LiveObserver, Standing};
use goodput_model::Nanos;

use goodput_monitor::metrics::MetricsTally;
use goodput_monitor::{LatencyView, LiveRunView, RunPhase, RunTally, Ticker};
use goodput_report::plain;

use crate::args::ShadowArgs;
use crate::live::Crowd;
use crate::screen::{Progress, Screen};
use crate::signals::Signals;
use crate::{live, output, terminal};

/// Changes on the progress line at most.
const MOST_CHANGES: usize = 3;

/// Hears of a shadow, and shows it.
pub(super) struct ShadowView {
    ticker: Mutex<Ticker>,
    screen: Option<Screen>,
    /// The user's wish to stop, by a key of the screen.
    signals: Signals,
    commands: Mutex<Sender<Command>>,
    is_stopped: AtomicBool,
    traffic: OnceLock<Traffic>,
    pairs: Mutex<PairFigures>,
}

/// What passes, and what was said of it.
struct Traffic {
    figures: Arc<ShadowFigures>,
    told: Mutex<(Crowd, Standing)>,
}

/// Figures of the pairs: the primary's side and the candidate's.
pub(super) struct PairFigures {
    pub(super) sides: [MetricsTally; 2],
    /// The same with percentiles, for a screen.
    shown: [RunTally; 2],
    /// What pairs say so far, and in words.
    pub(super) so_far: Option<Arc<Comparison>>,
    in_words: String,
}

impl ShadowView {
    pub(super) fn new(args: &ShadowArgs, commands: Sender<Command>) -> Self {
        let signals = Signals::default();
        let (how, quiet) = (args.shown.screen, args.shown.quiet);
        let progress = Progress::of(how, quiet, "shadow", &signals);
        let ticker = Ticker::of_line(quiet, progress.is_rewritten(), output::note);
        let screen = progress.screen().cloned();
        let ticker = if screen.is_some() { ticker.behind_screen() } else { ticker };
        Self {
            ticker: Mutex::new(ticker),
            screen,
            signals,
            commands: Mutex::new(commands),
            is_stopped: AtomicBool::new(false),
            traffic: OnceLock::new(),
            pairs: Mutex::new(PairFigures {
                sides: [MetricsTally::new(true), MetricsTally::new(true)],
                shown: [RunTally::new(true), RunTally::new(true)],
                so_far: None,
                in_words: String::new(),
            }),
        }
    }

    /// From now on these figures are shown.
    pub(super) fn follow(&self, args: &ShadowArgs, figures: &Arc<ShadowFigures>) {
        let crowd = Crowd::new(&args.proxy, &figures.proxy);
        let told = Mutex::new((crowd, Standing::Going));
        let _ = self.traffic.set(Traffic { figures: Arc::clone(figures), told });
    }

    pub(super) fn ticker(&self) -> MutexGuard<'_, Ticker> {
        lock(&self.ticker)
    }

    /// What is known of the pairs.
    pub(super) fn pairs(&self) -> MutexGuard<'_, PairFigures> {
        lock(&self.pairs)
    }

    /// A key of the screen stops it like a signal, once.
    fn check_keys(&self) {
        let is_new =
            self.signals.is_interrupted() && !self.is_stopped.swap(true, Ordering::Relaxed);
        if is_new {
            let _ = lock(&self.commands).send(Command::Stop);
        }
    }

    fn show(&self, figures: &ShadowFigures) {
        let text = line(figures, &self.pairs().in_words);
        if let Some(screen) = &self.screen {
            let run = run(figures, |elapsed| self.latencies(elapsed));
            if screen.show_traffic(text.clone(), run) {
                return;
            }
        }
        self.ticker().show(&text);
    }

    /// Latencies of both sides, so long after the beginning.
    fn latencies(&self, at: Nanos) -> Vec<LatencyView> {
        let of = |name: &'static str, tally: &RunTally| {
            let own = tally.latencies(at).into_iter();
            own.map(move |one| LatencyView { name: format!("{} {name}", one.name), ..one })
        };
        let pairs = self.pairs();
        let [primary, candidate] = &pairs.shown;
        of("primary", primary).zip(of("candidate", candidate)).flat_map(|(a, b)| [a, b]).collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveObserver for ShadowView {
    fn note(&self, text: &str) {
        self.ticker().say(&plain(text));
    }

    fn warn(&self, text: &str) {
        self.ticker().note(&plain(text));
    }

    fn listening(&self, address: SocketAddr, is_encrypted: bool) {
        live::say_listening(address, is_encrypted);
    }

    fn tick(&self) {
        self.check_keys();
        let Some(Traffic { figures, told }) = self.traffic.get() else { return };
        let mut told = lock(told);
        let standing = figures.mirror.standing();
        if std::mem::replace(&mut told.1, standing) != standing {
            self.ticker().note(in_words(standing));
        }
        let is_due = self.ticker().is_due();
        if is_due {
            self.show(figures);
        }
        if let Some(news) = told.0.news() {
            self.ticker().note(&news);
        }
    }

    fn pair(&self, pair: &Pair) {
        let mut pairs = self.pairs();
        for (side, record) in [&pair.primary, &pair.candidate].into_iter().enumerate() {
            pairs.sides[side].add(record);
            pairs.shown[side].add(record);
        }
    }

    fn so_far(&self, comparison: &Arc<Comparison>) {
        if let Some(screen) = &self.screen {
            screen.compare(comparison, 0.0);
        }
        let rows = goodput_report::compare_so_far(comparison).into_iter().flat_map(|one| one.rows);
        let rows = rows.filter(|row| row.figure.starts_with("p50")).take(MOST_CHANGES);
        let words: Vec<_> = rows.map(|row| format!("{} {}", row.figure, row.change)).collect();
        let mut pairs = self.pairs();
        pairs.in_words = words.join(", ");
        pairs.so_far = Some(Arc::clone(comparison));
    }

    fn passed(&self) {
        terminal::close();
        self.ticker().wipe();
        let words = self.traffic.get().and_then(|traffic| lock(&traffic.told).0.in_words());
        if let Some(words) = words {
            self.ticker().note(&words);
        }
    }
}

/// What is said when mirroring stops or goes on.
fn in_words(standing: Standing) -> &'static str {
    match standing {
        Standing::Going => "mirroring goes on",
        Standing::SwitchedOff => "mirroring is switched off (SIGUSR1 switches it on again)",
        Standing::Paused => {
            "warning: mirroring paused: too many of the candidate's last answers failed; \
             one request tries it again after a while (--stop-at-errors, --retry-after)"
        }
    }
}

fn line(figures: &ShadowFigures, so_far: &str) -> String {
    let tally = &figures.mirror;
    let dropped: u64 = tally.dropped().map(|(_, count)| count).sum();
    let mut line = format!(
        "{:6.1} s · {} passed · {} mirrored · {} pairs · {dropped} dropped · {} candidate errors",
        (now() - figures.began).as_secs(),
        tally.passed(),
        tally.sent(),
        figures.pairs(),
        tally.failed(),
    );
    match tally.standing() {
        Standing::Going => {}
        Standing::SwitchedOff => line.push_str(" · switched off"),
        Standing::Paused => line.push_str(" · paused"),
    }
    if !so_far.is_empty() {
        line.push_str(" · so far ");
        line.push_str(so_far);
    }
    line
}

/// The same for a screen: what passes, with the latencies of both sides.
fn run(figures: &ShadowFigures, latencies: impl FnOnce(Nanos) -> Vec<LatencyView>) -> LiveRunView {
    let elapsed = now() - figures.began;
    let tally = &figures.mirror;
    LiveRunView {
        label: "live traffic".to_owned(),
        phase: RunPhase::Measured,
        elapsed_s: elapsed.as_secs(),
        in_flight: figures.proxy.in_flight.get(),
        sent: tally.passed(),
        ok: tally.ok(),
        failed: tally.failed(),
        latencies: latencies(elapsed),
        ..LiveRunView::default()
    }
}
