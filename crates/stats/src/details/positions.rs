//! Gaps between tokens by their place in the answer.

use std::collections::BTreeMap;

use super::PositionBand;
use super::counts::NumberCounts;
use crate::request::Gap;

/// Bins of gaps are one part in 64 wide.
const WIDTH: u32 = 6;

/// Up to here every place is kept by itself, and beyond it this many bands for each doubling.
const EACH: u32 = 7;

/// No more places are told apart: a server may claim anything.
const LAST: u64 = 1 << 20;

/// Bands that are drawn, about.
const BANDS: u64 = 80;

/// Gaps that a band has, where there are as many.
const ENOUGH: u64 = 20;

/// Percentiles need this many gaps to be more than the largest of them.
const FEWEST: u64 = 100;

/// Gaps of each band of places.
#[derive(Debug, Default)]
pub(super) struct Positions(BTreeMap<u64, NumberCounts>);

/// The first place of the band that holds this one.
fn band_start(place: u64) -> u64 {
    let place = place.clamp(1, LAST);
    let doublings = place.ilog2().saturating_sub(EACH - 1);
    place >> doublings << doublings
}

impl Positions {
    pub(super) fn add(&mut self, gap: &Gap, us: u32) {
        self.0.entry(band_start(gap.place)).or_insert_with(|| NumberCounts::new(WIDTH)).add(us);
    }

    /// Neighboors together, until there are few enough to draw, and each has enough gaps to say
    /// something: few answers are very long.
    pub(super) fn finish(self) -> Vec<PositionBand> {
        let Some(last) = self.0.keys().next_back().copied() else { return Vec::new() };
        let width = last.div_ceil(BANDS);
        let fullest = self.0.values().map(NumberCounts::len).max().unwrap_or(0);
        let enough = ENOUGH.min(fullest / 2);
        let mut merged: Vec<(u64, u64, NumberCounts)> = Vec::new();
        for (from, counts) in self.0 {
            let to = band_end(from);
            match merged.last_mut() {
                Some(before) if to < before.0 + width || before.2.len() < enough => {
                    before.1 = to;
                    before.2.merge(&counts);
                }
                _ => merged.push((from, to, counts)),
            }
        }
        merged.into_iter().map(|(from, to, counts)| position_band(from, to, &counts)).collect()
    }
}

/// The last place of the band that begins here.
fn band_end(from: u64) -> u64 {
    let doublings = from.ilog2().saturating_sub(EACH - 1);
    from + (1 << doublings) - 1
}

fn position_band(from: u64, to: u64, counts: &NumberCounts) -> PositionBand {
    let n = counts.len();
    let rank = |percent: u64| (n * percent).div_ceil(100).max(1);
    let found = counts.values_at_ranks([50, 90, 99].into_iter().map(rank));
    let ms = |place: usize| found.get(place).copied().flatten().unwrap_or(0) as f64 / 1e3;
    let p99 = (n >= FEWEST).then(|| ms(2));
    PositionBand { from, to, n, p50: ms(0), p90: ms(1), p99 }
}

#[cfg(test)]
mod tests {
    use goodput_model::Nanos;

    use super::*;

    fn positions(gaps: impl Iterator<Item = (u64, u32)>) -> Vec<PositionBand> {
        let mut positions = Positions::default();
        for (place, us) in gaps {
            let length = Nanos::from_micros(u64::from(us));
            let gap = Gap { from: Nanos::ZERO, length, tokens: None, place };
            positions.add(&gap, us);
        }
        positions.finish()
    }

    #[test]
    fn short_answers_have_every_place_by_itself() {
        // The gap before token k takes k milliseconds.
        let bands = positions((2..=50).map(|place| (place, place as u32 * 1_000)));
        assert_eq!(bands.len(), 49);
        for (band, place) in bands.iter().zip(2..) {
            assert_eq!((band.from, band.to, band.n, band.p99), (place, place, 1, None));
            let exact = place as f64;
            assert!(band.p50 <= exact && exact <= band.p50 * 1.02, "{band:?}");
        }
    }

    #[test]
    fn places_that_few_answers_reach_stand_together() {
        // Forty answers of ten tokens, and one of fifty.
        let short = (0..40).flat_map(|_| 2..=10);
        let bands = positions(short.chain(2..=50).map(|place| (place, 1_000)));
        let ends: Vec<(u64, u64, u64)> =
            bands.iter().map(|band| (band.from, band.to, band.n)).collect();
        assert_eq!(ends[..2], [(2, 2, 41), (3, 3, 41)]);
        assert_eq!(ends[8..], [(10, 10, 41), (11, 30, 20), (31, 50, 20)]);
    }

    #[test]
    fn long_answers_have_bands_without_a_hole() {
        let bands = positions((2..=100_000).map(|place| (place, 20)));
        assert!((40..=160).contains(&bands.len()), "{}", bands.len());
        assert_eq!(bands[0].from, 2);
        assert!(bands.windows(2).all(|pair| pair[0].to + 1 == pair[1].from), "{bands:?}");
        assert_eq!(bands.iter().map(|band| band.n).sum::<u64>(), 99_999);
        assert!(bands.iter().filter(|band| band.n >= 100).all(|band| band.p99 == Some(0.02)));
        // What a server claims beyond reason is kept at the end.
        let far = positions([(u64::MAX, 5)].into_iter());
        assert_eq!((far.len(), far[0].from), (1, 1 << 20));
    }
}
