//! Arguments of the SLO.

use clap::Args;

/// An SLO for results that are on disk, in place of the one that they were measured with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "SLO")]
pub(crate) struct SavedSloArgs {
    /// Judge what was measured by these limits, as if they had been asked for, such as
    /// 'p99 ttft < 300ms'; same form and presets as in `goodput run`
    #[arg(long, value_name = "TERMS")]
    pub(crate) slo: Option<String>,

    /// Share of requests that must meet every term without a percentile, such as `99%` or `0.99`
    /// [default with --slo: none for a run, 99% for a sweep]
    #[arg(long, value_name = "SHARE")]
    pub(crate) attainment: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "SLO")]
pub(crate) struct SloArgs {
    /// Limits, such as 'p99 ttft < 500ms, errors < 1%'
    #[arg(
        long,
        value_name = "TERMS",
        long_help = "SLO: terms separated by commas, and presets\n\n'p99 ttft < 500ms'            \
                     a percentile (or `mean`), judged with its interval\n'ttft < 500ms'            \
                     each request on its own: counts toward --attainment\n'ttft < 200ms + \
                     0.5ms/token'  a limit that grows with the prompt\n'errors < 1%', 'rps > 20', \
                     'output_tps > 1000'    the whole run\nAlso `ttft:p99:lt:500ms` and \
                     `ttft:500`. Presets: interactive, batch,\nmlperf-llama2-70b, \
                     mlperf-llama3.1-8b, mlperf-deepseek-r1, each also with -interactive.\nSee \
                     docs/slo.md."
    )]
    pub(crate) slo: Option<String>,

    /// Share of requests that must meet every term without a percentile, such as `99%` or `0.99`
    #[arg(long, value_name = "SHARE")]
    pub(crate) attainment: Option<String>,

    /// SLO as other tools write it: `ttft:500 tpot:50`, limits in ms for each request
    #[arg(
        long,
        value_name = "KEY:MS",
        num_args = 1..,
        conflicts_with = "slo",
        hide_short_help = true
    )]
    pub(crate) goodput: Vec<String>,
}
