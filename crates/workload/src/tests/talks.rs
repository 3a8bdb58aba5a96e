//! Conversations and agents.

use std::time::Duration;

use goodput_model::{Delay, History, SessionPlan, ToolsPlan};

use super::*;

fn plan() -> SessionPlan {
    SessionPlan {
        turns: LengthDistribution::Fixed(3),
        think: Delay::Fixed(Duration::from_secs(5)),
        turn_input: Some(LengthDistribution::Fixed(40)),
        history: History::Server,
        tools: None,
    }
}

#[test]
fn a_conversation_grows_by_what_was_said() {
    let class = ClassPlan { session: Some(plan()), ..fixed(100, 30) };
    let session = build_with_template(class, 9).session(7).unwrap();
    assert_eq!(session.history, History::Server);
    // 100, then 100+30 said and 40 more, then 170+30 and 40 more; whole blocks of what was said.
    let expected =
        [(100, Some(30), Some(0)), (170, Some(30), Some(128)), (240, Some(30), Some(192))];
    assert_eq!(plans(&session), expected);
    let pauses: Vec<u64> = session.steps.iter().map(|step| step.after.0).collect();
    assert_eq!(pauses, [0, 5_000_000_000, 5_000_000_000]);
    for (turn, step) in (0..).zip(&session.steps) {
        let request = &step.requests[0];
        assert_eq!((request.planned.session, request.planned.turn), (Some(7), turn));
        assert_eq!(request.messages.len(), 1, "only what is added");
        assert_eq!(step.reply, None);
        let text = text_of(&request.messages[0]);
        assert_eq!(count(&text), if turn == 0 { 91 } else { 40 });
    }
}

#[test]
fn answers_of_the_plan_have_their_planned_length() {
    let session = SessionPlan { history: History::Dataset, ..plan() };
    let class = ClassPlan { session: Some(session), ..fixed(100, 30) };
    let session = build(class).session(0).unwrap();
    assert_eq!(session.history, History::Dataset);
    for step in &session.steps {
        let reply = step.reply.as_ref().unwrap();
        assert_eq!(role(reply), Some(Role::Assistant));
        assert_eq!(count(&text_of(reply)), 30);
    }
}

#[test]
fn an_agent_calls_its_tools_between_question_and_answer() {
    let tools = ToolsPlan {
        calls: LengthDistribution::Fixed(2),
        delay: Delay::Fixed(Duration::from_millis(700)),
        result: LengthDistribution::Fixed(60),
        fan_out: 2,
        tool_role: true,
    };
    let session = SessionPlan { turns: LengthDistribution::Fixed(2), tools: Some(tools), ..plan() };
    let class = ClassPlan { session: Some(session), ..fixed(100, 20) };
    let session = build(class).session(3).unwrap();
    // Question, two results, question, two results.
    let shape: Vec<(u64, usize)> =
        session.steps.iter().map(|s| (s.after.0 / 1_000_000, s.requests.len())).collect();
    assert_eq!(shape, [(0, 1), (700, 3), (700, 3), (5_000, 1), (700, 3), (700, 3)]);
    assert_eq!(session.request_count(), 14);
    let step = &session.steps[1];
    let roles: Vec<_> = step.requests.iter().map(|r| role(&r.messages[0])).collect();
    assert_eq!(roles, [Some(Role::Tool), Some(Role::User), Some(Role::User)]);
    // All of them from the same history of 100 and 20.
    assert!(step.requests.iter().all(|r| r.planned.input_tokens == 180));
    assert!(step.requests.iter().all(|r| r.planned.cached_tokens == Some(112)));
    assert!(step.requests.iter().all(|r| r.planned.turn == 1));
    assert_ne!(step.requests[1].messages, step.requests[2].messages);
    // The main line goes on: 180 and 20, and 60 more.
    assert_eq!(session.steps[2].requests[0].planned.input_tokens, 260);
}

#[test]
fn without_lengths_of_their_own_later_turns_take_the_prompts() {
    let class =
        ClassPlan { session: Some(SessionPlan { turn_input: None, ..plan() }), ..fixed(100, 30) };
    let inputs: Vec<u32> =
        plans(&build(class).session(0).unwrap()).iter().map(|(input, ..)| *input).collect();
    assert_eq!(inputs, [100, 230, 360]);
}

#[test]
fn turns_and_pauses_are_drawn_for_each_session() {
    let workload = build(find_preset("multi_turn").unwrap());
    let turns: std::collections::BTreeSet<usize> =
        (0..200).map(|n| workload.session(n).unwrap().steps.len()).collect();
    assert_eq!(turns.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(workload.session(5), workload.session(5));
}

#[test]
fn requests_are_counted_without_making_them() {
    let tools = ToolsPlan {
        calls: LengthDistribution::Uniform(1, 4),
        result: LengthDistribution::Fixed(20),
        delay: Delay::Exponential(Duration::from_secs(1)),
        fan_out: 2,
        tool_role: true,
    };
    let agent = SessionPlan {
        turns: LengthDistribution::Uniform(1, 5),
        think: Delay::Exponential(Duration::from_secs(5)),
        tools: Some(tools),
        ..plan()
    };
    let agents = ClassPlan { session: Some(agent), ..fixed(100, 30) };
    let endless = SessionPlan { turns: LengthDistribution::Fixed(1_000_000), ..plan() };
    let endless = ClassPlan { session: Some(endless), ..fixed(1, 1) };
    for (class, sessions) in
        [(agents, 200), (find_preset("multi_turn").unwrap(), 200), (fixed(9, 9), 5), (endless, 1)]
    {
        let workload = build(class);
        for number in 0..sessions {
            let made = workload.session(number).unwrap().request_count();
            assert_eq!(workload.request_count(number), Some(made), "session {number}");
            assert_eq!(workload.deal_turn(number), number);
        }
    }
}
