//! One line of a page.

use std::borrow::Cow;

use super::ParsedSeries;

/// A line that is neither a series nor a comment.
#[derive(Debug)]
pub(super) struct Malformed;

const BLANKS: [char; 2] = [' ', '\t'];

/// The series of a line; none if it is empty or a comment.
pub(super) fn parse_line(line: &str) -> Result<Option<ParsedSeries<'_>>, Malformed> {
    let mut cursor = LineCursor { rest: line };
    cursor.skip_blanks();
    if cursor.rest.is_empty() || cursor.rest.starts_with('#') {
        return Ok(None);
    }
    cursor.parse_series().map(Some).ok_or(Malformed)
}

/// What of a line is still to be read.
struct LineCursor<'a> {
    rest: &'a str,
}

impl<'a> LineCursor<'a> {
    fn parse_series(&mut self) -> Option<ParsedSeries<'a>> {
        let plain = self.parse_name(true);
        let mut name = (!plain.is_empty()).then_some(Cow::Borrowed(plain));
        let is_apart = self.skip_blanks();
        let mut labels = Vec::new();
        if self.eat_char('{') {
            self.parse_labels(&mut name, &mut labels)?;
        } else if !is_apart {
            // Otherwise the name goes on with what no name has.
            return None;
        }
        self.skip_blanks();
        let value = parse_number(self.take_token())?;
        self.skip_blanks();
        if !self.rest.is_empty() && !self.rest.starts_with('#') {
            // A time stamp.
            parse_number(self.take_token())?;
            self.skip_blanks();
        }
        // An exemplar may follow, and holds anything.
        let is_over = self.rest.is_empty() || self.rest.starts_with('#');
        is_over.then_some(ParsedSeries { name: name?, labels, value })
    }

    /// Everything up to the closing brace. A name in quotes without a value is that of the series.
    fn parse_labels(
        &mut self,
        name: &mut Option<Cow<'a, str>>,
        labels: &mut Vec<(Cow<'a, str>, Cow<'a, str>)>,
    ) -> Option<()> {
        loop {
            self.skip_blanks();
            if self.eat_char('}') {
                break;
            }
            let is_quoted = self.rest.starts_with('"');
            let key = if is_quoted {
                self.parse_quoted()?
            } else {
                Cow::Borrowed(self.parse_name(false))
            };
            if key.is_empty() {
                return None;
            }
            self.skip_blanks();
            if self.eat_char('=') {
                self.skip_blanks();
                labels.push((key, self.parse_quoted()?));
            } else if is_quoted && name.is_none() {
                *name = Some(key);
            } else {
                return None;
            }
            self.skip_blanks();
            if !self.eat_char(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
        labels.sort_unstable();
        let is_unique = labels.windows(2).all(|pair| match pair {
            [(one, _), (other, _)] => one != other,
            _ => true,
        });
        is_unique.then_some(())
    }

    /// A name without quotes; empty if there is none. Labels have no colons.
    fn parse_name(&mut self, colons: bool) -> &'a str {
        let is_part = |(at, byte): (usize, u8)| {
            byte.is_ascii_alphabetic()
                || byte == b'_'
                || (colons && byte == b':')
                || (at > 0 && byte.is_ascii_digit())
        };
        let end = self.rest.bytes().enumerate().position(|part| !is_part(part));
        self.take_bytes(end.unwrap_or(self.rest.len()))
    }

    /// Up to the next blank.
    fn take_token(&mut self) -> &'a str {
        self.take_bytes(self.rest.find(BLANKS).unwrap_or(self.rest.len()))
    }

    /// A text in quotes, with escapes undone.
    fn parse_quoted(&mut self) -> Option<Cow<'a, str>> {
        let inside = self.rest.strip_prefix('"')?;
        let (mut has_escapes, mut is_escaped) = (false, false);
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            has_escapes |= is_escaped;
            ends
        })?;
        let text = inside.get(..end)?;
        self.rest = inside.get(end + 1..)?;
        Some(if has_escapes { Cow::Owned(unescape(text)) } else { Cow::Borrowed(text) })
    }

    /// Skips blanks; whether there were any.
    fn skip_blanks(&mut self) -> bool {
        let before = self.rest.len();
        self.rest = self.rest.trim_start_matches(BLANKS);
        self.rest.len() < before
    }

    fn eat_char(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_bytes(&mut self, at: usize) -> &'a str {
        let (head, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }
}

/// `\n`, `\\` and `\"` as the formats have them; what else follows a backslash is left as it is.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            plain.push(char);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some(escaped @ ('\\' | '"')) => plain.push(escaped),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// A number as the formats write it: no hexadecimal, no underscores, no sign before `NaN`, and
/// nothing beyond the range of a double but infinity by name.
fn parse_number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let unsigned = text.trim_start_matches(['+', '-']);
    let is_readable = if unsigned.starts_with(|first: char| first.is_ascii_alphabetic()) {
        !value.is_nan() || unsigned.len() == text.len()
    } else {
        value.is_finite()
    };
    is_readable.then_some(value)
}
