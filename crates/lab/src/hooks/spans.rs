//! From the record of a request to its span, in the words of OpenTelemetry's conventions for
//! generative AI where they have one, and in ours (`goodput.…`) where they do not.

use std::net::SocketAddr;

use goodput_model::{Api, Header, Nanos, Phase, Plan, RequestRecord, TraceIds, Tracer};
use goodput_record::Manifest;
use goodput_wire::BaseUrl;

use super::otlp::{
    AnyValue, Attributes, CLIENT, ERROR, Resource, SAMPLED, Span, SpanEvent, SpanStatus,
};

/// Makes spans of one run.
pub(super) struct Spans<'a> {
    plan: &'a Plan,
    manifest: &'a Manifest,
    tracer: Tracer,
    server: Option<(String, u16)>,
}

impl<'a> Spans<'a> {
    /// None if nothing was traced.
    pub(super) fn new(plan: &'a Plan, manifest: &'a Manifest) -> Option<Self> {
        let nonce = u64::from_str_radix(manifest.trace_nonce.as_deref()?, 16).ok()?;
        let tracer = Tracer::new(plan.load.seed, nonce, plan.observe.trace_share?);
        Some(Self { plan, manifest, tracer, server: server_address(manifest) })
    }

    /// What is the same for all spans of the run.
    pub(super) fn run_resource(&self) -> Resource {
        let mut attributes = Attributes::default();
        attributes.add("service.name", "goodput");
        attributes.add("service.version", self.manifest.version.as_str());
        attributes.add_if_some("goodput.run.id", self.manifest.trace_nonce.as_deref());
        attributes.add("goodput.run.started", self.manifest.started.as_str());
        attributes.add("goodput.seed", self.plan.load.seed);
        attributes.add("goodput.target", self.manifest.target.url.as_str());
        // Where the user sends one of their own, the server's spans are not below ours.
        let is_users = |header: &Header| header.name.eq_ignore_ascii_case("traceparent");
        let is_ours = !self.plan.target.headers.iter().any(is_users);
        attributes.add("goodput.traceparent_sent", is_ours);
        Resource { attributes: attributes.0 }
    }

    /// The span of a request; none if it was not traced.
    pub(super) fn span_of(&self, record: &RequestRecord) -> Option<Span> {
        let ids = self.tracer.ids(record.index)?;
        Some(self.request_span(record, ids))
    }

    fn request_span(&self, record: &RequestRecord, ids: TraceIds) -> Span {
        let at = |instant| self.manifest.unix_ns(instant).to_string();
        let failure = record.exchange.failure.as_ref();
        Span {
            trace: ids.trace_hex(),
            id: ids.span_hex(),
            flags: SAMPLED,
            name: format!("{} {}", self.operation_name(), self.manifest.target.model),
            kind: CLIENT,
            // A user waits from the instant that the request is due.
            start_time_unix_nano: at(record.scheduled),
            end_time_unix_nano: at(last_instant(record)),
            attributes: self.request_attributes(record),
            events: request_stages(record)
                .map(|(name, instant)| SpanEvent { time_unix_nano: at(instant), name })
                .collect(),
            status: failure.map_or_else(SpanStatus::default, |failure| SpanStatus {
                message: Some(goodput_model::escape_control(&failure.message)),
                code: Some(ERROR),
            }),
        }
    }

    fn operation_name(&self) -> &'static str {
        match self.plan.target.api {
            Api::Chat => "chat",
            Api::Completions => "text_completion",
        }
    }

    fn request_attributes(&self, record: &RequestRecord) -> Vec<super::otlp::KeyValue> {
        let exchange = &record.exchange;
        let (stamps, planned) = (&exchange.stamps, &record.planned);
        let mut all = Attributes::default();
        all.add("gen_ai.operation.name", self.operation_name());
        // Whose API it is, not who runs the server.
        all.add("gen_ai.provider.name", "openai");
        all.add("gen_ai.request.model", self.manifest.target.model.as_str());
        all.add_if_some("gen_ai.request.max_tokens", planned.output_tokens);
        all.add_if_some("gen_ai.usage.input_tokens", exchange.input_tokens.map(|count| count.n));
        all.add_if_some("gen_ai.usage.output_tokens", exchange.output_tokens.map(|count| count.n));
        let reason = |finish: &String| vec![AnyValue::from(finish.as_str())];
        let reasons = exchange.finish.as_ref().map(reason);
        let reasons = reasons.map(|values| AnyValue::Array { values });
        all.add_if_some("gen_ai.response.finish_reasons", reasons);
        if let Some((host, port)) = &self.server {
            all.add("server.address", host.as_str());
            all.add("server.port", u32::from(*port));
        }
        all.add_if_some("http.response.status_code", exchange.status.map(u32::from));
        all.add_if_some(
            "error.type",
            exchange.failure.as_ref().map(|failure| failure.class.to_string()),
        );
        all.add("goodput.index", record.index);
        all.add("goodput.phase", phase_name(record.phase));
        all.add("goodput.class", &*planned.class);
        all.add_if_some("goodput.session", planned.session);
        all.add_if_some("goodput.turn", planned.session.map(|_| planned.turn));
        all.add_if_some("goodput.request_id", exchange.request_id.as_deref());
        all.add_if_some("goodput.slip_ms", record.slip().map(Nanos::as_ms));
        let since_due = |end: Option<Nanos>| end.map(|end| (end - record.scheduled).as_ms());
        if self.plan.target.stream {
            all.add_if_some("goodput.ttft_ms", since_due(stamps.first_token));
            all.add_if_some("goodput.tpot_ms", goodput_stats::tpot_ms(record));
        }
        all.add_if_some("goodput.e2e_ms", since_due(stamps.last_token.filter(|_| record.is_ok())));
        all.add_if_some("goodput.cached_tokens", exchange.cached_tokens);
        all.add_if_some(
            "goodput.output_tokens.source",
            exchange.output_tokens.map(|n| n.source.name()),
        );
        all.add("goodput.connection.reused", stamps.connect.is_none());
        all.0
    }
}

/// The stages of a request, in the order it passes them, as far as it came.
fn request_stages(record: &RequestRecord) -> impl Iterator<Item = (&'static str, Nanos)> {
    let stamps = &record.exchange.stamps;
    let connected =
        stamps.connect.map(|connect| connect.tls.map_or(connect.tcp.end, |tls| tls.end));
    [
        ("scheduled", Some(record.scheduled)),
        ("dispatched", Some(stamps.dispatched)),
        ("connecting", stamps.connect.map(|connect| connect.tcp.start)),
        ("connected", connected),
        ("sent", stamps.sent_last),
        ("headers", stamps.headers),
        ("first_token", stamps.first_token),
        ("last_token", stamps.last_token),
        ("done", stamps.done),
    ]
    .into_iter()
    .filter_map(|(name, at)| at.map(|at| (name, at)))
}

/// The end of the span: nothing of it is later.
fn last_instant(record: &RequestRecord) -> Nanos {
    request_stages(record).map(|(_, at)| at).fold(record.end(), Nanos::max)
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measured => "measured",
        Phase::Cooldown => "cooldown",
    }
}

/// Host and port, as the URL has them, or as they were found.
fn server_address(manifest: &Manifest) -> Option<(String, u16)> {
    let url = manifest.target.url.split('?').next().unwrap_or_default();
    if let Ok(url) = url.parse::<BaseUrl>() {
        let (host, port) = url.host();
        return Some((host.to_owned(), port));
    }
    let address: SocketAddr = manifest.target.address.parse().ok()?;
    Some((address.ip().to_string(), address.port()))
}
