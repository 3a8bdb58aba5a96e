//! The thread that makes rows and writes them: behind the proxy, and never in its way.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use goodput_clock::{lower_priority, now};
use goodput_dataset::TraceRow;
use goodput_model::Nanos;

use super::capture::{CapturedAnswer, CapturedRequest, Room, WriterMessage};
use super::counts::{Lost, RecordCounts};
use super::names::FileNames;
use super::scale::{self, ScaleFactors};
use super::trace::{NewTrace, Open, RowOutcome, Trace, TraceOptions};
use crate::observer::LiveObserver;
use crate::rows::{KeptRequest, Recorder, RowSettings};

/// The most that a `kill -9` takes.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// How often to warn of a disk that refuses, and to try for a new file.
const WORD: Nanos = Nanos::from_millis(10_000);

/// How long an older file takes requests that came before the newer one began: as long as the proxy
/// lets a body rest.
const GRACE: Nanos = Nanos::from_millis(30_000);

/// Files that wait for their last answers, at most.
const MOST_WAITING: usize = 8;

/// How long, and how much, is kept until the server's counts can be told from ours: from the first
/// request, and from the first answer.
const UNSETTLED: Nanos = Nanos::from_millis(60_000);
const SETTLING: Nanos = Nanos::from_millis(5_000);
const MOST_HELD: usize = 16 << 20;
const MOST_NOTES: usize = 4_096;

/// Names of models that are told apart, at most.
const MOST_MODELS: usize = 32;

/// What the thread is told while it works.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// A new file, now.
    pub(super) rotate: AtomicBool,
    /// Write what is there, and end.
    pub(super) end: AtomicBool,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Written {
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Requests of each model, as clients named it.
    pub models: BTreeMap<String, u64>,
    /// Rows that begin a session; each file has sessions of its own.
    pub sessions: u64,
}

impl Written {
    fn add(&mut self, row: &TraceRow) {
        self.sessions += u64::from(row.session.is_some() && row.after.is_none());
        let Some(model) = row.model.as_deref() else { return };
        if let Some(count) = self.models.get_mut(model) {
            *count += 1;
        } else if self.models.len() < MOST_MODELS {
            self.models.insert(model.to_owned(), 1);
        }
    }
}

/// Makes rows and writes them.
pub(super) struct RowWriter {
    names: FileNames,
    options: TraceOptions,
    counts: Arc<RecordCounts>,
    observer: Arc<dyn LiveObserver>,
    room: Arc<Room>,
    /// The first file, until it is known how large blocks are.
    first: Option<NewTrace>,
    /// What the next file's blocks are made by.
    scale: ScaleFactors,
    /// By number; the last is that of new requests.
    traces: BTreeMap<usize, Trace>,
    open: HashMap<u64, Open>,
    /// Requests that have a row, or will have one.
    kept: u64,
    /// Whether they are enough.
    is_over: bool,
    written: Written,
    /// When something about the disk was said last.
    said: Option<Nanos>,
    /// When a new file was tried for in vain.
    tried: Option<Nanos>,
}

impl RowWriter {
    /// Begins the first file.
    pub(super) fn new(
        mut names: FileNames,
        options: TraceOptions,
        counts: &Arc<RecordCounts>,
        room: Arc<Room>,
        observer: Arc<dyn LiveObserver>,
    ) -> io::Result<Self> {
        let path = names.next(true);
        let first = Some(NewTrace::create(&path)?);
        counts.files.add(1);
        Ok(Self {
            names,
            options,
            counts: Arc::clone(counts),
            observer,
            room,
            first,
            scale: ScaleFactors::default(),
            traces: BTreeMap::new(),
            open: HashMap::new(),
            kept: 0,
            is_over: false,
            written: Written { files: vec![path], ..Written::default() },
            said: None,
            tried: None,
        })
    }

    /// Takes the first file back: nothing was recorded.
    pub(super) fn discard(self) {
        for path in &self.written.files {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Works until it is told to end, or nothing more can be said.
    pub(super) fn run(mut self, notes: &Receiver<WriterMessage>, orders: &Orders) -> Written {
        lower_priority();
        let (held, scale) = self.measure_scale(notes, orders);
        self.begin_first_file(scale);
        for note in held {
            self.handle_message(note);
        }
        let mut looked = now();
        loop {
            match notes.recv_timeout(FLUSH_EVERY) {
                Ok(note) => self.handle_message(note),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // By the clock: a quiet moment may never come under load.
            if now() - looked >= FLUSH_EVERY.into() {
                looked = now();
                self.tick(orders);
                if orders.end.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        while let Ok(note) = notes.try_recv() {
            self.handle_message(note);
        }
        self.finish()
    }

    /// Keeps what is said until the server's counts can be told from ours, but not for long.
    fn measure_scale(
        &self,
        notes: &Receiver<WriterMessage>,
        orders: &Orders,
    ) -> (Vec<WriterMessage>, ScaleFactors) {
        let TraceOptions { tokenizer, block_tokens, .. } = self.options.clone();
        let settings = RowSettings { tokenizer, block_tokens, salt: [0; 32], save_text: false };
        let recorder = Recorder::new(settings);
        let (mut held, mut scale) = (Vec::new(), ScaleFactors::default());
        let (mut bytes, mut ours) = (0, HashMap::new());
        let most = self.options.limits.max_requests.unwrap_or(u64::MAX);
        let (mut asked, mut end) = (0, Nanos(u64::MAX));
        while !scale.is_settled() && now() < end && bytes < MOST_HELD && held.len() < MOST_NOTES {
            if asked >= most && ours.is_empty() {
                break;
            }
            let is_told =
                orders.end.load(Ordering::Relaxed) || orders.rotate.load(Ordering::Relaxed);
            if is_told {
                // A quiet moment may never come under load; what has been said already may count.
                end = end.min(now() + FLUSH_EVERY.into());
            }
            let note = match notes.recv_timeout(FLUSH_EVERY) {
                Ok(note) => note,
                Err(RecvTimeoutError::Timeout) if !is_told => continue,
                Err(_) => break,
            };
            match &note {
                WriterMessage::Asked(ask) => {
                    end = end.min(now() + UNSETTLED);
                    asked += 1;
                    bytes += ask.held_bytes();
                    let question = recorder.start_row(Nanos::ZERO, ask.api, &ask.body, None);
                    ours.insert(ask.number, scale::own_prompt_tokens(&question.row));
                }
                WriterMessage::Answered(answer) => {
                    end = end.min(now() + SETTLING);
                    bytes += answer.bytes;
                    let ours = ours.remove(&answer.number).unwrap_or(0);
                    scale.add(ours, answer.exchange.as_deref());
                }
            }
            held.push(note);
        }
        (held, scale)
    }

    /// Begins the first file.
    fn begin_first_file(&mut self, scale: ScaleFactors) {
        let Some(first) = self.first.take() else { return };
        match Trace::begin(first, &self.options, scale.nearest_block(self.options.block_tokens)) {
            Ok(trace) => {
                self.traces.insert(0, trace);
                self.flush();
            }
            // Without a salt there is nothing that could be written.
            Err(error) => {
                self.observer.warn(&format!("warning: cannot record: {error}"));
            }
        }
    }

    fn handle_message(&mut self, note: WriterMessage) {
        match note {
            WriterMessage::Asked(ask) => self.add_request(&ask),
            WriterMessage::Answered(answer) => self.add_answer(&answer),
        }
    }

    fn add_request(&mut self, ask: &CapturedRequest) {
        let question = self.start_row(ask);
        self.room.release_bytes(ask.held_bytes());
        let Some((file, question)) = question else {
            if self.is_over {
                self.counts.left_out.add(1);
            } else {
                // No file is open to write to.
                self.counts.add_lost(Lost::Disk, 1);
            }
            return self.room.release_ticket();
        };
        let text = question.row.body.as_ref().map_or(0, String::len);
        let held = text + question.row.blocks.capacity() * size_of::<u64>();
        if !self.room.take_bytes(held) {
            self.drop_one(file);
            return self.room.release_ticket();
        }
        // With a share it is known only later whether this one counts.
        if self.options.share >= 1.0 {
            self.count_row();
        }
        let CapturedRequest { number, arrived, .. } = *ask;
        self.open.insert(number, Open { number, file, question, arrived, held });
    }

    /// What is to be recorded of a request, and in which file.
    fn start_row(&mut self, ask: &CapturedRequest) -> Option<(usize, KeptRequest)> {
        if self.is_over {
            return None;
        }
        let newest = self.traces.iter().rev().find(|(_, trace)| trace.epoch <= ask.arrived);
        let file = newest.or_else(|| self.traces.iter().next()).map(|(file, _)| *file)?;
        Some((file, self.traces.get_mut(&file)?.add_request(ask)))
    }

    /// One more request has a row, or will have one.
    fn count_row(&mut self) {
        self.kept += 1;
        if self.options.limits.max_requests.is_some_and(|most| self.kept >= most) {
            self.stop_recording();
        }
    }

    /// A limit of ours is reached: what comes from here on is not recorded.
    fn stop_recording(&mut self) {
        self.is_over = true;
        self.counts.is_over.store(true, Ordering::Relaxed);
    }

    fn add_answer(&mut self, answer: &CapturedAnswer) {
        let Some(open) = self.open.remove(&answer.number) else {
            // Not recorded, or its file is over.
            return self.room.release_bytes(answer.bytes);
        };
        let (file, held) = (open.file, open.held);
        self.scale.add(scale::own_prompt_tokens(&open.question.row), answer.exchange.as_deref());
        match (self.traces.get_mut(&file), &answer.exchange) {
            (Some(trace), Some(exchange)) => match trace.add_answer(open, exchange) {
                RowOutcome::Row(row) => {
                    self.written.add(&row);
                    if self.options.share < 1.0 {
                        self.count_row();
                    }
                }
                RowOutcome::LeftOut => self.counts.left_out.add(1),
                RowOutcome::Refused => self.counts.add_lost(Lost::Disk, 1),
            },
            _ => self.drop_one(file),
        }
        self.room.release_bytes(answer.bytes + held);
        self.room.release_ticket();
    }

    /// A request of this file does not fit.
    fn drop_one(&mut self, file: usize) {
        self.counts.add_lost(Lost::Queue, 1);
        if let Some(trace) = self.traces.get_mut(&file) {
            trace.open = trace.open.saturating_sub(1);
        }
    }

    /// Five times a second: what waits goes to the disk, files end and begin.
    fn tick(&mut self, orders: &Orders) {
        self.flush();
        let is_ordered = orders.rotate.swap(false, Ordering::Relaxed);
        let is_over = self.counts.is_over.load(Ordering::Relaxed);
        let is_tried = self.tried.is_some_and(|at| now() - at < WORD);
        if (is_ordered || self.is_full() && !is_tried) && !is_over {
            self.rotate();
        }
        if self.options.limits.max_size.is_some_and(|most| self.counts.bytes.get() >= most) {
            self.stop_recording();
        }
        self.close_finished_files();
    }

    /// Whether the newest file is large or old enough.
    fn is_full(&self) -> bool {
        let Some((_, newest)) = self.traces.last_key_value() else { return false };
        let is_large = self.options.limits.rotate_size.is_some_and(|most| newest.size() >= most);
        let is_old =
            self.options.limits.rotate_every.is_some_and(|most| now() - newest.epoch >= most);
        is_large || is_old
    }

    /// Begins a new file; without one the old goes on.
    fn rotate(&mut self) {
        let mut path = self.names.next(false);
        let mut begun = NewTrace::create(&path);
        // An existing file of that name stays.
        for _ in 0..100 {
            match &begun {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = self.names.next(false);
                    begun = NewTrace::create(&path);
                }
                _ => break,
            }
        }
        let block = self.scale.nearest_block(self.options.block_tokens);
        let begun = begun.and_then(|blank| Trace::begin(blank, &self.options, block));
        let trace = match begun {
            Ok(trace) => trace,
            Err(error) => {
                self.tried = Some(now());
                return self.observer.warn(&format!(
                    "warning: cannot start {}: {error}; continuing in the previous file",
                    path.display()
                ));
            }
        };
        self.tried = None;
        for older in self.traces.values_mut() {
            older.followed.get_or_insert(trace.epoch);
        }
        self.counts.files.add(1);
        self.traces.insert(self.written.files.len(), trace);
        self.written.files.push(path);
    }

    /// Ends older files whose last answer is there, and one of too many: rather one that waits for no
    /// answer.
    fn close_finished_files(&mut self) {
        let present = now();
        let is_done = |trace: &Trace| {
            trace.open == 0 && trace.followed.is_some_and(|at| present - at >= GRACE)
        };
        let mut over: Vec<usize> =
            self.traces.iter().filter(|(_, trace)| is_done(trace)).map(|(file, _)| *file).collect();
        if self.traces.len() - over.len() > MOST_WAITING {
            let older = self.traces.iter().filter(|(_, trace)| trace.followed.is_some());
            let older = older.filter(|(file, _)| !over.contains(file));
            let first = older.min_by_key(|(file, trace)| (trace.open > 0, **file));
            let first = first.map(|(file, _)| *file);
            over.extend(first);
        }
        for file in over {
            self.end_file(file);
        }
    }

    /// Ends a file. What is still unanswered or unwritten is lost.
    fn end_file(&mut self, file: usize) {
        let Some(mut trace) = self.traces.remove(&file) else { return };
        let (rows, bytes, _) = trace.flush();
        self.counts.rows.add(rows);
        self.counts.bytes.add(bytes);
        self.counts.add_lost(Lost::Disk, trace.unwritten());
        self.counts.add_lost(Lost::Unanswered, trace.open);
        let room = &self.room;
        self.open.retain(|_, open| {
            if open.file == file {
                room.release_bytes(open.held);
                room.release_ticket();
            }
            open.file != file
        });
    }

    fn flush(&mut self) {
        let mut refusal = None;
        for trace in self.traces.values_mut() {
            let (rows, bytes, outcome) = trace.flush();
            self.counts.rows.add(rows);
            self.counts.bytes.add(bytes);
            refusal = outcome.err().or(refusal);
        }
        let was_refused = self.counts.is_refused.swap(refusal.is_some(), Ordering::Relaxed);
        let is_news = refusal.is_some() != was_refused;
        if !is_news || self.said.is_some_and(|at| now() - at < WORD) && refusal.is_some() {
            return;
        }
        self.said = Some(now());
        let lost = self.counts.lost_by(Lost::Disk);
        self.observer.warn(&match refusal {
            Some(error) => format!(
                "warning: cannot write the trace: {error}; traffic is still forwarded, rows are buffered and then lost"
            ),
            None => format!("the trace can be written again; {lost} rows are lost"),
        });
    }

    fn finish(mut self) -> Written {
        for file in self.traces.keys().copied().collect::<Vec<_>>() {
            self.end_file(file);
        }
        self.written
    }
}

#[cfg(test)]
mod tests;
