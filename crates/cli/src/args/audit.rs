//! Arguments of `goodput audit`.

use std::path::PathBuf;

use super::SavedSloArgs;
use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  goodput audit runs/2026-11-15T10-22-07Z-chat-run
      A run of goodput: its verdict, its caveats, and the checklist
  goodput audit vllm-inf-llama.json --format md > audit.md
      A result of `vllm bench serve`, as a Markdown table
  goodput audit benchmarks.json profile_export_aiperf.json --json
      Results of GuideLLM and AIPerf, as JSON
  goodput audit results.jsonl --strict
      A result of SGLang; missing statements count as doubtful

docs/audit.md lists the checks and their reasons.

Exit codes:
  0    nothing worse than notes and gaps
  2    wrong usage, or a result cannot be read
  4    something is doubtful
  5    something is void

With several results the worst counts.";

/// Check what a result states, omits, and cannot support
///
/// RESULT is a run folder of goodput, its summary.json, or a result file of `vllm bench serve`,
/// `vllm-bench`, SGLang bench_serving, AIPerf, GenAI-Perf, or GuideLLM. goodput makes no network
/// requests.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Run folders and result files
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,

    /// Format to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: AuditFormat,

    /// Print JSON; the same as --format json
    #[arg(long)]
    pub(crate) json: bool,

    /// Count missing statements as doubtful
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) slo: SavedSloArgs,
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
