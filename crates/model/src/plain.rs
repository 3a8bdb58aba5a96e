//! Foreign text on a terminal: control codes and direction marks are shown, not obeyed.

use std::fmt::Write;

/// `text` with everything that a terminal would act on replaced by its escape.
pub fn escape_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut out, c));
    out
}

/// The beginning of a foreign text for a message: at most 80 characters, as [`escape_control`] has them.
pub fn safe_excerpt(text: &str) -> String {
    const MOST: usize = 80;
    let is_longer = text.chars().nth(MOST).is_some();
    let mut out = String::new();
    let shown = if is_longer { MOST - 1 } else { MOST };
    text.chars().take(shown).for_each(|c| push_escaped(&mut out, c));
    if is_longer {
        out.push('…');
    }
    out
}

fn push_escaped(out: &mut String, c: char) {
    let is_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}');
    if c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_are_shown_not_obeyed() {
        assert_eq!(escape_control("a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb\\u{d}\\u{a}");
        assert_eq!(escape_control("\u{202e}evil"), "\\u{202e}evil");
        assert_eq!(escape_control("naïve 日本"), "naïve 日本");
    }

    #[test]
    fn an_excerpt_is_short_and_harmless() {
        assert_eq!(safe_excerpt("a\u{1b}[2J"), "a\\u{1b}[2J");
        let longest = "ü".repeat(80);
        assert_eq!(safe_excerpt(&longest), longest);
        assert_eq!(safe_excerpt(&"ü".repeat(81)), format!("{}…", "ü".repeat(79)));
    }
}
