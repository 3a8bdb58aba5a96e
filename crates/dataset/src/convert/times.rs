//! Forms that hold instants and lengths.

use std::io::{self, Write};

use goodput_model::Nanos;

use super::Converted;
use crate::trace::{TraceRow, TraceRowWriter, seconds_text};
use crate::{DatasetEntry, Loaded};

/// Tokens of one of Mooncake's blocks.
const MOONCAKE_BLOCK: u32 = 512;

/// The rows of all entries. A turn is due when the answer before it has ended and its pause is over.
fn for_each_row(
    loaded: &Loaded,
    converted: &mut Converted,
    mut write: impl FnMut(TraceRow, &mut Converted) -> io::Result<()>,
) -> io::Result<()> {
    for entry in &loaded.entries {
        let mut at = entry.at;
        for turn in &entry.turns {
            let Some(now) = at else {
                converted.count_loss("turns without a timestamp", true);
                continue;
            };
            let took = turn.took.unwrap_or_default();
            let (Some(input_tokens), Some(output_tokens)) = (turn.input_tokens, turn.output_tokens)
            else {
                converted.count_loss("turns without lengths", true);
                continue;
            };
            converted.count_loss("text", !turn.messages.is_empty());
            converted.count_loss("fields", !turn.fields.is_empty());
            let served = turn.served.as_deref().cloned().unwrap_or_default();
            converted.count_loss("params", served.has_params);
            converted.count_loss("gaps", served.has_gaps);
            let row = TraceRow {
                at: now + turn.after.filter(|_| entry.turns.len() > 1).unwrap_or_default(),
                session: session_name(entry),
                class: entry.class.clone(),
                input_tokens,
                output_tokens,
                blocks: turn.blocks.clone(),
                took: turn.took,
                after: turn.after,
                endpoint: served.endpoint,
                model: served.model,
                ttft: served.ttft,
                status: served.status,
                finish: served.finish,
                failure: served.failure,
                input_by: served.input_by,
                output_by: served.output_by,
                cached_tokens: served.cached_tokens,
                ..TraceRow::default()
            };
            at = Some(row.at + took);
            write(row, converted)?;
            converted.written += 1;
        }
    }
    Ok(())
}

/// What links the turns of an entry: its session, or its place in the file.
fn session_name(entry: &DatasetEntry) -> Option<String> {
    let place = || (entry.turns.len() > 1).then(|| format!("line-{}", entry.line));
    entry.session.clone().or_else(place)
}

pub(super) fn write_goodput(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    let mut writer = TraceRowWriter::new(out, loaded.block_tokens)?;
    for_each_row(loaded, converted, |mut row, converted| {
        if loaded.block_tokens.is_none() {
            converted.count_loss("blocks", !row.blocks.is_empty());
            row.blocks.clear();
        }
        writer.write(&row)
    })
}

pub(super) fn write_mooncake(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    for_each_row(loaded, converted, |mut row, converted| {
        if loaded.block_tokens != Some(MOONCAKE_BLOCK) {
            converted.count_loss("blocks of a size other than 512", !row.blocks.is_empty());
            row.blocks.clear();
        }
        converted.count_loss("took", row.took.is_some());
        write!(
            out,
            r#"{{"timestamp":{},"input_length":{},"output_length":{},"hash_ids":{}"#,
            millis_text(row.at),
            row.input_tokens,
            row.output_tokens,
            serde_json::to_string(&row.blocks)?
        )?;
        for (name, text) in [("session_id", &row.session), ("type", &row.class)] {
            if let Some(text) = text {
                write!(out, r#","{name}":{}"#, serde_json::to_string(text)?)?;
            }
        }
        if let Some(after) = row.after {
            write!(out, r#","delay":{}"#, millis_text(after))?;
        }
        out.write_all(b"}\n")
    })
}

/// Nanoseconds as decimal milliseconds, as short as they can be.
fn millis_text(nanos: Nanos) -> String {
    let text = format!("{}.{:06}", nanos.0 / 1_000_000, nanos.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn write_azure(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    writeln!(out, "TIMESTAMP,ContextTokens,GeneratedTokens")?;
    for_each_row(loaded, converted, |row, converted| {
        converted.count_loss("session", row.session.is_some());
        converted.count_loss("class", row.class.is_some());
        converted.count_loss("blocks", !row.blocks.is_empty());
        converted.count_loss("took", row.took.is_some());
        converted.count_loss("after", row.after.is_some());
        writeln!(out, "{},{},{}", seconds_text(row.at), row.input_tokens, row.output_tokens)
    })
}

pub(super) fn write_burstgpt(
    loaded: &Loaded,
    out: &mut dyn Write,
    converted: &mut Converted,
) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record([
        "Timestamp",
        "Session ID",
        "Elapsed time",
        "Model",
        "Request tokens",
        "Response tokens",
        "Total tokens",
        "Log Type",
    ])?;
    for_each_row(loaded, converted, |row, converted| {
        converted.count_loss("blocks", !row.blocks.is_empty());
        converted.count_loss("after", row.after.is_some());
        let class = row.class.as_deref().unwrap_or_default();
        let (model, kind) = class.split_once('/').unwrap_or((class, ""));
        let total = u64::from(row.input_tokens) + u64::from(row.output_tokens);
        table.write_record([
            seconds_text(row.at).as_str(),
            row.session.as_deref().unwrap_or_default(),
            row.took.map(seconds_text).unwrap_or_default().as_str(),
            model,
            &row.input_tokens.to_string(),
            &row.output_tokens.to_string(),
            &total.to_string(),
            kind,
        ])?;
        Ok(())
    })?;
    table.flush()
}
