//! Judgements by request.

use goodput_model::{AnswerJudgement, RequestRecord, TokenCount, TokenSource};

/// What was found out about answers after the run, in the order of their requests.
#[derive(Debug, Default)]
pub(crate) struct Judgements(Vec<AnswerJudgement>);

impl Judgements {
    pub(crate) fn new(judgements: impl IntoIterator<Item = AnswerJudgement>) -> Self {
        let mut judgements: Vec<_> = judgements.into_iter().collect();
        judgements.sort_by_key(|judgement| judgement.index);
        Self(judgements)
    }

    /// The latest about this request.
    pub(crate) fn get(&self, index: u64) -> Option<&AnswerJudgement> {
        let next = self.0.partition_point(|judgement| judgement.index <= index);
        self.0[..next].last().filter(|judgement| judgement.index == index)
    }

    /// Our own count, where the server gave none.
    pub(crate) fn complete(&self, record: &mut RequestRecord) {
        let by_server = |count: TokenCount| count.source != TokenSource::Events;
        if record.exchange.output_tokens.is_some_and(by_server) {
            return;
        }
        if let Some(n) = self.get(record.index).and_then(|judgement| judgement.output_tokens) {
            record.exchange.output_tokens = Some(TokenCount { n, source: TokenSource::Tokenizer });
        }
    }
}
