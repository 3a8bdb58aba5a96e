//! What other processes say: ranks of a fleet, and clients whose requests pass a proxy.

use goodput_fleet::{Order, Refusal, Token, Totals};
use goodput_live::api_of_request;
use goodput_live::rows::{Recorder, RowSettings};
use goodput_model::{Api, Exchange, LogHistogram, Nanos};
use goodput_tokens::Tokenizer;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FuzzTarget, InputLimits, ParserInput, SHORT, USUAL, check_same, text_seeds};

pub(super) fn targets() -> Vec<FuzzTarget> {
    vec![
        FuzzTarget {
            name: "fleet",
            seeds: || {
                text_seeds(&[
                    r#"{"number":3,"kind":"Run","plan":"schema = 1","folder":"/a","workload":"ff"}"#,
                    r#"{"started":5,"ended":4,"failed":1,"in_flight":1,"output_tokens":9,"events":9,"ttft":{"counts":{"3":4,"65535":1},"unfinished":1,"max":5},"itl":{},"tpot":{},"e2e":{}}"#,
                    r#"{"Version":{"protocol":1,"coordinator":"0.1.0","rank":"0.2.0"}}"#,
                ])
            },
            words: &["\"counts\":", "\"kind\":\"Point\"", "\"max\":", "\"plan\":"],
            check: fuzz_fleet_messages,
            limits: USUAL,
            short: SHORT,
        },
        FuzzTarget {
            name: "traffic",
            seeds: body_seeds,
            words: &[
                "\"messages\":[",
                "\"role\":\"user\"",
                "\"content\":",
                "\"prompt\":",
                "\"max_tokens\":",
                "\"max_completion_tokens\":",
                "\"tools\":[",
                "\"image_url\":",
                "\"data:image/png;base64,",
                "\"stream\":true",
                "\"n\":",
                "\"temperature\":",
                "\"model\":",
            ],
            check: fuzz_traffic,
            limits: InputLimits { bytes: 4 << 20, per_byte: 256, ..USUAL },
            short: SHORT / 2,
        },
        FuzzTarget {
            name: "route",
            seeds: || {
                text_seeds(&["/v1/chat/completions", "/a/v1/completions?x=1", "/v1/embeddings/"])
            },
            words: &["/v1", "/", "?", "chat", "completions", "%2f", "//"],
            check: |case| {
                let Some(text) = case.text() else { return Ok(()) };
                let _ = (api_of_request(&Method::POST, text), api_of_request(&Method::GET, text));
                Ok(())
            },
            limits: USUAL,
            short: SHORT,
        },
    ]
}

fn fuzz_fleet_messages(case: &ParserInput<'_>) -> Result<(), String> {
    check_json_round_trip::<Order>(case)?;
    check_json_round_trip::<Refusal>(case)?;
    if let Some(totals) = check_json_round_trip::<Totals>(case)? {
        let mut sum = totals.clone();
        sum.merge(&totals);
        sum.merge(&Totals::default());
        let counts = [&sum.ttft, &sum.itl, &sum.tpot, &sum.e2e].map(LogHistogram::count);
        let before = [&totals.ttft, &totals.itl, &totals.tpot, &totals.e2e];
        if counts.iter().zip(before).any(|(sum, part)| *sum < part.count()) {
            return Err("a sum that is smaller than a part".to_owned());
        }
    }
    if let Some(text) = case.text() {
        drop(Token::new(text).map_err(|error| error.to_string()));
    }
    Ok(())
}

fn check_json_round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    case: &ParserInput<'_>,
) -> Result<Option<T>, String> {
    let Ok(value) = serde_json::from_slice::<T>(case.input) else { return Ok(None) };
    let written = serde_json::to_vec(&value).map_err(|error| format!("not written: {error}"))?;
    let again = serde_json::from_slice(&written);
    let again = again.map_err(|error| format!("what was written: {error}"))?;
    check_same("written and read again", &again, &value)?;
    Ok(Some(value))
}

fn body_seeds() -> Vec<Vec<u8>> {
    text_seeds(&[
        r#"{"model":"m","messages":[{"role":"system","content":"you are"},{"role":"user","content":"hello there, how are you"}],"max_tokens":5,"temperature":0.5,"stream":true}"#,
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}],"tools":[]}"#,
        r#"{"model":"m","prompt":"once upon a time","max_tokens":9,"n":2,"stop":["x"]}"#,
        r#"{"model":"m","prompt":[1,2,3],"stream_options":{"include_usage":true}}"#,
        r#"{"model":"m","prompt":["a","b"],"ignore_eos":true}"#,
    ])
}

fn fuzz_traffic(case: &ParserInput<'_>) -> Result<(), String> {
    for (save_text, block_tokens) in [(false, 16), (true, 1)] {
        let tokenizer = Tokenizer::builtin("approximate").ok_or("no approximate tokenizer")?;
        let settings = RowSettings { tokenizer, block_tokens, salt: [7; 32], save_text };
        let mut recorder = Recorder::new(settings);
        for api in [Api::Chat, Api::Completions] {
            for session in [None, case.text()] {
                let question = recorder.start_row(Nanos(5), api, case.input, session);
                drop(recorder.finish_row(question, Nanos(5), &Exchange::default()));
            }
        }
    }
    Ok(())
}
