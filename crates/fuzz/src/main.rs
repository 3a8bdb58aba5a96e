//! `goodput-fuzz`: fuzzes the parsers, or repeats one input. `cargo xtask fuzz` builds and runs it; it
//! needs no other files, so it can be copied to a machine with more cores.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer tool")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use goodput_fuzz::{
    Extent, FuzzSettings, FuzzTarget, TargetOutcome, all_targets, clean_up_after, died_at,
    journal_paths, repeat_input, run, sieve_target,
};

const USAGE: &str = "usage: goodput-fuzz [OPTIONS]
  --seconds N     time for all targets together (60)
  --hours N       the same in hours
  --inputs N      number of inputs to each target instead; `short`: as in `cargo xtask test`
  --target NAME   only this one; may be repeated
  --seed N        seed of the inputs (1)
  --threads N     threads for each target (all processors)
  --out DIR       folder for failing inputs (fuzz-findings)
  --index N       only this input of --target and --seed
  --input FILE    only this input of --target
  --list          list the targets";

/// Set in the process that does the work: the other one looks after it.
const CHILD: &str = "GOODPUT_FUZZ_CHILD";

/// What was asked for.
struct FuzzArguments {
    length: Length,
    targets: Vec<String>,
    seed: u64,
    threads: u64,
    out: PathBuf,
    index: Option<u64>,
    input: Option<PathBuf>,
    list: bool,
}

#[derive(Clone, Copy)]
enum Length {
    Seconds(f64),
    Inputs(u64),
    Short,
}

fn main() -> ExitCode {
    match FuzzArguments::parse(std::env::args().skip(1)).and_then(|asked| asked.run_command()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

impl FuzzArguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let mut asked = Self {
            length: Length::Seconds(60.0),
            targets: Vec::new(),
            seed: 1,
            threads,
            out: PathBuf::from("fuzz-findings"),
            index: None,
            input: None,
            list: false,
        };
        while let Some(word) = words.next() {
            if word == "--list" {
                asked.list = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
            let time = || match value.parse::<f64>() {
                Ok(time) if (0.0..1e7).contains(&time) => Ok(time),
                _ => Err(format!("`{value}` is not a duration")),
            };
            match word.as_str() {
                "--seconds" => asked.length = Length::Seconds(time()?),
                "--hours" => asked.length = Length::Seconds(time()? * 3600.0),
                "--inputs" if value == "short" => asked.length = Length::Short,
                "--inputs" => asked.length = Length::Inputs(number()?),
                "--target" => asked.targets.push(value),
                "--seed" => asked.seed = number()?,
                "--threads" => asked.threads = number()?.clamp(1, 1024),
                "--out" => asked.out = PathBuf::from(value),
                "--index" => asked.index = Some(number()?),
                "--input" => asked.input = Some(PathBuf::from(value)),
                _ => return Err(format!("unknown argument `{word}`")),
            }
        }
        Ok(asked)
    }

    /// Whether nothing was found.
    fn run_command(&self) -> Result<bool, String> {
        let chosen = self.chosen_targets()?;
        if self.list {
            for target in &chosen {
                println!("{}", target.name);
            }
            return Ok(true);
        }
        if self.index.is_some() || self.input.is_some() {
            return self.run_one(&chosen);
        }
        fs::create_dir_all(&self.out)
            .map_err(|error| format!("{}: {error}", self.out.display()))?;
        if std::env::var_os(CHILD).is_some() { self.run_all(&chosen) } else { self.supervise() }
    }

    fn chosen_targets(&self) -> Result<Vec<FuzzTarget>, String> {
        let mut all = targets_with_sieve();
        if let Some(unknown) = self.targets.iter().find(|name| all.iter().all(|t| t.name != **name))
        {
            return Err(format!("unknown target `{unknown}`; --list shows all"));
        }
        all.retain(|target| {
            let is_any = self.targets.is_empty() && target.name != sieve_target().name;
            is_any || self.targets.iter().any(|name| name == target.name)
        });
        Ok(all)
    }

    /// One input to one target.
    fn run_one(&self, chosen: &[FuzzTarget]) -> Result<bool, String> {
        let [target] = chosen else {
            return Err("--input and --index need exactly one --target".to_owned());
        };
        let input = match (&self.input, self.index) {
            (Some(path), _) => {
                fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?
            }
            (None, index) => target.input(self.seed, index.unwrap_or(0)),
        };
        let wrong = repeat_input(target, &input).map_err(|error| error.to_string())?;
        println!("{}: {}", target.name, wrong.as_deref().unwrap_or("no finding"));
        Ok(wrong.is_none())
    }

    /// Every target, one after another; each line as soon as it is known.
    fn run_all(&self, chosen: &[FuzzTarget]) -> Result<bool, String> {
        println!(
            "{:17} {:>10} {:>9} {:>11} {:>10} {:>10} {:>10}  findings",
            "target", "inputs", "inputs/s", "most bytes", "by input", "slowest", "by input"
        );
        let mut is_clean = true;
        for target in chosen {
            let extent = match self.length {
                Length::Seconds(time) => {
                    Extent::For(Duration::from_secs_f64(time / chosen.len() as f64))
                }
                Length::Inputs(count) => Extent::Inputs(count),
                Length::Short => Extent::Inputs(target.short),
            };
            let journals = Some(self.out.clone());
            let settings =
                FuzzSettings { seed: self.seed, extent, threads: self.threads, journals };
            let outcome = run(target, &settings).map_err(|error| error.to_string())?;
            println!("{}", outcome_line(target.name, &outcome));
            for finding in &outcome.findings {
                is_clean = false;
                self.save_input(target.name, finding.index, &finding.what, &finding.input)?;
            }
        }
        Ok(is_clean)
    }

    fn save_input(&self, target: &str, index: u64, what: &str, input: &[u8]) -> Result<(), String> {
        let path = self.out.join(format!("{target}-{}-{index}", self.seed));
        fs::write(&path, input).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("  {what}\n  repeat: goodput-fuzz --target {target} --input {}", path.display());
        Ok(())
    }

    /// Does the work in another process, whose end may be a finding: a stack or a memory that is full,
    /// an input without an end.
    fn supervise(&self) -> Result<bool, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(&program);
        let status = wait_for_exit(child.args(std::env::args().skip(1)).env(CHILD, "1"))?;
        let journals = journal_paths(&self.out, self.threads);
        let is_known = matches!(status.code(), Some(0..=2));
        if !is_known {
            println!("the process crashed ({status})");
            for (name, seed, index) in journals.iter().filter_map(|path| died_at(path)) {
                self.rerun_input(&program, &name, seed, index)?;
            }
        }
        for journal in journals {
            // It is no longer needed, and may not exist.
            let _ = fs::remove_file(journal);
        }
        match status.code() {
            Some(2) => Err("see above".to_owned()),
            _ => Ok(status.success()),
        }
    }

    /// One of the inputs that ran when the process ended: is it this one?
    fn rerun_input(&self, program: &Path, name: &str, seed: u64, index: u64) -> Result<(), String> {
        let mut child = Command::new(program);
        child.args(["--target", name, "--seed", &seed.to_string(), "--index", &index.to_string()]);
        let status = wait_for_exit(&mut child)?;
        let Some(target) = targets_with_sieve().into_iter().find(|target| target.name == name)
        else {
            return Ok(());
        };
        if status.success() {
            return Ok(());
        }
        self.save_input(
            name,
            index,
            &format!("it crashes its process ({status})"),
            &target.input(seed, index),
        )
    }
}

/// Runs a process to its end, whatever that is, and leaves nothing of it.
fn wait_for_exit(command: &mut Command) -> Result<ExitStatus, String> {
    let mut child = command.spawn().map_err(|error| format!("cannot start again: {error}"))?;
    let status = child.wait().map_err(|error| format!("cannot wait: {error}"))?;
    clean_up_after(child.id());
    Ok(status)
}

/// The targets, and the one that is for the test of this program.
fn targets_with_sieve() -> Vec<FuzzTarget> {
    all_targets().into_iter().chain([sieve_target()]).collect()
}

fn outcome_line(name: &str, outcome: &TargetOutcome) -> String {
    let rate = outcome.inputs as f64 / outcome.took.as_secs_f64().max(1e-9);
    format!(
        "{name:17} {:>10} {rate:>9.0} {:>11} {:>10} {:>7.1} ms {:>10}  {}",
        outcome.inputs,
        outcome.most_bytes.0,
        outcome.most_bytes.1,
        outcome.slowest.0.as_secs_f64() * 1e3,
        outcome.slowest.1,
        outcome.findings.len()
    )
}
