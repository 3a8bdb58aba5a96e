//! Planned lengths against counted ones.

use goodput_model::{RequestRecord, TokenSource};

use crate::request::answer_count;
use crate::summary::{LengthCheck, Lengths};

/// Both sides, filled by measured good requests.
#[derive(Debug, Default)]
pub(super) struct LengthTally {
    input: LengthSide,
    output: LengthSide,
}

#[derive(Debug, Default)]
struct LengthSide {
    n: u64,
    planned: u64,
    actual: u64,
    exact: u64,
    max_error: u64,
}

impl LengthTally {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        let (planned, exchange) = (&record.planned, &record.exchange);
        // Text is planned to the token, images are not: what they cost is the server's to say.
        let of_images = exchange.image_tokens.or((planned.images == 0).then_some(0));
        let counted = exchange.input_tokens.filter(|count| count.source != TokenSource::Planned);
        if let (Some(count), Some(of_images)) = (counted, of_images) {
            self.input.add(planned.input_tokens.into(), count.n.saturating_sub(of_images).into());
        }
        // A chunk taken for a token is not a count, and an answer under a constraint ends by itself.
        let is_free = planned.constraint.is_none();
        let counted = exchange.output_tokens.filter(|count| count.source != TokenSource::Events);
        let counted = counted.filter(|_| is_free);
        if let (Some(planned), Some(count)) = (planned.output_tokens, counted) {
            self.output.add(u64::from(planned) * u64::from(answer_count(record)), count.n.into());
        }
    }

    pub(super) fn finish(self) -> Lengths {
        Lengths { input: self.input.finish(), output: self.output.finish() }
    }
}

impl LengthSide {
    fn add(&mut self, planned: u64, actual: u64) {
        self.n += 1;
        self.planned += planned;
        self.actual += actual;
        self.exact += u64::from(planned == actual);
        self.max_error = self.max_error.max(planned.abs_diff(actual));
    }

    fn finish(self) -> Option<LengthCheck> {
        let n = self.n as f64;
        (self.n > 0).then(|| LengthCheck {
            n: self.n,
            planned_mean: self.planned as f64 / n,
            actual_mean: self.actual as f64 / n,
            ratio: (self.planned > 0).then(|| self.actual as f64 / self.planned as f64),
            exact_share: self.exact as f64 / n,
            max_error: self.max_error,
        })
    }
}
