//! Tokens and the events that carried them.

use goodput_model::{
    Caveat, CaveatCode, MetricName, Plan, RequestRecord, Severity, SloMetric, TokenSource,
};

use super::Evidence;

/// Counts may differ by so much.
const COUNT_TOLERANCE: f64 = 0.02;
/// A server may overrun a limit, and count hidden tokens; not by more than this factor where the text is
/// known, nor by more than that where it is not.
const OVERRUN: u64 = 2;
const BLIND_OVERRUN: u64 = 16;
/// Chunks that shared a read matter above this share, and are most of all gaps above that.
const COALESCED: f64 = 0.1;
const MOSTLY_COALESCED: f64 = 0.5;

/// A server that ignores what it was asked for, or something before it that buffers.
pub(super) fn check_not_streamed(e: &Evidence<'_>) -> Option<Caveat> {
    e.requests.is_partly_whole().then(|| {
        let message = format!(
            "{} of {} answers came in one piece although streaming was requested: TTFT, TPOT, and \
             ITL say nothing about the server",
            e.requests.whole, e.requests.ok
        );
        let advice = "check that the server honors `stream: true` and that no gateway or proxy in \
                      front of it buffers answers; --no-stream measures E2E only";
        // An SLO on what did not happen cannot be judged.
        let mut terms = e.plan.measure.slo.iter().flat_map(|slo| &slo.terms);
        let is_unjudged =
            2 * e.requests.whole > e.requests.ok && terms.any(|term| needs_stream(term.metric));
        let severity = if is_unjudged { Severity::Void } else { Severity::Warn };
        Caveat::new(CaveatCode::NotStreamed, severity, message).advise(advice)
    })
}

/// Whether a metric counts from or between the tokens of a stream.
fn needs_stream(metric: SloMetric) -> bool {
    use MetricName::{Itl, MaxGap, Tpot, Ttfa, Ttft};
    match metric {
        SloMetric::Request(name) => matches!(name, Ttft | Ttfa | Tpot | Itl | MaxGap),
        SloMetric::Fluidity => true,
        SloMetric::Errors | SloMetric::Rps | SloMetric::OutputTps => false,
    }
}

pub(super) fn check_tokens_by_chunks(e: &Evidence<'_>) -> Option<Caveat> {
    (e.is_counted_by_chunks && e.tokens.output > 0).then(|| {
        let message = "the server did not report token usage for every answer: chunks are counted \
                       as tokens, and one chunk may hold several";
        let advice = if e.plan.target.usage {
            "count them with the model's own tokenizer: --tokenizer, or --count-with"
        } else {
            "remove --no-usage, or count them with --tokenizer"
        };
        Caveat::new(CaveatCode::TokensByChunks, Severity::Info, message).advise(advice)
    })
}

pub(super) fn check_tokens_uncounted(e: &Evidence<'_>) -> Option<Caveat> {
    let uncounted = e.tokens.uncounted;
    (uncounted > 0).then(|| {
        let message = format!(
            "{uncounted} completed requests have no token count: token figures leave them out"
        );
        Caveat::new(CaveatCode::TokensUncounted, Severity::Warn, message)
            .advise("count them with --tokenizer")
    })
}

pub(super) fn check_several_tokens_a_chunk(e: &Evidence<'_>) -> Option<Caveat> {
    // Up to one token an answer ends it and is in no chunk.
    let shown = e.tokens.output.saturating_sub(e.requests.ok) as f64;
    let ratio = shown / e.tokens.chunks.max(1) as f64;
    (e.tokens.chunks > 0 && ratio > 1.2).then(|| {
        let message = format!(
            "chunks hold {ratio:.1} tokens on average: ITL is the time between chunks, TPOT the \
             time per token"
        );
        Caveat::new(CaveatCode::SeveralTokensAChunk, Severity::Info, message)
            .advise("compare TPOT, or ITL/token, rather than ITL")
    })
}

/// Chunks that came in one read have no time between them.
pub(super) fn check_coalesced_chunks(e: &Evidence<'_>) -> Option<Caveat> {
    let share = e.tokens.coalesced_chunks as f64 / e.tokens.chunks.max(1) as f64;
    // For answers held back to the end, another caveat says it.
    let is_held_back = e.requests.is_partly_whole();
    (share > COALESCED && e.plan.target.stream && !is_held_back).then(|| {
        let is_most = share > MOSTLY_COALESCED;
        let severity = if is_most { Severity::Warn } else { Severity::Info };
        let itl = e.key.itl_p50_ms.map_or(String::new(), |itl| format!(" (p50 {itl:.2} ms)"));
        let message = format!(
            "{:.0} % of the chunks arrived in the same read as another: ITL{itl} shows how chunks \
             were grouped, not how fast tokens are generated",
            share * 100.0
        );
        let advice = "judge by TPOT; likely causes are a proxy that buffers, a server that sends \
                      several tokens at once (stream interval, multi-step or speculative decoding), \
                      or a client that reads late";
        Caveat::new(CaveatCode::ChunksCoalesced, severity, message).advise(advice)
    })
}

/// Answers for which the server states more tokens than were asked for and than they can hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Overstated {
    pub(crate) answers: u64,
    /// The first of them: stated, and asked for.
    pub(crate) first: Option<(u32, u32)>,
}

impl Overstated {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let exchange = &record.exchange;
        let stated = exchange.output_tokens.filter(|count| count.source == TokenSource::Usage);
        let (Some(stated), Some(asked)) = (stated, record.planned.output_tokens) else { return };
        let answers = exchange.chunks.iter().map(|chunk| u64::from(chunk.choice) + 1).max();
        let of_chunks = exchange.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum::<u64>();
        let of_text = exchange.text.as_ref().map(|text| text.len() as u64);
        // A token is a byte of text at least, or an event of its own.
        let shown = answers.map(|_| of_chunks + exchange.chunks.len() as u64).max(of_text);
        let factor = if shown.is_some() { OVERRUN } else { BLIND_OVERRUN };
        let most = factor.saturating_mul(asked.into()).saturating_mul(answers.unwrap_or(1));
        if u64::from(stated.n) > most.max(shown.unwrap_or(0)) {
            self.answers += 1;
            self.first.get_or_insert((stated.n, asked));
        }
    }

    /// Whether the plan's lengths are those that requests ask for.
    pub(super) fn is_checkable(plan: &Plan) -> bool {
        let extra = plan.target.extra_body.as_deref().unwrap_or_default();
        !["\"max_tokens\"", "\"max_completion_tokens\"", "\"n\""]
            .iter()
            .any(|key| extra.contains(key))
    }
}

/// Counts that cannot be true: everything per token rests on them.
pub(super) fn check_impossible_counts(e: &Evidence<'_>) -> Option<Caveat> {
    let found = e.tally.overstated;
    let (stated, asked) = found.first?;
    let message = format!(
        "for {} of {} answers the server reports more tokens than were requested and than the \
         answer can hold ({stated} instead of {asked}): no figure that counts tokens is right",
        found.answers, e.requests.ok
    );
    let advice = "count them with the model's own tokenizer (--tokenizer), or as chunks \
                  (--no-usage), and find out why the server's `usage` is wrong";
    Some(Caveat::new(CaveatCode::TokenCountsImpossible, Severity::Void, message).advise(advice))
}

/// Server and tokenizer count the same answers differently, by more than an end-of-text token each.
pub(super) fn check_disagreeing_counts(e: &Evidence<'_>) -> Option<Caveat> {
    let recount = e.figures.recount.as_ref()?;
    let ratio = recount.ratio_to_server.filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
    let mean = recount.output_tokens as f64 / recount.n.max(1) as f64;
    // A server counts the token that ends a text; a tokenizer of ours sees only the text.
    let hidden = if ratio < 1.0 { ratio / mean.max(1.0) } else { 0.0 };
    let excess = (ratio - 1.0).abs() - hidden;
    (excess > COUNT_TOLERANCE + 1e-9).then(|| {
        // Another unit on purpose is not a contradiction.
        let workload = &e.plan.workload;
        let is_foreign = workload.count_with.is_some() && workload.count_with != workload.tokenizer;
        let severity = if is_foreign { Severity::Info } else { Severity::Warn };
        let message = format!(
            "the server and the tokenizer `{}` count differently: the tokenizer counts {ratio:.3} \
             times as many in the same {} answers",
            recount.tokenizer, recount.n
        );
        let advice = if is_foreign {
            "this server's tokens per second and recounted ones are different units; compare like \
             with like"
        } else {
            "pass this model's tokenizer with --tokenizer, and check whether the server counts \
             hidden tokens (reasoning, tools)"
        };
        Caveat::new(CaveatCode::TokenCountsDisagree, severity, message).advise(advice)
    })
}
