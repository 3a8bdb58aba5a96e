//! A Slurm job: the script, its start by sbatch, and its end.
//!
//! The token of the fleet is made by the script when the job begins, and handed to the tasks by
//! srun in their environment. So it is in no file, on no command line, not in what the controller
//! keeps of the environment of who submitted, and not in the accounting database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_model::escape_control;

use super::follow::{Follower, Tail};
use super::template::fill_template;
use super::tool::Tool;
use super::{JobObserver, LOST, RankCommand, StopRequest, quote};
use crate::LaunchError;

const HINT: &str = "Slurm's programs must be in PATH; --dry-run prints the script without them";
const SBATCH: Tool = Tool::new("sbatch", HINT);
const SCONTROL: Tool = Tool::new("scontrol", HINT);
const SACCT: Tool = Tool::new("sacct", HINT);
const SCANCEL: Tool = Tool::new("scancel", HINT);

const SCRIPT: &str = include_str!("templates/slurm.sh");

/// Questions in a row that the controller may leave unanswered: a minute.
const PATIENCE: u32 = 30;

/// A job of Slurm with one task for each rank.
#[derive(Debug, Clone)]
pub struct SlurmJob {
    /// The job's name, of small letters, digits and hyphens.
    pub name: String,
    /// How many ranks.
    pub ranks: u32,
    /// Processors of each.
    pub cpus: u32,
    /// Ranks on one node at most.
    pub ranks_per_node: Option<u32>,
    /// The time limit; a job must have one.
    pub time: Option<Duration>,
    /// Partition.
    pub partition: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Further options of sbatch.
    pub options: Vec<String>,
    /// The program on the nodes.
    pub program: PathBuf,
    /// Port of rank 0; by default it follows from the job's number.
    pub port: Option<u16>,
}

impl SlurmJob {
    /// What starting, meeting, uploading and merging may take in addition to the plan.
    pub const SPARE: Duration = Duration::from_mins(10);

    /// The script that sbatch reads.
    pub fn script(&self, command: &RankCommand) -> Result<String, LaunchError> {
        let minutes = self.time_limit_minutes()?;
        let options = self.option_lines()?;
        let program = quote::quote_shell(path_text(&self.program)?);
        let words: Vec<String> =
            command.local_words().iter().map(|word| quote::quote_shell(word)).collect();
        Ok(fill_template(SCRIPT, |name| {
            Some(match name {
                "name" => self.name.clone(),
                "ranks" => self.ranks.to_string(),
                "cpus" => self.cpus.to_string(),
                "minutes" => minutes.to_string(),
                "options" => options.concat(),
                "version" => env!("CARGO_PKG_VERSION").to_owned(),
                // Jobs that share a node must not share a port.
                "port" => self.port.map_or_else(
                    || "$((20000 + SLURM_JOB_ID % 10000))".to_owned(),
                    |port| port.to_string(),
                ),
                "program" => program.clone(),
                "arguments" => words.join(" "),
                _ => return None,
            })
        }))
    }

    /// Submits the script and waits for the end of the job; its exit code, unless the user stopped
    /// it.
    pub fn launch(
        &self,
        script: &str,
        observer: &dyn JobObserver,
    ) -> Result<Option<u8>, LaunchError> {
        let mut follower = Follower::new(observer);
        let said = SBATCH.run_with_input(&["--parsable"], script)?;
        // `12`, or `12;cluster` where there are several.
        let job = said.trim().split(';').next().unwrap_or_default().to_owned();
        if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(LaunchError::engine(format!(
                "sbatch printed no job number: {}",
                said.trim()
            )));
        }
        follower.note(&format!("job {job} is submitted; Ctrl-C stops its ranks"));
        let end = follow_job(&self.name, &job, &mut follower)?;
        let name = &self.name;
        follower
            .note(&format!("{}; what each rank printed: {name}-{job}-*.out", end.display_text()));
        Ok(follower.unless_stopped(end.exit_code()))
    }

    /// Lines of options beyond those that every job has.
    fn option_lines(&self) -> Result<Vec<String>, LaunchError> {
        let named = |flag: &str, value: &Option<String>| {
            let value = value.as_deref().map(check_bare_name).transpose()?;
            Ok(value.map(|value| format!("--{flag}={value}")))
        };
        let per_node = self.ranks_per_node.map(|ranks| format!("--ntasks-per-node={ranks}"));
        let ours =
            [per_node, named("partition", &self.partition)?, named("account", &self.account)?];
        let is_option =
            |option: &str| option.starts_with('-') && !option.contains(char::is_control);
        if let Some(option) = self.options.iter().find(|option| !is_option(option)) {
            return Err(LaunchError::usage(format!("`{option}` is not an option of sbatch"))
                .hint("write --sbatch-arg=--constraint=ib"));
        }
        let options = ours.into_iter().flatten().chain(self.options.iter().cloned());
        Ok(options.map(|option| format!("#SBATCH {option}\n")).collect())
    }

    /// The time limit in minutes, the shortest unit that Slurm takes by itself.
    fn time_limit_minutes(&self) -> Result<u64, LaunchError> {
        let time = self.time.ok_or_else(|| {
            LaunchError::usage("the duration of this command is not known in advance")
                .hint("set a time limit for the job, as in --time 2h")
        })?;
        Ok(time.as_secs().div_ceil(60).max(1))
    }
}

/// A name that stands in a line of options as it is.
fn check_bare_name(value: &str) -> Result<&str, LaunchError> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,+@".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_fit) {
        return Ok(value);
    }
    Err(LaunchError::usage(format!("`{value}` is not the name of a partition or an account")))
}

fn path_text(path: &Path) -> Result<&str, LaunchError> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    text.ok_or_else(|| {
        LaunchError::usage("the program's path is not valid UTF-8").hint("give --program PATH")
    })
}

/// Waits for the end, printing what rank 0 prints.
fn follow_job(name: &str, job: &str, follower: &mut Follower<'_>) -> Result<End, LaunchError> {
    // What the script and srun print, and what rank 0 prints.
    let files = [format!("{name}-{job}.out"), format!("{name}-{job}-0.out")];
    let mut tails = files.map(|file| Tail::new(file.into()));
    let (mut silent, mut known) = (0, String::new());
    loop {
        let end = match job_end(job) {
            Ok(end) => {
                silent = 0;
                end
            }
            Err(failed) if silent >= PATIENCE => {
                let hint = format!("the job may still run: squeue -j {job}, scancel {job}");
                return Err(failed.hint(hint));
            }
            Err(_) => {
                silent += 1;
                None
            }
        };
        if let Some(end) = end.as_ref().filter(|end| end.state != known) {
            follower.note(&format!("job {job}: {}", escape_control(&end.state)));
            known.clone_from(&end.state);
        }
        for tail in &mut tails {
            follower.print_new(tail)?;
        }
        if let Some(end) = end.filter(End::is_over) {
            return Ok(end);
        }
        match follower.pause() {
            None | Some(StopRequest::None) => {}
            // A waiting job has no process to signal, and would run later.
            Some(StopRequest::Stop) if is_running(job) => {
                follower.note(&format!("scancel --signal=INT {job}: the ranks save their results"));
                cancel_job(follower, &["--signal=INT", job]);
            }
            Some(StopRequest::Stop | StopRequest::Abort) => {
                follower.note(&format!("scancel {job}: the job is canceled"));
                cancel_job(follower, &[job]);
            }
        }
    }
}

/// Whether its ranks run, or may run: a controller that is silent now says nothing against it.
fn is_running(job: &str) -> bool {
    !matches!(job_end(job), Ok(Some(end)) if end.state != "RUNNING")
}

/// Asks for the end; where that fails, it is said, and the user may ask again.
fn cancel_job(follower: &Follower<'_>, words: &[&str]) {
    if let Err(failed) = SCANCEL.run(words) {
        follower.note(&format!("error: {failed}"));
    }
}

/// Where a job stands.
#[derive(Debug, PartialEq, Eq)]
struct End {
    state: String,
    code: u8,
    signal: u8,
}

/// Where it stands: by the controller, which forgets a job some minutes after its end, then by the
/// accounting.
fn job_end(job: &str) -> Result<Option<End>, LaunchError> {
    let told = SCONTROL.run(&["show", "job", "-o", job]);
    if let Some(end) = told.as_deref().ok().and_then(End::from_scontrol) {
        return Ok(Some(end));
    }
    let kept = SACCT.run(&["-j", job, "-n", "-P", "-X", "-o", "State,ExitCode"])?;
    Ok(End::from_sacct(&kept))
}

impl End {
    /// From a line of `scontrol show job -o`.
    fn from_scontrol(line: &str) -> Option<Self> {
        let value = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        Self::new(value("JobState=")?, value("ExitCode=")?)
    }

    /// From a line `FAILED|4:0`.
    fn from_sacct(line: &str) -> Option<Self> {
        let (state, code) = line.lines().next()?.split_once('|')?;
        // `CANCELLED by 1000`
        Self::new(state.split_whitespace().next()?, code)
    }

    fn new(state: &str, code: &str) -> Option<Self> {
        let (code, signal) = code.trim().split_once(':')?;
        Some(Self {
            state: state.to_owned(),
            code: code.parse().ok()?,
            signal: signal.parse().ok()?,
        })
    }

    fn is_over(&self) -> bool {
        const GOES_ON: [&str; 12] = [
            "PENDING",
            "RUNNING",
            "SUSPENDED",
            "COMPLETING",
            "CONFIGURING",
            "REQUEUED",
            "RESIZING",
            "SIGNALING",
            "STAGE_OUT",
            "STOPPED",
            "REQUEUE_HOLD",
            "SPECIAL_EXIT",
        ];
        !GOES_ON.contains(&self.state.as_str())
    }

    /// The exit code that says the same.
    fn exit_code(&self) -> u8 {
        match (self.code, self.signal) {
            (0, 0) if self.state == "COMPLETED" => 0,
            // Out of time, cancelled, a node lost: nothing of it is in the code.
            (0, 0) => LOST,
            (0, signal) => 128u8.saturating_add(signal),
            (code, _) => code,
        }
    }

    fn display_text(&self) -> String {
        let (state, code, signal) = (escape_control(&self.state), self.code, self.signal);
        let by = if signal > 0 { format!(", signal {signal}") } else { String::new() };
        format!("the job ended: {state}, exit code {code}{by}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn job(ranks: u32) -> SlurmJob {
        SlurmJob {
            name: "goodput".to_owned(),
            ranks,
            cpus: 2,
            ranks_per_node: None,
            time: Some(Duration::from_mins(1)),
            partition: None,
            account: None,
            options: Vec::new(),
            program: "goodput".into(),
            port: None,
        }
    }

    fn made(job: &SlurmJob, words: &str) -> Result<String, String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        job.script(&example(&words)).map_err(|failed| failed.to_string())
    }

    #[test]
    fn the_script_asks_for_what_was_typed() {
        let job = SlurmJob {
            name: "load".to_owned(),
            cpus: 3,
            partition: Some("cpu".to_owned()),
            account: Some("a1".to_owned()),
            ranks_per_node: Some(1),
            options: vec!["--constraint=ib".to_owned()],
            program: "/opt/goodput".into(),
            time: Some(Duration::from_secs(90) + SlurmJob::SPARE),
            ..job(4)
        };
        let words = "run http://h:8000 --rate 5 --duration 60s --drain 30s --model a;b";
        let script = made(&job, words).unwrap();
        for line in [
            "#SBATCH --ntasks=4",
            "#SBATCH --cpus-per-task=3",
            // 90 s and ten minutes, in whole minutes.
            "#SBATCH --time=12",
            "#SBATCH --no-kill",
            "#SBATCH --partition=cpu",
            "#SBATCH --account=a1",
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --constraint=ib",
            "export GOODPUT_RENDEZVOUS=\":$((20000 + SLURM_JOB_ID % 10000))\"",
            "program=${GOODPUT_BIN:-/opt/goodput}",
            "    --kill-on-bad-exit=0 --wait=0 --no-kill --output=load-%j-%t.out \\",
            "    \"$program\" run http://h:8000 --rate 5 --duration 60s --drain 30s --model 'a;b' --shard auto",
        ] {
            assert!(script.lines().any(|found| found == line), "{line}\n{script}");
        }
        // Options of sbatch after the first command are none.
        let (_, commands) = script.split_once("\nset -eu\n").unwrap();
        assert!(!commands.contains("#SBATCH"));
    }

    #[test]
    fn what_has_no_known_length_must_say_its_limit() {
        let said = made(&SlurmJob { time: None, ..job(2) }, "sweep http://h").unwrap_err();
        assert!(said.contains("duration"), "{said}");
        let job = SlurmJob { time: Some(Duration::from_mins(90)), ..job(2) };
        assert!(made(&job, "sweep http://h").unwrap().contains("--time=90\n"));
    }

    #[test]
    fn nothing_typed_becomes_another_line() {
        let hostile = SlurmJob { partition: Some("a;b".to_owned()), ..job(2) };
        let said = made(&hostile, "run http://h");
        assert!(said.unwrap_err().contains("is not the name of a partition"));
        let hostile = SlurmJob { options: vec!["x".to_owned()], ..job(2) };
        let said = made(&hostile, "run http://h");
        assert!(said.unwrap_err().contains("is not an option of sbatch"));
    }

    #[test]
    fn ends_are_understood() {
        let line = "JobId=7 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=4:0 X=1";
        let table = [
            (End::from_scontrol(line), true, 4),
            (End::from_scontrol("JobState=RUNNING ExitCode=0:0"), false, 1),
            (End::from_scontrol("JobState=COMPLETED ExitCode=0:0"), true, 0),
            (End::from_scontrol("JobState=TIMEOUT ExitCode=0:0"), true, 1),
            (End::from_sacct("CANCELLED by 1000|0:15\n"), true, 143),
            (End::from_sacct("COMPLETED|0:0\nCOMPLETED|0:0\n"), true, 0),
        ];
        for (end, is_over, code) in table {
            let end = end.unwrap();
            assert_eq!((end.is_over(), end.exit_code()), (is_over, code), "{end:?}");
        }
        assert_eq!(End::from_scontrol("slurm_load_jobs error"), None);
        assert_eq!(End::from_sacct(""), None);
    }
}
