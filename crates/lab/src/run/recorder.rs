//! The sink of a run: writes what comes, watches it, and ends the run once enough is known.

use std::sync::Arc;

use goodput_clock::now;
use goodput_engine::Sink;
use goodput_model::{CanaryReading, EndedBy, HealthSample, LoopLag, Nanos, RequestRecord};
use goodput_observe::HostSampler;
use goodput_record::{FolderError, Logs, Spool, Spooled, TextWriter};
use goodput_stats::Watch;

use crate::events::{Observation, Observer, RunSink};
use crate::handle::RunHandle;
use crate::server::Looks;

/// Writes records as they come.
pub(super) struct RunRecorder {
    pub(super) observer: Arc<dyn Observer>,
    pub(super) handle: RunHandle,
    pub(super) logs: Logs,
    pub(super) host: HostSampler,
    /// Prompts and answers, when they are kept.
    pub(super) texts: Option<TextWriter>,
    /// Answers to be judged after the run.
    pub(super) answers: Option<Spool>,
    pub(super) watch: Watch,
    /// Why the watch has ended the run.
    pub(super) ended_by: Option<EndedBy>,
    /// What is seen of the server's side.
    pub(super) looks: Looks,
    /// Who follows the run.
    pub(super) sinks: Vec<Box<dyn RunSink>>,
    /// The run's first instant, once it is known.
    pub(super) epoch: Option<Nanos>,
}

/// Keeps the texts of a request. Later turns and judges need the answer as it came; a file does not.
fn append_text(texts: &TextWriter, record: &RequestRecord) -> Result<(), FolderError> {
    let answer = record.exchange.text.clone().map(goodput_wire::scrub_secrets);
    texts.append(record, answer.as_deref())
}

impl RunRecorder {
    /// Writes what was seen of the server's side after the last answer, which says nothing of the
    /// client.
    pub(super) fn write_last_samples(&mut self) {
        let Some(epoch) = self.epoch else { return };
        let (scrapes, gpus) = self.looks.take_samples(epoch);
        if !scrapes.is_empty() || !gpus.is_empty() {
            let at = now() - epoch;
            self.logs.samples.append(&HealthSample {
                at,
                scrapes,
                gpus,
                ..HealthSample::default()
            });
        }
    }

    /// Ends the run once enough is known.
    fn stop_if_decided(&mut self, at: Nanos) {
        let control = &self.handle.control;
        let seen = self.handle.live.snapshot();
        self.watch.tick(at, seen.started, seen.in_flight());
        let look = self.watch.look(at);
        self.handle.set_look(look);
        if control.is_stopping() || control.is_draining() {
            return;
        }
        self.ended_by = look.end.or(look.is_enough.then_some(EndedBy::Until));
        match self.ended_by {
            // The backlog of a server that is lost is not worth waiting for.
            Some(EndedBy::Hopeless) => control.abort(),
            Some(_) => control.stop(),
            None => {}
        }
    }
}

impl Sink for RunRecorder {
    fn record(&mut self, record: RequestRecord) {
        self.logs.requests.append(&record);
        self.watch.add(&record);
        for sink in &mut self.sinks {
            sink.record(&record);
        }
        if let Some(texts) = &self.texts
            && let Err(error) = append_text(texts, &record)
        {
            self.observer.warn(format!("{error}; texts are no longer saved"));
            self.texts = None;
        }
        if let (Some(answers), Some(text)) = (&mut self.answers, record.exchange.text) {
            let class = record.planned.class.to_string();
            let (index, constraint) = (record.index, record.planned.constraint);
            answers.push(Spooled { index, class, constraint, text });
        }
    }

    fn observe(&mut self, at: Nanos, beats: Vec<LoopLag>, canary: Vec<CanaryReading>) {
        let epoch = *self.epoch.get_or_insert_with(|| now() - at);
        let (scrapes, gpus) = self.looks.take_samples(epoch);
        let seen = Observation { at, beats: &beats, scrapes: &scrapes, gpus: &gpus };
        for sink in &mut self.sinks {
            sink.observe(&seen);
        }
        let host = self.host.sample();
        self.logs.samples.append(&HealthSample { at, host, beats, canary, scrapes, gpus });
        self.stop_if_decided(at);
    }

    fn flush(&mut self) {
        self.logs.requests.flush();
        self.logs.samples.flush();
    }
}
