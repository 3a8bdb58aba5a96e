//! A build without JSON schemas: a constraint by one is an error that says so.

use goodput_model::{Feature, LeftOut};
use serde_json::Value;

use crate::WorkloadError;

/// The schema of a build that has none: it has no value.
#[derive(Debug, Clone)]
pub(super) enum Schema {}

impl Schema {
    /// Fails.
    pub(super) fn compile(
        _schema: &Value,
        _wrong: impl Fn(&str) -> WorkloadError,
    ) -> Result<Self, WorkloadError> {
        let message = format!("structured: {}", LeftOut(Feature::JsonSchema));
        Err(WorkloadError { message, hint: LeftOut::HINT.to_owned() })
    }

    /// Never called.
    pub(super) fn is_valid(&self, _value: &Value) -> bool {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_says_what_is_left_out() {
        let error = Schema::compile(&Value::Null, |what| WorkloadError::new(what, "")).unwrap_err();
        let expected = "structured: built without `json-schema`: \
                        this build cannot check answers against a JSON schema";
        assert_eq!(error.message, expected);
        assert_eq!(error.hint, LeftOut::HINT);
    }
}
