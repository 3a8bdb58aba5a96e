//! Traces in tables: BurstGPT's and Azure's.

use std::path::Path;

use goodput_model::Nanos;

use super::TraceSelection;
use super::decimal::{parse_instant, parse_time_field};
use crate::error::DatasetError;
use crate::object::parse_tokens;
use crate::pass::{ItemOutcome, Keeper, Pass, PassTally};
use crate::table::TableReader;
use crate::{DatasetEntry, DatasetTurn};

fn table_entry(at: Nanos, input: u32, output: u32) -> DatasetEntry {
    let turn = DatasetTurn {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..DatasetTurn::default()
    };
    DatasetEntry { at: Some(at), turns: vec![turn], ..DatasetEntry::default() }
}

/// One pass over a trace of BurstGPT.
pub(super) fn scan_burstgpt(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut table = TableReader::open(path)?;
    let time = table.required_column(path, &["Timestamp"])?;
    let input = table.required_column(path, &["Request tokens"])?;
    let output = table.required_column(path, &["Response tokens"])?;
    let labels = [table.column(&["Model"]), table.column(&["Log Type"])];
    let session = table.column(&["Session ID"]);
    let elapsed = table.column(&["Elapsed time"]);
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some(row) = table.next(path)? {
        pass.read_item(row.place, |_, _| {
            let at = parse_time_field(row.name(time), row.get(time)?, 9)?;
            if matches!(row.get(output)?.trim(), "0" | "0.0") {
                return Ok(ItemOutcome::Skip(
                    "failed when it was recorded (0 response tokens)".to_owned(),
                ));
            }
            let asked = parse_tokens(row.name(input), row.get(input)?)?;
            let answered = parse_tokens(row.name(output), row.get(output)?)?;
            let mut entry = table_entry(at, asked, answered);
            let label = |column| row.optional(column);
            let class = [label(labels[0])?, label(labels[1])?];
            let class: Vec<&str> = class.into_iter().flatten().map(str::trim).collect();
            entry.class = (!class.is_empty()).then(|| class.join("/"));
            let known = |text: &&str| !text.trim().eq_ignore_ascii_case("nan");
            entry.session = row.optional(session)?.filter(known).map(|text| text.trim().to_owned());
            if let Some(text) = row.optional(elapsed)?.filter(known)
                && let Some(turn) = entry.turns.first_mut()
            {
                turn.took = Some(parse_time_field("Elapsed time", text, 9)?);
            }
            Ok(ItemOutcome::Entry(entry))
        })?;
    }
    pass.finish(table.finish(path)?)
}

/// One pass over a trace of Azure.
pub(super) fn scan_azure(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut table = TableReader::open(path)?;
    let time = table.required_column(path, &["TIMESTAMP"])?;
    let input = table.required_column(path, &["ContextTokens"])?;
    let output = table.required_column(path, &["GeneratedTokens"])?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    while let Some(row) = table.next(path)? {
        pass.read_item(row.place, |_, _| {
            let at = parse_instant(row.name(time), row.get(time)?)?;
            let asked = parse_tokens(row.name(input), row.get(input)?)?;
            let answered = parse_tokens(row.name(output), row.get(output)?)?;
            Ok(ItemOutcome::Entry(table_entry(at, asked, answered)))
        })?;
    }
    pass.finish(table.finish(path)?)
}
