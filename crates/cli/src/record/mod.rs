//! `goodput record`: live traffic as a trace.
//!
//! The `clerk` hears of each request on the proxy's threads and hands it on; the `scribe`, on a
//! thread of its own, makes rows of what it hears and writes them: a `trace` is one file, of whole
//! lines (`file`), with a name of its own (`names`).

mod clerk;
mod counts;
mod file;
mod names;
mod page;
mod progress;
mod scale;
mod scribe;
mod trace;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_live::{Drained, Proxy};
use goodput_model::Nanos;
use goodput_report::plain;
use tokio::signal::unix::SignalKind;

use crate::args::{RecordArgs, TraceFileArgs};
use crate::error::{Failed, exit};
use crate::live::Crowd;
use crate::signals::Ears;
use crate::{listen, live, output};
use clerk::Clerk;
use counts::Counts;
use goodput_lab::hub::Hub;
use names::Names;
use progress::Progress;
use scribe::{Limits, Orders, Scribe, Written};
use trace::Manner;

/// How often this thread looks up: limits are kept to this.
const LOOK_UP: Duration = Duration::from_millis(100);

const LOUD: &str = "WARNING: --save-text: prompts and answers are written as they are; whoever reads \
                    the trace reads what people asked";

/// Records until a limit or a signal ends it.
pub(crate) fn record(args: &RecordArgs) -> Result<ExitCode, Failed> {
    goodput_engine::raise_fd_limit();
    let upstream = live::upstream(&args.proxy, &args.upstream)?;
    let mut settings = live::settings(&args.proxy, upstream)?;
    live::check_metrics(&args.proxy, args.metrics_listen)?;
    // Conversations are linked by answers; they are written only where that is asked for.
    settings.keep_text = true;
    let manner = manner(args)?;
    live::look_at(&settings.upstream)?;
    // Whoever sees where it listens may send a signal.
    let kinds =
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), too_large()];
    let ears = Ears::new(&kinds).map_err(|error| Failed::internal(error.to_string()))?;
    let counts = Arc::new(Counts::default());
    let (clerk, notes, room) = Clerk::new(&counts);
    let scribe =
        begin(args, |names| Scribe::new(names, (manner, limits(&args.trace)), &counts, room))?;
    let shown = settings.upstream.url.shown();
    let (proxy, scribe) = match live::start(settings, Arc::new(clerk)) {
        Ok(proxy) => (proxy, scribe),
        Err(failed) => {
            scribe.discard();
            return Err(failed);
        }
    };
    if let Some(address) = args.metrics_listen {
        let page = page::Page::new(&proxy, &counts);
        if let Err(failed) = listen::serve(address, args.quiet, move |format| page.render(format)) {
            scribe.discard();
            return Err(failed);
        }
    }
    announce(args, &shown);
    let orders = Arc::new(Orders::default());
    let told = Arc::clone(&orders);
    let scribe = std::thread::Builder::new()
        .name("scribe".to_owned())
        .spawn(move || scribe.work(&notes, &told))
        .map_err(|error| Failed::internal(error.to_string()))?;
    let mut desk = Desk::new(args, proxy, &counts, &orders);
    ears.hear(LOOK_UP, |heard| {
        desk.mind(scribe.is_finished());
        desk.look(heard)
    });
    orders.end.store(true, Ordering::Relaxed);
    let written = scribe.join().map_err(|_| Failed::internal("the writer of the trace broke"))?;
    desk.end(&written, &shown)
}

/// A limit on the size of files ends a process that does not hear this; passing on must go on.
fn too_large() -> SignalKind {
    SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())
}

fn manner(args: &RecordArgs) -> Result<Manner, Failed> {
    let TraceFileArgs { tokenizer, block_tokens, save_text, share, .. } = &args.trace;
    let tokenizer =
        Hub::new(Arc::new(crate::printer::Printer::new(args.quiet))).tokenizer(tokenizer)?;
    Ok(Manner { tokenizer, block_tokens: *block_tokens, save_text: *save_text, share: *share })
}

fn limits(args: &TraceFileArgs) -> Limits {
    Limits {
        rotate_size: args.rotate_size,
        rotate_every: args.rotate_every.map(Nanos::from),
        max_size: args.max_size,
        max_requests: args.max_requests,
    }
}

/// The first file, or why there is none.
fn begin(
    args: &RecordArgs,
    scribe: impl FnOnce(Names) -> io::Result<Scribe>,
) -> Result<Scribe, Failed> {
    let is_numbered = args.trace.rotate_size.is_some() || args.trace.rotate_every.is_some();
    Names::new(&args.output, is_numbered).and_then(scribe).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "a trace is never written over, nor into: each file has a salt of its own"
            }
            _ => "--output takes the name of a new file in a folder that exists",
        };
        Failed::usage(format!("cannot create {}: {error}", args.output.display())).hint(hint)
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
    output::note(&plain(&format!("recording what goes to {shown} in {file}{share}")));
}

/// What is under way.
enum Stand {
    Passing(Proxy),
    /// Waiting for the last answers.
    Draining(JoinHandle<Drained>),
    Ended(Option<Drained>),
}

/// The thread that waits for signals and limits.
struct Desk<'a> {
    args: &'a RecordArgs,
    counts: Arc<Counts>,
    orders: Arc<Orders>,
    begin: Nanos,
    stand: Stand,
    progress: Progress,
    crowd: Crowd,
    /// The user did not want to wait.
    is_hurried: bool,
    /// A thread of the proxy ended by itself.
    is_broken: bool,
    is_told: bool,
    /// Nobody writes any more.
    is_mute: bool,
}

impl<'a> Desk<'a> {
    fn new(args: &'a RecordArgs, proxy: Proxy, counts: &Arc<Counts>, orders: &Arc<Orders>) -> Self {
        let progress = Progress::new(args.quiet, proxy.tally(), counts);
        let crowd = Crowd::new(&args.proxy, proxy.tally());
        Self {
            args,
            counts: Arc::clone(counts),
            orders: Arc::clone(orders),
            begin: now(),
            stand: Stand::Passing(proxy),
            progress,
            crowd,
            is_hurried: false,
            is_broken: false,
            is_told: false,
            is_mute: false,
        }
    }

    /// A writer that is gone while traffic passes is said once; passing on is worth more.
    fn mind(&mut self, is_gone: bool) {
        let is_passing = matches!(&self.stand, Stand::Passing(proxy) if proxy.is_running());
        if is_gone && is_passing && !std::mem::replace(&mut self.is_mute, true) {
            self.counts.is_refused.store(true, Ordering::Relaxed);
            self.progress.note(
                "error: the writer of the trace broke: nothing more is recorded; traffic passes on",
            );
        }
    }

    /// A signal, or nothing for a while; whether it goes on.
    fn look(&mut self, heard: Option<SignalKind>) -> bool {
        let is_stop = [SignalKind::interrupt(), SignalKind::terminate()].map(Some).contains(&heard);
        if heard == Some(SignalKind::hangup()) {
            self.orders.rotate.store(true, Ordering::Relaxed);
        }
        self.progress.look(now());
        if let Some(news) = self.crowd.news() {
            self.progress.note(&news);
        }
        match std::mem::replace(&mut self.stand, Stand::Ended(None)) {
            Stand::Passing(proxy) if is_stop || self.is_enough() || !proxy.is_running() => {
                self.is_broken = !proxy.is_running();
                self.drain(proxy);
                !matches!(self.stand, Stand::Ended(_))
            }
            Stand::Draining(_) if is_stop => {
                self.is_hurried = true;
                false
            }
            Stand::Draining(draining) if draining.is_finished() => {
                self.stand = Stand::Ended(draining.join().ok());
                false
            }
            stand => {
                self.stand = stand;
                true
            }
        }
    }

    /// Whether a limit says that it is over.
    fn is_enough(&mut self) -> bool {
        let duration = self.args.trace.duration.map(Nanos::from);
        if duration.is_some_and(|most| now() - self.begin >= most) {
            self.counts.is_over.store(true, Ordering::Relaxed);
        }
        let is_over = self.counts.is_over.load(Ordering::Relaxed);
        let goes_on = self.args.trace.keep_passing;
        if is_over && goes_on && !std::mem::replace(&mut self.is_told, true) {
            self.progress.note("the limit is reached: nothing more is recorded; traffic passes on");
        }
        is_over && !goes_on
    }

    /// Takes no more connections, and waits for answers on a thread: a signal is heard meanwhile.
    fn drain(&mut self, proxy: Proxy) {
        let in_flight = proxy.tally().in_flight.get();
        if !self.args.quiet && in_flight > 0 {
            self.progress.note(&format!(
                "stopping: waiting for {in_flight} answers (again to stop at once)"
            ));
        }
        let limit = self.args.proxy.drain;
        let thread = std::thread::Builder::new().name("drain".to_owned());
        self.stand = match thread.spawn(move || proxy.drain(limit)) {
            Ok(draining) => Stand::Draining(draining),
            Err(_) => Stand::Ended(None),
        };
    }

    /// Says what was recorded.
    fn end(self, written: &Written, shown: &str) -> Result<ExitCode, Failed> {
        self.progress.clear();
        let lost = self.counts.lost();
        let took = now() - self.begin;
        if self.args.json {
            output::data(progress::json((&self.counts, written), took, &self.crowd).as_bytes())?;
        } else if !self.args.quiet {
            let lines = progress::summary((&self.counts, written), took, shown);
            for line in &lines {
                output::note(&plain(line));
            }
            if let Stand::Ended(Some(drained)) = &self.stand
                && drained.cut > 0
            {
                output::note(&format!("{} answers were cut off at the end", drained.cut));
            }
        }
        if self.args.trace.save_text {
            output::note(LOUD);
        }
        if let Some(words) = self.crowd.in_words() {
            output::note(&words);
        }
        if lost > 0 {
            output::note(&format!("warning: {lost} requests are missing from the trace"));
        }
        if self.is_broken {
            output::note("error: the proxy ended by itself");
            return Ok(ExitCode::from(exit::INTERNAL));
        }
        Ok(ExitCode::from(match (self.is_hurried, lost) {
            (true, _) => exit::INTERRUPTED,
            (false, 0) => exit::OK,
            _ => exit::VOID,
        }))
    }
}
