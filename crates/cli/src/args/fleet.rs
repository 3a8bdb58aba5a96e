//! Arguments of `goodput fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use goodput_fleet::{job_name, object_name, secret_key};

use super::value::parse_positive_time;

const FLEET_EXAMPLES: &str = "\
Examples:
  goodput fleet slurm --ranks 8 -- run http://llm:8000 --rate 800 --duration 5m
      A Slurm job of eight tasks, followed until it ends
  goodput fleet kubernetes --ranks 8 --image registry.example/goodput:0.1 --plan plan.toml --dry-run
      Print the manifests of an Indexed Job
  goodput fleet ray --ranks 4 -- sweep http://llm:8000 --slo interactive
      One process on each of four nodes of a Ray cluster
  srun -n 4 goodput fleet detect
      Print what --shard auto finds in each task

Every rank gets the same arguments, and learns its shard from the scheduler (--shard auto). See
docs/fleet.md.";

/// Start one run on many machines: Slurm, Kubernetes, or Ray
#[derive(Debug, Args)]
#[command(after_long_help = FLEET_EXAMPLES)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) engine: FleetVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    Slurm(SlurmArgs),
    Kubernetes(Box<KubernetesArgs>),
    Ray(RayArgs),
    /// Print the rank and the number of ranks that `--shard auto` finds in the environment
    Detect,
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Number of ranks that send the load together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) ranks: u32,

    /// Name of the job: lowercase letters, digits, and hyphens
    #[arg(long, value_name = "NAME", default_value = "goodput", value_parser = job_name)]
    pub(crate) name: String,

    /// Run this plan; the same as `-- run --plan FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// Print what would be submitted, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Also write what is submitted to this file; with --dry-run, write it instead of printing it
    #[arg(long = "output", short, alias = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// `run URL ...` or `sweep URL ...` with flags, without --shard and --rendezvous
    #[arg(last = true, value_name = "WORDS", required_unless_present = "plan")]
    pub(crate) words: Vec<String>,
}

const SLURM_EXAMPLES: &str = "\
Examples:
  goodput fleet slurm --ranks 8 --partition cpu -- run http://llm:8000 --rate 800 --duration 5m
      A job of eight tasks in the partition `cpu`
  goodput fleet slurm --ranks 8 --time 2h --ranks-per-node 1 -- sweep http://llm:8000
      A sweep, with one rank per node
  goodput fleet slurm --ranks 8 --plan plan.toml --dry-run > job.sh
      Write the job script, to submit it with sbatch

When it starts, the job creates the token that the ranks share. The token is not written to a file.
All nodes must share the folder. Ctrl-C stops the ranks, which save what they have; a second one,
or the first before the job starts, cancels the job.

Exit codes:
  0-5  exit code of the job (the highest of its ranks)
  1    sbatch failed, or the job was lost
  2    wrong usage
  130  stopped";

/// Start a run as a Slurm job (sbatch, srun), and follow it
#[derive(Debug, Args)]
#[command(after_long_help = SLURM_EXAMPLES)]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// CPUs per rank
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Most ranks on one node [default: as Slurm places them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) ranks_per_node: Option<u32>,

    /// Time limit of the job [default: length of the plan plus ten minutes; required for a sweep]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) time: Option<Duration>,

    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,

    /// Account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,

    /// Another option of sbatch, such as `--sbatch-arg=--constraint=ib`; can be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch_arg: Vec<String>,

    /// Path of goodput on the nodes [default: the path of this one]; GOODPUT_BIN in the job's
    /// environment overrides it
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,

    /// Port of rank 0 [default: 20000 plus the last four digits of the job number]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
}

const KUBERNETES_EXAMPLES: &str = "\
Examples:
  goodput fleet kubernetes --ranks 8 --image registry.example/goodput:0.1 \\
      -- run http://llm.default:8000 --rate 800 --duration 5m
      Eight pods, with one set of results from rank 0
  goodput fleet kubernetes --ranks 8 --image … --plan plan.toml --claim results --dry-run
      Print the manifests, with a claim for the results
  goodput fleet kubernetes --ranks 8 --image … --api-key-secret llm/key -- sweep https://llm/v1
      A sweep with an API key from a Secret

Without --token-secret, goodput creates a Secret NAME-fleet with kubectl; the manifests never hold a
token. Without --claim, only the output of rank 0 is kept. A job with the same name that still
exists is left as it is.

Exit codes:
  0-5  exit code of rank 0
  1    kubectl failed
  2    wrong usage
  130  stopped";

/// Start a run as a Kubernetes Indexed Job, and follow rank 0
#[derive(Debug, Args)]
#[command(after_long_help = KUBERNETES_EXAMPLES)]
pub(crate) struct KubernetesArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// Container image, built from the Containerfile
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,

    /// Namespace [default: that of kubectl's context]
    #[arg(long, value_name = "NAME", value_parser = job_name)]
    pub(crate) namespace: Option<String>,

    /// Create the namespace too
    #[arg(long, requires = "namespace")]
    pub(crate) create_namespace: bool,

    /// Existing Secret that holds the fleet's token under `token` [default: a new one, NAME-fleet]
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) token_secret: Option<String>,

    /// Secret that holds the API key, and the key in it [default key: api-key]
    #[arg(long, value_name = "NAME[/KEY]", value_parser = secret_key)]
    pub(crate) api_key_secret: Option<String>,

    /// PersistentVolumeClaim for the results; more than one node needs ReadWriteMany
    #[arg(long, value_name = "NAME", value_parser = object_name)]
    pub(crate) claim: Option<String>,

    /// CPUs per rank: request and limit
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Memory per rank in MiB: request and limit
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=16_777_216))]
    pub(crate) memory: u32,

    /// Never let nodes differ by more than one rank, even if pods must wait
    #[arg(long)]
    pub(crate) strict_spread: bool,

    /// How long to keep the job and its logs after its end
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "1h")]
    pub(crate) keep: Duration,

    /// Port of rank 0
    #[arg(long, value_name = "PORT", default_value_t = 7077, value_parser = clap::value_parser!(u16).range(1024..))]
    pub(crate) port: u16,
}

const RAY_EXAMPLES: &str = "\
Examples:
  goodput fleet ray --ranks 4 -- run http://llm:8000 --rate 400 --duration 5m
      Four ranks on a Ray cluster
  goodput fleet ray --ranks 4 --strict-spread --dry-run --plan plan.toml > driver.py
      Write the driver
  goodput fleet ray --ranks 4 --job http://head:8265 -- run http://llm:8000 --rate 400 --out /r/load
      Submit the driver as a Ray job

Ctrl-C stops the ranks, which save what they have (a job of --job with `ray job stop`).

Exit codes:
  0-5  exit code of rank 0
  1    Ray failed, or another rank died
  2    wrong usage
  130  stopped";

/// Start a run on the nodes of a Ray cluster, and follow rank 0
#[derive(Debug, Args)]
#[command(after_long_help = RAY_EXAMPLES)]
pub(crate) struct RayArgs {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,

    /// Address of the cluster
    #[arg(long, value_name = "ADDR", default_value = "auto")]
    pub(crate) address: String,

    /// CPUs per rank
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,

    /// Never place two ranks on one node
    #[arg(long)]
    pub(crate) strict_spread: bool,

    /// Path of goodput on the nodes; GOODPUT_BIN in the driver's environment overrides it
    #[arg(long, value_name = "PATH", default_value = "goodput")]
    pub(crate) program: String,

    /// Port of rank 0 [default: a free port of its node]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Python interpreter that has Ray
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,

    /// Submit the driver with `ray job submit` to this address; the arguments must then name an
    /// absolute --out
    #[arg(long, value_name = "URL")]
    pub(crate) job: Option<String>,
}
