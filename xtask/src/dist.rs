//! `cargo xtask dist`: what is published for one commit and one target: a tarball, its bill of
//! materials, a container image, checksums, and a Homebrew formula (docs/release.md).

mod archive;
mod build;
mod check;
mod crates;
mod formula;
mod image;
mod notices;
mod packages;
mod sbom;
#[cfg(test)]
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archive::{Archive, gzip, sha256};
use packages::Packages;

pub(crate) use check::check;

/// What is published is built for these.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Stands in the formula until the project has a home.
const NO_REPOSITORY: &str = "https://example.invalid/goodput";

/// Shells with a folder for completions: the shell, and the file below `share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/goodput"),
    ("fish", "fish/vendor_completions.d/goodput.fish"),
    ("zsh", "zsh/site-functions/_goodput"),
];

/// What can be asked of it.
#[derive(Debug, PartialEq, Eq)]
struct DistOptions {
    profile: String,
    out: PathBuf,
    /// The program, where it is already built.
    binary: Option<PathBuf>,
    repository: String,
    /// Only the formula, from the tarballs that are there.
    is_formula: bool,
    /// Write nothing, and check the packaging of `binary`, if it is given, and the crates.
    is_check: bool,
}

impl Default for DistOptions {
    fn default() -> Self {
        Self {
            profile: "dist".to_owned(),
            out: crate::target_folder().join("packages"),
            binary: None,
            repository: NO_REPOSITORY.to_owned(),
            is_formula: false,
            is_check: false,
        }
    }
}

/// A program and what it says of itself.
#[derive(Debug)]
struct Release {
    version: String,
    /// Empty where the program was built outside a checkout.
    commit: String,
    target: String,
    features: String,
    /// The commit's, in seconds since 1970: the one time in everything that is written.
    time: u64,
    program: Vec<u8>,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let options = options(words)?;
    if options.is_check {
        options.binary.as_deref().map_or(Ok(()), check)?;
        return crates::check();
    }
    if !options.is_formula {
        let built = options.binary.clone().map_or_else(|| build::program(&options.profile), Ok)?;
        for name in write(&built, &options.out)? {
            wrote(&options.out.join(name));
        }
    }
    formula::write(&options.out, VERSION, &options.repository)?;
    wrote(&options.out.join("goodput.rb"));
    Ok(())
}

/// Writes the packages of the program with their licenses to a file, for those who hand it on.
pub(crate) fn write_licenses(words: &[String]) -> Result<(), String> {
    let packages = packages::packages(&build::host()?, "full")?;
    let path =
        words.first().map_or_else(|| crate::target_folder().join("THIRD_PARTY.md"), Into::into);
    put(&path, notices::page(&packages)?.as_bytes())?;
    wrote(&path);
    Ok(())
}

/// Writes everything but the formula, and returns the names of the files.
#[expect(clippy::print_stderr, reason = "says what was not made")]
fn write(program: &Path, out: &Path) -> Result<Vec<String>, String> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let release = Release::from_program(program)?;
    let packages = packages::packages(&release.target, &release.features)?;
    let bill = sbom::text(&release, &packages)?;
    let name = release.name();
    let contents = contents(&release, &packages, program, &bill)?;
    let tarball = || gzip(&contents.to_tar(&format!("{name}/"), release.time)?);
    let image = || image::is_possible().then(|| image::archive(&release, program)).transpose();
    // Each compresses the whole program.
    let (tarball, image) = thread::scope(|scope| {
        let tarball = scope.spawn(tarball);
        let image = image();
        (tarball.join().unwrap_or_else(|_| Err("the tarball was not made".to_owned())), image)
    });
    let mut files = vec![("tar.gz", tarball?), ("cdx.json", bill.into_bytes())];
    match image? {
        Some(image) => files.push(("oci.tar", image)),
        None => eprintln!("SKIPPED: the image; its libraries come from Debian's packages"),
    }
    let mut names = Vec::new();
    for (extension, content) in files {
        let name = format!("{name}.{extension}");
        let sum = format!("{}  {name}\n", sha256(&content));
        put(&out.join(&name), &content)?;
        put(&out.join(format!("{name}.sha256")), sum.as_bytes())?;
        names.push(name);
    }
    Ok(names)
}

/// The files of the tarball, laid out as below `/usr/local`.
#[expect(clippy::print_stderr, reason = "says what was not found")]
fn contents(
    release: &Release,
    packages: &Packages,
    program: &Path,
    bill: &str,
) -> Result<Archive, String> {
    let mut contents = Archive::default();
    contents.program("bin/goodput", release.program.clone());
    for (shell, path) in COMPLETIONS {
        contents.file(&format!("share/{path}"), said(program, &["completions", shell])?);
    }
    let page = said(program, &["man"])?;
    for verb in verbs(&page) {
        let path = format!("share/man/man1/goodput-{verb}.1");
        contents.file(&path, said(program, &["man", verb])?);
    }
    contents.file("share/man/man1/goodput.1", page);
    let mut document = |name: &str, content: Vec<u8>| {
        contents.file(&format!("share/doc/goodput/{name}"), content);
    };
    for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
        let path = root().join(name);
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        document(name, content);
    }
    document("THIRD_PARTY.md", notices::page(packages)?.into());
    document("goodput.cdx.json", bill.into());
    match fs::read(build::library_notices()?) {
        Ok(notices) => document("RUST-LIBRARY.html", notices),
        Err(_) => eprintln!("SKIPPED: the notices of Rust's library; this toolchain lacks them"),
    }
    let sums: Vec<String> =
        contents.files().map(|(path, content)| format!("{}  {path}\n", sha256(content))).collect();
    contents.file("share/doc/goodput/SHA256SUMS", sums.concat());
    Ok(contents)
}

/// The commands in the manual page of goodput that have a page of their own.
fn verbs(page: &str) -> Vec<&str> {
    let lines = page.lines();
    lines.filter_map(|line| line.strip_prefix("goodput\\-")?.strip_suffix("(1)")).collect()
}

impl Release {
    /// What the program at this path says of itself.
    fn from_program(program: &Path) -> Result<Self, String> {
        let line = said(program, &["--version"])?;
        let facts = VersionLine::parse(line.trim())
            .ok_or_else(|| format!("`{}` does not name its target: {line}", program.display()))?;
        if facts.version != VERSION {
            return Err(format!("the program is of version {}, not {VERSION}", facts.version));
        }
        let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
        Ok(Self {
            version: facts.version.to_owned(),
            commit: facts.commit.to_owned(),
            target: facts.target.to_owned(),
            features: facts.features.replace(' ', ","),
            time: build::time(facts.commit)?,
            program: bytes,
        })
    }

    fn name(&self) -> String {
        name(&self.version, &self.target)
    }

    fn instant(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.time)
    }

    #[cfg(test)]
    fn of_tests() -> Self {
        Self {
            version: "1.2.3".to_owned(),
            commit: "1c0d6d6f31".to_owned(),
            target: TARGETS[0].to_owned(),
            features: "full".to_owned(),
            time: 1_790_000_000,
            program: b"program".to_vec(),
        }
    }
}

/// The parts of `goodput 0.1.0 (1c0d6d6f31 2026-11-19, x86_64-unknown-linux-gnu, features: full)`.
#[derive(Debug, PartialEq, Eq)]
struct VersionLine<'a> {
    version: &'a str,
    commit: &'a str,
    target: &'a str,
    features: &'a str,
}

impl<'a> VersionLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (version, facts) = line.strip_prefix("goodput ")?.split_once(" (")?;
        let facts: Vec<&str> = facts.strip_suffix(')')?.split(", ").collect();
        let (commit, target, features) = match facts[..] {
            [commit, target, features] => (commit.split(' ').next()?, target, features),
            [target, features] => ("", target, features),
            _ => return None,
        };
        let features = features.strip_prefix("features: ")?;
        let features = if features == "none" { "" } else { features };
        Some(Self { version, commit, target, features })
    }
}

/// What the names of all files begin with, and the top folder of a tarball.
fn name(version: &str, target: &str) -> String {
    format!("goodput-{version}-{target}")
}

fn tarball(version: &str, target: &str) -> String {
    format!("{}.tar.gz", name(version, target))
}

/// Where a forge offers the tarball.
fn download_url(repository: &str, version: &str, target: &str) -> String {
    format!("{repository}/releases/download/v{version}/{}", tarball(version, target))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What the program prints.
fn said(program: &Path, words: &[&str]) -> Result<String, String> {
    let failed = |why: String| format!("`{} {}`: {why}", program.display(), words.join(" "));
    let output = Command::new(program).args(words).output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() || output.stdout.is_empty() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(|error| failed(error.to_string()))
}

fn put(path: &Path, content: &[u8]) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

#[expect(clippy::print_stderr, reason = "says what was written")]
fn wrote(path: &Path) {
    eprintln!("wrote {}", path.display());
}

fn options(words: &[String]) -> Result<DistOptions, String> {
    let mut found = DistOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--profile" => found.profile = value()?,
            "--out" => found.out = value()?.into(),
            "--binary" => found.binary = Some(value()?.into()),
            "--repository" => found.repository = value()?,
            "--formula" => found.is_formula = true,
            "--check" => found.is_check = true,
            other => {
                return Err(format!(
                    "unknown flag `{other}`: --profile NAME, --out DIR, --binary FILE, \
                     --repository URL, --formula, --check"
                ));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_line_is_read() {
        let parse = |line| VersionLine::parse(line);
        let full =
            "goodput 0.1.0 (1c0d6d6f31 2026-11-19, x86_64-unknown-linux-gnu, features: full)";
        let (version, target) = ("0.1.0", "x86_64-unknown-linux-gnu");
        let expected = VersionLine { version, commit: "1c0d6d6f31", target, features: "full" };
        assert_eq!(parse(full), Some(expected));
        let bare = "goodput 0.1.0 (x86_64-unknown-linux-gnu, features: nvml parquet)";
        let expected = VersionLine { version, commit: "", target, features: "nvml parquet" };
        assert_eq!(parse(bare), Some(expected));
        let none = parse("goodput 0.1.0 (x, features: none)").map(|facts| facts.features);
        assert_eq!(none, Some(""));
        assert_eq!(parse("goodput 0.1.0"), None);
        assert_eq!(parse("other 0.1.0 (x, features: full)"), None);
    }

    #[test]
    fn commands_with_a_page_are_found() {
        let page = ".SH NAME\ngoodput \\- measures\n.SH SUBCOMMANDS\n.TP\ngoodput\\-run(1)\nMeasure\n\
                    .TP\ngoodput\\-ui(1)\nBrowse\n";
        assert_eq!(verbs(page), ["run", "ui"]);
    }

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(options(""), Ok(DistOptions::default()));
        let some =
            DistOptions { out: "x".into(), binary: Some("g".into()), ..DistOptions::default() };
        assert_eq!(options("--out x --binary g"), Ok(some));
        assert!(options("--out").is_err_and(|error| error == "--out wants a value"));
        assert!(options("--fast").is_err());
    }

    #[test]
    fn binstall_looks_for_what_is_published() {
        let manifest = fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let binstall = &manifest["package"]["metadata"]["binstall"];
        let filled = |name: &str| {
            let text = binstall[name].as_str().unwrap();
            let text = text.replace("{ repo }", "https://x").replace("{ version }", "1.2.3");
            text.replace("{ target }", TARGETS[1]).replace("{ bin }", "goodput")
        };
        assert_eq!(filled("pkg-url"), download_url("https://x", "1.2.3", TARGETS[1]));
        assert_eq!(filled("bin-dir"), format!("{}/bin/goodput", name("1.2.3", TARGETS[1])));
        assert_eq!(binstall["pkg-fmt"].as_str(), Some("tgz"));
    }
}
