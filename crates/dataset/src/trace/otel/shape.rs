//! Where spans stand in the documents that hold them.

use serde_json::value::RawValue;

use super::OtelItem;
use super::span::{OtelSpan, find_attribute};
use crate::error::{DatasetError, EntryError};
use crate::object::JsonObject;
use crate::private;

/// Names of the arrays: of resources, of scopes in them.
const RESOURCES: [&str; 3] = ["resourceSpans", "resource_spans", "batches"];
const SCOPES: [&str; 3] = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"];

/// Other signals of OTLP, which a collector may write into the same file.
const OTHERS: [&str; 4] = ["resourceMetrics", "resourceLogs", "resource_metrics", "resource_logs"];

type See<'a> = dyn FnMut(Result<OtelItem, EntryError>) -> Result<(), DatasetError> + 'a;

/// Whether an object is a span, or holds some.
pub(crate) fn is_spans(object: &JsonObject<'_>) -> bool {
    if first_value(object, &RESOURCES).is_some() || is_span(object) {
        return true;
    }
    let is_trace = |raw: &RawValue| {
        serde_json::from_str::<JsonObject<'_>>(raw.get())
            .is_ok_and(|o| first_value(&o, &["spans"]).is_some())
    };
    let first = first_list(object, &["data"]).and_then(|traces| traces.first().copied());
    let has_id = object.get("traceID").is_some() || object.get("traceId").is_some();
    first.is_some_and(is_trace) || (has_id && object.get("spans").is_some())
}

fn is_span(object: &JsonObject<'_>) -> bool {
    let has = |name: &str| object.get(name).is_some();
    ["spanId", "spanID", "span_id", "context"].iter().any(|name| has(name))
        && ["attributes", "tags"].iter().any(|name| has(name))
}

/// The value of the first of these names that is there.
pub(super) fn first_value<'a>(object: &JsonObject<'a>, names: &[&str]) -> Option<&'a RawValue> {
    names.iter().find_map(|name| object.non_null(name))
}

/// The items of the first of these arrays that is there.
fn first_list<'a>(object: &JsonObject<'a>, names: &[&str]) -> Option<Vec<&'a RawValue>> {
    serde_json::from_str(first_value(object, names)?.get()).ok()
}

/// Shows the spans of a document.
pub(super) fn show_spans(text: &str, see: &mut See<'_>) -> Result<(), DatasetError> {
    let object = match private::parse_object(text) {
        Ok(object) => object,
        Err(fault) => return see(Err(fault)),
    };
    if let Some(resources) = first_list(&object, &RESOURCES) {
        return each_object(&resources, see, &mut |resource, see| {
            show_resource_spans(&resource, see)
        });
    }
    if let Some(traces) = first_list(&object, &["data"]) {
        return each_object(&traces, see, &mut |trace, see| show_scope_spans(&trace, "", see));
    }
    if object.non_null("spans").is_some() {
        return show_scope_spans(&object, "", see);
    }
    if is_span(&object) {
        return see(Ok(OtelItem::Span(Box::new(OtelSpan::read(&object, "")))));
    }
    if first_value(&object, &OTHERS).is_some() {
        return see(Ok(OtelItem::Nothing("metrics or logs")));
    }
    see(Err(EntryError::from("no spans: expected `resourceSpans`, `data`, or a span")))
}

/// Goes through objects; what is none is a fault of its own.
fn each_object(
    items: &[&RawValue],
    see: &mut See<'_>,
    read: &mut dyn FnMut(JsonObject<'_>, &mut See<'_>) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    for item in items {
        match private::parse_object(item.get()) {
            Ok(object) => read(object, see)?,
            Err(fault) => see(Err(fault))?,
        }
    }
    Ok(())
}

fn show_resource_spans(resource: &JsonObject<'_>, see: &mut See<'_>) -> Result<(), DatasetError> {
    // Numbers of sessions are those of one run.
    let run = first_value(resource, &["resource"])
        .and_then(|raw| serde_json::from_str::<JsonObject<'_>>(raw.get()).ok())
        .and_then(|object| find_attribute(object.non_null("attributes")?, "goodput.run.id"))
        .unwrap_or_default();
    match first_list(resource, &SCOPES) {
        Some(scopes) => {
            each_object(&scopes, see, &mut |scope, see| show_scope_spans(&scope, &run, see))
        }
        None => see(Ok(OtelItem::Nothing("a resource without spans"))),
    }
}

fn show_scope_spans(
    object: &JsonObject<'_>,
    run: &str,
    see: &mut See<'_>,
) -> Result<(), DatasetError> {
    match first_list(object, &["spans"]) {
        Some(spans) => each_object(&spans, see, &mut |span, see| {
            see(Ok(OtelItem::Span(Box::new(OtelSpan::read(&span, run)))))
        }),
        None => see(Ok(OtelItem::Nothing("a scope without spans"))),
    }
}
