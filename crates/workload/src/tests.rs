//! The workload as others see it.

mod files;
mod golden;
mod presets;
mod refusals;
mod shapes;
mod sources;
mod talks;
mod traces;

use std::sync::Arc;

use goodput_model::{
    CalibrationSource, ClassPlan, LengthDistribution, Message, MessagePart, PrefixPlan, Request,
    Role, Session, SharedPlan, TokenCalibration, WorkloadPlan,
};

use crate::*;

/// A class of fixed lengths.
fn fixed(input: u32, output: u32) -> ClassPlan {
    ClassPlan::synthetic(
        "fixed",
        LengthDistribution::Fixed(input),
        LengthDistribution::Fixed(output),
    )
}

fn with_prefix(input: u32, system_tokens: u32, shared: Option<SharedPlan>) -> ClassPlan {
    ClassPlan { prefix: Some(PrefixPlan { system_tokens, shared }), ..fixed(input, 10) }
}

fn build(class: ClassPlan) -> Workload {
    Workload::new(&WorkloadPlan::new(class), &Setting::new(42)).unwrap()
}

/// The same, of a server whose template adds tokens.
fn build_with_template(class: ClassPlan, template_tokens: u32) -> Workload {
    let mut plan = WorkloadPlan::new(class);
    plan.calibration = Some(TokenCalibration {
        source: CalibrationSource::Usage,
        template_tokens,
        message_tokens: 0,
        costs: Lexicon::estimated_costs(),
    });
    Workload::new(&plan, &Setting::new(42)).unwrap()
}

fn refused(plan: &WorkloadPlan) -> WorkloadError {
    Workload::new(plan, &Setting::new(1)).unwrap_err()
}

fn first(workload: &Workload, number: u64) -> Request {
    let session = workload.session(number).unwrap();
    session.steps.into_iter().next().unwrap().requests.into_iter().next().unwrap()
}

fn text_of(message: &Message) -> String {
    match message {
        Message::Plain { parts, .. } => parts
            .iter()
            .map(|part| match part {
                MessagePart::Text(text) => text.as_ref(),
                MessagePart::Image(_) => "",
            })
            .collect(),
        Message::Raw(json) => json.to_string(),
    }
}

/// All text of a request, its messages apart.
fn whole(request: &Request) -> String {
    request.messages.iter().map(text_of).collect::<Vec<_>>().join("\n")
}

/// Tokens of our own text: words and marks.
fn count(text: &str) -> u32 {
    let marks = text.matches(['.', ',']).count();
    (text.split_whitespace().count() + marks) as u32
}

/// Tokens that two prompts have in common at their beginning.
fn common(a: &str, b: &str) -> u32 {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let head = &a[..same];
    // A word that was cut is not in common.
    let is_cut =
        a[same..].starts_with(char::is_alphabetic) || b[same..].starts_with(char::is_alphabetic);
    count(head) - u32::from(is_cut && head.ends_with(char::is_alphabetic))
}

fn role(message: &Message) -> Option<Role> {
    match message {
        Message::Plain { role, .. } => Some(*role),
        Message::Raw(_) => None,
    }
}

/// Planned input, output and cached tokens of every request.
fn plans(session: &Session) -> Vec<(u32, Option<u32>, Option<u32>)> {
    let requests = session.steps.iter().flat_map(|step| &step.requests);
    requests
        .map(|request| {
            let planned = &request.planned;
            (planned.input_tokens, planned.output_tokens, planned.cached_tokens)
        })
        .collect()
}

/// Whether two messages hold the same allocation as their first part.
fn share_allocation(a: &Message, b: &Message) -> bool {
    let part = |message: &Message| match message {
        Message::Plain { parts, .. } => parts.first().cloned(),
        Message::Raw(_) => None,
    };
    match (part(a), part(b)) {
        (Some(MessagePart::Text(a)), Some(MessagePart::Text(b))) => Arc::ptr_eq(&a, &b),
        _ => false,
    }
}
