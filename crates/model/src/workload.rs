//! [`WorkloadPlan`]: what to send, in a form that can be written to `plan.toml` and run again.

mod shorthand;

use serde::{Deserialize, Serialize};

use crate::{Delay, History, LengthDistribution};
pub use shorthand::parse_weight;

/// What to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadPlan {
    /// Its name, for people and folders.
    pub name: String,
    /// Whether answers are to have exactly the planned length, or at most that.
    #[serde(default)]
    pub output: OutputLength,
    /// The tokenizer that lengths are counted with: a file, a folder, a built-in name or a hub id.
    /// Without one, the server's word or an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The tokenizer that every answer is counted with after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_with: Option<String>,
    /// Whether entries of files that cannot be read are left out and counted, instead of refused.
    #[serde(default)]
    pub skip_invalid: bool,
    /// Header that carries the session's name, so that a gateway can keep sessions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_header: Option<String>,
    /// How constraints are written.
    #[serde(default)]
    pub constraints: ConstraintDialect,
    /// Tell the server to forget its prefix cache before the run.
    #[serde(default)]
    pub reset_cache: bool,
    /// Tokens of one block of the server's prefix cache; hits are counted in whole blocks.
    #[serde(default = "default_cache_block")]
    pub cache_block: u32,
    /// Keep prompt and answer text in the run folder.
    #[serde(default)]
    pub save_text: bool,
    /// What the tokenizer or the server said about our words; found before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<TokenCalibration>,
    /// The classes of traffic, at least one.
    #[serde(rename = "class")]
    pub classes: Vec<ClassPlan>,
}

/// What the common engines have on GPUs.
fn default_cache_block() -> u32 {
    16
}

/// Whether answers have exactly the planned length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLength {
    /// `max_tokens`, `min_tokens` and `ignore_eos` are sent.
    Exact,
    /// Only `max_tokens`: the model may stop earlier.
    #[default]
    Limit,
}

/// How a constraint on an answer is written into the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintDialect {
    /// `response_format`; kinds that OpenAI lacks as `structured_outputs`.
    #[default]
    ResponseFormat,
    /// vLLM since 0.11: `structured_outputs`.
    StructuredOutputs,
    /// vLLM before that, and engines that copied it: `guided_json`, `guided_regex` …
    Guided,
    /// SGLang: `response_format` for JSON, `regex` and `ebnf` of its own.
    Sglang,
    /// llama.cpp: `json_schema` and `grammar`.
    Llamacpp,
}

impl ConstraintDialect {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ResponseFormat, Self::StructuredOutputs, Self::Guided, Self::Sglang, Self::Llamacpp];

    /// The word in plans and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResponseFormat => "response_format",
            Self::StructuredOutputs => "structured_outputs",
            Self::Guided => "guided",
            Self::Sglang => "sglang",
            Self::Llamacpp => "llamacpp",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// What our words cost in the server's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenCalibration {
    /// Who counted: `tokenizer`, `server` (its `/tokenize`), `usage` or `estimate`.
    pub source: CalibrationSource,
    /// Tokens that the server adds to every prompt (chat template, first token).
    pub template_tokens: u32,
    /// Tokens that it adds for each further message.
    #[serde(default)]
    pub message_tokens: u32,
    /// Tokens of each unit of the built-in vocabulary, one digit each in its order; 0 is unusable.
    pub costs: String,
}

/// Who counted the tokens of our words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationSource {
    /// A tokenizer in this process.
    Tokenizer,
    /// The server's `/tokenize`.
    Server,
    /// `usage.prompt_tokens` of small requests.
    Usage,
    /// Not calibrated: one word counts as one token.
    Estimate,
}

impl CalibrationSource {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::Server => "server",
            Self::Usage => "usage",
            Self::Estimate => "estimate",
        }
    }
}

/// One class of traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassPlan {
    /// Its name in every breakdown.
    pub name: String,
    /// Its weight among the classes.
    #[serde(default = "default_one")]
    pub share: f64,
    /// Another model than the run's: a LoRA adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where prompts and lengths come from.
    pub source: SourcePlan,
    /// What several prompts have in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<PrefixPlan>,
    /// Conversations instead of single prompts; only with synthetic text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionPlan>,
    /// Images in addition to the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImagesPlan>,
    /// Constraints on answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<StructuredPlan>,
}

fn default_one() -> f64 {
    1.0
}

impl WorkloadPlan {
    /// A workload of one class, with nothing special about it.
    pub fn new(class: ClassPlan) -> Self {
        Self {
            name: class.name.clone(),
            output: OutputLength::Limit,
            tokenizer: None,
            count_with: None,
            skip_invalid: false,
            session_header: None,
            constraints: ConstraintDialect::default(),
            reset_cache: false,
            cache_block: default_cache_block(),
            save_text: false,
            calibration: None,
            classes: vec![class],
        }
    }
}

impl ClassPlan {
    /// Single prompts of generated text.
    pub fn synthetic(name: &str, input: LengthDistribution, output: LengthDistribution) -> Self {
        Self {
            name: name.to_owned(),
            share: 1.0,
            model: None,
            source: SourcePlan::Synthetic { input, output },
            prefix: None,
            session: None,
            images: None,
            structured: None,
        }
    }
}

/// Where prompts and lengths come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourcePlan {
    /// Generated text of drawn lengths.
    Synthetic {
        /// Prompt lengths in tokens.
        input: LengthDistribution,
        /// Answer lengths in tokens.
        output: LengthDistribution,
    },
    /// Generated text; lengths are pairs of a CSV file (input, output), drawn together.
    Pairs {
        /// The file.
        file: String,
    },
    /// Prompts of a file.
    Dataset(DatasetPlan),
    /// Instants, lengths and shared blocks of a recorded trace.
    Trace(TracePlan),
    /// Sessions that `goodput workload make` wrote, byte for byte.
    Frozen {
        /// The file.
        file: String,
        /// SHA-256 of the file, once it was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
}

/// Prompts of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct DatasetPlan {
    /// The file or folder.
    pub file: String,
    /// Its form; found out by name and content when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Column or field of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_column: Option<String>,
    /// Column or field of the answer's length, or of the answer itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_column: Option<String>,
    /// Entries to take; all that the run needs when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u64>,
    /// Whether entries are taken in the order of the file instead of at random.
    pub in_order: bool,
    /// Answer length instead of the file's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<LengthDistribution>,
    /// Shortest prompt, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_input: Option<u32>,
    /// Longest prompt, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u32>,
    /// Shortest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_output: Option<u32>,
    /// Longest prompt and answer together, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total: Option<u32>,
    /// Turns of a conversation to play; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Pause before each later turn, where the file has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Delay>,
    /// What stands for the assistant's side.
    pub history: History,
    /// SHA-256 of the file, once it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A recorded trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePlan {
    /// The file.
    pub file: String,
    /// Its form; found out by name and content when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Seconds of the trace to leave out at its beginning.
    #[serde(default)]
    pub start_s: f64,
    /// Seconds of the trace to play.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_s: Option<f64>,
    /// Tokens of one block of `hash_ids`; the format's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_tokens: Option<u32>,
    /// SHA-256 of the file, once it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// How it is read where it is a server's access log.
    #[serde(default, skip_serializing_if = "LogPlan::is_default")]
    pub log: LogPlan,
}

/// How an access log is read as a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct LogPlan {
    /// The server's `log_format`; nginx's `combined` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Variable that holds the tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens_field: Option<String>,
    /// Variable that holds the tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens_field: Option<String>,
    /// Bytes of a request, or of an answer in one piece, that make a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_token: Option<f64>,
    /// Bytes of a streamed answer that make a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_bytes_per_token: Option<f64>,
    /// Tokens of a prompt where the log says nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assume_input_tokens: Option<u32>,
}

impl LogPlan {
    /// Whether nothing is asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What several prompts have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefixPlan {
    /// Tokens of a system prompt that all requests of the class share.
    #[serde(default)]
    pub system_tokens: u32,
    /// A further shared beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedPlan>,
}

/// How the beginnings of prompts are shared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SharedPlan {
    /// Groups of requests, each with a beginning of its own.
    Groups {
        /// How many groups.
        groups: u32,
        /// Tokens of the shared beginning.
        tokens: u32,
        /// Popularity of the groups: rank to this negative power; 0 is even.
        #[serde(default)]
        zipf: f64,
    },
    /// So much of each prompt comes from the cache, once it is warm: the shared part is cut to the
    /// cache's blocks.
    HitRate {
        /// Between 0 and 1.
        share: f64,
        /// Groups that share it.
        groups: u32,
    },
    /// Contexts one after another in a circle, each with a fresh question behind it: a cache that
    /// holds fewer than all of them evicts at a known rate.
    Tiling {
        /// How many contexts.
        contexts: u32,
        /// Tokens of each.
        tokens: u32,
    },
    /// The whole prompt is one of this many: a warm cache answers all but the last block.
    Repeat {
        /// How many different prompts.
        prompts: u32,
    },
}

/// Conversations of generated text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    /// Turns of a session.
    pub turns: LengthDistribution,
    /// Pause between an answer and the next turn.
    pub think: Delay,
    /// Tokens that each turn after the first adds; the class's prompt lengths when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_input: Option<LengthDistribution>,
    /// What stands for the assistant's side.
    #[serde(default)]
    pub history: History,
    /// Tool calls between turns: the agent's shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolsPlan>,
}

/// An agent's tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsPlan {
    /// Tool calls of one turn before its answer.
    pub calls: LengthDistribution,
    /// How long a tool works.
    pub delay: Delay,
    /// Tokens of a tool's result.
    pub result: LengthDistribution,
    /// Requests in addition to the main one at each tool step: sub-agents.
    #[serde(default)]
    pub fan_out: u32,
    /// Whether results go in messages of the role `tool` instead of `user`; not every chat template
    /// knows it.
    #[serde(default)]
    pub tool_role: bool,
}

/// Images in addition to the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagesPlan {
    /// Images of one request.
    pub count: u32,
    /// A folder with images; generated noise when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Pixels across.
    #[serde(default)]
    pub width: u32,
    /// Pixels down.
    #[serde(default)]
    pub height: u32,
    /// `png` or `jpeg`.
    #[serde(default)]
    pub format: ImageFormat,
    /// Different images; they are encoded once and shared.
    #[serde(default = "default_pool")]
    pub pool: u32,
}

fn default_pool() -> u32 {
    16
}

/// How generated images are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// Lossy, as cameras do.
    #[default]
    Jpeg,
    /// Lossless.
    Png,
}

/// Constraints on answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructuredPlan {
    /// Share of requests under a constraint, between 0 and 1.
    pub share: f64,
    /// `json`, `regex`, `choice` or `grammar`.
    pub kind: String,
    /// The schema, expression, choices (one per line) or grammar; a built-in one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn lengths(text: &str) -> LengthDistribution {
        text.parse().unwrap()
    }

    fn class(name: &str, source: SourcePlan) -> ClassPlan {
        let mut class =
            ClassPlan::synthetic(name, LengthDistribution::Fixed(1), LengthDistribution::Fixed(1));
        (class.share, class.source) = (0.5, source);
        class
    }

    fn chat() -> ClassPlan {
        let input = lengths("lognormal:500:0.8:50:4000");
        let mut chat = class("chat", SourcePlan::Synthetic { input, output: lengths("9") });
        chat.prefix = Some(PrefixPlan {
            system_tokens: 100,
            shared: Some(SharedPlan::Groups { groups: 8, tokens: 512, zipf: 1.0 }),
        });
        chat.session = Some(SessionPlan {
            turns: lengths("uniform:2:6"),
            think: "exp:5s".parse().unwrap(),
            turn_input: Some(lengths("40")),
            history: History::Dataset,
            tools: Some(ToolsPlan {
                calls: lengths("2"),
                delay: "500ms".parse().unwrap(),
                result: lengths("exp:300"),
                fan_out: 2,
                tool_role: false,
            }),
        });
        chat
    }

    fn sharegpt() -> ClassPlan {
        let plan = DatasetPlan { file: "s.json".to_owned(), ..DatasetPlan::default() };
        let mut data = class("sharegpt", SourcePlan::Dataset(plan));
        data.structured = Some(StructuredPlan { share: 0.5, kind: "json".to_owned(), text: None });
        data.images = Some(ImagesPlan {
            count: 1,
            folder: None,
            width: 640,
            height: 480,
            format: ImageFormat::Png,
            pool: 16,
        });
        data
    }

    fn trace() -> ClassPlan {
        let plan = TracePlan {
            file: "t.jsonl".to_owned(),
            format: Some("mooncake".to_owned()),
            start_s: 10.0,
            length_s: Some(60.0),
            block_tokens: None,
            sha256: None,
            log: LogPlan { bytes_per_token: Some(3.5), ..LogPlan::default() },
        };
        class("trace", SourcePlan::Trace(plan))
    }

    /// A plan with every kind of source, prefix and shape in it.
    pub(crate) fn everything() -> WorkloadPlan {
        WorkloadPlan {
            name: "mix".to_owned(),
            output: OutputLength::Exact,
            tokenizer: Some("o200k_base".to_owned()),
            count_with: None,
            skip_invalid: true,
            session_header: Some("x-session-id".to_owned()),
            constraints: ConstraintDialect::Guided,
            reset_cache: true,
            cache_block: 128,
            save_text: false,
            calibration: Some(TokenCalibration {
                source: CalibrationSource::Usage,
                template_tokens: 11,
                message_tokens: 5,
                costs: "1121".to_owned(),
            }),
            classes: vec![chat(), sharegpt(), trace()],
        }
    }
}
