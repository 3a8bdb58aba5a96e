//! Which class a session belongs to: exact shares in every thousand sessions, in random order.

use std::sync::{Arc, Mutex};

use goodput_model::random::{Domain, RandomStream};

use crate::WorkloadError;

/// Sessions of a block: in each, shares are exact to one session.
const BLOCK: u64 = 1_000;
/// Blocks kept at hand: the feeder walks forward, others look around.
const KEPT: usize = 8;

/// Class, and number within the class, of every session of a block.
type Block = Vec<(u16, u32)>;

#[derive(Debug)]
pub(crate) struct Mix {
    seed: u64,
    /// Sessions of each class in a block.
    counts: Vec<u32>,
    recent: Mutex<Vec<(u64, Arc<Block>)>>,
}

impl Mix {
    pub(crate) fn new(shares: &[(&str, f64)], seed: u64) -> Result<Self, WorkloadError> {
        for (name, share) in shares {
            if !(share.is_finite() && *share > 0.0) {
                return Err(WorkloadError::new(
                    format!("class `{name}` has share {share}; expected a number above zero"),
                    "shares are weights: `chat=70%,code_generation=30%`",
                ));
            }
        }
        let counts = largest_remainders(shares);
        if let Some((_, (name, share))) = counts.iter().zip(shares).find(|(count, _)| **count == 0)
        {
            return Err(WorkloadError::new(
                format!("class `{name}`: a share of {share} is below one session in {BLOCK}"),
                "give it a larger share or remove it",
            ));
        }
        Ok(Self { seed, counts, recent: Mutex::default() })
    }

    /// The class of session `number` and its number within the class.
    pub(crate) fn class_of(&self, number: u64) -> (usize, u64) {
        if self.counts.len() <= 1 {
            return (0, number);
        }
        let block = number / BLOCK;
        let (class, place) =
            self.class_block(block).get((number % BLOCK) as usize).copied().unwrap_or_default();
        let class = usize::from(class);
        let before = block * u64::from(self.counts.get(class).copied().unwrap_or(0));
        (class, before + u64::from(place))
    }

    /// Sessions of a class among the first `sessions`, about.
    pub(crate) fn expected_sessions(&self, class: usize, sessions: u64) -> f64 {
        sessions as f64 * f64::from(self.counts.get(class).copied().unwrap_or(0)) / BLOCK as f64
    }

    fn class_block(&self, number: u64) -> Arc<Block> {
        // What is behind the lock is only remembered: after a panic elsewhere it is still right.
        let mut recent = self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, block)) = recent.iter().find(|(known, _)| *known == number) {
            return Arc::clone(block);
        }
        let block = Arc::new(self.permuted_block(number));
        if recent.len() >= KEPT {
            recent.remove(0);
        }
        recent.push((number, Arc::clone(&block)));
        block
    }

    fn permuted_block(&self, number: u64) -> Block {
        let mut classes: Vec<u16> = Vec::with_capacity(BLOCK as usize);
        for (class, count) in (0u16..).zip(&self.counts) {
            classes.extend(std::iter::repeat_n(class, *count as usize));
        }
        let mut stream = RandomStream::new(self.seed, Domain::Mix, number);
        for last in (1..classes.len()).rev() {
            classes.swap(last, stream.next_below(last as u64 + 1) as usize);
        }
        let mut places = vec![0u32; self.counts.len()];
        let mut place = |class: u16| {
            let next = places.get_mut(usize::from(class))?;
            *next += 1;
            Some((class, *next - 1))
        };
        classes.into_iter().filter_map(&mut place).collect()
    }
}

/// Splits a block by the shares; what is left over goes to the greatest remainders, the first of
/// equals first.
fn largest_remainders(shares: &[(&str, f64)]) -> Vec<u32> {
    let total: f64 = shares.iter().map(|(_, share)| share).sum();
    let exact: Vec<f64> = shares.iter().map(|(_, share)| share / total * BLOCK as f64).collect();
    let mut counts: Vec<u32> = exact.iter().map(|share| *share as u32).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let left = BLOCK.saturating_sub(counts.iter().map(|count| u64::from(*count)).sum());
    for class in order.into_iter().take(left as usize) {
        counts[class] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(shares: &[f64]) -> Mix {
        let named: Vec<(&str, f64)> = shares.iter().map(|share| ("c", *share)).collect();
        Mix::new(&named, 5).unwrap()
    }

    #[test]
    fn every_block_has_the_exact_shares_in_an_order_of_its_own() {
        let mix = mix(&[70.0, 20.0, 10.0]);
        for block in [0, 1, 77] {
            let mut counts = [0; 3];
            for number in 0..1_000 {
                counts[mix.class_of(block * 1_000 + number).0] += 1;
            }
            assert_eq!(counts, [700, 200, 100]);
        }
        let order = |block: u64| (0..50).map(move |n| block * 1_000 + n);
        let first: Vec<usize> = order(0).map(|n| mix.class_of(n).0).collect();
        let second: Vec<usize> = order(1).map(|n| mix.class_of(n).0).collect();
        assert_ne!(first, second);
    }

    #[test]
    fn remainders_go_to_the_greatest() {
        assert_eq!(mix(&[1.0, 1.0, 1.0]).counts, [334, 333, 333]);
        assert_eq!(mix(&[2.0, 2.0, 3.0]).counts, [286, 286, 428]);
    }

    #[test]
    fn numbers_within_a_class_run_on_without_gaps() {
        let mix = mix(&[0.6, 0.4]);
        let mut next = [0u64; 2];
        for number in 0..3_000 {
            let (class, local) = mix.class_of(number);
            assert_eq!(local, next[class]);
            next[class] += 1;
        }
        // Whatever was asked before: the first block again, and one far away.
        assert_eq!(mix.class_of(0), Mix::new(&[("a", 6.0), ("b", 4.0)], 5).unwrap().class_of(0));
        assert!(mix.class_of(10_000_000).1 >= 4_000_000 - 600);
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Mix::new(&[("a", 1.0), ("b", bad)], 1).unwrap_err();
            assert!(error.to_string().starts_with("class `b` has share"), "{error}");
        }
        let error = Mix::new(&[("a", 1.0), ("b", 1e-5)], 1).unwrap_err();
        assert!(error.to_string().contains("below one session in 1000"), "{error}");
    }
}
