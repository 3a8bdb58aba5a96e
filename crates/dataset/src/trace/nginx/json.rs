//! Formats that write JSON objects: their values are found by name, as those who pass logs on may
//! put them into another order.

use serde_json::{Map, Value};

use super::template::{Template, parse_variable};

/// Where the variables of a format stand in an object.
pub(super) struct FieldPaths(Vec<(Vec<String>, Template)>);

impl FieldPaths {
    /// The shape of a format; none if it writes no object.
    pub(super) fn parse(format: &str) -> Option<Self> {
        let Ok(Value::Object(object)) = serde_json::from_str(&quote_variables(format)?) else {
            return None;
        };
        let mut leaves = Vec::new();
        collect_leaves(&object, &mut Vec::new(), &mut leaves);
        Some(Self(leaves))
    }

    /// Variables and their values in a line; `None` where it is not an object.
    pub(super) fn values(&self, line: &str) -> Option<Vec<(String, String)>> {
        let line: Map<String, Value> = serde_json::from_str(line).ok()?;
        let mut found = Vec::with_capacity(self.0.len());
        for (path, template) in &self.0 {
            let Some(value) = value_at_path(&line, path) else { continue };
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            let values = template.values(&text).into_iter().flatten();
            found.extend(values.map(|(name, value)| (name.to_owned(), value.into_owned())));
        }
        Some(found)
    }
}

fn value_at_path<'a>(object: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = object.get(first)?;
    if rest.is_empty() { Some(value) } else { value_at_path(value.as_object()?, rest) }
}

/// The texts of an object with variables in them, with where they stand.
fn collect_leaves(
    object: &Map<String, Value>,
    path: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, Template)>,
) {
    for (name, value) in object {
        path.push(name.clone());
        match value {
            Value::Object(inner) => collect_leaves(inner, path, leaves),
            Value::String(text) => {
                let template = Template::from_format(text, false).ok();
                leaves.extend(template.map(|template| (path.clone(), template)));
            }
            _ => {}
        }
        path.pop();
    }
}

/// The format with quotes around variables that have none.
fn quote_variables(format: &str) -> Option<String> {
    let mut text = String::with_capacity(format.len() + 16);
    let (mut rest, mut in_text) = (format, false);
    while let Some((before, behind)) =
        rest.find(['"', '$']).and_then(|at| rest.split_at_checked(at))
    {
        text.push_str(before);
        rest = if let Some(named) = behind.strip_prefix('$') {
            let (name, behind) = parse_variable(named).ok()?;
            let quote = if in_text { "" } else { "\"" };
            text.extend([quote, "${", name, "}", quote]);
            behind
        } else {
            in_text = !in_text;
            text.push('"');
            behind.get(1..)?
        };
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_any_order() {
        let format = r#"{"t":$msec,"r":{"what":"$request_method $uri","s":"$status"},"n":1,"e":${bytes_sent}}"#;
        let shape = FieldPaths::parse(format).unwrap();
        let line = r#"{"r":{"s":"200","x":[1],"what":"POST /v1/a b\"c"},"t":12.5}"#;
        let mut values = shape.values(line).unwrap();
        values.sort();
        let expected = [
            ("msec", "12.5"),
            ("request_method", "POST"),
            ("status", "200"),
            ("uri", "/v1/a b\"c"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(values, expected);
        assert_eq!(shape.values("{\"t\":}"), None);
        assert_eq!(shape.values("{}"), Some(Vec::new()));
        assert!(FieldPaths::parse("$a $b").is_none() && FieldPaths::parse("{$a").is_none());
    }
}
