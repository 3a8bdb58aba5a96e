//! The system under test: what somebody else would need to repeat the run.

#![expect(clippy::unnecessary_wraps, reason = "checks have one signature")]

use goodput_model::Reported;

use super::words::number;
use super::{Check, Finding, Source};

pub(super) const CHECKS: [Check; 8] = [
    Check { code: "model", title: "model", source: Source::ReportContents, run: model },
    Check { code: "hardware", title: "hardware", source: Source::Checklist, run: hardware },
    Check { code: "precision", title: "precision", source: Source::Checklist, run: precision },
    Check {
        code: "engine",
        title: "engine and version",
        source: Source::ReportContents,
        run: engine,
    },
    Check {
        code: "engine_flags",
        title: "engine settings",
        source: Source::ReportContents,
        run: flags,
    },
    Check {
        code: "per_gpu_throughput",
        title: "throughput per GPU",
        source: Source::CommonMistakes,
        run: per_gpu,
    },
    Check {
        code: "utilisation",
        title: "resource utilisation",
        source: Source::ReportContents,
        run: utilisation,
    },
    Check { code: "seed", title: "seed", source: Source::ReportContents, run: seed },
];

/// Stated, or missing.
fn stated(fact: Option<&String>, advice: &str) -> Finding {
    match fact {
        Some(fact) => Finding::ok(fact.clone()),
        None => Finding::missing("not stated", advice),
    }
}

fn model(run: &Reported) -> Option<Finding> {
    Some(stated(run.model.as_ref(), "state the model and its revision"))
}

fn hardware(run: &Reported) -> Option<Finding> {
    let setup = &run.setup;
    let advice = "state GPU type, count and interconnect; in vLLM with --metadata gpu=… gpus=…";
    let gpus = setup.gpus.map(|n| format!("{n} GPUs"));
    let said = [setup.hardware.clone(), gpus, setup.interconnect.clone()];
    let said: Vec<_> = said.into_iter().flatten().collect();
    Some(match (&setup.hardware, setup.gpus) {
        (Some(_), Some(1)) => Finding::ok(said.join(", ")),
        (Some(_), Some(_)) if setup.interconnect.is_some() => Finding::ok(said.join(", ")),
        (None, None) => Finding::missing("neither GPU type nor count is stated", advice),
        _ => Finding::missing(format!("only {} is stated", said.join(", ")), advice),
    })
}

fn precision(run: &Reported) -> Option<Finding> {
    let advice = "state number format and quantisation: FP8 and BF16 differ by a factor of two";
    Some(stated(run.setup.precision.as_ref(), advice))
}

fn engine(run: &Reported) -> Option<Finding> {
    Some(stated(run.setup.engine.as_ref(), "state the engine and its version"))
}

fn flags(run: &Reported) -> Option<Finding> {
    let advice = "state the command line of the server; defaults differ between versions";
    Some(match &run.setup.flags {
        // A command line may hold a key: it is not repeated.
        Some(_) => Finding::ok("the file holds settings of the server"),
        None => Finding::missing("not stated", advice),
    })
}

fn per_gpu(run: &Reported) -> Option<Finding> {
    let rate = run.output_tokens_per_s?;
    Some(match run.setup.gpus.filter(|n| *n > 0) {
        Some(n) => Finding::ok(format!(
            "{} output tokens/s on {n} GPUs: {} each",
            number(rate),
            number(rate / n as f64)
        )),
        None => Finding::missing(
            "only the total is stated, and not how many GPUs made it",
            "state throughput per GPU",
        ),
    })
}

fn utilisation(run: &Reported) -> Option<Finding> {
    let advice = "watch GPU, memory bandwidth and KV cache beside the run";
    Some(stated(run.setup.utilisation.as_ref(), advice))
}

fn seed(run: &Reported) -> Option<Finding> {
    Some(match run.seed {
        Some(seed) => Finding::ok(format!("seed {seed}")),
        None => Finding::missing("not stated", "state the seed of prompts and arrivals"),
    })
}
