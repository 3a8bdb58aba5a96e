//! The answer of a page, and whether to believe it.

use goodput_model::{Caveat, Severity, Verdict};

/// The answer in a sentence, and whether to believe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What was found.
    pub sentence: String,
    /// Sentences that stand next to it, where several things were asked.
    pub more: Vec<String>,
    /// Whether to believe it.
    pub standing: Standing,
    /// Where doubts are explained: what to say, the id of the section, and its name in the sentence.
    pub doubt: Option<Pointer>,
}

impl Answer {
    /// An answer with nothing next to it.
    pub fn new(sentence: String, verdict: Verdict) -> Self {
        Self { sentence, more: Vec::new(), standing: Standing::Verdict(verdict), doubt: None }
    }
}

/// Whether to believe an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It was measured, and this is how sure it is.
    Verdict(Verdict),
    /// It was not measured.
    Words(&'static str),
}

/// A sentence that leads to a section.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointer {
    /// The sentence, up to the link.
    pub text: String,
    /// Of the section.
    pub id: &'static str,
    /// The text of the link.
    pub name: &'static str,
}

/// Why a result is void.
pub(super) fn void_reasons(caveats: &[Caveat]) -> impl Iterator<Item = &str> {
    let grave = caveats.iter().filter(|caveat| caveat.severity == Severity::Void);
    grave.map(|caveat| caveat.message.as_str())
}

/// The answer of a result that is void.
pub fn void_answer(caveats: &[Caveat]) -> String {
    let why = void_reasons(caveats).next().map_or(String::new(), |why| format!(": {why}"));
    format!("No result: these numbers are void{why}")
}
