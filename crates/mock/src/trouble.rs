//! What may be wrong with `/metrics`, for those who read it.

use std::str::FromStr;

use goodput_model::Nanos;

use crate::faults::value;

/// One thing that is wrong with every page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageTrouble {
    /// Nothing.
    #[default]
    None,
    /// There is none: 404.
    Off,
    /// It comes so much later.
    Slow(Nanos),
    /// It is padded to this many bytes.
    Huge(u32),
    /// Bytes that are not metrics.
    Garbage,
    /// A web page with status 200.
    Html,
    /// So long after the start all totals begin again, once.
    Reset(Nanos),
}

/// The forms of all of them.
const FORMS: &str = "off, slow:TIME, huge:SIZE, garbage, html, reset:TIME";

impl FromStr for PageTrouble {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("off", "") => Ok(Self::Off),
            ("garbage", "") => Ok(Self::Garbage),
            ("html", "") => Ok(Self::Html),
            ("slow", time) => value::parse_positive_time(time).map(Self::Slow),
            ("reset", time) => value::parse_positive_time(time).map(Self::Reset),
            ("huge", size) => value::parse_size(size).map(Self::Huge),
            _ => Err(format!("expected one of {FORMS}")),
        }
    }
}

/// A page that cannot be parsed, with some lines that look valid.
const GARBAGE: &str =
    "\u{1}\u{2}{{{\nvllm:num_requests_running{engine=\"0\nNaN NaN NaN NaN\n= 1\n{} 7\n";

const HTML: &str = "<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>\n";

impl PageTrouble {
    /// The content type and the page, in place of a good one.
    pub(crate) fn apply(self, kind: &'static str, page: Vec<u8>) -> (&'static str, Vec<u8>) {
        match self {
            Self::Garbage => (kind, GARBAGE.as_bytes().to_vec()),
            Self::Html => ("text/html", HTML.as_bytes().to_vec()),
            Self::Huge(size) => (kind, pad_page(page, size as usize)),
            Self::None | Self::Off | Self::Slow(_) | Self::Reset(_) => (kind, page),
        }
    }
}

/// With comments behind it, each on a line of its own.
fn pad_page(mut page: Vec<u8>, size: usize) -> Vec<u8> {
    const LINE: &[u8] = b"# all work and no play makes a page dull, and it goes on and on and on\n";
    let rest = size.saturating_sub(page.len());
    page.reserve_exact(rest);
    page.extend(LINE.repeat(rest / LINE.len()));
    page.resize(size.max(page.len()), b'\n');
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_read_and_spoil_the_page() {
        let second = Nanos::from_millis(1_000);
        for (text, expected) in [
            ("off", PageTrouble::Off),
            ("slow:1s", PageTrouble::Slow(second)),
            ("huge:1MB", PageTrouble::Huge(1_000_000)),
            ("garbage", PageTrouble::Garbage),
            ("html", PageTrouble::Html),
            ("reset:1s", PageTrouble::Reset(second)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for text in ["slow", "slow:0s", "huge:", "garbage:1", "nope"] {
            assert!(text.parse::<PageTrouble>().is_err(), "{text}");
        }
        let (_, huge) = PageTrouble::Huge(1_000).apply("text/plain", b"up 1\n".to_vec());
        assert!(huge.starts_with(b"up 1\n# all work") && huge.ends_with(b"\n"));
        assert_eq!(huge.len(), 1_000);
        assert_eq!(PageTrouble::Html.apply("text/plain", Vec::new()).0, "text/html");
    }
}
