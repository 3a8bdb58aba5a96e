//! TTFT by prompt length, so that users know which limit to write.

use crate::summary::TtftFit;

/// Requests kept at most.
const MOST: usize = 2_000;

/// With fewer a line says nothing.
const FEWEST: usize = 20;

/// Requests with their prompt tokens and TTFT in ms: all of them, or every second, fourth …
#[derive(Debug)]
pub(crate) struct FitTally {
    points: Vec<(f64, f64)>,
    every: u64,
    seen: u64,
    shortest: f64,
    longest: f64,
}

impl Default for FitTally {
    fn default() -> Self {
        Self { points: Vec::new(), every: 1, seen: 0, shortest: f64::INFINITY, longest: 0.0 }
    }
}

impl FitTally {
    pub(crate) fn add(&mut self, prompt_tokens: u32, ttft_ms: f64) {
        let tokens = f64::from(prompt_tokens);
        self.shortest = self.shortest.min(tokens);
        self.longest = self.longest.max(tokens);
        if self.seen.is_multiple_of(self.every) {
            self.points.push((tokens, ttft_ms));
        }
        self.seen += 1;
        if self.points.len() > MOST {
            let mut place = 0u64;
            self.points.retain(|_| {
                place += 1;
                !place.is_multiple_of(2)
            });
            self.every *= 2;
        }
    }

    /// The line of Theil and Sen: the median of all slopes, and the median of what is left.
    pub(crate) fn finish(self) -> Option<TtftFit> {
        if self.points.len() < FEWEST || self.longest < 2.0 * self.shortest.max(1.0) {
            return None;
        }
        let mut slopes = Vec::new();
        for (index, one) in self.points.iter().enumerate() {
            let others = self.points.iter().skip(index + 1).filter(|other| other.0 != one.0);
            slopes.extend(others.map(|other| (other.1 - one.1) / (other.0 - one.0)));
        }
        let slope = lower_median(&mut slopes)?;
        let mut rests: Vec<f64> = self.points.iter().map(|(x, y)| y - slope * x).collect();
        let n = self.points.len() as u64;
        Some(TtftFit { a_ms: lower_median(&mut rests)?, b_ms_per_token: slope, n })
    }
}

/// The lower one of two.
fn lower_median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
