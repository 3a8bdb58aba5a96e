//! Lengths, ends and channels of answers.

use super::super::tokenizer::{END_OF_TURN, encode_text};
use super::*;

fn planned(more: &Value, natural: Option<u32>) -> (u32, Finish) {
    let plan = plan_answer(&chat(more), 0, natural, &AnswerBehavior::default());
    (plan.tokens, plan.finish)
}

#[test]
fn answers_end_by_themselves_or_at_their_limit() {
    use Finish::{Length, Stop};
    let limit = json!({"max_tokens": 10});
    assert_eq!(planned(&limit, None), (10, Length));
    assert_eq!(planned(&limit, Some(9)), (9, Stop));
    assert_eq!(planned(&limit, Some(10)), (10, Length));
    assert_eq!(planned(&limit, Some(0)), (1, Stop));
    assert_eq!(planned(&json!({"max_completion_tokens": 7, "max_tokens": 10}), None), (7, Length));
    assert_eq!(planned(&json!({"max_tokens": 10, "min_tokens": 4}), Some(2)), (4, Stop));
    assert_eq!(planned(&json!({"max_tokens": 10, "min_tokens": 10}), Some(2)), (10, Length));
    assert_eq!(planned(&json!({"max_tokens": 10, "ignore_eos": true}), Some(2)), (10, Length));
    assert_eq!(planned(&json!({}), None), (20, Stop));
    assert_eq!(planned(&json!({}), Some(300)), (300, Stop));
    assert_eq!(planned(&json!({"min_tokens": 30}), None), (30, Stop));
    assert_eq!(planned(&json!({"ignore_eos": true}), Some(300)), (20, Length));
    // The context holds 4096 tokens, 5 of which are the prompt's.
    assert_eq!(planned(&json!({}), Some(u32::MAX)), (4091, Length));
    assert_eq!(planned(&json!({"max_tokens": 4091}), Some(u32::MAX)), (4091, Length));
}

#[test]
fn a_stop_string_cuts_the_text_but_not_the_count() {
    let free = chat(&json!({"max_tokens": 40, "seed": 3}));
    let behavior = AnswerBehavior::default();
    let words = plan_answer(&free, 0, None, &behavior);
    let text = |plan: &AnswerPlan| plan.content_texts(0, plan.tokens, 0).collect::<String>();
    let whole = text(&words);
    // From the middle of the sixth word to the middle of the seventh.
    let before: String = (0..5).map(|index| words.token_text(index)).collect();
    let seam = before.len() + words.token_text(5).len();
    let stop = &whole[seam - 1..seam + 2];
    let end = whole.find(stop).unwrap();
    let ask = chat(&json!({"max_tokens": 40, "seed": 3, "stop": ["\u{1}", stop]}));
    let cut = plan_answer(&ask, 0, None, &behavior);
    assert_eq!((cut.finish, cut.stopped_by.as_deref()), (Finish::Stop, Some(stop)));
    assert_eq!(text(&cut), &whole[..end]);
    assert!(cut.tokens <= 7);
    // Not before the least count of tokens.
    let first = words.token_text(0);
    let ask = chat(&json!({"max_tokens": 40, "seed": 3, "stop": first, "min_tokens": 1}));
    assert_ne!(plan_answer(&ask, 0, None, &behavior).tokens, 1);
    let ask = chat(&json!({"max_tokens": 40, "seed": 3, "stop": first}));
    let cut = plan_answer(&ask, 0, None, &behavior);
    assert_eq!((cut.tokens, cut.cut), (1, Some(0)));
}

#[test]
fn reasoning_is_a_share_that_the_request_can_switch_off() {
    let behavior = AnswerBehavior { reasoning: 0.4, ..AnswerBehavior::default() };
    let of = |more: &Value, share: f64| {
        let behavior = AnswerBehavior { reasoning: share, ..behavior };
        plan_answer(&chat(&with(json!({"max_tokens": 10}), more)), 0, None, &behavior)
            .reasoning_tokens
    };
    assert_eq!(of(&json!({}), 0.4), 4);
    assert_eq!((of(&json!({}), 0.99), of(&json!({}), 1.0), of(&json!({}), f64::NAN)), (9, 10, 0));
    for off in [
        json!({"reasoning_effort": "none"}),
        json!({"chat_template_kwargs": {"enable_thinking": false}}),
        json!({"chat_template_kwargs": {"thinking": false}}),
    ] {
        assert_eq!(of(&off, 0.4), 0, "{off}");
    }
    assert_eq!(of(&json!({"chat_template_kwargs": {"enable_thinking": true}}), 0.4), 4);
    assert_eq!(
        plan_answer(&completion(&json!({"max_tokens": 10})), 0, None, &behavior).reasoning_tokens,
        0
    );
}

#[test]
fn tools_are_called_as_asked() {
    let tools = json!([{"function": {"name": "a"}}, {"function": {"name": "b"}}]);
    let called = |more: &Value, share: f64, seed: u32| {
        let more = with(json!({"tools": tools, "seed": seed}), more);
        let behavior = AnswerBehavior { tool_calls: share, ..AnswerBehavior::default() };
        plan_answer(&chat(&more), 0, None, &behavior).tool
    };
    assert_eq!(called(&json!({}), 0.0, 1), None);
    assert_eq!(called(&json!({"tool_choice": "none"}), 1.0, 1), None);
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "b"}}});
    assert_eq!(called(&named, 0.0, 1).as_deref(), Some("b"));
    let required: Vec<_> =
        (0..40).filter_map(|seed| called(&json!({"tool_choice": "required"}), 0.0, seed)).collect();
    assert_eq!(required.len(), 40);
    assert!(required.contains(&"a".to_owned()) && required.contains(&"b".to_owned()));
    assert!((0..40).all(|seed| called(&json!({}), 1.0, seed).is_some()));
    // 200 draws of a half: within five standard deviations.
    let half = (0..200).filter(|seed| called(&json!({}), 0.5, *seed).is_some()).count();
    assert!((65..=135).contains(&half), "{half}");
}

#[test]
fn answers_are_a_function_of_the_seed() {
    let seed_of = |more: &Value, salt| {
        let mut ask = chat(more);
        ask.salt = salt;
        ask.answer_seed(0)
    };
    assert_eq!(seed_of(&json!({"seed": 1}), 1), seed_of(&json!({"seed": 1}), 2));
    assert_ne!(seed_of(&json!({"seed": 1}), 1), seed_of(&json!({"seed": 2}), 1));
    assert_eq!(seed_of(&json!({"temperature": 0}), 1), seed_of(&json!({"temperature": 0}), 2));
    assert_ne!(seed_of(&json!({}), 1), seed_of(&json!({}), 2));
    let several = chat(&json!({"n": 3, "seed": 1}));
    assert_eq!(several.choices(), 3);
    assert_ne!(several.answer_seed(0), several.answer_seed(1));
    assert_eq!(several.answer_seed(0), seed_of(&json!({"seed": 1}), 0));
}

#[test]
fn the_next_turn_begins_with_this_one_token_by_token() {
    let tools = json!([{"type": "function", "function": {"name": "find"}}]);
    for (tool_choice, reasoning) in
        [("none", 0.0), ("none", 0.5), ("required", 0.0), ("required", 0.5)]
    {
        let mut messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]);
        let behavior = AnswerBehavior { reasoning, ..AnswerBehavior::default() };
        for turn in 0..3 {
            let body = json!({"messages": messages, "tools": tools, "tool_choice": tool_choice, "max_tokens": 15});
            let ask = read(AnswerKind::Chat, &body).unwrap();
            let plan = plan_answer(&ask, 0, None, &behavior);
            let mut past = ask.prompts[0].to_vec();
            past.extend((0..plan.tokens).map(|index| plan.token_id(index)));
            past.push(END_OF_TURN);
            let answer = heard_whole(&ask, None, &behavior).1["choices"][0]["message"].clone();
            let list = messages.as_array_mut().unwrap();
            list.push(answer);
            list.push(json!({"role": "user", "content": format!("And {turn}?")}));
            let body = json!({"messages": messages, "tools": tools});
            let next = read(AnswerKind::Chat, &body).unwrap();
            assert!(next.prompts[0].starts_with(&past), "{tool_choice} {reasoning} turn {turn}");
            assert!(next.prompts[0].len() > past.len());
        }
    }
}

#[test]
fn a_completion_continues_its_prompt_token_by_token() {
    let ask = completion(&json!({"max_tokens": 12, "echo": true}));
    let plan = plan_answer(&ask, 0, None, &AnswerBehavior::default());
    let text = heard_whole(&ask, None, &AnswerBehavior::default()).0.remove(0).text;
    let next = read(AnswerKind::Completion, &json!({"prompt": text})).unwrap();
    let mut past = ask.prompts[0].to_vec();
    past.extend((0..12).map(|index| plan.token_id(index)));
    assert_eq!(next.prompts[0][..], past[..]);
    let mut ids = Vec::new();
    encode_text(&text, &mut ids);
    assert_eq!(ids.len(), 2 + 12);
}
