//! What each form of dataset gives.

use std::collections::BTreeMap;

use crate::common::{all, assistant, file, first_texts, read, read_all, system, user, words};
use goodput_dataset::{DatasetFormat, DatasetOptions, DatasetTurn, load_dataset};
use goodput_model::Message;

fn skipped(reasons: &[(&str, u64)]) -> BTreeMap<String, u64> {
    reasons.iter().map(|(reason, times)| ((*reason).to_owned(), *times)).collect()
}

#[test]
fn sharegpt_gives_turns_with_their_answers() {
    let text = r#"[
      {"id": "a", "conversations": [
        {"from": "system", "value": "be kind"},
        {"from": "human", "value": "one two \"three\"\n"},
        {"from": "gpt", "value": "yes sir"},
        {"from": "human", "value": "more"},
        {"from": "gpt", "value": "no"},
        {"from": "human", "value": "open"}]},
      {"id": "b", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "y"}]},
      {"id": "c", "conversations": []},
      {"id": "d", "conversations": [{"from": "human", "value": "x"}]},
      {"id": "e", "conversations": [{"from": "alien", "value": "x"}]},
      {"id": "f", "conversation": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]}
    ]"#;
    let loaded = read_all("s.json", text);
    assert_eq!((loaded.format, loaded.seen, loaded.entries.len()), ("sharegpt", 6, 2));
    let first = &loaded.entries[0];
    assert_eq!(first.line, 1);
    let turn = |messages: Vec<Message>, reply: &str, tokens| DatasetTurn {
        messages,
        reply: Some(assistant(reply)),
        output_tokens: Some(tokens),
        ..DatasetTurn::default()
    };
    assert_eq!(
        first.turns,
        [
            turn(vec![system("be kind"), user("one two \"three\"\n")], "yes sir", 2),
            turn(vec![user("more")], "no", 1)
        ]
    );
    assert_eq!(loaded.entries[1].line, 6);
    assert_eq!(loaded.entries[1].turns, [turn(vec![user("q")], "r", 1)]);
    assert_eq!(
        loaded.skipped,
        skipped(&[
            ("a speaker other than human, gpt and system", 1),
            ("first turn is not human", 1),
            ("no question with an answer", 2),
        ])
    );
    assert_eq!(loaded.notes, ["last question left out: it has no answer (2 times)"]);
}

#[test]
fn sharegpt_on_lines_with_crlf_and_a_byte_order_mark() {
    let text = "\u{feff}{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"}]}\r\n\
                \r\n{\"conversations\":[{\"from\":\"human\",\"value\":\"c\"},{\"from\":\"gpt\",\"value\":\"d\"}]}\r\n";
    let loaded = read_all("s.jsonl", text);
    assert_eq!(first_texts(&loaded), ["a", "c"]);
    assert_eq!(loaded.entries[1].line, 3);
    assert_eq!(loaded.skipped, skipped(&[("blank line", 1)]));
}

#[test]
fn messages_keep_what_is_not_plain_as_it_is() {
    let image = r#"{"role":"user", "content":[{"type":"image_url","image_url":{"url":"u"}}]}"#;
    let call = r#"{"content":null,"role":"assistant","tool_calls":[{"id":"1"}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"1","content":"42"}"#;
    let text = format!(
        "{{\"messages\":[{{\"role\":\"system\",\"content\":\"s\"}},{image},{call},{result},\
         {{\"role\":\"assistant\",\"content\":\"done it\"}}],\
         \"tools\":[{{ \"type\":\"function\"}}],\"temperature\":0.50,\"model\":\"m\",\"stream\":true,\
         \"max_tokens\":7}}\n"
    );
    let loaded = read_all("m.jsonl", text);
    assert_eq!(loaded.format, "messages");
    let fields = vec![
        ("temperature".to_owned(), "0.50".to_owned()),
        ("tools".to_owned(), "[{ \"type\":\"function\"}]".to_owned()),
    ];
    let turns = &loaded.entries[0].turns;
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0].messages, [system("s"), Message::Raw(image.into())]);
    assert_eq!(turns[0].reply, Some(Message::Raw(call.into())));
    assert_eq!(turns[0].fields, fields);
    assert_eq!(turns[1].messages, [Message::Raw(result.into())]);
    assert_eq!(turns[1].reply, Some(assistant("done it")));
    assert_eq!((turns[1].output_tokens, &turns[1].fields), (Some(7), &fields));
    assert_eq!(
        loaded.notes,
        [
            "field `model` left out: the run sets it (1 times)",
            "field `stream` left out: the run sets it (1 times)",
            "field `temperature` goes into the body (1 times)",
            "field `tools` goes into the body (1 times)",
        ]
    );
}

#[test]
fn messages_without_an_answer_and_lines_of_the_batch_api() {
    let text = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_completion_tokens\":9}\n\
        {\"custom_id\":\"1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"model\":\"m\",\
        \"messages\":[{\"role\":\"user\",\"content\":\"b\"}],\"max_tokens\":5,\"top_p\":1}}\n\
        {\"messages\":[{\"role\":\"system\",\"content\":\"alone\"}]}\n";
    let loaded = read_all("m.jsonl", text);
    assert_eq!(first_texts(&loaded), ["a", "b"]);
    let output: Vec<_> = loaded.entries.iter().map(|e| e.turns[0].output_tokens).collect();
    assert_eq!(output, [Some(9), Some(5)]);
    assert_eq!(loaded.entries[1].turns[0].fields, [("top_p".to_owned(), "1".to_owned())]);
    assert_eq!(loaded.entries[0].turns[0].reply, None);
    assert_eq!(loaded.skipped, skipped(&[("no message from a user or a tool", 1)]));
}

#[test]
fn prompts_of_objects_tables_and_lines() {
    let json = "{\"prompt\":\"a b\",\"output_tokens\":12}\n{\"prompt\":\"c\",\"answer\":\"x y z\",\"source\":\"web\"}\n";
    let loaded = read_all("p.jsonl", json);
    assert_eq!(
        (loaded.format, first_texts(&loaded)),
        ("prompts", vec!["a b".to_owned(), "c".to_owned()])
    );
    let output = |loaded: &goodput_dataset::Loaded| -> Vec<Option<u32>> {
        loaded.entries.iter().map(|entry| entry.turns[0].output_tokens).collect()
    };
    assert_eq!(output(&loaded), [Some(12), Some(3)]);
    assert_eq!(loaded.entries[1].turns[0].reply, Some(assistant("x y z")));
    assert_eq!(loaded.notes, ["field `source` not used (1 times)"]);

    let csv = "id,Prompt,output_len\r\n1,\"a, \"\"b\"\"\nc\",5\r\n2,,5\r\n3,d,\r\n";
    let loaded = read_all("p.csv", csv);
    assert_eq!(
        (loaded.format, first_texts(&loaded)),
        ("csv", vec!["a, \"b\"\nc".to_owned(), "d".to_owned()])
    );
    assert_eq!(output(&loaded), [Some(5), None]);
    // The field of the first row holds a line end, so the third row begins on line 5.
    assert_eq!(loaded.entries[1].line, 5);
    assert_eq!(loaded.skipped, skipped(&[("blank prompt", 1)]));
    assert_eq!(loaded.notes, ["column `id` not used (1 times)"]);

    let loaded = read_all("p.txt", "one\n\n  two \n{three\n");
    assert_eq!(
        (loaded.format, first_texts(&loaded)),
        ("text", vec!["one".into(), "  two ".into(), "{three".into()])
    );
    assert_eq!(loaded.skipped, skipped(&[("blank line", 1)]));
    assert_eq!(output(&loaded), [None, None, None]);
}

#[test]
fn columns_can_be_chosen() {
    let options = DatasetOptions {
        prompt_column: Some("ask".to_owned()),
        output_column: Some("len".to_owned()),
        ..all()
    };
    for (name, text) in [
        ("p.jsonl", "{\"ask\":\"q\",\"prompt\":\"no\",\"len\":3,\"max_tokens\":9}"),
        ("p.csv", "prompt,ask,len,max_tokens\nno,q,3,9\n"),
        ("p.tsv", "prompt\task\tlen\nno\tq\t3\n"),
    ] {
        let loaded = read(name, text, &options).unwrap();
        assert_eq!(first_texts(&loaded), ["q"], "{name}");
        assert_eq!(loaded.entries[0].turns[0].output_tokens, Some(3), "{name}");
    }
    let answers = DatasetOptions { output_column: Some("len".to_owned()), ..all() };
    let loaded = read("p.csv", "prompt,len\nq,a b\n", &answers).unwrap();
    assert_eq!(loaded.entries[0].turns[0].reply, Some(assistant("a b")));
    assert_eq!(loaded.entries[0].turns[0].output_tokens, Some(2));
}

#[test]
fn forms_have_names_and_are_found_by_content() {
    for format in DatasetFormat::ALL {
        assert_eq!(format.name().parse::<DatasetFormat>(), Ok(format));
    }
    assert_eq!(
        "sharegpt4".parse::<DatasetFormat>().unwrap_err().to_string(),
        "`sharegpt4` is not a form of dataset, did you mean `sharegpt`?"
    );
    for (name, text, format) in [
        ("x.json", "[{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}]", "messages"),
        ("x.json", "[{\"prompt\":\"a\"}]", "prompts"),
        ("x.txt", "{\"prompt\":\"a\"}", "prompts"),
        ("x.csv", "{\"prompt\":\"a\"}", "prompts"),
        ("x", "{\"prompt\":\"a\"}", "prompts"),
        ("x.txt", "{not json", "text"),
    ] {
        assert_eq!(read_all(name, text).format, format, "{name} {text}");
    }
    let asked = DatasetOptions { format: Some(DatasetFormat::Text), ..all() };
    assert_eq!(
        first_texts(&read("x.jsonl", "{\"prompt\":\"a\"}", &asked).unwrap()),
        ["{\"prompt\":\"a\"}"]
    );
}

/// Prompts of 1, 2, 3 … words, one on each line.
fn ladder(n: usize) -> String {
    let lines: Vec<String> = (1..=n).map(|words| vec!["w"; words].join(" ") + "\n").collect();
    lines.concat()
}

fn lines(loaded: &goodput_dataset::Loaded) -> Vec<u64> {
    loaded.entries.iter().map(|entry| entry.line).collect()
}

#[test]
fn a_sample_is_a_prefix_of_a_larger_one() {
    let text = ladder(200);
    let sample = |sample, seed| {
        lines(
            &read("p.txt", &text, &DatasetOptions { sample, seed, ..DatasetOptions::default() })
                .unwrap(),
        )
    };
    let whole = sample(1_000, 7);
    assert_eq!(whole.len(), 200);
    let mut sorted = whole.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=200).collect::<Vec<u64>>());
    assert_ne!(whole, sorted);
    for k in [1, 2, 50, 199] {
        assert_eq!(sample(k, 7), whole[..k as usize], "{k}");
    }
    assert_ne!(sample(50, 8), sample(50, 7));
}

#[test]
fn filtering_comes_before_counting_the_sample_and_reads_on_until_it_is_full() {
    // Only 30 of 20,000 pass: the first candidates are 4 * 20 + 64, so that the file is read again.
    let mut text = String::new();
    for line in 1..=20_000 {
        text += if line % 667 == 0 { "a b c d e\n" } else { "a b\n" };
    }
    let scratch = file("p.txt", &text);
    let options = |sample| DatasetOptions {
        sample,
        seed: 3,
        min_input: Some(4),
        ..DatasetOptions::default()
    };
    let sample = |n| load_dataset(&scratch.path, &options(n), &words).unwrap();
    let all = sample(1_000);
    assert_eq!(all.entries.len(), 29);
    assert!(all.entries.iter().all(|entry| entry.line % 667 == 0));
    let some = sample(20);
    assert_eq!(lines(&some), lines(&all)[..20]);
    assert_eq!(all.skipped, skipped(&[("prompt below 4 tokens", 20_000 - 29)]));
    // The oracle: all entries in their random order, and those that pass.
    let every = DatasetOptions { sample: 20_000, seed: 3, ..DatasetOptions::default() };
    let mut expected = lines(&load_dataset(&scratch.path, &every, &words).unwrap());
    expected.retain(|line| line % 667 == 0);
    assert_eq!(lines(&all), expected);
}

#[test]
fn lengths_are_filtered_by_name() {
    let line = |prompt: usize, answer: usize| {
        let words = |n: usize| vec!["w"; n].join(" ");
        format!("{{\"prompt\":\"{}\",\"answer\":\"{}\"}}\n", words(prompt), words(answer))
    };
    let text =
        [line(3, 10), line(4, 3), line(4, 4), line(11, 4), line(10, 4), line(10, 6)].concat();
    let options = DatasetOptions {
        min_input: Some(4),
        min_output: Some(4),
        max_input: Some(10),
        max_total: Some(15),
        ..all()
    };
    for in_order in [true, false] {
        let loaded =
            read("p.jsonl", &text, &DatasetOptions { in_order, ..options.clone() }).unwrap();
        let mut kept = lines(&loaded);
        kept.sort_unstable();
        assert_eq!(kept, [3, 5]);
        assert_eq!(
            loaded.skipped,
            skipped(&[
                ("answer below 4 tokens", 1),
                ("prompt above 10 tokens", 1),
                ("prompt and answer above 15 tokens", 1),
                ("prompt below 4 tokens", 1),
            ])
        );
    }
}

#[test]
fn later_turns_count_with_their_history() {
    let text = r#"[{"conversations":[{"from":"human","value":"a b"},{"from":"gpt","value":"c d e"},
        {"from":"human","value":"f"},{"from":"gpt","value":"g"}]}]"#;
    let options = |max_input, turns| DatasetOptions { max_input: Some(max_input), turns, ..all() };
    // The second prompt has 2 + 3 + 1 words.
    assert_eq!(read("s.json", text, &options(6, None)).unwrap().entries[0].turns.len(), 2);
    assert!(read("s.json", text, &options(5, None)).is_err());
    assert_eq!(read("s.json", text, &options(5, Some(1))).unwrap().entries[0].turns.len(), 1);
}

#[test]
fn in_order_takes_the_first_that_pass_and_still_sees_all() {
    let options = DatasetOptions {
        sample: 3,
        in_order: true,
        min_input: Some(5),
        ..DatasetOptions::default()
    };
    let loaded = read("p.txt", ladder(50), &options).unwrap();
    assert_eq!(lines(&loaded), [5, 6, 7]);
    assert_eq!(loaded.seen, 50);
}

#[test]
fn entries_that_cannot_be_read_are_counted_when_asked() {
    let options = DatasetOptions { skip_invalid: true, ..all() };
    let text = b"{\"prompt\":\"a\"}\n{\"prompt\":7}\n{\"prompt\n{\"prompt\":\"\xff\"}\n{\"prompt\":\"b\"}\n";
    let loaded = read("p.jsonl", text, &options).unwrap();
    assert_eq!(first_texts(&loaded), ["a", "b"]);
    assert_eq!(loaded.skipped, skipped(&[("not readable", 3)]));
    assert_eq!(loaded.seen, 5);
}
