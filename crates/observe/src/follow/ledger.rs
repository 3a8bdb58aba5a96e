//! What each series stood at when it was last seen.

use std::borrow::Cow;
use std::collections::HashMap;

use goodput_model::Signal;

use super::Troubles;
use crate::dialect::is_valid_amount;

/// The most values remembered of one endpoint: each bucket is one. What is beyond is not followed.
pub(super) const LIMIT: usize = 20_000;

/// By series, what it stood at.
#[derive(Debug, Default)]
pub(super) struct CounterLedger {
    last: HashMap<String, Vec<f64>>,
    /// How many values that are.
    size: usize,
    /// Whether a series that is new here is new at the server too, and counts from zero.
    pub(super) from_zero: bool,
}

/// What tells a series from all others: each text with its length, so that no two run together.
pub(super) fn series_key(
    signal: Signal,
    name: &str,
    labels: &[(Cow<'_, str>, Cow<'_, str>)],
) -> String {
    let mut key = String::from(signal.name());
    let texts = labels.iter().flat_map(|(key, value)| [key.as_ref(), value.as_ref()]);
    for text in std::iter::once(name).chain(texts) {
        key.push(' ');
        key.push_str(&text.len().to_string());
        key.push(' ');
        key.push_str(text);
    }
    key
}

impl CounterLedger {
    /// What came to a counter since it was last seen; `None` where it is not a number, or too many
    /// are followed already.
    pub(super) fn growth(
        &mut self,
        key: String,
        value: f64,
        troubles: &mut Troubles,
    ) -> Option<f64> {
        self.growth_of_all(key, vec![value], troubles)?.first().copied()
    }

    /// What came to values that only go up together. Whether they began again, the last tells.
    pub(super) fn growth_of_all(
        &mut self,
        key: String,
        values: Vec<f64>,
        troubles: &mut Troubles,
    ) -> Option<Vec<f64>> {
        let is_sound = values.iter().copied().all(is_valid_amount);
        let last = match self.last.get_mut(&key) {
            Some(last) if is_sound && last.len() == values.len() => last,
            None if is_sound => return self.start_series(key, values, troubles),
            None => {
                // Seen, but not what it stood at: the next look is its beginning.
                self.start_series(key, vec![f64::NAN; values.len()], troubles);
                troubles.count_malformed();
                return None;
            }
            // Other buckets than before are another distribution.
            Some(_) => {
                troubles.count_malformed();
                return None;
            }
        };
        let has_begun_anew = values.last() < last.last();
        if has_begun_anew {
            troubles.count_reset();
            last.fill(0.0);
        }
        let added = values.iter().zip(last.iter()).map(|(now, last)| f64::max(now - last, 0.0));
        let added = added.collect();
        *last = values;
        Some(added)
    }

    fn start_series(
        &mut self,
        key: String,
        values: Vec<f64>,
        troubles: &mut Troubles,
    ) -> Option<Vec<f64>> {
        if self.size + values.len() > LIMIT {
            troubles.count_malformed();
            return None;
        }
        self.size += values.len();
        let added = if self.from_zero { values.clone() } else { vec![0.0; values.len()] };
        self.last.insert(key, values);
        Some(added)
    }
}

#[cfg(test)]
impl CounterLedger {
    pub(super) fn size_for_tests(&self) -> usize {
        self.last.values().map(Vec::len).sum()
    }
}
