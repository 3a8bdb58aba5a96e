//! Test cases, which JUnit XML shows.

use goodput_model::Caveat;

use super::answer::void_reasons;

/// Test cases, for what shows such.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suites {
    /// Of the file.
    pub name: &'static str,
    /// One for each run or side.
    pub suites: Vec<Suite>,
}

/// What is wrong with a case, and of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not hold; the text names the kind.
    Failure(&'static str),
    /// It cannot be decided; the text names the kind.
    Error(&'static str),
}

/// One test case. Its texts may be foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCase {
    /// What must hold.
    pub name: String,
    /// What was found.
    pub text: String,
    /// None if it holds.
    pub fault: Option<Fault>,
}

impl TestCase {
    /// A case; without a fault it passed.
    pub fn new(name: impl Into<String>, text: impl Into<String>, fault: Option<Fault>) -> Self {
        Self { name: name.into(), text: text.into(), fault }
    }
}

/// Cases that belong together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Suite {
    /// What was tested.
    pub name: String,
    /// Of its cases, after `goodput.`; any text.
    pub class: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// When it began (RFC 3339).
    pub started: String,
    /// Names and values.
    pub properties: Vec<(&'static str, String)>,
    /// In order.
    pub cases: Vec<TestCase>,
    /// The whole in a sentence.
    pub said: String,
}

impl Suite {
    /// Of a result that is void no word is one: what it says is an error, and so is that it is void,
    /// in a case of this name.
    pub fn mark_void(&mut self, name: impl Into<String>, caveats: &[Caveat]) {
        let why: Vec<&str> = void_reasons(caveats).collect();
        self.cases.push(TestCase::new(name, format!("void: {}", why.join("; ")), None));
        for case in &mut self.cases {
            case.fault = Some(Fault::Error("void"));
        }
    }
}
