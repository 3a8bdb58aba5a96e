//! Files that people write: profiles, maps of metrics, workloads. And tokenizers, which others write.

use std::time::Duration;

use goodput_observe::MetricsMap;
use goodput_record::{Vary, read_toml, read_workload, vary};
use goodput_sim::Profile;
use goodput_tokens::Tokenizer;
use goodput_tokens::hub::Listing;

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, USUAL, check_same, record, text_seeds};

pub(super) const TOML: &[&str] = &[
    "[",
    "]\n",
    "[[",
    "]]\n",
    " = ",
    "\"",
    "'''",
    "kind = \"closed\"\nconcurrency = 4\nthink_time = \"0s\"\n",
    "kind = \"trace\"\n",
    "kind = \"dataset\"\npath = \"x\"\n",
    "[load.mode]\n",
    "[[workload.class]]\n",
    "rate = \"inf\"\n",
    "arrivals = \"gamma:2\"\n",
    "until = \"p95 ttft ±10%\"\n",
    "1979-05-27T07:32:00Z",
    "0x7fffffffffffffff",
    "inf",
    "nan",
    "{ a = 1 }",
];

#[expect(clippy::too_many_lines, reason = "a list")]
pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "profile",
            seeds: || {
                let names = ["default", "fast", "llama-8b-1xh200", "llama-70b-8xh100"];
                let texts: Vec<_> = names.into_iter().filter_map(Profile::builtin_text).collect();
                text_seeds(&texts)
            },
            words: TOML,
            check: fuzz_profile,
            limits: InputLimits { per_byte: 512, ..USUAL },
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "metrics-map",
            seeds: || {
                text_seeds(&[
                    "name = \"engine\"\n[signals.running]\nseries = \"a_running\"\nlabels = { k = \"v\" }\n[signals.ttft]\nseries = [\"a\", \"b\"]\nscale = 0.001\n",
                ])
            },
            words: TOML,
            check: |case| {
                let path = case.scratch.write_file("map.toml", case.input)?;
                let Ok(map) = read_toml::<MetricsMap>(&path) else { return Ok(()) };
                drop(map.check());
                Ok(())
            },
            limits: InputLimits { per_byte: 512, ..USUAL },
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "workload",
            seeds: || {
                text_seeds(&[
                    "name = \"w\"\n[[class]]\nname = \"chat\"\nshare = 0.7\npreset = \"chat\"\n[[class]]\nname = \"b\"\nshare = 0.3\n[class.source]\nkind = \"synthetic\"\ninput = \"uniform:5:9\"\noutput = \"zipf:10:1.2\"\n",
                ])
            },
            words: TOML,
            check: |case| {
                let path = case.scratch.write_file("workload.toml", case.input)?;
                let Ok(plan) = read_workload(&path, goodput_workload::find_preset) else {
                    return Ok(());
                };
                drop(goodput_workload::describe_workload(&plan));
                Ok(())
            },
            limits: InputLimits { per_byte: 512, ..USUAL },
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "vary",
            seeds: || {
                text_seeds(&[
                    "workload.isl=512,2048,8192",
                    "isl=uniform:5:9,\"a, b\",'',c\\,d",
                    "load.mode.rate=5/s,inf",
                    "workload.classes.0.source.input=16,32",
                    "model=a,b",
                    "target.timeout=1s,2s",
                ])
            },
            words: &["isl=", "osl=", "rate=", "concurrency=", "load.", ".0.", "\"", "'", "\\", ","],
            check: fuzz_vary,
            limits: InputLimits { per_byte: 2048, time: Duration::from_secs(4), ..USUAL },
            short: SHORT / 4,
        },
        FuzzTarget {
            name: "tokenizer",
            seeds: tokenizer_seeds,
            words: &[
                "\"type\":\"BPE\"",
                "\"merges\":[",
                "\"vocab\":{",
                "\"pre_tokenizer\":",
                "\"Regex\":\"",
                "(?=",
                "+",
                "\"added_tokens\":[",
            ],
            check: fuzz_tokenizer,
            limits: InputLimits { bytes: 16 << 20, per_byte: 4096, time: Duration::from_secs(4) },
            short: SHORT / 8,
        },
        FuzzTarget {
            name: "vocabulary",
            seeds: || vec![include_bytes!("../../corpus/bytes.tiktoken").to_vec()],
            words: &["AA== 0\n", "/w== 255\n", " ", "="],
            check: |case| {
                let path = case.scratch.write_file("cl100k.tiktoken", case.input)?;
                check_encoded(&path);
                Ok(())
            },
            limits: InputLimits { bytes: 16 << 20, per_byte: 1024, time: Duration::from_secs(4) },
            short: SHORT / 8,
        },
        FuzzTarget {
            name: "hub-listing",
            seeds: || {
                text_seeds(&[
                    r#"{"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[{"rfilename":"tokenizer.json"},{"rfilename":"a/b.parquet"}]}"#,
                ])
            },
            words: &["\"sha\":", "\"siblings\":", "\"rfilename\":", "../", "/"],
            check: |case| {
                drop(Listing::parse(case.input));
                Ok(())
            },
            limits: USUAL,
            short: SHORT,
        },
    ]
}

fn fuzz_profile(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    // A file, or `key=value` as the command line has it.
    if let (Some((key, value)), Some(mut known)) =
        (text.split_once('='), Profile::builtin("llama-8b-1xh200"))
    {
        drop(known.set(key.trim(), value.trim()));
    }
    let Ok(profile) = Profile::parse(text) else { return Ok(()) };
    let written = profile.to_toml().map_err(|error| format!("not written: {error}"))?;
    let again = Profile::parse(&written).map_err(|error| format!("what was written: {error}"))?;
    check_same("written and read again", &again, &profile)
}

fn fuzz_vary(case: &ParserInput<'_>) -> Result<(), String> {
    let Some(text) = case.text() else { return Ok(()) };
    let Ok(varied) = text.parse::<Vary>() else { return Ok(()) };
    let written = varied.to_string();
    let again = written.parse::<Vary>().map_err(|error| format!("what was written: {error}"))?;
    check_same("written and read again", &again, &varied)?;
    let plan = goodput_record::parse_plan(record::PLAN).map_err(|error| error.to_string())?;
    let each = vary::all_configurations(std::slice::from_ref(&varied));
    // The first says it all, and a long path is compared with all that are there, letter by letter.
    for configuration in each.into_iter().flatten().take(1) {
        for (path, value) in configuration {
            drop(vary::set_value(&plan, &path, &value));
        }
    }
    Ok(())
}

const WORD_LEVEL: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"<s>":0,"<unk>":1,"one":2,"two":3},"unk_token":"<unk>"}}"#;

const PAIRS: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\w+|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"o":4,"n":5,"e":6,"on":7},"merges":[["a","b"],["o","n"]]}}"#;

fn tokenizer_seeds() -> Vec<Vec<u8>> {
    text_seeds(&[WORD_LEVEL, PAIRS])
}

fn fuzz_tokenizer(case: &ParserInput<'_>) -> Result<(), String> {
    let path = case.scratch.write_file("tokenizer.json", case.input)?;
    check_encoded(&path);
    Ok(())
}

/// Reads a tokenizer and asks it about a few texts.
fn check_encoded(path: &std::path::Path) {
    match Tokenizer::from_file(path) {
        Ok(tokenizer) => {
            for text in ["", "one two three", "ab \u{1f600}\0é\n\n  on", "a\u{301}<s>x</s>"] {
                drop(tokenizer.count(text));
            }
        }
        Err(error) => drop((error.to_string(), error.hint())),
    }
}
