//! Arguments about an access log that is read as a trace.

use clap::Args;
use goodput_model::LogPlan;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Access log (--trace-format nginx)")]
pub(crate) struct LogArgs {
    /// Format of the log: what follows `log_format NAME` in nginx.conf, or the whole directive
    /// [default: `combined`]
    #[arg(long, value_name = "FORMAT", hide_short_help = true)]
    log_format: Option<String>,

    /// Variable of the format that holds the tokens of a prompt, such as
    /// `$upstream_http_x_prompt_tokens`
    #[arg(long, value_name = "VARIABLE", hide_short_help = true)]
    input_tokens_field: Option<String>,

    /// Variable of the format that holds the tokens of an answer
    #[arg(long, value_name = "VARIABLE", hide_short_help = true)]
    output_tokens_field: Option<String>,

    /// Bytes per token of a request or of an answer that was not streamed [default: 4]
    #[arg(long, value_name = "X", value_parser = parse_factor, hide_short_help = true)]
    bytes_per_token: Option<f64>,

    /// Bytes per token of a streamed answer [default: 250 if the log says which answers were
    /// streamed; otherwise required]
    #[arg(long, value_name = "X", value_parser = parse_factor, hide_short_help = true)]
    answer_bytes_per_token: Option<f64>,

    /// Tokens of a prompt where the log does not say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), hide_short_help = true)]
    assume_input_tokens: Option<u32>,
}

impl LogArgs {
    /// Converts the flags to what a plan holds.
    pub(crate) fn to_plan(&self) -> LogPlan {
        LogPlan {
            format: self.log_format.clone(),
            input_tokens_field: self.input_tokens_field.clone(),
            output_tokens_field: self.output_tokens_field.clone(),
            bytes_per_token: self.bytes_per_token,
            answer_bytes_per_token: self.answer_bytes_per_token,
            assume_input_tokens: self.assume_input_tokens,
        }
    }
}

fn parse_factor(text: &str) -> Result<f64, String> {
    let wrong = || "expected a number above 0".to_owned();
    let number: f64 = text.parse().map_err(|_| wrong())?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err(wrong()) }
}
