//! How many of the server's tokens one of ours is.
//!
//! Prompts are cut into blocks by our tokenizer, but a replay builds them with the server's tokens. The
//! first answers say how the two compare; until then nothing is cut.

use goodput_dataset::TraceRow;
use goodput_model::{Exchange, TokenSource};

/// Answers that settle it.
const ENOUGH: u64 = 32;

/// Prompts that tell: in shorter ones the words of the server's template weigh too much.
const LEAST: u32 = 256;

/// How far it is believed: beyond, something else is wrong.
const BELIEVED: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// RecordCounts of both.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScaleFactors {
    answers: u64,
    ours: u64,
    theirs: u64,
}

/// Tokens of a block: of the server's, as files and replays have it, and of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockCounts {
    pub(super) theirs: u32,
    pub(super) ours: u32,
}

/// Our tokens of a prompt that was not answered yet; 0 where there is more in it than text.
pub(super) fn own_prompt_tokens(row: &TraceRow) -> u32 {
    if row.params.get("attachments").is_some() { 0 } else { row.input_tokens }
}

impl ScaleFactors {
    /// A prompt of this many of our tokens, as [`own_prompt_tokens`] says, and its answer, which need not state
    /// a count.
    pub(super) fn add(&mut self, ours: u32, exchange: Option<&Exchange>) {
        self.answers += 1;
        let count = exchange.and_then(|exchange| exchange.input_tokens);
        let usage = count.filter(|count| count.source == TokenSource::Usage);
        if let Some(count) = usage.filter(|_| ours >= LEAST) {
            self.ours += u64::from(ours);
            self.theirs += u64::from(count.n);
        }
    }

    pub(super) fn is_settled(self) -> bool {
        self.answers >= ENOUGH
    }

    /// The block nearest to what is wanted whose two sizes fit each other well, as both are whole.
    pub(super) fn nearest_block(self, wanted: u32) -> BlockCounts {
        let ratio = self.theirs as f64 / self.ours as f64;
        // Without a count by the server, ours is used.
        if !BELIEVED.contains(&ratio) {
            return BlockCounts { theirs: wanted, ours: wanted };
        }
        let wide = (wanted / 4).max(1);
        let all = wanted.saturating_sub(wide).max(1)..=wanted.saturating_add(wide);
        let fit = |theirs: u32| {
            let ours = (f64::from(theirs) / ratio).round().max(1.0);
            let error = (ours * ratio / f64::from(theirs) - 1.0).abs();
            // A per cent or so is not worth another size than the server's caches may have.
            (
                (error * 66.0) as u32,
                theirs.abs_diff(wanted),
                BlockCounts { theirs, ours: ours as u32 },
            )
        };
        let best = all.map(fit).min_by_key(|(error, off, _)| (*error, *off));
        best.map_or(BlockCounts { theirs: wanted, ours: wanted }, |(_, _, block)| block)
    }
}

#[cfg(test)]
mod tests {
    use goodput_dataset::Param;
    use goodput_model::TokenCount;

    use super::*;

    fn scale(ours: u32, theirs: u32) -> ScaleFactors {
        let input_tokens = Some(TokenCount { n: theirs, source: TokenSource::Usage });
        let mut scale = ScaleFactors::default();
        scale.add(ours, Some(&Exchange { input_tokens, ..Exchange::default() }));
        scale
    }

    #[test]
    fn both_sizes_of_a_block_are_the_same_text() {
        let block = |ours, theirs| scale(ours, theirs).nearest_block(16);
        assert_eq!(block(1000, 1000), BlockCounts { theirs: 16, ours: 16 });
        assert_eq!(block(1000, 2000), BlockCounts { theirs: 16, ours: 8 });
        assert_eq!(block(2000, 1000), BlockCounts { theirs: 16, ours: 32 });
        // 16 would be 14.55 of ours; 12 are 10.9.
        assert_eq!(block(1000, 1100), BlockCounts { theirs: 12, ours: 11 });
        assert_eq!(scale(1000, 1003).nearest_block(16), BlockCounts { theirs: 16, ours: 16 });
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let plain = BlockCounts { theirs: 64, ours: 64 };
        assert_eq!(ScaleFactors::default().nearest_block(64), plain);
        assert_eq!(scale(1000, 10_000).nearest_block(64), plain);
        assert_eq!(scale(0, 1000).nearest_block(64), plain);
        assert_eq!(scale(1000, 1100).nearest_block(1), BlockCounts { theirs: 1, ours: 1 });
    }

    #[test]
    fn short_prompts_and_images_say_nothing() {
        let mut scale = scale(1000, 2000);
        let count = |n| Some(TokenCount { n, source: TokenSource::Usage });
        let short = Exchange { input_tokens: count(90), ..Exchange::default() };
        (0..1000).for_each(|_| scale.add(30, Some(&short)));
        let mut row = TraceRow { input_tokens: 1000, ..TraceRow::default() };
        assert_eq!(own_prompt_tokens(&row), 1000);
        row.params.set("attachments", Param::Whole(1));
        let image = Exchange { input_tokens: count(4000), ..Exchange::default() };
        scale.add(own_prompt_tokens(&row), Some(&image));
        assert_eq!(scale.nearest_block(16), BlockCounts { theirs: 16, ours: 8 });
    }

    #[test]
    fn only_counts_of_the_server_matter_and_waiting_has_an_end() {
        let mut scale = scale(1000, 2000);
        let input_tokens = Some(TokenCount { n: 7, source: TokenSource::Chunks });
        scale.add(1000, Some(&Exchange { input_tokens, ..Exchange::default() }));
        assert!(!scale.is_settled());
        (0..ENOUGH).for_each(|_| scale.add(1000, None));
        assert!(scale.is_settled());
        assert_eq!(scale.nearest_block(16), BlockCounts { theirs: 16, ours: 8 });
    }
}
