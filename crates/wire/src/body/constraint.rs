//! Constraints on answers in the words of each engine.

use std::fmt::{self, Display};

use goodput_model::{Constraint, ConstraintDialect, ConstraintKind};

use super::message::write_list;
use super::text::write_text;

/// Whether a dialect has words for this kind.
pub(super) fn can_express(dialect: ConstraintDialect, kind: ConstraintKind) -> bool {
    field_name(dialect, kind).is_some()
}

/// The field of the body that holds the constraint; `None` where the dialect has none for it.
pub(super) fn field_name(dialect: ConstraintDialect, kind: ConstraintKind) -> Option<&'static str> {
    use ConstraintDialect::{Guided, Llamacpp, ResponseFormat, Sglang, StructuredOutputs};
    use ConstraintKind::{Choice, Grammar, Json, Regex};
    Some(match (dialect, kind) {
        (ResponseFormat | Sglang, Json) => "response_format",
        (ResponseFormat | StructuredOutputs, _) => "structured_outputs",
        (Guided, Json) => "guided_json",
        (Guided, Regex) => "guided_regex",
        (Guided, Choice) => "guided_choice",
        (Guided, Grammar) => "guided_grammar",
        (Sglang, Regex | Choice) => "regex",
        (Sglang, Grammar) => "ebnf",
        (Llamacpp, Json) => "json_schema",
        (Llamacpp, Choice | Grammar) => "grammar",
        (Llamacpp, Regex) => return None,
    })
}

/// Writes what stands behind the key.
pub(super) fn write_constraint(
    out: &mut Vec<u8>,
    dialect: ConstraintDialect,
    constraint: &Constraint,
) {
    match field_name(dialect, constraint.kind()) {
        Some("response_format") => {
            out.extend_from_slice(br#"{"json_schema":{"name":"answer","schema":"#);
            write_plain(out, constraint);
            out.extend_from_slice(br#","strict":true},"type":"json_schema"}"#);
        }
        Some("structured_outputs") => {
            out.push(b'{');
            write_text(out, constraint.kind().name());
            out.push(b':');
            write_plain(out, constraint);
            out.push(b'}');
        }
        _ => match (dialect, constraint) {
            (ConstraintDialect::Sglang, Constraint::Choice(choices)) => {
                write_text(out, Expression(choices));
            }
            (ConstraintDialect::Llamacpp, Constraint::Choice(choices)) => {
                write_text(out, Gbnf(choices));
            }
            _ => write_plain(out, constraint),
        },
    }
}

/// The constraint as JSON: a schema, a string or a list of strings.
fn write_plain(out: &mut Vec<u8>, constraint: &Constraint) {
    match constraint {
        Constraint::Json(schema) => out.extend_from_slice(schema.as_bytes()),
        Constraint::Regex(text) | Constraint::Grammar(text) => write_text(out, text),
        Constraint::Choice(choices) => write_list(out, choices.iter(), write_text),
    }
}

/// A regular expression that matches one of some texts.
struct Expression<'a>(&'a [String]);

impl Display for Expression<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (place, choice) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "|" })?;
            for letter in choice.chars() {
                f.write_str(if r"\.+*?()|[]{}^$".contains(letter) { r"\" } else { "" })?;
                write!(f, "{letter}")?;
            }
        }
        f.write_str(")")
    }
}

/// A grammar of llama.cpp whose language is one of some texts.
struct Gbnf<'a>(&'a [String]);

impl Display for Gbnf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("root ::= ")?;
        for (place, choice) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "\"" } else { " | \"" })?;
            for letter in choice.chars() {
                match letter {
                    '\n' => f.write_str(r"\n")?,
                    '\r' => f.write_str(r"\r")?,
                    '\t' => f.write_str(r"\t")?,
                    '"' | '\\' => write!(f, r"\{letter}")?,
                    _ => write!(f, "{letter}")?,
                }
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}
