//! Who was turned away, in sentences for people.

/// Sentences that are kept; what comes after them is counted in one.
const KEPT: usize = 16;
/// That one.
const OTHERS: &str = "more connections were refused";

/// Each sentence with how often it was so, the first one first.
#[derive(Debug, Default)]
pub(super) struct TurnedAway(Vec<(String, u64)>);

impl TurnedAway {
    pub(super) fn count(&mut self, sentence: String) {
        let is_known = |said: &str| self.0.iter().any(|(known, _)| known == said);
        let is_kept = is_known(&sentence) || self.0.len() < KEPT;
        let sentence = if is_kept { sentence } else { OTHERS.to_owned() };
        match self.0.iter_mut().find(|(known, _)| *known == sentence) {
            Some((_, times)) => *times += 1,
            None => self.0.push((sentence, 1)),
        }
    }

    pub(super) fn counts(&self) -> Vec<(String, u64)> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_can_be_read() {
        let mut away = TurnedAway::default();
        for number in 0..1_000 {
            away.count(number.to_string());
            away.count("0".to_owned());
        }
        let kept = away.counts();
        assert_eq!((kept.len(), &kept[0]), (KEPT + 1, &("0".to_owned(), 1_001)));
        assert_eq!(kept[KEPT], (OTHERS.to_owned(), 984));
    }
}
