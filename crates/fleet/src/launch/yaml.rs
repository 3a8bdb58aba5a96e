//! A tree as YAML: every string is quoted, so that none can be read as anything else.

use serde_json::Value;

use super::quote;

/// Documents, one after the other.
pub(super) fn write_documents(trees: &[Value]) -> String {
    let mut out = String::new();
    for tree in trees {
        out.push_str("---\n");
        write_tree(&mut out, tree, 0);
    }
    out
}

/// Writes a map or a list, each entry on a line, or a lone value.
fn write_tree(out: &mut String, tree: &Value, indent: usize) {
    match tree {
        Value::Object(map) => {
            for (key, value) in map {
                push_indent(out, indent);
                write_entry(out, key, value, indent);
            }
        }
        Value::Array(list) => {
            for value in list {
                push_indent(out, indent);
                out.push_str("- ");
                write_item(out, value, indent + 2);
            }
        }
        value => {
            out.push_str(&scalar_text(value, indent));
            out.push('\n');
        }
    }
}

fn write_entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    out.push_str(&key_text(key));
    out.push(':');
    if is_tree(value) {
        out.push('\n');
        write_tree(out, value, indent + 2);
    } else {
        out.push(' ');
        out.push_str(&scalar_text(value, indent + 2));
        out.push('\n');
    }
}

/// An item of a list; the first entry of a map stands next to the hyphen.
fn write_item(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    push_indent(out, indent);
                }
                write_entry(out, key, value, indent);
            }
        }
        value => {
            out.push_str(&scalar_text(value, indent));
            out.push('\n');
        }
    }
}

fn is_tree(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }
}

/// What stands on one line; a text of several lines is continued after `indent` blanks. A list
/// within a list, which no manifest has, is written as JSON, which is YAML too.
fn scalar_text(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) if text.contains('\n') => quote::quote_yaml_lines(text, indent),
        Value::String(text) => quote::quote_yaml(text),
        other => other.to_string(),
    }
}

fn key_text(key: &str) -> String {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let is_bare = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.bytes().all(is_fit);
    // Words that older readers take for a truth value.
    let is_word = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
        .contains(&key.to_ascii_lowercase().as_str());
    if is_bare && !is_word { key.to_owned() } else { quote::quote_yaml(key) }
}

fn push_indent(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_is_written_with_every_string_quoted() {
        let tree = json!({
            "kind": "no",
            "count": 3,
            "none": {},
            "no": true,
            "list": [{"name": "a: b", "more": {"x": 1}}, "- c", []],
            "text": "one\n  two\n",
        });
        let expected = r#"---
count: 3
kind: "no"
list:
  - more:
      x: 1
    name: "a: b"
  - "- c"
  - []
"no": true
none: {}
text: "\
  one\n\
  \x20 two\n\
  "
"#;
        assert_eq!(write_documents(&[tree]), expected);
    }
}
