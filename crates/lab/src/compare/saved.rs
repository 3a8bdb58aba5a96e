//! Saved runs, and a saved baseline against a live target.

mod baseline;
mod folders;
mod levels;
mod targets;

pub use folders::goodput_figure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goodput_campaign::compare::{
    self, CompareFacts, CompareState, Comparison, Design, Floor, Gate, Proof, Quantity, SavedSide,
    Side,
};
use goodput_model::{LoadExtent, Plan, Slo, SystemFacts};
use goodput_record::{Artifact, FolderError};

use super::names::{facts_by_side, one_per_side};
use super::{floor, gates, proof, slo_text};
use crate::error::{Failed, folder_failed};
use crate::host;
use crate::run::Lab;
pub use baseline::Replan;
use baseline::{Again, Live, Measured};
use folders::{Lens, SideResults, SideRun};
use levels::Levels;
pub use targets::{ComparedServer, RunSource, has_saved, parse_targets};

/// What is asked of saved runs.
pub struct SavedRequest<'a> {
    /// Who is compared, the reference first.
    pub targets: Vec<ComparedServer>,
    /// What must hold.
    pub gates: Vec<Gate>,
    /// Changes smaller than this do not matter.
    pub margin: f64,
    /// Whether the user chose that margin.
    pub is_margin_chosen: bool,
    /// A verdict though the sides are not comparable.
    pub insists: bool,
    /// GPUs behind each target: one number for all, or one for each.
    pub gpus: &'a [u32],
    /// What one of them costs for an hour, likewise.
    pub prices: &'a [f64],
    /// What the user states of the servers, of all or as `NAME.KEY` of one.
    pub meta: BTreeMap<String, String>,
    /// Settings that the comparison is about.
    pub under_test: Vec<String>,
    /// An SLO in the place of those that the runs had.
    pub slo: Option<Slo>,
    /// And the share of requests that must keep it.
    pub attainment: Option<f64>,
    /// Where to keep the comparison.
    pub out: Option<PathBuf>,
    /// Where to keep it without that, if something is measured.
    pub default_out: &'a dyn Fn(&Plan) -> PathBuf,
    /// The plan of a run of the baseline, for a server.
    pub replan: &'a Replan<'a>,
}

/// What saved runs say, those of a baseline also measured again. Where the comparison should be
/// kept (nowhere: none), and what it says.
pub fn compare_saved(
    lab: &Lab,
    mut request: SavedRequest<'_>,
) -> Result<(Option<PathBuf>, Comparison), Failed> {
    let begin = goodput_clock::now();
    let targets = std::mem::take(&mut request.targets);
    let slo = request.slo.take();
    let lens = Lens {
        slo: slo.as_ref(),
        attainment: request.attainment,
        percentiles: gates::reported_percentiles(&request.gates),
        observer: &*lab.observer,
    };
    let mut sides =
        targets.iter().map(|target| read_side(target, &lens)).collect::<Result<Vec<_>, _>>()?;
    for run in sides.iter().flat_map(|side| &side.runs) {
        gates::check_gates(&request.gates, &run.plan, &format!("`{}`", run.path.display()))?;
    }
    // All that can be refused is refused before anything is measured.
    let settled = Settled::new(lab, &request, &targets, &sides)?;
    let is_live = targets.iter().any(ComparedServer::is_live);
    let kept = comparison_folder(&request, is_live, &sides)?;
    let mut state = CompareState::Complete;
    if let (true, Some(out)) = (is_live, &kept) {
        let again = Again { replan: request.replan, lens: &lens, out };
        state = measure_servers(lab, &targets, &mut sides, &again)?;
    }
    let facts = CompareFacts {
        state,
        took_s: (goodput_clock::now() - begin).as_secs(),
        command: lab.redacted_command(),
        ..compare_facts()
    };
    Ok((kept, settled.conclude(facts, &targets, &sides)))
}

/// What a folder holds; nothing yet of a server.
fn read_side(target: &ComparedServer, lens: &Lens<'_>) -> Result<SideResults, Failed> {
    match &target.place {
        RunSource::Saved(folders) => SideResults::read_folders(folders, lens),
        RunSource::Live(_) => Ok(SideResults::default()),
    }
}

/// Where the comparison will be; what is measured is always kept.
fn comparison_folder(
    request: &SavedRequest<'_>,
    is_live: bool,
    sides: &[SideResults],
) -> Result<Option<PathBuf>, Failed> {
    let first = sides.first().and_then(|side| side.runs.first());
    let path = match (&request.out, first) {
        (Some(out), _) => out.clone(),
        (None, Some(run)) if is_live => (request.default_out)(&run.plan),
        _ => return Ok(None),
    };
    let is_free = std::fs::read_dir(&path).map_or(!path.exists(), |mut all| all.next().is_none());
    if is_free { Ok(Some(path)) } else { Err(folder_failed(&FolderError::Occupied(path))) }
}

/// Fills in the sides of servers with what the baseline's runs measure there.
fn measure_servers(
    lab: &Lab,
    targets: &[ComparedServer],
    sides: &mut [SideResults],
    again: &Again<'_>,
) -> Result<CompareState, Failed> {
    let live = |(side, target): (usize, &'_ ComparedServer)| match &target.place {
        RunSource::Live(url) => Some((side, target.name.clone(), url.clone())),
        RunSource::Saved(_) => None,
    };
    let named: Vec<_> = targets.iter().enumerate().filter_map(live).collect();
    let servers: Vec<Live<'_>> =
        named.iter().map(|(side, name, url)| Live { side: *side, name, url }).collect();
    let Some((baseline, others)) = sides.split_first_mut() else {
        return Ok(CompareState::Complete);
    };
    let Measured { sides: measured, state } =
        baseline::measure_baseline(lab, baseline, &servers, again)?;
    for (server, taken) in servers.iter().zip(measured) {
        if let Some(side) = server.side.checked_sub(1).and_then(|place| others.get_mut(place)) {
            *side = taken;
        }
    }
    Ok(state)
}

fn compare_facts() -> CompareFacts {
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
    /// What the user states of each side.
    meta: Vec<BTreeMap<String, String>>,
}

impl Settled {
    fn new(
        lab: &Lab,
        request: &SavedRequest<'_>,
        targets: &[ComparedServer],
        sides: &[SideResults],
    ) -> Result<Self, Failed> {
        let levels = Levels::new(targets, sides, &*lab.observer)?;
        if !levels.has_runs() {
            gates::check_search(&request.gates)?;
        }
        let (gates, margin) = (request.gates.clone(), request.margin);
        let under_test = request.under_test.clone();
        let mut design =
            Design { gates, margin, under_test, ..saved_design(targets, sides, &levels) };
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let floor = known_floor(lab, &mut design, sides, request.is_margin_chosen)?;
        Ok(Self {
            levels,
            design,
            floor,
            gpus: one_per_side(request.gpus, targets.len(), "--gpus")?,
            prices: one_per_side(request.prices, targets.len(), "--price-per-gpu-hour")?,
            insists: request.insists,
            meta: facts_by_side(&request.meta, &names),
        })
    }

    /// What the runs say together.
    fn conclude(
        self,
        facts: CompareFacts,
        targets: &[ComparedServer],
        sides: &[SideResults],
    ) -> Comparison {
        let fewest = sides.iter().map(|side| side.runs.len()).min().unwrap_or(0);
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
        let first = sides.first().and_then(|side| side.runs.first());
        let facts = CompareFacts {
            workload: first.map_or_else(String::new, |run| run.summary.run.workload.clone()),
            slo: first.map_or_else(String::new, |run| slo_text(&run.plan.measure)),
            from_baseline: targets.iter().any(ComparedServer::is_live),
            blocks: fewest,
            ..facts
        };
        let design = Design { looks: vec![fewest], ..self.design };
        let proof = prove_saved(&self.levels, sides);
        let behind = self.gpus.into_iter().zip(self.prices);
        let all = (0..).zip(targets.iter().zip(sides)).zip(behind);
        let side =
            |((place, (target, taken)), behind): ((u32, (&ComparedServer, &SideResults)), _)| {
                let mut runs = self.levels.compared_runs(place, taken);
                let said = self.meta.get(place as usize).cloned().unwrap_or_default();
                let said = SystemFacts { said, ..SystemFacts::default() }.settings();
                for run in &mut runs {
                    run.facts.server.extend(said.clone());
                }
                SavedSide { side: describe_side(target, taken, behind), runs }
            };
        let saved = all.map(side).collect();
        let comparison = compare::compare_saved(facts, design, saved, self.floor, self.insists);
        Comparison { proof, ..comparison }
    }
}

/// The floor holds for the machine that measured.
fn known_floor(
    lab: &Lab,
    design: &mut Design,
    sides: &[SideResults],
    is_margin_chosen: bool,
) -> Result<Option<Floor>, Failed> {
    let has_slo =
        sides.iter().flat_map(|side| &side.runs).any(|run| run.plan.measure.slo.is_some());
    let is_here = |run: &&SideRun| {
        let host = &run.manifest.host;
        format!("{}, {}", host.cpu, host.system) == crate::calibrate::machine_text()
    };
    let first = sides.iter().filter_map(|side| side.runs.first());
    let mut runs: Vec<&SideRun> = first.filter(is_here).collect();
    // One rig, one word about its floor.
    runs.dedup_by_key(|run| (&run.plan.target.url, &run.manifest.target.model));
    for run in runs {
        let rig = floor::Rig {
            target: &run.plan.target.url,
            model: &run.manifest.target.model,
            workload: &run.summary.run.workload,
            has_slo,
            is_margin_chosen,
        };
        if let Some(floor) = floor::apply_known_floor(design, &rig, &*lab.observer)? {
            return Ok(Some(floor));
        }
    }
    Ok(None)
}

/// Who it is.
fn describe_side(
    target: &ComparedServer,
    taken: &SideResults,
    (gpus, price_per_gpu_hour): (Option<u32>, Option<f64>),
) -> Side {
    let first = taken.runs.first().map(|run| &run.manifest.target);
    let shown = match &target.place {
        RunSource::Saved(folders) => {
            let folders: Vec<String> =
                folders.iter().map(|folder| folder.display().to_string()).collect();
            folders.join(", ")
        }
        RunSource::Live(_) => first.map_or_else(String::new, |first| first.url.clone()),
    };
    Side {
        name: target.name.clone(),
        target: shown,
        model: first.map_or_else(String::new, |first| first.model.clone()),
        gpus: gpus.or(taken.gpus),
        price_per_gpu_hour,
        ..Side::default()
    }
}

/// The request, as far as independent runs have it in common.
fn saved_design(targets: &[ComparedServer], sides: &[SideResults], levels: &Levels) -> Design {
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
            LoadExtent::Time(time) => time.as_secs_f64(),
            LoadExtent::Requests(_) | LoadExtent::Auto => 0.0,
        },
        seed: load.seed,
        ..design
    }
}

/// Whether those were sent the same that should have been: runs of one seed at one load.
fn prove_saved(levels: &Levels, sides: &[SideResults]) -> Option<Proof> {
    let (reference, others) = sides.split_first()?;
    let twin = |run: &SideRun, side: &SideResults| {
        let is_twin = |other: &&SideRun| {
            other.plan.load.seed == run.plan.load.seed
                && levels.place_of(other) == levels.place_of(run)
        };
        side.runs.iter().find(is_twin).map(|twin| twin.path.clone())
    };
    let group = |run: &SideRun| {
        let twins = others.iter().map(|side| twin(run, side));
        std::iter::once(Some(run.path.clone())).chain(twins).collect::<Option<Vec<PathBuf>>>()
    };
    let placed = reference.runs.iter().filter(|run| levels.place_of(run).is_some());
    let groups: Vec<Vec<PathBuf>> = placed.filter_map(group).collect();
    if groups.is_empty() { None } else { proof::prove_same_requests(&groups) }
}

/// A comparison of which only the summary exists; none otherwise.
pub fn read_summary_only(path: &Path) -> Option<Result<Comparison, Failed>> {
    match Artifact::open(path) {
        Ok(Artifact::Summary(folder)) if folder.read_schema() == Comparison::SCHEMA => {
            Some(folder.read_summary().map_err(|error| Failed::usage(error.to_string())))
        }
        _ => None,
    }
}
