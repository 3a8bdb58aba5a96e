//! Words of others inside texts that programs read.

use std::fmt::Write;

/// A word for a POSIX shell.
pub(super) fn quote_shell(word: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_bare) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A string of YAML, in double quotes. All but printable ASCII is escaped, so that nothing depends
/// on a reader's idea of what may stand there.
pub(super) fn quote_yaml(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    text.chars().for_each(|c| push_yaml_char(&mut out, c));
    out.push('"');
    out
}

/// The same for a text of several lines, each on a line of its own after `indent` blanks.
pub(super) fn quote_yaml_lines(text: &str, indent: usize) -> String {
    let mut out = "\"\\\n".to_owned();
    for line in text.split_inclusive('\n') {
        out.extend(std::iter::repeat_n(' ', indent));
        // Blanks at the beginning would be taken for indentation.
        let mut chars = line.chars();
        match chars.next() {
            Some(' ') => out.push_str("\\x20"),
            Some(first) => push_yaml_char(&mut out, first),
            None => {}
        }
        chars.for_each(|c| push_yaml_char(&mut out, c));
        out.push_str("\\\n");
    }
    out.extend(std::iter::repeat_n(' ', indent));
    out.push('"');
    out
}

fn push_yaml_char(out: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = match (c, u32::from(c)) {
        ('"' | '\\', _) => write!(out, "\\{c}"),
        ('\n', _) => write!(out, "\\n"),
        (' '..='~', _) => write!(out, "{c}"),
        (_, code @ 0..=0xff) => write!(out, "\\x{code:02x}"),
        (_, code @ 0x100..=0xffff) => write!(out, "\\u{code:04x}"),
        (_, code) => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a string in double quotes as YAML 1.2 says, 7.3.1 and 5.7: our own reading, to try the
    /// writer. A parser reads the whole manifests in integrations/kubernetes/validate.sh.
    fn read(text: &str) -> Option<String> {
        let inner = text.strip_prefix('"')?.strip_suffix('"')?;
        let mut out = String::new();
        let mut chars = inner.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' | '\n' => return None,
                '\\' => {
                    let digits = match chars.next()? {
                        'n' => {
                            out.push('\n');
                            continue;
                        }
                        '\n' => {
                            while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
                            continue;
                        }
                        c @ ('"' | '\\') => {
                            out.push(c);
                            continue;
                        }
                        'x' => 2,
                        'u' => 4,
                        'U' => 8,
                        _ => return None,
                    };
                    let code: String = chars.by_ref().take(digits).collect();
                    out.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
                }
                ' '..='~' => out.push(c),
                _ => return None,
            }
        }
        Some(out)
    }

    #[test]
    fn hostile_words_stay_words() {
        assert_eq!(quote_yaml("a\"\nb: c\\"), r#""a\"\nb: c\\""#);
        assert_eq!(quote_yaml("\u{85}\u{2028}\u{1f600}\u{7f}"), r#""\x85\u2028\U0001f600\x7f""#);
        assert_eq!(quote_shell("a b"), "'a b'");
        assert_eq!(quote_shell("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(quote_shell(""), "''");
        assert_eq!(quote_shell("http://h:8000/v1"), "http://h:8000/v1");
        assert_eq!(quote_shell("~x"), "'~x'");
    }

    proptest! {
        #[test]
        fn yaml_reads_what_was_written(text in prop_oneof!["(?s).{0,40}", "[ \n\ta\"\\\\:#-]{0,12}"]) {
            prop_assert_eq!(read(&quote_yaml(&text)), Some(text.clone()));
            prop_assert_eq!(read(&quote_yaml_lines(&text, 4)), Some(text));
        }

        #[test]
        fn a_shell_reads_what_was_written(text in "[^\0]{0,20}") {
            let script = format!("printf %s {}", quote_shell(&text));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            prop_assert_eq!(out.stdout, text.as_bytes());
        }
    }
}
