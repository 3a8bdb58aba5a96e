//! [`FuzzTarget`]: a parser, seeds for it, and what must hold whatever it reads.

mod client;
mod dataset;
mod grammar;
mod messages;
mod metrics;
mod proxy;
mod record;
mod results;
mod text;
mod wire;

use std::fmt::Debug;
use std::time::Duration;

use crate::mutate;
use crate::scratch::Scratch;

/// A parser under test.
pub struct FuzzTarget {
    /// Its word on the command line.
    pub name: &'static str,
    /// Inputs that are right, or nearly so.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// What it may find in them.
    pub(crate) words: &'static [&'static str],
    /// Reads an input; an error is a property that does not hold.
    pub(crate) check: fn(&ParserInput<'_>) -> Result<(), String>,
    /// What one input may cost.
    pub(crate) limits: InputLimits,
    /// Inputs of a short run. Fewer where one takes long.
    pub short: u64,
}

/// What one input may cost, in an optimized build and in one that is not.
pub(crate) struct InputLimits {
    /// Most bytes held at once, and this many more for each byte of the input.
    pub(crate) bytes: usize,
    pub(crate) per_byte: usize,
    /// Most CPU time.
    pub(crate) time: Duration,
}

/// What a parser is given.
pub(crate) struct ParserInput<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) scratch: &'a Scratch,
}

/// For most: a MiB, 64 bytes for each that came, and two seconds.
const USUAL: InputLimits =
    InputLimits { bytes: 1 << 20, per_byte: 64, time: Duration::from_secs(2) };

/// Inputs of a short run of most.
const SHORT: u64 = 2_000;

impl<'a> ParserInput<'a> {
    /// The input in pieces.
    fn pieces(&self) -> Vec<&'a [u8]> {
        mutate::split_at_marks(self.input)
    }

    /// The input as text, where it is text.
    fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.input).ok()
    }
}

/// All of them.
pub fn all_targets() -> Vec<FuzzTarget> {
    let rooms = [
        wire::targets(),
        client::targets(),
        proxy::targets(),
        record::targets(),
        results::targets(),
        dataset::targets(),
        metrics::targets(),
        text::targets(),
        grammar::targets(),
        messages::targets(),
    ];
    rooms.into_iter().flatten().collect()
}

/// Fails where two readings of the same thing differ.
fn check_same<T: PartialEq + Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other {
        return Ok(());
    }
    let short = |value: &T| format!("{value:?}").chars().take(400).collect::<String>();
    Err(format!("{what}: {} is not {}", short(one), short(other)))
}

fn text_seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A target that goes wrong in every way, each by a word: the test of the harness itself.
pub fn sieve_target() -> FuzzTarget {
    FuzzTarget {
        name: "sieve",
        seeds: || text_seeds(&["panic", "overflow", "property", "memory", "time", "stack"]),
        words: &[],
        check: |case| {
            match case.input {
                b"panic" => {
                    let none = [0u8; 0];
                    std::hint::black_box(&none[std::hint::black_box(case.input.len())..]);
                }
                b"overflow" => {
                    let sum = u8::MAX + std::hint::black_box(1);
                    std::hint::black_box(sum);
                }
                b"property" => return Err("a property".to_owned()),
                b"memory" => drop(std::hint::black_box(vec![1u8; 2 << 20])),
                b"time" => {
                    let mut sum = 0u64;
                    for n in 0..100_000_000u64 {
                        sum = std::hint::black_box(sum ^ n);
                    }
                }
                b"stack" => drop(std::hint::black_box(recurse(1 << 20))),
                _ => {}
            }
            Ok(())
        },
        limits: InputLimits { time: Duration::from_millis(10), ..USUAL },
        short: 6,
    }
}

/// More calls within each other than a stack has room for.
fn recurse(calls: u64) -> Vec<u64> {
    let room = std::hint::black_box([calls; 64]);
    if calls == 0 { room.to_vec() } else { std::hint::black_box(recurse(calls - 1)) }
}
