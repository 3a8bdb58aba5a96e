//! Texts that should be the same on both sides.

use super::{Matter, SideFacts};

/// Metrics that a path is part of.
pub(super) const PATH: &[&str] =
    &["ttft", "e2e", "goodput_rps", "goodput_tokens_per_s", "attainment"];

/// A text that should be the same on both.
pub(super) struct Text {
    pub(super) code: &'static str,
    pub(super) matter: Matter,
    pub(super) what: &'static str,
    pub(super) of: fn(&SideFacts) -> &str,
    pub(super) effect: &'static str,
    pub(super) advice: &'static str,
    pub(super) spoils: &'static [&'static str],
}

/// What every run was asked.
pub(super) const ASKED: [Text; 5] = [
    Text {
        code: "api",
        matter: Matter::Refuse,
        what: "the APIs differ",
        of: |facts| &facts.api,
        effect: "templates, framing, and the meaning of the first token differ",
        advice: "measure both with the same --api, with or without --no-stream",
        spoils: &[],
    },
    Text {
        code: "extra_body",
        matter: Matter::Refuse,
        what: "the extra body fields differ",
        of: |facts| &facts.extra_body,
        effect: "the servers did not get the same work",
        advice: "measure both with the same --extra-body",
        spoils: &[],
    },
    Text {
        code: "transport",
        matter: Matter::Warn,
        what: "the transports differ",
        of: |facts| &facts.transport,
        effect: "connections and framing are part of TTFT and E2E",
        advice: "measure both with the same --connections, with or without --http2",
        spoils: PATH,
    },
    Text {
        code: "count_with",
        matter: Matter::Warn,
        what: "answers were recounted by different tokenizers",
        of: |facts| match &facts.count_with {
            Some(name) => name,
            None => "",
        },
        effect: "recounted tokens are different units",
        advice: "recount both with the same --count-with",
        spoils: &["recounted_tokens_per_s"],
    },
    Text {
        code: "model",
        matter: Matter::Info,
        what: "the models have different names",
        of: |facts| &facts.model,
        effect: "the model may cause a difference, not the server",
        advice: "",
        spoils: &[],
    },
];

/// What only runs of different times and places can differ in.
pub(super) const AROUND: [Text; 4] = [
    Text {
        code: "load",
        matter: Matter::Refuse,
        what: "the loads differ",
        of: |facts| &facts.load,
        effect: "latencies and rates at different loads are not comparable",
        advice: "measure both at the same load",
        spoils: &[],
    },
    Text {
        code: "warmup",
        matter: Matter::Warn,
        what: "the warm-ups differ",
        of: |facts| &facts.warmup,
        effect: "one includes the start of the run, with cold caches and an empty queue, and the \
                 other does not",
        advice: "measure both with the same --warmup",
        spoils: &[],
    },
    Text {
        code: "version",
        matter: Matter::Warn,
        what: "the versions of goodput differ",
        of: |facts| &facts.version,
        effect: "they may measure differently",
        advice: "measure both with the same version",
        spoils: &[],
    },
    Text {
        code: "host",
        matter: Matter::Warn,
        what: "the measuring machines differ",
        of: |facts| &facts.host,
        effect: "every latency includes the client's own delays and its network path",
        advice: "measure both from one machine",
        spoils: &[],
    },
];
