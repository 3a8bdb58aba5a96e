//! Traces: who asked how much, and when.

mod decimal;
mod detect;
mod lines;
mod litellm;
mod moment;
mod nginx;
mod otel;
mod own;
mod row;
mod tables;

use std::path::Path;

use goodput_model::{LogPlan, Nanos, TracePlan};

use crate::error::{DatasetError, EntryError};
use crate::format::{TraceFormat, UnknownFormat};
use crate::pass::{Keeper, PassTally};
use crate::sample::check_total_bytes;
use crate::{DatasetEntry, Loaded, private};

pub(crate) use decimal::seconds_text;
pub(crate) use detect::detect_format;

pub use crate::entry::TokenCounter;
pub use row::{MOST_GAPS, Param, Params, TraceHead, TraceRow, TraceRowWriter};

/// What to take from a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceSelection {
    /// Its form; found out by name and content when absent.
    pub format: Option<TraceFormat>,
    /// Time to leave out at its beginning.
    pub start: Nanos,
    /// Time to take behind that; all when absent.
    pub length: Option<Nanos>,
    /// Tokens of one block of `hash_ids`; the format's own when absent.
    pub block_tokens: Option<u32>,
    /// Whether rows that cannot be read are left out and counted.
    pub skip_invalid: bool,
    /// How an access log is read.
    pub log: LogPlan,
}

impl TraceSelection {
    /// What a plan asks for.
    pub fn from_plan(plan: &TracePlan, skip_invalid: bool) -> Result<Self, UnknownFormat> {
        Ok(Self {
            format: plan.format.as_deref().map(str::parse).transpose()?,
            start: Nanos::from_secs_f64(plan.start_s),
            length: plan.length_s.map(Nanos::from_secs_f64),
            block_tokens: plan.block_tokens,
            skip_invalid,
            log: plan.log.clone(),
        })
    }
}

/// Reads a trace. Entries come in the order of their instants, which count from the first of them.
pub fn load_trace(path: &Path, options: &TraceSelection) -> Result<Loaded, DatasetError> {
    let format = detect_format(path, options.format)?;
    let mut cut = TimeRange::default();
    if options.start > Nanos::ZERO || options.length.is_some() {
        let mut first = First(None);
        scan_trace(path, format, options, &mut first)?;
        let start = first.0.unwrap_or_default() + options.start;
        cut.from = start;
        cut.to = options.length.map(|length| start + length);
    }
    let (tally, block_tokens) = scan_trace(path, format, options, &mut cut)?;
    if cut.entries.is_empty() {
        return Err(no_entries_error(path, &tally, cut.outside));
    }
    let mut entries = cut.entries;
    entries.sort_by_key(|entry| entry.at);
    let base = entries.first().and_then(|entry| entry.at).unwrap_or_default();
    for entry in &mut entries {
        entry.at = entry.at.map(|at| at - base);
    }
    if format.is_log() {
        private::number_sessions(&mut entries);
    }
    let mut notes = tally.sentences();
    // We record in the order of answers, not of questions.
    if cut.out_of_order > 0 && format != TraceFormat::Goodput {
        notes.push(format!("{} rows were out of order and have been sorted", cut.out_of_order));
    }
    let mut skipped = tally.skipped;
    if cut.outside > 0 {
        skipped.insert("outside the selected time range".to_owned(), cut.outside);
    }
    let name = format.name();
    let (seen, sha256) = (tally.seen, tally.sha256);
    Ok(Loaded { entries, seen, skipped, sha256, format: name, block_tokens, notes })
}

fn no_entries_error(path: &Path, tally: &PassTally, outside: u64) -> DatasetError {
    if outside == 0 {
        return tally.nothing_kept_error(path);
    }
    let what = format!("none of its {} rows lies in the selected time range", tally.seen);
    DatasetError::file(
        path,
        EntryError::with_hint(what, "choose an earlier start or a longer range"),
    )
}

/// One pass over the file: what was counted, and the tokens of a block.
fn scan_trace(
    path: &Path,
    format: TraceFormat,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<(PassTally, Option<u32>), DatasetError> {
    match format {
        TraceFormat::Mooncake | TraceFormat::Bailian => {
            lines::scan_lines(path, format, options, keeper)
        }
        TraceFormat::Burstgpt => Ok((tables::scan_burstgpt(path, options, keeper)?, None)),
        TraceFormat::Azure => Ok((tables::scan_azure(path, options, keeper)?, None)),
        TraceFormat::Goodput => own::scan_own(path, options, keeper),
        TraceFormat::Litellm => Ok((litellm::scan_litellm(path, options, keeper)?, None)),
        TraceFormat::Nginx => Ok((nginx::scan_nginx(path, options, keeper)?, None)),
        TraceFormat::Otel => Ok((otel::scan_otel(path, options, keeper)?, None)),
    }
}

/// Finds the earliest instant.
struct First(Option<Nanos>);

impl Keeper for First {
    fn wants(&mut self, _number: u64) -> bool {
        true
    }

    fn keep(&mut self, _number: u64, entry: DatasetEntry) -> Result<Option<String>, EntryError> {
        self.0 = self.0.into_iter().chain(entry.at).min();
        Ok(None)
    }
}

/// Keeps what lies in a part of the trace's time.
#[derive(Default)]
struct TimeRange {
    from: Nanos,
    to: Option<Nanos>,
    entries: Vec<DatasetEntry>,
    bytes: u64,
    outside: u64,
    latest: Nanos,
    out_of_order: u64,
}

impl Keeper for TimeRange {
    fn wants(&mut self, _number: u64) -> bool {
        true
    }

    fn keep(&mut self, _number: u64, entry: DatasetEntry) -> Result<Option<String>, EntryError> {
        let at = entry.at.unwrap_or_default();
        if at < self.from || self.to.is_some_and(|to| at >= to) {
            self.outside += 1;
            return Ok(None);
        }
        self.out_of_order += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
        self.bytes += entry.bytes();
        self.entries.push(entry);
        check_total_bytes(self.bytes).map(|()| None)
    }
}
