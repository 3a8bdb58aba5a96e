//! TOML that is not nested too deeply.
//!
//! The parser bounds the nesting of brackets and the length of dotted keys, each by itself. Together they
//! make values thousands of levels deep, and what reads such a value level by level runs out of stack.

use serde::de::{DeserializeOwned, Error};

/// Open brackets and braces at most. Our own files have five.
const DEEPEST: usize = 16;

/// What a TOML text holds.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, toml::de::Error> {
    if nesting_depth(text) > DEEPEST {
        return Err(toml::de::Error::custom(format!(
            "it is nested more than {DEEPEST} levels deep"
        )));
    }
    toml::from_str(text)
}

/// The most brackets and braces that are open at once outside of strings and comments.
fn nesting_depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '[' | '{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            ']' | '}' => open = open.saturating_sub(1),
            '#' => drop(chars.by_ref().find(|c| *c == '\n')),
            // Three quotes are an empty string and the begin of another, which is skipped alike.
            '"' => {
                while let Some(inside) = chars.next() {
                    match inside {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '\'' => drop(chars.by_ref().find(|c| *c == '\'')),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_strings_and_comments() {
        assert_eq!(nesting_depth("a = [[1, 2], [3]]\n[b]\nc = { d = [1] }\n"), 2);
        assert_eq!(nesting_depth("a = \"[[[ \\\" [[[\" # [[[[ it's\nb = '[[['\n"), 0);
        assert_eq!(nesting_depth("a = \"\"\"[[[\n[[[\"\"\"\nb = [1]\n"), 1);
    }

    #[test]
    fn deep_values_are_refused_before_they_are_read() {
        let keys = vec!["a"; 70].join(".");
        let deep = (0..70).fold("1".to_owned(), |inner, _| format!("{{{keys}={inner}}}"));
        let error = from_toml::<toml::Table>(&format!("x={deep}\n")).unwrap_err();
        assert!(error.to_string().contains("nested more than 16 levels deep"), "{error}");
        assert!(from_toml::<toml::Table>("x = [[[[1]]]]\n").is_ok());
    }
}
