//! What it takes to measure the same again, from the files of a run.

use goodput_campaign::saved::Circumstances;
use goodput_campaign::sweep::SweepSummary;
use goodput_record::{CampaignFolder, Manifest, RunFolder, State};

/// Of a run. The same whatever its folder is called.
pub(super) fn circumstances_of_run(folder: &RunFolder, manifest: &Manifest) -> Circumstances {
    Circumstances {
        facts: environment_facts(manifest),
        plan: folder.read_plan_source(),
        command: "goodput run --plan plan.toml".to_owned(),
    }
}

/// Of a sweep: what its points have in common, and the command that began it; in files of older
/// versions the one that repeats the run that its answer rests on.
pub(super) fn circumstances_of_sweep(
    folder: &CampaignFolder,
    summary: &SweepSummary,
    point: Option<(&str, &Manifest)>,
) -> Circumstances {
    let typed = &summary.sweep.command;
    let command = match point {
        _ if !typed.is_empty() => typed.clone(),
        Some((folder, _)) => format!("goodput run --plan {folder}/plan.toml"),
        None => "goodput sweep --resume .".to_owned(),
    };
    Circumstances {
        facts: point.map_or_else(Vec::new, |(_, manifest)| environment_facts(manifest)),
        plan: folder.read_asked_source(),
        command,
    }
}

/// Names and values; what is not known is left out.
fn environment_facts(manifest: &Manifest) -> Vec<(String, String)> {
    let Manifest { host, target, workload, .. } = manifest;
    let build = manifest.build.as_ref();
    let state = match manifest.state {
        State::Running => "killed, or still running",
        State::Complete => "complete",
        State::Interrupted => "stopped by the user",
    };
    let quota = host.cpu_quota.map(|quota| format!("{quota:.2} CPUs"));
    let probe = target.probe_ms.map(|ms| format!("{ms:.1} ms"));
    let step = manifest.clock_step_ms().map(|ms| format!("{ms:+.3} ms during the run"));
    let clock =
        manifest.epoch_ns.map(|_| format!("{} ns", manifest.unix_ns(goodput_model::Nanos::ZERO)));
    let lost = (manifest.lost_records > 0).then(|| manifest.lost_records.to_string());
    let some = |text: &str| Some(text.to_owned());
    let all = [
        ("goodput", some(&manifest.version)),
        ("commit", build.map(|it| format!("{} {}", it.commit, it.committed).trim().to_owned())),
        ("built for", build.map(|it| it.target.clone())),
        ("built with", build.map(|it| it.features.join(", "))),
        ("state", some(state)),
        ("started", some(&manifest.started)),
        ("ended", manifest.ended.clone()),
        ("target", some(&target.url)),
        ("route", some(&target.route)),
        ("address", some(&target.address)),
        ("model", some(&target.model)),
        ("readiness check", probe),
        ("workload hash", some(&workload.hash)),
        ("tokens counted by", workload.calibration.clone()),
        ("client system", some(&host.system)),
        ("client processor", some(&host.cpu)),
        ("client processors", Some(host.cpus.to_string())),
        ("client CPU quota", quota),
        ("client open files", Some(host.fd_limit.to_string())),
        ("first instant, Unix time", clock),
        ("wall clock shifted by", step),
        ("records lost", lost),
    ];
    let known = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.chain(server_facts(manifest)).filter(|(_, value)| !value.is_empty()).collect()
}

/// The server's side.
fn server_facts(manifest: &Manifest) -> Vec<(String, String)> {
    let system = &manifest.system;
    let metrics = system.metrics.iter().map(|page| match page.engine.as_str() {
        "" => ("metrics".to_owned(), page.url.clone()),
        engine => ("metrics".to_owned(), format!("{} ({engine})", page.url)),
    });
    let gpus = system.gpus.iter().enumerate().map(|(place, gpu)| {
        let memory = gpu.memory_bytes.map(|bytes| format!(", {:.0} GB", bytes / 1e9));
        (format!("GPU {place}"), gpu.name.clone() + &memory.unwrap_or_default())
    });
    let sources = [("GPU source", &system.gpu_source), ("GPU driver", &system.gpu_driver)];
    let sources = sources.into_iter().map(|(name, value)| (name.to_owned(), value.clone()));
    let profiled = system.profiled.then(|| ("profiled".to_owned(), "yes".to_owned()));
    let named = |(kind, facts): (&'static str, &std::collections::BTreeMap<String, String>)| {
        let pairs = facts.iter();
        pairs.map(|(name, value)| (format!("{kind}: {name}"), value.clone())).collect::<Vec<_>>()
    };
    let words = [("from the user", &system.said), ("from the server", &system.found)];
    let words = words.into_iter().flat_map(named);
    words.chain(metrics).chain(sources).chain(gpus).chain(profiled).collect()
}
