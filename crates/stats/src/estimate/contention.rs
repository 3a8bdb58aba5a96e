//! Whether requests wait for one another, and from how many in flight on.
//!
//! A run near the knee may have met few queues, and then its waits look better than they are. How many
//! requests were in flight when each one came tells all the same: where those that came to a full server
//! are slower than the rest, the number in flight at which that begins says how many it serves at once, and
//! the number in flight on average how near it is to that. Both are known well from a short run
//! (docs/design/012).

use goodput_model::Nanos;

use super::{Inflation, SLICES};

/// This many standard errors the ranks of slow requests must lie apart.
const ERRORS: f64 = 4.0;
/// On a full server, first tokens take this many times as long as the others. Servers that batch are slower
/// with every request in flight, but not by that much.
const SLOWER: f64 = 1.5;
/// The same where requests that find room are not slower the more are in flight.
const SLIGHTLY_SLOWER: f64 = 1.15;
/// This many standard errors make a slope among those.
const SLOPE: f64 = 3.0;
/// Requests per second that were asked for and those that came differ by chance, not by more than this.
const DRAWN: f64 = 1.25;
/// Requests with room are alike from this factor on, and from this many of its standard errors.
const ALIKE: f64 = 1.25;
const ERRORS_OF_LIKENESS: f64 = 2.0;
/// Requests that must have come to a full server.
const FEWEST: usize = 5;
/// Arrivals that make fewer different numbers in flight are a pattern, not a queue.
const LEVELS: usize = 4;
/// More requests would not make it clearer.
const MOST: usize = 200_000;
/// At the beginning of the window requests are in flight that are not among the measured ones: this many
/// times what an answer takes is left out.
const UNKNOWN: f64 = 2.0;

/// A measured request that got its first token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Visit {
    pub(crate) scheduled: Nanos,
    pub(crate) end: Nanos,
    pub(crate) ttft_ms: f64,
}

/// A server that makes requests wait for one another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Contention {
    /// Requests in flight from which on others wait.
    slots: f64,
    /// Requests that it works on, on average.
    busy: f64,
    /// How long one occupies its slot, in seconds.
    service_s: f64,
    requests_per_s: f64,
    span_s: f64,
    /// The share of requests that found it full.
    pub(crate) met_full: f64,
    /// Whether requests that found it with room remember nothing of each other.
    rest_is_independent: bool,
}

impl Contention {
    /// Of requests in order of time, of which this many per second were asked for; none if no
    /// requests wait for one another, or too few do.
    pub(crate) fn find(visits: &[Visit], offered_rps: Option<f64>) -> Option<Self> {
        let visits = &visits[..visits.len().min(MOST)];
        let begin = visits.first()?.scheduled;
        let time = |visit: &Visit| (visit.end - visit.scheduled).as_secs();
        let residence = visits.iter().map(time).sum::<f64>() / visits.len() as f64;
        let from = begin + Nanos::from_secs_f64(UNKNOWN * residence);
        let first = visits.partition_point(|visit| visit.scheduled < from);
        let in_flight = in_flight_at_arrival(visits);
        let (visits, in_flight) = (&visits[first..], &in_flight[first..]);
        let span_s = (visits.last()?.scheduled - from).as_secs();
        let slots = waiting_onset(visits, in_flight)?;
        let n = visits.len() as f64;
        let busy = in_flight.iter().map(|count| (*count).min(slots) as f64).sum::<f64>() / n;
        let requests_per_s = n / span_s;
        let service_s = busy / requests_per_s;
        // A run whose arrivals came thinner than planned is a lucky one.
        let drawn = offered_rps.map_or(1.0, |offered| offered / requests_per_s);
        let drawn = if (1.0 / DRAWN..DRAWN).contains(&drawn) { drawn } else { 1.0 };
        Some(Self {
            slots: slots as f64,
            busy: busy * drawn,
            service_s,
            requests_per_s,
            span_s,
            met_full: in_flight.iter().filter(|count| **count >= slots).count() as f64 / n,
            rest_is_independent: are_independent(visits, in_flight, slots),
        })
    }

    /// Whether waits are all that requests remember of each other.
    pub(crate) fn explains_memory(self) -> bool {
        self.rest_is_independent
    }

    /// The share of requests that wait at a server with this many slots and so much to do (Erlang's C).
    pub(crate) fn waiting_share(self) -> f64 {
        if self.busy >= self.slots {
            return 1.0;
        }
        let mut blocked = 1.0;
        for slot in 1..=self.slots as u32 {
            blocked = self.busy * blocked / (f64::from(slot) + self.busy * blocked);
        }
        blocked / (1.0 - self.busy / self.slots * (1.0 - blocked))
    }

    /// How long a queue is remembered, in seconds: the relaxation time of a server with exponential
    /// service.
    fn remembered_s(self) -> f64 {
        let load = (self.busy / self.slots).min(0.999);
        self.service_s / (self.slots * (1.0 - load.sqrt()).powi(2))
    }

    /// How many times a queue could come and go in this run.
    pub(crate) fn relaxation_periods(self) -> f64 {
        self.span_s / (2.0 * self.remembered_s())
    }

    /// By how much more the share of requests beyond the median wait varies: most that wait are beyond it,
    /// and of the others fewer than half.
    pub(crate) fn median_inflation(self) -> f64 {
        const APART: f64 = 0.6;
        let waiting = self.waiting_share();
        let of_share = APART * APART * waiting * (1.0 - waiting);
        of_share * 2.0 * self.remembered_s() * self.requests_per_s / 0.25
    }

    /// By how much more the mean of values with this variance (in s²) varies because the wait is a part
    /// of them.
    pub(crate) fn mean_inflation(self, variance: f64) -> f64 {
        let waiting = self.waiting_share();
        let each = self.service_s / (self.slots - self.busy).max(0.1);
        let of_wait = waiting * (2.0 - waiting) * each * each;
        of_wait * 2.0 * self.remembered_s() * self.requests_per_s / variance
    }
}

/// How many others were in flight when each one came.
fn in_flight_at_arrival(visits: &[Visit]) -> Vec<usize> {
    let mut ends: Vec<Nanos> = visits.iter().map(|visit| visit.end).collect();
    ends.sort_unstable();
    let mut ended = 0;
    let at = |(index, visit): (usize, &Visit)| {
        ended += ends[ended..].iter().take_while(|end| **end <= visit.scheduled).count();
        // An end before its own start does not free room for another.
        index.saturating_sub(ended)
    };
    visits.iter().enumerate().map(at).collect()
}

/// The number in flight from which on requests wait; none if none do.
fn waiting_onset(visits: &[Visit], in_flight: &[usize]) -> Option<usize> {
    let all: Vec<(usize, f64)> =
        in_flight.iter().copied().zip(visits.iter().map(|visit| visit.ttft_ms)).collect();
    let (apart, slots) = best_split(&all)?;
    let (full, with_room): (Vec<_>, Vec<_>) = all.iter().partition(|(count, _)| *count >= slots);
    let ratio = median_ttft(&full)? / median_ttft(&with_room)?;
    let has_slope = || best_split(&with_room).is_some_and(|(apart, _)| apart > SLOPE);
    let is_full = ratio > SLOWER || (ratio > SLIGHTLY_SLOWER && !has_slope());
    (apart > ERRORS && is_full).then_some(slots)
}

/// The number in flight that parts slow requests from the rest best, and by how many standard errors
/// their ranks lie apart. Of numbers in flight, each with its TTFT.
fn best_split(requests: &[(usize, f64)]) -> Option<(f64, usize)> {
    let n = requests.len();
    let most = requests.iter().map(|request| request.0).max()?;
    // By number in flight: how many came to it, and the sum of their ranks.
    let mut met = vec![(0usize, 0.0); most + 1];
    for ((count, _), rank) in requests.iter().zip(ttft_ranks(requests)) {
        met[*count].0 += 1;
        met[*count].1 += rank - (n as f64 - 1.0) / 2.0;
    }
    if met.iter().filter(|(size, _)| *size > 0).count() < LEVELS {
        return None;
    }
    let (mut beyond, mut sum, mut best) = (0, 0.0, None);
    for (count, (size, rank)) in met.into_iter().enumerate().rev() {
        beyond += size;
        sum += rank;
        if size == 0 || beyond < FEWEST || beyond + FEWEST > n {
            continue;
        }
        let (some, all) = (beyond as f64, n as f64);
        let error = (some * (all - some) * (all + 1.0) / 12.0).sqrt();
        let apart = sum / error;
        if best.is_none_or(|(most, _)| apart > most) {
            best = Some((apart, count));
        }
    }
    best
}

fn median_ttft(requests: &[(usize, f64)]) -> Option<f64> {
    let mut values: Vec<f64> = requests.iter().map(|request| request.1).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Whether the requests that found room are not more alike than by chance: their TTFT, and the
/// slowest tenth of them.
fn are_independent(visits: &[Visit], in_flight: &[usize], slots: usize) -> bool {
    let with_room = || in_flight.iter().zip(visits).filter(|(count, _)| **count < slots);
    let mut sorted: Vec<f64> = with_room().map(|(_, visit)| visit.ttft_ms).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let Some(slow) = sorted.get(sorted.len() * 9 / 10).copied() else { return false };
    let mean = sorted.iter().sum::<f64>() / n;
    let share = sorted.iter().filter(|ttft| **ttft > slow).count() as f64 / n;
    let [Some(first), Some(last)] = [visits.first(), visits.last()] else { return false };
    let span = (last.scheduled - first.scheduled).as_secs().max(f64::MIN_POSITIVE);
    let mut off = [const { [0.0; SLICES as usize] }; 2];
    let mut squares = 0.0;
    for (_, visit) in with_room() {
        let at = (visit.scheduled - first.scheduled).as_secs() / span * f64::from(SLICES);
        let slice = (at as usize).min(usize::from(SLICES) - 1);
        off[0][slice] += visit.ttft_ms - mean;
        off[1][slice] += f64::from(u8::from(visit.ttft_ms > slow)) - share;
        squares += (visit.ttft_ms - mean).powi(2);
    }
    let variances = [squares, n * share * (1.0 - share)];
    let is_alike = |(off, variance): (&[f64; SLICES as usize], f64)| {
        Inflation::from_deviations(off, variance).is_significant(ALIKE, ERRORS_OF_LIKENESS)
    };
    !off.iter().zip(variances).any(is_alike)
}

/// The rank of each TTFT, from 0; equal ones share theirs.
fn ttft_ranks(requests: &[(usize, f64)]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by(|one, other| requests[*one].1.total_cmp(&requests[*other].1));
    let mut ranks = vec![0.0; requests.len()];
    let mut from = 0;
    for group in order.chunk_by(|one, other| requests[*one].1 == requests[*other].1) {
        let rank = from as f64 + (group.len() as f64 - 1.0) / 2.0;
        for index in group {
            ranks[*index] = rank;
        }
        from += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with this many slots whose requests take 100 ms for a first token and a second in all.
    fn visits(slots: usize, gap_ms: impl Fn(u64) -> u64, n: u64) -> Vec<Visit> {
        let mut free = vec![0; slots];
        let mut at = 0;
        let visit = |index: u64| {
            at += gap_ms(index);
            let slot = free.iter_mut().min().unwrap();
            let begin = at.max(*slot);
            *slot = begin + 1000;
            let [scheduled, end] = [at, begin + 1000].map(Nanos::from_millis);
            Visit { scheduled, end, ttft_ms: (begin - at + 100) as f64 }
        };
        (0..n).map(visit).collect()
    }

    /// Eight requests at once every four seconds, and two soon after.
    fn bursts(index: u64) -> u64 {
        if index.is_multiple_of(10) { 3900 } else { u64::from(index % 10 > 7) * 50 }
    }

    #[test]
    fn a_full_server_is_known_by_those_that_came_to_it() {
        let found = Contention::find(&visits(4, bursts, 2000), None).unwrap();
        assert_eq!(found.slots, 4.0);
        // Ten requests of a second each in every four seconds, never more than four at once.
        assert!((found.requests_per_s - 2.5).abs() < 0.1, "{found:?}");
        assert!(found.met_full > 0.3 && found.busy > 2.0, "{found:?}");
        // With room for all of them none waits.
        assert_eq!(Contention::find(&visits(40, bursts, 2000), None), None);
        assert_eq!(Contention::find(&[], None), None);
    }

    #[test]
    fn erlang_knows_how_many_wait() {
        let server = |busy: f64| Contention {
            slots: 32.0,
            busy,
            service_s: 4.0,
            requests_per_s: busy / 4.0,
            span_s: 180.0,
            met_full: 0.0,
            rest_is_independent: true,
        };
        // M/M/1: the share that waits is the load. M/M/32 by its sum over states, at 60, 80 and 90 %.
        let one = Contention { slots: 1.0, ..server(0.7) };
        assert!((one.waiting_share() - 0.7).abs() < 1e-12);
        for (busy, expected) in [(19.2, 0.005_067), (25.6, 0.160_623), (28.8, 0.458_197)] {
            assert!((server(busy).waiting_share() - expected).abs() < 1e-6, "{busy}");
        }
        assert_eq!(server(32.0).waiting_share(), 1.0);
        // 4 s / (32 (1 − √0.8)²) is 11.2 s.
        assert!((server(25.6).remembered_s() - 11.2).abs() < 0.05);
        assert!((server(25.6).relaxation_periods() - 180.0 / 22.4).abs() < 0.1);
    }
}
