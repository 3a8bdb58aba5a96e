//! Classes of traffic that have a name.

use std::time::Duration;

use goodput_model::{ClassPlan, Clip, Delay, History, LengthDistribution, SessionPlan, ToolsPlan};

/// The standard deviation of the logarithm of lengths, in every preset.
const SIGMA: f64 = 0.8;

/// Names of the presets.
pub const PRESETS: [&str; 7] = [
    "chat",
    "short_chat",
    "code_generation",
    "long_context_qa",
    "summarization",
    "multi_turn",
    "agent",
];

/// The class of this name: four by seed 003, one that is light enough for a small machine, and two
/// that talk for longer.
pub fn find_preset(name: &str) -> Option<ClassPlan> {
    let ([input, input_low, input_high], [output, output_low, output_high]) = match name {
        "chat" => ([500, 50, 4_000], [200, 10, 2_000]),
        "short_chat" => ([200, 20, 2_000], [30, 5, 300]),
        "code_generation" => ([1_500, 200, 8_000], [500, 50, 4_000]),
        "long_context_qa" => ([16_000, 2_000, 128_000], [300, 20, 2_000]),
        "summarization" => ([4_000, 500, 32_000], [150, 50, 500]),
        "multi_turn" => ([300, 20, 4_000], [200, 10, 2_000]),
        "agent" => ([2_000, 200, 16_000], [100, 20, 1_000]),
        _ => return None,
    };
    let input = lognormal_lengths(input, input_low, input_high);
    let mut class =
        ClassPlan::synthetic(name, input, lognormal_lengths(output, output_low, output_high));
    class.session = match name {
        "multi_turn" => Some(chat_session()),
        "agent" => Some(SessionPlan { tools: Some(agent_tools()), ..chat_session() }),
        _ => None,
    };
    Some(class)
}

fn lognormal_lengths(median: u32, low: u32, high: u32) -> LengthDistribution {
    LengthDistribution::LogNormal(f64::from(median), SIGMA, Clip { low, high })
}

/// Two to eight turns, with time to read and write between them.
fn chat_session() -> SessionPlan {
    SessionPlan {
        turns: LengthDistribution::Uniform(2, 8),
        think: Delay::LogNormal(Duration::from_secs(8), SIGMA),
        turn_input: Some(lognormal_lengths(80, 5, 1_000)),
        history: History::Server,
        tools: None,
    }
}

/// One to six calls of tools that answer in about a second, and one sub-agent next to each.
fn agent_tools() -> ToolsPlan {
    ToolsPlan {
        calls: LengthDistribution::Uniform(1, 6),
        delay: Delay::LogNormal(Duration::from_secs(1), SIGMA),
        result: lognormal_lengths(400, 20, 8_000),
        fan_out: 1,
        tool_role: false,
    }
}
