use std::fs;

use proptest::prelude::*;

use super::*;
use crate::error::{MAX_FILE_BYTES, safe_excerpt};

fn builtin(name: &str) -> Tokenizer {
    Tokenizer::builtin(name).unwrap()
}

/// A `tokenizer.json` of single bytes and a few words, with everything in it that would change a
/// count if it were obeyed: truncation, padding, a first and a last token.
fn everything() -> serde_json::Value {
    let mut vocabulary = serde_json::Map::new();
    for (id, word) in ["<s>", "</s>", "<unk>", "one", "two", "three"].iter().enumerate() {
        vocabulary.insert((*word).to_owned(), id.into());
    }
    let added = |id: u32, content: &str| {
        serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true})
    };
    let special =
        |id: u32, name: &str| serde_json::json!({"id": name, "ids": [id], "tokens": [name]});
    serde_json::json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "<s>"},
        "added_tokens": [added(0, "<s>"), added(1, "</s>")],
        "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": special(0, "<s>"), "</s>": special(1, "</s>")}},
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    })
}

/// The vocabulary of a built-in tokenizer as a `.tiktoken` file.
fn dumped(ranks: &tiktoken_rs::CoreBPE, highest: u32) -> String {
    use base64::Engine as _;
    let encode = |bytes| base64::engine::general_purpose::STANDARD.encode(bytes);
    let line = |rank| ranks.decode_bytes(&[rank]).ok().map(|t| format!("{} {rank}\n", encode(t)));
    (0..=highest).filter_map(line).collect()
}

#[test]
fn known_ids() {
    // As the vocabularies' publisher gives them.
    assert_eq!(builtin("cl100k_base").encode("hello world").unwrap(), [15339, 1917]);
    assert_eq!(builtin("o200k_base").encode("hello world").unwrap(), [24912, 2375]);
    assert_eq!(builtin("cl100k_base").count("").unwrap(), 0);
    for name in BUILTIN {
        assert_eq!(builtin(name).name(), name);
        assert_eq!(builtin(name).is_exact(), name != "approximate");
    }
    assert!(Tokenizer::builtin("gpt-7").is_none());
}

#[test]
fn special_tokens_in_a_text_are_text_to_a_vocabulary() {
    let text = "<|endoftext|>";
    for name in ["cl100k_base", "o200k_base"] {
        assert!(builtin(name).count(text).unwrap() > 1, "{name}");
    }
}

#[test]
fn estimates_stay_inside_their_bounds() {
    for (kind, bound) in TYPICAL_ERROR {
        for number in 1..=3 {
            let text = fs::read_to_string(format!("samples/{kind}-{number}.txt")).unwrap();
            let estimate = f64::from(builtin("approximate").count(&text).unwrap());
            for name in ["cl100k_base", "o200k_base"] {
                let error = estimate / f64::from(builtin(name).count(&text).unwrap()) - 1.0;
                assert!(error.abs() <= bound, "{kind} {number}: {error:+.3} of {name}");
            }
        }
    }
    assert_eq!(builtin("approximate").count("").unwrap(), 0);
    assert_eq!(builtin("approximate").count("one two three").unwrap(), 3);
    assert_eq!(builtin("approximate").encode("one"), Err(TokenizerError::NoIds));
}

#[test]
fn nothing_is_added_cut_or_filled_up() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE_NAME), everything().to_string()).unwrap();
    for path in [folder.path().to_owned(), folder.path().join(FILE_NAME)] {
        let tokenizer = Tokenizer::from_file(&path).unwrap();
        assert_eq!(tokenizer.encode("one two").unwrap(), [3, 4]);
        assert_eq!(tokenizer.encode("three two one two three four").unwrap(), [5, 4, 3, 4, 5, 2]);
        assert_eq!(tokenizer.encode("<s>one</s>").unwrap(), [0, 3, 1], "spelt out");
        assert_eq!(tokenizer.count("").unwrap(), 0);
        assert!(tokenizer.is_exact());
        assert_eq!(tokenizer.name(), path.to_str().unwrap());
    }
}

#[test]
fn a_vocabulary_file_and_the_built_in_ones_count_as_the_library_does() {
    let folder = tempfile::tempdir().unwrap();
    let vocabularies = [
        ("cl100k_base", tiktoken_rs::cl100k_base_singleton(), 100_255),
        ("o200k_base", tiktoken_rs::o200k_base_singleton(), 199_997),
        ("p50k_base", tiktoken_rs::p50k_base_singleton(), 50_280),
        ("r50k_base", tiktoken_rs::r50k_base_singleton(), 50_255),
    ];
    for (name, ranks, highest) in vocabularies {
        let path = folder.path().join(format!("{name}.tiktoken"));
        fs::write(&path, dumped(ranks, highest)).unwrap();
        let read = Tokenizer::from_file(&path).unwrap();
        for (kind, _) in TYPICAL_ERROR {
            let mut text = fs::read_to_string(format!("samples/{kind}-1.txt")).unwrap();
            text.push_str("\r\n\r\n  it's IT'S 12345  <|endoftext|> 🦀\u{301}\t\t \n ");
            let expected = ranks.encode_ordinary(&text);
            assert_eq!(read.encode(&text).unwrap(), expected, "{name} {kind}");
            if let Some(builtin) = Tokenizer::builtin(name) {
                assert_eq!(builtin.encode(&text).unwrap(), expected, "{name} {kind}");
            }
        }
    }
}

#[test]
fn wrong_files_are_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let error = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = Tokenizer::from_file(&path).unwrap_err();
        assert!(!error.hint().is_empty());
        let said = error.to_string();
        said.strip_prefix(path.to_str().unwrap()).unwrap().to_owned()
    };
    let whole = everything().to_string();
    let half = &whole.as_bytes()[..whole.len() / 2];
    assert!(error("a.json", half).starts_with(": line 1: not a tokenizer: EOF"));
    assert!(error("a.json", b"").contains("line 1: not a tokenizer: EOF"));
    assert!(error("a.json", b"{}").starts_with(": line 1: not a tokenizer: Model missing"));
    assert!(error("a.json", b"{\n\x00\xff").starts_with(": line 2: not a tokenizer: "));
    assert!(error("a.json", b"version https://git-lfs.github.com/spec/v1\n").contains("Git LFS"));
    assert!(error("x.tiktoken", b"").contains("cl100k, o200k, p50k or r50k"));
    let ranks = |bytes: &[u8]| error("my_cl100k.tiktoken", bytes);
    assert!(ranks(b"").contains("line 1: not a tokenizer: no token for the byte 0x00"));
    assert!(ranks(b"AA== 0\nAQ==\n").contains("line 2: not a tokenizer: no rank in `AQ==`"));
    assert!(ranks(b"AA== 0\nAQ== x\n").contains("line 2: not a tokenizer: no rank"));
    assert!(ranks(b"AA== 0\n\n!! 1\n").contains("line 3: not a tokenizer: invalid base64"));
    assert!(ranks(b"AA== 0\nAQ== 0\n").contains("line 2: not a tokenizer: duplicate rank"));
    assert!(ranks(b"AA== 0\nAA== 1\n").contains("line 2: not a tokenizer: duplicate token"));
    assert!(ranks(b"AA== 4294967295\n").contains("out of range"));
    assert!(ranks(b" 1\n").contains("an empty token"));
    assert!(ranks(b"\xff\xfe 1\n").contains("bytes that are not valid UTF-8"));
    let missing = Tokenizer::from_file(&folder.path().join("no")).unwrap_err();
    assert!(matches!(missing, TokenizerError::Unreadable { .. }));
    assert!(matches!(
        Tokenizer::from_file(folder.path()).unwrap_err(),
        TokenizerError::Unreadable { path, .. } if path.ends_with(FILE_NAME)
    ));
}

#[test]
fn a_huge_file_is_not_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    // A hole takes no room on the disk.
    fs::File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    assert_eq!(Tokenizer::from_file(&path).unwrap_err(), TokenizerError::TooLarge { path });
}

#[test]
fn very_long_runs_are_counted_or_refused() {
    for name in ["cl100k_base", "o200k_base"] {
        for run in [" ", "\n", "a", "!", "1", "漢"] {
            let text = run.repeat(300_000);
            let outcome = builtin(name).count(&text);
            let is_fine = match &outcome {
                Ok(tokens) => *tokens > 0,
                Err(error) => matches!(error, TokenizerError::Text { .. }),
            };
            assert!(is_fine, "{name} {run:?}: {outcome:?}");
        }
    }
}

#[test]
fn excerpts_are_short_and_plain() {
    assert_eq!(safe_excerpt("a\u{1b}[0mb\n"), "a\\u{1b}[0mb\\n");
    assert_eq!(safe_excerpt(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
    assert_eq!(safe_excerpt(&"é".repeat(80)), "é".repeat(80));
}

proptest! {
    #[test]
    fn any_text_can_be_counted(text in "(\\PC|[ \t\r\n]|'s|[0-9]|<\\|endoftext\\|>){0,200}", raw: String) {
        for text in [text, raw] {
            for name in BUILTIN {
                let tokenizer = builtin(name);
                let count = tokenizer.count(&text).unwrap();
                prop_assert!(count as usize <= 4 * text.len());
                if tokenizer.is_exact() {
                    let ids = tokenizer.encode(&text).unwrap();
                    prop_assert_eq!(ids.len(), count as usize);
                }
            }
        }
    }

    #[test]
    fn any_file_is_read_or_refused(bytes: Vec<u8>, cut in 0usize..2_000, flip in 0usize..2_000) {
        let folder = tempfile::tempdir().unwrap();
        let mut whole = everything().to_string().into_bytes();
        whole.truncate(cut.max(1));
        let place = flip % whole.len();
        whole[place] ^= 1;
        for content in [&bytes, &whole] {
            for name in [FILE_NAME, "o200k.tiktoken"] {
                let path = folder.path().join(name);
                fs::write(&path, content).unwrap();
                if let Ok(tokenizer) = Tokenizer::from_file(&path) {
                    let _ = tokenizer.count("one two three");
                }
            }
        }
    }
}
