//! What can be typed about what users were promised.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "SLO")]
pub(crate) struct SloArgs {
    /// What users were promised, as in 'p99 ttft < 500ms, tpot < 50ms, errors < 1%', or a preset
    /// such as `interactive`
    #[arg(
        long,
        value_name = "TERMS",
        long_help = "What users were promised: terms with commas between them, and presets\n\n\
            'p99 ttft < 500ms'            a percentile (or `mean`), judged with its interval\n\
            'ttft < 500ms'                each request by itself: counts for --attainment\n\
            'ttft < 200ms + 0.5ms/token'  a limit that grows with the prompt\n\
            'errors < 1%', 'rps > 20', 'output_tps > 1000'    the whole run\n\
            Also `ttft:p99:lt:500ms` and `ttft:500`. Presets: interactive, batch,\n\
            mlperf-llama2-70b, mlperf-llama3.1-8b, mlperf-deepseek-r1, each also with -interactive.\n\
            All of it: docs/slo.md"
    )]
    pub(crate) slo: Option<String>,

    /// Share of the requests that must keep all terms without a percentile, as in `99%` or `0.99`
    #[arg(long, value_name = "SHARE")]
    pub(crate) attainment: Option<String>,

    /// The SLO as other tools have it: `ttft:500 tpot:50`, each request by itself, in ms
    #[arg(
        long,
        value_name = "KEY:MS",
        num_args = 1..,
        conflicts_with = "slo",
        hide_short_help = true
    )]
    pub(crate) goodput: Vec<String>,
}
