//! What can be typed after `goodput fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use goodput_fleet::{job_name, object_name, secret_key};

use super::positive_time;

const FLEET_EXAMPLES: &str = "\
Examples:
  goodput fleet slurm --ranks 8 -- run http://llm:8000 --rate 800 --duration 5m
      A Slurm job of eight tasks, followed until it ends
  goodput fleet kubernetes --ranks 8 --image registry.example/goodput:0.1 --plan plan.toml --dry-run
      The manifests of an Indexed Job, printed
  goodput fleet ray --ranks 4 -- sweep http://llm:8000 --slo interactive
      One process on each of four nodes of a Ray cluster
  srun -n 4 goodput fleet detect
      What --shard auto finds in each task

Every rank gets the same words; which of the requests are its own it learns from the engine
(--shard auto). docs/fleet.md says more.";

/// Start one run on many machines: by Slurm, Kubernetes or Ray
#[derive(Debug, Args)]
#[command(after_help = FLEET_EXAMPLES)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) engine: FleetVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    Slurm(SlurmArgs),
    Kubernetes(Box<KubernetesArgs>),
    Ray(RayArgs),
    /// Print which of how many this process is by the engine's variables: what --shard auto finds
    Detect,
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// How many clients send the load together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) ranks: u32,

    /// The job's name: small letters, digits and hyphens
    #[arg(long, value_name = "NAME", default_value = "goodput", value_parser = job_name)]
    pub(crate) name: String,

    /// Run this plan; the same as `-- run --plan FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Print what would be handed to the engine, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Also keep what is handed to the engine in this file; with --dry-run instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// `run URL …` or `sweep URL …` with their flags, without --shard and --rendezvous
    #[arg(last = true, value_name = "WORDS", required_unless_present = "plan")]
    pub(crate) words: Vec<String>,
}

const SLURM_EXAMPLES: &str = "\
Examples:
  goodput fleet slurm --ranks 8 --partition cpu -- run http://llm:8000 --rate 800 --duration 5m
  goodput fleet slurm --ranks 8 --time 2h --ranks-per-node 1 -- sweep http://llm:8000
  goodput fleet slurm --ranks 8 --plan plan.toml --dry-run > job.sh; sbatch job.sh

The token by which ranks know each other is made by the job when it begins, and is in no file. The
folder must be one that all nodes share. Ctrl-C stops the ranks, which write what they have; a
second one, or the first before the job runs, cancels it.
Exit codes: that of the job (the highest of its ranks), 1 sbatch failed or the job was lost,
            2 usage, 130 stopped.";

/// Start a run as a Slurm job (sbatch, srun), and follow it
#[derive(Debug, Args)]
#[command(after_help = SLURM_EXAMPLES)]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// Processors of each rank
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Ranks on one node at most [default: as Slurm places them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) ranks_per_node: Option<u32>,

    /// The job's time limit [default: the plan's length and ten minutes; a sweep must say]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub(crate) time: Option<Duration>,

    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,

    /// Account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,

    /// Another option of sbatch, as in `--sbatch-arg=--constraint=ib`; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch_arg: Vec<String>,

    /// The program on the nodes [default: this one, by its path; GOODPUT_BIN in the job's
    /// environment comes first]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,

    /// Port at which rank 0 listens [default: 20000 and the last four digits of the job's number]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

const KUBERNETES_EXAMPLES: &str = "\
Examples:
  goodput fleet kubernetes --ranks 8 --image registry.example/goodput:0.1 \\
      -- run http://llm.default:8000 --rate 800 --duration 5m
  goodput fleet kubernetes --ranks 8 --image … --plan plan.toml --claim results --dry-run
  goodput fleet kubernetes --ranks 8 --image … --api-key-secret llm/key -- sweep https://llm/v1

Without --token-secret a Secret NAME-fleet is made with kubectl; no token is ever in the manifests.
Without --claim results go with the pods: only what rank 0 prints is kept. A job of the same name
that is still there is left alone.
Exit codes: that of rank 0, 1 kubectl failed, 2 usage, 130 stopped.";

/// Start a run as a Kubernetes Indexed Job, and follow rank 0
#[derive(Debug, Args)]
#[command(after_help = KUBERNETES_EXAMPLES)]
pub(crate) struct KubernetesArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// The image, made from the Containerfile
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,

    /// Namespace [default: that of kubectl's context]
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub(crate) namespace: Option<String>,

    /// Make the namespace too
    #[arg(long, requires = "namespace")]
    pub(crate) create_namespace: bool,

    /// A Secret that is there and holds the fleet's token under `token` [default: NAME-fleet, made
    /// anew]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) token_secret: Option<String>,

    /// A Secret with the API key, and the key's name in it [default name: api-key]
    #[arg(long, value_name = "NAME[/KEY]", value_parser = secret_key)]
    pub(crate) api_key_secret: Option<String>,

    /// A claim for the results; more than one node needs ReadWriteMany
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) claim: Option<String>,

    /// Processors of each rank: asked for, and the limit
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Memory of each rank in MiB: asked for, and the limit
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=16_777_216))]
    pub(crate) memory: u32,

    /// Never two ranks more on one node than on another, even if pods must wait
    #[arg(long)]
    pub(crate) strict_spread: bool,

    /// How long the job and its logs are kept after its end
    #[arg(long, value_name = "TIME", value_parser = positive_time, default_value = "1h")]
    pub(crate) keep: Duration,

    /// Port at which rank 0 listens
    #[arg(long, value_name = "PORT", default_value_t = 7077, value_parser = clap::value_parser!(u16).range(1024..))]
    pub(crate) port: u16,
}

const RAY_EXAMPLES: &str = "\
Examples:
  goodput fleet ray --ranks 4 -- run http://llm:8000 --rate 400 --duration 5m
  goodput fleet ray --ranks 4 --strict-spread --dry-run --plan plan.toml > driver.py
  goodput fleet ray --ranks 4 --job http://head:8265 -- run http://llm:8000 --rate 400 --out /r/load

Ctrl-C stops the ranks, which write what they have (a job of --job by `ray job stop`).
Exit codes: that of rank 0, 1 Ray failed or another rank died, 2 usage, 130 stopped.";

/// Start a run on the nodes of a Ray cluster, and follow rank 0
#[derive(Debug, Args)]
#[command(after_help = RAY_EXAMPLES)]
pub(crate) struct RayArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// Address of the cluster
    #[arg(long, value_name = "ADDR", default_value = "auto")]
    pub(crate) address: String,

    /// Processors of each rank
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Never two ranks on one node
    #[arg(long)]
    pub(crate) strict_spread: bool,

    /// The program on the nodes; GOODPUT_BIN in the driver's environment comes first
    #[arg(long, value_name = "PATH", default_value = "goodput")]
    pub(crate) program: String,

    /// Port at which rank 0 listens [default: a free one of its node]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// The Python that has Ray
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,

    /// Hand the driver to the cluster by `ray job submit` at this address; the words must then name an
    /// absolute --out
    #[arg(long, value_name = "URL")]
    pub(crate) job: Option<String>,
}
