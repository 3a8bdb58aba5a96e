//! Results as JUnit XML, for what shows test cases: a case for everything that was asked to hold.

mod run;

pub use run::run_junit;
