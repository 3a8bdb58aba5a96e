//! A run on the nodes of a Ray cluster: a small driver in Python, which Ray's own library starts.

use std::fmt::Write as _;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use goodput_clock::pause;
use goodput_model::Nanos;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::follow::Follower;
use super::template::fill_template;
use super::tool::Tool;
use super::{JobObserver, LOST, RankCommand, StopRequest, random_secret};
use crate::LaunchError;

/// The driver, but for what was asked.
const DRIVER: &str = include_str!("templates/ray.py");

const RAY: Tool = Tool::new("ray", "--job needs the program `ray` in PATH; install `ray[default]`");

/// A job that is stopped has this many seconds before it is killed; by itself Ray gives it three.
const PATIENCE: &str = r#"{"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "120"}}"#;

/// How often the driver is looked at.
const LOOK: Nanos = Nanos::from_millis(50);

/// Ranks on the nodes of a Ray cluster.
#[derive(Debug, Clone)]
pub struct RayJob {
    /// The job's name.
    pub name: String,
    /// How many ranks.
    pub ranks: u32,
    /// Address of the cluster.
    pub address: String,
    /// Processors of each rank.
    pub cpus: u32,
    /// Whether no two ranks may share a node.
    pub strict_spread: bool,
    /// The program on the nodes.
    pub program: String,
    /// Port of rank 0; by default a free one of its node.
    pub port: Option<u16>,
    /// The Python that has Ray.
    pub python: PathBuf,
    /// Where the driver is handed to the cluster as a job of its own.
    pub job: Option<String>,
    /// The text of the plan that the ranks get.
    pub plan: Option<String>,
}

impl RayJob {
    /// Fails where the results would be lost with the job.
    pub fn check(&self, command: &RankCommand) -> Result<(), LaunchError> {
        if self.job.is_none() || command.out.as_ref().is_some_and(|out| out.is_absolute()) {
            return Ok(());
        }
        Err(LaunchError::usage("Ray deletes the working folder of a job, and the results in it")
            .hint("choose another folder in the arguments after `--`, as in `-- run … --out /results/load`"))
    }

    /// The driver with what was asked put in: JSON, all but ASCII escaped, in a raw string of Python.
    pub fn driver_script(&self, command: &RankCommand) -> String {
        let asked = json!({
            "address": self.address,
            "ranks": self.ranks,
            "cpus": self.cpus,
            "strategy": if self.strict_spread { "STRICT_SPREAD" } else { "SPREAD" },
            "port": self.port,
            "program": self.program,
            "words": command.command_words(None),
            "plan": self.plan,
            "keys": ["GOODPUT_FLEET_TOKEN", command.key_env],
        });
        fill_template(DRIVER, |name| {
            (name == "ASKED").then(|| escape_for_python(&asked.to_string()))
        })
    }

    /// Starts the driver and waits for its end; its exit code, unless the user stopped it.
    pub fn launch(
        &self,
        driver: &str,
        observer: &dyn JobObserver,
    ) -> Result<Option<u8>, LaunchError> {
        let mut follower = Follower::new(observer);
        let mut running = self.start(driver)?;
        follower.note("the driver has started; Ctrl-C stops the ranks, which save their results");
        let mut is_to_stop = false;
        loop {
            let ended = running.child.try_wait().map_err(|error| {
                LaunchError::engine(format!("cannot wait for the driver: {error}"))
            })?;
            if let Some(status) = ended {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                return Ok(follower.unless_stopped(code.unwrap_or(LOST)));
            }
            match follower.new_stop_request() {
                Some(StopRequest::Stop) => is_to_stop = true,
                Some(StopRequest::Abort) => send_signal(&running.child, Signal::INT),
                Some(StopRequest::None) | None => pause(LOOK),
            }
            if is_to_stop {
                is_to_stop = !running.stop(&follower);
            }
        }
    }

    /// Starts the driver: here, read from stdin, so that no file is left behind; or by the cluster,
    /// which takes a folder.
    fn start(&self, driver: &str) -> Result<RayDriver, LaunchError> {
        let (mut command, job) = match &self.job {
            None => (Command::new(&self.python), None),
            Some(address) => {
                let cannot =
                    |error| LaunchError::engine(format!("cannot write the driver: {error}"));
                let folder = create_driver_folder(driver).map_err(cannot)?;
                let id = format!("{}-{}", self.name, &random_secret().map_err(cannot)?[..12]);
                let mut command = RAY.command(&["job", "submit", "--address", address]);
                command.args(["--submission-id", &id, "--runtime-env-json", PATIENCE]);
                command.arg("--working-dir").arg(&folder.0).args(["--", "python3", "driver.py"]);
                (command, Some(SubmittedJob { address: address.clone(), id, _folder: folder }))
            }
        };
        command.process_group(0).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            LaunchError::engine(format!("cannot run `{program}`: {error}"))
                .hint("choose a Python that has Ray with --python; --dry-run prints the driver")
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that does not read says why by its status.
            let _ = stdin.write_all(driver.as_bytes());
        }
        Ok(RayDriver { child, job })
    }
}

/// The driver's process, or the one that follows the job which has it.
struct RayDriver {
    child: Child,
    job: Option<SubmittedJob>,
}

/// A job of the cluster, and the folder it is read from.
struct SubmittedJob {
    address: String,
    id: String,
    _folder: JobFolder,
}

impl RayDriver {
    /// Tells the ranks to stop; whether they are told. A job may not be there yet.
    fn stop(&self, follower: &Follower<'_>) -> bool {
        let Some(SubmittedJob { address, id, .. }) = &self.job else {
            // The ranks hear it as if it were theirs: once to stop, twice to stop at once.
            send_signal(&self.child, Signal::INT);
            return true;
        };
        follower
            .note(&format!("ray job stop {id}: the ranks have two minutes to save their results"));
        let told = RAY.run(&["job", "stop", "--no-wait", "--address", address, id]);
        if let Err(failed) = &told {
            follower.note(&format!("error: {failed}"));
        }
        told.is_ok()
    }
}

/// A folder that goes when it is no longer needed.
struct JobFolder(PathBuf);

impl Drop for JobFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder of our own with the driver in it.
fn create_driver_folder(driver: &str) -> io::Result<JobFolder> {
    let path = std::env::temp_dir().join(format!("goodput-ray-{}", std::process::id()));
    // An existing one belongs to another job.
    DirBuilder::new().mode(0o700).create(&path)?;
    let folder = JobFolder(path);
    std::fs::write(folder.0.join("driver.py"), driver)?;
    Ok(folder)
}

fn send_signal(child: &Child, signal: Signal) {
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, signal);
    }
}

/// JSON that holds no quote but those of its strings, and nothing but ASCII.
fn escape_for_python(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    // A quote within a string is `\"` in JSON, and three in a row would end Python's.
    for c in json.replace(r"\\", r"\u005c").replace(r#"\""#, r"\u0022").chars() {
        if matches!(c, ' '..='~') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    // Strings side by side have a comma between them, so three quotes in a row are nowhere left.
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::example;
    use super::*;

    fn made(words: &[&str]) -> String {
        let job = RayJob {
            name: "goodput".to_owned(),
            ranks: 3,
            address: "auto".to_owned(),
            cpus: 2,
            strict_spread: true,
            program: "goodput".to_owned(),
            port: None,
            python: "python3".into(),
            job: None,
            plan: None,
        };
        job.driver_script(&example(words))
    }

    fn asked(driver: &str) -> Value {
        let (_, rest) = driver.split_once("r\"\"\"").unwrap();
        serde_json::from_str(rest.split_once("\"\"\"").unwrap().0).unwrap()
    }

    #[test]
    fn the_driver_holds_what_was_asked() {
        let driver =
            made(&["run", "http://h", "--rate", "5", "--model", "a\"\"\"); exit()#\u{e9}\\"]);
        assert!(driver.is_ascii());
        assert!(driver.lines().count() <= 130);
        let asked = asked(&driver);
        assert_eq!(asked["ranks"], 3);
        assert_eq!(asked["strategy"], "STRICT_SPREAD");
        assert_eq!(asked["words"][5], "a\"\"\"); exit()#\u{e9}\\");
        assert_eq!(asked["words"][6], "--shard");
        assert_eq!(asked["keys"], serde_json::json!(["GOODPUT_FLEET_TOKEN", "OPENAI_API_KEY"]));
    }

    proptest! {
        #[test]
        fn no_word_leaves_its_string(word in "(?s).{0,20}") {
            let quoted = escape_for_python(&serde_json::json!([word, "", ""]).to_string());
            prop_assert!(!quoted.contains("\"\"\"") && quoted.is_ascii());
            let read: Vec<String> = serde_json::from_str(&quoted).unwrap();
            prop_assert_eq!(&read[0], &word);
        }
    }
}
