//! Opens a page in the user's browser.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goodput_record::Artifact;
use goodput_report::escape_control;

use super::write::replace_file;
use crate::error::Failed;
use crate::output;

/// The page's name in the folder of a result.
const NAME: &str = "report.html";

/// Writes the page, says where, and starts a browser if there is a display.
pub(super) fn show_page(artifact: &Artifact, to: Option<&Path>, page: &str) -> Result<(), Failed> {
    let path = to.map_or_else(|| artifact.path().join(NAME), PathBuf::from);
    replace_file(&path, page.as_bytes())
        .map_err(|failed| failed.hint("name another file with --output FILE"))?;
    output::print_data(format!("{}\n", escape_control(&path.display().to_string())).as_bytes())?;
    match browser_program() {
        Some(program) if start_browser(&program, &path) => {}
        Some(program) => output::print_note(&format!(
            "note: cannot start `{}`; open the file yourself, or set BROWSER to a program",
            escape_control(&program)
        )),
        None => output::print_note(
            "note: this machine has no display; copy the file, or run `goodput ui`, which shows \
             results in a browser on another machine",
        ),
    }
    Ok(())
}

/// The program that opens a page on this system; none without a display.
fn browser_program() -> Option<String> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(browser) = set("BROWSER") {
        return Some(browser);
    }
    if cfg!(target_os = "macos") {
        return Some("open".to_owned());
    }
    set("WAYLAND_DISPLAY").or_else(|| set("DISPLAY")).map(|_| "xdg-open".to_owned())
}

/// Starts the program, which may outlive this process. Returns whether that worked.
fn start_browser(program: &str, path: &Path) -> bool {
    // A path that begins with a dash is not an option.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let null = || Stdio::null();
    let mut command = Command::new(program);
    command.arg(path).stdin(null()).stdout(null()).stderr(null());
    command.spawn().is_ok()
}
