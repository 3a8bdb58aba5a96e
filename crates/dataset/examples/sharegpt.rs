//! How long a sample of a large ShareGPT file takes, and how much memory.
//!
//! ```text
//! cargo run --release -p goodput-dataset --example sharegpt            # makes 700 MB, samples 1,000
//! cargo run --release -p goodput-dataset --example sharegpt -- FILE 1000
//! ```
//!
//! Without a file it makes one in a temporary folder, samples it in a process of its own, so that
//! the peak is that of the sampling alone, and removes it.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use goodput_dataset::{DatasetOptions, load_dataset};
use goodput_model::random::{Domain, RandomStream};

/// Size of the file that is made.
const BYTES: usize = 700_000_000;
const WORDS: [&str; 12] = [
    "the ",
    "server ",
    "answers\\n\\n",
    "a ",
    "question ",
    "\\\"quoted\\\" ",
    "über ",
    "token ",
    "for ",
    "每个 ",
    "of ",
    "words, ",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else { return make_and_sample() };
    let sample = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    measure(Path::new(&file), sample)
}

fn make_and_sample() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("sharegpt.json");
    make(&file)?;
    let status = Command::new(std::env::current_exe()?).arg(&file).arg("1000").status()?;
    if status.success() { Ok(()) } else { Err("the sampling failed".into()) }
}

/// Conversations of two to ten messages, each of some 20 to 400 words.
fn make(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut written = out.write(b"[")?;
    let mut number = 0;
    while written < BYTES {
        let mut stream = RandomStream::new(1, Domain::Text, number);
        let mut item = if number == 0 { Vec::new() } else { b",\n".to_vec() };
        write!(item, r#"{{"id": "conversation_{number}", "conversations": ["#)?;
        for message in 0..2 + 2 * stream.next_below(5) {
            let from = if message % 2 == 0 { "human" } else { "gpt" };
            let separator = if message == 0 { "" } else { ", " };
            write!(item, r#"{separator}{{"from": "{from}", "value": ""#)?;
            for _ in 0..20 + stream.next_below(380) {
                let word = WORDS.get(stream.next_below(12) as usize).unwrap_or(&"word ");
                item.extend_from_slice(word.as_bytes());
            }
            item.extend_from_slice(b"\"}");
        }
        item.extend_from_slice(b"]}");
        out.write_all(&item)?;
        written += item.len();
        number += 1;
    }
    out.write_all(b"]\n")?;
    out.flush()?;
    Ok(())
}

fn measure(path: &Path, sample: u64) -> Result<(), Box<dyn Error>> {
    let options = DatasetOptions {
        sample,
        seed: 1,
        min_input: Some(4),
        min_output: Some(4),
        max_input: Some(1024),
        max_total: Some(2048),
        ..DatasetOptions::default()
    };
    let begin = goodput_clock::now();
    let loaded = load_dataset(path, &options, &|text| (text.len() / 4) as u32)?;
    let seconds = (goodput_clock::now() - begin).as_secs();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    writeln!(
        std::io::stdout(),
        "{} of {} entries in {seconds:.2} s, {peak}\nskipped: {:?}\nsha256: {}",
        loaded.entries.len(),
        loaded.seen,
        loaded.skipped,
        loaded.sha256
    )?;
    Ok(())
}
