//! `goodput fleet`: what an engine needs to start one run on many machines, and its start.
//!
//! Nothing here runs a cluster: a script, a set of manifests or a driver is written, handed to the
//! engine's own tool, and followed.

mod follow;
mod kubernetes;
mod manifests;
mod quote;
mod ray;
mod secrets;
mod slurm;
mod tool;
mod words;
mod yaml;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use crate::args::{FleetArgs, FleetVerb, LaunchArgs};
use crate::error::{Failed, exit};
use crate::output;

/// `goodput fleet ENGINE`
pub(crate) fn fleet(args: &FleetArgs) -> Result<ExitCode, Failed> {
    match &args.engine {
        FleetVerb::Slurm(args) => slurm::launch(args),
        FleetVerb::Kubernetes(args) => kubernetes::launch(args),
        FleetVerb::Ray(args) => ray::launch(args),
        FleetVerb::Detect => detect(),
    }
}

/// `goodput fleet detect`
fn detect() -> Result<ExitCode, Failed> {
    let found = super::detect(|name| std::env::var(name).ok())?;
    let host = found.rendezvous_host.as_deref().unwrap_or("(not said)");
    let port = found.rendezvous_port.map(|port| format!(", port {port}")).unwrap_or_default();
    let by = found.by;
    let line = format!("{} by {by}, rendezvous {host}{port}", found.shard);
    output::data((goodput_report::plain(&line) + "\n").as_bytes())?;
    Ok(ExitCode::from(exit::OK))
}

/// Writes it to `--out`, or prints it for `--dry-run`; whether it is to be started.
fn emit(launch: &LaunchArgs, text: &str) -> Result<bool, Failed> {
    match &launch.out {
        // Words may name hosts and models that are nobody else's business.
        Some(path) => OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| {
                Failed::usage(format!("cannot write `{}`: {error}", path.display()))
            })?,
        None if launch.dry_run => output::data(text.as_bytes())?,
        None => {}
    }
    Ok(!launch.dry_run)
}
