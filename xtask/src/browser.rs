//! A real browser as the judge of our pages, opened from disk.
//!
//! Pages of real runs must load without a word on the console and without a request to anybody, show
//! as many points as the summary has, count in their SLO explorer what the table of requests says,
//! fit a phone in the dark, and show hostile text as text.

mod devtools;
mod explorer;
mod looks;
mod pages;
mod program;
mod requests;

use std::path::Path;

use devtools::Browser;

use crate::running::TemporaryFolder;

/// Checks the pages of this build of `goodput`.
#[expect(clippy::print_stderr, reason = "says what was and what was not checked")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let program = match program::find() {
        Ok(program) => program,
        Err(reason) => {
            eprintln!("SKIPPED: the check of pages by a browser: {reason}");
            return Ok(());
        }
    };
    let folder = TemporaryFolder::new()?;
    let goodput = goodput.canonicalize().map_err(|error| format!("goodput: {error}"))?;
    let made = pages::make(&goodput, &folder)?;
    let mut browser = Browser::start(&program, &folder.path("profile"))?;
    let version = browser.version()?;
    let mut all = Vec::new();
    for made in &made {
        let mut wrong = looks::check(&mut browser, made)?;
        wrong.extend(explorer::check(&mut browser, made).err());
        if wrong.is_empty() {
            eprintln!("  {version} shows the page of {}", made.name);
        }
        all.extend(wrong.into_iter().map(|wrong| format!("\n  page of {}: {wrong}", made.name)));
    }
    if all.is_empty() { Ok(()) } else { Err(all.concat()) }
}
