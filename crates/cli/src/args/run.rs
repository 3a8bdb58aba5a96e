//! Arguments of `goodput run`.

use std::path::PathBuf;

use clap::Args;

use super::value::parse_target;
use super::{EndpointArgs, LoadArgs, OutputArgs, ShardArgs, SloArgs, WorkloadArgs};

const RUN_EXAMPLES: &str = "\
Examples:
  goodput run mock --rate 20 --duration 20s --max-tokens 50
      Try it without a server: open-loop chat traffic on the mock
  goodput run localhost:8000 --rate 8 --duration 5m --warmup 30s
      Measure a server at 8 requests per second
  goodput run localhost:8000 --concurrency 64 --slo 'p99 ttft < 500ms'
      64 users, and whether the SLO is met: exit code 0, 4, or 5
  goodput run https://host/v1 --model llama --concurrency 64 --duration 2m --cacert ca.pem
      The same over TLS with a private certificate authority
  goodput run localhost:8000 --rate inf --num-requests 500 --max-tokens 100
      All requests at once
  goodput run localhost:8000 --rate 5 --mix chat=70%,long_context_qa=30% --tokenizer ./model
      A mix of two workloads, with prompts exact to the token
  goodput run localhost:8000 --trace mooncake.jsonl --time-scale 0.5
      A recorded trace at twice its speed
  goodput run localhost:8000 --rate 8 --duration 10m --slo interactive --attainment 99%
      Whether 99 % of the requests are good by the preset `interactive`
  goodput run localhost:8000 --rate 8 --warmup 30s --until 'p95 ttft ±10%'
      Until p95 TTFT is known to ±10 %, for at most ten minutes
  goodput run localhost:8000 --rate 8 --duration 2m --warmup 30s --repeat 5
      Five runs, with the spread between them
  goodput run --plan runs/2026-11-15T10-22-07Z-chat-run/plan.toml
      Repeat a run

Exit codes:
  0    success
  1    internal error
  2    wrong usage or bad input
  3    target unreachable, or not what it should be
  4    SLO missed
  5    result void, or too few samples to decide --slo or --until
  130  interrupted; a partial report was written

With --repeat the worst run decides. `goodput report` of a saved run exits with 0 whatever its
verdict.";

/// Measure one load level
///
/// TARGET is a base URL such as http://host:8000 or https://host/prefix/v1, or `mock[:SETTINGS]`,
/// which starts a simulated serving engine inside this process (settings: `goodput help mock`).
/// `localhost:8000` means http://localhost:8000.
///
/// Before the run, one small request checks that the target answers; --no-probe skips it. Latency
/// counts from the scheduled instant of a request, not from the instant it was sent.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Base URL, or `mock[:SETTINGS]` [env: GOODPUT_TARGET]
    #[arg(required_unless_present = "plan", value_parser = parse_target)]
    pub(crate) target: Option<String>,

    /// Run the plan in this file (`goodput init` writes one)
    ///
    /// A run folder holds its plan in plan.toml, so this flag also repeats a run. You can add the
    /// target, --model, --header, the SLO, --repeat, and the flags of output, server metrics, and
    /// hooks. All other flags are refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Measure N times (2 to 100) with consecutive seeds, and report the spread between the runs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) repeat: Option<u32>,

    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    #[command(flatten)]
    pub(crate) slo: SloArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    #[command(flatten)]
    pub(crate) shard: ShardArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
