//! [`Totals`]: what a rank has counted so far, for the screen of rank 0. Results are made from the
//! records, never from this.

use goodput_model::LogHistogram;
use serde::{Deserialize, Serialize};

/// Counts since the first instant of an order. Those of several ranks add up exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Requests whose instant has come and that were sent.
    pub started: u64,
    /// Requests that have ended, completed or not.
    pub ended: u64,
    /// Of those, that failed.
    pub failed: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Tokens that came back.
    pub output_tokens: u64,
    /// Events of answers.
    pub events: u64,
    /// Times to the first token.
    pub ttft: LogHistogram,
    /// Times between tokens.
    pub itl: LogHistogram,
    /// Times for each token after the first.
    pub tpot: LogHistogram,
    /// Times from the scheduled instant to the end.
    pub e2e: LogHistogram,
}

impl Totals {
    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        let sums = [
            (&mut self.started, other.started),
            (&mut self.ended, other.ended),
            (&mut self.failed, other.failed),
            (&mut self.in_flight, other.in_flight),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.events, other.events),
        ];
        for (sum, count) in sums {
            *sum = sum.saturating_add(count);
        }
        self.ttft.merge(&other.ttft);
        self.itl.merge(&other.itl);
        self.tpot.merge(&other.tpot);
        self.e2e.merge(&other.e2e);
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::Nanos;

    use super::*;

    fn totals(part: u64) -> Totals {
        let mut totals = Totals { started: 10 * part, ended: part, failed: 1, ..Totals::default() };
        (0..part).for_each(|n| totals.ttft.add(Nanos(n << 7)));
        (0..part).for_each(|_| totals.e2e.add_unfinished());
        totals
    }

    #[test]
    fn parts_add_up_exactly_in_any_order() {
        let (mut ab, mut ba) = (totals(3), totals(5));
        ab.merge(&totals(5));
        ba.merge(&totals(3));
        assert_eq!(ab, ba);
        assert_eq!((ab.started, ab.ended, ab.failed, ab.e2e.count()), (80, 8, 2, 8));
        let text = serde_json::to_string(&ab.ttft).unwrap();
        let counts = r#"{"0":2,"1":2,"2":2,"3":1,"4":1}"#;
        assert_eq!(text, format!(r#"{{"counts":{counts},"unfinished":0,"max":512}}"#));
    }

    #[test]
    fn no_number_is_too_large() {
        let mut sum = Totals { started: u64::MAX, ..Totals::default() };
        let many = format!(r#"{{"counts":{{"7":{0},"65535":{0}}}}}"#, u64::MAX);
        sum.ttft = serde_json::from_str(&many).unwrap();
        sum.merge(&sum.clone());
        assert_eq!((sum.started, sum.ttft.count()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn written_and_read_they_are_the_same() {
        let text = serde_json::to_string(&totals(3)).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap(), totals(3));
    }
}
