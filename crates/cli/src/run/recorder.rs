//! The sink of a run: writes what comes, watches it, and ends the run once enough is known.

use std::sync::{Arc, Mutex, PoisonError};

use goodput_clock::now;
use goodput_engine::{Control, Live, Sink};
use goodput_model::{Beat, CanaryReading, EndedBy, Nanos, Plan, RequestRecord, Sample};
use goodput_observe::Host;
use goodput_record::{FolderError, Logs, Spool, Spooled, TextWriter};
use goodput_stats::{Look, Watch};

use super::Hands;
use crate::listen::Following;
use crate::observe::Looks;
use crate::{output, screen};

/// The last look at a run, for whoever shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Look>>);

impl Board {
    /// What was seen last.
    pub(crate) fn read(&self) -> Look {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, look: &Look) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(look);
    }
}

/// Watches a run and ends it once enough is known.
pub(super) struct Watcher {
    pub(super) watch: Watch,
    pub(super) live: Arc<Live>,
    pub(super) control: Control,
    pub(super) board: Board,
    /// Why it has ended the run.
    pub(super) ended_by: Option<EndedBy>,
}

impl Watcher {
    /// Watches a run of this plan, in these hands.
    pub(super) fn new(plan: &Plan, hands: &Hands) -> Self {
        Self {
            watch: Watch::new(plan),
            live: Arc::clone(&hands.live),
            control: hands.control.clone(),
            board: Board::default(),
            ended_by: None,
        }
    }

    fn observe(&mut self, at: Nanos) {
        let seen = self.live.snapshot();
        self.watch.tick(at, seen.started, seen.in_flight());
        let look = self.watch.look(at);
        self.board.write(look);
        if self.control.is_stopping() || self.control.is_draining() {
            return;
        }
        self.ended_by = look.end.or(look.is_enough.then_some(EndedBy::Until));
        match self.ended_by {
            // The backlog of a server that is lost is not worth waiting for.
            Some(EndedBy::Hopeless) => self.control.abort(),
            Some(_) => self.control.stop(),
            None => {}
        }
    }
}

/// Writes records as they come.
pub(super) struct Recorder {
    pub(super) logs: Logs,
    pub(super) host: Host,
    /// Prompts and answers, when they are kept.
    pub(super) texts: Option<TextWriter>,
    /// Answers to be judged after the run.
    pub(super) answers: Option<Spool>,
    pub(super) watcher: Watcher,
    /// What is seen of the server's side.
    pub(super) looks: Looks,
    /// Shows the run while it goes on.
    pub(super) shown: Option<Following>,
    /// The same on the screen.
    pub(super) screen: Option<screen::Following>,
    /// Who leads is told what is counted here.
    pub(super) told: Option<Arc<Mutex<screen::Tally>>>,
    /// The run's first instant, once it is known.
    pub(super) epoch: Option<Nanos>,
}

/// Keeps the texts of a request. Later turns and judges need the answer as it came; a file does not.
fn append_text(texts: &TextWriter, record: &RequestRecord) -> Result<(), FolderError> {
    let answer = record.exchange.text.clone().map(goodput_wire::scrub);
    texts.append(record, answer.as_deref())
}

impl Recorder {
    /// Writes what was seen of the server's side after the last answer, which says nothing of the
    /// client.
    pub(super) fn look_last(&mut self) {
        let Some(epoch) = self.epoch else { return };
        let (scrapes, gpus) = self.looks.take(epoch);
        if !scrapes.is_empty() || !gpus.is_empty() {
            let at = now() - epoch;
            self.logs.samples.append(&Sample { at, scrapes, gpus, ..Sample::default() });
        }
    }
}

impl Sink for Recorder {
    fn record(&mut self, record: RequestRecord) {
        self.logs.requests.append(&record);
        self.watcher.watch.add(&record);
        if let Some(shown) = &self.shown {
            shown.record(&record);
        }
        if let Some(screen) = &self.screen {
            screen.record(&record);
        }
        if let Some(told) = &self.told {
            told.lock().unwrap_or_else(PoisonError::into_inner).add(&record);
        }
        if let Some(texts) = &self.texts
            && let Err(error) = append_text(texts, &record)
        {
            output::note(&format!("warning: {error}; texts are no longer kept"));
            self.texts = None;
        }
        if let (Some(answers), Some(text)) = (&mut self.answers, record.exchange.text) {
            let class = record.planned.class.to_string();
            let (index, constraint) = (record.index, record.planned.constraint);
            answers.push(Spooled { index, class, constraint, text });
        }
    }

    fn observe(&mut self, at: Nanos, beats: Vec<Beat>, canary: Vec<CanaryReading>) {
        let epoch = *self.epoch.get_or_insert_with(|| now() - at);
        let (scrapes, gpus) = self.looks.take(epoch);
        if let Some(shown) = &self.shown {
            shown.observe(at, &beats);
        }
        if let Some(screen) = &self.screen {
            screen.observe(at, &beats, (&scrapes, &gpus));
        }
        let host = self.host.sample();
        let seen = Sample { at, host, beats, canary, scrapes, gpus };
        self.logs.samples.append(&seen);
        self.watcher.observe(at);
    }

    fn flush(&mut self) {
        self.logs.requests.flush();
        self.logs.samples.flush();
    }
}
