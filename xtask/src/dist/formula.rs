//! Homebrew's formula, for the tarballs that lie in a folder.

use std::fs;
use std::path::Path;

use super::archive::sha256;
use super::{TARGETS, download_url, tarball};

/// Writes `goodput.rb` into the folder, for tarballs that will be downloaded from this repository.
pub(super) fn write(folder: &Path, version: &str, repository: &str) -> Result<(), String> {
    let blocks: Vec<String> =
        TARGETS.iter().filter_map(|target| block(folder, version, target, repository)).collect();
    if blocks.is_empty() {
        let folder = folder.display();
        return Err(format!("{folder} has no tarball of version {version}"));
    }
    let template = super::root().join("packaging/homebrew/goodput.rb.in");
    let text = fs::read_to_string(&template);
    let text = text.map_err(|error| format!("{}: {error}", template.display()))?;
    let path = folder.join("goodput.rb");
    fs::write(&path, filled(&text, version, repository, &blocks.concat()))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// What the formula says of a target, if its tarball is there.
fn block(folder: &Path, version: &str, target: &str, repository: &str) -> Option<String> {
    let hash = sha256(&fs::read(folder.join(tarball(version, target))).ok()?);
    let machine = if target.starts_with("x86_64") { "intel" } else { "arm" };
    let url = download_url(repository, version, target);
    Some(format!("  on_{machine} do\n    url \"{url}\"\n    sha256 \"{hash}\"\n  end\n\n"))
}

/// The template without its own comment, which is about the template.
fn filled(template: &str, version: &str, homepage: &str, blocks: &str) -> String {
    let body = template.lines().skip_while(|line| line.starts_with('#'));
    let body: String = body.flat_map(|line| [line, "\n"]).collect();
    body.replace("@HOMEPAGE@", homepage)
        .replace("@VERSION@", version)
        .replace("@TARGETS@\n", blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tarball_has_its_block() {
        let folder = tempfile::tempdir().unwrap();
        let repository = "https://example.invalid/x";
        let nothing = write(folder.path(), "1.2.3", repository);
        assert!(nothing.is_err_and(|error| error.ends_with("no tarball of version 1.2.3")));
        fs::write(folder.path().join("goodput-1.2.3-aarch64-unknown-linux-gnu.tar.gz"), "abc")
            .unwrap();
        write(folder.path(), "1.2.3", repository).unwrap();
        let text = fs::read_to_string(folder.path().join("goodput.rb")).unwrap();
        let block = "\n  on_arm do\n    url \"https://example.invalid/x/releases/download/v1.2.3/\
                     goodput-1.2.3-aarch64-unknown-linux-gnu.tar.gz\"\n    sha256 \
                     \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\n  end\n";
        assert!(text.starts_with("class Goodput") && text.contains(block), "{text}");
        assert!(!text.contains('@') && !text.contains("on_intel"), "{text}");
    }
}
