//! What `cargo xtask dist` writes, checked with the programs of those who will use it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goodput_clock::now;
use goodput_model::Nanos;
use serde_json::Value;

use super::{COMPLETIONS, Release, formula, write};
use crate::python;
use crate::running::{Running, TemporaryFolder, install, succeeds};

/// The versions that are known to judge rightly.
const PACKAGES: [(&str, &str); 3] = [
    ("check-jsonschema", "0.39.0"),
    ("cyclonedx-python-lib", "11.12.0"),
    // The parts of the latter that read JSON.
    ("jsonschema", "4.26.0"),
];

const SCRIPT: &str = "\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(error and str(error))
";

/// What the image is asked to do: the shortest run.
const RUN: &str = "run mock:ttft=5ms,itl=1ms --rate 50 --num-requests 20 --quiet --out /tmp/run";

/// Longer than the longest of these takes on a busy machine.
const PATIENCE: Nanos = Nanos::from_millis(120_000);

/// Checks this build of `goodput`, without what only debuggers read.
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let scratch = TemporaryFolder::new()?;
    let program = scratch.path("goodput");
    succeed(Command::new("strip").arg("-o").arg(&program).arg(goodput))?;
    let (first, second) = (scratch.path("first"), scratch.path("second"));
    write(&program, &first)?;
    write(&program, &second)?;
    formula::write(&first, super::VERSION, super::NO_REPOSITORY)?;
    let release = Release::from_program(&program)?;
    are_equal(&first, &second)?;
    for sum in names(&first)?.iter().filter(|name| name.ends_with(".sha256")) {
        succeed(Command::new("sha256sum").args(["--check", "--quiet", sum]).current_dir(&first))?;
    }
    tarball(&first, &release)?;
    schemas(&first.join(format!("{}.cdx.json", release.name())))?;
    ruby(&first.join("goodput.rb"))?;
    image(&first.join(format!("{}.oci.tar", release.name())), &scratch.path("image"))
}

/// Both folders have files of the same names and bytes, apart from the formula.
fn are_equal(first: &Path, second: &Path) -> Result<(), String> {
    let mut expected = names(first)?;
    expected.remove("goodput.rb");
    if expected != names(second)? || expected.len() < 4 {
        return Err(format!("two packagings of one program differ in their files: {expected:?}"));
    }
    let read = |folder: &Path, name: &str| fs::read(folder.join(name)).ok();
    match expected.iter().find(|name| read(first, name) != read(second, name)) {
        Some(name) => Err(format!("two packagings of one program differ: {name}")),
        None => Ok(()),
    }
}

/// The tarball has what it should, and works where it is unpacked.
#[expect(clippy::print_stderr, reason = "says what was checked")]
fn tarball(folder: &Path, release: &Release) -> Result<(), String> {
    let name = release.name();
    succeed(Command::new("tar").args(["-xzf", &format!("{name}.tar.gz")]).current_dir(folder))?;
    let top = folder.join(name);
    let documents = [
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "SHA256SUMS",
        "THIRD_PARTY.md",
        "goodput.cdx.json",
    ];
    let expected = documents.map(|name| format!("doc/goodput/{name}")).into_iter();
    let expected = expected.chain(COMPLETIONS.map(|(_, path)| path.to_owned()));
    let expected =
        expected.chain(["goodput", "goodput-run"].map(|page| format!("man/man1/{page}.1")));
    for path in expected {
        let text = fs::read_to_string(top.join("share").join(&path)).unwrap_or_default();
        // A page that could not be made has a line or two.
        if text.lines().count() < 10 {
            return Err(format!("the tarball has no {path} of ten lines"));
        }
    }
    let sums = ["--check", "--quiet", "share/doc/goodput/SHA256SUMS"];
    succeed(Command::new("sha256sum").args(sums).current_dir(&top))?;
    let line = super::said(&top.join("bin/goodput"), &["--version"])?;
    if !line.contains(&release.target) {
        return Err(format!("the unpacked program says `{line}`"));
    }
    eprintln!("  the tarball unpacks, its sums hold, and its program runs");
    Ok(())
}

/// The bill of materials follows the schema of CycloneDX, and workflows that of GitHub.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
fn schemas(bill: &Path) -> Result<(), String> {
    let python = match python::environment("python-schemas", &PACKAGES, &[]) {
        Ok(python) => python,
        Err(missing) => {
            eprintln!("SKIPPED: the check of the bill of materials and of workflows; {missing}");
            return Ok(());
        }
    };
    succeed(Command::new(&python).args(["-c", SCRIPT]).arg(bill))?;
    eprintln!("  the bill of materials follows the schema of CycloneDX 1.6");
    let mut command = Command::new(&python);
    command.args(["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]);
    let folder = super::root().join(".github/workflows");
    succeed(command.args(names(&folder)?.iter().map(|name| folder.join(name))))?;
    eprintln!("  workflows follow the schema of GitHub");
    Ok(())
}

/// The formula is Ruby.
#[expect(clippy::print_stderr, reason = "says what was not checked")]
fn ruby(file: &Path) -> Result<(), String> {
    if !has("ruby") {
        eprintln!("SKIPPED: the check of the formula; ruby is missing (`apt-get install ruby`)");
        return Ok(());
    }
    succeed(Command::new("ruby").arg("-c").arg(file))
}

/// The image can be read by those who pull it, and its program runs in it.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
fn image(file: &Path, folder: &Path) -> Result<(), String> {
    if !file.exists() {
        return Ok(());
    }
    if has("skopeo") {
        let archive = format!("oci-archive:{}", file.display());
        succeed(Command::new("skopeo").args(["inspect", "--config", &archive]))?;
        eprintln!("  skopeo reads the image");
    } else {
        eprintln!("SKIPPED: the image as skopeo reads it (`apt-get install skopeo`)");
    }
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    succeed(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(folder))?;
    let layer = layer(folder)?;
    let root = folder.join("root");
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    succeed(Command::new("tar").arg("-xzpf").arg(layer).arg("-C").arg(&root))?;
    // Only root may change the root of a process.
    if !succeeds(Command::new("chroot").args(["/", "true"])) {
        eprintln!("SKIPPED: a run inside the image; only root may start it");
        return Ok(());
    }
    let mut command = Command::new("chroot");
    command.arg("--userspec=65532:65532").arg(&root).arg("/usr/local/bin/goodput");
    command.args(RUN.split(' ')).env_clear().stdout(Stdio::null());
    // To find `chroot` itself.
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // A busy machine makes the run doubtful (exit code 5); its files are written all the same.
    Running::start(&mut command)?.outcome(now() + PATIENCE).ok_or("the image did not run")?;
    if !root.join("tmp/run/summary.json").exists() {
        return Err("a run inside the image left no summary".to_owned());
    }
    eprintln!("  the image measures its own mock");
    Ok(())
}

/// The one layer of the image that lies in this folder.
fn layer(folder: &Path) -> Result<PathBuf, String> {
    let blob = |digest: &Value| {
        let digest = digest.as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        folder.join("blobs/sha256").join(digest.unwrap_or_default())
    };
    let read = |path: &Path| -> Result<Value, String> {
        let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let index = read(&folder.join("index.json"))?;
    let manifest = read(&blob(&index["manifests"][0]["digest"]))?;
    Ok(blob(&manifest["layers"][0]["digest"]))
}

fn names(folder: &Path) -> Result<BTreeSet<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    Ok(entries.filter_map(Result::ok).map(name).collect())
}

/// Whether a program is here, or can be installed.
fn has(program: &str) -> bool {
    let is_here = || succeeds(Command::new(program).arg("--version"));
    is_here() || (install(program) && is_here())
}

/// Runs a command, and fails with what it says.
fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{name}: {}", String::from_utf8_lossy(&said).trim()))
}
