//! What stands around every page of the view, and the files that go with them.

use goodput_document::markup::Html;

/// Style of these pages.
pub(crate) const VIEW_STYLE: &str = include_str!("ui.css");
/// What moves in them.
pub(crate) const VIEW_SCRIPT: &str = include_str!("ui.js");

/// A page, with nothing in it that a strict policy would forbid.
pub(super) fn wrap_page(title: &str, about: &str, body: &Html) -> String {
    let mut html = Html::default();
    html.trusted("<!doctype html>\n<html lang=\"en\">");
    html.element("head", &[], |html| {
        html.open("meta", &[("charset", "utf-8")]);
        let view = [("name", "viewport"), ("content", "width=device-width,initial-scale=1")];
        html.open("meta", &view);
        html.open("meta", &[("name", "color-scheme"), ("content", "light dark")]);
        html.text_element("title", &[], &format!("{title} · goodput"));
        for style in ["/page.css", "/ui.css"] {
            html.open("link", &[("rel", "stylesheet"), ("href", style)]);
        }
        html.open("link", &[("rel", "icon"), ("href", "data:,")]);
        for script in ["/page.js", "/ui.js"] {
            html.text_element("script", &[("src", script), ("defer", "")], "");
        }
    });
    html.element("body", &[("class", "ui")], |html| {
        html.text_element("a", &[("class", "skip"), ("href", "#main")], "Skip to content");
        html.element("header", &[], |html| {
            html.element("div", &[("class", "brand")], |html| {
                html.text_element("a", &[("href", "/")], "goodput");
                let button = [("id", "theme"), ("type", "button"), ("hidden", "")];
                html.text_element("button", &button, "Dark");
            });
            html.text_element("h1", &[], title);
            html.text_element("p", &[("class", "about")], about);
        });
        html.element("main", &[("id", "main")], |html| {
            html.add(body);
        });
    });
    html.trusted("</html>\n");
    html.into_string()
}

/// A page that only says something.
pub(crate) fn message_page(title: &str, message: &str) -> String {
    let body = Html::from_fn(|html| {
        html.text_element("p", &[], message);
        html.element("p", &[], |html| {
            html.text_element("a", &[("href", "/")], "All results");
        });
    });
    wrap_page(title, "", &body)
}

/// The page for who has no token.
pub(crate) fn token_page() -> String {
    let body = Html::from_fn(|html| {
        let words = "This page needs the token that `goodput ui` printed or that is in its \
                     --token-file. Open the address that it printed, or enter the token here.";
        html.text_element("p", &[], words);
        html.element("form", &[("method", "get"), ("action", "/"), ("class", "find")], |html| {
            html.element("label", &[], |html| {
                html.text("Token ");
                let input = [("type", "password"), ("name", "token"), ("autocomplete", "off")];
                html.open("input", &input);
            });
            html.text_element("button", &[("type", "submit")], "Enter");
        });
    });
    wrap_page("Token needed", "", &body)
}
