//! How fast prompts are made: `generate [PROMPTS] [TOKENS]` on one thread.
#![allow(clippy::print_stdout)]

use goodput_model::{ClassPlan, LengthDistribution, Message, MessagePart, WorkloadPlan};
use goodput_workload::{Setting, Workload, WorkloadError};

fn main() -> Result<(), WorkloadError> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut next = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (prompts, tokens) = (next(100_000), next(1_000));
    let class = ClassPlan::synthetic(
        "speed",
        LengthDistribution::Fixed(tokens),
        LengthDistribution::Fixed(100),
    );
    let workload = Workload::new(&WorkloadPlan::new(class), &Setting::new(1))?;
    let start = goodput_clock::now();
    // All of them are kept, as a workload file would keep them.
    let sessions: Vec<_> =
        (0..u64::from(prompts)).map_while(|number| workload.session(number)).collect();
    let seconds = (goodput_clock::now() - start).as_secs();
    let requests = sessions.iter().flat_map(|s| &s.steps).flat_map(|step| &step.requests);
    let bytes: usize = requests
        .flat_map(|request| &request.messages)
        .flat_map(|message| match message {
            Message::Plain { parts, .. } => parts.as_slice(),
            Message::Raw(_) => &[],
        })
        .map(|part| match part {
            MessagePart::Text(text) | MessagePart::Image(text) => text.len(),
        })
        .sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{prompts} prompts of {tokens} tokens: {seconds:.2} s, {bytes} bytes of text");
    println!("{:.1} µs a prompt, {peak}", seconds * 1e6 / f64::from(prompts.max(1)));
    Ok(())
}
