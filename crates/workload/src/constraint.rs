//! What answers must look like: built-in constraints, the user's own, and whether an answer keeps
//! to one.

#[cfg(all(test, feature = "json-schema"))]
#[allow(dead_code, unreachable_pub, reason = "a test looks at its error alone")]
mod no_schema;
#[cfg(feature = "json-schema")]
mod schema;
#[cfg(not(feature = "json-schema"))]
#[path = "constraint/no_schema.rs"]
mod schema;

use std::sync::Arc;

use goodput_model::{Constraint, ConstraintKind, StructuredPlan};
use regex::Regex;
use serde_json::Value;

use crate::WorkloadError;
use schema::Schema;

/// A support ticket: strings, a number, a choice, a list and an object in it.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 120},
    "category": {"type": "string", "enum": ["billing", "bug", "question", "other"]},
    "priority": {"type": "integer", "minimum": 1, "maximum": 5},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 5},
    "customer": {
      "type": "object",
      "properties": {"name": {"type": "string", "maxLength": 60}, "is_member": {"type": "boolean"}},
      "required": ["name", "is_member"],
      "additionalProperties": false
    }
  },
  "required": ["title", "category", "priority", "tags", "customer"],
  "additionalProperties": false
}"#;

/// A day and a time in UTC.
const EXPRESSION: &str = r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z";

const CHOICES: [&str; 4] = ["positive", "negative", "neutral", "mixed"];

/// Sums of whole numbers, in the notation that llama.cpp and XGrammar read.
const GRAMMAR: &str = r#"root ::= term (" + " term)*
term ::= number | "(" root ")"
number ::= [1-9] [0-9]*
"#;

/// The constraint of a plan: the user's text, checked, or a built-in one.
pub(crate) fn build_constraint(plan: &StructuredPlan) -> Result<Arc<Constraint>, WorkloadError> {
    let kind = ConstraintKind::ALL.into_iter().find(|kind| kind.name() == plan.kind);
    let kind = kind.ok_or_else(|| {
        let message =
            format!("structured: `{}` is not a kind of constraint", shown_text(&plan.kind));
        WorkloadError { message, hint: "use json, regex, choice, or grammar".to_owned() }
    })?;
    if plan.text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        let message = format!("structured: the text of the {} constraint is empty", kind.name());
        return Err(WorkloadError { message, hint: constraint_hint(kind).to_owned() });
    }
    let text = plan.text.clone();
    let constraint = match kind {
        ConstraintKind::Json => Constraint::Json(text.unwrap_or_else(|| SCHEMA.to_owned())),
        ConstraintKind::Regex => Constraint::Regex(text.unwrap_or_else(|| EXPRESSION.to_owned())),
        ConstraintKind::Choice => Constraint::Choice(match &text {
            Some(text) => non_empty_lines(text),
            None => CHOICES.map(str::to_owned).to_vec(),
        }),
        ConstraintKind::Grammar => Constraint::Grammar(text.unwrap_or_else(|| GRAMMAR.to_owned())),
    };
    Checker::new(&constraint)?;
    Ok(Arc::new(constraint))
}

/// The choices, one in each line that is not empty.
fn non_empty_lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

fn constraint_hint(kind: ConstraintKind) -> &'static str {
    match kind {
        ConstraintKind::Json => "give a JSON schema: {\"type\": \"object\", …}",
        ConstraintKind::Regex => "give a regular expression without look-around or back-references",
        ConstraintKind::Choice => "give one choice per line, without duplicates",
        ConstraintKind::Grammar => "give a grammar in the engine's notation",
    }
}

/// At most 80 characters of foreign text, with control characters escaped.
fn shown_text(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().take(80).map(escape).collect()
}

/// Says whether an answer keeps to a constraint.
#[derive(Debug, Clone)]
pub struct Checker(ConstraintRule);

#[derive(Debug, Clone)]
enum ConstraintRule {
    Schema(Schema),
    Expression(Regex),
    Choices(Vec<String>),
    Unknown,
}

impl Checker {
    /// Fails where the constraint itself is wrong.
    pub fn new(constraint: &Constraint) -> Result<Self, WorkloadError> {
        let wrong = |what: &str| WorkloadError {
            message: format!("structured: {}: {}", constraint.kind().name(), shown_text(what)),
            hint: constraint_hint(constraint.kind()).to_owned(),
        };
        let rule = match constraint {
            Constraint::Json(schema) => {
                let schema: Value =
                    serde_json::from_str(schema).map_err(|error| wrong(&error.to_string()))?;
                ConstraintRule::Schema(Schema::compile(&schema, wrong)?)
            }
            Constraint::Regex(expression) => {
                // On its own first: a parenthesis too many must not close ours.
                Regex::new(expression).map_err(|error| wrong(last_line_of(&error.to_string())))?;
                let whole = Regex::new(&format!(r"\A(?:{expression})\z"));
                ConstraintRule::Expression(
                    whole.map_err(|error| wrong(last_line_of(&error.to_string())))?,
                )
            }
            Constraint::Choice(choices) => {
                let mut sorted: Vec<&String> = choices.iter().collect();
                sorted.sort();
                sorted.dedup();
                if choices.is_empty() || sorted.len() < choices.len() {
                    let what = if choices.is_empty() { "no choices" } else { "a duplicate choice" };
                    return Err(wrong(what));
                }
                ConstraintRule::Choices(choices.clone())
            }
            Constraint::Grammar(_) => ConstraintRule::Unknown,
        };
        Ok(Self(rule))
    }

    /// Whether this answer keeps to the constraint; `None` where that cannot be told: grammars
    /// have as many notations as engines.
    ///
    /// JSON may have white space around it; all others must be exact.
    pub fn check(&self, answer: &str) -> Option<bool> {
        match &self.0 {
            ConstraintRule::Schema(schema) => {
                let answer = serde_json::from_str::<Value>(answer);
                Some(answer.is_ok_and(|answer| schema.is_valid(&answer)))
            }
            ConstraintRule::Expression(expression) => Some(expression.is_match(answer)),
            ConstraintRule::Choices(choices) => Some(choices.iter().any(|choice| choice == answer)),
            ConstraintRule::Unknown => None,
        }
    }
}

/// The last line of the library's message says what is wrong; those before draw where.
fn last_line_of(message: &str) -> &str {
    message.lines().last().unwrap_or(message)
}

#[cfg(test)]
mod tests;
