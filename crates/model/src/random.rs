//! Seeded random streams and samplers, bit-exact on every machine and in every version.
//!
//! A [`RandomStream`] is addressed by (seed, domain, index): request *i* can be drawn without
//! drawing the ones before it, so shards and replays agree. Samplers use [`libm`] rather than the
//! platform's mathematics, and golden values in the tests pin them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream is for. Different domains of one seed are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Gaps between arrivals.
    Arrivals = 1,
    /// Lengths of prompts and answers.
    Lengths = 2,
    /// Words of prompts.
    Text = 3,
    /// The simulated engine's service times.
    Service = 4,
    /// Which requests the simulated engine fails.
    Faults = 5,
    /// Which class of a mix a session belongs to.
    Mix = 6,
    /// Turns of a session and the pauses between them.
    Sessions = 7,
    /// Shared prefixes, contexts and blocks of text: what several requests have in common.
    Shared = 8,
    /// Noise of images.
    Images = 9,
    /// Which entries of a file are taken, and in which order.
    Sampling = 10,
    /// Which requests carry a constraint on their answer.
    Constraints = 11,
    /// In which order the sides of a comparison are measured.
    Order = 12,
    /// Ids of traces.
    Traces = 13,
    /// Which requests are traced.
    Traced = 14,
}

/// An endless sequence of random numbers that is a function of (seed, domain, index).
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// The stream of request `index`.
    pub fn new(seed: u64, domain: Domain, index: u64) -> Self {
        let mut key = [0u8; 32];
        let mut state = seed ^ (domain as u64).wrapping_mul(0xd134_2543_de82_ef95);
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&split_mix(&mut state).to_le_bytes());
        }
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Self(generator)
    }

    /// 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in the open interval (0, 1): neither logarithm nor division can overflow.
    pub fn next_unit(&mut self) -> f64 {
        ((self.next_bits() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..limit`; zero for a limit of zero.
    pub fn next_below(&mut self, limit: u64) -> u64 {
        // Multiply-shift: the bias is below 2^-32 for the limits used here, and it is portable.
        ((u128::from(self.next_bits()) * u128::from(limit)) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn draw_exponential(&mut self) -> f64 {
        -libm::log(self.next_unit())
    }

    /// Normal with mean 0 and standard deviation 1 (Marsaglia's polar method).
    pub fn draw_normal(&mut self) -> f64 {
        loop {
            let u = 2.0 * self.next_unit() - 1.0;
            let v = 2.0 * self.next_unit() - 1.0;
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return u * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// Gamma with this shape and mean 1 (Marsaglia and Tsang 2000).
    pub fn draw_gamma(&mut self, shape: f64) -> f64 {
        let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
        let d = boosted - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        let value = loop {
            let x = self.draw_normal();
            let v = libm::pow(1.0 + c * x, 3.0);
            if v > 0.0 && libm::log(self.next_unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                break d * v;
            }
        };
        if shape < 1.0 {
            value * libm::pow(self.next_unit(), 1.0 / shape) / shape
        } else {
            value / shape
        }
    }

    /// Log-normal with this median and this standard deviation of the logarithm.
    pub fn draw_log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.draw_normal())
    }

    /// A rank in `1..=n` with a probability in proportion to rank^-exponent (rejection-inversion,
    /// Hörmann and Derflinger 1996); 1 for an `n` of zero.
    pub fn draw_zipf(&mut self, n: u64, exponent: f64) -> u64 {
        if n <= 1 {
            return 1;
        }
        // The integral of the hat and its inverse; at an exponent of 1 the power is a logarithm.
        let is_log = (exponent - 1.0).abs() < 1e-9;
        let area = |x: f64| {
            if is_log {
                libm::log(x)
            } else {
                (libm::pow(x, 1.0 - exponent) - 1.0) / (1.0 - exponent)
            }
        };
        let inverse = |y: f64| {
            if is_log {
                libm::exp(y)
            } else {
                libm::pow(1.0 + y * (1.0 - exponent), 1.0 / (1.0 - exponent))
            }
        };
        let low = area(1.5) - 1.0;
        let high = area(n as f64 + 0.5);
        loop {
            let y = low + self.next_unit() * (high - low);
            let rank = inverse(y).round().clamp(1.0, n as f64);
            if y >= area(rank + 0.5) - libm::pow(rank, -exponent) {
                return rank as u64;
            }
        }
    }
}

/// The same sine on every machine.
pub fn portable_sin(x: f64) -> f64 {
    libm::sin(x)
}

/// The same cosine on every machine.
pub fn portable_cos(x: f64) -> f64 {
    libm::cos(x)
}

/// Spreads a seed over a key (Steele, Lea and Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of `n` draws, one from each of `n` streams.
    fn moments(n: u64, draw: impl Fn(&mut RandomStream) -> f64) -> (f64, f64) {
        let values: Vec<f64> =
            (0..n).map(|i| draw(&mut RandomStream::new(7, Domain::Arrivals, i))).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        (mean, var.sqrt())
    }

    fn close(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual - expected).abs() < tolerance, "{actual} is not {expected} ± {tolerance}");
    }

    #[test]
    fn golden_values_pin_the_generator() {
        let mut stream = RandomStream::new(42, Domain::Arrivals, 0);
        assert_eq!(stream.next_bits(), GOLDEN_BITS);
        let mut stream = RandomStream::new(42, Domain::Lengths, 123_456_789);
        assert_eq!(stream.draw_gamma(0.25).to_bits(), GOLDEN_GAMMA);
    }
    const GOLDEN_BITS: u64 = 4_477_450_705_495_651_599;
    const GOLDEN_GAMMA: u64 = 4_621_972_396_289_613_819;

    #[test]
    fn zipf_ranks_follow_their_power() {
        for (n, exponent) in [(5u64, 1.0), (5, 0.0), (20, 1.5), (3, 2.5)] {
            let draws = 100_000u64;
            let mut counts = vec![0u64; n as usize + 1];
            for index in 0..draws {
                counts[RandomStream::new(3, Domain::Shared, index).draw_zipf(n, exponent)
                    as usize] += 1;
            }
            let weight = |rank: u64| (rank as f64).powf(-exponent);
            let total: f64 = (1..=n).map(weight).sum();
            for rank in 1..=n {
                let p = weight(rank) / total;
                // Four standard errors of a share.
                let tolerance = 4.0 * (p * (1.0 - p) / draws as f64).sqrt();
                close(counts[rank as usize] as f64 / draws as f64, p, tolerance);
            }
        }
    }

    #[test]
    fn samplers_have_the_moments_of_their_distributions() {
        // Tolerances are four standard errors of the estimate for 100,000 draws.
        let n = 100_000;
        let (mean, sd) = moments(n, RandomStream::draw_exponential);
        close(mean, 1.0, 0.0127);
        close(sd, 1.0, 0.018);
        let (mean, sd) = moments(n, RandomStream::draw_normal);
        close(mean, 0.0, 0.0127);
        close(sd, 1.0, 0.009);
        for cv in [0.5, 2.0_f64] {
            let (mean, sd) = moments(n, |s| s.draw_gamma(1.0 / (cv * cv)));
            close(mean, 1.0, 4.0 * cv / (n as f64).sqrt());
            close(sd, cv, 0.03 * cv);
        }
        let (mean, _) = moments(n, |s| s.draw_log_normal(200.0, 0.8));
        close(mean, 200.0 * (0.8f64 * 0.8 / 2.0).exp(), 3.6);
    }

    #[test]
    fn streams_and_domains_differ() {
        let first = |seed, domain, index| RandomStream::new(seed, domain, index).next_bits();
        let base = first(1, Domain::Text, 1);
        assert_ne!(base, first(2, Domain::Text, 1));
        assert_ne!(base, first(1, Domain::Lengths, 1));
        assert_ne!(base, first(1, Domain::Text, 2));
    }

    #[test]
    fn below_stays_below() {
        let mut stream = RandomStream::new(3, Domain::Text, 0);
        assert!((0..1000).all(|_| stream.next_below(7) < 7));
        assert_eq!(stream.next_below(0), 0);
    }
}
