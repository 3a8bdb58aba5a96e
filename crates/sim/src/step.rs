//! How long one step takes.
//!
//! `t = base + max(d, p) + (1 - overlap) * min(d, p)`
//!
//! - `base` is what every step pays: reading the weights, launching kernels.
//! - `d` is what decoding adds: a table over the tokens decoded in the step (one a sequence, more
//!   with speculative decoding), taken at a reference context, and `kv_ns` for each KV token read
//!   beyond or short of that context.
//! - `p` is what prefill adds: a table over tokens and `attention_ns` for each pair of a token and
//!   one that it attends to. The table is entered *on top of* the decode tokens,
//!   `prefill(decode + prefill) - prefill(decode)`, because the matrix products see no difference
//!   between the two: the first couple of hundred tokens of any kind are hidden behind the reading
//!   of the weights, and once decoding has used that up prefill tokens are paid in full.
//! - `overlap` says how much of the smaller part is hidden by the larger one. Where both are
//!   arithmetic on the same units it is 0; 1 is an engine whose decode attention waits for memory
//!   while prefill computes.
//!
//! Tables are piecewise linear, begin at (0, base), and go on with their last slope.

use goodput_model::Nanos;
use serde::{Deserialize, Deserializer, Serialize};

/// How long a step takes; see the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCost {
    /// What every step takes.
    pub base_ms: f64,
    /// Share of the smaller of decode and prefill that the other hides: 0 to 1.
    pub overlap: f64,
    /// Context of every sequence in `decode_ms`.
    #[serde(default)]
    pub reference_context: u32,
    /// Whole step in milliseconds by tokens decoded.
    #[serde(deserialize_with = "deserialize_points")]
    pub decode_ms: Vec<(u32, f64)>,
    /// For each KV token read beyond the reference.
    #[serde(default)]
    pub kv_ns: f64,
    /// Whole step in milliseconds by tokens prefilled, without their attention.
    #[serde(deserialize_with = "deserialize_points")]
    pub prefill_ms: Vec<(u32, f64)>,
    /// For each pair of a prefilled token and a token before it.
    #[serde(default)]
    pub attention_ns: f64,
}

/// What one step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepShape {
    /// Sequences that decode.
    pub decode_seqs: u64,
    /// Their tokens: one each, more with speculative decoding.
    pub decode_tokens: u64,
    /// KV tokens that they read.
    pub kv_tokens: u64,
    /// Tokens prefilled.
    pub prefill_tokens: u64,
    /// Pairs of a prefilled token and a token before it, in half pairs so that it stays whole.
    pub attention_halves: u64,
}

impl StepShape {
    /// Adds a sequence that decodes `tokens` on top of `context`.
    pub fn add_decode(&mut self, tokens: u32, context: u32) {
        self.decode_seqs += 1;
        self.decode_tokens += u64::from(tokens);
        self.kv_tokens += u64::from(context);
    }

    /// Adds a chunk of `tokens` on top of `context`: tokens times their mean context.
    pub fn add_prefill(&mut self, tokens: u32, context: u32) {
        let (tokens, context) = (u64::from(tokens), u64::from(context));
        self.prefill_tokens += tokens;
        self.attention_halves =
            self.attention_halves.saturating_add(tokens.saturating_mul(2 * context + tokens));
    }

    /// Tokens of every kind.
    pub fn tokens(&self) -> u64 {
        self.decode_tokens + self.prefill_tokens
    }
}

/// Points of two numbers each; a tuple would swallow more.
fn deserialize_points<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(u32, f64)>, D::Error> {
    let point = |numbers: Vec<f64>| match numbers[..] {
        [count, ms] if count.fract() == 0.0 && (0.0..4e9).contains(&count) => {
            Ok((count as u32, ms))
        }
        _ => Err(serde::de::Error::custom("a point is [whole number, milliseconds]")),
    };
    Vec::<Vec<f64>>::deserialize(deserializer)?.into_iter().map(point).collect()
}

impl StepCost {
    /// How long a step of this shape takes, in milliseconds.
    pub fn step_ms(&self, shape: &StepShape) -> f64 {
        let decode = if shape.decode_seqs == 0 { 0.0 } else { self.decode_part(shape) };
        let prefill = if shape.prefill_tokens == 0 { 0.0 } else { self.prefill_part(shape) };
        self.base_ms + decode.max(prefill) + (1.0 - self.overlap) * decode.min(prefill)
    }

    /// How long a step of this shape takes.
    pub fn step_time(&self, shape: &StepShape) -> Nanos {
        Nanos((self.step_ms(shape) * 1e6).round() as u64)
    }

    fn decode_part(&self, shape: &StepShape) -> f64 {
        let reference = shape.decode_seqs as f64 * f64::from(self.reference_context);
        let beyond = shape.kv_tokens as f64 - reference;
        let at_reference = self.interpolate(&self.decode_ms, shape.decode_tokens) - self.base_ms;
        (at_reference + beyond * self.kv_ns * 1e-6).max(0.0)
    }

    fn prefill_part(&self, shape: &StepShape) -> f64 {
        let above = self.interpolate(&self.prefill_ms, shape.tokens());
        let below = self.interpolate(&self.prefill_ms, shape.decode_tokens);
        above - below + shape.attention_halves as f64 * 0.5 * self.attention_ns * 1e-6
    }

    fn interpolate(&self, table: &[(u32, f64)], tokens: u64) -> f64 {
        let point = |i: usize| match i.checked_sub(1).and_then(|i| table.get(i)) {
            Some(&(tokens, ms)) => (f64::from(tokens), ms),
            None => (0.0, self.base_ms),
        };
        let above = table.partition_point(|&(at, _)| u64::from(at) < tokens);
        // Beyond the last point the last segment goes on.
        let upper = (above + 1).min(table.len());
        let ((x0, y0), (x1, y1)) = (point(upper.saturating_sub(1)), point(upper));
        if x1 > x0 { y0 + (y1 - y0) * (tokens as f64 - x0) / (x1 - x0) } else { y1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(overlap: f64) -> StepCost {
        StepCost {
            base_ms: 10.0,
            overlap,
            reference_context: 100,
            decode_ms: vec![(1, 10.0), (10, 10.0), (20, 15.0)],
            kv_ns: 1000.0,
            prefill_ms: vec![(100, 10.0), (200, 12.0)],
            attention_ns: 100.0,
        }
    }

    fn shape(decode: u32, context: u32, prefill: u32, before: u32) -> StepShape {
        let mut shape = StepShape::default();
        for _ in 0..decode {
            shape.add_decode(1, context);
        }
        if prefill > 0 {
            shape.add_prefill(prefill, before);
        }
        shape
    }

    #[test]
    fn tables_interpolate_and_go_on() {
        let step = step(0.0);
        let ms = |decode| step.step_ms(&shape(decode, 100, 0, 0));
        assert_eq!([ms(1), ms(10), ms(15), ms(20), ms(40)], [10.0, 10.0, 12.5, 15.0, 25.0]);
        // 50 tokens beyond the reference in each of ten: 500 µs; short of it nothing goes below base.
        assert_eq!(step.step_ms(&shape(10, 150, 0, 0)), 10.5);
        assert_eq!(step.step_ms(&shape(10, 1, 0, 0)), 10.0);
        // 200 tokens on top of 300: 200 × 400 pairs of 100 ns.
        assert_eq!(step.step_ms(&shape(0, 0, 200, 300)), 12.0 + 8.0);
        assert_eq!(step.step_ms(&shape(0, 0, 300, 0)), 14.0 + 4.5);
        assert_eq!(step.step_ms(&StepShape::default()), 10.0);
    }

    #[test]
    fn mixed_steps() {
        let mixed = shape(20, 100, 100, 0);
        // On top of 20 decode tokens the last 20 prefill tokens are no longer free: 0.4 ms, and
        // half a millisecond of attention.
        assert!((step(0.0).step_ms(&mixed) - (10.0 + 5.0 + 0.9)).abs() < 1e-9);
        assert!((step(1.0).step_ms(&mixed) - 15.0).abs() < 1e-9);
        assert!((step(0.5).step_ms(&mixed) - 15.45).abs() < 1e-9);
    }
}
