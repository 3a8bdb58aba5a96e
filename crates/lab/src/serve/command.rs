//! The command that starts a server: words as a shell reads them, and values put in their places.

use std::collections::{BTreeMap, BTreeSet};

use goodput_model::REDACTED;

use crate::error::Failed;

/// Names and what stands for them.
pub type Values = BTreeMap<String, String>;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub(super) words: Vec<String>,
}

impl Command {
    /// The names that stand in braces in a command.
    pub fn placeholder_names(text: &str) -> Result<BTreeSet<String>, Failed> {
        let mut names = BTreeSet::new();
        for word in split_words(text)? {
            fill_placeholders(&word, &mut |name| {
                names.insert(name.to_owned());
                Ok(String::new())
            })?;
        }
        Ok(names)
    }

    /// Splits `text` at blanks, with quotes and backslashes as in a shell, and puts values where
    /// `{name}` stands. Every one of `values` must have its place; those `offered` may have one.
    ///
    /// `{{name}}` stands for `{name}` itself, `${name}` is left to a shell, and braces around
    /// anything but a name (JSON) are left alone.
    pub fn parse(text: &str, values: &Values, offered: &Values) -> Result<Self, Failed> {
        let words = split_words(text)?;
        let mut used = BTreeSet::new();
        let mut filled = Vec::with_capacity(words.len());
        for word in &words {
            filled.push(fill_placeholders(word, &mut |name| {
                let value = values.get(name).or_else(|| offered.get(name));
                used.extend(value.is_some().then(|| name.to_owned()));
                value.cloned().ok_or_else(|| unknown_placeholder(name, values, offered))
            })?);
        }
        if let Some(unused) = values.keys().find(|name| !used.contains(*name)) {
            return Err(Failed::usage(format!("the server command does not use `{unused}`"))
                .hint(format!("write {{{unused}}} where its value belongs")));
        }
        Ok(Self { words: filled })
    }
}

/// The command as it may be written down: words that hold or follow a key, token, secret or password,
/// headers that say who asks, and URLs with a user are hidden, and all of it where its words cannot be
/// told apart.
pub fn without_secrets(text: &str) -> String {
    let Ok(words) = split_words(text) else { return REDACTED.to_owned() };
    let mut shown: Vec<String> = Vec::new();
    let (mut is_next, mut has_secret) = (false, false);
    for word in words {
        // A shell's own words stand inside one of ours.
        let mut parts = word.split(|c: char| c.is_whitespace() || "'\"`;&|()".contains(c));
        let holds = parts.any(holds_secret);
        let flags = word.split_whitespace().count() > 1
            && word.split_whitespace().any(|part| part.starts_with('-') && is_secret_name(part));
        let is_hidden = is_next || holds || flags;
        let is_flag = word.starts_with('-') && !word.contains('=');
        is_next =
            is_secret_name(&word) && (is_flag || word.ends_with(':') || is_auth_scheme(&word));
        has_secret |= is_hidden;
        shown.push(if is_hidden { REDACTED.to_owned() } else { word });
    }
    // Without a secret it stays as it was typed: its quotes are needed to read it again.
    if has_secret { shown.join(" ") } else { text.to_owned() }
}

/// Whether a word of a shell holds a secret: `TOKEN=…`, `X-Api-Key:…`, `Bearer …`, `http://user:…@host`.
fn holds_secret(part: &str) -> bool {
    let set = part.split_once('=').is_some_and(|(name, _)| is_secret_name(name));
    let header = part.split_once(':').is_some_and(|(name, _)| is_secret_name(name));
    let mut urls = part.split("://").skip(1);
    let has_user = urls.any(|url| url.split(['/', '?', '#']).any(|piece| piece.contains('@')));
    set || header || has_user || is_auth_scheme(part)
}

fn is_auth_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer")
}

/// Whether a flag or a variable has a secret for its value. `--max-num-batched-tokens` counts, and
/// hides nothing.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["key", "token", "secret", "password", "authorization", "bearer"];
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| words.contains(&part))
}

fn unknown_placeholder(name: &str, values: &Values, offered: &Values) -> Failed {
    let known: Vec<String> =
        values.keys().chain(offered.keys()).map(|known| format!("{{{known}}}")).collect();
    let known = if known.is_empty() {
        "no placeholder is known".to_owned()
    } else {
        known.join(", ") + " are the known placeholders"
    };
    Failed::usage(format!("`{{{name}}}` in the server command has no value")).hint(format!(
        "{known}; give it values with --vary {name}=…, or write {{{{{name}}}}} for literal braces"
    ))
}

/// Words as a shell splits them. Nothing else of a shell is known: no variables, pipes or patterns.
fn split_words(text: &str) -> Result<Vec<String>, Failed> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => read_quoted(c, &mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next() {
                // The line goes on.
                Some('\n') => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err(unclosed_error("ends in a backslash")),
            },
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => {}
        _ => return Err(unclosed_error("names no program")),
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err(unclosed_error("holds a NUL, which no argument can"));
    }
    Ok(words)
}

/// The rest of a quotation.
fn read_quoted(
    quote: char,
    chars: &mut impl Iterator<Item = char>,
    word: &mut String,
) -> Result<(), Failed> {
    let unclosed = || unclosed_error(&format!("has a {quote} that is not closed"));
    loop {
        match chars.next().ok_or_else(unclosed)? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match chars.next().ok_or_else(unclosed)? {
                '\n' => {}
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

fn unclosed_error(problem: &str) -> Failed {
    Failed::usage(format!("the server's command {problem}"))
        .hint("for example --serve 'vllm serve MODEL --port {port}'")
}

/// Puts values in their places.
fn fill_placeholders(
    word: &str,
    value: &mut dyn FnMut(&str) -> Result<String, Failed>,
) -> Result<String, Failed> {
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inner = from.strip_prefix('{').unwrap_or(from);
        let escaped =
            inner.strip_prefix('{').and_then(placeholder_name).filter(|(_, r)| r.starts_with('}'));
        rest = match (escaped, placeholder_name(inner)) {
            (Some((name, after)), _) => {
                out.extend(["{", name, "}"]);
                after.strip_prefix('}').unwrap_or(after)
            }
            (None, Some((name, after))) if !before.ends_with('$') => {
                out.push_str(&value(name)?);
                after
            }
            _ => {
                out.push('{');
                inner
            }
        };
    }
    out.push_str(rest);
    Ok(out)
}

/// The name before the next closing brace, and what follows that.
fn placeholder_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('}')?;
    let mut chars = name.chars();
    let is_first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_name = is_first && chars.all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    is_name.then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let offered = values(&[("port", "8123")]);
        Command::parse(text, &values(pairs), &offered)
            .map(|command| command.words)
            .map_err(|failed| format!("{failed:?}"))
    }

    #[test]
    fn secrets_are_not_written_down() {
        for text in [
            "s --api-key sk-1 --port 1",
            "s --api-key=sk-1 -p 1",
            "env HF_TOKEN=sk-1 s",
            "sh -c 'HF_TOKEN=sk-1 s --port {port}'",
            "sh -c 's --api-key sk-1'",
            "s \\\n--api-key sk-1",
            "s --api-key \\\n sk-1",
            "s --api-key \"a sk-1\"",
            "s\t--api-key\tsk-1",
            "s 'open sk-1",
            "curl -H 'Authorization: Bearer sk-1' http://h",
            "curl -H authorization:\\ Basic\\ sk-1 http://h",
            "curl -H Authorization: Bearer sk-1",
            "curl -H \"X-Api-Key: sk-1\" h",
            "curl -H X-Api-Key:sk-1 h",
            "sh -c 'curl http://u:sk-1@h:80/x'",
            "curl http://sk-1@h",
        ] {
            let hidden = without_secrets(text);
            assert!(!hidden.contains("sk-1") && hidden.contains(REDACTED), "{text}: {hidden}");
        }
        for plain in [
            "s --max-num-batched-tokens 8 --tokenizer 't u' --served-model-name {x}",
            "curl http://token.h:80/key -H 'Accept: text/plain'",
        ] {
            assert_eq!(without_secrets(plain), plain);
        }
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let cases: [(&str, &[&str]); 10] = [
            ("vllm serve  M\t--x 1\n", &["vllm", "serve", "M", "--x", "1"]),
            (r#"a 'b c' "d e""#, &["a", "b c", "d e"]),
            (r#"a b'c'"d"e "" ''"#, &["a", "bcde", "", ""]),
            (r"a\ b \'c\\", &["a b", "'c\\"]),
            ("a \\\n b", &["a", "b"]),
            (r#"a "q\"\\\$\`\n" 'q\"'"#, &["a", "q\"\\$`\\n", "q\\\""]),
            ("sh -c 'exec x > \"$LOG\" & wait'", &["sh", "-c", "exec x > \"$LOG\" & wait"]),
            ("é 'ß ü'", &["é", "ß ü"]),
            ("a#b # c", &["a#b", "#", "c"]),
            ("a \"b\\\nc\"", &["a", "bc"]),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text, &[]).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn values_have_their_places() {
        let pairs = [("x", "4096"), ("max-len", "two words")];
        let words = read("s --x={x} -m '{max-len}' {max-len} {x}{x} --port {port}", &pairs);
        let expected =
            ["s", "--x=4096", "-m", "two words", "two words", "40964096", "--port", "8123"];
        assert_eq!(words.unwrap(), expected);
        // A value is not parsed as text of the command: its quotes, blanks and braces stay.
        assert_eq!(read("s {x}", &[("x", "a 'b' {port}")]).unwrap(), ["s", "a 'b' {port}"]);
        // What may have a place need not have one.
        assert_eq!(read("s", &[]).unwrap(), ["s"]);
    }

    #[test]
    fn other_braces_are_left_alone() {
        for same in
            [r#"{"a":{"b":1}}"#, "{}", "${HOME}", "a{", "}", "{1}", "{{", "}}", "{a b}", "{{{{"]
        {
            assert_eq!(read(&format!("s '{same}'"), &[]).unwrap(), ["s", same]);
        }
        assert_eq!(read("s {{port}} {{x}}y", &[]).unwrap(), ["s", "{port}", "{x}y"]);
        assert_eq!(read("s '{\"n\":{port}}'", &[]).unwrap(), ["s", "{\"n\":8123}"]);
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("s {x} {y}", "`{y}` in the server command has no value"),
            ("s {y}", "{x}, {port} are the known placeholders"),
            ("s {port}", "does not use `x`"),
            ("s {{x}}", "does not use `x`"),
            ("", "names no program"),
            ("'' a", "names no program"),
            ("s 'a", "not closed"),
            ("s \\", "backslash"),
        ];
        for (text, expected) in cases {
            let error = read(text, &[("x", "1")]).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
