//! JSON schemas.

use std::sync::Arc;

use serde_json::Value;

use crate::WorkloadError;

/// A schema that values are checked against.
#[derive(Debug, Clone)]
pub(super) struct Schema(Arc<jsonschema::Validator>);

impl Schema {
    /// Fails where the schema itself is wrong.
    pub(super) fn compile(
        schema: &Value,
        wrong: impl Fn(&str) -> WorkloadError,
    ) -> Result<Self, WorkloadError> {
        let validator = jsonschema::validator_for(schema);
        Ok(Self(Arc::new(validator.map_err(|error| wrong(&error.to_string()))?)))
    }

    /// Whether the value keeps to the schema.
    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }
}
