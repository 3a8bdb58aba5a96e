//! OTLP/JSON as far as traces need it: `ExportTraceServiceRequest` of opentelemetry-proto 1.x. Ids
//! are hexadecimal, 64-bit integers are text.

use serde::Serialize;

/// `ExportTraceServiceRequest`, and a line of an OTLP file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TracesData<'a> {
    pub(super) resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans<'a> {
    pub(super) resource: &'a Resource,
    pub(super) scope_spans: [ScopeSpans<'a>; 1],
}

/// Who made the spans.
#[derive(Debug, Serialize)]
pub(super) struct Resource {
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeSpans<'a> {
    pub(super) scope: Scope,
    pub(super) spans: &'a [Span],
}

#[derive(Debug, Serialize)]
pub(super) struct Scope {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    #[serde(rename = "traceId")]
    pub(super) trace: String,
    #[serde(rename = "spanId")]
    pub(super) id: String,
    /// As in `traceparent`.
    pub(super) flags: u32,
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) start_time_unix_nano: String,
    pub(super) end_time_unix_nano: String,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) events: Vec<SpanEvent>,
    pub(super) status: SpanStatus,
}

/// `SPAN_KIND_CLIENT`
pub(super) const CLIENT: u32 = 3;

/// `W3C` flag of a trace that is recorded.
pub(super) const SAMPLED: u32 = 1;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanEvent {
    pub(super) time_unix_nano: String,
    pub(super) name: &'static str,
}

/// Unset where all went well: that is for those to say who know the whole trace.
#[derive(Debug, Default, Serialize)]
pub(super) struct SpanStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<u32>,
}

/// `STATUS_CODE_ERROR`
pub(super) const ERROR: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct KeyValue {
    pub(super) key: &'static str,
    pub(super) value: AnyValue,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) enum AnyValue {
    #[serde(rename = "stringValue")]
    Text(String),
    /// As text.
    #[serde(rename = "intValue")]
    Int(String),
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[serde(rename = "arrayValue")]
    Array { values: Vec<AnyValue> },
}

impl From<&str> for AnyValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AnyValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AnyValue {
    fn from(n: u64) -> Self {
        Self::Int(n.to_string())
    }
}

impl From<u32> for AnyValue {
    fn from(n: u32) -> Self {
        Self::Int(n.to_string())
    }
}

impl From<f64> for AnyValue {
    fn from(x: f64) -> Self {
        Self::Double(x)
    }
}

impl From<bool> for AnyValue {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

/// Attributes that are known; those that are not are left out.
#[derive(Debug, Default)]
pub(super) struct Attributes(pub(super) Vec<KeyValue>);

impl Attributes {
    pub(super) fn add(&mut self, key: &'static str, value: impl Into<AnyValue>) {
        self.0.push(KeyValue { key, value: value.into() });
    }

    pub(super) fn add_if_some(&mut self, key: &'static str, value: Option<impl Into<AnyValue>>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }
}
