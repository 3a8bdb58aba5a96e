//! Entries written in another form, and read again.

use std::collections::BTreeMap;

use crate::common::{all, read, trace};
use goodput_dataset::{ConvertTarget, Converted, Loaded, convert};
use goodput_model::Nanos;

fn converted(loaded: &Loaded, to: ConvertTarget) -> (String, Converted) {
    let mut out = Vec::new();
    let converted = convert(loaded, to, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), converted)
}

fn lost(losses: &[(&str, u64)]) -> BTreeMap<String, u64> {
    losses.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect()
}

const MOONCAKE: &str = "{\"timestamp\":0,\"input_length\":1025,\"output_length\":5,\"hash_ids\":[46,47,48]}\n\
    {\"timestamp\":1.5,\"input_length\":512,\"output_length\":6,\"hash_ids\":[46],\"session_id\":\"s\",\"type\":\"chat\"}\n\
    {\"timestamp\":2001.5,\"input_length\":10,\"output_length\":1,\"hash_ids\":[],\"session_id\":\"s\",\"delay\":2000}\n";

/// Entries without what a detour through a file changes: their places.
fn without_lines(loaded: &Loaded) -> Vec<goodput_dataset::DatasetEntry> {
    let mut entries = loaded.entries.clone();
    for entry in &mut entries {
        entry.line = 0;
    }
    entries
}

#[test]
fn a_trace_survives_the_forms_that_hold_all_of_it() {
    let loaded = trace("m.jsonl", MOONCAKE).unwrap();
    let (text, facts) = converted(&loaded, ConvertTarget::Mooncake);
    assert_eq!((text.as_str(), facts), (MOONCAKE, Converted { written: 3, lost: lost(&[]) }));
    let (text, facts) = converted(&loaded, ConvertTarget::Goodput);
    assert_eq!(facts, Converted { written: 3, lost: lost(&[]) });
    let again = trace("g.jsonl", &text).unwrap();
    assert_eq!(again.block_tokens, Some(512));
    assert_eq!(without_lines(&again), without_lines(&loaded));
}

#[test]
fn what_a_table_cannot_hold_is_counted() {
    let loaded = trace("m.jsonl", MOONCAKE).unwrap();
    let (text, facts) = converted(&loaded, ConvertTarget::Azure);
    assert_eq!(
        text,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1025,5\n0.0015,512,6\n2.0015,10,1\n"
    );
    let losses = [("after", 1), ("blocks", 2), ("class", 1), ("session", 2)];
    assert_eq!(facts, Converted { written: 3, lost: lost(&losses) });
    let again = trace("a.csv", &text).unwrap();
    assert_eq!(again.entries[2].at, Some(Nanos(2_001_500_000)));

    let (text, facts) = converted(&loaded, ConvertTarget::Burstgpt);
    assert_eq!(
        text,
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
         0,,,,1025,5,1030,\n0.0015,s,,chat,512,6,518,\n2.0015,s,,,10,1,11,\n"
    );
    assert_eq!(facts, Converted { written: 3, lost: lost(&[("after", 1), ("blocks", 2)]) });
    let again = trace("b.csv", &text).unwrap();
    assert_eq!(again.entries[1].class.as_deref(), Some("chat"));
    assert_eq!(again.entries[2].session.as_deref(), Some("s"));

    let (text, facts) = converted(&loaded, ConvertTarget::Messages);
    assert_eq!(
        (text.as_str(), facts),
        ("", Converted { written: 0, lost: lost(&[("entries without text", 3)]) })
    );
}

#[test]
fn bodies_survive_as_messages() {
    let text = "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"content\":\"q\",\"name\":\"n\",\"role\":\"user\"},\
        {\"role\":\"assistant\",\"content\":\"r \\\"r\\\"\"},{\"role\":\"user\",\"content\":\"more\"}],\
        \"max_tokens\":5,\"temperature\":0.50}\n";
    let loaded = read("m.jsonl", text, &all()).unwrap();
    let (out, facts) = converted(&loaded, ConvertTarget::Messages);
    assert_eq!(facts, Converted { written: 1, lost: lost(&[]) });
    let again = read("m.jsonl", &out, &all()).unwrap();
    assert_eq!(again.entries, loaded.entries);
    assert!(out.contains("{\"content\":\"q\",\"name\":\"n\",\"role\":\"user\"}"), "{out}");
    assert!(out.ends_with(",\"max_tokens\":5,\"temperature\":0.50}\n"), "{out}");
}

#[test]
fn prompts_keep_the_first_question() {
    let text = r#"[{"conversations":[{"from":"system","value":"s"},{"from":"human","value":"a \"b\""},
        {"from":"gpt","value":"c d"},{"from":"human","value":"e"},{"from":"gpt","value":"f"}]},
        {"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":"y"}]}]"#;
    let loaded = read("s.json", text, &all()).unwrap();
    let (out, facts) = converted(&loaded, ConvertTarget::Prompts);
    let again = read("p.jsonl", &out, &all()).unwrap();
    assert_eq!(crate::common::first_texts(&again), ["a \"b\"", "x"]);
    assert_eq!(again.entries[1].turns, loaded.entries[1].turns);
    assert_eq!(again.entries[0].turns[0].output_tokens, Some(2));
    let losses = [("later turns", 1), ("messages other than the prompt", 1)];
    assert_eq!(facts, Converted { written: 2, lost: lost(&losses) });
    // A dataset has no instants, so no trace comes of it.
    let (out, facts) = converted(&loaded, ConvertTarget::Mooncake);
    assert_eq!(
        (out.as_str(), facts),
        ("", Converted { written: 0, lost: lost(&[("turns without a timestamp", 3)]) })
    );
}

#[test]
fn blocks_of_another_size_are_no_blocks_of_mooncakes() {
    let text = "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":1.5,\"input_length\":17,\"output_length\":3,\"turn\":1,\"hash_ids\":[1,2]}";
    let loaded = trace("b.jsonl", text).unwrap();
    let (_, facts) = converted(&loaded, ConvertTarget::Mooncake);
    assert_eq!(facts.lost, lost(&[("blocks of a size other than 512", 1)]));
    let (out, facts) = converted(&loaded, ConvertTarget::Goodput);
    assert_eq!(facts.lost, lost(&[]));
    assert_eq!(trace("g.jsonl", out).unwrap().entries[0].turns, loaded.entries[0].turns);
}

#[test]
fn targets_have_names() {
    for target in ConvertTarget::ALL {
        assert_eq!(target.name().parse::<ConvertTarget>(), Ok(target));
    }
    assert!("xml".parse::<ConvertTarget>().is_err());
}
