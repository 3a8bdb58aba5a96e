//! What the user sees of a shadow: the progress line or the screen.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goodput_campaign::compare::Comparison;
use goodput_campaign::shadow::Pair;
use goodput_live::shadow::ShadowFigures;
use goodput_live::{ConnectionLimit, LiveObserver, MirrorStanding, ObserverCommand};
use goodput_model::MetricsFormat;
use goodput_monitor::Ticker;
use goodput_monitor::traffic::{ShadowProgress, standing_text};
use goodput_report::escape_control;

use crate::args::ShadowArgs;
use crate::screen::{Progress, Screen};
use crate::signals::Signals;
use crate::{live, output, terminal};

/// Shows the progress of a shadow.
pub(super) struct ShadowView {
    ticker: Mutex<Ticker>,
    screen: Option<Screen>,
    /// The user's wish to stop, by a key of the screen.
    signals: Signals,
    commands: Mutex<Sender<ObserverCommand>>,
    is_stopped: AtomicBool,
    traffic: OnceLock<PassingTraffic>,
    progress: ShadowProgress,
}

/// Traffic that passes through the proxy.
struct PassingTraffic {
    figures: Arc<ShadowFigures>,
    told: Mutex<TrafficNotes>,
}

/// Notes about the traffic.
struct TrafficNotes {
    connections: ConnectionLimit,
    standing: MirrorStanding,
}

impl ShadowView {
    pub(super) fn new(args: &ShadowArgs, commands: Sender<ObserverCommand>) -> Self {
        let signals = Signals::default();
        let (how, quiet) = (args.shown.screen, args.shown.quiet);
        let progress = Progress::new(how, quiet, "shadow", &signals);
        let ticker = Ticker::for_line(quiet, progress.rewrites_line(), output::print_note);
        let screen = progress.screen().cloned();
        let ticker = if screen.is_some() { ticker.hidden_by_screen() } else { ticker };
        Self {
            ticker: Mutex::new(ticker),
            screen,
            signals,
            commands: Mutex::new(commands),
            is_stopped: AtomicBool::new(false),
            traffic: OnceLock::new(),
            progress: ShadowProgress::default(),
        }
    }

    /// Shows these figures from now on.
    pub(super) fn follow(&self, args: &ShadowArgs, figures: &Arc<ShadowFigures>) {
        let connections = ConnectionLimit::new(args.proxy.max_connections, &figures.proxy);
        let told = Mutex::new(TrafficNotes { connections, standing: MirrorStanding::Going });
        let _ = self.traffic.set(PassingTraffic { figures: Arc::clone(figures), told });
    }

    pub(super) fn ticker(&self) -> MutexGuard<'_, Ticker> {
        lock(&self.ticker)
    }

    /// The page of metrics as it is now.
    pub(super) fn page(&self, figures: &ShadowFigures, format: MetricsFormat) -> String {
        self.progress.metrics_page(figures, format)
    }

    /// A key of the screen stops it like a signal, once.
    fn check_keys(&self) {
        let is_new =
            self.signals.is_interrupted() && !self.is_stopped.swap(true, Ordering::Relaxed);
        if is_new {
            let _ = lock(&self.commands).send(ObserverCommand::Stop);
        }
    }

    fn show_traffic(&self, figures: &ShadowFigures) {
        let text = self.progress.progress_line(figures);
        if let Some(screen) = &self.screen
            && screen.show_traffic(text.clone(), self.progress.live_view(figures))
        {
            return;
        }
        self.ticker().show(&text);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveObserver for ShadowView {
    fn note(&self, text: &str) {
        self.ticker().print(&escape_control(text));
    }

    fn warn(&self, text: &str) {
        self.ticker().print_always(&escape_control(text));
    }

    fn listening(&self, address: SocketAddr, is_encrypted: bool) {
        live::print_listening(address, is_encrypted);
    }

    fn tick(&self) {
        self.check_keys();
        let Some(PassingTraffic { figures, told }) = self.traffic.get() else { return };
        let mut told = lock(told);
        let standing = figures.mirror.standing();
        if std::mem::replace(&mut told.standing, standing) != standing {
            self.ticker().print_always(standing_text(standing));
        }
        let is_due = self.ticker().is_due();
        if is_due {
            self.show_traffic(figures);
        }
        if let Some(news) = told.connections.first_warning() {
            self.ticker().print_always(&news);
        }
    }

    fn pair(&self, pair: &Pair) {
        self.progress.add(pair);
    }

    fn comparison_so_far(&self, comparison: &Arc<Comparison>) {
        if let Some(screen) = &self.screen {
            screen.set_comparison(comparison, 0.0);
        }
        self.progress.set_comparison(comparison);
    }

    fn passing_ended(&self) {
        terminal::close_screen();
        self.ticker().clear();
        let words =
            self.traffic.get().and_then(|traffic| lock(&traffic.told).connections.closed_text());
        if let Some(words) = words {
            self.ticker().print_always(&words);
        }
    }
}
