//! How alike two answers are.

use goodput_model::Likeness;

/// Compares two texts to the character.
pub(super) fn compare_texts(primary: &str, candidate: &str) -> Likeness {
    let pairs = primary.chars().zip(candidate.chars());
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Likeness {
        exact: primary == candidate,
        prefix: count(pairs.take_while(|(one, other)| one == other).count()),
        lengths: [count(primary.chars().count()), count(candidate.chars().count())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_count_and_not_bytes() {
        let like = |one, other| {
            let found = compare_texts(one, other);
            (found.exact, found.prefix, found.lengths)
        };
        assert_eq!(like("größer", "größer"), (true, 6, [6, 6]));
        assert_eq!(like("größer", "gröber"), (false, 3, [6, 6]));
        assert_eq!(like("", "a"), (false, 0, [0, 1]));
        assert_eq!(like("ab", "abc"), (false, 2, [2, 3]));
        assert_eq!(like("", ""), (true, 0, [0, 0]));
    }
}
