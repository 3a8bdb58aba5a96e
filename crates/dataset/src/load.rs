//! [`load_dataset`]: a dataset in, the entries that were asked for out.

use std::path::Path;

use crate::detect::detect_format;
use crate::error::DatasetError;
use crate::filter::LengthFilter;
use crate::format::DatasetFormat;
use crate::options::DatasetOptions;
use crate::pass::{Keeper, PassTally};
use crate::sample::{FirstEntries, Sampler, Slot};
use crate::{DatasetEntry, Loaded, messages, parquet, prompts, sharegpt};

/// Reads a dataset. The result is a function of the file and the options: not of memory, time or
/// machine. `count` gives the tokens of a text; it is asked for candidates only.
pub fn load_dataset(
    path: &Path,
    options: &DatasetOptions,
    count: &dyn Fn(&str) -> u32,
) -> Result<Loaded, DatasetError> {
    let format = detect_format(path, options.format, options.prompt_column.as_deref())?;
    let filter = LengthFilter { options, count };
    let (entries, tally) = if options.in_order {
        let most = options.sample.max(1);
        let mut head = FirstEntries { filter: &filter, most, entries: Vec::new(), bytes: 0 };
        let tally = scan_dataset(path, format, options, &mut head)?;
        (head.entries, tally)
    } else {
        sample_dataset(path, format, &filter)?
    };
    if entries.is_empty() {
        return Err(tally.nothing_kept_error(path));
    }
    Ok(Loaded {
        entries,
        seen: tally.seen,
        notes: tally.sentences(),
        skipped: tally.skipped,
        sha256: tally.sha256,
        format: format.name(),
        block_tokens: None,
    })
}

/// The sample, in its random order.
fn sample_dataset(
    path: &Path,
    format: DatasetFormat,
    filter: &LengthFilter<'_>,
) -> Result<(Vec<DatasetEntry>, PassTally), DatasetError> {
    let options = filter.options;
    let wanted = usize::try_from(options.sample).unwrap_or(usize::MAX).max(1);
    // Where every fourth candidate passes, the file is read once.
    let mut room =
        if filter.is_active() { wanted.saturating_mul(4).saturating_add(64) } else { wanted };
    let mut entries = Vec::new();
    let mut behind: Option<Slot> = None;
    let mut first: Option<PassTally> = None;
    loop {
        let missing = wanted.saturating_sub(entries.len());
        let mut sampler = Sampler::new(options.seed, behind, room, missing);
        let tally = scan_dataset(path, format, options, &mut sampler)?;
        let total = match &mut first {
            None => first.insert(tally),
            Some(first) if first.sha256 == tally.sha256 => first,
            Some(_) => return Err(DatasetError::file(path, "changed while it was read")),
        };
        let (candidates, has_more) = sampler.finish();
        behind = candidates.last().map(|candidate| candidate.slot).or(behind);
        for mut candidate in candidates {
            if entries.len() == wanted {
                break;
            }
            match filter.check(&mut candidate.entry) {
                None => entries.push(candidate.entry),
                Some(reason) => total.skip(reason),
            }
        }
        if entries.len() == wanted || !has_more {
            return Ok((entries, first.unwrap_or_default()));
        }
        room = room.saturating_mul(2);
    }
}

/// One pass over the file.
fn scan_dataset(
    path: &Path,
    format: DatasetFormat,
    options: &DatasetOptions,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    match format {
        DatasetFormat::Sharegpt => sharegpt::scan_sharegpt(path, options, keeper),
        DatasetFormat::Messages => messages::scan_messages(path, options, keeper),
        DatasetFormat::Prompts => prompts::scan_json(path, options, keeper),
        DatasetFormat::Csv => prompts::scan_csv(path, options, keeper),
        DatasetFormat::Text => prompts::scan_text(path, options, keeper),
        DatasetFormat::Parquet => parquet::scan_parquet(path, options, keeper),
    }
}
