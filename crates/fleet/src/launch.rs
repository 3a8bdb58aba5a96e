//! One run on many machines: what Slurm, Kubernetes or Ray is given, its start and its end.
//!
//! Nothing here runs a cluster: a job's text is written, handed to the engine's own tool, and
//! followed. What happens is told to a [`JobObserver`].

mod follow;
mod kubernetes;
mod manifests;
mod names;
mod quote;
mod ray;
mod slurm;
mod template;
mod tool;
mod yaml;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

pub use follow::{JobObserver, StopRequest};
pub use kubernetes::KubernetesJob;
pub use names::{job_name, object_name, secret_key};
pub use ray::RayJob;
pub use slurm::SlurmJob;

/// Exit code of a job that was lost, or whose own is not known.
const LOST: u8 = 1;

/// What every rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankCommand {
    /// `run …` or `sweep …`, without `--plan` and `--shard`.
    pub words: Vec<String>,
    /// The plan file on this machine.
    pub plan: Option<PathBuf>,
    /// The folder of the result, where one is named.
    pub out: Option<PathBuf>,
    /// The variable that holds the API key.
    pub key_env: String,
}

impl RankCommand {
    /// The words of a rank, with the plan read from there.
    pub fn command_words(&self, plan: Option<&str>) -> Vec<String> {
        let plan = plan.map(|plan| ["--plan".to_owned(), plan.to_owned()]);
        let auto = ["--shard".to_owned(), "auto".to_owned()];
        self.words.iter().cloned().chain(plan.into_iter().flatten()).chain(auto).collect()
    }

    /// The same, with the plan where it lies here.
    pub fn local_words(&self) -> Vec<String> {
        self.command_words(self.plan.as_deref().and_then(|plan| plan.to_str()))
    }
}

/// 64 random hexadecimal digits.
fn random_secret() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let digits = bytes.map(|byte| format!("{byte:02x}"));
    Ok(digits.concat())
}

#[cfg(test)]
fn example(words: &[&str]) -> RankCommand {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    RankCommand { words, plan: None, out: None, key_env: "OPENAI_API_KEY".to_owned() }
}
