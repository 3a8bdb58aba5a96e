//! `goodput fleet`: arguments into a job of Slurm, Kubernetes or Ray, which `goodput_fleet` starts and
//! follows.

mod argv;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use goodput_engine::RunControl;
use goodput_fleet::{
    JobObserver, KubernetesJob, LaunchError, RankCommand, RayJob, SlurmJob, StopRequest,
    detect_rank,
};
use goodput_lab::fleet::job_plan;

use crate::args::{FleetArgs, FleetVerb, KubernetesArgs, LaunchArgs, RayArgs, SlurmArgs};
use crate::error::{Failed, exit};
use crate::output;
use crate::printer::Printer;
use crate::signals::Listening;

/// `goodput fleet ENGINE`
pub(crate) fn fleet(args: &FleetArgs) -> Result<ExitCode, Failed> {
    match &args.engine {
        FleetVerb::Slurm(args) => launch_slurm(args),
        FleetVerb::Kubernetes(args) => launch_kubernetes(args),
        FleetVerb::Ray(args) => launch_ray(args),
        FleetVerb::Detect => show_rank(),
    }
}

fn launch_slurm(args: &SlurmArgs) -> Result<ExitCode, Failed> {
    let command = argv::check_command(&args.launch)?;
    let time = match args.time {
        None => argv::longest_duration(&command)?.map(|length| length + SlurmJob::SPARE),
        time => time,
    };
    let this = || std::env::current_exe().unwrap_or_else(|_| PathBuf::from("goodput"));
    let job = SlurmJob {
        name: args.launch.name.clone(),
        ranks: args.launch.ranks,
        cpus: args.cpus,
        ranks_per_node: args.ranks_per_node,
        time,
        partition: args.partition.clone(),
        account: args.account.clone(),
        options: args.sbatch_arg.clone(),
        program: args.program.clone().unwrap_or_else(this),
        port: args.port,
    };
    let script = job.script(&command).map_err(launch_failure)?;
    launch(&args.launch, &script, |terminal| job.launch(&script, terminal))
}

fn launch_kubernetes(args: &KubernetesArgs) -> Result<ExitCode, Failed> {
    let command = argv::check_command(&args.launch)?;
    let job = KubernetesJob {
        name: args.launch.name.clone(),
        ranks: args.launch.ranks,
        image: args.image.clone(),
        namespace: args.namespace.clone(),
        create_namespace: args.create_namespace,
        token_secret: args.token_secret.clone(),
        api_key_secret: args.api_key_secret.clone(),
        claim: args.claim.clone(),
        cpus: args.cpus,
        memory: args.memory,
        strict_spread: args.strict_spread,
        keep: args.keep,
        port: args.port,
        plan: plan_text(&command)?,
    };
    let manifests = job.manifests(&command).map_err(launch_failure)?;
    launch(&args.launch, &manifests, |terminal| job.launch(&command, terminal))
}

fn launch_ray(args: &RayArgs) -> Result<ExitCode, Failed> {
    let command = argv::check_command(&args.launch)?;
    let mut job = RayJob {
        name: args.launch.name.clone(),
        ranks: args.launch.ranks,
        address: args.address.clone(),
        cpus: args.cpus,
        strict_spread: args.strict_spread,
        program: args.program.clone(),
        port: args.port,
        python: args.python.clone(),
        job: args.job.clone(),
        plan: None,
    };
    job.check(&command).map_err(launch_failure)?;
    job.plan = plan_text(&command)?;
    let driver = job.driver_script(&command);
    launch(&args.launch, &driver, |terminal| job.launch(&driver, terminal))
}

/// The plan to embed in the job, if the command uses one.
fn plan_text(command: &RankCommand) -> Result<Option<String>, Failed> {
    command.plan.as_deref().map(|path| job_plan(path, &Printer::new(false))).transpose()
}

/// `goodput fleet detect`
fn show_rank() -> Result<ExitCode, Failed> {
    let rank = detect_rank(|name| std::env::var(name).ok()).map_err(launch_failure)?;
    let host = rank.rendezvous_host.as_deref().unwrap_or("(not given)");
    let port = rank.rendezvous_port.map(|port| format!(", port {port}")).unwrap_or_default();
    let line = format!("{} by {}, rendezvous {host}{port}", rank.shard, rank.by);
    output::print_data((goodput_report::escape_control(&line) + "\n").as_bytes())?;
    Ok(ExitCode::from(exit::OK))
}

/// Writes the job's text to `--out`, or prints it for `--dry-run`; starts it unless that is all.
fn launch(
    args: &LaunchArgs,
    text: &str,
    start: impl FnOnce(&Terminal) -> Result<Option<u8>, LaunchError>,
) -> Result<ExitCode, Failed> {
    match &args.out {
        // Words may name hosts and models that are private.
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
        None if args.dry_run => output::print_data(text.as_bytes())?,
        None => {}
    }
    if args.dry_run {
        return Ok(ExitCode::from(exit::OK));
    }
    let code = start(&Terminal::new()?).map_err(launch_failure)?;
    Ok(ExitCode::from(code.unwrap_or(exit::INTERRUPTED)))
}

/// The terminal from which a job was started.
struct Terminal {
    control: RunControl,
    _listening: Listening,
}

impl Terminal {
    /// Handles Ctrl-C from now on; a third signal ends this process.
    fn new() -> Result<Self, Failed> {
        let control = RunControl::new();
        let listening = crate::signals::interrupt_on_signals()
            .watch(&control)
            .map_err(|error| Failed::internal(format!("cannot listen for signals: {error}")))?;
        Ok(Self { control, _listening: listening })
    }
}

impl JobObserver for Terminal {
    fn note(&self, text: &str) {
        output::print_note(text);
    }

    fn output(&self, bytes: &[u8]) -> Result<(), LaunchError> {
        output::print_data(bytes).map_err(|failed| LaunchError::engine(failed.to_string()))
    }

    fn stop_request(&self) -> StopRequest {
        if self.control.is_aborting() {
            StopRequest::Abort
        } else if self.control.is_stopping() {
            StopRequest::Stop
        } else {
            StopRequest::None
        }
    }
}

pub(super) fn launch_failure(error: LaunchError) -> Failed {
    let of = if error.is_usage { Failed::usage } else { Failed::internal };
    let failed = of(error.message);
    match error.hint {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}
