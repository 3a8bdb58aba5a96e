//! A recording: live traffic as a trace.
//!
//! `capture` hears of each request on the proxy's threads and hands it on; `writer`, on a thread of its
//! own, makes rows of what it hears and writes them: a `trace` is one file, of whole lines
//! (`line_file`), with a name of its own (`names`).

mod capture;
mod counts;
mod line_file;
mod names;
mod scale;
mod summary;
mod trace;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;

use crate::error::LiveError;
use crate::observer::{LiveObserver, ObserverCommand};
use crate::proxy::{Drained, Proxy, Settings, Tally};
use crate::session::{self, ProxySession, SessionEnd};
use capture::{CaptureQueue, WriterMessage};
use names::FileNames;
use writer::{Orders, RowWriter};

pub use counts::{Lost, RecordCounts};
pub use trace::{TraceLimits, TraceOptions};
pub use writer::Written;

/// Everything about a recording.
pub struct RecordOptions {
    /// The proxy whose traffic is recorded.
    pub proxy: Settings,
    /// The first file.
    pub output: PathBuf,
    /// What is written.
    pub trace: TraceOptions,
    /// When it ends by itself.
    pub duration: Option<Duration>,
    /// Whether traffic passes on after a limit is reached.
    pub keep_passing: bool,
    /// How long answers are waited for at the end.
    pub drain: Duration,
}

/// Counts of requests seen and rows written.
#[derive(Debug, Clone)]
pub struct RecordFigures {
    /// When it began.
    pub begin: Nanos,
    /// What passed.
    pub proxy: Arc<Tally>,
    /// What became of it.
    pub counts: Arc<RecordCounts>,
}

/// What was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// What is on the disk.
    pub written: Written,
    /// How long it took.
    pub took: Nanos,
    /// How it ended.
    pub end: SessionEnd,
}

/// A recording that has begun: clients can connect.
pub struct Recording {
    proxy: Proxy,
    writer: RowWriter,
    notes: Receiver<WriterMessage>,
    figures: RecordFigures,
    observer: Arc<dyn LiveObserver>,
    duration: Option<Duration>,
    keep_passing: bool,
    drain: Duration,
}

impl Recording {
    /// Creates the first file and starts the proxy; if the proxy fails, no file is left.
    pub fn start(
        options: RecordOptions,
        observer: Arc<dyn LiveObserver>,
    ) -> Result<Self, LiveError> {
        let RecordOptions { mut proxy, output, trace, duration, keep_passing, drain } = options;
        // Conversations are linked by answers; they are written only where that is asked for.
        proxy.keep_text = true;
        let counts = Arc::new(RecordCounts::default());
        let (capture, notes, room) = CaptureQueue::new(&counts);
        let is_numbered = trace.limits.rotate_size.is_some() || trace.limits.rotate_every.is_some();
        let writer = FileNames::new(&output, is_numbered)
            .and_then(|names| RowWriter::new(names, trace, &counts, room, Arc::clone(&observer)))
            .map_err(|error| LiveError::Trace { path: output, error })?;
        let proxy = match session::start_proxy(proxy, Arc::new(capture), &*observer) {
            Ok(proxy) => proxy,
            Err(error) => {
                writer.discard();
                return Err(error.into());
            }
        };
        let figures = RecordFigures { begin: now(), proxy: Arc::clone(proxy.tally()), counts };
        Ok(Self { proxy, writer, notes, figures, observer, duration, keep_passing, drain })
    }

    /// What has passed so far.
    pub fn figures(&self) -> &RecordFigures {
        &self.figures
    }

    /// Takes the first file back: nothing was recorded.
    pub fn discard(self) {
        self.writer.discard();
    }

    /// Records until a limit or a command ends it.
    pub fn run(self, commands: &Receiver<ObserverCommand>) -> Result<Recorded, LiveError> {
        let Self { proxy, writer, notes, figures, observer, duration, keep_passing, drain } = self;
        let orders = Arc::new(Orders::default());
        let told = Arc::clone(&orders);
        let writing = std::thread::Builder::new()
            .name("scribe".to_owned())
            .spawn(move || writer.run(&notes, &told))?;
        let begin = now();
        let mut recorder = TrafficRecorder {
            counts: Arc::clone(&figures.counts),
            orders: Arc::clone(&orders),
            observer,
            end: duration.map(|duration| begin + Nanos::from(duration)),
            keep_passing,
            drain,
            writing: Some(writing),
            is_told: false,
            is_mute: false,
        };
        let end = session::run_session(proxy, &mut recorder, commands);
        orders.end.store(true, Ordering::Relaxed);
        let written = recorder.writing.take().and_then(|writing| writing.join().ok());
        let written = written.ok_or(LiveError::Broken("the trace writer failed"))?;
        Ok(Recorded { written, took: now() - begin, end })
    }
}

/// A recording while traffic passes.
struct TrafficRecorder {
    counts: Arc<RecordCounts>,
    orders: Arc<Orders>,
    observer: Arc<dyn LiveObserver>,
    /// When it ends by itself.
    end: Option<Nanos>,
    keep_passing: bool,
    drain: Duration,
    writing: Option<JoinHandle<Written>>,
    /// A limit was reached, and that was said.
    is_told: bool,
    /// The writer broke, and that was said.
    is_mute: bool,
}

impl TrafficRecorder {
    /// A writer that is gone while traffic passes is said once; passing on is worth more.
    fn check_writer(&mut self) {
        let is_gone = self.writing.as_ref().is_some_and(JoinHandle::is_finished);
        if is_gone && !std::mem::replace(&mut self.is_mute, true) {
            self.counts.is_refused.store(true, Ordering::Relaxed);
            self.observer.warn(
                "error: the trace writer failed: recording has stopped; traffic is still forwarded",
            );
        }
    }

    /// Whether a limit says that it is over.
    fn is_limit_reached(&mut self) -> bool {
        if self.end.is_some_and(|end| now() >= end) {
            self.counts.is_over.store(true, Ordering::Relaxed);
        }
        let is_over = self.counts.is_over.load(Ordering::Relaxed);
        if is_over && self.keep_passing && !std::mem::replace(&mut self.is_told, true) {
            self.observer
                .warn("the limit is reached: recording has stopped; traffic is still forwarded");
        }
        is_over && !self.keep_passing
    }
}

impl ProxySession for TrafficRecorder {
    fn handle_command(&mut self, command: Option<ObserverCommand>, proxy: Option<&Proxy>) -> bool {
        if command == Some(ObserverCommand::Rotate) {
            self.orders.rotate.store(true, Ordering::Relaxed);
        }
        if proxy.is_some_and(Proxy::is_running) {
            self.check_writer();
        }
        self.observer.tick();
        proxy.is_some() && self.is_limit_reached()
    }

    fn drain(&mut self, proxy: Proxy) -> io::Result<JoinHandle<Drained>> {
        let in_flight = proxy.tally().in_flight.get();
        if in_flight > 0 {
            self.observer.note(&format!(
                "stopping: waiting for {in_flight} answers (press Ctrl-C again to stop now)"
            ));
        }
        let limit = self.drain;
        let thread = std::thread::Builder::new().name("drain".to_owned());
        thread.spawn(move || proxy.drain(limit))
    }
}
