//! What targets that answer and folders of runs have in common: names, order, and what stands behind
//! each.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Failed;

/// Targets that can be told apart, and no more than letters for names.
pub const MOST: usize = 26;

/// Longest name: it stands in tables and folders.
pub const LONGEST: usize = 24;

/// `NAME=TARGET`. A name is plain: `mock:ttft=20ms` has none, nor has a folder that is there.
pub fn split_name(text: &str) -> (Option<&str>, &str) {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    match text.split_once('=') {
        Some((name, target))
            if !name.is_empty() && name.chars().all(is_plain) && !Path::new(text).is_dir() =>
        {
            (Some(name), target)
        }
        _ => (None, text),
    }
}

/// A name that is none, with the word that should be one.
pub fn bad_name_error(text: &str) -> Option<Failed> {
    let (name, target) = text.split_once('=')?;
    let is_meant = target.contains("://") || target == "mock" || target.starts_with("mock:");
    // A URL may have `=` in its query, and an engine in its settings.
    let is_url = name.contains("://") || name.starts_with("mock:");
    let is_open = is_meant && !is_url && split_name(text).0.is_none() && !Path::new(text).is_dir();
    is_open.then(|| {
        Failed::usage(format!(
            "`{name}` is not a valid name: use letters, digits, `.`, `_` and `-`"
        ))
        .hint(format!("write old={target}"))
    })
}

/// Words of the tables' last column.
pub const RESERVED: [&str; 3] = ["same", "tie", "void"];

/// A, B, C…
pub fn side_letter(place: usize) -> String {
    let letter = u8::try_from(place % MOST).map_or('?', |place| char::from(b'A' + place));
    letter.to_string()
}

/// Puts the one of this name first: the others are compared with it.
pub fn put_reference_first<T>(
    all: &mut [T],
    reference: Option<&str>,
    name: impl Fn(&T) -> &str,
) -> Result<(), Failed> {
    let Some(asked) = reference else { return Ok(()) };
    let Some(place) = all.iter().position(|one| name(one) == asked) else {
        let names: Vec<&str> = all.iter().map(&name).collect();
        return Err(Failed::usage(format!("no target is named `{asked}`"))
            .hint(format!("the targets are {}", names.join(", "))));
    };
    if let Some(front) = all.get_mut(..=place) {
        front.rotate_right(1);
    }
    Ok(())
}

/// What is stated of each of these sides: facts under `NAME.` are those of one side, all others of
/// every side. A name may be typed in either case.
pub fn facts_by_side(
    facts: &BTreeMap<String, String>,
    names: &[&str],
) -> Vec<BTreeMap<String, String>> {
    let place = |fact: &str| {
        let is_of = |name: &&&str| {
            let own = fact.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
            own && fact
                .get(name.len()..)
                .is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
        };
        // Of `a` and `a.b` the longer one is meant.
        names.iter().enumerate().filter(|(_, name)| is_of(name)).max_by_key(|(_, name)| name.len())
    };
    let mut all = vec![BTreeMap::new(); names.len()];
    // What is stated of one side comes before what is stated of all.
    for (fact, value) in facts.iter().filter(|(fact, _)| place(fact).is_none()) {
        for side in &mut all {
            side.insert(fact.clone(), value.clone());
        }
    }
    for (fact, value) in facts {
        let Some((side, name)) = place(fact) else { continue };
        if let (Some(side), Some(own)) = (all.get_mut(side), fact.get(name.len() + 1..)) {
            side.insert(own.to_owned(), value.clone());
        }
    }
    all
}

/// One for all, or one for each.
pub fn one_per_side<T: Copy>(
    given: &[T],
    sides: usize,
    flag: &str,
) -> Result<Vec<Option<T>>, Failed> {
    match given {
        [] => Ok(vec![None; sides]),
        [one] => Ok(vec![Some(*one); sides]),
        all if all.len() == sides => Ok(all.iter().copied().map(Some).collect()),
        all => {
            let message = format!("{flag} has {} numbers for {sides} targets", all.len());
            Err(Failed::usage(message).hint("give one for all targets, or one for each"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_targets() {
        for (text, expected) in [
            ("runs/a", (None, "runs/a")),
            ("old=runs/a", (Some("old"), "runs/a")),
            ("old=mock:ttft=20ms", (Some("old"), "mock:ttft=20ms")),
            ("mock:ttft=20ms", (None, "mock:ttft=20ms")),
            ("http://x/?a=b", (None, "http://x/?a=b")),
            ("=runs/a", (None, "=runs/a")),
        ] {
            assert_eq!(split_name(text), expected, "{text}");
        }
        assert_eq!([side_letter(0), side_letter(25), side_letter(26)], ["A", "Z", "A"]);
    }

    #[test]
    fn what_is_no_name_is_said() {
        for text in ["a b=mock", "=mock", "a/b=http://x"] {
            assert!(
                bad_name_error(text).unwrap().to_string().contains("is not a valid name"),
                "{text}"
            );
        }
        for text in ["a=mock", "http://x/?a=http://b", "mock:ttft=20ms", "runs/a=b", "mock"] {
            assert!(bad_name_error(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_reference_goes_first() {
        let order = |reference| {
            let mut all = ["a", "b", "c"];
            put_reference_first(&mut all, reference, |one| *one).map(|()| all)
        };
        assert_eq!(order(Some("c")).unwrap(), ["c", "a", "b"]);
        assert_eq!(order(None).unwrap(), ["a", "b", "c"]);
        assert!(order(Some("d")).is_err());
    }

    #[test]
    fn facts_of_one_side_come_before_those_of_all() {
        let facts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let given = facts(&[
            ("gpu", "H200"),
            ("a.max_num_seqs", "256"),
            ("B.gpu", "H100"),
            ("c.rack", "7"),
            ("A.", "x"),
        ]);
        let own = [("gpu", "H200"), ("c.rack", "7"), ("A.", "x"), ("max_num_seqs", "256")];
        let other = [("gpu", "H100"), ("c.rack", "7"), ("A.", "x")];
        assert_eq!(facts_by_side(&given, &["A", "B"]), [facts(&own), facts(&other)]);
        // A longer name is not that of a shorter one.
        let nested = facts_by_side(&facts(&[("a.b.gpu", "1"), ("a.gpu", "2")]), &["a", "a.b"]);
        assert_eq!(nested, [facts(&[("gpu", "2")]), facts(&[("gpu", "1")])]);
    }
}
