use std::collections::HashSet;

use goodput_model::random::{Domain, RandomStream};

use super::*;
use crate::nonce::Nonces;

/// Tokens of a text by the costs, unit by unit; panics where the text holds anything else.
pub(crate) fn count(text: &str, costs: &str) -> u32 {
    let costs: Vec<u32> = costs.chars().map(|digit| digit.to_digit(10).unwrap()).collect();
    let table: std::collections::HashMap<&str, u32> =
        Lexicon::unit_texts().iter().copied().zip(costs).filter(|(_, cost)| *cost > 0).collect();
    let mut total = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest[1..].find([' ', '.', ',']).map_or(rest.len(), |at| at + 1);
        total += table.get(&rest[..end]).unwrap_or_else(|| panic!("no unit {:?}", &rest[..end]));
        rest = &rest[end..];
    }
    total
}

fn stream(index: u64) -> RandomStream {
    RandomStream::new(9, Domain::Text, index)
}

/// Costs that differ by form, not by part; the word `the` and the openers stay at one.
fn mixed_costs() -> String {
    let cost = |unit: &&str| match unit.len() {
        _ if !unit.starts_with(' ') => '1',
        0..=5 => '1',
        6 => '2',
        7 => '3',
        8 => '0',
        _ => '4',
    };
    Lexicon::unit_texts().iter().map(cost).collect()
}

#[test]
fn text_has_exactly_the_tokens_that_were_asked_for() {
    for costs in [Lexicon::estimated_costs(), mixed_costs()] {
        let lexicon = Lexicon::from_costs(&costs).unwrap();
        for tokens in (0..200).chain([1_000, 4_097]) {
            for begin in [Begin::Message, Begin::Continued] {
                for nonce in [None, Some(0x0123_4567_89ab_cdef)] {
                    let text = lexicon.write_text(tokens, begin, nonce, &mut stream(tokens.into()));
                    assert_eq!(count(&text, &costs), tokens, "{text}");
                    assert!(!text.contains('\n'));
                    let starts_bare = text.starts_with(|c: char| c.is_uppercase());
                    assert_eq!(starts_bare, begin == Begin::Message && tokens > 0, "{text}");
                }
            }
        }
    }
}

#[test]
fn marks_stand_behind_words_only() {
    let lexicon = Lexicon::with_unit_costs();
    for index in 0..50 {
        let text = lexicon.generate_text(500, &mut stream(index));
        for pair in ["..", ",,", ".,", ",."] {
            assert!(!text.contains(pair), "{text}");
        }
        assert!(text.ends_with('.'), "{text}");
    }
}

#[test]
fn text_is_neither_one_word_nor_one_pattern() {
    let text = Lexicon::with_unit_costs().generate_text(20_000, &mut stream(0));
    let words: HashSet<&str> = text.split([' ', '.', ',']).collect();
    assert!(words.len() > 600, "{} words", words.len());
    let lengths: HashSet<usize> = text.split(". ").map(|s| s.split(' ').count()).collect();
    assert!(lengths.len() >= 9, "{lengths:?}");
}

#[test]
fn golden_text_pins_words_and_order() {
    let lexicon = Lexicon::with_unit_costs();
    assert_eq!(lexicon.generate_text(24, &mut stream(1)), GOLDEN_TEXT);
    let nonce = Nonces::new(9).value(1, 0);
    let text = lexicon.write_text(16, Begin::Message, Some(nonce), &mut stream(1));
    assert_eq!(text, GOLDEN_NONCE);
}
const GOLDEN_TEXT: &str = "Our present silver only held no process against your site. Each fact for \
    each top covered this recent cup. Each name.";
const GOLDEN_NONCE: &str =
    "Our huge smooth this book account open usual dark. My silver passed our table.";

#[test]
fn a_longer_beginning_begins_with_a_shorter_one() {
    for costs in [Lexicon::estimated_costs(), mixed_costs()] {
        let lexicon = Lexicon::from_costs(&costs).unwrap();
        let (long, tokens) = lexicon.text_beginning(5_000, &mut stream(3));
        assert_eq!(count(&long, &costs), tokens);
        for wanted in [0, 1, 16, 777, 4_999] {
            let (short, tokens) = lexicon.text_beginning(wanted, &mut stream(3));
            assert_eq!(count(&short, &costs), tokens);
            assert!((wanted..wanted + 9).contains(&tokens));
            assert!(long.starts_with(&short));
        }
    }
}

#[test]
fn no_two_prompts_share_their_first_block() {
    let lexicon = Lexicon::with_unit_costs();
    let nonces = Nonces::new(1);
    // Sixteen tokens: an opener, the nonce, a mark and some words.
    let heads: HashSet<String> = (0..20_000)
        .map(|n| lexicon.write_text(16, Begin::Message, Some(nonces.value(n, 0)), &mut stream(0)))
        .collect();
    assert_eq!(heads.len(), 20_000);
    assert_eq!(lexicon.nonce_tokens(), 8);
}
