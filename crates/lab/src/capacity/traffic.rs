//! Reading the load over time.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use goodput_campaign::capacity::{Expected, Refused, Traffic};
use goodput_dataset::{DatasetEntry, TraceSelection, load_numbers, load_trace};
use goodput_model::Nanos;

use super::refusal_error;
use crate::error::{Failed, dataset_failed};

const HINT: &str = "a table has the columns `time_s,rps` or `hour,rps`; a trace has a timestamp on each line (goodput, Mooncake, BurstGPT, Azure)";

/// A load over time, and what is known of its requests.
pub struct TrafficLoad {
    /// Rates over time.
    pub traffic: Traffic,
    /// Tokens of a prompt and of an answer, where the file says.
    tokens: Option<(f64, f64)>,
    /// What the reader has to say.
    pub(super) notes: Vec<String>,
}

impl TrafficLoad {
    /// A day as a sine, with its peak at this hour.
    pub fn diurnal(peak: f64, trough: f64, peak_hour: f64) -> Result<Self, Failed> {
        let traffic = Traffic::diurnal(peak, trough, peak_hour).map_err(refusal_error)?;
        Ok(Self { traffic, tokens: None, notes: Vec::new() })
    }

    /// A table of rates, or a trace of requests.
    pub fn open(path: &Path) -> Result<Self, Failed> {
        let head = first_line(path)?;
        let columns: Vec<String> =
            head.split([',', '\t', ';']).map(|name| name.trim().to_ascii_lowercase()).collect();
        let has = |name: &str| columns.iter().any(|column| column == name);
        if has("rps") {
            let (time, unit) = if has("hour") { ("hour", 3600.0) } else { ("time_s", 1.0) };
            return read_table(path, time, unit);
        }
        read_trace(path)
    }

    /// Says where requests of another size are taken to be carried as the measured ones.
    pub(super) fn mix_warning(&self, here: &Expected) -> Option<String> {
        let (input, output) = self.tokens?;
        let measured = (here.input_tokens?, here.output_tokens?);
        let differs = |a: f64, b: f64| !(0.9..=1.1).contains(&(a / b));
        (differs(input, measured.0) || differs(output, measured.1)).then(|| {
            format!(
                "the trace's requests average {input:.0} input and {output:.0} output tokens, the \
                 measured ones {:.0} and {:.0}: how much of this mix a replica carries was not \
                 measured",
                measured.0, measured.1
            )
        })
    }
}

/// The beginning of the first line that says something; empty if it is not text.
fn first_line(path: &Path) -> Result<String, Failed> {
    let unreadable = |error: std::io::Error| {
        Failed::usage(format!("`{}` cannot be read: {error}", path.display())).hint(HINT)
    };
    let file = BufReader::new(goodput_files::open(path).map_err(unreadable)?.take(64 << 10));
    for line in file.split(b'\n') {
        let line = line.map_err(unreadable)?;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() {
            return Ok(text.to_owned());
        }
    }
    Ok(String::new())
}

fn read_table(path: &Path, time: &str, unit: f64) -> Result<TrafficLoad, Failed> {
    let columns =
        load_numbers(path, &[time, "rps"]).map_err(|error| dataset_failed(&error).or_hint(HINT))?;
    let rows: Vec<(f64, f64)> = match columns.as_slice() {
        [times, rates] => times.iter().map(|at| at * unit).zip(rates.iter().copied()).collect(),
        _ => Vec::new(),
    };
    let traffic = Traffic::from_rates(&rows).map_err(|refused| with_path(path, refused))?;
    Ok(TrafficLoad { traffic, tokens: None, notes: Vec::new() })
}

fn read_trace(path: &Path) -> Result<TrafficLoad, Failed> {
    let loaded = load_trace(path, &TraceSelection::default())
        .map_err(|error| dataset_failed(&error).or_hint(HINT))?;
    let instants: Vec<f64> =
        loaded.entries.iter().filter_map(|entry| entry.at).map(Nanos::as_secs).collect();
    let traffic = Traffic::from_arrivals(&instants).map_err(|refused| with_path(path, refused))?;
    Ok(TrafficLoad { traffic, tokens: mean_tokens(&loaded.entries), notes: loaded.notes })
}

/// Mean lengths, where every entry states them.
fn mean_tokens(entries: &[DatasetEntry]) -> Option<(f64, f64)> {
    let (mut input, mut output, mut count) = (0.0, 0.0, 0.0);
    for turn in entries.iter().flat_map(|entry| &entry.turns) {
        input += f64::from(turn.input_tokens?);
        output += f64::from(turn.output_tokens?);
        count += 1.0;
    }
    (count > 0.0).then(|| (input / count, output / count))
}

fn with_path(path: &Path, refused: Refused) -> Failed {
    let what = format!("`{}` {}", path.display(), refused.what);
    Failed::usage(what).hint(refused.hint.unwrap_or_else(|| HINT.to_owned()))
}
