//! Breaking prose into lines.

use unicode_width::UnicodeWidthStr;

/// What belongs to the number before it.
const UNITS: [&str; 4] = ["%", "ms", "s", "points"];

/// `text` in lines of at most `width` columns; a longer word stands alone, and a unit with its number.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', '.', ':', ')']);
        let number = words.last_mut().filter(|last| last.ends_with(|c: char| c.is_ascii_digit()));
        match number {
            Some(number) if UNITS.contains(&unit) => *number = format!("{number} {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in &words {
        let line = lines.last().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 5), ["extraordinary"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("by 5.1 %, or so", 6), ["by", "5.1 %,", "or so"]);
        assert_eq!(wrap("by some %, or so", 7), ["by some", "%, or", "so"]);
    }
}
