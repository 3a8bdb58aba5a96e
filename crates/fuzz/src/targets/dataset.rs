//! Datasets and traces of every form, pairs of lengths, frozen workloads.

use std::path::Path;
use std::time::Duration;

use goodput_dataset::{
    ConvertTarget as Form, DatasetFormat, DatasetOptions, Loaded, TraceFormat, TraceSelection,
    convert, file_kind, frozen, load_dataset, load_numbers, load_pairs, load_trace,
};

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, check_same, text_seeds};

/// Readers have buffers of their own, and Parquet's codecs tables.
const LIMITS: InputLimits =
    InputLimits { bytes: 8 << 20, per_byte: 256, time: Duration::from_secs(4) };

/// A page may unpack to much more than it takes on disk, up to what one row may hold.
const PACKED: InputLimits =
    InputLimits { bytes: 80 << 20, per_byte: 256, time: Duration::from_secs(4) };

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "dataset-json",
            seeds: || text_seeds(&JSON),
            words: &WORDS,
            check: |case| {
                let forms =
                    [DatasetFormat::Sharegpt, DatasetFormat::Messages, DatasetFormat::Prompts];
                fuzz_datasets(case, "set.jsonl", &forms)
            },
            limits: LIMITS,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "dataset-csv",
            seeds: || text_seeds(&TABLES),
            words: &["prompt,", "output_len", "\"", "\"\"", ";", "\t", "1,2\n"],
            check: |case| {
                fuzz_datasets(case, "set.csv", &[DatasetFormat::Csv, DatasetFormat::Text])?;
                let path = case.scratch.write_file("pairs.csv", case.input)?;
                drop(load_pairs(&path));
                drop(load_numbers(&path, &["input", "output"]));
                Ok(())
            },
            limits: LIMITS,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "dataset-parquet",
            seeds: parquet_seeds,
            words: &["PAR1", "prompt", "conversations"],
            check: |case| fuzz_datasets(case, "set.parquet", &[DatasetFormat::Parquet]),
            limits: PACKED,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "trace-lines",
            seeds: || text_seeds(&TRACES),
            words: &WORDS,
            check: |case| fuzz_traces(case, "trace.jsonl", &LINES),
            limits: LIMITS,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "trace-tables",
            seeds: || text_seeds(&TABLES),
            words: &[
                "TIMESTAMP,ContextTokens,GeneratedTokens\n",
                "2023-11-16 18:15:46.6805900,",
                "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
                "T",
                "Z",
                "+00:00",
                "9999-12-31",
            ],
            check: |case| {
                fuzz_traces(case, "trace.csv", &[TraceFormat::Azure, TraceFormat::Burstgpt])
            },
            limits: LIMITS,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "trace-nginx",
            seeds: || text_seeds(&NGINX),
            words: &[
                "\"POST /v1/chat/completions HTTP/1.1\"",
                "[",
                "]",
                "text/event-stream",
                " - ",
            ],
            check: |case| fuzz_traces(case, "access.log", &[TraceFormat::Nginx]),
            limits: LIMITS,
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "frozen",
            seeds: || vec![include_bytes!("../../corpus/frozen.jsonl").to_vec()],
            words: &[
                "\"schema\":\"goodput.workload/1\"",
                "\"sha256\":",
                "\"steps\":[",
                "\"pool\":",
            ],
            check: |case| {
                let path = case.scratch.write_file("frozen.jsonl", case.input)?;
                drop(file_kind(&path));
                drop(frozen::read_header(&path));
                drop(frozen::read_frozen(&path));
                Ok(())
            },
            limits: LIMITS,
            short: SHORT / 2,
        },
    ]
}

/// Traces with an object on each line.
const LINES: [TraceFormat; 5] = [
    TraceFormat::Mooncake,
    TraceFormat::Bailian,
    TraceFormat::Goodput,
    TraceFormat::Litellm,
    TraceFormat::Otel,
];

const WORDS: [&str; 30] = [
    "\"conversations\":[",
    "{\"from\":\"human\",\"value\":\"a\"}",
    "{\"from\":\"gpt\",\"value\":\"b\"}",
    "\"messages\":[",
    "{\"role\":\"user\",\"content\":\"a\"}",
    "\"role\":\"assistant\"",
    "\"type\":\"image_url\"",
    "\"prompt\":",
    "\"max_tokens\":",
    "\"output_tokens\":",
    "\"timestamp\":",
    "\"input_length\":",
    "\"output_length\":",
    "\"hash_ids\":[",
    "\"chat_id\":",
    "\"parent_chat_id\":-1",
    "\"turn\":",
    "{\"schema\":\"goodput.trace/1\",\"block_tokens\":16}\n",
    "\"at\":",
    "\"input_tokens\":",
    "\"blocks\":",
    "\"after\":",
    "\"gaps\":",
    "\"startTime\":",
    "\"endTime\":",
    "\"prompt_tokens\":",
    "\"startTimeUnixNano\":\"",
    "\"attributes\":[",
    "\"stringValue\":",
    "\"intValue\":",
];

const JSON: [&str; 6] = [
    "[{\"id\":\"a\",\"conversations\":[{\"from\":\"human\",\"value\":\"hello there\"},{\"from\":\"gpt\",\"value\":\"hi\"}]}]",
    "{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"},{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"}]}\n",
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}],\"max_tokens\":5}\n",
    "{\"custom_id\":\"1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_completion_tokens\":4}}\n",
    "{\"prompt\":\"a b c\",\"output_tokens\":3,\"answer\":\"x\"}\n{\"prompt\":\"d\"}\n",
    "{\"question\":\"why\",\"output_len\":2}\n",
];

const TABLES: [&str; 6] = [
    "prompt,output_len\n\"a, b\",3\nc,4\n",
    "input,output\n5,6\n7,8\n",
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50,1,2\n",
    "2024-05-10 00:00:00.009930+00:00,2162,5\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,1087,230,1317,API log\n",
    "one prompt\nanother prompt\n\nlast",
];

const TRACES: [&str; 6] = [
    "{\"timestamp\":5,\"input_length\":600,\"output_length\":3,\"hash_ids\":[1,2]}\n{\"timestamp\":9,\"input_length\":1200,\"output_length\":1,\"hash_ids\":[1,2,3]}\n",
    "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0.5,\"input_length\":20,\"output_length\":4,\"type\":\"text\",\"turn\":1,\"hash_ids\":[7,8]}\n{\"chat_id\":2,\"parent_chat_id\":1,\"timestamp\":3.5,\"input_length\":40,\"output_length\":4,\"type\":\"text\",\"turn\":2,\"hash_ids\":[7,8,9]}\n",
    "{\"schema\":\"goodput.trace/1\",\"block_tokens\":16,\"tokenizer\":\"cl100k_base\",\"started\":\"2026-11-16T09:00:00Z\"}\n{\"at\":1.5,\"input_tokens\":40,\"output_tokens\":4,\"session\":\"s\",\"class\":\"chat\",\"blocks\":[1,2,3],\"took\":2.5,\"ttft\":0.5,\"gaps\":[1000,2000],\"status\":200,\"finish\":\"stop\",\"model\":\"m\"}\n{\"at\":5,\"input_tokens\":60,\"output_tokens\":4,\"session\":\"s\",\"after\":1}\n",
    "{\"id\":\"c\",\"trace_id\":\"t\",\"call_type\":\"acompletion\",\"status\":\"success\",\"prompt_tokens\":100,\"completion_tokens\":20,\"startTime\":1794820145.25,\"endTime\":1794820146.5,\"completionStartTime\":1794820145.5,\"model_group\":\"m\"}\n{\"call_type\":\"acompletion\",\"status\":\"success\",\"prompt_tokens\":1,\"completion_tokens\":2,\"startTime\":\"2026-11-16T09:09:05Z\",\"endTime\":\"2026-11-16T09:09:06Z\"}\n",
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"b7ad6b7169203331\",\"name\":\"chat m\",\"startTimeUnixNano\":\"1794820145000000000\",\"endTimeUnixNano\":\"1794820146000000000\",\"attributes\":[{\"key\":\"gen_ai.operation.name\",\"value\":{\"stringValue\":\"chat\"}},{\"key\":\"gen_ai.usage.input_tokens\",\"value\":{\"intValue\":\"100\"}},{\"key\":\"gen_ai.usage.output_tokens\",\"value\":{\"intValue\":20}}]}]}]}]}\n",
    "{\"at\":0,\"input_tokens\":1,\"output_tokens\":1}",
];

const NGINX: [&str; 2] = [
    "1794820145.500 0.250 200 4000 2500 \"POST /v1/chat/completions HTTP/1.1\" \"text/event-stream\"\n1794820150.125 5.125 200 10 800 \"POST /v1/completions HTTP/1.1\" \"application/json\"\n",
    "192.0.2.7 - ann [16/Nov/2026:09:09:05 +0000] \"POST /v1/chat/completions HTTP/1.1\" 200 512 \"-\" \"curl/8\"\n",
];

fn parquet_seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../corpus/prompts-plain.parquet").to_vec(),
        include_bytes!("../../corpus/prompts-zstd.parquet").to_vec(),
        include_bytes!("../../corpus/prompts-snappy.parquet").to_vec(),
        include_bytes!("../../corpus/prompts-gzip.parquet").to_vec(),
        include_bytes!("../../corpus/prompts-lz4.parquet").to_vec(),
        include_bytes!("../../corpus/prompts-brotli.parquet").to_vec(),
        include_bytes!("../../corpus/talks.parquet").to_vec(),
        include_bytes!("../../corpus/page-of-768-mib.parquet").to_vec(),
    ]
}

/// One token for each word: a tokenizer is another target.
fn count_words(text: &str) -> u32 {
    u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
}

fn fuzz_datasets(
    case: &ParserInput<'_>,
    name: &str,
    forms: &[DatasetFormat],
) -> Result<(), String> {
    let path = case.scratch.write_file(name, case.input)?;
    drop(file_kind(&path));
    for format in forms.iter().copied().map(Some).chain([None]) {
        for skip_invalid in [false, true] {
            let min_input = skip_invalid.then_some(2);
            let options = DatasetOptions {
                format,
                sample: 8,
                min_input,
                skip_invalid,
                ..DatasetOptions::default()
            };
            match load_dataset(&path, &options, &count_words) {
                Ok(loaded) if loaded.entries.is_empty() || loaded.entries.len() > 8 => {
                    return Err(format!("{} entries of 8 at most", loaded.entries.len()));
                }
                Ok(loaded) => check_rewritten(case, &loaded)?,
                Err(error) => drop(error.to_string()),
            }
        }
    }
    Ok(())
}

fn fuzz_traces(case: &ParserInput<'_>, name: &str, forms: &[TraceFormat]) -> Result<(), String> {
    let path = case.scratch.write_file(name, case.input)?;
    drop(file_kind(&path));
    for format in forms.iter().copied().map(Some).chain([None]) {
        for skip_invalid in [false, true] {
            let options = TraceSelection { format, skip_invalid, ..TraceSelection::default() };
            match load_trace(&path, &options) {
                Ok(loaded) if !loaded.entries.is_sorted_by_key(|entry| entry.at) => {
                    return Err("a trace that runs backwards".to_owned());
                }
                Ok(loaded) => check_rewritten(case, &loaded)?,
                Err(error) => drop(error.to_string()),
            }
        }
    }
    Ok(())
}

/// Whatever was loaded can be written in every form; our own form reads back what it says.
fn check_rewritten(case: &ParserInput<'_>, loaded: &Loaded) -> Result<(), String> {
    for form in Form::ALL {
        let mut out = Vec::new();
        let converted = convert(loaded, form, &mut out);
        let converted = converted.map_err(|error| format!("{}: {error}", form.name()))?;
        if form != Form::Goodput || converted.written == 0 {
            continue;
        }
        let path = case.scratch.write_file("written.jsonl", &out)?;
        let again = read_own(&path)?;
        let mut twice = Vec::new();
        convert(&again, form, &mut twice).map_err(|error| format!("again: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        check_same("written and read again", &text(&twice), &text(&out))?;
    }
    Ok(())
}

fn read_own(path: &Path) -> Result<Loaded, String> {
    let options =
        TraceSelection { format: Some(TraceFormat::Goodput), ..TraceSelection::default() };
    load_trace(path, &options).map_err(|error| format!("what was written: {error}"))
}
