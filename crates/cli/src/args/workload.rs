//! What can be typed about what is sent, and after `goodput workload`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use goodput_model::{Delay, LengthDistribution};

use super::LogArgs;

const LENGTHS: &str = "LENGTHS";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadArgs {
    /// What to send: chat, code_generation, long_context_qa, summarization, multi_turn, agent, a
    /// .toml file with classes, or a file of `goodput workload make`
    #[arg(long, value_name = "NAME|FILE", default_value = "chat")]
    pub(crate) workload: String,

    /// Several workloads at once: `chat=70%,long_context_qa=30%`
    #[arg(long, value_name = "SHARES", conflicts_with_all = ["workload", "dataset", "trace", "lengths"])]
    pub(crate) mix: Option<String>,

    /// Prompt lengths in tokens, the server's chat template included: `512`, `uniform:100:900`,
    /// `normal:500:100`, `lognormal:500:0.8[:MIN:MAX]`, `zipf:1.2:16:4096`
    #[arg(long, visible_alias = "isl", alias = "random-input-len", value_name = LENGTHS)]
    pub(crate) input_tokens: Option<LengthDistribution>,

    /// Answer lengths in tokens, in the same forms
    #[arg(long, visible_alias = "osl", aliases = ["random-output-len", "output-tokens"], value_name = LENGTHS)]
    pub(crate) max_tokens: Option<LengthDistribution>,

    /// Lengths as (input, output) pairs of a CSV file, drawn together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_tokens", "max_tokens", "dataset", "trace", "workload"])]
    pub(crate) lengths: Option<String>,

    /// Whether answers have exactly their planned length (max_tokens, min_tokens, ignore_eos) or
    /// at most that [default: exact for generated prompts, limit for data sets]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) output_length: Option<OutputName>,

    /// The same as --output-length exact
    #[arg(long, conflicts_with = "output_length", hide_short_help = true)]
    pub(crate) ignore_eos: bool,

    /// Tokenizer to count with: tokenizer.json, a folder with one, a .tiktoken file, o200k_base,
    /// cl100k_base, a hub id, or `approximate` [default: the server's own counts]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) tokenizer: Option<String>,

    /// Count every answer with this tokenizer after the run, to compare different models
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) count_with: Option<String>,

    /// Do not ask the server beforehand how it counts our words: lengths are then about right
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
    /// max_tokens, min_tokens and ignore_eos
    Exact,
    /// max_tokens alone
    Limit,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data set")]
pub(crate) struct DataArgs {
    /// Prompts of a file or folder: ShareGPT, OpenAI messages, prompts (JSONL, CSV, text), Parquet,
    /// images with captions; or a hub id, `hf:ORG/NAME[:FILE]`
    #[arg(long, alias = "dataset-path", value_name = "FILE|ID", conflicts_with_all = ["workload", "input_tokens"])]
    pub(crate) dataset: Option<String>,

    /// Its form, where it cannot be told: sharegpt, messages, prompts, csv, text, parquet, images
    #[arg(long, value_name = "FORM")]
    pub(crate) dataset_format: Option<String>,

    /// Column or field of the prompt
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt_column: Option<String>,

    /// Column or field of the answer, or of its length
    #[arg(long, value_name = "NAME")]
    pub(crate) output_column: Option<String>,

    /// Take so many entries of the file [default: what the run needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,

    /// Take entries in the order of the file instead of at random
    #[arg(long)]
    pub(crate) in_order: bool,

    /// Leave out what vLLM leaves out: prompts and answers under 4 tokens, prompts over 1,024, both
    /// together over 2,048
    #[arg(long)]
    pub(crate) filter_lengths: bool,

    /// Shortest prompt to take, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) min_input: Option<u32>,

    /// Longest prompt to take, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_input: Option<u32>,

    /// Shortest answer to take, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) min_output: Option<u32>,

    /// Longest prompt and answer together to take, in tokens (the model's context)
    #[arg(long, value_name = "N")]
    pub(crate) max_total: Option<u32>,

    /// Leave out entries that cannot be read, and say how many, instead of refusing the file
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trace")]
pub(crate) struct TraceArgs {
    /// Replay a trace: Mooncake, BurstGPT, Azure, our own, or a log of LiteLLM, OpenTelemetry or
    /// nginx; with --rate or --concurrency only its lengths and shared blocks are used
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "dataset", "input_tokens", "max_tokens", "turns"])]
    pub(crate) trace: Option<String>,

    /// Its form, where it cannot be told: mooncake, bailian, burstgpt, azure, goodput, litellm,
    /// nginx, otel
    #[arg(long, value_name = "FORM")]
    pub(crate) trace_format: Option<String>,

    /// Multiply the trace's time: 0.5 plays twice as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = time_scale)]
    pub(crate) time_scale: f64,

    /// Leave out the beginning of the trace
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) trace_start: Option<Duration>,

    /// Play so much of the trace, in its own time
    #[arg(long, value_name = "TIME", value_parser = super::positive_time)]
    pub(crate) trace_length: Option<Duration>,

    /// What is kept of the trace's time
    #[arg(long, value_enum, value_name = "WHAT", default_value = "timestamps")]
    pub(crate) replay: ReplayName,

    /// Tokens of one block of the trace's hash_ids [default: 512, or the form's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) block_tokens: Option<u32>,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayName {
    /// Each request at its instant, whether or not the one before it was answered
    Timestamps,
    /// Sessions at their instants, later requests a think time after the answer before
    ThinkTimes,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sessions")]
pub(crate) struct SessionArgs {
    /// Turns of a conversation; of data sets, at most so many
    #[arg(long, value_name = LENGTHS)]
    pub(crate) turns: Option<LengthDistribution>,

    /// Pause between an answer and the next turn: `2s`, `exp:5s`, `lognormal:5s:1`, `uniform:1s:9s`
    #[arg(long, value_name = "DELAY")]
    pub(crate) turn_pause: Option<Delay>,

    /// Tokens that each turn after the first adds [default: as the first]
    #[arg(long, value_name = LENGTHS)]
    pub(crate) turn_input: Option<LengthDistribution>,

    /// What stands for the assistant's side in later turns [default: server]
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub(crate) history: Option<HistoryName>,

    /// Send the session's name in this header, so that a gateway can keep sessions together
    #[arg(long, value_name = "NAME")]
    pub(crate) session_header: Option<String>,

    /// Tool calls of one turn before its answer
    #[arg(long, value_name = LENGTHS)]
    pub(crate) tool_calls: Option<LengthDistribution>,

    /// How long a tool works [default: 1s]
    #[arg(long, value_name = "DELAY")]
    pub(crate) tool_delay: Option<Delay>,

    /// Tokens of a tool's result [default: 200]
    #[arg(long, value_name = LENGTHS)]
    pub(crate) tool_result: Option<LengthDistribution>,

    /// Requests beside the main one at each tool step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=64))]
    pub(crate) fan_out: Option<u32>,

    /// Send tool results in the role `tool` instead of `user`
    #[arg(long)]
    pub(crate) tool_role: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryName {
    /// What the server really answered
    Server,
    /// What the data set holds, or generated text of the planned length
    Dataset,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cache, images, structure")]
pub(crate) struct ShapeArgs {
    /// State of the prefix cache: `cold` (every prompt begins differently, the default), `reset`
    /// (cold, and the server is told to forget beforehand), `warm[=PROMPTS]`, `hit=70%[:GROUPS]`,
    /// `tiling=CONTEXTS:TOKENS`
    #[arg(long, value_name = "STATE")]
    pub(crate) cache: Option<String>,

    /// Tokens of one block of the server's prefix cache (vLLM on CPUs: 128, SGLang: 1)
    /// [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) cache_block: Option<u32>,

    /// A system prompt of so many tokens that all requests share
    #[arg(long, value_name = "N")]
    pub(crate) system_tokens: Option<u32>,

    /// Groups of requests that share a beginning
    #[arg(long, value_name = "K", requires = "prefix_tokens", conflicts_with = "cache", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prefix_groups: Option<u32>,

    /// Tokens of that beginning
    #[arg(long, value_name = "N", conflicts_with = "cache", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) prefix_tokens: Option<u32>,

    /// Popularity of the groups: rank to this negative power; 0 is even
    #[arg(long, value_name = "S", requires = "prefix_groups", default_value = "0", value_parser = zipf)]
    pub(crate) prefix_zipf: f64,

    /// Images of a request: `1`, `2:640x480`, `1:1024x1024:png`
    #[arg(long, value_name = "N[:WxH[:FORM]]")]
    pub(crate) images: Option<String>,

    /// Images of this folder instead of generated ones
    #[arg(long, value_name = "DIR")]
    pub(crate) image_dir: Option<String>,

    /// Constrain answers: `json`, `regex`, `choice` or `grammar`, each with an optional share:
    /// `json:50%`
    #[arg(long, value_name = "KIND[:SHARE]")]
    pub(crate) structured: Option<String>,

    /// File with the schema, expression, choices (one a line) or grammar [default: a built-in one]
    #[arg(long, value_name = "FILE", requires = "structured")]
    pub(crate) structured_file: Option<PathBuf>,

    /// How the server wants constraints written [default: response-format]
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) structured_dialect: Option<StructuredDialectName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StructuredDialectName {
    /// OpenAI's response_format; other kinds as structured_outputs
    ResponseFormat,
    /// vLLM since 0.11: structured_outputs
    StructuredOutputs,
    /// vLLM before that: guided_json, guided_regex …
    Guided,
    /// SGLang: response_format, regex, ebnf
    Sglang,
    /// llama.cpp: json_schema, grammar
    Llamacpp,
}

fn time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok().filter(|scale| (1e-6..=1e6).contains(scale));
    scale.ok_or_else(|| "a positive number: 0.5 is twice as fast".to_owned())
}

fn zipf(text: &str) -> Result<f64, String> {
    let power = text.parse::<f64>().ok().filter(|power| (0.0..=10.0).contains(power));
    power.ok_or_else(|| "a number between 0 and 10".to_owned())
}

const WORKLOAD_EXAMPLES: &str = "\
Examples:
  goodput workload show --workload chat
  goodput workload show mooncake_trace.jsonl
  goodput workload make --workload chat --num-requests 1000 --tokenizer ./model --output chat.jsonl
  goodput run http://localhost:8000 --rate 5 --workload chat.jsonl
  goodput workload convert azure.csv --to mooncake --output azure.jsonl
  goodput workload sample ShareGPT.json --count 500 --output small.jsonl";

#[derive(Debug, Subcommand)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) enum WorkloadVerb {
    /// Show lengths, gaps, turns, classes, shared prefixes and three requests of a workload
    Show(Box<ShowArgs>),
    /// Write a workload as it would be sent, byte for byte, with its hash
    Make(Box<MakeArgs>),
    /// Write a trace or data set in another form
    Convert(ConvertArgs),
    /// Write some entries of a data set, chosen by the seed
    Sample(SampleArgs),
}

#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) struct ShowArgs {
    /// A trace, data set, .toml or frozen file; or describe the workload by flags
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
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) struct MakeArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,

    #[command(flatten)]
    pub(crate) amount: AmountArgs,

    /// Where to write it
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AmountArgs {
    /// Number of requests
    #[arg(long, alias = "num-prompts", value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num_requests: u64,

    /// Seed of everything drawn
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// The trace or data set
    pub(crate) file: PathBuf,

    /// Its form, where it cannot be told
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<String>,

    /// The form to write: messages, prompts, mooncake, azure, burstgpt, goodput
    #[arg(long, value_name = "FORM")]
    pub(crate) to: String,

    /// Where to write it
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Leave out entries that cannot be read, and say how many
    #[arg(long)]
    pub(crate) skip_invalid: bool,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WORKLOAD_EXAMPLES)]
pub(crate) struct SampleArgs {
    /// The data set
    pub(crate) file: PathBuf,

    /// Its form, where it cannot be told
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<String>,

    /// How many entries
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: u64,

    /// Seed of the choice
    #[arg(long, value_name = "N", default_value_t = 42, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: u64,

    /// Where to write them, as OpenAI messages in JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Leave out entries that cannot be read, and say how many
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}
