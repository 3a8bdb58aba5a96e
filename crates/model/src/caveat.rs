//! What may make a number untrustworthy, and the verdict that follows.

use serde::{Deserialize, Serialize};

/// How much a caveat matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; the numbers stand.
    Info,
    /// The numbers may be off: the verdict is `suspect`.
    Warn,
    /// The numbers do not say what they seem to: the verdict is `void`.
    Void,
}

/// One reason to doubt a result, with its evidence and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Stable name for scripts, such as `schedule_slip`.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// Evidence and advice in one sentence or two.
    pub message: String,
}

impl Caveat {
    /// A caveat with its parts.
    pub fn new(code: &str, severity: Severity, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), severity, message: message.into() }
    }
}

/// Whether to believe a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing found that speaks against the numbers.
    Valid,
    /// Something may have distorted them.
    Suspect,
    /// They must not be used as a result.
    Void,
}

impl Verdict {
    /// The worst caveat decides.
    pub fn of(caveats: &[Caveat]) -> Self {
        match caveats.iter().map(|caveat| caveat.severity).max() {
            None | Some(Severity::Info) => Self::Valid,
            Some(Severity::Warn) => Self::Suspect,
            Some(Severity::Void) => Self::Void,
        }
    }

    /// The word in `summary.json` and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Void => "void",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_caveat_decides() {
        let caveat = |severity| Caveat::new("x", severity, "");
        assert_eq!(Verdict::of(&[]), Verdict::Valid);
        assert_eq!(Verdict::of(&[caveat(Severity::Info)]), Verdict::Valid);
        assert_eq!(Verdict::of(&[caveat(Severity::Void), caveat(Severity::Warn)]), Verdict::Void);
    }
}
