//! A Slurm job: the script, its start by sbatch, and its end.
//!
//! The token of the fleet is made by the script when the job begins, and handed to the tasks by
//! srun in their environment. So it is in no file, on no command line, not in what the controller
//! keeps of the environment of who submitted, and not in the accounting database.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::follow::{Ear, Tail, Wish};
use super::tool::Tool;
use super::words::Asked;
use super::{emit, quote};
use crate::args::SlurmArgs;
use crate::error::{Failed, exit};
use crate::output;

const HINT: &str = "Slurm's programs must be in PATH; --dry-run prints the script without them";
const SBATCH: Tool = Tool::new("sbatch", HINT);
const SCONTROL: Tool = Tool::new("scontrol", HINT);
const SACCT: Tool = Tool::new("sacct", HINT);
const SCANCEL: Tool = Tool::new("scancel", HINT);

/// What starting, meeting, uploading and merging may take beside the plan.
const SPARE: Duration = Duration::from_mins(10);

/// Questions in a row that the controller may leave unanswered: a minute.
const PATIENCE: u32 = 30;

/// `goodput fleet slurm`
pub(super) fn launch(args: &SlurmArgs) -> Result<ExitCode, Failed> {
    let asked = Asked::read(&args.launch)?;
    let script = script(args, &asked)?;
    if !emit(&args.launch, &script)? {
        return Ok(ExitCode::from(exit::OK));
    }
    let mut ear = Ear::new()?;
    let said = SBATCH.feed(&["--parsable"], &script)?;
    // `12`, or `12;cluster` where there are several.
    let job = said.trim().split(';').next().unwrap_or_default().to_owned();
    if job.is_empty() || !job.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Failed::internal(format!("sbatch names no job: {}", said.trim())));
    }
    output::note(&format!("job {job} is submitted; Ctrl-C stops its ranks"));
    let files = Files::of(&args.launch.name, &job);
    let end = follow(&job, &files, &mut ear)?;
    files.say(&end);
    let code = if ear.is_stopped() { exit::INTERRUPTED } else { end.code() };
    Ok(ExitCode::from(code))
}

/// The script that sbatch reads.
fn script(args: &SlurmArgs, asked: &Asked) -> Result<String, Failed> {
    let (name, ranks, cpus) = (&args.launch.name, args.launch.ranks, args.cpus);
    let minutes = limit(args, asked)?;
    let mut out = format!(
        "#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --ntasks={ranks}
#SBATCH --cpus-per-task={cpus}
#SBATCH --time={minutes}
#SBATCH --output={name}-%j.out
#SBATCH --no-kill
#SBATCH --no-requeue
"
    );
    let per_node = args.ranks_per_node.map(|ranks| format!("--ntasks-per-node={ranks}"));
    let named = |flag: &str, value: &Option<String>| {
        value
            .as_deref()
            .map(|value| bare(value).map(|value| format!("--{flag}={value}")))
            .transpose()
    };
    let options =
        [per_node, named("partition", &args.partition)?, named("account", &args.account)?];
    for option in options.into_iter().flatten() {
        line(&mut out, &option);
    }
    for option in &args.sbatch_arg {
        if !option.starts_with('-') || option.contains(char::is_control) {
            return Err(Failed::usage(format!("`{option}` is no option of sbatch"))
                .hint("write --sbatch-arg=--constraint=ib"));
        }
        line(&mut out, option);
    }
    out.push_str(&body(args, &asked.words_here())?);
    Ok(out)
}

fn line(out: &mut String, option: &str) {
    out.push_str("#SBATCH ");
    out.push_str(option);
    out.push('\n');
}

/// What the script does.
fn body(args: &SlurmArgs, words: &[String]) -> Result<String, Failed> {
    let program = match &args.program {
        Some(path) => path.clone(),
        None => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("goodput")),
    };
    let program = text(&program)?;
    let port = match args.port {
        Some(port) => port.to_string(),
        // Jobs that share a node must not share a port.
        None => "$((20000 + SLURM_JOB_ID % 10000))".to_owned(),
    };
    let (name, ranks, cpus) = (&args.launch.name, args.launch.ranks, args.cpus);
    let mut out = format!(
        r#"# Made by goodput {version}. Every task finds out who it is (--shard auto).
set -eu

# By this the ranks know each other: made here and now, handed on by srun in the environment alone.
if [ -z "${{GOODPUT_FLEET_TOKEN:-}}" ]; then
    GOODPUT_FLEET_TOKEN=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
fi
export GOODPUT_FLEET_TOKEN
# Rank 0 runs on the first node; this is its port there.
export GOODPUT_RENDEZVOUS=":{port}"
program=${{GOODPUT_BIN:-{program}}}

# A rank or a node that is lost must not end the others: they go on, and what is missing is named.
exec srun --ntasks={ranks} --cpus-per-task={cpus} --export=ALL \
    --kill-on-bad-exit=0 --wait=0 --no-kill --output={name}-%j-%t.out \
    "$program""#,
        version = env!("CARGO_PKG_VERSION"),
        program = quote::shell(program),
    );
    for word in words {
        // Writing to a string cannot fail.
        let _ = write!(out, " {}", quote::shell(word));
    }
    out.push('\n');
    Ok(out)
}

/// The time limit in minutes, the shortest unit that Slurm takes by itself.
fn limit(args: &SlurmArgs, asked: &Asked) -> Result<u64, Failed> {
    let planned = || asked.length().map(|length| length.map(|length| length + SPARE));
    let time = match args.time {
        Some(time) => Some(time),
        None => planned()?,
    };
    let time = time.ok_or_else(|| {
        Failed::usage("how long this takes cannot be told beforehand")
            .hint("give the job a limit, as in --time 2h")
    })?;
    Ok(time.as_secs().div_ceil(60).max(1))
}

/// A name that stands in a line of options as it is.
fn bare(value: &str) -> Result<&str, Failed> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,+@".contains(&byte);
    if !value.is_empty() && value.bytes().all(is_fit) {
        return Ok(value);
    }
    Err(Failed::usage(format!("`{value}` is no name of a partition or an account")))
}

fn text(path: &Path) -> Result<&str, Failed> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    text.ok_or_else(|| Failed::usage("the program's path is no text").hint("give --program PATH"))
}

/// What the job and its ranks print.
struct Files {
    /// Of the script and of srun.
    job: PathBuf,
    /// Of rank 0.
    first: PathBuf,
    /// Of the others, as a pattern.
    others: String,
}

impl Files {
    fn of(name: &str, job: &str) -> Self {
        Self {
            job: format!("{name}-{job}.out").into(),
            first: format!("{name}-{job}-0.out").into(),
            others: format!("{name}-{job}-*.out"),
        }
    }

    /// Where to look, once it is over.
    fn say(&self, end: &End) {
        output::note(&format!("{}; what each rank printed: {}", end.shown(), self.others));
    }
}

/// Waits for the end, printing what rank 0 prints.
fn follow(job: &str, files: &Files, ear: &mut Ear) -> Result<End, Failed> {
    let mut tails = [Tail::new(files.job.clone()), Tail::new(files.first.clone())];
    let (mut silent, mut known) = (0, String::new());
    loop {
        let end = match look(job) {
            Ok(end) => {
                silent = 0;
                end
            }
            Err(failed) if silent >= PATIENCE => {
                let hint = format!("the job may go on: squeue -j {job}, scancel {job}");
                return Err(failed.hint(hint));
            }
            Err(_) => {
                silent += 1;
                None
            }
        };
        if let Some(end) = end.as_ref().filter(|end| end.state != known) {
            output::note(&format!("job {job}: {}", goodput_report::plain(&end.state)));
            known.clone_from(&end.state);
        }
        for tail in &mut tails {
            tail.pass_on()?;
        }
        if let Some(end) = end.filter(End::is_over) {
            return Ok(end);
        }
        match ear.rest() {
            None | Some(Wish::GoOn) => {}
            // One that waits has nobody who hears a signal, and would run later.
            Some(Wish::Stop) if is_running(job) => {
                output::note(&format!(
                    "scancel --signal=INT {job}: the ranks write what they have"
                ));
                cancel(&["--signal=INT", job]);
            }
            Some(Wish::Stop | Wish::End) => {
                output::note(&format!("scancel {job}: the job is cancelled"));
                cancel(&[job]);
            }
        }
    }
}

/// Whether its ranks run, or may run: a controller that is silent now says nothing against it.
fn is_running(job: &str) -> bool {
    !matches!(look(job), Ok(Some(end)) if end.state != "RUNNING")
}

/// Asks for the end; where that fails, it is said, and the user may ask again.
fn cancel(words: &[&str]) {
    if let Err(failed) = SCANCEL.ask(words) {
        output::note(&format!("error: {failed}"));
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
fn look(job: &str) -> Result<Option<End>, Failed> {
    let told = SCONTROL.ask(&["show", "job", "-o", job]);
    if let Some(end) = told.as_deref().ok().and_then(End::of_scontrol) {
        return Ok(Some(end));
    }
    let kept = SACCT.ask(&["-j", job, "-n", "-P", "-X", "-o", "State,ExitCode"])?;
    Ok(End::of_sacct(&kept))
}

impl End {
    /// From a line of `scontrol show job -o`.
    fn of_scontrol(line: &str) -> Option<Self> {
        let value = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        Self::new(value("JobState=")?, value("ExitCode=")?)
    }

    /// From a line `FAILED|4:0`.
    fn of_sacct(line: &str) -> Option<Self> {
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
    fn code(&self) -> u8 {
        match (self.code, self.signal) {
            (0, 0) if self.state == "COMPLETED" => exit::OK,
            // Out of time, cancelled, a node lost: nothing of it is in the code.
            (0, 0) => exit::INTERNAL,
            (0, signal) => 128u8.saturating_add(signal),
            (code, _) => code,
        }
    }

    fn shown(&self) -> String {
        let (state, code, signal) = (goodput_report::plain(&self.state), self.code, self.signal);
        let by = if signal > 0 { format!(", signal {signal}") } else { String::new() };
        format!("the job ended: {state}, exit code {code}{by}")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, FleetVerb, Verb};

    fn made(line: &str) -> Result<String, String> {
        let words = line.split_whitespace();
        let Verb::Fleet(args) = Arguments::try_parse_from(words).unwrap().verb else { panic!() };
        let FleetVerb::Slurm(args) = args.engine else { panic!() };
        let asked = Asked::read(&args.launch).unwrap();
        script(&args, &asked).map_err(|failed| failed.to_string())
    }

    #[test]
    fn the_script_asks_for_what_was_typed() {
        let script = made(
            "goodput fleet slurm --ranks 4 --name load --cpus 3 --partition cpu --account a1 \
             --ranks-per-node 1 --sbatch-arg=--constraint=ib --program /opt/goodput \
             -- run http://h:8000 --rate 5 --duration 60s --drain 30s --model a;b",
        )
        .unwrap();
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
        let said = made("goodput fleet slurm --ranks 2 -- sweep http://h").unwrap_err();
        assert!(said.contains("how long"), "{said}");
        let line = "goodput fleet slurm --ranks 2 --time 90m -- sweep http://h";
        assert!(made(line).unwrap().contains("--time=90\n"));
    }

    #[test]
    fn nothing_typed_becomes_another_line() {
        let said = made("goodput fleet slurm --ranks 2 --partition a;b --time 1m -- run http://h");
        assert!(said.unwrap_err().contains("no name of a partition"));
        let said = made("goodput fleet slurm --ranks 2 --sbatch-arg=x --time 1m -- run http://h");
        assert!(said.unwrap_err().contains("no option of sbatch"));
    }

    #[test]
    fn ends_are_understood() {
        let line = "JobId=7 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=4:0 X=1";
        let table = [
            (End::of_scontrol(line), true, 4),
            (End::of_scontrol("JobState=RUNNING ExitCode=0:0"), false, 1),
            (End::of_scontrol("JobState=COMPLETED ExitCode=0:0"), true, 0),
            (End::of_scontrol("JobState=TIMEOUT ExitCode=0:0"), true, 1),
            (End::of_sacct("CANCELLED by 1000|0:15\n"), true, 143),
            (End::of_sacct("COMPLETED|0:0\nCOMPLETED|0:0\n"), true, 0),
        ];
        for (end, is_over, code) in table {
            let end = end.unwrap();
            assert_eq!((end.is_over(), end.code()), (is_over, code), "{end:?}");
        }
        assert_eq!(End::of_scontrol("slurm_load_jobs error"), None);
        assert_eq!(End::of_sacct(""), None);
    }
}
