//! What is varied: `workload.isl=512,2048,8192`, and products of two.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::VaryError;

/// Configurations of one sweep at most.
const MOST: usize = 64;

/// Values that are varied together at most.
const TOGETHER: usize = 2;

/// A value of the plan, or of what starts the server, and what it should be in turn:
/// `workload.isl=512,2048,8192`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    /// Which value.
    pub path: String,
    /// What it should be, in order; none twice.
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = VaryError;

    /// Commas part values, but not in quotes or behind a backslash.
    fn from_str(text: &str) -> Result<Self, VaryError> {
        let wrong = |why: &str| VaryError::NotValues(text.to_owned(), why.to_owned());
        let form = "write path=value,value, such as workload.isl=512,2048";
        let (path, list) = text.split_once('=').ok_or_else(|| wrong(form))?;
        let path = path.trim();
        if path.is_empty() || path.contains(char::is_whitespace) {
            return Err(wrong(form));
        }
        let values = split_values(list).ok_or_else(|| wrong("a quote is not closed"))?;
        if values.iter().any(String::is_empty) {
            return Err(wrong("a value is empty; write '' for an empty value"));
        }
        let values: Vec<String> = values
            .into_iter()
            .map(|value| if value == EMPTY { String::new() } else { value })
            .collect();
        let mut seen = BTreeSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.as_str())) {
            return Err(wrong(&format!("`{twice}` appears twice")));
        }
        if values.len() > MOST {
            return Err(VaryError::TooMany(format!(
                "`{path}` has {} values; at most {MOST} can be swept",
                values.len()
            )));
        }
        Ok(Self { path: path.to_owned(), values })
    }
}

/// Stands for an empty value that was meant; no one can write it.
const EMPTY: &str = "\0";

/// The values of a list; none if a quote is not closed. Blanks around them are left out.
fn split_values(list: &str) -> Option<Vec<String>> {
    let (mut values, mut value, mut quote) = (Vec::new(), String::new(), None);
    // What stands in quotes or behind a backslash is kept up to here, blanks too.
    let mut kept = 0;
    let mut was_quoted = false;
    let finish = |value: &mut String, kept: &mut usize, was_quoted: &mut bool| {
        let end = value.trim_end().len().max(*kept);
        value.truncate(end);
        if value.is_empty() && *was_quoted {
            value.push_str(EMPTY);
        }
        (*kept, *was_quoted) = (0, false);
        std::mem::take(value)
    };
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => {
                value.extend(letters.next());
                kept = value.len();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, Some(_)) => {
                value.push(letter);
                kept = value.len();
            }
            ('"' | '\'', None) => (quote, was_quoted) = (Some(letter), true),
            (',', None) => values.push(finish(&mut value, &mut kept, &mut was_quoted)),
            (letter, None) if letter.is_whitespace() && value.is_empty() => {}
            (letter, None) => value.push(letter),
        }
    }
    values.push(finish(&mut value, &mut kept, &mut was_quoted));
    quote.is_none().then_some(values)
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |value: &String| {
            let is_plain = !value.is_empty()
                && value.trim() == value
                && !value.contains([',', '"', '\'', '\\']);
            let escaped = || value.replace('\\', "\\\\").replace('"', "\\\"");
            if is_plain { value.clone() } else { format!("\"{}\"", escaped()) }
        };
        let values: Vec<String> = self.values.iter().map(quoted).collect();
        write!(f, "{}={}", self.path, values.join(","))
    }
}

/// Every configuration, each a list of (path, value): all values of the first with each of the second,
/// the first changing slowest. Without anything to vary, one that changes nothing.
pub fn all_configurations(varied: &[Vary]) -> Result<Vec<Vec<(String, String)>>, VaryError> {
    if varied.len() > TOGETHER {
        let message = format!("{} values are varied; at most {TOGETHER} can be", varied.len());
        return Err(VaryError::TooMany(message));
    }
    if let [one, other] = varied
        && one.path == other.path
    {
        let message = "it is varied twice; name all its values at once";
        return Err(VaryError::NotValues(one.path.clone(), message.to_owned()));
    }
    let mut found = vec![Vec::new()];
    for vary in varied {
        let with = |before: &Vec<(String, String)>, value: &String| {
            let mut all = before.clone();
            all.push((vary.path.clone(), value.clone()));
            all
        };
        let each =
            found.iter().flat_map(|before| vary.values.iter().map(|value| with(before, value)));
        found = each.take(MOST * MOST + 1).collect();
    }
    if found.len() > MOST {
        let message =
            format!("that makes {} configurations; at most {MOST} can be swept", found.len());
        return Err(VaryError::TooMany(message));
    }
    Ok(found)
}
