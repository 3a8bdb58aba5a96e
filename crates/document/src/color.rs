//! Colors for a page that is shown on a terminal: of words with a meaning, at their places.
//!
//! Pages are plain text; color is added to the finished page. A word is painted only where a page
//! of ours puts it: a verdict is a line of its own, a severity stands below a verdict, a standing in
//! the column that is headed by its name. Foreign text never begins such a line: it stands behind a
//! label, in a cell or in the first line, which is never painted.

use std::ops::Range;

use goodput_model::Verdict;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::render::text::{LABEL, figures_verdict_line, verdict_line};

/// What a color says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hue {
    Good,
    Doubt,
    Bad,
}

impl Hue {
    fn ansi_code(self) -> &'static str {
        match self {
            Self::Good => "\x1b[32m",
            Self::Doubt => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Which part of a page a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PagePart {
    /// None in particular.
    Page,
    /// Below a verdict: caveats.
    Caveats,
    /// Below the state of an SLO: its terms.
    Terms,
    /// A table whose last column begins here and holds words.
    Column(usize),
    /// The table of an audit, whose first column holds words.
    Audit,
    /// What a server left in its log.
    Quoted,
    /// Below the table of an audit.
    AfterAudit,
}

/// Words with a meaning.
type Words = [(&'static str, Hue)];

/// States of an SLO at the beginning of what stands next to its label.
const STATES: &Words = &[
    ("MET", Hue::Good),
    ("MISSED", Hue::Bad),
    ("UNDECIDED", Hue::Doubt),
    ("NOT SHOWN", Hue::Doubt),
];

/// The same of a term, at its end.
const ENDS: &Words = &[("met", Hue::Good), ("missed", Hue::Bad), ("undecided", Hue::Doubt)];

/// Marks of caveats.
const CAVEATS: &Words = &[("warning", Hue::Doubt), ("void", Hue::Bad)];

/// Columns that hold words, by their headings.
const COLUMNS: [&str; 3] = ["verdict", "holds", "the SLO"];

/// What stands in them.
const CELLS: &Words = &[
    ("better", Hue::Good),
    ("WORSE", Hue::Bad),
    ("inconclusive", Hue::Doubt),
    ("no verdict", Hue::Doubt),
    ("yes", Hue::Good),
    ("NO", Hue::Bad),
    ("kept", Hue::Good),
    ("missed", Hue::Bad),
    ("unclear", Hue::Doubt),
    ("valid", Hue::Good),
    ("suspect", Hue::Doubt),
    ("void", Hue::Bad),
];

/// Marks of the checks of an audit.
const CHECKS: &Words =
    &[("ok", Hue::Good), ("doubtful", Hue::Doubt), ("missing", Hue::Doubt), ("WRONG", Hue::Bad)];

/// A part of a line with its color.
struct Painted {
    bytes: Range<usize>,
    hue: Hue,
}

impl Painted {
    /// The first of these words of which this is true, at this place of the line.
    fn find(words: &Words, from: usize, is_it: impl Fn(&str) -> bool) -> Option<Self> {
        let (word, hue) = words.iter().find(|(word, _)| is_it(word))?;
        Some(Self { bytes: from..from + word.len(), hue: *hue })
    }

    /// The verdict of which this is the whole line.
    fn find_verdict(from: usize, is_it: impl Fn(Verdict) -> bool) -> Option<Self> {
        let all = [
            (Verdict::Valid, Hue::Good),
            (Verdict::Suspect, Hue::Doubt),
            (Verdict::Void, Hue::Bad),
        ];
        let (verdict, hue) = all.into_iter().find(|(verdict, _)| is_it(*verdict))?;
        Some(Self { bytes: from..from + verdict.name().len(), hue })
    }
}

/// The page with colors. Without them it is the same text.
pub fn color_page(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 64);
    let mut part = PagePart::Page;
    for (number, line) in page.split_inclusive('\n').enumerate() {
        let text = line.strip_suffix('\n').unwrap_or(line);
        // The first line is a target or an answer: foreign words stand there, but for the verdict
        // of a short page.
        let painted = if number == 0 { color_headline(text) } else { find_color(text, &mut part) };
        match painted.and_then(|Painted { bytes: Range { start, end }, hue }| {
            Some((line.get(..start)?, line.get(start..end)?, line.get(end..)?, hue))
        }) {
            Some((before, word, after, hue)) => {
                out.extend([before, hue.ansi_code(), word, "\x1b[0m", after]);
            }
            None => out.push_str(line),
        }
    }
    out
}

/// The verdict at the beginning of a short page.
fn color_headline(line: &str) -> Option<Painted> {
    let (word, _) = line.split_once("  ")?;
    Painted::find_verdict(0, |verdict| word == verdict.name().to_uppercase())
}

/// What of a line has a color; the part that the next line belongs to.
fn find_color(line: &str, part: &mut PagePart) -> Option<Painted> {
    if *part == PagePart::Quoted && !line.is_empty() {
        return None;
    }
    if line.ends_with(" failed:") {
        *part = PagePart::Quoted;
        return None;
    }
    if let Some((next, painted)) = color_labeled(line) {
        *part = next;
        return Some(painted);
    }
    let is_heading = |name: &&str| line.strip_suffix(*name).is_some_and(|it| it.ends_with("  "));
    let begins = if let Some(heading) = COLUMNS.iter().find(|name| is_heading(name)) {
        Some(PagePart::Column(line.width() - heading.width()))
    } else {
        let is_audit = line.trim_start().starts_with("check  ");
        (is_audit && line.ends_with("what the result says")).then_some(PagePart::Audit)
    };
    if let Some(begins) = begins {
        *part = begins;
        return None;
    }
    let now = *part;
    *part = next_part(line, now);
    match now {
        PagePart::Page | PagePart::Quoted => None,
        PagePart::Caveats => {
            let mark = line.strip_prefix("  ")?.get(..LABEL)?.trim_end();
            Painted::find(CAVEATS, 2, |word| word == mark)
        }
        PagePart::Terms => {
            line.strip_prefix(INDENT)?;
            let ends = |word: &str| line.strip_suffix(word).is_some_and(|it| it.ends_with(", "));
            let painted = Painted::find(ENDS, 0, ends)?;
            let from = line.len() - painted.bytes.len();
            Some(Painted { bytes: from..line.len(), ..painted })
        }
        PagePart::Column(column) => {
            let from = byte_of_column(line, column)?;
            // Cells before it stand apart from it.
            let (before, value) = line.split_at_checked(from)?;
            if !before.ends_with("  ") {
                return None;
            }
            let stands =
                |rest: &str| rest.is_empty() || rest.starts_with([':', ',']) || rest == " ?";
            Painted::find(CELLS, from, |word| value.strip_prefix(word).is_some_and(stands))
        }
        PagePart::Audit => Painted::find(CHECKS, 0, |word| {
            line.strip_prefix(word).is_some_and(|rest| rest.starts_with("  "))
        }),
        PagePart::AfterAudit => audit_verdict(line),
    }
}

fn audit_verdict(line: &str) -> Option<Painted> {
    Painted::find_verdict(0, |verdict| line == figures_verdict_line(verdict))
}

/// What stands in front of lines that go on below a label.
const INDENT: &str = "            ";

/// The part that the line below this one belongs to.
fn next_part(line: &str, part: PagePart) -> PagePart {
    let goes_on = match part {
        PagePart::Page | PagePart::Quoted => false,
        PagePart::Caveats => {
            let mark = line.strip_prefix("  ").and_then(|rest| rest.get(..LABEL));
            mark.is_some_and(|mark| ["", "note", "warning", "void"].contains(&mark.trim_end()))
        }
        PagePart::Terms => line.starts_with(INDENT),
        PagePart::Column(_) => !line.is_empty(),
        PagePart::Audit if line.is_empty() => return PagePart::AfterAudit,
        PagePart::Audit => true,
        PagePart::AfterAudit => audit_verdict(line).is_none(),
    };
    if goes_on { part } else { PagePart::Page }
}

/// A verdict, or the state of an SLO, next to its label; and what stands below it.
fn color_labeled(line: &str) -> Option<(PagePart, Painted)> {
    let from = INDENT.len();
    let (label, value) = line.split_at_checked(from)?;
    match label.trim_end() {
        "Verdict" => {
            let is_it = |verdict| value == verdict_line(verdict);
            Some((PagePart::Caveats, Painted::find_verdict(from, is_it)?))
        }
        "SLO" => {
            let ends = |rest: &str| rest.is_empty() || rest.starts_with(": ");
            let is_it = |word: &str| value.strip_prefix(word).is_some_and(ends);
            Some((PagePart::Terms, Painted::find(STATES, from, is_it)?))
        }
        _ => None,
    }
}

/// The byte at which this column begins.
fn byte_of_column(line: &str, column: usize) -> Option<usize> {
    let mut at = 0;
    for (place, c) in line.char_indices() {
        if at >= column {
            return (at == column).then_some(place);
        }
        at += c.width().unwrap_or(0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page with `<…>` around what has a color.
    fn marked(page: &str) -> String {
        let shown = color_page(page);
        for hue in [Hue::Good, Hue::Doubt, Hue::Bad] {
            assert_eq!(shown.replace("\x1b[0m", "").matches("\x1b[0").count(), 0, "{hue:?}");
        }
        let good = shown.replace("\x1b[32m", "<+");
        good.replace("\x1b[33m", "<?").replace("\x1b[31m", "<-").replace("\x1b[0m", ">")
    }

    #[test]
    fn verdicts_and_caveats() {
        let page = "http://x\nVerdict     SUSPECT: read the caveats before using these numbers\n  \
                    void      gone; a\n            warning   b\n  warning   c\n  note      d\n\n  \
                    warning   e\n";
        let expected = "http://x\nVerdict     <?SUSPECT>: read the caveats before using these \
                        numbers\n  <-void>      gone; a\n            warning   b\n  <?warning>   \
                        c\n  note      d\n\n  warning   e\n";
        assert_eq!(marked(page), expected);
        assert_eq!(marked("x\nVerdict     VALID"), "x\nVerdict     <+VALID>");
    }

    #[test]
    fn an_slo_and_its_terms() {
        let page = "x\nSLO         MISSED\n            p99 ttft < 1ms: 3 ms, missed\n            \
                    e2e < 9s: 1 s, met\nGoodput     3 req/s, missed\n";
        let expected = "x\nSLO         <-MISSED>\n            p99 ttft < 1ms: 3 ms, <-missed>\n            \
                        e2e < 9s: 1 s, <+met>\nGoodput     3 req/s, missed\n";
        assert_eq!(marked(page), expected);
        assert_eq!(marked("x\nSLO         ttft < 1s, met\n"), "x\nSLO         ttft < 1s, met\n");
    }

    #[test]
    fn columns_of_words() {
        let page = "x\n       A  change  verdict\np50 日本  +5.1 %  WORSE\np99    2  -4.0 %  better ?\n\np99    2  \
                    -4.0 %  better\n";
        let expected = "x\n       A  change  verdict\np50 日本  +5.1 %  <-WORSE>\np99    2  -4.0 %  <+better> \
                        ?\n\np99    2  -4.0 %  better\n";
        assert_eq!(marked(page), expected);
        let page = "x\n  # req/s  the SLO\n  1   5.0  kept\n  2   9.0  missed: queue grows\n  3   \
                    9.0  keptical\n";
        let expected = "x\n  # req/s  the SLO\n  1   5.0  <+kept>\n  2   9.0  <-missed>: queue \
                        grows\n  3   9.0  keptical\n";
        assert_eq!(marked(page), expected);
    }

    /// A model, an error, a class or a side of any name paints nothing.
    #[test]
    fn foreign_text_has_no_color() {
        for foreign in [
            "Verdict     VALID",
            "SLO         MET",
            "VALID: no reason found to doubt these figures",
        ] {
            for page in [
                format!("{foreign}\nmodel x\n"),
                format!("x\nmodel {foreign}\n"),
                format!("x\nErrors      3 × http_500 (headers): {foreign}\n"),
                format!("x\n            {foreign}\n"),
                format!("x\n  {foreign}\n"),
                format!("x\n{foreign} against A, 8 req/s: tested together\n"),
            ] {
                assert_eq!(color_page(&page), page);
            }
        }
        let log = "x\n\na=1 failed:\n  it ended\n  #  the SLO\n  1  kept\n\n  1  kept\n";
        assert_eq!(color_page(log), log);
        let error =
            "x\nVerdict     VALID\n  note      WORSE, missed, void\n            void, missed\n";
        assert_eq!(color_page(error).matches("\x1b[3").count(), 1);
    }
}
