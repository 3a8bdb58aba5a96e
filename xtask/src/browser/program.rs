//! Getting a browser: the machine's own, or Debian's.

use std::path::PathBuf;
use std::process::Command;

use crate::running::{install, succeeds};

/// Its names.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Finds or installs it, or says why it is not to be had.
pub(super) fn find() -> Result<PathBuf, String> {
    if let Some(found) = found() {
        return Ok(found);
    }
    // It is too large, with what it needs, to be unpacked by hand; installing needs root.
    install("chromium");
    found().ok_or_else(|| {
        "chromium is missing, and `apt-get install chromium` failed (try as root)".to_owned()
    })
}

fn found() -> Option<PathBuf> {
    NAMES.iter().find(|name| succeeds(Command::new(name).arg("--version"))).map(PathBuf::from)
}
