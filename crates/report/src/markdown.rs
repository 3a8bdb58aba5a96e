//! Results in Markdown, for a pull request or the summary of a job.

mod run;
#[cfg(test)]
pub(crate) mod tests;

pub use run::run_markdown;
