//! Does a sampled series grow without end?
//!
//! The first quarter is left out: caches fill, pools grow. The rest is cut into blocks and each block
//! stands for its median, so that one garbage page or one slow sample decides nothing. A series
//! grows where the blocks rise more often than chance allows (Mann and Kendall's test, one-sided, at
//! 0.1 %) *and* the median slope between blocks (Theil and Sen's) is more than a stated amount an
//! hour. Both are needed: an allocator that settles over hours rises by little, a process that is
//! loaded unevenly moves by much in no direction.

/// Blocks after the first quarter.
const BLOCKS: usize = 16;

/// One-sided normal quantile of 0.1 %.
const Z: f64 = 3.09;

/// What is known of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SeriesTrend {
    /// Median of the first block.
    pub(crate) first: f64,
    /// Median of the last block.
    pub(crate) last: f64,
    /// Median slope between blocks, an hour.
    pub(crate) per_hour: f64,
    /// Mann and Kendall's statistic in standard deviations.
    pub(crate) z: f64,
}

impl SeriesTrend {
    /// From samples of (hours, value); none if there are too few.
    pub(crate) fn new(samples: &[(f64, f64)]) -> Option<Self> {
        let settled = &samples[samples.len() / 4..];
        if settled.len() < 2 * BLOCKS {
            return None;
        }
        let blocks: Vec<(f64, f64)> = (0..BLOCKS)
            .map(|block| {
                let part = &settled[block * settled.len() / BLOCKS..][..settled.len() / BLOCKS];
                (median(part.iter().map(|s| s.0)), median(part.iter().map(|s| s.1)))
            })
            .collect();
        let (mut sign, mut slopes) = (0.0, Vec::new());
        for (index, early) in blocks.iter().enumerate() {
            for late in &blocks[index + 1..] {
                let rise = late.1 - early.1;
                sign += if rise == 0.0 { 0.0 } else { rise.signum() };
                slopes.push(rise / (late.0 - early.0));
            }
        }
        let n = BLOCKS as f64;
        let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        Some(Self {
            first: blocks[0].1,
            last: blocks[BLOCKS - 1].1,
            per_hour: median(slopes.into_iter()),
            z: sign / deviation,
        })
    }

    /// Whether it rises by more than `allowed` an hour, and not by chance.
    pub(crate) fn grows(&self, allowed: f64) -> bool {
        self.z > Z && self.per_hour > allowed
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An hour of samples, one every 5 s.
    fn series(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..720).map(|n| f64::from(n) / 720.0).map(|hour| (hour, value(hour))).collect()
    }

    fn noise(hour: f64) -> f64 {
        // A fixed sawtooth: no direction, an amplitude of 5.
        (hour * 977.0).fract() * 10.0 - 5.0
    }

    #[test]
    fn a_leak_is_found_and_noise_is_not() {
        let leak = SeriesTrend::new(&series(|hour| 70.0 + 6.0 * hour + noise(hour))).unwrap();
        assert!(leak.grows(4.0), "{leak:?}");
        assert!((leak.per_hour - 6.0).abs() < 1.0, "{leak:?}");
        let flat = SeriesTrend::new(&series(|hour| 70.0 + noise(hour))).unwrap();
        assert!(!flat.grows(0.1), "{flat:?}");
    }

    #[test]
    fn what_settles_is_not_a_leak() {
        // 40 more within minutes, and then the same for the rest.
        let settled = SeriesTrend::new(&series(|hour| 70.0 - 40.0 * (-hour * 30.0).exp())).unwrap();
        assert!(!settled.grows(1.0), "{settled:?}");
        // Slow but steady: rises every time, though by less than is allowed.
        let slow = SeriesTrend::new(&series(|hour| 70.0 + 0.5 * hour)).unwrap();
        assert!(slow.z > Z && !slow.grows(1.0), "{slow:?}");
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert_eq!(SeriesTrend::new(&series(|_| 1.0)[..20]), None);
    }
}
