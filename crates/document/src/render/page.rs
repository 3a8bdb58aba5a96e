//! The frame of every page: head, style, what stands above and below, script.

use base64::Engine;
use sha2::{Digest, Sha256};

use crate::markup::{Html, escape_text, fill_template};

/// The style of all pages.
pub const STYLE: &str =
    concat!(include_str!("page.css"), include_str!("explorer.css"), include_str!("compare.css"));
/// The script of all pages: light and dark by hand.
pub const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("explorer.js"));

/// A whole page.
pub struct Page<'a> {
    /// Of the window, and above all else.
    pub title: &'a str,
    /// A line below: what, when, by which version.
    pub about: &'a str,
    /// Ids and names of its sections.
    pub sections: &'a [(&'static str, &'static str)],
    /// Everything between head and foot.
    pub body: Html,
}

impl Page<'_> {
    /// The page as a file.
    pub fn into_string(self) -> String {
        let about = Html::from_fn(|html| {
            if !self.about.is_empty() {
                html.text_element("p", &[("class", "about")], self.about);
            }
        });
        let nav = Html::from_fn(|html| self.write_nav(html));
        let page = fill_template(
            include_str!("page.html"),
            &[
                // Only our own script runs, and nothing is fetched from anywhere.
                ("policy", &escape_text(&content_security_policy())),
                ("title", &escape_text(self.title)),
                ("about", &about.into_string()),
                ("nav", &nav.into_string()),
                ("body", &self.body.into_string()),
                ("style", STYLE),
                ("script", SCRIPT),
            ],
        );
        format!("<!doctype html>\n{page}\n")
    }

    fn write_nav(&self, html: &mut Html) {
        if self.sections.is_empty() {
            return;
        }
        html.element("nav", &[("aria-label", "Sections")], |html| {
            html.element("div", &[], |html| {
                for (id, name) in self.sections {
                    html.text_element("a", &[("href", &format!("#{id}"))], name);
                }
            });
        });
    }
}

/// What a page may do: run its own script, and nothing else.
pub fn content_security_policy() -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'"
    )
}
