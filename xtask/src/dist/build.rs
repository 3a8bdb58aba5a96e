//! Building the program so that it depends on the commit and the toolchain, and not on folders.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program, and says where it is.
#[expect(clippy::print_stderr, reason = "says what is not reproducible")]
pub(super) fn program(profile: &str) -> Result<PathBuf, String> {
    if !said("git", &["status", "--porcelain"]).is_ok_and(|changes| changes.is_empty()) {
        eprintln!("warning: the working tree is not what its commit says");
    }
    let folders = folders()?;
    let rust: Vec<String> =
        folders.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let c: Vec<String> =
        folders.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    let (rust, c) = (rust.join("\x1f"), c.join(" "));
    let time = time("HEAD")?.to_string();
    let environment = [
        ("CARGO_ENCODED_RUSTFLAGS", rust.as_str()),
        ("CFLAGS", c.as_str()),
        ("CXXFLAGS", c.as_str()),
        ("SOURCE_DATE_EPOCH", time.as_str()),
        ("CARGO_INCREMENTAL", "0"),
    ];
    let what = ["build", "--locked", "--package", "goodput", "--features", "full"];
    crate::cargo(&[&what[..], &["--profile", profile]].concat(), &environment)?;
    // Cargo calls the folder of its profile `dev` by another name.
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(crate::target_folder().join(folder).join("goodput"))
}

/// Seconds since 1970 of a commit, or what `SOURCE_DATE_EPOCH` says.
pub(super) fn time(commit: &str) -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) if commit.is_empty() => {
            return Err("the program names no commit: set SOURCE_DATE_EPOCH".to_owned());
        }
        Err(_) => said("git", &["log", "-1", "--format=%ct", commit])?,
    };
    text.parse().map_err(|_| format!("`{text}` is not a number of seconds since 1970"))
}

/// The target of this machine's toolchain.
pub(super) fn host() -> Result<String, String> {
    compiler("host: ")
}

/// What the compiler says of itself behind this word.
fn compiler(word: &str) -> Result<String, String> {
    let facts = said("rustc", &["-vV"])?;
    let fact = facts.lines().find_map(|line| line.strip_prefix(word));
    fact.map(str::to_owned).ok_or_else(|| format!("`rustc -vV` has no `{word}`:\n{facts}"))
}

/// Where the toolchain keeps the notices of Rust's standard library.
pub(super) fn library_notices() -> Result<PathBuf, String> {
    let sysroot = said("rustc", &["--print", "sysroot"])?;
    Ok(Path::new(&sysroot).join("share/doc/rust/COPYRIGHT-library.html"))
}

/// Folders of this machine whose names compilers would write down, and what stands for each. Of
/// several that match, the last one counts.
fn folders() -> Result<Vec<(String, String)>, String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let cargo_home = cargo_home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let sources = cargo_home.join("registry/src");
    let target = crate::target_folder();
    std::fs::create_dir_all(&target).map_err(|error| failed(&target, error))?;
    let mut found = vec![(super::root(), "/goodput"), (target, "/target"), (cargo_home, "/cargo")];
    // One for each registry, under a name that says where this machine reaches it.
    for entry in std::fs::read_dir(sources).into_iter().flatten().flatten() {
        found.push((entry.path(), "/registry"));
    }
    let absolute = |(path, name): (PathBuf, &str)| {
        let path = path.canonicalize().map_err(|error| failed(&path, error))?;
        Ok((path.display().to_string(), name.to_owned()))
    };
    let mut found: Vec<_> = found.into_iter().map(absolute).collect::<Result<_, String>>()?;
    // Where the library's source is installed, its folder takes the place of this name.
    let library = said("rustc", &["--print", "sysroot"])? + "/lib/rustlib/src/rust";
    found.push((library, format!("/rustc/{}", compiler("commit-hash: ")?)));
    Ok(found)
}

fn said(program: &str, words: &[&str]) -> Result<String, String> {
    let failed = |why: &str| format!("`{program} {}`: {}", words.join(" "), why.trim());
    let output = Command::new(program).args(words).current_dir(super::root()).output();
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(failed(&String::from_utf8_lossy(&output.stderr)))
    }
}
