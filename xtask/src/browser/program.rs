//! Getting a browser: the machine's own, or Debian's.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Its names.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Finds or installs it, or says why it is not to be had.
pub(super) fn find() -> Result<PathBuf, String> {
    if let Some(found) = found() {
        return Ok(found);
    }
    // It is too large, with what it needs, to be unpacked by hand; installing needs root.
    let install = ["install", "-y", "-q", "--no-install-recommends", "chromium"];
    if !apt_get(&install) {
        // Lists of packages may be missing or old.
        let _ = apt_get(&["update", "-q"]) && apt_get(&install);
    }
    found().ok_or_else(|| {
        "chromium is missing, and `apt-get install chromium` failed (try as root)".to_owned()
    })
}

fn found() -> Option<PathBuf> {
    NAMES.iter().find(|name| runs(Command::new(name).arg("--version"))).map(PathBuf::from)
}

fn apt_get(args: &[&str]) -> bool {
    runs(crate::running::apt_get().args(args))
}

fn runs(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}
