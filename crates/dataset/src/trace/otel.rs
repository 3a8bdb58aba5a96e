//! OpenTelemetry's spans with `gen_ai` attributes: OTLP as JSON, Jaeger's export, and spans one by
//! one as console exporters print them.

mod shape;
mod span;
mod span_tree;

use std::path::Path;

use super::TraceSelection;
use crate::error::{DatasetError, EntryError, FilePosition};
use crate::items::Items;
use crate::pass::{ItemOutcome, Keeper, Pass, PassTally};
use crate::private;

use span::OtelSpan;
use span_tree::SpanFamily;

pub(crate) use shape::is_spans;

/// One pass over the spans, behind one that learns who called whom.
pub(super) fn scan_otel(
    path: &Path,
    options: &TraceSelection,
    keeper: &mut dyn Keeper,
) -> Result<PassTally, DatasetError> {
    let mut family = SpanFamily::default();
    walk_spans(path, &mut |place, found| match found {
        Ok(OtelItem::Span(span)) => {
            family.add(&span).map_err(|fault| DatasetError::new(path, place, fault))
        }
        _ => Ok(()),
    })?;
    let mut pass = Pass::new(path, options.skip_invalid, keeper);
    let sha256 = walk_spans(path, &mut |place, found| {
        pass.read_item(place, |_, _| match found? {
            OtelItem::Nothing(why) => Ok(ItemOutcome::Skip(why.to_owned())),
            OtelItem::Span(span) => match family.skip_reason(&span) {
                Some(why) => Ok(ItemOutcome::Skip(why.to_owned())),
                None => span.to_outcome(),
            },
        })
    })?;
    pass.finish(sha256)
}

/// What stands in a file.
enum OtelItem {
    Span(Box<OtelSpan>),
    /// None, and why.
    Nothing(&'static str),
}

type See<'a> =
    dyn FnMut(FilePosition, Result<OtelItem, EntryError>) -> Result<(), DatasetError> + 'a;

/// Shows every span of a file, and gives the file's hash.
fn walk_spans(path: &Path, see: &mut See<'_>) -> Result<String, DatasetError> {
    let mut items = Items::new_documents(path)?;
    while let Some((place, piece)) = items.next(path)? {
        match private::text_or_fault(piece) {
            Err(fault) => see(place, Err(fault))?,
            Ok(text) if text.trim().is_empty() => see(place, Ok(OtelItem::Nothing("blank line")))?,
            Ok(text) => shape::show_spans(text, &mut |found| see(place, found))?,
        }
    }
    items.finish(path)
}
