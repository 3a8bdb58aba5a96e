//! What stands around every page of the view, and the files that go with them.

use goodput_document::markup::Html;

/// Style of these pages.
pub(crate) const VIEW_STYLE: &str = include_str!("ui.css");
/// What moves in them.
pub(crate) const VIEW_SCRIPT: &str = include_str!("ui.js");

/// A page, with nothing in it that a strict policy would forbid.
pub(super) fn frame(title: &str, about: &str, body: &Html) -> String {
    let mut html = Html::default();
    html.ours("<!doctype html>\n<html lang=\"en\">");
    html.element("head", &[], |html| {
        html.open("meta", &[("charset", "utf-8")]);
        let view = [("name", "viewport"), ("content", "width=device-width,initial-scale=1")];
        html.open("meta", &view);
        html.open("meta", &[("name", "color-scheme"), ("content", "light dark")]);
        html.leaf("title", &[], &format!("{title} · goodput"));
        for style in ["/page.css", "/ui.css"] {
            html.open("link", &[("rel", "stylesheet"), ("href", style)]);
        }
        html.open("link", &[("rel", "icon"), ("href", "data:,")]);
        for script in ["/page.js", "/ui.js"] {
            html.leaf("script", &[("src", script), ("defer", "")], "");
        }
    });
    html.element("body", &[("class", "ui")], |html| {
        html.leaf("a", &[("class", "skip"), ("href", "#main")], "Skip to content");
        html.element("header", &[], |html| {
            html.element("div", &[("class", "brand")], |html| {
                html.leaf("a", &[("href", "/")], "goodput");
                let button = [("id", "theme"), ("type", "button"), ("hidden", "")];
                html.leaf("button", &button, "Dark");
            });
            html.leaf("h1", &[], title);
            html.leaf("p", &[("class", "about")], about);
        });
        html.element("main", &[("id", "main")], |html| {
            html.add(body);
        });
    });
    html.ours("</html>\n");
    html.into_string()
}

/// A page that only says something.
pub(crate) fn message_page(title: &str, message: &str) -> String {
    let body = Html::from_fn(|html| {
        html.leaf("p", &[], message);
        html.element("p", &[], |html| {
            html.leaf("a", &[("href", "/")], "All results");
        });
    });
    frame(title, "", &body)
}

/// The page for who has no token.
pub(crate) fn token_page() -> String {
    let body = Html::from_fn(|html| {
        let words = "This page needs the token that `goodput ui` printed or that is in its \
                     --token-file. Open the address that it printed, or enter the token here.";
        html.leaf("p", &[], words);
        html.element("form", &[("method", "get"), ("action", "/"), ("class", "find")], |html| {
            html.element("label", &[], |html| {
                html.text("Token ");
                let input = [("type", "password"), ("name", "token"), ("autocomplete", "off")];
                html.open("input", &input);
            });
            html.leaf("button", &[("type", "submit")], "Enter");
        });
    });
    frame("Token needed", "", &body)
}
