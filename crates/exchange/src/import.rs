//! Result files of other tools, read into [`Reported`]. Unknown fields are ignored, missing ones are
//! missing, and a field of the wrong type is an error that names it.

mod aiperf;
mod fields;
mod flat;
mod guidellm;
mod repair;
mod setup;
mod sglang;
mod vllm;

use std::io;
use std::path::{Path, PathBuf};

use goodput_model::{Reported, SourceTool, safe_excerpt};
use serde_json::value::RawValue;

pub use fields::FieldError;
use fields::ImportFields;

/// Larger files are refused: nothing that is understood here is that long.
const MAX_BYTES: u64 = 2 << 30;

/// What is understood, for errors and help.
pub const UNDERSTOOD: &str = "results of `vllm bench serve` and `vllm-bench` (--save-result), SGLang \
     bench_serving (.jsonl), AIPerf (profile_export_aiperf.json), GenAI-Perf \
     (profile_export_genai_perf.json) and GuideLLM (benchmarks.json)";

/// Why a result file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be opened or read.
    #[error("cannot read `{path}`: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is not JSON.
    #[error("`{path}` is not JSON: {error}")]
    NotJson {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        error: String,
    },
    /// It is JSON, but not a known result.
    #[error("`{path}`{place} is not a result that goodput can read; its first fields are {found}")]
    Unknown {
        /// Which file.
        path: PathBuf,
        /// Which of the values in it.
        place: String,
        /// What it holds instead.
        found: String,
    },
    /// A field has the wrong type.
    #[error("`{path}`{place}, read as a result of {tool}: {error}")]
    Field {
        /// Which file.
        path: PathBuf,
        /// Which of the values in it.
        place: String,
        /// Who is believed to have written it.
        tool: &'static str,
        /// Which field, and what is wrong.
        error: Box<FieldError>,
    },
}

/// The runs of a result file, in its order.
pub fn read_results(path: &Path) -> Result<Vec<Reported>, ImportError> {
    let io = |error| ImportError::Io { path: path.to_owned(), error };
    parse_results(path, &goodput_files::read(path, MAX_BYTES).map_err(io)?)
}

/// The runs that `bytes` holds; `path` is for errors.
pub fn parse_results(path: &Path, bytes: &[u8]) -> Result<Vec<Reported>, ImportError> {
    let not_json = |error: String| ImportError::NotJson { path: path.to_owned(), error };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (bytes, not_finite) = repair::repair_json(bytes);
    let mut runs = Vec::new();
    for value in serde_json::Deserializer::from_slice(&bytes).into_iter::<&RawValue>() {
        let value = value.map_err(|error| not_json(error.to_string()))?;
        // A list of runs is what sweeps of vLLM write.
        match serde_json::from_str::<Vec<&RawValue>>(value.get()) {
            Ok(list) if value.get().starts_with('[') => runs.extend(list),
            _ => runs.push(value),
        }
    }
    if runs.is_empty() {
        return Err(not_json("it is empty".to_owned()));
    }
    let several = runs.len() > 1;
    let mut results = Vec::new();
    for (index, raw) in runs.into_iter().enumerate() {
        let place = if several { format!(", result {}", index + 1) } else { String::new() };
        results.extend(read_value(path, &place, raw)?);
    }
    let siblings = results.len() as u64 - 1;
    for (index, result) in results.iter_mut().enumerate() {
        result.siblings = siblings;
        result.not_finite += not_finite;
        if siblings > 0 && result.label.is_empty() {
            result.label = format!("{} of {}", index + 1, siblings + 1);
        }
    }
    Ok(results)
}

/// One value of a file; several runs where its tool puts them into one.
fn read_value(path: &Path, place: &str, raw: &RawValue) -> Result<Vec<Reported>, ImportError> {
    let unknown = |found: String| ImportError::Unknown {
        path: path.to_owned(),
        place: place.to_owned(),
        found,
    };
    let Ok(fields) = ImportFields::parse(raw, "") else {
        return Err(unknown(format!("none: it begins with {}", safe_excerpt(raw.get()))));
    };
    let Some(tool) = detect_tool(&fields) else {
        let names: Vec<_> = fields.names().take(5).map(|name| format!("`{name}`")).collect();
        return Err(unknown(safe_excerpt(&names.join(", "))));
    };
    let outcome = match tool {
        SourceTool::VllmPython | SourceTool::VllmRust => {
            vllm::read_run(&fields, tool).map(|run| vec![run])
        }
        SourceTool::Sglang => sglang::read_run(&fields).map(|run| vec![run]),
        SourceTool::Aiperf | SourceTool::GenaiPerf => {
            aiperf::read_run(&fields, tool).map(|run| vec![run])
        }
        SourceTool::Guidellm => guidellm::read_runs(&fields),
        // Runs of ours are folders.
        SourceTool::Goodput => {
            return Err(unknown("those of goodput; pass the run folder".to_owned()));
        }
    };
    let count = |mut runs: Vec<Reported>| {
        for run in &mut runs {
            run.not_finite = fields.infinite_count();
        }
        runs
    };
    outcome.map(count).map_err(|error| ImportError::Field {
        path: path.to_owned(),
        place: place.to_owned(),
        tool: tool.name(),
        error: Box::new(error),
    })
}

/// Who wrote it, by the fields that only they write.
fn detect_tool(fields: &ImportFields<'_>) -> Option<SourceTool> {
    let has = |names: &[&str]| names.iter().all(|name| fields.has_value(name));
    if has(&["benchmarks"]) && (has(&["metadata"]) || has(&["args"]) || has(&["config"])) {
        return Some(SourceTool::Guidellm);
    }
    if has(&["aiperf_version"]) {
        return Some(SourceTool::Aiperf);
    }
    if fields.has_object("request_throughput") || fields.has_object("request_latency") {
        // AIPerf before it wrote its version has this; GenAI-Perf has neither.
        let is_aiperf = has(&["was_cancelled"]) || has(&["error_summary"]);
        return Some(if is_aiperf { SourceTool::Aiperf } else { SourceTool::GenaiPerf });
    }
    if !has(&["completed", "request_throughput"]) {
        return None;
    }
    if has(&["total_output_tokens_retokenized"]) || has(&["dataset_name", "total_throughput"]) {
        return Some(SourceTool::Sglang);
    }
    let is_rust = fields.names().any(|name| matches!(name, "steady_state" | "max_model_len"));
    let is_vllm = has(&["model_id"]) || has(&["num_prompts"]) || has(&["total_token_throughput"]);
    is_vllm.then_some(if is_rust { SourceTool::VllmRust } else { SourceTool::VllmPython })
}
