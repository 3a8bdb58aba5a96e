//! What a workload holds before it is sent, in numbers.

use serde::Serialize;

/// What is shown of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct WorkloadView {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub description: String,
    /// Two workloads with the same hash send the same bytes.
    pub hash: String,
    /// Who counted the tokens of our words.
    pub counted_by: String,
    /// What was left out, repeated or sorted.
    pub notes: Vec<String>,
    /// Sessions looked at.
    pub sessions: u64,
    /// Requests in them.
    pub requests: u64,
    /// Sessions that there are, of a workload that ends.
    pub all_sessions: Option<u64>,
    /// Requests by class.
    pub classes: Vec<(String, u64)>,
    /// Requests by constraint, where there are any.
    pub constraints: Vec<(String, u64)>,
    /// Images in all requests.
    pub images: u64,
    /// Prompt lengths in tokens.
    pub input_tokens: Option<Histogram>,
    /// Answer lengths in tokens.
    pub output_tokens: Option<Histogram>,
    /// Requests of a session, where some have several.
    pub turns: Option<Histogram>,
    /// Pauses between the steps of a session, in seconds.
    pub pauses_s: Option<Histogram>,
    /// Gaps between arrivals of a trace, in seconds.
    pub gaps_s: Option<Histogram>,
    /// Arrivals over the length of a trace, in seconds from its beginning.
    pub arrivals_s: Option<Histogram>,
    /// Length of the trace in seconds.
    pub span_s: Option<f64>,
    /// How a recorded trace was served.
    pub served: Option<ServedView>,
    /// Share of prompt tokens that begin like an earlier prompt: what a warm cache
    /// without limits would answer.
    pub expected_hit_rate: f64,
    /// The first requests.
    pub previews: Vec<Preview>,
}

/// How the requests of a trace were served when they were recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ServedView {
    /// Requests by API.
    pub endpoints: Vec<(String, u64)>,
    /// Requests by model.
    pub models: Vec<(String, u64)>,
    /// Requests by HTTP status.
    pub statuses: Vec<(String, u64)>,
    /// Requests by finish reason or failure.
    pub ends: Vec<(String, u64)>,
    /// Times to the first token, in milliseconds.
    pub ttft_ms: Option<Histogram>,
    /// Share of prompt tokens that the server took from its cache, over requests whose answer says so.
    pub cache_hit_rate: Option<f64>,
}

/// One request, cut short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Its class.
    pub class: String,
    /// Prompt length in tokens.
    pub input_tokens: u32,
    /// Answer length in tokens.
    pub output_tokens: Option<u32>,
    /// The body that is sent, cut in the middle where it is long.
    pub body: String,
}

/// How many values fall where.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// Number of values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Lower end (included), upper end, values between.
    pub bins: Vec<(f64, f64, u64)>,
}

/// Bins of a histogram.
const BINS: usize = 10;

/// Values that span more than this many times their least are shown on a logarithmic scale.
const LOGARITHMIC: f64 = 20.0;

impl Histogram {
    /// Of these values; none of no values.
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        // Nearest rank, as everywhere.
        let percentile = |percent: f64| {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            values.get(rank.max(1) - 1).copied().unwrap_or(max)
        };
        let edges = bin_edges(min, max);
        let below = |edge: f64| values.partition_point(|value| *value < edge) as u64;
        let bins = edges.windows(2).enumerate().map(|(place, edge)| {
            let is_last = place + 2 == edges.len();
            let upper = if is_last { values.len() as u64 } else { below(edge[1]) };
            (edge[0], edge[1], upper - below(edge[0]))
        });
        Some(Self {
            n: values.len() as u64,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p99: percentile(99.0),
            min,
            max,
            bins: bins.collect(),
        })
    }
}

/// The ends of the bins, from the smallest value to the largest.
fn bin_edges(min: f64, max: f64) -> Vec<f64> {
    if min >= max {
        return vec![min, max];
    }
    let at = |place: usize| {
        let part = place as f64 / BINS as f64;
        match place {
            0 => min,
            BINS => max,
            _ if min > 0.0 && max / min > LOGARITHMIC => min * (max / min).powf(part),
            _ => min + (max - min) * part,
        }
    };
    (0..=BINS).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let histogram = Histogram::from_values((1..=1000).map(f64::from).collect()).unwrap();
        assert_eq!((histogram.n, histogram.min, histogram.max), (1000, 1.0, 1000.0));
        assert_eq!((histogram.p50, histogram.p90, histogram.p99), (500.0, 900.0, 990.0));
        assert_eq!(histogram.bins.iter().map(|(.., n)| n).sum::<u64>(), 1000);
        // 1 to 1000 in ten steps of the same ratio: the first three hold 1, 2 to 3, and 4 to 7.
        let counts: Vec<u64> = histogram.bins.iter().map(|(.., n)| *n).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 62, 126, 250, 499]);
    }

    #[test]
    fn narrow_values_are_shown_in_even_steps() {
        let histogram = Histogram::from_values((0..100).map(f64::from).collect()).unwrap();
        assert_eq!(histogram.bins.len(), 10);
        assert_eq!(histogram.bins.iter().map(|(.., n)| *n).max(), Some(10));
        let single = Histogram::from_values(vec![7.0; 5]).unwrap();
        assert_eq!(single.bins, [(7.0, 7.0, 5)]);
        assert_eq!(Histogram::from_values(vec![f64::NAN]), None);
    }
}
