use std::convert::Infallible;

use super::*;

/// Splits as tokenizers do: in front of spaces and around marks.
fn units_of(text: &str) -> Vec<&str> {
    let mut units = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let from = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[from..].find([' ', '.', ',']).map_or(rest.len(), |at| at + from);
        units.push(&rest[..end]);
        rest = &rest[end..];
    }
    units
}

fn run(
    budget: usize,
    cost: impl Fn(&str) -> u32,
    overhead: u32,
) -> Result<Calibrated, CalibrateError<Infallible>> {
    let mut asked = 0;
    let result = calibrate(
        &mut |text| {
            asked += 1;
            Ok(overhead + units_of(text).into_iter().map(&cost).sum::<u32>())
        },
        budget,
    );
    if let Ok(found) = &result {
        assert_eq!(found.calls, asked);
    }
    assert!(asked <= budget, "{asked} questions");
    result
}

/// The true costs as digits.
fn truth(cost: impl Fn(&str) -> u32) -> String {
    Lexicon::unit_texts().iter().map(|unit| char::from_digit(cost(unit), 10).unwrap()).collect()
}

#[test]
fn all_ones_take_fourteen_questions_whatever_the_template() {
    for overhead in [0, 11] {
        let found = run(20, |_| 1, overhead).unwrap();
        assert_eq!(found.costs, Lexicon::estimated_costs());
        assert_eq!((found.overhead, found.calls), (overhead, 14));
        assert_eq!(found.resolved, Lexicon::unit_texts().len());
    }
}

#[test]
fn dear_words_are_found_among_cheap_ones() {
    let cost = |unit: &str| match unit.trim() {
        "wealth" | "perhaps" | "Perhaps" | "," | "Each" => 2,
        "carefully" => 3,
        "sentence" => 4,
        _ => 1,
    };
    let found = run(200, cost, 7).unwrap();
    assert_eq!(found.costs, truth(cost));
    assert_eq!(found.overhead, 7);
    // Each of the five dear words costs at most log2(units) questions.
    assert!(found.calls <= 14 + 5 * 10 + 4, "{}", found.calls);
}

#[test]
fn a_small_vocabulary_takes_about_a_question_for_each_unit() {
    let cost = |unit: &str| match unit {
        "." | "," => 1,
        // By the length of the word, so that one in eight is a single token.
        _ if unit.trim().len() <= 3 => 1,
        _ => 2 + (unit.len() as u32 % 3),
    };
    let found = run(1_000, cost, 3);
    // The carrier costs one here, as the definition has it.
    let found = found.unwrap();
    assert_eq!(found.costs, truth(cost));
    assert_eq!(found.resolved, Lexicon::unit_texts().len());
    assert!(found.calls < Lexicon::unit_texts().len() + 14, "{}", found.calls);
}

#[test]
fn what_the_budget_does_not_reach_is_unusable_but_never_wrong() {
    let cost = |unit: &str| if unit.trim().len() <= 3 { 1 } else { 2 };
    let found = run(300, cost, 0).unwrap();
    assert!(found.calls <= 300);
    assert!(found.resolved < Lexicon::unit_texts().len());
    let truth = truth(cost);
    let wrong = found.costs.chars().zip(truth.chars()).filter(|(a, b)| *a != '0' && a != b);
    assert_eq!(wrong.count(), 0);
}

#[test]
fn a_tokenizer_that_does_not_add_up_is_found_out() {
    // One token for every six bytes: below one token for each unit.
    let by_bytes = calibrate::<Infallible>(&mut |text| Ok(text.len() as u32 / 6), 2_000);
    assert!(matches!(by_bytes, Err(CalibrateError::NotAdditive { .. })), "{by_bytes:?}");
    // Two words in a row that merge where both are short: additive almost everywhere.
    let merging = calibrate::<Infallible>(
        &mut |text| {
            let units = units_of(text);
            let short = |unit: &str| unit.trim().len() <= 3;
            let merged = units.windows(2).filter(|w| short(w[0]) && w[1] == ".").count();
            Ok((units.len() - merged) as u32)
        },
        2_000,
    );
    let Err(CalibrateError::NotAdditive { expected, found }) = merging else {
        panic!("{merging:?}")
    };
    assert!(found < expected);
}

#[test]
fn an_oracle_that_fails_ends_it_with_its_own_words() {
    let result = calibrate(&mut |_| Err("the server is gone".to_owned()), 100);
    assert_eq!(result, Err(CalibrateError::Oracle("the server is gone".to_owned())));
}
