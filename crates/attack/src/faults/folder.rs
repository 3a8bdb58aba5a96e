//! Folders of results that were damaged, or made to do damage.

mod mutation;
mod seeds;

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use mutation::{Family, Mutation};
use seeds::Seeds;

use super::{Uses, check_tool, new_case, start_with_wrapper};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, ScratchFolder};

/// Without a network nothing that a damaged plan names can be reached.
const ALONE: [&str; 2] = ["unshare", "-rn"];

/// What a use of a folder may end with; going on with one may also find that its target is gone.
const CODES: [i32; 4] = [0, 2, 4, 5];
const RESUMED: [i32; 5] = [0, 2, 3, 4, 5];

/// A kind of folder: its files that are damaged, and what is done with it (`@` is the folder).
struct FolderKind {
    name: &'static str,
    files: &'static [&'static str],
    uses: &'static [&'static [&'static str]],
    families: &'static [Family],
}

/// What works on every kind.
const READS: [&[&str]; 7] = [
    &["report", "@"],
    &["audit", "@"],
    &["report", "@", "--format", "md"],
    &["report", "@", "--format", "html", "-o", "out"],
    &["report", "@", "--format", "csv"],
    &["report", "@", "--format", "json"],
    &["report", "@", "--format", "parquet", "-o", "out"],
];

const RUN_FILES: &[&str] =
    &["plan.toml", "manifest.json", "requests.log", "server.log", "summary.json"];

/// Files of a run that must be plain ones for a report.
const NEEDED: [&str; 4] = ["plan.toml", "manifest.json", "requests.log", "server.log"];

const KINDS: [FolderKind; 6] = [
    FolderKind {
        name: "run",
        files: RUN_FILES,
        uses: &[
            &["compare", "@", "other"],
            &["plan", "@", "--target-rps", "10"],
            &["run", "--plan", "@/plan.toml", "--dry-run"],
        ],
        families: &Family::ALL,
    },
    FolderKind {
        name: "shard",
        files: RUN_FILES,
        uses: &[&["merge", "@", "shard-1", "--out", "out"]],
        families: &Family::ALL,
    },
    FolderKind {
        name: "series",
        files: &["summary.json", "repeat-1/requests.log", "repeat-2/manifest.json"],
        uses: &[&["compare", "@", "other"], &["plan", "@", "--target-rps", "10"]],
        families: &[Family::Bytes, Family::Numbers, Family::Places],
    },
    FolderKind {
        name: "sweep",
        files: &[
            "sweep.toml",
            "asks.jsonl",
            "summary.json",
            "points/002-rate-20/requests.log",
            "points/003-rate-40/summary.json",
        ],
        uses: &[&["plan", "@", "--target-rps", "10"], &["sweep", "--resume", "@", "--quiet"]],
        families: &Family::ALL,
    },
    FolderKind {
        name: "compare",
        files: &[
            "compare.toml",
            "asks.jsonl",
            "summary.json",
            "points/001-b01-A-rate-20/requests.log",
        ],
        uses: &[&["compare", "--resume", "@", "--quiet"]],
        families: &[Family::Bytes, Family::Numbers, Family::Places, Family::Sparse],
    },
    FolderKind {
        name: "shadow",
        files: &["shadow.toml", "primary.log", "candidate.log", "pairs.log", "summary.json"],
        uses: &[],
        families: &[Family::Bytes, Family::Numbers, Family::Frames, Family::Places],
    },
];

pub(super) fn cases() -> Vec<Case> {
    let seeds: Rc<OnceCell<Seeds>> = Rc::default();
    let mut all = Vec::new();
    for kind in &KINDS {
        for &family in kind.families {
            let (seeds, name) =
                (Rc::clone(&seeds), format!("{} with {}", kind.name, family.name()));
            // What is read may take some twenty times the room of its text.
            let most = if family == Family::Bulk { 400.0 } else { 160.0 };
            let expected = CaseBounds::exit(&RESUMED).within(6.0, most);
            all.push(new_case("folder", name, expected, move |goodput| {
                damage_case(goodput, Seeds::cached(&seeds, goodput)?, kind, family)
            }));
        }
    }
    for (name, folder, file, planted, resume) in PLANTED {
        let seeds = Rc::clone(&seeds);
        let expected = CaseBounds::exit(&[2]).within(6.0, 160.0);
        all.push(new_case("folder", name, expected, move |goodput| {
            let seeds = Seeds::cached(&seeds, goodput)?;
            plant_file(goodput, seeds, &Plant { folder, file, planted, resume })
        }));
    }
    all
}

/// Every mutation of one family to every file, each followed by every use.
fn damage_case(
    goodput: &Binary,
    seeds: &Seeds,
    kind: &FolderKind,
    family: Family,
) -> Result<Observed, Skip> {
    check_tool(ALONE[0], &["-rn", "true"])?;
    let scratch = ScratchFolder::new()?;
    for name in ["other", "shard-1", kind.name] {
        seeds.copy_seed(name, &scratch.join(name))?;
    }
    let folder = scratch.join(kind.name);
    let mine = scratch.join("mine");
    fs::write(&mine, "mine")?;
    let before = file_names(scratch.path())?;
    let mut uses = Uses::default();
    for file in kind.files {
        let path = folder.join(file);
        let whole = fs::read(&path)?;
        for (number, mutation) in family.mutations(file, &whole, &mine).iter().enumerate() {
            mutation.apply(&path)?;
            // Every other way to read it, in turn; the first two always.
            let is_turn = |n: usize| family != Family::Bulk && n % 2 == number % 2;
            let reads = READS.iter().enumerate().filter(|(n, _)| *n < 2 || is_turn(*n));
            for words in reads.map(|(_, words)| words).chain(kind.uses) {
                let ended = run(goodput, scratch.path(), kind.name, words)?;
                let what = format!("{} of {file}: {}", mutation.name, words.join(" "));
                uses.add_ended(&what, allowed_codes(mutation, file, words), &ended);
                uses.check(!ended.stderr.contains("Usage:"), || format!("no such use: {what}"));
                mutation::remove_path(&scratch.join("out"))?;
            }
            uses.check(fs::read(&mine)? == b"mine", || format!("{} led a write", mutation.name));
            let after = file_names(scratch.path())?;
            uses.check(after == before, || format!("{} left {after:?}", mutation.name));
            // Going on with a folder changes it.
            mutation::remove_path(&folder)?;
            seeds.copy_seed(kind.name, &folder)?;
        }
    }
    Ok(uses.into_observed())
}

/// What a use may end with. For a required path that is not a plain file, only 2 is right.
fn allowed_codes(mutation: &Mutation, file: &str, words: &[&str]) -> &'static [i32] {
    let is_read = matches!(words, ["report" | "audit", ..]);
    match words {
        _ if is_read && mutation.is_not_plain() && NEEDED.contains(&file) => &[2],
        [_, "--resume", ..] => &RESUMED,
        _ => &CODES,
    }
}

fn run(goodput: &Binary, at: &Path, folder: &str, words: &[&str]) -> Result<EndedProcess, Skip> {
    let filled: Vec<String> = words.iter().map(|word| word.replace('@', folder)).collect();
    let filled: Vec<&str> = filled.iter().map(String::as_str).collect();
    Ok(start_with_wrapper(goodput, at, &ALONE, &filled)?.wait(10.0)?)
}

/// What lies in a folder, but for the streams of the processes.
fn file_names(folder: &Path) -> Result<Vec<String>, Skip> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".stdout") && !name.ends_with(".stderr") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A command put into a folder that is not done.
struct Plant {
    folder: &'static str,
    file: &'static str,
    planted: &'static str,
    resume: &'static [&'static str],
}

/// Name, folder, file, what is planted (`%` stands for what the file holds), and how it goes on.
const PLANTED: [(&str, &str, &str, &str, &[&str]); 4] = [
    (
        "sweep with a command",
        "sweep",
        "sweep.toml",
        "%\n[serve]\ncommand = \"touch PLANTED # {port}\"\ntimeout_s = 1.0\n",
        &["sweep", "--resume", "@", "--quiet"],
    ),
    (
        "sweep with a dotted command",
        "sweep",
        "sweep.toml",
        "serve.command = \"touch PLANTED # {port}\"\nserve.timeout_s = 1.0\n%",
        &["sweep", "--resume", "@", "--quiet"],
    ),
    (
        "compare with a command",
        "compare",
        "compare.toml",
        "switch_cmd = \"touch PLANTED\"\n%",
        &["compare", "--resume", "@", "--quiet"],
    ),
    (
        "compare with an escaped command",
        "compare",
        "compare.toml",
        "\"switch\\u005fcmd\" = \"touch\\u0020PLANTED\"\n%",
        &["compare", "--resume", "@", "--quiet"],
    ),
];

/// The command must not run, whatever is done with the folder, unless it is allowed.
fn plant_file(goodput: &Binary, seeds: &Seeds, plant: &Plant) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let folder = scratch.join(plant.folder);
    seeds.copy_seed(plant.folder, &folder)?;
    for left in ["points", "asks.jsonl", "summary.json", "warm-up"] {
        mutation::remove_path(&folder.join(left))?;
    }
    let path = folder.join(plant.file);
    fs::write(&path, plant.planted.replace('%', &fs::read_to_string(&path)?))?;
    let ran = scratch.join("PLANTED");
    let mut uses = Uses::default();
    for words in READS {
        run(goodput, scratch.path(), plant.folder, words)?;
        uses.check(!ran.exists(), || format!("`{}` ran the command", words.join(" ")));
        mutation::remove_path(&scratch.join("out"))?;
    }
    let ended = run(goodput, scratch.path(), plant.folder, plant.resume)?;
    uses.add_ended("resume", &[2], &ended);
    uses.check(!ran.exists(), || "it ran".to_owned());
    uses.check(ended.stderr.contains("touch PLANTED"), || format!("not shown: {}", ended.stderr));
    // That it runs when it is allowed shows that it was in the right place.
    run(goodput, scratch.path(), plant.folder, &[plant.resume, &["--allow-commands"]].concat())?;
    let is_live = ran.exists();
    uses.check(is_live, || "the planted command cannot be run".to_owned());
    Ok(uses.into_observed())
}
