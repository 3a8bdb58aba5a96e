use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;

use super::*;

/// Makes an empty file, and the folders that it lies in.
fn touch(root: &Path, name: &str) {
    write(root, name, "");
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The three files that make a run.
fn run(root: &Path, name: &str) {
    for file in ["plan.toml", "manifest.json", "requests.log"] {
        touch(root, &format!("{name}/{file}"));
    }
}

/// One folder of each kind, by the word for it.
fn one_of_each() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let path = root.path();
    run(path, "run");
    run(path, "repeats/repeat-1");
    run(path, "repeats/repeat-2");
    touch(path, "sweep/sweep.toml");
    run(path, "sweep/points/001-users-2");
    run(path, "sweep/points/002-users-4");
    run(path, "sweep/points/002-users-4.unfinished-1");
    touch(path, "sweeps/sweep.toml");
    touch(path, "sweeps/configurations/01-a/sweep.toml");
    touch(path, "comparison/compare.toml");
    run(path, "comparison/points/001-b01-A");
    run(path, "comparison/warm-up/001-A");
    touch(path, "shadow/shadow.toml");
    root
}

fn word(artifact: &Artifact) -> &'static str {
    match artifact {
        Artifact::Run(_) => "run",
        Artifact::Shard(_) => "shard",
        Artifact::Repeats(_) => "repeats",
        Artifact::Sweep(_) => "sweep",
        Artifact::Sweeps(_) => "sweeps",
        Artifact::Comparison(_) => "comparison",
        Artifact::Shadow(_) => "shadow",
        Artifact::Summary(_) => "summary",
        Artifact::File(_) => "file",
    }
}

fn opened(path: &Path) -> &'static str {
    word(&Artifact::open(path).unwrap())
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn each_kind_is_told_by_what_lies_in_its_folder() {
    let root = one_of_each();
    for kind in ArtifactKind::ALL {
        let path = root.path().join(kind.name());
        assert_eq!(ArtifactKind::from_folder(&path).unwrap(), Some(kind));
        let artifact = Artifact::open(&path).unwrap();
        assert_eq!((word(&artifact), artifact.path()), (kind.name(), path.as_path()));
        assert_eq!(artifact.summary_path(), path.join("summary.json"));
        assert_eq!(ArtifactKind::from_name(kind.name()), Some(kind));
        let json = serde_json::to_value(kind).unwrap();
        assert_eq!(json, kind.name(), "an index is saved with these words");
    }
    assert_eq!(ArtifactKind::from_folder(root.path()).unwrap(), None);
    assert_eq!(ArtifactKind::from_name("other"), None);
}

#[test]
fn parts_are_the_results_that_a_result_is_made_of() {
    let root = one_of_each();
    let parts = |name: &str| {
        let parts = Artifact::open(&root.path().join(name)).unwrap().part_folders();
        let inside = |path: &PathBuf| path.strip_prefix(root.path()).unwrap().display().to_string();
        parts.iter().map(inside).collect::<Vec<_>>()
    };
    assert_eq!(parts("repeats"), ["repeats/repeat-1", "repeats/repeat-2"]);
    assert_eq!(parts("sweep"), ["sweep/points/001-users-2", "sweep/points/002-users-4"]);
    assert_eq!(parts("sweeps"), ["sweeps/configurations/01-a"]);
    assert_eq!(parts("comparison"), ["comparison/points/001-b01-A"]);
    assert!(parts("run").is_empty() && parts("shadow").is_empty());
}

#[test]
fn a_shard_says_so_in_its_manifest() {
    let root = one_of_each();
    let manifest = |extra: &str| {
        let text = format!(
            r#"{{"schema": "goodput.manifest/1", "version": "-", "state": "complete", "started": "-",
            "host": {{"system": "-", "cpu": "-", "cpus": 2, "fd_limit": 1024}},
            "target": {{"url": "-", "route": "-", "address": "-", "model": "-"}},
            "clocks": {{"monotonic_ns": 1, "unix_ns": 2}}{extra}}}"#
        );
        write(root.path(), "run/manifest.json", &text);
    };
    let path = root.path().join("run");
    manifest("");
    RunFolder::open(&path).unwrap().read_manifest().unwrap();
    assert_eq!(opened(&path), "run");
    manifest(r#", "shard": {"shard": "1/2"}"#);
    assert_eq!(opened(&path), "shard");
    assert_eq!(ArtifactKind::from_folder(&path).unwrap(), Some(ArtifactKind::Run));
}

#[test]
fn a_run_may_lie_in_a_folder_with_any_name_next_to_it() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), ".");
    run(root.path(), "repeat-1");
    assert_eq!(opened(root.path()), "run");
    // Only without a run of its own a folder holds several.
    fs::remove_file(root.path().join("requests.log")).unwrap();
    assert_eq!(opened(root.path()), "repeats");
    fs::remove_dir_all(root.path().join("repeat-1")).unwrap();
    assert!(matches!(Artifact::open(root.path()), Err(FolderError::NotARun(_, "requests.log"))));
}

#[test]
fn a_summary_stands_for_its_folder() {
    let root = one_of_each();
    for kind in ArtifactKind::ALL {
        let folder = root.path().join(kind.name());
        write(&folder, "summary.json", "{}");
        let artifact = Artifact::open(&folder.join("summary.json")).unwrap();
        assert_eq!((word(&artifact), artifact.path()), (kind.name(), folder.as_path()));
    }
    // Elsewhere it is a file like any other.
    for name in ["alone/summary.json", "run/other.json"] {
        write(root.path(), name, r#"{"schema": "goodput.summary/1"}"#);
        let path = root.path().join(name);
        let artifact = Artifact::open(&path).unwrap();
        assert_eq!((word(&artifact), artifact.path()), ("file", path.as_path()));
        assert_eq!(artifact.summary_path(), path);
    }
}

#[test]
fn numbers_may_lie_alone_in_a_folder() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "summary.json", r#"{"schema": "goodput.comparison/1", "n": 3}"#);
    let Artifact::Summary(folder) = Artifact::open(root.path()).unwrap() else { panic!() };
    assert_eq!(
        (folder.path(), folder.read_schema().as_str()),
        (root.path(), "goodput.comparison/1")
    );
    assert_eq!(folder.read_summary::<serde_json::Value>().unwrap()["n"], 3);
    assert!(matches!(folder.read_summary::<u32>(), Err(FolderError::Damaged { .. })));
    // Without a log it is not a result that an index lists.
    assert_eq!(ArtifactKind::from_folder(root.path()).unwrap(), None);
    for unnamed in ["{}", "[]", "", r#"{"schema": 1}"#] {
        write(root.path(), "summary.json", unnamed);
        let Artifact::Summary(folder) = Artifact::open(root.path()).unwrap() else { panic!() };
        assert_eq!(folder.read_schema(), "", "{unnamed}");
    }
    let elsewhere = root.path().join("elsewhere.json");
    fs::write(&elsewhere, r#"{"schema": "goodput.comparison/1"}"#).unwrap();
    fs::remove_file(root.path().join("summary.json")).unwrap();
    symlink(&elsewhere, root.path().join("summary.json")).unwrap();
    assert!(Artifact::open(root.path()).is_err(), "a link leads out of the folder");
}

#[test]
fn what_is_not_there_and_what_holds_nothing_is_said() {
    let root = tempfile::tempdir().unwrap();
    let missing = root.path().join("missing");
    let said = Artifact::open(&missing).unwrap_err();
    assert!(matches!(&said, FolderError::Missing(path) if *path == missing));
    assert_eq!(said.to_string(), format!("`{}` does not exist", missing.display()));
    assert!(matches!(Artifact::open(root.path()), Err(FolderError::NotARun(_, "plan.toml"))));
    fs::create_dir(root.path().join(".merging")).unwrap();
    assert!(matches!(Artifact::open(root.path()), Err(FolderError::Unfinished(_))));
}

#[test]
fn only_plain_files_are_opened() {
    let root = one_of_each();
    let pipe = root.path().join("pipe");
    make_pipe(&pipe);
    let said = Artifact::open(&pipe).unwrap_err().to_string();
    assert!(said.contains("it is a pipe, not a plain file"), "{said}");
    // The user may name a link.
    for (to, kind) in [("run", "run"), ("sweep/sweep.toml", "file")] {
        let link = root.path().join(format!("link-to-{kind}"));
        symlink(root.path().join(to), &link).unwrap();
        assert_eq!(opened(&link), kind);
    }
    // Inside a folder of results a link would lead out of it, and a pipe would wait forever.
    let kinds =
        [("sweep", "sweep.toml"), ("comparison", "compare.toml"), ("shadow", "shadow.toml")];
    for (folder, name) in kinds {
        let file = root.path().join(folder).join(name);
        let moved = root.path().join(name);
        fs::rename(&file, &moved).unwrap();
        for (is_link, what) in [(true, "a link"), (false, "a pipe")] {
            if is_link {
                symlink(&moved, &file).unwrap();
            } else {
                make_pipe(&file);
            }
            let said = Artifact::open(&root.path().join(folder)).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(name), "{said}");
            assert!(ArtifactKind::from_folder(&root.path().join(folder)).is_err());
            fs::remove_file(&file).unwrap();
        }
    }
    // A run next to such a name is still a run.
    make_pipe(&root.path().join("run/sweep.toml"));
    assert_eq!(opened(&root.path().join("run")), "run");
    make_pipe(&root.path().join("run/server.log"));
    let said = Artifact::open(&root.path().join("run")).unwrap_err().to_string();
    assert!(said.contains("server.log") && said.contains("a pipe"), "{said}");
}
