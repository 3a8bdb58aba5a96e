//! Builds the settings of a shadow from the flags.

use std::collections::BTreeMap;
use std::time::Duration;

use goodput_campaign::compare::{Gate, Side};
use goodput_campaign::shadow::{PairSettings, can_judge};
use goodput_live::shadow::{ShadowPlan, percent_text};
use goodput_live::{By, Caps, HeadRules, Limits, MirrorSettings, Rules, StopAt, Upstream};

use crate::args::{ByName, CandidateArgs, ShadowArgs};
use crate::error::Failed;
use crate::printer::Printer;
use goodput_lab::compare::gates::parse_gates as read_gates;
use goodput_lab::host;

/// Probability of a wrong verdict about any of the tested figures.
const ALPHA: f64 = 0.05;

/// The plan of the shadow without secrets: values of headers and queries are left out.
pub(super) fn shadow_plan(
    args: &ShadowArgs,
    [primary, candidate]: [&Upstream; 2],
) -> Result<ShadowPlan, Failed> {
    let (choice, tried, verdict) = (&args.choice, &args.candidate_args, &args.verdict);
    let side = |name: &str, upstream: &Upstream, model: &Option<String>| Side {
        name: name.to_owned(),
        target: upstream.url.shown(),
        model: model.clone().unwrap_or_default(),
        ..Side::default()
    };
    Ok(ShadowPlan {
        schema: ShadowPlan::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: host::timestamp(),
        share: choice.share,
        flags: public_flags(args),
        pairs: PairSettings {
            block_s: verdict.block.as_secs_f64(),
            block_pairs: verdict.block_pairs,
            margin: verdict.margin,
            alpha: ALPHA,
            gates: parse_gates(&verdict.gate)?,
        },
        sides: [
            side("primary", primary, &None),
            side("candidate", candidate, &tried.candidate_model),
        ],
    })
}

/// The gates; each must be one that live traffic can decide.
fn parse_gates(texts: &[String]) -> Result<Vec<Gate>, Failed> {
    const HINT: &str = "write --gate 'p99 ttft < +5%, errors < +1%'";
    let gates = read_gates(texts, &Printer::new(false)).map_err(|failed| failed.hint(HINT))?;
    match gates.iter().find(|gate| !can_judge(gate)) {
        None => Ok(gates),
        Some(gate) => Err(Failed::usage(format!(
            "the gate `{gate}` needs a load that goodput sets: on live traffic, use percentiles of \
             ttft, tpot, itl, and e2e, and errors"
        ))
        .hint(HINT)),
    }
}

/// The other flags that were typed, without values that may be secret.
fn public_flags(args: &ShadowArgs) -> BTreeMap<String, String> {
    let (choice, tried) = (&args.choice, &args.candidate_args);
    let by = match choice.by {
        ByName::Conversation => "conversation",
        ByName::Request => "request",
    };
    let names: Vec<&str> = tried
        .candidate_header
        .iter()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    let time = |time: Duration| humantime::format_duration(time).to_string();
    let all = [
        ("by", by.to_owned()),
        ("seed", choice.seed.to_string()),
        ("only-model", choice.only_model.join(", ")),
        ("not-model", choice.not_model.join(", ")),
        ("only-path", choice.only_path.join(", ")),
        ("not-path", choice.not_path.join(", ")),
        ("candidate-model", tried.candidate_model.clone().unwrap_or_default()),
        ("candidate-key-env", tried.candidate_key_env.clone().unwrap_or_default()),
        ("candidate-header", names.join(", ")),
        ("forward-header", tried.forward_header.join(", ")),
        ("forward-credentials", tried.forward_credentials.to_string()),
        ("max-in-flight", tried.max_in_flight.to_string()),
        ("max-rate", tried.max_rate.map_or_else(String::new, |rate| rate.to_string())),
        ("max-queue", tried.max_queue.to_string()),
        ("candidate-timeout", time(tried.candidate_timeout)),
        ("stop-at-errors", percent_text(tried.stop_at_errors)),
        ("retry-after", time(tried.retry_after)),
        ("similarity", args.verdict.similarity.to_string()),
        ("duration", args.duration.map_or_else(String::new, time)),
        ("pairs", args.pairs.map_or_else(String::new, |pairs| pairs.to_string())),
        ("listen", args.proxy.listen.to_string()),
    ];
    let said = all.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(flag, value)| (flag.to_owned(), value)).collect()
}

/// The settings of the mirror.
pub(super) fn mirror_settings(
    args: &ShadowArgs,
    candidate: Upstream,
) -> Result<MirrorSettings, Failed> {
    let (choice, tried) = (&args.choice, &args.candidate_args);
    Ok(MirrorSettings {
        candidate,
        limits: Limits::default(),
        share: choice.share,
        seed: choice.seed,
        by: match choice.by {
            ByName::Conversation => By::Conversation,
            ByName::Request => By::Request,
        },
        rules: Rules {
            only_models: choice.only_model.clone(),
            not_models: choice.not_model.clone(),
            only_paths: choice.only_path.clone(),
            not_paths: choice.not_path.clone(),
        },
        model: tried.candidate_model.clone(),
        head: head_rules(tried)?,
        caps: Caps {
            queue: tried.max_queue as usize,
            in_flight: tried.max_in_flight as usize,
            rate: tried.max_rate,
            time: tried.candidate_timeout,
            ..Caps::default()
        },
        stop_at: StopAt {
            share: tried.stop_at_errors,
            pause: tried.retry_after,
            longest: tried.retry_after.max(Duration::from_mins(10)),
            ..StopAt::default()
        },
        keep_text: args.verdict.similarity,
    })
}

fn head_rules(args: &CandidateArgs) -> Result<HeadRules, Failed> {
    let mut head = HeadRules::new(args.forward_credentials);
    for line in &args.candidate_header {
        let Some((name, value)) = line.split_once(':') else {
            return Err(Failed::usage("--candidate-header without a colon")
                .hint("write --candidate-header 'Name: value'"));
        };
        head.add(name.trim(), value.trim()).map_err(Failed::usage)?;
    }
    if let Some(name) = &args.candidate_key_env {
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| {
            Failed::usage(format!("the environment variable {name} is empty or not set"))
                .hint(format!("export {name}=…, or remove --candidate-key-env"))
        })?;
        head.add("authorization", &format!("Bearer {}", key.trim())).map_err(Failed::usage)?;
    }
    for name in &args.forward_header {
        head.allow_header(name).map_err(|why| {
            let failed = Failed::usage(why);
            // Not of what nothing lets pass.
            let would_pass = HeadRules::new(true).allow_header(name).is_ok();
            if would_pass {
                failed.hint("add --forward-credentials to send clients' credentials")
            } else {
                failed
            }
        })?;
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        own: CandidateArgs,
    }

    #[test]
    fn nothing_is_recommended_that_would_be_refused() {
        let refused = |name: &str| {
            let typed = Typed::parse_from(["goodput", "--forward-header", name]);
            format!("{:?}", head_rules(&typed.own).unwrap_err())
        };
        assert!(refused("x-session-id").contains("--forward-credentials"));
        for never in ["cookie", "host", "a b"] {
            assert!(!refused(never).contains("--forward-credentials"), "{never}");
        }
    }

    #[test]
    fn gates_that_live_traffic_cannot_tell_are_refused() {
        let read = |text: &str| parse_gates(&[text.to_owned()]);
        let told =
            read("p99 ttft < +5%, p50 tpot < +5%, p90 itl < +5%, p99.9 e2e < +5%, errors < +1%");
        assert_eq!(told.unwrap().len(), 5);
        for untold in ["goodput > -3%", "attainment > -1%", "rps > -3%", "characters > -3%", "what"]
        {
            let refused = format!("{:?}", read(&format!("p99 ttft < +5%, {untold}")).unwrap_err());
            assert!(refused.contains("errors < +1%"), "{untold}: {refused}");
        }
    }
}
