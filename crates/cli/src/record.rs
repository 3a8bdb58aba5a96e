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
use goodput_report::escape_control;
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
    let options = record_options(args)?;
    live::warn_unless_reachable(&options.proxy.upstream)?;
    let shown = options.proxy.upstream.url.shown();
    // A signal may arrive as soon as the address is printed.
    let (_sender, commands) =
        live::signal_commands(&[(SignalKind::hangup(), ObserverCommand::Rotate)])?;
    let view = Arc::new(RecordView::new(args));
    let observer = Arc::<RecordView>::clone(&view);
    let recording =
        Recording::start(options, observer).map_err(|error| live::live_failure(&error))?;
    let figures = recording.figures().clone();
    view.follow(args, &figures);
    if let Some(address) = args.metrics_listen {
        let figures = figures.clone();
        let page = move |format| recording_page(&figures, format);
        if let Err(failed) = listen::serve_metrics_page(address, args.quiet, page) {
            recording.discard();
            return Err(failed);
        }
    }
    print_intent(args, &shown);
    let recorded = recording.run(&commands).map_err(|error| live::live_failure(&error))?;
    view.ticker().clear();
    print_recorded(args, &figures, &recorded, &shown)
}

fn record_options(args: &RecordArgs) -> Result<RecordOptions, Failed> {
    let upstream = live::build_upstream(&args.proxy, &args.upstream)?;
    let proxy = live::proxy_settings(&args.proxy, upstream)?;
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

/// Says what will be recorded, and where.
fn print_intent(args: &RecordArgs, shown: &str) {
    if args.trace.save_text {
        output::print_note(LOUD);
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
    output::print_note(&escape_control(&format!("recording requests to {shown} in {file}{share}")));
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
        let ticker = Mutex::new(Ticker::new(args.quiet, is_terminal, every, output::print_note));
        Self { ticker, traffic: OnceLock::new() }
    }

    /// Shows these figures from now on.
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
        self.ticker().print(&escape_control(text));
    }

    fn warn(&self, text: &str) {
        self.ticker().print_always(&escape_control(text));
    }

    fn listening(&self, address: SocketAddr, is_encrypted: bool) {
        live::print_listening(address, is_encrypted);
    }

    fn tick(&self) {
        let Some((figures, connections)) = self.traffic.get() else { return };
        let mut ticker = self.ticker();
        if ticker.is_due() {
            ticker.show(&recording_line(figures));
        }
        let news = connections.lock().unwrap_or_else(PoisonError::into_inner).first_warning();
        if let Some(news) = news {
            ticker.print_always(&news);
        }
    }
}

/// Prints what was recorded.
fn print_recorded(
    args: &RecordArgs,
    figures: &RecordFigures,
    recorded: &Recorded,
    shown: &str,
) -> Result<ExitCode, Failed> {
    let counts = &figures.counts;
    let SessionEnd { reason, is_hurried, cut } = recorded.end;
    let connections = ConnectionLimit::new(args.proxy.max_connections, &figures.proxy);
    if args.json {
        output::print_data(recorded.to_json(counts, &connections).as_bytes())?;
    } else if !args.quiet {
        for line in &recorded.summary_lines(counts, shown) {
            output::print_note(&escape_control(line));
        }
        if cut > 0 {
            output::print_note(&format!("{cut} answers were cut off at the end"));
        }
    }
    if args.trace.save_text {
        output::print_note(LOUD);
    }
    if let Some(words) = connections.closed_text() {
        output::print_note(&words);
    }
    let lost = counts.lost_count();
    if lost > 0 {
        output::print_note(&format!("warning: {lost} requests are missing from the trace"));
    }
    if reason == EndReason::Broken {
        output::print_note("error: the proxy ended by itself");
        return Ok(ExitCode::from(exit::INTERNAL));
    }
    Ok(ExitCode::from(match (is_hurried, lost) {
        (true, _) => exit::INTERRUPTED,
        (false, 0) => exit::OK,
        _ => exit::VOID,
    }))
}
