//! Which known name a misspelled one can only mean.

/// Names longer than this are not misspelled words, and comparing them would cost their square.
const MOST: usize = 40;

/// The known name that is closest to a word, if it is within one edit plus one for every four
/// letters. An edit inserts, removes, or changes a letter, or swaps two neighboring ones.
pub fn closest_name<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MOST + 1).flat_map(char::to_lowercase).collect();
    if word.len() > MOST {
        return None;
    }
    let distances = known.into_iter().map(|name| (edit_distance(&word, name), name));
    let near = distances.filter(|(edits, name)| *edits <= 1 + name.len() / 4);
    near.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// The optimal string alignment distance.
fn edit_distance(word: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in name.iter().enumerate() {
            let changed = row_value(&above, j) + usize::from(letter != other);
            let mut least = changed.min(row_value(&above, j + 1) + 1).min(row_value(&row, j) + 1);
            let before_letter = i.checked_sub(1).and_then(|i| word.get(i));
            let before_other = j.checked_sub(1).and_then(|j| name.get(j));
            if before_letter == Some(other) && before_other == Some(letter) {
                least = least.min(row_value(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    row_value(&above, name.len())
}

fn row_value(row: &[usize], place: usize) -> usize {
    row.get(place).copied().unwrap_or(usize::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names() {
        let known = ["run", "sweep", "compare", "capacity", "interactive", "mock"];
        for (word, expected) in [
            ("rnu", Some("run")),
            ("RUN", Some("run")),
            ("swep", Some("sweep")),
            ("comapre", Some("compare")),
            ("interactve", Some("interactive")),
            ("mok", Some("mock")),
            ("rerun", None),
            ("", None),
            ("xyz", None),
        ] {
            assert_eq!(closest_name(word, known), expected, "{word}");
        }
        assert_eq!(closest_name(&"r".repeat(1_000_000), known), None);
    }

    #[test]
    fn edits_are_counted() {
        let table = [("kitten", "sitting", 3), ("", "abc", 3), ("ab", "ba", 1), ("abc", "abc", 0)];
        for (word, name, expected) in table {
            let word: Vec<char> = word.chars().collect();
            assert_eq!(edit_distance(&word, name), expected);
        }
    }
}
