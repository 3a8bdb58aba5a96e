//! A container image from scratch: the program, the libraries that it loads, and certificates of
//! public authorities, as an OCI archive. No builder and no base image is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Release;
use super::archive::{Archive, gzip, sha256};

/// Where Debian keeps the certificates of public authorities, without those of this machine's owner.
const AUTHORITIES: &str = "/usr/share/ca-certificates/mozilla";

/// Debian's packages of which parts are in the image.
const PACKAGES: [&str; 3] = ["ca-certificates", "libc6", "libgcc-s1"];

/// What NVIDIA's driver loads, which a container gets from its host.
const OF_DRIVERS: [&str; 3] = ["libdl.so.2", "libpthread.so.0", "librt.so.1"];

/// A user without privileges.
const USER: &str = "65532";

/// Whether an image can be made here: its libraries come from Debian's packages.
pub(super) fn is_possible() -> bool {
    Path::new(AUTHORITIES).exists() && Path::new("/var/lib/dpkg/status").exists()
}

/// The archive of the image, for `podman load`, `skopeo copy`, and `docker load`.
pub(super) fn archive(release: &Release, program: &Path) -> Result<Vec<u8>, String> {
    let layer = layer(release, program)?.to_tar("", release.time)?;
    let compressed = gzip(&layer)?;
    let created = humantime::format_rfc3339_seconds(release.instant()).to_string();
    let annotations = json!({
        "org.opencontainers.image.title": "goodput",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.commit,
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    let config = json!({
        "created": created,
        "architecture": architecture(&release.target)?,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/local/bin"],
            "Entrypoint": ["/usr/local/bin/goodput"],
            "WorkingDir": "/results",
            "Labels": annotations,
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let mut archive = Archive::default();
    archive.file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    let of = |kind: &str| format!("application/vnd.oci.image.{kind}");
    let config = blob(&mut archive, &of("config.v1+json"), config.to_string());
    let layer = blob(&mut archive, &of("layer.v1.tar+gzip"), compressed);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": of("manifest.v1+json"),
        "config": config,
        "layers": [layer],
        "annotations": annotations,
    });
    let mut manifest = blob(&mut archive, &of("manifest.v1+json"), manifest.to_string());
    let name = format!("goodput:{}", release.version);
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": of("index.v1+json"),
        "manifests": [manifest],
    });
    archive.file("index.json", index.to_string());
    archive.to_tar("", release.time)
}

/// Puts a blob into the layout and describes it.
fn blob(archive: &mut Archive, media_type: &str, content: impl Into<Vec<u8>>) -> Value {
    let content = content.into();
    let (digest, size) = (sha256(&content), content.len());
    archive.file(&format!("blobs/sha256/{digest}"), content);
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

/// As images name what Rust's targets begin with.
fn architecture(target: &str) -> Result<&'static str, String> {
    match target.split('-').next() {
        Some("x86_64") => Ok("amd64"),
        Some("aarch64") => Ok("arm64"),
        _ => Err(format!("no image is made for {target}")),
    }
}

/// The files of the image.
fn layer(release: &Release, program: &Path) -> Result<Archive, String> {
    let mut layer = Archive::default();
    layer.program("usr/local/bin/goodput", release.program.clone());
    for library in libraries(program)? {
        let path = library.display().to_string();
        layer.program(path.trim_start_matches('/'), read(&library)?);
    }
    layer.file("etc/ssl/certs/ca-certificates.crt", authorities()?);
    layer.file("etc/nsswitch.conf", "hosts: files dns\n");
    layer.file("etc/passwd", format!("goodput:x:{USER}:{USER}::/results:/nonexistent\n"));
    layer.file("etc/group", format!("goodput:x:{USER}:\n"));
    layer.file("etc/os-release", read(Path::new("/usr/lib/os-release"))?);
    // Their terms, and what scanners of images look for.
    for package in PACKAGES {
        let copyright = format!("usr/share/doc/{package}/copyright");
        let content = read(&Path::new("/").join(&copyright))?;
        layer.file(&copyright, content);
        let status = said(Command::new("dpkg-query").args(["--status", package]))?;
        layer.file(&format!("var/lib/dpkg/status.d/{package}"), status);
    }
    // Any user may be asked for, so every user may write.
    layer.open_folder("results/");
    layer.open_folder("tmp/");
    Ok(layer)
}

/// The libraries that the program loads, as this machine's loader finds them, and those of drivers.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = paths(&said(Command::new("ldd").arg(program))?);
    let is_libc = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "libc.so.6");
    let folder = found.iter().find(is_libc).and_then(|libc| libc.parent()).map(Path::to_owned);
    let folder = folder.ok_or("the program does not load glibc")?;
    found.extend(OF_DRIVERS.map(|name| folder.join(name)));
    Ok(found)
}

/// The paths in `libc.so.6 => /lib/libc.so.6 (0x7f)` and `/lib64/ld-linux.so.2 (0x7f)`.
fn paths(said: &str) -> Vec<PathBuf> {
    let is_path = |word: &&str| word.starts_with('/');
    said.lines().filter_map(|line| line.split_whitespace().find(is_path)).map(Into::into).collect()
}

/// All certificates in one file, as Debian writes `/etc/ssl/certs/ca-certificates.crt`.
fn authorities() -> Result<Vec<u8>, String> {
    let entries = fs::read_dir(AUTHORITIES).map_err(|error| format!("{AUTHORITIES}: {error}"))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let files: Result<Vec<Vec<u8>>, String> = files.iter().map(|file| read(file)).collect();
    Ok(files?.concat())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a command prints.
fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("cannot run {program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_what_the_loader_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f41)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f41)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(paths(said), expected.map(PathBuf::from));
    }

    #[test]
    fn architectures_have_the_names_of_images() {
        assert_eq!(architecture("aarch64-unknown-linux-gnu"), Ok("arm64"));
        assert!(architecture("riscv64gc-unknown-linux-gnu").is_err());
    }
}
