//! Ids for the check against other implementations: reads lines `{"tokenizer": …, "text": …}`, a
//! built-in name or a file, and writes the ids of each as a line of JSON, or `null` for an error.
//!
//! `ids dump NAME` writes a built-in vocabulary as a `.tiktoken` file; `ids speed TOKENIZER FILE`
//! counts a file again and again and says how fast.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;

use base64::Engine as _;
use goodput_tokens::Tokenizer;

#[derive(serde::Deserialize)]
struct Line {
    tokenizer: String,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["dump", name] => dump(name),
        ["speed", name, file] => speed(name, file),
        _ => encode(),
    }
}

fn open(name: &str) -> Result<Tokenizer, Box<dyn Error>> {
    match Tokenizer::builtin(name) {
        Some(tokenizer) => Ok(tokenizer),
        None => Ok(Tokenizer::from_file(Path::new(name))?),
    }
}

fn encode() -> Result<(), Box<dyn Error>> {
    let mut open_ones = HashMap::new();
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line: Line = serde_json::from_str(&line?)?;
        if !open_ones.contains_key(&line.tokenizer) {
            open_ones.insert(line.tokenizer.clone(), open(&line.tokenizer)?);
        }
        let tokenizer = open_ones.get(&line.tokenizer).ok_or("no tokenizer")?;
        let ids = tokenizer.encode(&line.text).ok();
        if let Some(ids) = &ids {
            assert_eq!(tokenizer.count(&line.text)? as usize, ids.len(), "count and ids differ");
        }
        writeln!(out, "{}", serde_json::to_string(&ids)?)?;
    }
    Ok(())
}

fn dump(name: &str) -> Result<(), Box<dyn Error>> {
    let (ranks, highest) = match name {
        "cl100k_base" => (tiktoken_rs::cl100k_base_singleton(), 100_255),
        "o200k_base" => (tiktoken_rs::o200k_base_singleton(), 199_997),
        "p50k_base" => (tiktoken_rs::p50k_base_singleton(), 50_280),
        "r50k_base" => (tiktoken_rs::r50k_base_singleton(), 50_255),
        _ => return Err("no such vocabulary".into()),
    };
    let mut out = stdout().lock();
    for rank in 0..=highest {
        // p50k_base has a gap where its special token is.
        if name == "p50k_base" && rank == 50_256 {
            continue;
        }
        let token = ranks.decode_bytes(&[rank]).map_err(|error| error.to_string())?;
        writeln!(out, "{} {rank}", base64::engine::general_purpose::STANDARD.encode(token))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this crate must not see the clock's")]
fn speed(name: &str, file: &str) -> Result<(), Box<dyn Error>> {
    const TIMES: u32 = 5;
    let tokenizer = open(name)?;
    let text = std::fs::read_to_string(file)?;
    let begin = std::time::Instant::now();
    let mut tokens = 0u64;
    for _ in 0..TIMES {
        // As texts of an answer's size.
        for part in text.split_inclusive("\n\n") {
            tokens += u64::from(tokenizer.count(part)?);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let megabytes = text.len() as f64 * f64::from(TIMES) / 1e6;
    writeln!(stdout(), "{tokens} tokens, {:.2} MB/s", megabytes / seconds)?;
    Ok(())
}
