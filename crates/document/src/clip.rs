//! Keeping lines to the page: what is longer ends with an ellipsis.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `text` in at most so many columns.
pub fn clip(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        // One column is the ellipsis'.
        if used + 1 > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The page with each of its lines in at most this many columns, and nothing at their ends.
pub fn fit_page(page: &str, columns: usize) -> String {
    page.lines().map(|line| clip(line.trim_end(), columns) + "\n").collect()
}

/// `text` at the left of so many columns; longer text is clipped.
pub fn align_left(text: &str, columns: usize) -> String {
    let text = clip(text, columns);
    let pad = columns.saturating_sub(text.width());
    text + &" ".repeat(pad)
}

/// The same at the right.
pub fn align_right(text: &str, columns: usize) -> String {
    let text = clip(text, columns);
    " ".repeat(columns.saturating_sub(text.width())) + &text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_ends_with_an_ellipsis() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("abcd", 3), "ab…");
        // Two columns each.
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!(clip("ab", 0), "");
        assert_eq!(fit_page("abcd  \n\nx", 3), "ab…\n\nx\n");
        assert_eq!([align_left("日", 4), align_right("日", 4)], ["日  ", "  日"]);
    }
}
