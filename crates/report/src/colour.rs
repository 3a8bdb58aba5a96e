//! Colours for a page that is shown on a terminal: of words with a meaning, at their places.
//!
//! Pages are plain text; colour is added to the finished page. A word is painted only where a page
//! of ours puts it: a verdict is a line of its own, a severity stands below a verdict, a standing in
//! the column that is headed by its name. Foreign text never begins such a line: it stands behind a
//! label, in a cell or in the first line, which is never painted.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::render::text::LABEL;

/// What a colour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hue {
    Good,
    Doubt,
    Bad,
}

impl Hue {
    fn code(self) -> &'static str {
        match self {
            Self::Good => "\x1b[32m",
            Self::Doubt => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Where in a page a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nowhere in particular.
    Page,
    /// Below a verdict: caveats.
    Caveats,
    /// Below the state of an SLO: its terms.
    Terms,
    /// In a table whose last column begins here and holds words.
    Column(usize),
    /// In the table of an audit, whose first column holds words.
    Audit,
    /// In what a server left in its log.
    Quoted,
    /// Below the table of an audit.
    AfterAudit,
}

/// Words of a verdict, with what may follow them.
const VERDICTS: [(&str, &str, Hue); 3] = [
    ("VALID", "", Hue::Good),
    ("SUSPECT", ": read the caveats before using these numbers", Hue::Doubt),
    ("VOID", ": do not use these numbers as a result", Hue::Bad),
];

/// States of an SLO at the beginning of what stands beside its label.
const STATES: [(&str, Hue); 4] = [
    ("MET", Hue::Good),
    ("MISSED", Hue::Bad),
    ("UNDECIDED", Hue::Doubt),
    ("NOT SHOWN", Hue::Doubt),
];

/// The same of a term, at its end.
const ENDS: [(&str, Hue); 3] =
    [("met", Hue::Good), ("missed", Hue::Bad), ("undecided", Hue::Doubt)];

/// Marks of caveats.
const CAVEATS: [(&str, Hue); 2] = [("warning", Hue::Doubt), ("void", Hue::Bad)];

/// Columns that hold words, by their headings.
const COLUMNS: [&str; 3] = ["verdict", "holds", "the SLO"];

/// What stands in them.
const WORDS: [(&str, Hue); 13] = [
    ("better", Hue::Good),
    ("WORSE", Hue::Bad),
    ("inconclusive", Hue::Doubt),
    ("no verdict", Hue::Doubt),
    ("cannot be told yet", Hue::Doubt),
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
const CHECKS: [(&str, Hue); 4] =
    [("ok", Hue::Good), ("doubtful", Hue::Doubt), ("missing", Hue::Doubt), ("WRONG", Hue::Bad)];

/// Its verdicts, with what follows them.
const AUDITS: [(&str, &str, Hue); 3] = [
    ("VALID", ": nothing found that speaks against these figures", Hue::Good),
    ("SUSPECT", ": read what is doubtful before using these figures", Hue::Doubt),
    ("VOID", ": do not use these figures as a result", Hue::Bad),
];

/// The page with colours. Without them it is the same text.
pub fn coloured(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 64);
    let mut place = Place::Page;
    for (number, line) in page.split_inclusive('\n').enumerate() {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        // The first line is a target or an answer: foreign words stand there.
        let found = if number == 0 { None } else { find(text, &mut place) };
        match found.and_then(|(from, to, hue)| {
            Some((text.get(..from)?, text.get(from..to)?, text.get(to..)?, hue))
        }) {
            Some((before, word, after, hue)) => {
                out.extend([before, hue.code(), word, "\x1b[0m", after]);
            }
            None => out.push_str(text),
        }
        out.push_str(end);
    }
    out
}

/// Which bytes of a line have a colour, and where the next line stands.
fn find(line: &str, place: &mut Place) -> Option<(usize, usize, Hue)> {
    if *place == Place::Quoted && !line.is_empty() {
        return None;
    }
    if line.ends_with(" failed:") {
        *place = Place::Quoted;
        return None;
    }
    if let Some(found) = labelled(line, "Verdict", place) {
        return Some(found);
    }
    let heading = COLUMNS
        .iter()
        .find(|name| line.strip_suffix(*name).is_some_and(|rest| rest.ends_with("  ")));
    if let Some(heading) = heading {
        *place = Place::Column(line.width() - heading.width());
        return None;
    }
    if line.trim_start().starts_with("check  ") && line.ends_with("what the result says") {
        *place = Place::Audit;
        return None;
    }
    match *place {
        Place::Page | Place::Quoted => {
            *place = Place::Page;
            None
        }
        Place::Caveats => caveat(line, place),
        Place::Terms => term(line, place),
        Place::Column(column) => cell(line, column, place),
        Place::Audit => check(line, place),
        Place::AfterAudit => {
            let is_it = |(word, rest, _): &&(&str, &str, Hue)| {
                line.strip_prefix(word).is_some_and(|after| after == *rest)
            };
            let (word, _, hue) = AUDITS.iter().find(is_it)?;
            *place = Place::Page;
            Some((0, word.len(), *hue))
        }
    }
}

/// A verdict, or the state of an SLO, beside its label.
fn labelled(line: &str, label: &str, place: &mut Place) -> Option<(usize, usize, Hue)> {
    let beside = |label: &str| {
        let rest = line.strip_prefix(label)?;
        let pad = LABEL + 2 - label.len();
        let value = rest.strip_prefix(" ".repeat(pad).as_str())?;
        (!value.starts_with(' ')).then_some((LABEL + 2, value))
    };
    if let Some((from, value)) = beside(label) {
        let is_it = |(word, rest, _): &&(&str, &str, Hue)| {
            value.strip_prefix(word).is_some_and(|after| after == *rest)
        };
        let (word, _, hue) = VERDICTS.iter().find(is_it)?;
        *place = Place::Caveats;
        return Some((from, from + word.len(), *hue));
    }
    let (from, value) = beside("SLO")?;
    let is_it = |(word, _): &&(&str, Hue)| {
        value.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
    };
    let (word, hue) = STATES.iter().find(is_it)?;
    *place = Place::Terms;
    Some((from, from + word.len(), *hue))
}

/// A caveat's mark; what goes on below it begins where its text does.
fn caveat(line: &str, place: &mut Place) -> Option<(usize, usize, Hue)> {
    let Some(mark) = line.strip_prefix("  ").and_then(|rest| rest.get(..LABEL)) else {
        *place = Place::Page;
        return None;
    };
    let mark = mark.trim_end();
    if !["", "note", "warning", "void"].contains(&mark) {
        *place = Place::Page;
    }
    let (word, hue) = CAVEATS.iter().find(|(word, _)| *word == mark)?;
    Some((2, 2 + word.len(), *hue))
}

/// A term of an SLO ends with what became of it.
fn term(line: &str, place: &mut Place) -> Option<(usize, usize, Hue)> {
    if !line.starts_with(" ".repeat(LABEL + 2).as_str()) {
        *place = Place::Page;
        return None;
    }
    let is_it =
        |(word, _): &&(&str, Hue)| line.strip_suffix(word).is_some_and(|rest| rest.ends_with(", "));
    let (word, hue) = ENDS.iter().find(is_it)?;
    Some((line.len() - word.len(), line.len(), *hue))
}

/// A word in the last column of a table, whole or followed by its reason.
fn cell(line: &str, column: usize, place: &mut Place) -> Option<(usize, usize, Hue)> {
    if line.is_empty() {
        *place = Place::Page;
        return None;
    }
    let from = byte_at(line, column)?;
    // Cells before it stand apart from it.
    let is_apart = line.get(..from).is_some_and(|before| before.ends_with("  "));
    let value = line.get(from..).filter(|_| is_apart)?;
    let is_it = |(word, _): &&(&str, Hue)| {
        value
            .strip_prefix(word)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ',']) || rest == " ?")
    };
    let (word, hue) = WORDS.iter().find(is_it)?;
    Some((from, from + word.len(), *hue))
}

/// The mark of a check of an audit.
fn check(line: &str, place: &mut Place) -> Option<(usize, usize, Hue)> {
    if line.is_empty() {
        *place = Place::AfterAudit;
        return None;
    }
    let is_it = |(word, _): &&(&str, Hue)| {
        line.strip_prefix(word).is_some_and(|rest| rest.starts_with("  "))
    };
    let (word, hue) = CHECKS.iter().find(is_it)?;
    Some((0, word.len(), *hue))
}

/// The byte at which this column begins.
fn byte_at(line: &str, column: usize) -> Option<usize> {
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

    /// The page with `<…>` around what has a colour.
    fn marked(page: &str) -> String {
        let shown = coloured(page);
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
    fn foreign_text_has_no_colour() {
        for foreign in [
            "Verdict     VALID",
            "SLO         MET",
            "VALID: nothing found that speaks against these figures",
        ] {
            for page in [
                format!("{foreign}\nmodel x\n"),
                format!("x\nmodel {foreign}\n"),
                format!("x\nErrors      3 × http_500 (headers): {foreign}\n"),
                format!("x\n            {foreign}\n"),
                format!("x\n  {foreign}\n"),
                format!("x\n{foreign} against A, 8 req/s: tested together\n"),
            ] {
                assert_eq!(coloured(&page), page);
            }
        }
        let log = "x\n\na=1 failed:\n  it ended\n  #  the SLO\n  1  kept\n\n  1  kept\n";
        assert_eq!(coloured(log), log);
        let error =
            "x\nVerdict     VALID\n  note      WORSE, missed, void\n            void, missed\n";
        assert_eq!(coloured(error).matches("\x1b[3").count(), 1);
    }
}
