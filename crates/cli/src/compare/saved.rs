//! Saved runs, and a saved baseline against a live target.

mod baseline;
mod folders;
mod levels;
mod targets;

pub(super) use folders::answer;

use std::path::{Path, PathBuf};

use goodput_campaign::compare::{
    self, CompareFacts, CompareState, Comparison, Design, Floor, Gate, Proof, Quantity, SavedSide,
    Side,
};
use goodput_files::{MOST_SUMMARY, read_inside};
use goodput_model::Extent;
use goodput_record::{CampaignFolder, FolderError, SeriesFolder};

use super::promised;
use crate::args::{CompareArgs, GateArgs};
use crate::error::Failed;
use crate::run::{Setup, folder_path};
use crate::{report, typed};
use baseline::{Live, Measured};
use folders::{Lens, Run, Taken};
use goodput_lab::compare::names::each;
use goodput_lab::compare::{floor, gates, proof};
use goodput_lab::folder_failed;
use goodput_lab::host;
use levels::Levels;
use targets::{Place, Target};

/// Whether any of the targets is a folder.
pub(super) fn is_meant(args: &CompareArgs) -> bool {
    targets::any_saved(&args.targets)
}

/// What saved runs say. Where the comparison is (nowhere: an empty path), and what it says.
pub(super) fn compare(setup: &Setup, args: &CompareArgs) -> Result<(PathBuf, Comparison), Failed> {
    let begin = goodput_clock::now();
    let targets = targets::read(args)?;
    let is_live = targets.iter().any(Target::is_live);
    refuse_flags(&typed::flags(), is_live)?;
    let gates = gates::read(&args.gate.gate, &*setup.observer)?;
    let lens = Lens { slo: &args.slo, percentiles: gates::percentiles(&gates) };
    let mut sides =
        targets.iter().map(|target| read(target, &lens)).collect::<Result<Vec<_>, _>>()?;
    for run in sides.iter().flat_map(|side| &side.runs) {
        gates::check(&gates, &run.plan, &format!("`{}`", run.path.display()))?;
    }
    // All that can be refused is refused before anything is measured.
    let settled = Settled::of(setup, args, gates, &targets, &sides)?;
    let kept = kept(args, is_live, &sides)?;
    let mut state = CompareState::Complete;
    if let (true, Some(out)) = (is_live, &kept) {
        state = measure(setup, args, (&targets, &mut sides), &lens, out)?;
    }
    let facts = CompareFacts { state, took_s: (goodput_clock::now() - begin).as_secs(), ..facts() };
    let comparison = settled.conclude(facts, &targets, &sides);
    if let Some(out) = &kept {
        keep(out, &comparison)?;
    }
    Ok((kept.unwrap_or_default(), comparison))
}

/// What a folder holds; nothing yet of a server.
fn read(target: &Target, lens: &Lens<'_>) -> Result<Taken, Failed> {
    match &target.place {
        Place::Saved(folders) => Taken::read(folders, lens),
        Place::Live(_) => Ok(Taken::default()),
    }
}

/// What may be said about saved runs.
const ABOUT_SAVED: [&str; 15] = [
    "targets",
    "reference",
    "margin",
    "gate",
    "anyway",
    "gpus",
    "price_per_gpu_hour",
    "junit",
    "markdown",
    "slo",
    "attainment",
    "goodput",
    "out",
    "json",
    "quiet",
];

/// And about a server that the runs of a baseline are measured on again.
const ABOUT_LIVE: [&str; 8] = [
    "model",
    "headers",
    "api_key_env",
    "cacert",
    "insecure",
    "wait_ready",
    "no_probe",
    "save_text",
];

/// Refuses what saved runs, or the plans of a baseline, have answered already.
fn refuse_flags(typed: &[(String, String)], is_live: bool) -> Result<(), Failed> {
    let is_known = |id: &str| ABOUT_SAVED.contains(&id) || (is_live && ABOUT_LIVE.contains(&id));
    let Some((id, name)) = typed.iter().find(|(id, _)| !is_known(id)) else { return Ok(()) };
    Err(match id.as_str() {
        "count_with" => {
            Failed::usage("--count-with: saved runs are counted as when they were measured").hint(
                "measure with --count-with; runs that were so are also compared by that count \
                     (recounted_tokens_per_s) and in characters (characters_per_s)",
            )
        }
        _ if is_live => Failed::usage(format!("{name} is answered by the baseline's plan"))
            .hint("leave it out, or measure both targets anew: goodput compare URL URL"),
        _ => Failed::usage(format!("{name} is answered already: nothing is measured here"))
            .hint("leave it out, or name servers instead of folders"),
    })
}

/// Where the comparison will be; what is measured is always kept.
fn kept(args: &CompareArgs, is_live: bool, sides: &[Taken]) -> Result<Option<PathBuf>, Failed> {
    let first = sides.first().and_then(|side| side.runs.first());
    let path = match (&args.output.out, first) {
        (Some(out), _) => out.clone(),
        (None, Some(run)) if is_live => folder_path(None, &run.plan, "compare"),
        _ => return Ok(None),
    };
    let is_free = std::fs::read_dir(&path).map_or(!path.exists(), |mut all| all.next().is_none());
    if is_free { Ok(Some(path)) } else { Err(folder_failed(&FolderError::Occupied(path))) }
}

/// Fills in the sides of servers with what the baseline's runs measure there.
fn measure(
    setup: &Setup,
    args: &CompareArgs,
    (targets, sides): (&[Target], &mut [Taken]),
    lens: &Lens<'_>,
    out: &Path,
) -> Result<CompareState, Failed> {
    let live = |(side, target): (usize, &'_ Target)| match &target.place {
        Place::Live(url) => Some((side, target.name.clone(), url.clone())),
        Place::Saved(_) => None,
    };
    let named: Vec<_> = targets.iter().enumerate().filter_map(live).collect();
    let servers: Vec<Live<'_>> =
        named.iter().map(|(side, name, url)| Live { side: *side, name, url }).collect();
    let Some((baseline, others)) = sides.split_first_mut() else {
        return Ok(CompareState::Complete);
    };
    let Measured { sides: measured, state } =
        baseline::measure(setup, args, (baseline, lens), &servers, out)?;
    for (server, taken) in servers.iter().zip(measured) {
        if let Some(side) = server.side.checked_sub(1).and_then(|place| others.get_mut(place)) {
            *side = taken;
        }
    }
    Ok(state)
}

fn facts() -> CompareFacts {
    CompareFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: host::timestamp(),
        ..CompareFacts::default()
    }
}

/// What is settled before anything is measured.
struct Settled {
    levels: Levels,
    design: Design,
    floor: Option<Floor>,
    gpus: Vec<Option<u32>>,
    prices: Vec<Option<f64>>,
    insists: bool,
}

impl Settled {
    fn of(
        setup: &Setup,
        args: &CompareArgs,
        gates: Vec<Gate>,
        targets: &[Target],
        sides: &[Taken],
    ) -> Result<Self, Failed> {
        let levels = Levels::of(targets, sides)?;
        if !levels.has_runs() {
            gates::check_search(&gates)?;
        }
        let GateArgs { margin, anyway, ref gpus, ref price_per_gpu_hour, .. } = args.gate;
        let mut design = Design { gates, margin, ..design(targets, sides, &levels) };
        let floor = known_floor(setup, &mut design, sides)?;
        Ok(Self {
            levels,
            design,
            floor,
            gpus: each(gpus, targets.len(), "--gpus")?,
            prices: each(price_per_gpu_hour, targets.len(), "--price-per-gpu-hour")?,
            insists: anyway,
        })
    }

    /// What the runs say together.
    fn conclude(self, facts: CompareFacts, targets: &[Target], sides: &[Taken]) -> Comparison {
        let fewest = sides.iter().map(|side| side.runs.len()).min().unwrap_or(0);
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
        let first = sides.first().and_then(|side| side.runs.first());
        let facts = CompareFacts {
            workload: first.map_or_else(String::new, |run| run.summary.run.workload.clone()),
            slo: first.map_or_else(String::new, |run| promised(&run.plan.measure)),
            from_baseline: targets.iter().any(Target::is_live),
            blocks: fewest,
            ..facts
        };
        let design = Design { looks: vec![fewest], ..self.design };
        let proof = proof(&self.levels, sides);
        let behind = self.gpus.into_iter().zip(self.prices);
        let all = (0..).zip(targets.iter().zip(sides)).zip(behind);
        let side = |((place, (target, taken)), behind): ((u32, (&Target, &Taken)), _)| SavedSide {
            side: describe(target, taken, behind),
            runs: self.levels.cells(place, taken),
        };
        let saved = all.map(side).collect();
        let comparison = compare::saved(facts, design, saved, self.floor, self.insists);
        Comparison { proof, ..comparison }
    }
}

/// The floor holds for the machine that measured.
fn known_floor(
    setup: &Setup,
    design: &mut Design,
    sides: &[Taken],
) -> Result<Option<Floor>, Failed> {
    let has_slo =
        sides.iter().flat_map(|side| &side.runs).any(|run| run.plan.measure.slo.is_some());
    let is_here = |run: &&Run| {
        let host = &run.manifest.host;
        format!("{}, {}", host.cpu, host.system) == goodput_lab::calibrate::machine()
    };
    let first = sides.iter().filter_map(|side| side.runs.first());
    let mut runs: Vec<&Run> = first.filter(is_here).collect();
    // One rig, one word about its floor.
    runs.dedup_by_key(|run| (&run.plan.target.url, &run.manifest.target.model));
    for run in runs {
        let rig = floor::Rig {
            target: &run.plan.target.url,
            model: &run.manifest.target.model,
            workload: &run.summary.run.workload,
            has_slo,
            is_margin_chosen: typed::is_typed("margin"),
        };
        if let Some(floor) = floor::known(design, &rig, &*setup.observer)? {
            return Ok(Some(floor));
        }
    }
    Ok(None)
}

/// Who it is.
fn describe(
    target: &Target,
    taken: &Taken,
    (gpus, price_per_gpu_hour): (Option<u32>, Option<f64>),
) -> Side {
    let first = taken.runs.first().map(|run| &run.manifest.target);
    let shown = match &target.place {
        Place::Saved(folders) => {
            let folders: Vec<String> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            folders.join(", ")
        }
        Place::Live(_) => first.map_or_else(String::new, |first| first.url.clone()),
    };
    Side {
        name: target.name.clone(),
        target: shown,
        model: first.map_or_else(String::new, |first| first.model.clone()),
        gpus: gpus.or(taken.gpus),
        price_per_gpu_hour,
    }
}

/// What was asked, as far as runs that nobody planned together have it in common.
fn design(targets: &[Target], sides: &[Taken], levels: &Levels) -> Design {
    let design = Design {
        sides: targets.iter().map(|target| target.name.clone()).collect(),
        quantity: if levels.has_runs() { Quantity::Runs } else { Quantity::Goodput },
        levels: levels.named.clone(),
        settle_s: 0.0,
        ..Design::default()
    };
    let Some(run) = sides.first().and_then(|side| side.runs.first()) else { return design };
    let load = &run.plan.load;
    let window = &run.summary.window;
    Design {
        run_s: load.duration.map_or(window.end_s - window.start_s, |length| length.as_secs_f64()),
        burn_in_s: match load.warmup {
            Extent::Time(time) => time.as_secs_f64(),
            Extent::Requests(_) | Extent::Auto => 0.0,
        },
        seed: load.seed,
        ..design
    }
}

/// Whether those were sent the same that should have been: runs of one seed at one load.
fn proof(levels: &Levels, sides: &[Taken]) -> Option<Proof> {
    let (reference, others) = sides.split_first()?;
    let twin = |run: &Run, side: &Taken| {
        let is_twin = |other: &&Run| {
            other.plan.load.seed == run.plan.load.seed && levels.place(other) == levels.place(run)
        };
        side.runs.iter().find(is_twin).map(|twin| twin.path.clone())
    };
    let group = |run: &Run| {
        let twins = others.iter().map(|side| twin(run, side));
        std::iter::once(Some(run.path.clone())).chain(twins).collect::<Option<Vec<PathBuf>>>()
    };
    let placed = reference.runs.iter().filter(|run| levels.place(run).is_some());
    let groups: Vec<Vec<PathBuf>> = placed.filter_map(group).collect();
    if groups.is_empty() { None } else { proof::prove(&groups) }
}

/// Writes the comparison beside what was measured for it.
fn keep(out: &Path, comparison: &Comparison) -> Result<(), Failed> {
    let failed = |error: FolderError| folder_failed(&error);
    if !out.exists() {
        SeriesFolder::create(out).map_err(failed)?;
    }
    let page = goodput_report::compare_text(comparison);
    report::replace(&out.join("summary.json"), report::json(comparison).as_bytes())?;
    report::replace(&out.join(CampaignFolder::REPORT), page.as_bytes())?;
    report::keep_comparison(out, comparison);
    Ok(())
}

/// A comparison that is only its summary; none where there is no such.
pub(super) fn read_summary(path: &Path) -> Option<Result<Comparison, Failed>> {
    let file = path.join("summary.json");
    let bytes = read_inside(&file, MOST_SUMMARY).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    if value.get("schema").and_then(serde_json::Value::as_str) != Some(Comparison::SCHEMA) {
        return None;
    }
    let unreadable = |error: serde_json::Error| {
        Failed::usage(format!("`{}` cannot be used: {error}", file.display()))
    };
    Some(serde_json::from_value(value).map_err(unreadable))
}
