//! Everything that it takes to measure the same again, and the checklist of what a result must tell.

use goodput_model::GpuFacts;
use goodput_stats::{Audit, GpuDevice, Summary};

use super::{HTML, TEXT, facts, gpu, server};
use crate::audit::{checks, counts};
use crate::view::RunView;
use goodput_document::number::{amount, count, percent};
use goodput_document::{Block, Fact, Section};

pub(super) fn section(view: &RunView<'_>) -> Section {
    let given = view.circumstances;
    let known = facts::facts(view.summary).into_iter().filter(|fact| fact.on.has(TEXT));
    let mut all = contents(view.summary);
    all.extend(known.map(|fact| fact.on(HTML)));
    let mut section = Section::named("reproduce", "Reproduce", "Everything needed to reproduce it")
        .with_on(HTML, Block::Facts(all));
    if !given.facts.is_empty() {
        section = section
            .with_on(HTML, Block::Heading("Where it was measured".to_owned()))
            .with_on(HTML, Block::facts(given.facts.clone()));
    }
    section
        .with_some(HTML, Block::lines("Command", &view.summary.run.command, false))
        .with_some(HTML, Block::lines("The command that repeats it", &given.command, false))
        .with_some(HTML, Block::lines("The plan", &given.plan, false))
}

/// GPUs that the server runs on: as many as were seen, or as its user says.
pub(super) fn gpus(summary: &Summary) -> Option<u32> {
    let system = &summary.run.system;
    let seen = summary.gpu.as_ref().map_or(0, |gpu| gpu.devices.len()).max(system.gpus.len());
    let said = || system.fact(&["gpu_count", "gpus", "num_gpus"])?.parse().ok();
    u32::try_from(seen).ok().filter(|n| *n > 0).or_else(said).filter(|n| *n > 0)
}

/// What a report must tell, beyond the text page's own words.
fn contents(summary: &Summary) -> Vec<Fact> {
    let run = &summary.run;
    let mut all = vec![
        ("Hardware", hardware(summary)),
        ("Model", run.model.clone()),
        ("Target", format!("{}, {} API", run.target, run.api)),
        (
            "Warm-up",
            format!(
                "planned: {}; {} requests during it",
                run.warmup,
                count(summary.requests.warmup)
            ),
        ),
        ("Duration", duration(summary)),
        ("Samples", samples(summary)),
        ("Throughput", throughput(summary)),
    ];
    let used = utilisation(summary);
    if !used.is_empty() {
        all.push(("Utilization", used));
    }
    all.push(("Variance", variance(summary)));
    all.push(("Seed", run.seed.to_string()));
    if !run.workload_hash.is_empty() {
        all.push(("Hash", format!("{}, of everything that the plan sends", run.workload_hash)));
    }
    all.into_iter().map(|(name, value)| Fact::new(name, value)).collect()
}

fn hardware(summary: &Summary) -> String {
    let system = &summary.run.system;
    if summary.run.is_simulated() {
        return "none: the engine is simulated".to_owned();
    }
    let links: Vec<_> = system.gpus.iter().map(|gpu| gpu.interconnect.as_str()).collect();
    let link = links
        .iter()
        .find(|link| !link.is_empty())
        .map_or(String::new(), |link| format!("; {link}"));
    let named = |gpu: &GpuFacts| GpuDevice { name: gpu.name.clone(), ..GpuDevice::default() };
    let told = || system.gpus.iter().map(named).collect();
    let seen: Vec<GpuDevice> = summary.gpu.as_ref().map_or_else(told, |gpu| gpu.devices.clone());
    if !seen.is_empty() {
        return format!("{}{link}", gpu::names(&seen));
    }
    match (system.fact(&server::HARDWARE), gpus(summary)) {
        (Some(kind), Some(n)) => format!("{n} × {kind} (stated by the user)"),
        (Some(kind), None) => format!("{kind} (stated by the user)"),
        (None, _) => "unknown; state it with --meta gpu=… --meta gpu_count=…".to_owned(),
    }
}

fn duration(summary: &Summary) -> String {
    let window = &summary.window;
    format!(
        "{:.1} s measured, from {:.1} s to {:.1} s after the first instant ({})",
        window.end_s - window.start_s,
        window.start_s,
        window.end_s,
        window.kind
    )
}

fn samples(summary: &Summary) -> String {
    let known = [("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2e", "E2E")];
    let known = known.into_iter().filter_map(|(name, label)| {
        let metric = summary.metrics.get(name).filter(|metric| metric.n > 0)?;
        Some(format!("{label} {}", count(metric.n)))
    });
    let known: Vec<_> = known.collect();
    format!(
        "{} requests ({}); every percentile of the table is an exact order statistic of all of them",
        count(summary.requests.scheduled),
        known.join(", ")
    )
}

fn throughput(summary: &Summary) -> String {
    let rates = &summary.throughput;
    let all = [
        (rates.requests_per_s, "req/s"),
        (rates.output_tokens_per_s, "output tok/s"),
        (rates.total_tokens_per_s, "total tok/s"),
    ];
    let text = |per: f64| {
        let known = all
            .iter()
            .filter_map(|(rate, unit)| Some(format!("{} {unit}", amount((*rate)? / per))));
        known.collect::<Vec<_>>().join(" · ")
    };
    match gpus(summary) {
        Some(n) if n > 1 => format!("{}; per GPU ({n}): {}", text(1.0), text(f64::from(n))),
        Some(_) => format!("{} on one GPU", text(1.0)),
        None => format!("{}; per GPU unknown", text(1.0)),
    }
}

fn utilisation(summary: &Summary) -> String {
    let devices = summary.gpu.iter().flat_map(|gpu| &gpu.devices);
    let mean = |name: &str| {
        let levels: Vec<f64> =
            devices.clone().filter_map(|gpu| Some(gpu.levels.get(name)?.mean)).collect();
        (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64)
    };
    let kv = summary.server.as_ref().and_then(|server| Some(server.levels.get("kv_usage")?.mean));
    let known = [
        (mean("busy"), "of the time a GPU was busy"),
        (mean("sm_active"), "of the SMs"),
        (mean("dram_active"), "of the memory's bandwidth"),
        (kv, "of the KV cache"),
    ];
    let known =
        known.into_iter().filter_map(|(share, of)| Some(format!("{} {of}", percent(share?))));
    known.collect::<Vec<_>>().join(", ")
}

fn variance(summary: &Summary) -> String {
    match summary.run.repeat {
        Some(repeat) => format!(
            "run {} of {}: the page of the parent folder shows how they differ",
            repeat.number, repeat.of
        ),
        None => {
            "of one run: intervals show how figures vary within it, not between runs; use --repeat \
             5 for that"
                .to_owned()
        }
    }
}

/// The checklist.
pub(super) fn checklist(audit: &Audit) -> Section {
    let section = Section::new("checklist", "Checklist");
    let table = checks(audit).filled();
    let counts = table.is_some().then(|| Block::remark(counts(audit)));
    section.with_some(HTML, counts).with_some(HTML, table)
}
