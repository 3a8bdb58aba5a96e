//! Results in Markdown, for a pull request or the summary of a job.

mod run;

pub use run::run_markdown;
