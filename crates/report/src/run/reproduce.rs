//! Everything that it takes to measure the same again, and the checklist of what a result must tell.

use goodput_model::GpuFacts;
use goodput_stats::{Audit, GpuDevice, Summary};

use super::{HTML, TEXT, facts, gpu, server};
use crate::audit::{checks_table, counts_text};
use crate::view::RunView;
use goodput_document::number::{amount, count, percent};
use goodput_document::{Block, Fact, Section};

pub(super) fn reproduce_section(view: &RunView<'_>) -> Section {
    let given = view.circumstances;
    let known = facts::run_facts(view.summary).into_iter().filter(|fact| fact.on.includes(TEXT));
    let mut all = content_facts(view.summary);
    all.extend(known.map(|fact| fact.on(HTML)));
    let mut section =
        Section::with_name("reproduce", "Reproduce", "Everything needed to reproduce it")
            .with_on(HTML, Block::Facts(all));
    if !given.facts.is_empty() {
        section = section
            .with_on(HTML, Block::Heading("Where it was measured".to_owned()))
            .with_on(HTML, Block::facts(given.facts.clone()));
    }
    section
        .with_some(HTML, Block::text_lines("Command", &view.summary.run.command, false))
        .with_some(HTML, Block::text_lines("The command that repeats it", &given.command, false))
        .with_some(HTML, Block::text_lines("The plan", &given.plan, false))
}

/// GPUs that the server runs on: as many as were seen, or as its user says.
pub(super) fn gpu_count(summary: &Summary) -> Option<u32> {
    let system = &summary.run.system;
    let seen = summary.gpu.as_ref().map_or(0, |gpu| gpu.devices.len()).max(system.gpus.len());
    let said = || system.fact(&["gpu_count", "gpus", "num_gpus"])?.parse().ok();
    u32::try_from(seen).ok().filter(|n| *n > 0).or_else(said).filter(|n| *n > 0)
}

/// What a report must tell, beyond the text page's own words.
fn content_facts(summary: &Summary) -> Vec<Fact> {
    let run = &summary.run;
    let mut all = vec![
        ("Hardware", hardware_text(summary)),
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
        ("Duration", duration_text(summary)),
        ("Samples", samples_text(summary)),
        ("Throughput", throughput_text(summary)),
    ];
    let used = utilization_text(summary);
    if !used.is_empty() {
        all.push(("Utilization", used));
    }
    all.push(("Variance", variance_text(summary)));
    all.push(("Seed", run.seed.to_string()));
    if !run.workload_hash.is_empty() {
        all.push(("Hash", format!("{}, of everything that the plan sends", run.workload_hash)));
    }
    all.into_iter().map(|(name, value)| Fact::new(name, value)).collect()
}

fn hardware_text(summary: &Summary) -> String {
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
        return format!("{}{link}", gpu::device_names(&seen));
    }
    match (system.fact(&server::HARDWARE), gpu_count(summary)) {
        (Some(kind), Some(n)) => format!("{n} × {kind} (stated by the user)"),
        (Some(kind), None) => format!("{kind} (stated by the user)"),
        (None, _) => "unknown; state it with --meta gpu=… --meta gpu_count=…".to_owned(),
    }
}

fn duration_text(summary: &Summary) -> String {
    let window = &summary.window;
    format!(
        "{:.1} s measured, from {:.1} s to {:.1} s after the first instant ({})",
        window.end_s - window.start_s,
        window.start_s,
        window.end_s,
        window.kind
    )
}

fn samples_text(summary: &Summary) -> String {
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

fn throughput_text(summary: &Summary) -> String {
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
    match gpu_count(summary) {
        Some(n) if n > 1 => format!("{}; per GPU ({n}): {}", text(1.0), text(f64::from(n))),
        Some(_) => format!("{} on one GPU", text(1.0)),
        None => format!("{}; per GPU unknown", text(1.0)),
    }
}

fn utilization_text(summary: &Summary) -> String {
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

fn variance_text(summary: &Summary) -> String {
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
pub(super) fn checklist_section(audit: &Audit) -> Section {
    let section = Section::new("checklist", "Checklist");
    let table = checks_table(audit).into_block();
    let counts = table.is_some().then(|| Block::remark_note(counts_text(audit)));
    section.with_some(HTML, counts).with_some(HTML, table)
}
