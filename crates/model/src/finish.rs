//! Why an answer ended.

/// Finish reasons of servers and of those who pass on for them. Any other word could be anyone's.
const FINISHES: [&str; 22] = [
    "abort",
    "cancelled",
    "content_filter",
    "end_turn",
    "eos",
    "eos_token",
    "error",
    "function_call",
    "insufficient_system_resource",
    "length",
    "max_tokens",
    "model_length",
    "pause_turn",
    "recitation",
    "refusal",
    "safety",
    "stop",
    "stop_sequence",
    "timeout",
    "tool_calls",
    "tool_use",
    "unknown",
];
const OTHER: &str = "other";

/// A finish reason as it may be written: a known one, or `other`.
pub fn known_finish(reason: &str) -> &'static str {
    FINISHES.into_iter().find(|known| *known == reason).unwrap_or(OTHER)
}
