//! `cargo xtask test-fleet`: fleets of real processes under the schedulers that people have.
//!
//! Apart from `test`: it needs root, installs Slurm, Ray and a validator of manifests, and takes
//! minutes.

use std::path::Path;
use std::process::Command;

/// Where `integrations/slurm/setup.sh` puts its Slurm.
const SLURM: &str = "/var/lib/goodput-slurm";

/// All of it, with this program.
#[expect(clippy::print_stderr, reason = "a developer tool talks to the terminal")]
pub(crate) fn check(goodput: &Path) -> Result<(), String> {
    let goodput = goodput.display().to_string();
    script("slurm/setup.sh", &[])?;
    let checked =
        script("slurm/check.sh", &[&goodput]).and_then(|()| script("fleet/check.sh", &[&goodput]));
    let stopped = script("slurm/stop.sh", &[]);
    checked.and(stopped)?;
    script("ray/check.sh", &[&goodput])?;
    script("kubernetes/validate.sh", &[&goodput])?;
    eprintln!("fleets: all checks of Slurm, Ray and the Kubernetes manifests passed");
    Ok(())
}

fn script(name: &str, words: &[&str]) -> Result<(), String> {
    let path = Path::new("integrations").join(name);
    let status = Command::new("bash")
        .arg(&path)
        .args(words)
        .env("SLURM_CONF", format!("{SLURM}/slurm.conf"))
        .status()
        .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed", path.display())) }
}
