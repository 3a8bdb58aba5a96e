//! [`TruthLog`]: what the simulated engine did, request by request, in a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::now;
use goodput_model::RequestRecord;
use goodput_record::LogWriter;

use crate::error::Failed;
use crate::events::Observer;

/// Records that may wait for the disk.
const QUEUE: usize = 10_000;

/// The most that a `kill -9` takes from the log.
const FLUSH_EVERY: Duration = Duration::from_millis(200);

/// A log that is written on a thread of its own, until the engine that fills it has ended.
#[derive(Debug)]
pub struct TruthLog(JoinHandle<u64>);

impl TruthLog {
    /// A new file, and where its records go.
    pub fn create(
        path: &Path,
        observer: Arc<dyn Observer>,
    ) -> Result<(SyncSender<RequestRecord>, Self), Failed> {
        let log = LogWriter::create(path).map_err(|error| {
            let failed = Failed::usage(format!("cannot create {}: {error}", path.display()));
            failed.hint("--truth takes a new file in an existing folder")
        })?;
        let (sink, records) = sync_channel(QUEUE);
        let writer = std::thread::Builder::new().name("truth".to_owned());
        let writer = writer.spawn(move || write_records(log, &records, &*observer));
        Ok((sink, Self(writer.map_err(|error| Failed::internal(error.to_string()))?)))
    }

    /// Waits until all records are written; how many could not be.
    pub fn finish(self) -> u64 {
        self.0.join().unwrap_or(0)
    }
}

fn write_records(
    mut log: LogWriter,
    records: &Receiver<RequestRecord>,
    observer: &dyn Observer,
) -> u64 {
    let mut flushed = now();
    let mut is_told = false;
    loop {
        match records.recv_timeout(FLUSH_EVERY) {
            Ok(record) => log.append(&record),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let unwritten = log.finish();
                return unwritten.frames + unwritten.lost;
            }
        }
        // By the clock: a quiet moment may never come under load.
        if now() - flushed >= FLUSH_EVERY.into() {
            log.flush();
            flushed = now();
            if let Some(error) = log.last_error().filter(|_| !is_told) {
                is_told = true;
                observer.warn(format!("cannot write the truth log: {error}"));
            }
        }
    }
}
