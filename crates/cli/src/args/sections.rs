//! The sections of the text below a command's flags: examples, exit codes, and so on.

/// One section: a heading, and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HelpSection<'a> {
    /// As in `Exit codes`; none for a paragraph between sections.
    pub(crate) heading: Option<&'a str>,
    pub(crate) lines: Vec<&'a str>,
}

/// The text below a command's flags, in order. A line such as `Exit codes:` starts a section, whose
/// lines are indented; other lines are paragraphs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sections<'a>(pub(crate) Vec<HelpSection<'a>>);

impl<'a> Sections<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut sections: Vec<HelpSection<'a>> = Vec::new();
        for line in text.lines() {
            let is_indented = line.starts_with(' ');
            let heading = line.strip_suffix(':').filter(|_| !is_indented);
            let is_open = |section: &&mut HelpSection<'a>| section.heading.is_some() == is_indented;
            if line.is_empty() {
                if let Some(section) = sections.last_mut().filter(|one| one.heading.is_none()) {
                    section.lines.push(line);
                }
            } else if heading.is_some() {
                sections.push(HelpSection { heading, lines: Vec::new() });
            } else if let Some(section) = sections.last_mut().filter(is_open) {
                section.lines.push(line);
            } else {
                sections.push(HelpSection { heading: None, lines: vec![line] });
            }
        }
        for section in &mut sections {
            while section.lines.last().is_some_and(|line| line.is_empty()) {
                section.lines.pop();
            }
        }
        Self(sections)
    }

    /// The first examples, as lines.
    pub(crate) fn examples(&self, count: usize) -> Vec<&'a str> {
        let examples = self.0.iter().find(|section| section.heading == Some("Examples"));
        let Some(examples) = examples else { return Vec::new() };
        let mut number = 0;
        let mut is_continued = false;
        let mut taken = Vec::new();
        for line in &examples.lines {
            // A command has an indent of two, unless the line above ends in `\`; a description six.
            if !is_continued && !line.starts_with("   ") {
                number += 1;
            }
            if number > count {
                break;
            }
            is_continued = line.ends_with('\\');
            taken.push(*line);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Examples:
  goodput run a \\
      --flag
      One
  goodput run b
      Two
  goodput run c
      Three

A paragraph
of two lines.

Exit codes:
  0  success
  2  wrong usage";

    #[test]
    fn sections_and_paragraphs() {
        let sections = Sections::parse(TEXT).0;
        let headings: Vec<_> = sections.iter().map(|section| section.heading).collect();
        assert_eq!(headings, [Some("Examples"), None, Some("Exit codes")]);
        assert_eq!(sections[1].lines, ["A paragraph", "of two lines."]);
        assert_eq!(sections[2].lines, ["  0  success", "  2  wrong usage"]);
    }

    #[test]
    fn the_first_examples() {
        let sections = Sections::parse(TEXT);
        let two =
            ["  goodput run a \\", "      --flag", "      One", "  goodput run b", "      Two"];
        assert_eq!(sections.examples(2), two);
        assert_eq!(sections.examples(9).len(), 7);
        assert!(Sections::parse("No examples.").examples(2).is_empty());
    }
}
