//! What is made of the logs that people have.

mod arbitrary;
mod litellm;
mod nginx;
mod otel;

use crate::common::{file, message};
use goodput_dataset::{ConvertTarget, Loaded, TraceFormat, TraceSelection, convert, load_trace};
use goodput_model::{LogPlan, Nanos};

/// The options of a form.
fn options(format: TraceFormat) -> TraceSelection {
    TraceSelection { format: Some(format), ..TraceSelection::default() }
}

fn load(name: &str, content: impl AsRef<[u8]>, options: &TraceSelection) -> Result<Loaded, String> {
    load_trace(&file(name, content).path, options).map_err(|error| message(&error))
}

/// Instant in milliseconds, prompt and answer of each request.
fn requests(loaded: &Loaded) -> Vec<(f64, u32, u32)> {
    let request = |entry: &goodput_dataset::DatasetEntry| {
        let turn = &entry.turns[0];
        let at = entry.at.unwrap().as_ms();
        (at, turn.input_tokens.unwrap(), turn.output_tokens.unwrap())
    };
    loaded.entries.iter().map(request).collect()
}

fn sessions(loaded: &Loaded) -> Vec<Option<&str>> {
    loaded.entries.iter().map(|entry| entry.session.as_deref()).collect()
}

fn classes(loaded: &Loaded) -> Vec<Option<&str>> {
    loaded.entries.iter().map(|entry| entry.class.as_deref()).collect()
}

fn took(loaded: &Loaded) -> Vec<Option<f64>> {
    loaded.entries.iter().map(|entry| entry.turns[0].took.map(Nanos::as_ms)).collect()
}

/// Everything that goodput writes of a file, or says of it.
fn written(loaded: &Loaded) -> String {
    let mut text = format!("{loaded:?}");
    for target in ConvertTarget::ALL {
        let mut out = Vec::new();
        convert(loaded, target, &mut out).unwrap();
        text.push_str(&String::from_utf8(out).unwrap());
    }
    text
}

/// An access log of nginx that was written by this format.
fn nginx(format: &str) -> TraceSelection {
    let log = LogPlan { format: Some(format.to_owned()), ..LogPlan::default() };
    TraceSelection { log, ..options(TraceFormat::Nginx) }
}

#[test]
fn packed_logs_are_refused_with_a_word_on_what_to_do() {
    for format in [TraceFormat::Litellm, TraceFormat::Nginx, TraceFormat::Otel] {
        let mut options = options(format);
        options.log.assume_input_tokens = Some(1);
        options.log.answer_bytes_per_token = Some(1.0);
        let refused = load("x.gz", b"\x1f\x8b\x08\x00abc", &options).unwrap_err();
        assert!(refused.contains("is compressed with gzip"), "{refused}");
        assert!(load("x", "", &options).unwrap_err().contains("empty"));
    }
}
