//! Texts and trees with `@name@` in the place of values.

use serde_json::{Map, Value};

/// Puts values in once, from left to right: what looks like a name inside a value stays as it is.
pub(super) fn fill_template(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let found = after.split_once('@').and_then(|(name, after)| Some((value(name)?, after)));
        if let Some((value, after)) = found {
            out.push_str(&value);
            rest = after;
        } else {
            out.push('@');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// The same in the strings of a tree. A string that is one name becomes the value as it is; members
/// whose value is null are left out, and so are items of lists with `@if` (or `@unless`) a name
/// whose value is (or is not) null.
pub(super) fn fill_tree(tree: &Value, values: &Map<String, Value>) -> Value {
    let value = |name: &str| values.get(name).unwrap_or(&Value::Null);
    match tree {
        Value::String(text) => match whole_placeholder(text) {
            Some(name) => value(name).clone(),
            None => Value::String(fill_template(text, |name| match values.get(name)? {
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            })),
        },
        Value::Array(items) => {
            let is_wanted = |item: &&Value| {
                let set = |condition| item[condition].as_str().map(|name| !value(name).is_null());
                set("@if") != Some(false) && set("@unless") != Some(true)
            };
            items.iter().filter(is_wanted).map(|item| fill_tree(item, values)).collect()
        }
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !name.starts_with('@'))
            .map(|(name, member)| (name.clone(), fill_tree(member, values)))
            .filter(|(_, member)| !member.is_null())
            .collect(),
        other => other.clone(),
    }
}

/// The name, where the text is nothing but one.
fn whole_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('@')?.strip_suffix('@')?;
    (!name.is_empty() && !name.contains('@')).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_put_in_once() {
        let value = |name: &str| (name == "a").then(|| "@b@ @a@".to_owned());
        assert_eq!(fill_template("x@a@y @b@ me@host @a@", value), "x@b@ @a@y @b@ me@host @b@ @a@");
    }

    #[test]
    fn trees_keep_what_was_asked_for() {
        let tree = json!({
            "n": "@n@", "text": "@n@ of @s@", "none": "@none@",
            "list": [{"@if": "none", "a": 1}, {"@unless": "none", "b": "@s@"}, "@s@"],
        });
        let Value::Object(values) = json!({"n": 3, "s": "@n@\"", "none": null}) else { panic!() };
        let filled = json!({"n": 3, "text": "3 of @n@\"", "list": [{"b": "@n@\""}, "@n@\""]});
        assert_eq!(fill_tree(&tree, &values), filled);
    }
}
