//! Topics of `goodput help`: flags of a help heading, with an introduction and examples.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::args::command;

/// A topic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Topic {
    name: &'static str,
    introduction: &'static str,
    /// Commands, with the headings of their flags that belong to the topic.
    flags: &'static [(&'static str, &'static [&'static str])],
    examples: [(&'static str, &'static str); 2],
    /// Where there is more.
    more: &'static str,
}

const TOPICS: [Topic; 11] = [
    Topic {
        name: "load",
        introduction: "How much load goodput sends, when, and for how long.\n\n\
            An open loop (--rate, --schedule) sends requests at scheduled instants, whatever the \
            server does: use it to find out what users feel at a given load. A closed loop \
            (--concurrency) has a fixed number of users, who wait for each answer. Latency always \
            counts from the scheduled instant.",
        flags: &[("run", &["Load", "Client"]), ("sweep", &["Load"])],
        examples: [
            ("goodput run localhost:8000 --rate 8 --warmup 30s --duration 5m", "An open loop"),
            (
                "goodput run localhost:8000 --schedule 60s@5,60s@5..40,60s@5",
                "A ramp, such as an autoscaler has to follow",
            ),
        ],
        more: "goodput compare --help lists the flags of blocks",
    },
    Topic {
        name: "workload",
        introduction: "What goodput sends: prompts and the lengths of prompts and answers.\n\n\
            Presets generate text with lengths in the server's own tokens. A file of classes \
            (.toml) describes your own mix.",
        flags: &[("run", &["Workload"])],
        examples: [
            (
                "goodput run localhost:8000 --rate 8 --isl 512 --osl lognormal:200:0.5",
                "Fixed prompts, varying answers",
            ),
            (
                "goodput run localhost:8000 --rate 8 --mix chat=70%,summarization=30%",
                "A mix of two presets",
            ),
        ],
        more: "goodput workload --help, docs/workloads.md",
    },
    Topic {
        name: "dataset",
        introduction: "Prompts from a file or folder, or from a dataset of the hub.\n\n\
            Answers are limited to the length in the dataset, unless --output-length exact holds \
            them to it.",
        flags: &[("run", &["Dataset"])],
        examples: [
            ("goodput run localhost:8000 --rate 8 --dataset ShareGPT.json", "Prompts of ShareGPT"),
            (
                "goodput run localhost:8000 --rate 8 --dataset prompts.csv --prompt-column text",
                "A column of a table",
            ),
        ],
        more: "docs/workloads.md",
    },
    Topic {
        name: "trace",
        introduction: "Recorded or given arrivals, replayed.\n\n\
            A trace brings the instants, the lengths, and the shared prefixes of requests. \
            `goodput record` writes one from live traffic.",
        flags: &[("run", &["Trace", "Access log (--trace-format nginx)"])],
        examples: [
            ("goodput run localhost:8000 --trace trace.jsonl", "The same traffic again"),
            ("goodput run localhost:8000 --trace mooncake.jsonl --time-scale 0.5", "Twice as fast"),
        ],
        more: "docs/record.md, docs/import.md",
    },
    Topic {
        name: "sessions",
        introduction: "Requests that belong together: conversations with turns, and tool calls.",
        flags: &[("run", &["Sessions"])],
        examples: [
            (
                "goodput run localhost:8000 --concurrency 32 --turns 4 --turn-pause 5s",
                "Conversations of four turns",
            ),
            (
                "goodput run localhost:8000 --rate 1 --workload agent --tool-calls 3",
                "An agent with three tool calls per turn",
            ),
        ],
        more: "docs/workloads.md",
    },
    Topic {
        name: "cache",
        introduction: "The server's prefix cache, images, and constraints on answers.\n\n\
            By default every prompt has a different beginning, so that the cache cannot help. \
            --cache sets a state of your choice, and --prefix-groups shares prefixes.",
        flags: &[("run", &["Cache, images, structure"])],
        examples: [
            ("goodput run localhost:8000 --rate 8 --cache hit=70%", "A hit rate of 70 %"),
            (
                "goodput run localhost:8000 --rate 8 --structured json:50%",
                "Half of the answers must be JSON",
            ),
        ],
        more: "docs/workloads.md",
    },
    Topic {
        name: "slo",
        introduction: "What users need, as limits on latency, errors, and throughput.\n\n\
            A request is good if it completed within every per-request term. A term with a \
            percentile is met or missed if its interval lies on one side of the limit; otherwise \
            it is undecided.",
        flags: &[("run", &["SLO"])],
        examples: [
            (
                "goodput run localhost:8000 --rate 8 --slo 'p99 ttft < 500ms, errors < 1%'",
                "Exit code 0 if met, 4 if missed, 5 if undecided",
            ),
            (
                "goodput sweep localhost:8000 --slo interactive --attainment 99%",
                "The highest load at which 99 % of the requests are good",
            ),
        ],
        more: "docs/slo.md",
    },
    Topic {
        name: "endpoint",
        introduction: "How goodput reaches and speaks to the target: API, model, key, headers, TLS.",
        flags: &[("run", &["Endpoint"])],
        examples: [
            (
                "goodput run https://host/v1 --rate 8 --model llama --api-key-env MY_KEY",
                "A model behind a key",
            ),
            (
                "goodput run https://host/v1 --rate 8 --header 'X-Team: blue' --cacert ca.pem",
                "An additional header and a private certificate authority",
            ),
        ],
        more: "docs/secrets.md",
    },
    Topic {
        name: "server",
        introduction: "The server's side: its metrics and GPUs during the load, and commands around it.\n\n\
            goodput reads the server's metrics page and puts queue, batch, and KV usage next to \
            the latency that clients see.",
        flags: &[("run", &["Server metrics", "During the run"]), ("sweep", &["Start the server"])],
        examples: [
            (
                "goodput run localhost:8000 --rate 8 --gpu auto --gpu-idle 30s",
                "With power and energy of the GPUs",
            ),
            (
                "goodput run localhost:8000 --rate 8 --metrics-url http://replica-1:8000/metrics",
                "Metrics of a replica behind a gateway",
            ),
        ],
        more: "docs/server.md, docs/live.md, docs/energy.md",
    },
    Topic {
        name: "fleet",
        introduction: "One run from many machines.\n\n\
            Each process is a rank and sends its shard of the load. Rank 0, the coordinator, \
            starts the others and merges their results. `goodput fleet` starts ranks with Slurm, \
            Kubernetes, or Ray.",
        flags: &[("run", &["Fleet"])],
        examples: [
            (
                "goodput run http://llm:8000 --rate 800 --shard 0/2 --rendezvous a:7077",
                "Rank 0 of two, on machine a",
            ),
            (
                "goodput fleet slurm --ranks 8 -- run http://llm:8000 --rate 800",
                "Eight ranks as a Slurm job",
            ),
        ],
        more: "goodput fleet --help, docs/fleet.md",
    },
    Topic {
        name: "output",
        introduction: "Results and progress.\n\n\
            --out DIR is the folder of the result. --output FILE (-o) writes one file. --html, \
            --junit, and --markdown write a page in that format in addition. stdout has the \
            result, stderr everything else.",
        flags: &[("run", &["Output"])],
        examples: [
            ("goodput run localhost:8000 --rate 8 --out runs/today", "A folder of your choice"),
            ("goodput run localhost:8000 --rate 8 --json --percentiles p50,p99", "JSON on stdout"),
        ],
        more: "goodput report --help, docs/summary.md",
    },
];

impl Topic {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        TOPICS.iter().find(|topic| topic.name == name)
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        TOPICS.iter().map(|topic| topic.name)
    }

    /// The introduction, the flags with their long help, and the examples.
    pub(super) fn text(&self) -> StyledStr {
        let mut text = String::new();
        let last = self.flags.len().saturating_sub(1);
        for (number, (verb, headings)) in self.flags.iter().enumerate() {
            let mut page = command_with_flags(verb, headings);
            page = if number == 0 {
                page.before_long_help(self.introduction)
            } else {
                page.before_long_help(format!("goodput {verb}:"))
            };
            if number == last {
                page = page.after_long_help(self.text_below());
            }
            let _ = writeln!(text, "{}", page.render_long_help().ansi());
        }
        StyledStr::from(text)
    }

    fn text_below(&self) -> String {
        let mut text = "Examples:".to_owned();
        for (command, purpose) in self.examples {
            let _ = write!(text, "\n  {command}\n      {purpose}");
        }
        let _ = write!(text, "\n\nMore: {}", self.more);
        let root = command();
        if root.find_subcommand(self.name).is_some() && !self.more.contains("goodput") {
            let _ = write!(text, ", goodput {} --help", self.name);
        }
        text
    }
}

/// A command that has only the flags under these headings.
fn command_with_flags(verb: &str, headings: &[&str]) -> Command {
    let keep = |argument: Arg| {
        let is_of_topic = argument.get_help_heading().is_some_and(|name| headings.contains(&name));
        if is_of_topic { argument.hide_short_help(false) } else { argument.hide(true) }
    };
    let root = command();
    let verb = root.find_subcommand(verb).cloned().unwrap_or(root);
    verb.mut_args(keep)
        .disable_help_flag(true)
        .max_term_width(100)
        .after_long_help("")
        .help_template("{before-help}{all-args}{after-help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_flags_and_examples_that_parse() {
        for topic in TOPICS {
            let text = topic.text().to_string();
            assert!(text.matches("\n      --").count() >= 2, "{}\n{text}", topic.name);
            for (example, _) in topic.examples {
                assert!(text.contains(example), "{text}");
                let words = crate::args::documented::words(example);
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
        let load = Topic::find("load").unwrap().text().to_string();
        assert!(load.contains("--rate <R>") && !load.contains("--slo"), "{load}");
        assert!(load.contains("`inf` sends all"), "{load}");
    }

    #[test]
    fn every_heading_belongs_to_a_topic() {
        let own = ["Blocks", "Verdict"];
        let headings: Vec<&str> = TOPICS
            .iter()
            .flat_map(|topic| topic.flags)
            .flat_map(|(_, all)| *all)
            .copied()
            .collect();
        let root = command();
        for verb in ["run", "sweep", "compare"] {
            for argument in root.find_subcommand(verb).unwrap().get_arguments() {
                let Some(heading) = argument.get_help_heading() else { continue };
                assert!(headings.contains(&heading) || own.contains(&heading), "{verb}: {heading}");
            }
        }
    }
}
