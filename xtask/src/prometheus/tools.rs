//! Getting Prometheus: the machine's own, or Debian's package unpacked below the target folder.
//!
//! Unpacked and not installed: a service that starts by itself and a change to the machine are not
//! a test's business, and no root is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goodput_clock::now;

use crate::target_folder;

/// The programs.
pub(super) struct Tools {
    pub(super) prometheus: PathBuf,
    pub(super) promtool: PathBuf,
}

impl Tools {
    /// Finds or gets them, or says why they are not to be had.
    pub(super) fn find() -> Result<Self, String> {
        let folder = target_folder().join("prometheus");
        let unpacked = Self::at(&folder.join("usr/bin"));
        if let Some(tools) = Self::at(Path::new("")).or(unpacked) {
            return Ok(tools);
        }
        if !runs("apt-get".as_ref()) {
            return Err("it is not installed, and apt-get is missing".to_owned());
        }
        // Elsewhere first: half a package, or that of another run, must not pass for the whole.
        let fresh = folder.with_extension(format!("{}-{}", std::process::id(), now().0));
        let outcome = unpack(&fresh);
        if outcome.is_ok() {
            if Self::at(&folder.join("usr/bin")).is_none() {
                let _ = fs::remove_dir_all(&folder);
            }
            // Where another run was faster, its package is as good.
            let _ = fs::rename(&fresh, &folder);
        }
        let _ = fs::remove_dir_all(&fresh);
        outcome?;
        let tools = Self::at(&folder.join("usr/bin"));
        tools.ok_or_else(|| "Debian's prometheus does not run here".to_owned())
    }

    /// Those of a folder, or of the search path when it is empty.
    fn at(folder: &Path) -> Option<Self> {
        let tools =
            Self { prometheus: folder.join("prometheus"), promtool: folder.join("promtool") };
        (runs(&tools.prometheus) && runs(&tools.promtool)).then_some(tools)
    }
}

fn runs(program: &Path) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn unpack(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let _alone = crate::running::installer();
    // Lists of packages may be missing or old: fetch them only then, because that needs root.
    download(folder)
        .or_else(|_| apt_get(folder, &["update", "-q"]).and_then(|()| download(folder)))?;
    let package = package(folder).ok_or("apt-get download did not produce a package")?;
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
    // Only the space of it would be missed.
    let _ = fs::remove_file(package);
    Ok(())
}

fn download(folder: &Path) -> Result<(), String> {
    apt_get(folder, &["download", "prometheus"])
}

fn apt_get(folder: &Path, args: &[&str]) -> Result<(), String> {
    run(crate::running::apt_get().args(args).current_dir(folder))
        .map_err(|error| format!("{error}\nhint: `apt-get install prometheus` by hand"))
}

fn package(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program} failed:\n{said}")) }
}
