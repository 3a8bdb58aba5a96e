//! How sure shares, means and percentiles of dependent requests are, by contiguous batches of time
//! (METHOD 3.4).
//!
//! While a queue is long, all requests are slow: what counts is how often that happened, not how
//! many requests saw it. Shares of batches vary by as much as that.

/// Batches that the window is cut into.
pub(crate) const BATCHES: usize = 20;

/// With fewer batches that hold anything, their spread says too little.
const FEWEST: usize = 10;

/// Student's t at 97.5 %, from 9 degrees of freedom to 19.
const T_975: [f64; 11] = [
    2.262_157_162_798_205,
    2.228_138_851_986_273,
    2.200_985_160_091_638,
    2.178_812_829_667_226,
    2.160_368_656_462_793,
    2.144_786_687_917_802,
    2.131_449_545_559_774,
    2.119_905_299_221_255,
    2.109_815_577_833_317,
    2.100_922_040_241_038,
    2.093_024_054_408_309,
];

/// A share and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Estimate {
    pub(crate) value: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) n_eff: Option<f64>,
}

/// A ratio of sums over batches: its variance by their spread around it, and Student's t for that.
///
/// `v = K/(K-1) · Σ (w_b/w)² (x_b - x)²` over the K batches that hold anything.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    ratio: f64,
    /// None where too few batches hold anything.
    spread: Option<(f64, f64)>,
}

impl Ratio {
    /// Of batches with these (weights, sums).
    fn of(batches: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let filled = batches.filter(|batch| batch.0 > 0.0);
        let weight: f64 = filled.clone().map(|batch| batch.0).sum();
        if weight <= 0.0 {
            return None;
        }
        let ratio = filled.clone().map(|batch| batch.1).sum::<f64>() / weight;
        let square = |(size, sum): (f64, f64)| ((sum - ratio * size) / weight).powi(2);
        let squares: f64 = filled.clone().map(square).sum();
        let k = filled.count();
        let t = k.checked_sub(FEWEST).and_then(|place| T_975.get(place));
        let spread = t.map(|t| (k as f64 / (k as f64 - 1.0) * squares, *t));
        Some(Self { ratio, spread })
    }

    /// As many independent requests would say as much about this share.
    fn n_eff(&self, n: f64) -> Option<f64> {
        let (variance, _) = self.spread?;
        let independent = self.ratio * (1.0 - self.ratio);
        // Where the share never varies, nothing speaks for dependence.
        Some(if variance > 0.0 { (independent / variance).min(n) } else { n })
    }
}

/// The share of good ones and its interval, from (good, total) of each batch: Wilson's interval on
/// as many requests as say as much, with Student's t. It never leaves 0 to 1, and where all are
/// good it still ends below 1.
pub(crate) fn attainment_interval(batches: &[(u64, u64)]) -> Estimate {
    let counts = batches.iter().map(|(good, total)| (*total as f64, *good as f64));
    let n: f64 = counts.clone().map(|batch| batch.0).sum();
    let Some(share) = Ratio::of(counts) else { return Estimate::default() };
    let p = share.ratio;
    let Some((n_eff, (_, t))) = share.n_eff(n).zip(share.spread) else {
        return Estimate { value: Some(p), ..Estimate::default() };
    };
    let centre = p + t * t / (2.0 * n_eff);
    let half = t * (p * (1.0 - p) / n_eff + t * t / (4.0 * n_eff * n_eff)).sqrt();
    let scale = 1.0 + t * t / n_eff;
    // Rounding must not take the ends past what was seen.
    let low = ((centre - half) / scale).clamp(0.0, p);
    let high = ((centre + half) / scale).clamp(p, 1.0);
    Estimate { value: Some(p), low: Some(low), high: Some(high), n_eff: Some(n_eff) }
}

/// A mean and its interval, from (weight, sum) of each batch.
pub(crate) fn mean_interval(batches: &[(f64, f64)]) -> Estimate {
    let Some(mean) = Ratio::of(batches.iter().copied()) else { return Estimate::default() };
    let half = mean.spread.map(|(variance, t)| t * variance.sqrt());
    Estimate {
        value: Some(mean.ratio),
        low: half.map(|half| mean.ratio - half),
        high: half.map(|half| mean.ratio + half),
        n_eff: None,
    }
}

/// A percentile of values, each with its batch, and its interval: the sample quantiles at
/// `q ± t·sqrt(q(1-q)/n_eff)`. An end that lies beyond the sample is not there; with fewer than any
/// 95 % interval takes, neither is. Values may be infinite.
pub(crate) fn percentile_interval(values: &mut [(u8, f64)], percent: f64) -> Estimate {
    values.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let (n, q) = (values.len() as f64, percent / 100.0);
    // 99.9 % of 1000 is 999, whatever binary fractions make of it.
    let at = |share: f64| {
        let rank = (n * share - 1e-9).ceil().max(1.0) as usize;
        values.get(rank - 1).map(|value| value.1)
    };
    let Some(value) = at(q) else { return Estimate::default() };
    let mut batches = [(0.0, 0.0); BATCHES];
    for (batch, x) in values.iter() {
        if let Some(place) = batches.get_mut(usize::from(*batch)) {
            place.0 += 1.0;
            place.1 += f64::from(u8::from(*x > value));
        }
    }
    let ratio = Ratio::of(batches.into_iter());
    let found = ratio.and_then(|ratio| ratio.n_eff(n).zip(ratio.spread));
    let estimate = Estimate { value: Some(value), ..Estimate::default() };
    let Some((n_eff, (_, t))) = found.filter(|(n_eff, _)| *n_eff >= minimum(q)) else {
        return estimate;
    };
    let half = t * (q * (1.0 - q) / n_eff).sqrt();
    let low = Some(q - half).filter(|share| *share > 0.0).and_then(at);
    let high = Some(q + half).filter(|share| *share < 1.0).and_then(at);
    Estimate { low, high, n_eff: Some(n_eff), ..estimate }
}

/// Independent values that any two-sided 95 % interval of quantile `q` takes.
fn minimum(q: f64) -> f64 {
    (0.025f64.ln() / q.max(1.0 - q).ln()).ceil()
}
