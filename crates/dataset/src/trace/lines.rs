//! Traces of one object on each line, with the names of the blocks that prompts begin with.

use std::collections::HashMap;
use std::path::Path;

use goodput_model::Nanos;

use super::TraceSelection;
use super::decimal::parse_time_field;
use crate::error::{DatasetError, EntryError};
use crate::format::TraceFormat;
use crate::input::open_text;
use crate::items::Items;
use crate::object::JsonObject;
use crate::pass::{ItemOutcome, Keeper, Pass, PassTally};
use crate::{DatasetEntry, DatasetTurn};

/// One pass over a trace.
pub(super) fn scan_lines(
    path: &Path,
    format: TraceFormat,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<(PassTally, Option<u32>), DatasetError> {
    let own = if format == TraceFormat::Bailian { 16 } else { 512 };
    let block = options.block_tokens.unwrap_or(own).max(1);
    let mut items = Items::new(path, open_text(path)?)?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    let mut chats = Chats::default();
    while let Some((place, piece)) = items.next(path)? {
        pass.read_item(place, |_, _| {
            let text = piece?;
            if text.trim().is_empty() {
                return Ok(ItemOutcome::Skip("blank line".to_owned()));
            }
            let object = JsonObject::parse(text)?;
            let turn = DatasetTurn {
                input_tokens: Some(object.required_tokens("input_length")?),
                output_tokens: Some(object.required_tokens("output_length")?),
                blocks: parse_blocks(&object, "hash_ids", block)?,
                ..DatasetTurn::default()
            };
            let entry = match format {
                TraceFormat::Bailian => chats.bailian_entry(&object, turn)?,
                _ => chats.mooncake_entry(&object, turn)?,
            };
            Ok(ItemOutcome::Entry(entry))
        })?;
    }
    Ok((pass.finish(items.finish(path)?)?, Some(block)))
}

/// The names of a prompt's blocks: no more than its length has room for.
pub(super) fn parse_blocks(
    object: &JsonObject<'_>,
    name: &str,
    block: u32,
) -> Result<Vec<u64>, EntryError> {
    let Some(raw) = object.non_null(name) else { return Ok(Vec::new()) };
    let ids: Vec<u64> = serde_json::from_str(raw.get())
        .map_err(|_| EntryError::field(name, raw.get(), "an array of whole numbers from 0"))?;
    let field = if name == "blocks" { "input_tokens" } else { "input_length" };
    let input = object.required_tokens(field)?;
    let room = input.div_ceil(block);
    if ids.len() as u64 > u64::from(room) {
        let expected =
            format!("at most {room}: `{field}` is {input} and a block has {block} tokens");
        return Err(EntryError::field(name, &format!("{} blocks", ids.len()), &expected));
    }
    Ok(ids)
}

/// What is remembered of rows before.
#[derive(Default)]
struct Chats {
    /// The first chat of each chat's conversation.
    roots: HashMap<String, String>,
    /// When each session last asked.
    last: HashMap<String, Nanos>,
}

impl Chats {
    fn mooncake_entry(
        &mut self,
        object: &JsonObject<'_>,
        mut turn: DatasetTurn,
    ) -> Result<DatasetEntry, EntryError> {
        const EXPECTED: &str = "milliseconds, or a `delay` in a session that has begun";
        let session = object.label("session_id").or_else(|| object.label("chat_id"));
        let delay = object
            .non_null("delay")
            .map(|raw| parse_time_field("delay", raw.get(), 6))
            .transpose()?;
        turn.after = delay;
        let before = session.as_ref().and_then(|session| self.last.get(session)).copied();
        let at = match (object.non_null("timestamp"), before, delay) {
            (None, Some(before), Some(delay)) => before + delay,
            (stated, ..) => match stated {
                Some(raw) => parse_time_field("timestamp", raw.get(), 6)?,
                None => return Err(EntryError::missing("timestamp", object.names(), EXPECTED)),
            },
        };
        if let Some(session) = &session {
            self.last.insert(session.clone(), at);
        }
        let class = object.label("type");
        Ok(DatasetEntry {
            at: Some(at),
            session,
            class,
            turns: vec![turn],
            ..DatasetEntry::default()
        })
    }

    fn bailian_entry(
        &mut self,
        object: &JsonObject<'_>,
        turn: DatasetTurn,
    ) -> Result<DatasetEntry, EntryError> {
        let raw = object.required("timestamp", "seconds")?;
        let at = parse_time_field("timestamp", raw.get(), 9)?;
        let chat = object.label("chat_id");
        let parent = object.label("parent_chat_id").filter(|parent| parent != "-1");
        let root = match parent {
            Some(parent) => Some(self.roots.get(&parent).cloned().unwrap_or(parent)),
            None => chat.clone(),
        };
        if let (Some(chat), Some(root)) = (chat, &root) {
            self.roots.insert(chat, root.clone());
        }
        let class = object.label("type");
        Ok(DatasetEntry {
            at: Some(at),
            session: root,
            class,
            turns: vec![turn],
            ..DatasetEntry::default()
        })
    }
}
