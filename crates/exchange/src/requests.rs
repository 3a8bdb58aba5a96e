//! One line for each request, of every phase: what happened, and what the summary made of it.

use std::io::Write;

use goodput_model::{ConstraintKind, Failure, Nanos, Phase, RequestRecord, Stamps, TimeSpan};
use goodput_stats::{Each, RequestFigures};

use crate::converted::ConvertedRun;
use crate::error::ExchangeError;
use crate::table::{ColumnType, RowCell, RowColumn};
use crate::{lines, rows};

/// A request and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRow {
    record: RequestRecord,
    figures: RequestFigures,
    error_class: Option<String>,
}

impl RequestRow {
    /// A record as the summary sees it.
    pub fn from_record(mut record: RequestRecord, each: &Each) -> Self {
        each.complete(&mut record);
        let figures = each.figures(&record);
        let failure = record.exchange.failure.as_ref();
        let error_class = failure.map(|failure| failure.class.to_string());
        Self { record, figures, error_class }
    }

    fn stamps(&self) -> &Stamps {
        &self.record.exchange.stamps
    }

    fn failure(&self) -> Option<&Failure> {
        self.record.exchange.failure.as_ref()
    }

    fn tcp(&self) -> Option<TimeSpan> {
        self.stamps().connect.map(|connect| connect.tcp)
    }

    fn tls(&self) -> Option<TimeSpan> {
        self.stamps().connect.and_then(|connect| connect.tls)
    }

    fn coalesced_chunks(&self) -> u64 {
        self.record.exchange.chunks.iter().filter(|chunk| chunk.coalesced).count() as u64
    }
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measured => "measured",
        Phase::Cooldown => "cooldown",
    }
}

macro_rules! column {
    ($name:ident: $kind:ident, $about:literal, $get:expr) => {
        RowColumn { name: stringify!($name), kind: ColumnType::$kind, about: $about, get: $get }
    };
}

/// The columns. Instants (`…_ms` below `blocked_ms`) count from the run's first instant.
#[rustfmt::skip]
pub(crate) static COLUMNS: [RowColumn<RequestRow>; 60] = [
    column!(index: Whole, "number of the request in the plan", |row| RowCell::Whole(row.record.index)),
    column!(phase: Text, "`warmup`, `measured` or `cooldown`; only measured requests enter the summary", |row| RowCell::Text(phase_word(row.record.phase))),
    column!(class: Text, "class of traffic", |row| RowCell::Text(&row.record.planned.class)),
    column!(session: Whole, "session it belongs to, if any", |row| RowCell::whole_number(row.record.planned.session)),
    column!(turn: Whole, "step of its session, from 0", |row| RowCell::Whole(row.record.planned.turn.into())),
    column!(worker: Whole, "thread that sent it", |row| RowCell::Whole(row.record.worker.into())),
    column!(connection: Whole, "connection of that worker", |row| RowCell::Whole(row.record.exchange.connection)),
    column!(request_id: Text, "`x-request-id` header sent with it", |row| RowCell::text(row.record.exchange.request_id.as_deref())),
    column!(ok: Flag, "whether it completed", |row| RowCell::Flag(row.record.is_ok())),
    column!(status: Whole, "HTTP status", |row| RowCell::whole_number(row.record.exchange.status)),
    column!(finish_reason: Text, "why the answer ended, as the server reported it", |row| RowCell::text(row.record.exchange.finish.as_deref())),
    column!(error_class: Text, "class of the failure", |row| RowCell::text(row.error_class.as_deref())),
    column!(error_stage: Text, "stage that it reached: `connect`, `send`, `headers`, \
                                `first_token`, `stream`", |row| RowCell::text(row.failure().map(|failure| failure.stage.name()))),
    column!(error_message: Text, "message of the server or the system; text from outside", |row| RowCell::text(row.failure().map(|failure| failure.message.as_str()))),
    column!(slo_kept: Flag, "whether it is good by the run's SLO; empty without an SLO, outside \
                             the measured part, and where it cannot be determined", |row| RowCell::flag(row.figures.slo_kept)),
    column!(timed_out: Flag, "given up at a time limit: its missing times are longer than that", |row| RowCell::Flag(row.figures.timed_out)),
    column!(spoilt: Flag, "a stall of the client affected it; times that span the stall are \
                           empty, because the summary leaves them out", |row| RowCell::Flag(row.figures.spoiled)),
    column!(ttft_ms: Number, "scheduled instant to first token", |row| RowCell::number(row.figures.ttft_ms)),
    column!(ttfa_ms: Number, "scheduled instant to first token of the answer itself", |row| RowCell::number(row.figures.ttfa_ms)),
    column!(ttft_sent_ms: Number, "first byte sent to first token", |row| RowCell::number(row.figures.ttft_sent_ms)),
    column!(e2e_ms: Number, "scheduled instant to last token", |row| RowCell::number(row.figures.e2e_ms)),
    column!(e2e_sent_ms: Number, "first byte sent to last token", |row| RowCell::number(row.figures.e2e_sent_ms)),
    column!(tpot_ms: Number, "time per output token after the first", |row| RowCell::number(row.figures.tpot_ms)),
    column!(max_gap_ms: Number, "longest gap between chunks", |row| RowCell::number(row.figures.max_gap_ms)),
    column!(normalized_latency_ms: Number, "`e2e_ms` per output token", |row| RowCell::number(row.figures.normalized_latency_ms)),
    column!(tokens_per_s: Number, "output tokens per second of `e2e_ms`", |row| RowCell::number(row.figures.tokens_per_s)),
    column!(slip_ms: Number, "delay that the client itself caused", |row| RowCell::number(row.record.slip().map(Nanos::as_ms))),
    column!(cap_wait_ms: Number, "held back by `--max-concurrency`", |row| RowCell::Number(row.record.cap_wait.as_ms())),
    column!(blocked_ms: Number, "time lost on a dead pooled connection, or waiting for a shared \
                                 one", |row| RowCell::Number(row.record.exchange.blocked.as_ms())),
    column!(scheduled_ms: Number, "scheduled instant", |row| RowCell::Number(row.record.scheduled.as_ms())),
    column!(dispatched_ms: Number, "released by the worker", |row| RowCell::Number(row.stamps().dispatched.as_ms())),
    column!(tcp_start_ms: Number, "start of the TCP handshake; empty on a reused connection", |row| RowCell::number(row.tcp().map(|span| span.start.as_ms()))),
    column!(tcp_end_ms: Number, "TCP handshake done", |row| RowCell::number(row.tcp().map(|span| span.end.as_ms()))),
    column!(tls_start_ms: Number, "TLS handshake begun", |row| RowCell::number(row.tls().map(|span| span.start.as_ms()))),
    column!(tls_end_ms: Number, "TLS handshake done", |row| RowCell::number(row.tls().map(|span| span.end.as_ms()))),
    column!(sent_first_ms: Number, "first byte handed to the socket", |row| RowCell::number(row.stamps().sent_first.map(Nanos::as_ms))),
    column!(sent_last_ms: Number, "last byte taken by the socket", |row| RowCell::number(row.stamps().sent_last.map(Nanos::as_ms))),
    column!(headers_ms: Number, "status line and headers received", |row| RowCell::number(row.stamps().headers.map(Nanos::as_ms))),
    column!(first_byte_ms: Number, "first byte of the body", |row| RowCell::number(row.stamps().first_byte.map(Nanos::as_ms))),
    column!(first_token_ms: Number, "first token of any channel", |row| RowCell::number(row.stamps().first_token.map(Nanos::as_ms))),
    column!(first_answer_ms: Number, "first token of the answer itself or of a tool call", |row| RowCell::number(row.stamps().first_answer.map(Nanos::as_ms))),
    column!(last_token_ms: Number, "last token", |row| RowCell::number(row.stamps().last_token.map(Nanos::as_ms))),
    column!(done_ms: Number, "`[DONE]` or the end of the body", |row| RowCell::number(row.stamps().done.map(Nanos::as_ms))),
    column!(ended_ms: Number, "end of the request, completed or failed", |row| RowCell::Number(row.stamps().ended.as_ms())),
    column!(planned_input_tokens: Whole, "planned prompt length", |row| RowCell::Whole(row.record.planned.input_tokens.into())),
    column!(planned_output_tokens: Whole, "requested answer length", |row| RowCell::whole_number(row.record.planned.output_tokens)),
    column!(input_tokens: Whole, "prompt tokens counted", |row| RowCell::whole_number(row.record.exchange.input_tokens.map(|count| count.n))),
    column!(input_tokens_source: Text, "source of the count: `usage` or `planned`", |row| RowCell::text(row.record.exchange.input_tokens.map(|count| count.source.name()))),
    column!(cached_tokens: Whole, "prompt tokens from the server's cache, where it reports them", |row| RowCell::whole_number(row.record.exchange.cached_tokens)),
    column!(image_tokens: Whole, "prompt tokens that stand for images, where the server reports \
                                  them", |row| RowCell::whole_number(row.record.exchange.image_tokens)),
    column!(output_tokens: Whole, "output tokens", |row| RowCell::whole_number(row.record.exchange.output_tokens.map(|count| count.n))),
    column!(output_tokens_source: Text, "source of the count: `usage`, `token_ids`, `tokenizer` \
                                         or `chunks`", |row| RowCell::text(row.record.exchange.output_tokens.map(|count| count.source.name()))),
    column!(chunks: Whole, "events that carried tokens", |row| RowCell::Whole(row.record.exchange.chunks.len() as u64)),
    column!(coalesced_chunks: Whole, "chunks that arrived in the same read as another", |row| RowCell::Whole(row.coalesced_chunks())),
    column!(constraint: Text, "kind of constraint on the answer", |row| RowCell::text(row.record.planned.constraint.map(ConstraintKind::name))),
    column!(images: Whole, "images in the prompt", |row| RowCell::Whole(row.record.planned.images.into())),
    column!(body_bytes: Whole, "bytes of the request's body", |row| RowCell::Whole(row.record.exchange.body_bytes)),
    column!(reconnects: Whole, "pooled connections that were dead (at most 1)", |row| RowCell::Whole(row.record.exchange.reconnects.into())),
    column!(retransmits: Whole, "TCP segments that the client sent again", |row| RowCell::whole_number(row.record.exchange.tcp.map(|tcp| tcp.retransmits))),
    column!(min_rtt_ms: Number, "shortest round trip of its connection", |row| RowCell::number(row.record.exchange.tcp.map(|tcp| tcp.min_rtt.as_ms()))),
];

/// As CSV.
pub fn requests_csv(
    out: &mut dyn Write,
    rows: impl Iterator<Item = RequestRow>,
) -> Result<(), ExchangeError> {
    lines::write_csv_rows(out, &COLUMNS, rows)
}

/// As Parquet.
pub fn requests_parquet(
    out: &mut (dyn Write + Send),
    run: &ConvertedRun<'_>,
    rows: impl Iterator<Item = RequestRow>,
) -> Result<(), ExchangeError> {
    rows::write_parquet(out, &COLUMNS, &run.metadata("goodput.requests/1"), rows)
}
