//! What prompts share, and what they do not.

use goodput_model::Constraint;
use std::collections::HashMap;

use super::*;

/// Tokens of a cache block.
const BLOCK: u32 = 16;

#[test]
fn plain_prompts_share_nothing() {
    let workload = build(fixed(64, 8));
    let prompts: Vec<String> = (0..200).map(|n| whole(&first(&workload, n))).collect();
    for (index, a) in prompts.iter().enumerate() {
        assert_eq!(count(a), 64);
        // The opener, and digits that happen to agree: far less than a block.
        assert!(prompts[index + 1..].iter().all(|b| common(a, b) < 5));
    }
    assert_eq!(first(&workload, 0).planned.cached_tokens, None);
}

#[test]
fn the_template_is_part_of_the_prompt() {
    let workload = build_with_template(fixed(100, 8), 11);
    let request = first(&workload, 0);
    assert_eq!(request.planned.input_tokens, 100);
    assert_eq!(count(&whole(&request)), 89);
    // A template longer than the prompt leaves one token of text, and the plan says so.
    let request = first(&build_with_template(fixed(5, 8), 11), 0);
    assert_eq!((request.planned.input_tokens, count(&whole(&request))), (12, 1));
}

#[test]
fn a_system_prompt_is_one_text_for_the_class() {
    let workload = build_with_template(with_prefix(500, 120, None), 10);
    let [a, b] = [first(&workload, 0), first(&workload, 1)];
    assert_eq!(role(&a.messages[0]), Some(Role::System));
    assert_eq!(role(&a.messages[1]), Some(Role::User));
    assert!(share_allocation(&a.messages[0], &b.messages[0]));
    assert_eq!(count(&text_of(&a.messages[0])), 120);
    assert_eq!(count(&text_of(&a.messages[1])), 500 - 120 - 10);
    assert!(common(&text_of(&a.messages[1]), &text_of(&b.messages[1])) < 5);
    // 130 tokens before the user's text: eight blocks.
    assert_eq!(a.planned.cached_tokens, Some(128));
}

#[test]
fn groups_share_their_beginning_and_are_as_popular_as_planned() {
    let shared = SharedPlan::Groups { groups: 4, tokens: 200, zipf: 1.0 };
    let workload = build(with_prefix(300, 0, Some(shared)));
    let mut groups: HashMap<String, u32> = HashMap::new();
    let n = 2_000u32;
    for number in 0..n {
        let request = first(&workload, number.into());
        assert_eq!(request.planned.input_tokens, 300);
        assert_eq!(request.planned.cached_tokens, Some(192));
        let Message::Plain { parts, .. } = &request.messages[0] else { panic!() };
        let [MessagePart::Text(shared), MessagePart::Text(fresh)] = parts.as_slice() else {
            panic!()
        };
        assert_eq!((count(shared), count(fresh)), (200, 100));
        assert!(fresh.starts_with(' '), "the two are one text");
        *groups.entry(shared.to_string()).or_default() += 1;
    }
    let mut counts: Vec<u32> = groups.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let total = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
    for (rank, count) in (1..=4).zip(&counts) {
        let p = 1.0 / f64::from(rank) / total;
        // Four standard errors of a share.
        let tolerance = 4.0 * (p * (1.0 - p) / f64::from(n)).sqrt();
        assert!((f64::from(*count) / f64::from(n) - p).abs() < tolerance, "{counts:?}");
    }
}

#[test]
fn a_hit_rate_is_met_by_whole_blocks() {
    for (share, template) in [(0.7, 0), (0.7, 11), (0.25, 5), (0.9, 30)] {
        let plan = SharedPlan::HitRate { share, groups: 1 };
        let mut class = with_prefix(0, 0, Some(plan));
        class.source = find_preset("chat").unwrap().source;
        let workload = build_with_template(class, template);
        let requests: Vec<Request> = (0..400).map(|n| first(&workload, n)).collect();
        let longest = requests.iter().max_by_key(|r| r.planned.cached_tokens).unwrap();
        let mut cached = 0.0;
        for request in &requests {
            let planned = request.planned.cached_tokens.unwrap();
            assert_eq!(count(&whole(request)) + template, request.planned.input_tokens);
            // By hand: what the prompt really has in common with the longest of its group.
            if !std::ptr::eq(request, longest) {
                let same = common(&whole(request), &whole(longest)) + template;
                assert_eq!(same / BLOCK * BLOCK, planned, "{same}");
            }
            cached += f64::from(planned);
        }
        let all: f64 = requests.iter().map(|r| f64::from(r.planned.input_tokens)).sum();
        // The nearest block is at most half a block away; the mean of that error over lengths that
        // are spread over many blocks is near zero: four standard errors of a uniform error, and
        // the prompts too short for the nonce next to nine tenths.
        let tolerance = 4.0 * f64::from(BLOCK) / 12f64.sqrt() * 20.0 / all + 0.003;
        assert!((cached / all - share).abs() < tolerance, "{} for {share}", cached / all);
        assert!((workload.cache_estimate(400) - cached / all).abs() < 1e-12);
    }
}

#[test]
fn tiling_goes_round_its_contexts_in_order() {
    let plan = SharedPlan::Tiling { contexts: 3, tokens: 160 };
    let workload = build(with_prefix(200, 0, Some(plan)));
    let requests: Vec<Request> = (0..7).map(|n| first(&workload, n)).collect();
    for (a, request) in requests.iter().enumerate() {
        for (b, other) in requests.iter().enumerate().skip(a + 1) {
            let same = common(&whole(request), &whole(other));
            if (b - a) % 3 == 0 {
                assert!((160..165).contains(&same), "{a} {b}: {same}");
                assert!(share_allocation(&request.messages[0], &other.messages[0]));
            } else {
                assert!(same < 16, "{a} {b}: {same}");
            }
        }
        assert_eq!(request.planned.cached_tokens, Some(160));
    }
}

#[test]
fn repeated_prompts_are_one_of_a_few() {
    let mut class = with_prefix(0, 0, Some(SharedPlan::Repeat { prompts: 5 }));
    class.source = find_preset("chat").unwrap().source;
    let workload = build(class);
    for number in 0..5 {
        let [a, b] = [first(&workload, number), first(&workload, number + 5)];
        assert_eq!(whole(&a), whole(&b));
        assert_eq!(a.planned.input_tokens, b.planned.input_tokens);
        let all = a.planned.input_tokens;
        assert_eq!(a.planned.cached_tokens, Some((all - 1) / 16 * 16));
        assert!(common(&whole(&a), &whole(&first(&workload, number + 1))) < 16);
    }
}

#[test]
fn a_prefix_longer_than_the_prompt_makes_it_longer_and_the_plan_says_so() {
    let plan = SharedPlan::Tiling { contexts: 2, tokens: 400 };
    let request = first(&build_with_template(with_prefix(100, 50, Some(plan)), 7), 3);
    assert_eq!(request.planned.input_tokens, 7 + 50 + 400 + 16);
    assert_eq!(count(&text_of(&request.messages[1])), 416);
    assert_eq!(request.planned.cached_tokens, Some(457 / 16 * 16));
}

#[test]
fn mixes_keep_names_models_and_shares() {
    let mut plan = WorkloadPlan::new(ClassPlan { share: 3.0, ..find_preset("chat").unwrap() });
    let lora = ClassPlan { model: Some("adapter".to_owned()), ..fixed(40, 4) };
    plan.classes.push(lora);
    let workload = Workload::new(&plan, &Setting::new(9)).unwrap();
    let requests: Vec<Request> = (0..1_000).map(|n| first(&workload, n)).collect();
    let chat = requests.iter().filter(|r| r.planned.class.as_ref() == "chat").count();
    assert_eq!(chat, 750);
    for request in &requests {
        let is_lora = request.planned.class.as_ref() == "fixed";
        assert_eq!(request.model.as_deref(), is_lora.then_some("adapter"));
    }
    assert!(
        describe_workload(&plan).starts_with("75% chat: input"),
        "{}",
        describe_workload(&plan)
    );
}

#[test]
fn constraints_fall_on_their_share_of_requests() {
    let structured = goodput_model::StructuredPlan {
        share: 0.3,
        kind: "regex".to_owned(),
        text: Some("[a-z]+".to_owned()),
    };
    let workload = build(ClassPlan { structured: Some(structured), ..fixed(20, 4) });
    let n = 2_000;
    let under = (0..n).filter(|number| {
        let request = first(&workload, *number);
        let kind = request.constraint.as_deref().map(Constraint::kind);
        assert_eq!(request.planned.constraint, kind);
        kind.is_some()
    });
    let share = under.count() as f64 / n as f64;
    // Four standard errors of a share of 0.3 among 2,000.
    assert!((share - 0.3).abs() < 4.0 * (0.21f64 / 2_000.0).sqrt(), "{share}");
}
