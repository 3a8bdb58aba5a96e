//! The frame of every page: head, style, what stands above and below, script.

use base64::Engine;
use sha2::{Digest, Sha256};

use crate::markup::Html;

/// The style of all pages.
pub const STYLE: &str =
    concat!(include_str!("page.css"), include_str!("explorer.css"), include_str!("compare.css"));
/// The script of all pages: light and dark by hand.
pub const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("explorer.js"));

/// A whole page.
pub(crate) struct Page<'a> {
    /// Of the window, and above all else.
    pub(crate) title: &'a str,
    /// A line below: what, when, by which version.
    pub(crate) about: &'a str,
    /// Ids and names of its sections.
    pub(crate) sections: &'a [(&'static str, &'static str)],
    pub(crate) body: Html,
}

impl Page<'_> {
    pub(crate) fn into_string(self) -> String {
        let mut html = Html::default();
        html.ours("<!doctype html>\n<html lang=\"en\">");
        html.element("head", &[], |html| {
            html.open("meta", &[("charset", "utf-8")]);
            // Only our own script runs, and nothing is fetched from anywhere.
            html.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy())]);
            html.open(
                "meta",
                &[("name", "viewport"), ("content", "width=device-width,initial-scale=1")],
            );
            html.open("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            html.leaf("title", &[], self.title);
            html.ours("<style>").ours(STYLE).ours("</style>");
        });
        html.element("body", &[], |html| {
            html.leaf("a", &[("class", "skip"), ("href", "#main")], "To the content");
            html.element("header", &[], |html| {
                html.element("div", &[("class", "brand")], |html| {
                    html.text("goodput");
                    html.leaf(
                        "button",
                        &[("id", "theme"), ("type", "button"), ("hidden", "")],
                        "Dark",
                    );
                });
                html.leaf("h1", &[], self.title);
                if !self.about.is_empty() {
                    html.leaf("p", &[("class", "about")], self.about);
                }
            });
            self.nav(html);
            html.element("main", &[("id", "main")], |html| {
                html.add(&self.body);
            });
            html.ours("<script>").ours(SCRIPT).ours("</script>");
        });
        html.ours("</html>\n");
        html.into_string()
    }

    fn nav(&self, html: &mut Html) {
        if self.sections.is_empty() {
            return;
        }
        html.element("nav", &[("aria-label", "Sections")], |html| {
            html.element("div", &[], |html| {
                for (id, name) in self.sections {
                    html.leaf("a", &[("href", &format!("#{id}"))], name);
                }
            });
        });
    }
}

/// What a page may do: run its own script, and nothing else.
pub fn policy() -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'"
    )
}
