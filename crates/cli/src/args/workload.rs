//! Arguments about the workload, and of `goodput workload`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use goodput_model::{Delay, LengthDistribution};

use super::LogArgs;
use super::value::{parse_delay, parse_positive_time, parse_time};

const LENGTHS: &str = "LENGTHS";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadArgs {
    /// Workload to send: a preset, or a file
    ///
    /// Presets: chat, short_chat, code_generation, long_context_qa, summarization, multi_turn, agent. Files: a
    /// .toml file with classes, or a .jsonl file written by `goodput workload make`.
    #[arg(long, value_name = "NAME|FILE", default_value = "chat")]
    pub(crate) workload: String,

    /// Mix of presets with their shares, such as `chat=70%,long_context_qa=30%`
    #[arg(long, value_name = "SHARES", conflicts_with_all = ["workload", "dataset", "trace", "lengths"])]
    pub(crate) mix: Option<String>,

    /// Tokens per prompt, such as `512`
    ///
    /// Also `uniform:100:900`, `normal:500:100`, `lognormal:500:0.8[:MIN:MAX]`, and
    /// `zipf:1.2:16:4096`. The length includes the server's chat template.
    #[arg(long, visible_alias = "isl", alias = "random-input-len", value_name = LENGTHS)]
    pub(crate) input_tokens: Option<LengthDistribution>,

    /// Tokens per answer
    ///
    /// In the same forms as --input-tokens.
    #[arg(long, visible_alias = "osl", aliases = ["random-output-len", "output-tokens"], value_name = LENGTHS)]
    pub(crate) max_tokens: Option<LengthDistribution>,

    /// Draw prompt and answer lengths together, from the (input, output) pairs of a CSV file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_tokens", "max_tokens", "dataset", "trace", "workload"])]
    pub(crate) lengths: Option<String>,

    /// How to hold answers to their planned length [default: exact for generated prompts, limit for
    /// datasets]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) output_length: Option<OutputName>,

    /// The same as --output-length exact
    #[arg(long, conflicts_with = "output_length", hide_short_help = true)]
    pub(crate) ignore_eos: bool,

    /// Tokenizer for planning prompts [default: the server's own counts]
    ///
    /// tokenizer.json, a folder that contains one, a .tiktoken file, o200k_base, cl100k_base, a hub
    /// ID, or `approximate`.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) tokenizer: Option<String>,

    /// Count every answer with this tokenizer after the run, to compare different models
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) count_with: Option<String>,

    /// Do not check before the run how the server counts tokens; prompt lengths are then
    /// approximate
    #[arg(long)]
    pub(crate) no_length_check: bool,

    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputName {
    /// Send max_tokens, min_tokens, and ignore_eos
    Exact,
    /// Send max_tokens only
    Limit,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Dataset")]
pub(crate) struct DataArgs {
    /// Send the prompts of a file or folder, or of a hub dataset `hf:ORG/NAME[:FILE]`
    ///
    /// Forms: ShareGPT, OpenAI messages, prompts (JSONL, CSV, text), Parquet, and images: a folder
    /// with captions, or Parquet with pictures, also as a pattern such as 'data/test-*.parquet'.
    #[arg(long, alias = "dataset-path", value_name = "FILE|ID", conflicts_with_all = ["workload", "input_tokens"])]
    pub(crate) dataset: Option<String>,

    /// Form of the dataset, if goodput cannot tell: sharegpt, messages, prompts, csv, text,
    /// parquet, images
    #[arg(long, value_name = "FORM")]
    pub(crate) dataset_format: Option<String>,

    /// Column or field that holds the prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt_column: Option<String>,

    /// Column or field that holds the answer, or its length in tokens
    #[arg(long, value_name = "NAME")]
    pub(crate) output_column: Option<String>,

    /// Use this many entries of the dataset [default: as many as the run needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,

    /// Use entries in file order instead of at random
    #[arg(long)]
    pub(crate) in_order: bool,

    /// Skip the entries that vLLM skips: prompts or answers under 4 tokens, prompts over 1,024,
    /// both together over 2,048
    #[arg(long)]
    pub(crate) filter_lengths: bool,

    /// Shortest prompt to use, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) min_input: Option<u32>,

    /// Longest prompt to use, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_input: Option<u32>,

    /// Shortest answer to use, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) min_output: Option<u32>,

    /// Longest sum of prompt and answer to use, in tokens (the model's context)
    #[arg(long, value_name = "N")]
    pub(crate) max_total: Option<u32>,

    /// Skip entries that cannot be read and report how many, instead of refusing the file
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceArgs {
    /// Replay a trace; with --rate or --concurrency, use only its lengths and shared blocks
    ///
    /// Forms: Mooncake, BurstGPT, Azure, a recording of `goodput record`, or a log of LiteLLM,
    /// OpenTelemetry, or nginx.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "dataset", "input_tokens", "max_tokens", "turns"])]
    pub(crate) trace: Option<String>,

    /// Form of the trace, if goodput cannot tell: mooncake, bailian, burstgpt, azure, goodput,
    /// litellm, nginx, otel
    #[arg(long, value_name = "FORM")]
    pub(crate) trace_format: Option<String>,

    /// Multiply the times of the trace: 0.5 replays it twice as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = parse_time_scale)]
    pub(crate) time_scale: f64,

    /// Skip this much time at the beginning of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) trace_start: Option<Duration>,

    /// Replay only this much of the trace, in its own time
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) trace_length: Option<Duration>,

    /// What to keep of the times in the trace
    #[arg(long, value_enum, value_name = "MODE", default_value = "timestamps")]
    pub(crate) replay: ReplayName,

    /// Tokens per block of the trace's hash_ids [default: 512, or the size that the form defines]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_tokens: Option<u32>,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayName {
    /// Each request at its instant, whether or not the previous one was answered
    Timestamps,
    /// Sessions at their instants, later turns a think time after the previous answer
    ThinkTimes,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sessions")]
pub(crate) struct SessionArgs {
    /// Turns per conversation; for a dataset, the most turns to play
    #[arg(long, value_name = LENGTHS)]
    pub(crate) turns: Option<LengthDistribution>,

    /// Pause between an answer and the next turn: `2s`, `exp:5s`, `lognormal:5s:1`, or
    /// `uniform:1s:9s`
    #[arg(long, value_name = "DELAY", value_parser = parse_delay)]
    pub(crate) turn_pause: Option<Delay>,

    /// Tokens that each turn after the first adds [default: as the first]
    #[arg(long, value_name = LENGTHS)]
    pub(crate) turn_input: Option<LengthDistribution>,

    /// Whose answers later turns contain [default: server]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) history: Option<HistoryName>,

    /// Send the session's name in this header, so that a gateway can route a session to one server
    #[arg(long, value_name = "NAME")]
    pub(crate) session_header: Option<String>,

    /// Tool calls per turn before its answer
    #[arg(long, value_name = LENGTHS)]
    pub(crate) tool_calls: Option<LengthDistribution>,

    /// Time that a tool takes [default: 1s]
    #[arg(long, value_name = "DELAY", value_parser = parse_delay)]
    pub(crate) tool_delay: Option<Delay>,

    /// Tokens of a tool's result [default: 200]
    #[arg(long, value_name = LENGTHS)]
    pub(crate) tool_result: Option<LengthDistribution>,

    /// Requests sent in parallel to the main one at each tool step, up to 64
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=64))]
    pub(crate) fan_out: Option<u32>,

    /// Send tool results in the role `tool` instead of `user`
    #[arg(long)]
    pub(crate) tool_role: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryName {
    /// The answers that the server gave
    Server,
    /// The answers in the dataset, or generated text of the planned length
    Dataset,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cache, images, structure")]
pub(crate) struct ShapeArgs {
    /// State of the server's prefix cache [default: cold]
    ///
    /// `cold` gives every prompt a different beginning. `reset` is cold, and tells the server to
    /// clear its cache first. `warm[=PROMPTS]` repeats prompts, `hit=70%[:GROUPS]` aims at a hit
    /// rate, and `tiling=CONTEXTS:TOKENS` sends long contexts in rotation: the first one is the
    /// warm-up, and a run at a rate ends with a whole one.
    #[arg(long, value_name = "STATE")]
    pub(crate) cache: Option<String>,

    /// Tokens per block of the server's prefix cache (vLLM on CPUs: 128, SGLang: 1) [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) cache_block: Option<u32>,

    /// Length in tokens of a system prompt that all requests share
    #[arg(long, value_name = "N")]
    pub(crate) system_tokens: Option<u32>,

    /// Number of groups of requests that share a prefix
    #[arg(long, value_name = "K", requires = "prefix_tokens", conflicts_with = "cache", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prefix_groups: Option<u32>,

    /// Length in tokens of the shared prefix
    #[arg(long, value_name = "N", conflicts_with = "cache", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prefix_tokens: Option<u32>,

    /// Skew of the groups' popularity: rank to this negative power, from 0 (even) to 10
    #[arg(long, value_name = "S", requires = "prefix_groups", default_value = "0", value_parser = parse_zipf)]
    pub(crate) prefix_zipf: f64,

    /// Images per request, with size and format: `1`, `2:640x480`, `1:1024x1024:png`
    #[arg(long, value_name = "N[:WxH[:FORM]]")]
    pub(crate) images: Option<String>,

    /// Use the images in this folder instead of generated ones
    #[arg(long, value_name = "DIR")]
    pub(crate) image_dir: Option<String>,

    /// Constrain answers: `json`, `regex`, `choice`, or `grammar`, with an optional share such as
    /// `json:50%`
    #[arg(long, value_name = "KIND[:SHARE]")]
    pub(crate) structured: Option<String>,

    /// File with the schema, expression, choices (one per line), or grammar [default: built in]
    #[arg(long, value_name = "FILE", requires = "structured")]
    pub(crate) structured_file: Option<PathBuf>,

    /// How the server expects constraints [default: response-format]
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) structured_dialect: Option<StructuredDialectName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StructuredDialectName {
    /// OpenAI's response_format; other kinds as structured_outputs
    ResponseFormat,
    /// vLLM 0.11 and later: structured_outputs
    StructuredOutputs,
    /// vLLM before 0.11: guided_json, guided_regex, ...
    Guided,
    /// SGLang: response_format, regex, ebnf
    Sglang,
    /// llama.cpp: json_schema, grammar
    Llamacpp,
}

fn parse_time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (1e-6..=1e6).contains(scale));
    scale.ok_or_else(|| "expected a positive number: 0.5 is twice as fast".to_owned())
}

fn parse_zipf(text: &str) -> Result<f64, String> {
    let power = text.parse::<f64>().ok().filter(|power| (0.0..=10.0).contains(power));
    power.ok_or_else(|| "expected a number between 0 and 10".to_owned())
}

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  goodput workload show --workload chat
      Lengths, arrivals, and three requests of a preset
  goodput workload show mooncake_trace.jsonl
      The same for a file
  goodput workload make --workload chat --num-requests 1000 --output chat.jsonl
      Freeze a workload; run it with `goodput run URL --rate 5 --workload chat.jsonl`
  goodput workload convert azure.csv --to mooncake --output azure.jsonl
      Convert a trace
  goodput workload sample ShareGPT.json --count 500 --output small.jsonl
      Draw 500 entries of a dataset";

#[derive(Debug, Subcommand)]
#[command(after_long_help = WORKLOAD_EXAMPLES)]
pub(crate) enum WorkloadVerb {
    /// Show the lengths, arrivals, classes, and three requests of a workload
    Show(Box<ShowArgs>),
    /// Write a workload exactly as it would be sent, with its hash
    Make(Box<MakeArgs>),
    /// Convert a trace or dataset to another form
    Convert(ConvertArgs),
    /// Write a random sample of a dataset, chosen by the seed
    Sample(SampleArgs),
}

#[derive(Debug, Args)]
#[command(after_long_help = WORKLOAD_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// Trace, dataset, .toml file, or frozen workload; without it, flags describe the workload
    pub(crate) file: Option<String>,

    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,

    #[command(flatten)]
    pub(crate) amount: AmountArgs,

    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = WORKLOAD_EXAMPLES)]
pub(crate) struct MakeArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,

    #[command(flatten)]
    pub(crate) amount: AmountArgs,

    /// File to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AmountArgs {
    /// Number of requests
    #[arg(long, alias = "num-prompts", value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: u64,

    /// Seed of everything that is drawn at random
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = WORKLOAD_EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// Trace or dataset to convert
    pub(crate) file: PathBuf,

    /// Form of the file, if goodput cannot tell
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<String>,

    /// Form to write: messages, prompts, mooncake, azure, burstgpt, or goodput
    #[arg(long, value_name = "FORM")]
    pub(crate) to: String,

    /// File to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Skip entries that cannot be read, and report how many
    #[arg(long)]
    pub(crate) skip_invalid: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(after_long_help = WORKLOAD_EXAMPLES)]
pub(crate) struct SampleArgs {
    /// Dataset to sample
    pub(crate) file: PathBuf,

    /// Form of the file, if goodput cannot tell
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<String>,

    /// Number of entries
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,

    /// Seed of the choice
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,

    /// File to write, as OpenAI messages in JSON lines
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Skip entries that cannot be read, and report how many
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}
