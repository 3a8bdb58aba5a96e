//! Arguments of `goodput audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  goodput audit runs/2026-11-15T10-22-07Z-chat-run
      A run of ours: its verdict, its caveats, and the checklist
  goodput audit vllm-inf-llama.json --format md > audit.md
      A result of `vllm bench serve`, as a table to send on
  goodput audit benchmarks.json profile_export_aiperf.json --json | jq '.[].items[] | select(.status == \"wrong\")'
      Results of GuideLLM and AIPerf, as JSON
  goodput audit results.jsonl --strict
      Results of SGLang; what they leave out counts as doubtful

What is checked, and why: docs/audit.md.

Exit codes: 0 nothing worse than notes and gaps, 4 something doubtful, 5 something void,
            2 a result cannot be read. Of several results the worst counts.";

/// Say what a result states, what it leaves out, and what of it cannot be trusted
///
/// RESULT is a run folder of ours (or its summary.json), or a result file of `vllm bench serve`,
/// `vllm-bench`, SGLang bench_serving, AIPerf, GenAI-Perf or GuideLLM. Nothing is sent anywhere.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Run folders and result files
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,

    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AuditFormat,

    /// Print JSON; the same as --format json
    #[arg(long)]
    pub(crate) json: bool,

    /// Count what is missing as doubtful
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// A table for the terminal
    Text,
    /// A table in Markdown
    Md,
    /// A list of audits as JSON
    Json,
}
