//! `goodput record`: live traffic as a trace.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use goodput_lab::hub::Hub;
use goodput_live::recording::{RecordFigures, TraceLimits, TraceOptions};
use goodput_live::{
    ConnectionLimit, EndReason, LiveObserver, ObserverCommand, RecordOptions, Recorded, Recording,
    SessionEnd,
};
use goodput_model::Nanos;
use goodput_monitor::Ticker;
use goodput_monitor::traffic::{recording_line, recording_page};
use goodput_report::plain;
use tokio::signal::unix::SignalKind;

use crate::args::{RecordArgs, TraceFileArgs};
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{listen, live, output};

/// How often the line is rewritten on a terminal, and printed elsewhere.
const TERMINAL: Nanos = Nanos::from_millis(1_000);
const PLAIN: Nanos = Nanos::from_millis(30_000);

const LOUD: &str = "WARNING: --save-text writes prompts and answers as they are; anyone who can \
                    read the trace can read what users wrote";

/// Records until a limit or a signal ends it.
pub(crate) fn record(args: &RecordArgs) -> Result<ExitCode, Failed> {
    goodput_engine::raise_fd_limit();
    let options = options(args)?;
    live::look_at(&options.proxy.upstream)?;
    let shown = options.proxy.upstream.url.shown();
    // A signal may arrive as soon as the address is printed.
    let (_sender, commands) = live::commands(&[(SignalKind::hangup(), ObserverCommand::Rotate)])?;
    let view = Arc::new(RecordView::new(args));
    let observer = Arc::<RecordView>::clone(&view);
    let recording = Recording::start(options, observer).map_err(|error| live::failed(&error))?;
    let figures = recording.figures().clone();
    view.follow(args, &figures);
    if let Some(address) = args.metrics_listen {
        let figures = figures.clone();
        let page = move |format| recording_page(&figures, format);
        if let Err(failed) = listen::serve(address, args.quiet, page) {
            recording.discard();
            return Err(failed);
        }
    }
    announce(args, &shown);
    let recorded = recording.run(&commands).map_err(|error| live::failed(&error))?;
    view.ticker().wipe();
    end(args, &figures, &recorded, &shown)
}

fn options(args: &RecordArgs) -> Result<RecordOptions, Failed> {
    let upstream = live::upstream(&args.proxy, &args.upstream)?;
    let proxy = live::settings(&args.proxy, upstream)?;
    live::check_metrics(&args.proxy, args.metrics_listen)?;
    let TraceFileArgs { tokenizer, block_tokens, save_text, share, .. } = &args.trace;
    let tokenizer = Hub::new(Arc::new(Printer::new(args.quiet))).tokenizer(tokenizer)?;
    let trace = TraceOptions {
        tokenizer,
        block_tokens: *block_tokens,
        save_text: *save_text,
        share: *share,
        limits: TraceLimits {
            rotate_size: args.trace.rotate_size,
            rotate_every: args.trace.rotate_every.map(Nanos::from),
            max_size: args.trace.max_size,
            max_requests: args.trace.max_requests,
        },
    };
    Ok(RecordOptions {
        proxy,
        output: args.output.clone(),
        trace,
        duration: args.trace.duration,
        keep_passing: args.trace.keep_passing,
        drain: args.proxy.drain,
    })
}

/// What is about to happen.
fn announce(args: &RecordArgs, shown: &str) {
    if args.trace.save_text {
        output::note(LOUD);
    }
    if args.quiet {
        return;
    }
    let file = args.output.display();
    let share = if args.trace.share < 1.0 {
        format!(" ({} % of the sessions)", args.trace.share * 100.0)
    } else {
        String::new()
    };
    output::note(&plain(&format!("recording requests to {shown} in {file}{share}")));
}

/// What the user sees of a recording.
struct RecordView {
    ticker: Mutex<Ticker>,
    traffic: OnceLock<(RecordFigures, Mutex<ConnectionLimit>)>,
}

impl RecordView {
    fn new(args: &RecordArgs) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let every = if is_terminal { TERMINAL } else { PLAIN };
        let ticker = Mutex::new(Ticker::new(args.quiet, is_terminal, every, output::note));
        Self { ticker, traffic: OnceLock::new() }
    }

    /// From now on these figures are shown.
    fn follow(&self, args: &RecordArgs, figures: &RecordFigures) {
        let connections =
            Mutex::new(ConnectionLimit::new(args.proxy.max_connections, &figures.proxy));
        let _ = self.traffic.set((figures.clone(), connections));
    }

    fn ticker(&self) -> MutexGuard<'_, Ticker> {
        self.ticker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveObserver for RecordView {
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
        let Some((figures, connections)) = self.traffic.get() else { return };
        let mut ticker = self.ticker();
        if ticker.is_due() {
            ticker.show(&recording_line(figures));
        }
        let news = connections.lock().unwrap_or_else(PoisonError::into_inner).news();
        if let Some(news) = news {
            ticker.note(&news);
        }
    }
}

/// Says what was recorded.
fn end(
    args: &RecordArgs,
    figures: &RecordFigures,
    recorded: &Recorded,
    shown: &str,
) -> Result<ExitCode, Failed> {
    let counts = &figures.counts;
    let SessionEnd { reason, is_hurried, cut } = recorded.end;
    let connections = ConnectionLimit::new(args.proxy.max_connections, &figures.proxy);
    if args.json {
        output::data(recorded.to_json(counts, &connections).as_bytes())?;
    } else if !args.quiet {
        for line in &recorded.lines(counts, shown) {
            output::note(&plain(line));
        }
        if cut > 0 {
            output::note(&format!("{cut} answers were cut off at the end"));
        }
    }
    if args.trace.save_text {
        output::note(LOUD);
    }
    if let Some(words) = connections.in_words() {
        output::note(&words);
    }
    let lost = counts.lost();
    if lost > 0 {
        output::note(&format!("warning: {lost} requests are missing from the trace"));
    }
    if reason == EndReason::Broken {
        output::note("error: the proxy ended by itself");
        return Ok(ExitCode::from(exit::INTERNAL));
    }
    Ok(ExitCode::from(match (is_hurried, lost) {
        (true, _) => exit::INTERRUPTED,
        (false, 0) => exit::OK,
        _ => exit::VOID,
    }))
}
