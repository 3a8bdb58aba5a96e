//! Keeping secrets out of everything that is written: servers like to quote a key they refuse.

use goodput_model::REDACTED;

/// The values that must never leave the process except in a request.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Values shorter than this are no secrets, and replacing them would garble messages.
    const SHORTEST: usize = 6;

    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<_> =
            values.into_iter().filter(|value| value.len() >= Self::SHORTEST).collect();
        // A secret that contains another goes first, or its rest would stay.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// `text` without any of the secrets.
    pub(crate) fn scrub(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }
}

/// Never shows the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_scrubbed_and_never_shown() {
        let secrets = Secrets::new(["sk-verysecret".to_owned(), "x".to_owned()]);
        let text = secrets.scrub("bad key sk-verysecret, next".to_owned());
        assert_eq!(text, "bad key [redacted], next");
        assert!(!format!("{secrets:?}").contains("very"));
    }
}
