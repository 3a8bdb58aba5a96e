//! What the text of the answers says: constraints kept, and tokens by a tokenizer of ours.

use std::collections::BTreeMap;

use goodput_model::{AnswerJudgement, RequestRecord, TokenSource};

use crate::flow::arrived_tokens;
use crate::summary::{RecountSummary, StructuredSummary};
use crate::window::Window;

/// Answers under constraints, by kind.
#[derive(Debug, Default)]
pub(super) struct StructuredTally(BTreeMap<&'static str, StructuredSummary>);

impl StructuredTally {
    /// Takes a measured request.
    pub(super) fn add(&mut self, record: &RequestRecord, judgement: Option<&AnswerJudgement>) {
        let Some(kind) = record.planned.constraint else { return };
        let summary = self.0.entry(kind.name()).or_default();
        summary.asked += 1;
        if record.is_ok() {
            summary.answered += 1;
            let valid = judgement.and_then(|judgement| judgement.valid);
            summary.checked += u64::from(valid.is_some());
            summary.valid += u64::from(valid == Some(true));
        }
    }

    pub(super) fn finish(self) -> BTreeMap<String, StructuredSummary> {
        let finish = |(kind, mut summary): (&str, StructuredSummary)| {
            let StructuredSummary { checked, valid, .. } = summary;
            summary.valid_share = (checked > 0).then(|| valid as f64 / checked as f64);
            (kind.to_owned(), summary)
        };
        self.0.into_iter().map(finish).collect()
    }
}

/// Answers by a tokenizer of ours.
#[derive(Debug, Default)]
pub(super) struct RecountTally {
    n: u64,
    tokens: u64,
    characters: u64,
    /// Tokens that arrived inside the window, of all phases.
    arrived: f64,
    /// Of answers that the server counted too: ours and its.
    ours: u64,
    theirs: u64,
}

impl RecountTally {
    /// Takes a request of any phase whose answer was judged; `counts` is whether its tokens belong
    /// to the window.
    pub(super) fn add(
        &mut self,
        record: &RequestRecord,
        judgement: &AnswerJudgement,
        window: Window,
        counts: bool,
    ) {
        let Some(tokens) = judgement.output_tokens else { return };
        if counts {
            self.arrived += arrived_tokens(record, Some(tokens), window);
        }
        if record.phase != goodput_model::Phase::Measured || !record.is_ok() {
            return;
        }
        self.n += 1;
        self.tokens += u64::from(tokens);
        self.characters += u64::from(judgement.characters);
        if let Some(count) = record.exchange.output_tokens
            && matches!(count.source, TokenSource::Usage | TokenSource::Chunks)
        {
            self.ours += u64::from(tokens);
            self.theirs += u64::from(count.n);
        }
    }

    pub(super) fn finish(self, tokenizer: Option<&str>, window: Window) -> Option<RecountSummary> {
        let seconds = window.seconds();
        (self.n > 0).then(|| RecountSummary {
            tokenizer: tokenizer.unwrap_or_default().to_owned(),
            n: self.n,
            output_tokens: self.tokens,
            characters: self.characters,
            output_tps: (seconds > 0.0).then(|| self.arrived / seconds),
            ratio_to_server: (self.theirs > 0).then(|| self.ours as f64 / self.theirs as f64),
        })
    }
}
