//! Pages of real runs of this build on its own simulated engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use super::looks;
use super::requests::MeasuredRequests;
use crate::running::{Mock, TemporaryFolder};

/// A server whose times to the first token are spread, so that limits part requests.
const SPREAD: &str = "mock:ttft=uniform:20ms:200ms,itl=uniform:2ms:6ms,slots=64";
const FOUR: &str = "mock:ttft=uniform:16ms:28ms,itl=2ms,slots=4";

/// Runs that may be void before the check is given up.
const TRIES: usize = 5;

/// Text that would do something if it were not text. What it does shows in the page's window; one
/// long word would also push everything aside.
pub(super) const HOSTILE: &str = "</script></style><img src=x onerror=\"window.hostile=1\">\
    <svg onload=window.hostile=1>'\"`&lt;{{7*7}}${7*7}\
    WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW";

/// A page, and what is known about it from elsewhere.
pub(super) struct Made {
    pub(super) name: &'static str,
    pub(super) file: PathBuf,
    /// The summary of what it shows.
    pub(super) summary: Value,
    /// What its explorer counts.
    pub(super) explored: Vec<Explored>,
    /// Whether hostile text must be found in it, as text.
    pub(super) is_hostile: bool,
}

/// The requests of one row of an explorer.
pub(super) struct Explored {
    /// Offered requests per second; none if the page is of one run.
    pub(super) load: Option<f64>,
    /// Requests that were due, per second.
    pub(super) rate: f64,
    pub(super) requests: MeasuredRequests,
}

impl Explored {
    /// Whether a row of this name is about it.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let number = name.split(' ').next().and_then(|number| number.parse::<f64>().ok());
        self.load.is_none_or(|load| number == Some(load))
    }
}

/// Makes them all.
pub(super) fn make(goodput: &Path, folder: &TemporaryFolder) -> Result<Vec<Made>, String> {
    let maker = Maker { goodput, folder };
    // The sweep takes as long as the others together, and all of them wait more than they work.
    let (sweep, others) = thread::scope(|scope| {
        let sweep = scope.spawn(|| maker.sweep());
        let others = [maker.run(), maker.odd(), maker.failed()];
        (sweep.join().unwrap_or_else(|_| Err("the sweep was not made".to_owned())), others)
    });
    let mut made: Vec<Made> = others.into_iter().collect::<Result<_, String>>()?;
    made.extend([sweep?, maker.plan()?, maker.repeats()?, maker.comparison()?]);
    Ok(made)
}

struct Maker<'a> {
    goodput: &'a Path,
    folder: &'a TemporaryFolder,
}

impl Maker<'_> {
    fn goodput(&self, args: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(self.goodput);
        command.args(args).current_dir(self.folder.path("."));
        // What this machine's owner has calibrated is not part of a test.
        command.env("XDG_STATE_HOME", self.folder.path("."));
        let output = command.output().map_err(|error| format!("cannot run goodput: {error}"))?;
        // Requests that failed, an SLO that was missed and a client that was late do not fail this check.
        match output.status.code() {
            Some(0 | 3..=5) => Ok(output),
            code => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("`goodput {}` ({code:?}): {said}", args.join(" ")))
            }
        }
    }

    /// The page of a folder.
    fn page(&self, name: &'static str, is_hostile: bool) -> Result<Made, String> {
        let page = format!("{name}.html");
        self.goodput(&["report", name, "--format", "html", "--output", &page])?;
        let summary = self.goodput(&["report", name, "--json"])?.stdout;
        let summary = serde_json::from_slice(&summary).map_err(|error| error.to_string())?;
        Ok(Made { name, file: self.folder.path(&page), summary, explored: Vec::new(), is_hostile })
    }

    /// The run whose explorer is looked at. A machine that stands still makes it void, and the page of
    /// a void run has none: then it is made again, and in the end left without a count of its own.
    #[expect(clippy::print_stderr, reason = "what is left out is said")]
    fn run(&self) -> Result<Made, String> {
        let load = ["run", SPREAD, "--rate", "60", "--duration", "3s", "--osl", "8", "--quiet"];
        let load = [&load[..], &["--slo", "ttft < 100ms", "--out", "run"]].concat();
        for _ in 0..TRIES {
            // Before the first there is none.
            let _ = fs::remove_dir_all(self.folder.path("run"));
            self.goodput(&load)?;
            let made = self.page("run", false)?;
            if made.summary["verdict"] != "void" {
                let explored = vec![self.explored("run", None)?];
                return Ok(Made { explored, ..made });
            }
        }
        eprintln!("  SKIPPED: the explorer's numbers: {TRIES} runs were void on this busy machine");
        self.page("run", false)
    }

    /// What the table of a run's requests says.
    fn explored(&self, folder: &str, load: Option<f64>) -> Result<Explored, String> {
        let table = self.goodput(&["report", folder, "--format", "csv"])?.stdout;
        let requests = MeasuredRequests::read(&String::from_utf8_lossy(&table))?;
        let summary = self.goodput(&["report", folder, "--json"])?.stdout;
        let summary: Value = serde_json::from_slice(&summary).map_err(|error| error.to_string())?;
        let rate = summary["load"]["scheduled_rps"].as_f64().ok_or("the summary has no rate")?;
        Ok(Explored { load, rate, requests })
    }

    fn sweep(&self) -> Result<Made, String> {
        let load = ["sweep", FOUR, "--rates", "10,20,40", "--no-search", "--slo", "ttft < 100ms"];
        let short = ["--isl", "20", "--osl", "5", "--duration", "1500ms", "--warmup", "200ms"];
        let quick = ["--settle", "0s", "--quick", "--no-length-check", "--quiet", "--out", "sweep"];
        self.goodput(&[&load[..], &short, &quick].concat())?;
        let made = self.page("sweep", false)?;
        let points = made.summary["points"].as_array().cloned().unwrap_or_default();
        let mut explored = Vec::new();
        for point in points.iter().filter(|point| looks::is_shown(point)) {
            let folder = point["folder"].as_str().unwrap_or_default();
            let load = point["ask"]["level"]["rate"].as_f64();
            explored.push(self.explored(&format!("sweep/{folder}"), load)?);
        }
        Ok(Made { explored, ..made })
    }

    /// What a server that carries so much means for a day.
    fn plan(&self) -> Result<Made, String> {
        let asked = ["plan", "--goodput-rps", "40", "--diurnal", "300:50"];
        self.goodput(&[&asked[..], &["--html", "plan.html"]].concat())?;
        let file = self.folder.path("plan.html");
        let (summary, explored) = (Value::Null, Vec::new());
        Ok(Made { name: "plan", file, summary, explored, is_hostile: false })
    }

    /// The same run three times.
    fn repeats(&self) -> Result<Made, String> {
        let load = ["run", FOUR, "--rate", "40", "--duration", "1s", "--osl", "5", "--repeat", "3"];
        self.goodput(&[&load[..], &["--quiet", "--out", "repeats"]].concat())?;
        self.page("repeats", false)
    }

    /// A model and a class with hostile names.
    fn odd(&self) -> Result<Made, String> {
        let mock = Mock::start(self.goodput, &["--model", HOSTILE, "--fault", "500:1/5"])?;
        let url = format!("http://{}", mock.address());
        let load = ["run", &url, "--model", HOSTILE, "--rate", "40", "--duration", "1s"];
        let short = ["--osl", "5", "--quiet", "--out"];
        self.goodput(&[&load[..], &short, &["plain"]].concat())?;
        let plan = self.folder.path("plain/plan.toml");
        let text = fs::read_to_string(&plan).map_err(|error| error.to_string())?;
        let name = Value::from(HOSTILE).to_string();
        let text = text.replace("name = \"chat\"", &format!("name = {name}"));
        let odd = self.folder.path("odd.toml");
        fs::write(&odd, text).map_err(|error| error.to_string())?;
        self.goodput(&["run", "--plan", "odd.toml", "--quiet", "--out", "odd"])?;
        self.page("odd", true)
    }

    /// Errors that quote hostile text.
    fn failed(&self) -> Result<Made, String> {
        let mock = Mock::start(self.goodput, &["--model", "other"])?;
        let url = format!("http://{}", mock.address());
        let load = ["run", &url, "--model", HOSTILE, "--rate", "40", "--duration", "1s"];
        let short = ["--osl", "5", "--no-probe", "--quiet", "--out", "failed"];
        self.goodput(&[&load[..], &short].concat())?;
        self.page("failed", true)
    }

    /// The first run and the hostile one.
    fn comparison(&self) -> Result<Made, String> {
        let sides = ["compare", "run", "odd", "--quiet", "--out", "comparison"];
        self.goodput(&sides)?;
        self.page("comparison", true)
    }
}
