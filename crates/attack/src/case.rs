//! One attack: what is done, what must come of it, and what came.

use std::collections::BTreeSet;

use crate::program::{Binary, EndedProcess};

/// Carries an attack out.
pub(crate) type Attack = dyn Fn(&Binary) -> Result<Observed, Skip>;

/// One attack on one use of goodput.
pub(crate) struct Case {
    /// Which part is attacked: `server`, `proxy`, `folder`, …
    pub(crate) area: &'static str,
    /// Unique within its area.
    pub(crate) name: String,
    pub(crate) expected: CaseBounds,
    /// Carries the attack out. An error means that the attack itself could not be carried out.
    pub(crate) attack: Box<Attack>,
}

/// Why a case says nothing about goodput.
#[derive(Debug)]
pub(crate) enum Skip {
    /// This machine lacks something (root, a file system, a kernel feature).
    Unavailable(String),
    /// The attack broke. Counts as a failure.
    Broken(String),
}

impl From<std::io::Error> for Skip {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// The bounds that a case states.
#[derive(Debug, Clone)]
pub(crate) struct CaseBounds {
    /// Every exit code that is right.
    pub(crate) exit: Vec<i32>,
    /// The program ends within this time.
    pub(crate) seconds: f64,
    /// The program's resident memory stays below this.
    pub(crate) mebibytes: f64,
}

impl CaseBounds {
    pub(crate) fn exit(codes: &[i32]) -> Self {
        Self { exit: codes.to_vec(), seconds: 20.0, mebibytes: 200.0 }
    }

    pub(crate) fn within(mut self, seconds: f64, mebibytes: f64) -> Self {
        (self.seconds, self.mebibytes) = (seconds, mebibytes);
        self
    }
}

/// What came of a case.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) exit: Option<i32>,
    pub(crate) classes: BTreeSet<String>,
    pub(crate) seconds: f64,
    pub(crate) mebibytes: f64,
    /// What went wrong beyond the bounds, in words.
    pub(crate) faults: Vec<String>,
    /// Counts and the like, for the reader of the table.
    pub(crate) note: String,
}

impl Observed {
    /// From a process that ended, with the checks that hold for every process of goodput.
    pub(crate) fn from_process(ended: &EndedProcess) -> Self {
        Self {
            exit: ended.code,
            classes: BTreeSet::new(),
            seconds: ended.seconds,
            mebibytes: ended.mebibytes,
            faults: ended.find_faults(),
            note: String::new(),
        }
    }

    /// Notes a fault unless `holds`.
    pub(crate) fn check(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(fault());
        }
    }
}

/// Every way in which what was observed differs from what was expected.
pub(crate) fn differences(expected: &CaseBounds, observed: &Observed) -> Vec<String> {
    let mut all = observed.faults.clone();
    match observed.exit {
        Some(code) if expected.exit.contains(&code) => {}
        Some(code) => all.push(format!("exit code {code}, expected one of {:?}", expected.exit)),
        None => all.push("did not exit by itself".to_owned()),
    }
    if observed.seconds > expected.seconds {
        all.push(format!("took {:.1} s, limit {:.1} s", observed.seconds, expected.seconds));
    }
    if observed.mebibytes > expected.mebibytes {
        all.push(format!("{:.0} MiB, limit {:.0} MiB", observed.mebibytes, expected.mebibytes));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        let classes = ["timeout".to_owned()].into();
        Observed {
            exit: Some(5),
            classes,
            seconds: 2.0,
            mebibytes: 50.0,
            faults: Vec::new(),
            note: String::new(),
        }
    }

    #[test]
    fn each_bound_is_checked() {
        let expected = CaseBounds::exit(&[3, 5]).within(3.0, 100.0);
        assert_eq!(differences(&expected, &observed()), [""; 0]);

        let late = Observed { seconds: 3.5, ..observed() };
        assert_eq!(differences(&expected, &late), ["took 3.5 s, limit 3.0 s"]);
        let large = Observed { mebibytes: 101.0, ..observed() };
        assert_eq!(differences(&expected, &large), ["101 MiB, limit 100 MiB"]);
        let wrong = Observed { exit: Some(0), ..observed() };
        assert_eq!(differences(&expected, &wrong), ["exit code 0, expected one of [3, 5]"]);
        let killed = Observed { exit: None, ..observed() };
        assert_eq!(differences(&expected, &killed), ["did not exit by itself"]);
        let leak = Observed { faults: vec!["the key is in report.html".to_owned()], ..observed() };
        assert_eq!(differences(&expected, &leak), ["the key is in report.html"]);
    }
}
