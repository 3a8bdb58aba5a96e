//! Markup that cannot be broken from outside: text and attribute values are escaped on their way in,
//! and only what is made here is markup.

use std::fmt::Write;

use serde::Serialize;

use goodput_model::escape_control;

/// A piece of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Html(String);

/// Names and values of attributes. An attribute whose value is empty is still written.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// A piece made by this.
    pub fn from_fn(fill: impl FnOnce(&mut Self)) -> Self {
        let mut html = Self::default();
        fill(&mut html);
        html
    }

    /// Text. What a browser would act on, and marks that turn the direction of reading, are shown
    /// and not obeyed.
    pub fn text(&mut self, text: &str) -> &mut Self {
        push_escaped(&mut self.0, text);
        self
    }

    /// What people typed, to be typed on: it comes back with the form, so it is kept as it is. Not
    /// for anything that is only shown.
    pub fn typed(&mut self, text: &str) -> &mut Self {
        push_escaped_typed(&mut self.0, text);
        self
    }

    /// A field of one line with what people typed, likewise.
    pub fn field(&mut self, name: &'static str, typed: &str) -> &mut Self {
        let _ = write!(self.0, "<input type=\"text\" name=\"{name}\" value=\"");
        push_escaped_typed(&mut self.0, typed);
        self.0.push_str("\">");
        self
    }

    /// An element with this inside.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.open(name, attributes);
        inside(self);
        let _ = write!(self.0, "</{name}>");
        self
    }

    /// An element with nothing but text inside.
    pub fn text_element(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        text: &str,
    ) -> &mut Self {
        self.element(name, attributes, |html| {
            html.text(text);
        })
    }

    /// An element that has no inside, such as `<br>`.
    pub fn open(&mut self, name: &'static str, attributes: Attributes<'_>) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.0, " {attribute}=\"");
            push_escaped(&mut self.0, value);
            self.0.push('"');
        }
        self.0.push('>');
        self
    }

    /// Another piece.
    pub fn add(&mut self, piece: &Self) -> &mut Self {
        self.0.push_str(&piece.0);
        self
    }

    /// Numbers for the page's script, which finds them by their id.
    pub fn script_data(&mut self, id: &'static str, data: &impl Serialize) -> &mut Self {
        let _ = write!(self.0, "<script type=\"application/json\" id=\"{id}\">");
        for c in serde_json::to_string(data).unwrap_or_default().chars() {
            // No `<` means no end of the element before its own.
            if c == '<' || changes_direction(c) {
                let _ = write!(self.0, "\\u{:04x}", u32::from(c));
            } else {
                self.0.push(c);
            }
        }
        self.0.push_str("</script>");
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Our own style sheet or script, or a picture that was drawn here.
    pub fn trusted(&mut self, markup: &str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// The markup.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Our own markup with these in the place of `{{name}}`. What is put in is not looked at again, so it may
/// hold any text that is escaped. Line breaks and indentation of the template are for its readers.
pub fn fill_template(template: &str, with: &[(&str, &str)]) -> String {
    let lines: String = template.lines().map(str::trim_start).collect();
    let mut parts = lines.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or(("", part));
        let found = with.iter().find(|(known, _)| *known == name);
        out.extend([found.map_or("", |(_, value)| value), rest]);
    }
    out
}

/// Whether a character is acted on and not shown; all of these have four hexadecimal digits.
fn changes_direction(c: char) -> bool {
    u32::from(c) <= 0xffff && escape_control(c.encode_utf8(&mut [0; 4])).starts_with("\\u{")
}

/// Text with everything escaped that markup would act on.
pub fn escape_text(text: &str) -> String {
    let mut out = String::new();
    push_escaped(&mut out, text);
    out
}

/// Appends the same.
pub fn push_escaped(out: &mut String, text: &str) {
    for c in escape_control(text).chars() {
        push_char(out, c);
    }
}

/// Appends text with nothing changed but what would end it; no page can hold a NUL.
fn push_escaped_typed(out: &mut String, text: &str) {
    for c in text.chars().filter(|c| *c != '\0') {
        push_char(out, c);
    }
}

fn push_char(out: &mut String, c: char) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let hostile = "</script><img src=x onerror=alert(1)>\"'&\u{202e}";
        let html = Html::from_fn(|html| {
            html.text_element("p", &[("title", hostile)], hostile);
            html.script_data("d", &[hostile]);
        });
        let page = html.into_string();
        assert!(!page.contains("<img") && !page.contains('\u{202e}'), "{page}");
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
        let attribute = page.split("title=\"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(attribute.map(|value| value.contains("&quot;&#39;&amp;")), Some(true));
    }

    #[test]
    fn what_was_typed_is_kept_and_is_no_markup() {
        let typed = "a\tb\u{200f}\0\"'&<i>";
        let html = Html::from_fn(|html| {
            html.typed(typed).field("tags", typed);
        });
        let kept = "a\tb\u{200f}&quot;&#39;&amp;&lt;i&gt;";
        let field = format!("{kept}<input type=\"text\" name=\"tags\" value=\"{kept}\">");
        assert_eq!(html.into_string(), field);
    }
}
