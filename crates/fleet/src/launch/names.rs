//! Names that schedulers take.

/// A name that every engine takes: a label of DNS, with room for a rank behind it.
pub fn job_name(text: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=50).contains(&text.len())
        && text.bytes().all(is_fit)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-');
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("a name has at most 50 lowercase letters, digits and hyphens, and starts with a letter"
            .to_owned())
    }
}

/// A name of a Kubernetes object.
pub fn object_name(text: &str) -> Result<String, String> {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_fit = |byte: &u8| is_edge(byte) || matches!(byte, b'-' | b'.');
    let bytes = text.as_bytes();
    let has_edges = bytes.first().is_some_and(is_edge) && bytes.last().is_some_and(is_edge);
    if has_edges && bytes.len() <= 253 && bytes.iter().all(is_fit) {
        Ok(text.to_owned())
    } else {
        Err("an object's name has lowercase letters, digits, hyphens and dots".to_owned())
    }
}

/// `NAME` or `NAME/KEY` of a Secret.
pub fn secret_key(text: &str) -> Result<String, String> {
    let (name, key) = text.split_once('/').unwrap_or((text, "api-key"));
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    object_name(name)?;
    if (1..=253).contains(&key.len()) && key.bytes().all(is_fit) {
        Ok(format!("{name}/{key}"))
    } else {
        Err("a key of a Secret has letters, digits, hyphens, dots and underscores".to_owned())
    }
}
