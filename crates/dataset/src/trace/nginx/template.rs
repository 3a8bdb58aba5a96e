//! nginx's `log_format`: text with variables in it, and lines that were written by it.

use std::borrow::Cow;

/// What nginx writes where nothing is said.
pub(super) const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                                   $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// The most variables that a format is taken to have.
const MOST: usize = 200;

/// A format that can be read back.
#[derive(Debug, PartialEq)]
pub(super) struct Template {
    /// What stands before the first variable.
    head: String,
    /// Variables, each with what stands behind it.
    parts: Vec<(String, String)>,
    is_escaped: bool,
}

impl Template {
    /// The format as it stands between quotes, or the whole directive `log_format NAME …;`.
    pub(super) fn parse(text: &str) -> Result<(Self, String), String> {
        let (format, is_escaped) = unquote_directive(text)?;
        Ok((Self::from_format(&format, is_escaped)?, format))
    }

    /// A format without quotes around it.
    pub(super) fn from_format(format: &str, is_escaped: bool) -> Result<Self, String> {
        let mut template = Self { head: String::new(), parts: Vec::new(), is_escaped };
        let mut rest = format;
        while let Some((before, behind)) = rest.split_once('$') {
            let (name, behind) = parse_variable(behind)?;
            template.push_text(before);
            if template.parts.last().is_some_and(|(_, text)| text.is_empty()) {
                return Err(format!("nothing separates `${name}` from the variable before it"));
            }
            template.parts.push((name.to_owned(), String::new()));
            rest = behind;
        }
        template.push_text(rest);
        match template.parts.len() {
            0 => Err("no variable in it".to_owned()),
            1..=MOST => Ok(template),
            _ => Err(format!("more than {MOST} variables in it")),
        }
    }

    fn push_text(&mut self, text: &str) {
        self.parts.last_mut().map_or(&mut self.head, |(_, behind)| behind).push_str(text);
    }

    /// Whether a variable is in it.
    pub(super) fn has_variable(&self, name: &str) -> bool {
        self.parts.iter().any(|(variable, _)| variable == name)
    }

    /// Variables and their values in a line; none if it was not written by this format.
    pub(super) fn values<'a>(&'a self, line: &'a str) -> Option<Vec<(&'a str, Cow<'a, str>)>> {
        let mut rest = line.strip_prefix(self.head.as_str())?;
        let mut found = Vec::with_capacity(self.parts.len());
        for (place, (name, behind)) in self.parts.iter().enumerate() {
            let is_last = place + 1 == self.parts.len();
            let value = if is_last {
                rest.strip_suffix(behind.as_str())?
            } else {
                rest.get(..self.value_end(rest, name, behind)?)?
            };
            rest = rest.get(value.len() + behind.len()..)?;
            let value = if self.is_escaped { unescape_value(value) } else { Cow::Borrowed(value) };
            found.push((name.as_str(), value));
        }
        Some(found)
    }

    /// Where the value of a variable ends that has this text behind it: not at a quote that is part
    /// of the value, and not within a list of upstreams (`0.1, 0.2 : 0.3`).
    fn value_end(&self, rest: &str, name: &str, behind: &str) -> Option<usize> {
        let is_list = name.starts_with("upstream_") && behind.starts_with(' ');
        let is_quoted = self.is_escaped && behind.starts_with('"');
        let mut from = 0;
        loop {
            let at = from + memchr::memmem::find(rest.as_bytes().get(from..)?, behind.as_bytes())?;
            let (before, after) = rest.split_at_checked(at)?;
            let slashes = before.bytes().rev().take_while(|byte| *byte == b'\\').count();
            let is_within = before.ends_with([',', ':']) || after.starts_with(" : ");
            let goes_on = (is_quoted && slashes % 2 == 1) || (is_list && is_within);
            if !goes_on {
                return Some(at);
            }
            from = at + 1;
        }
    }
}

/// The name of a variable behind its `$`, and what stands behind that.
pub(super) fn parse_variable(text: &str) -> Result<(&str, &str), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, rest) = match text.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or("`${` without `}`")?,
        None => text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len())),
    };
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("`$` without the name of a variable".to_owned());
    }
    Ok((name, rest))
}

/// The format of a directive: its quoted parts together, and whether values are escaped.
fn unquote_directive(text: &str) -> Result<(String, bool), String> {
    let mut rest = text.trim();
    if let Some(behind) =
        rest.strip_prefix("log_format").filter(|rest| rest.starts_with([' ', '\t', '\n']))
    {
        let behind = behind.trim_start();
        let (_, parts) =
            behind.split_once(char::is_whitespace).ok_or("`log_format` without a format")?;
        rest = parts.trim_start();
    }
    let mut is_escaped = true;
    if let Some(behind) = rest.strip_prefix("escape=") {
        let (how, parts) =
            behind.split_once(char::is_whitespace).ok_or("`escape=` without a format")?;
        is_escaped = match how {
            "default" | "json" => true,
            "none" => false,
            _ => return Err("`escape=` must be default, json or none".to_owned()),
        };
        rest = parts.trim_start();
    }
    if !rest.starts_with('\'') {
        return Ok((rest.trim_end().to_owned(), is_escaped));
    }
    let mut format = String::new();
    loop {
        rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) else { break };
        rest = take_quoted(rest.get(1..).unwrap_or_default(), quote, &mut format)?;
    }
    match rest.trim() {
        "" | ";" => Ok((format, is_escaped)),
        _ => Err("text after the closing quote of the format".to_owned()),
    }
}

/// Takes what stands up to the closing quote; gives what stands behind it.
fn take_quoted<'a>(text: &'a str, quote: char, format: &mut String) -> Result<&'a str, String> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {
                if !matches!(c, '\'' | '"' | '\\') {
                    format.push('\\');
                }
                format.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            c if c == quote => return Ok(text.get(at + 1..).unwrap_or_default()),
            c => format.push(c),
        }
    }
    Err("a quote of the format is not closed".to_owned())
}

/// A value without its escapes: `\xHH`, `\"` and `\\`.
fn unescape_value(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        let escape = match (first, behind) {
            (b'\\', [b'x', high, low, ..]) => hex_byte(*high, *low).map(|byte| (byte, 3)),
            (b'\\', [c @ (b'"' | b'\\' | b'/'), ..]) => Some((*c, 1)),
            _ => None,
        };
        match escape {
            Some((byte, length)) => {
                bytes.push(byte);
                rest = rest.get(length..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(template: &'a Template, line: &'a str) -> Option<Vec<String>> {
        let values = template.values(line)?;
        Some(values.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap().0
    }

    #[test]
    fn a_line_of_the_combined_format() {
        let line = r#"192.0.2.7 - ann [16/Nov/2026:09:09:05 +0000] "POST /a\x22b\x5C HTTP/1.1" 200 17 "-" "curl/8""#;
        let values = read(&template(COMBINED), line).unwrap();
        let expected = [
            "remote_addr=192.0.2.7",
            "remote_user=ann",
            "time_local=16/Nov/2026:09:09:05 +0000",
            "request=POST /a\"b\\ HTTP/1.1",
            "status=200",
            "body_bytes_sent=17",
            "http_referer=-",
            "http_user_agent=curl/8",
        ];
        assert_eq!(values, expected);
        for wrong in
            ["", "x", "192.0.2.7 - ann [t] \"r\" 200 17 \"-\" \"curl", &line[1..line.len() - 1]]
        {
            assert_eq!(read(&template(COMBINED), wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_quote_within_a_value_does_not_end_it() {
        let json = template(r#"{"r":"$request","s":$status}"#);
        let line = r#"{"r":"GET /\",\"s\":9 \\","s":200}"#;
        assert_eq!(read(&json, line).unwrap(), [r#"request=GET /","s":9 \"#, "status=200"]);
        let quoted = template(r#""$request" $status"#);
        let line = r#""GET /\" 9" 200"#;
        assert_eq!(read(&quoted, line).unwrap(), [r#"request=GET /" 9"#, "status=200"]);
        let bare = template(r#"escape=none "$request" $status"#);
        assert_eq!(
            read(&bare, r#""GET /\x22" 200"#).unwrap(),
            [r"request=GET /\x22", "status=200"]
        );
    }

    #[test]
    fn a_directive_is_read_as_the_server_reads_it() {
        let directive = "log_format  main escape=json '$remote_addr [${time_local}] '\n  '\"$request\" it\\'s $status';";
        let (_, format) = Template::parse(directive).unwrap();
        assert_eq!(format, "$remote_addr [${time_local}] \"$request\" it's $status");
        assert_eq!(template(directive).head, "");
        assert!(template(directive).has_variable("time_local"));
        assert_eq!(template("escape=none $a $b"), Template::from_format("$a $b", false).unwrap());
        for (wrong, why) in [
            ("", "no variable"),
            ("x y", "no variable"),
            ("$a$b", "nothing separates"),
            ("$ x", "without the name"),
            ("${a", "without `}`"),
            ("log_format main", "without a format"),
            ("escape=xml $a", "must be default"),
            ("'$a", "not closed"),
            ("'$a' x", "after the closing quote"),
        ] {
            assert!(Template::parse(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }
}
