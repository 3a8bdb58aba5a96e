//! The folder of a run.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_files::{MOST_SMALL, MOST_SUMMARY, check_inside, read_text_inside};
use goodput_model::{
    AnswerJudgement, GpuPlan, Header, HealthSample, Plan, REDACTED, RequestRecord,
    url_without_secrets,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::FolderError;
use crate::layout::{DRAFT, JUDGEMENTS, LOG, SAMPLES, SUMMARY, TEXT, is_unfinished};
use crate::log::{LogFile, LogReader, LogWriter, Unwritten};
use crate::manifest::Manifest;
use crate::nesting::from_toml;
use crate::toml_file::{read_toml, read_toml_inside};

/// A run on disk.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// What the disk refused, so that the report of this process lacks nothing.
    unwritten: Unwritten,
    unwritten_samples: Unwritten,
    unwritten_judgements: Unwritten,
    /// The logs as this process has them open, where it writes them.
    open: Option<OpenLogs>,
}

/// Logs that stay readable when their folder is removed.
#[derive(Debug)]
struct OpenLogs {
    requests: LogFile,
    samples: LogFile,
    /// Prompts and answers, where they are kept.
    texts: Option<LogFile>,
    /// The folder is gone, and there is none in its place that is ours.
    is_lost: bool,
}

impl RunFolder {
    fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            unwritten: Unwritten::default(),
            unwritten_samples: Unwritten::default(),
            unwritten_judgements: Unwritten::default(),
            open: None,
        }
    }
}

/// The logs of a run that is being made.
#[derive(Debug)]
pub struct Logs {
    /// Every request.
    pub requests: LogWriter,
    /// What is observed in addition to the requests.
    pub samples: LogWriter,
}

/// Writes prompts and answers as they come.
#[derive(Debug)]
pub struct TextWriter {
    file: Arc<fs::File>,
    path: PathBuf,
}

impl TextWriter {
    /// Appends prompt and answer of one request.
    pub fn append(&self, record: &RequestRecord, answer: Option<&str>) -> Result<(), FolderError> {
        #[derive(Serialize)]
        struct FolderLine<'a> {
            index: u64,
            prompt: Option<&'a str>,
            answer: Option<&'a str>,
        }
        let prompt = record.prompt.as_deref();
        let line = FolderLine { index: record.index, prompt, answer };
        let mut line = serde_json::to_vec(&line).unwrap_or_default();
        line.push(b'\n');
        (&*self.file).write_all(&line).map_err(|error| FolderError::Io {
            action: "write",
            path: self.path.clone(),
            error,
        })
    }
}

const PLAN: &str = "plan.toml";
const MANIFEST: &str = "manifest.json";
/// The HTML page that the program writes with the run.
const PAGE: &str = "report.html";
const NAMES: [&str; 7] = [PLAN, MANIFEST, LOG, SAMPLES, JUDGEMENTS, SUMMARY, TEXT];

impl RunFolder {
    /// Where the folders of the clients lie whose records were merged into one.
    pub const SHARDS: &'static str = "shards";

    /// Makes a new folder with its plan, manifest and empty logs.
    pub fn create(
        path: &Path,
        plan: &Plan,
        manifest: &Manifest,
    ) -> Result<(Self, Logs), FolderError> {
        let io = |action| move |error| FolderError::Io { action, path: path.to_owned(), error };
        create_folder(path)?;
        let mut folder = Self::at(path);
        folder.replace_file(PLAN, plan_text(plan)?.as_bytes())?;
        folder.write_manifest(manifest)?;
        let create =
            |name| LogWriter::create(&folder.file_path(name)).map_err(io("create a log in"));
        let logs = Logs { requests: create(LOG)?, samples: create(SAMPLES)? };
        let file = |log: &LogWriter| log.log_file().map_err(io("open a log in"));
        let (requests, samples) = (file(&logs.requests)?, file(&logs.samples)?);
        folder.open = Some(OpenLogs { requests, samples, texts: None, is_lost: false });
        Ok((folder, logs))
    }

    /// Whether a run may be made here: nothing is there yet, but perhaps its parts.
    pub fn check_free(path: &Path) -> Result<(), FolderError> {
        match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(FolderError::Io { action: "read", path: path.to_owned(), error }),
            Ok(mut entries) => {
                let is_left = is_unfinished(path);
                let is_ours = |entry: &fs::DirEntry| {
                    is_part(entry) || (is_left && is_merge_leftover(&entry.file_name()))
                };
                let is_taken = entries.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry)));
                if is_taken { Err(FolderError::Occupied(path.to_owned())) } else { Ok(()) }
            }
        }
    }

    /// Takes back a run of which nothing is worth keeping, and nothing else that lies in its folder.
    pub fn discard(path: &Path) {
        Self::remove_files(path);
        let _ = fs::remove_dir(path);
    }

    /// Removes the files of a run, and no others.
    pub(crate) fn remove_files(path: &Path) {
        for name in NAMES.iter().chain(&[PAGE]) {
            let _ = fs::remove_file(path.join(name));
        }
    }

    /// Whether a folder holds the files that make a run.
    pub(crate) fn is_at(path: &Path) -> bool {
        let is_plain =
            |name: &str| fs::symlink_metadata(path.join(name)).is_ok_and(|facts| facts.is_file());
        [PLAN, MANIFEST, LOG].into_iter().all(is_plain)
    }

    /// Opens an existing folder.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        for name in NAMES {
            let file = path.join(name);
            check_inside(&file).map_err(|error| FolderError::Io {
                action: "read",
                path: file,
                error,
            })?;
        }
        if is_unfinished(path) {
            return Err(FolderError::Unfinished(path.to_owned()));
        }
        for name in [PLAN, MANIFEST, LOG] {
            match fs::metadata(path.join(name)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(FolderError::Io { action: "read", path: path.to_owned(), error });
                }
                Err(_) => return Err(FolderError::NotARun(path.to_owned(), name)),
            }
        }
        Ok(Self::at(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was asked.
    pub fn read_plan(&self) -> Result<Plan, FolderError> {
        let path = self.file_path(PLAN);
        check_plan(read_toml_inside(&path)?, &path)
    }

    /// The plan as its file has it; empty if it cannot be read.
    pub fn read_plan_source(&self) -> String {
        self.read_file(PLAN, MOST_SMALL).unwrap_or_default()
    }

    /// Under which circumstances.
    pub fn read_manifest(&self) -> Result<Manifest, FolderError> {
        let text = self.read_file(MANIFEST, MOST_SMALL)?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
            FolderError::Damaged { path: self.file_path(MANIFEST), error: error.to_string() }
        })?;
        check_format(&manifest.schema, Manifest::SCHEMA, &self.file_path(MANIFEST))?;
        Ok(manifest)
    }

    /// Every request, from the first.
    pub fn read_records(&self) -> Result<LogReader<RequestRecord>, FolderError> {
        let path = self.file_path(LOG);
        let unwritten = self.unwritten.bytes.clone();
        let log = match &self.open {
            Some(open) => LogReader::from_file(open.requests.bytes(), unwritten),
            None => LogReader::open(&path, unwritten),
        };
        log.map_err(|error| FolderError::Io { action: "read", path, error })
    }

    /// What was observed in addition to the requests; empty if nothing was.
    pub fn read_samples(&self) -> impl Iterator<Item = HealthSample> + use<> {
        let unwritten = self.unwritten_samples.bytes.clone();
        let log = match &self.open {
            Some(open) => LogReader::from_file(open.samples.bytes(), unwritten),
            None => LogReader::open(&self.file_path(SAMPLES), unwritten),
        };
        log.into_iter().flatten()
    }

    /// Whether the log that this process writes is still in the folder.
    pub fn has_own_log(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.requests.is_at(&self.file_path(LOG)))
    }

    /// Writes a folder that was removed again, from the logs that are still open. Where that cannot
    /// be, or something else is there by now, nothing is written into it any more; the logs can
    /// still be read.
    pub fn restore(&mut self, plan: &Plan, manifest: &Manifest) -> Result<(), FolderError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.is_lost = true;
        let path = &self.path;
        let io = |action| move |error| FolderError::Io { action, path: path.clone(), error };
        fs::create_dir_all(path).map_err(io("create"))?;
        let logs = [(Some(&open.requests), LOG), (Some(&open.samples), SAMPLES)];
        let logs = logs.into_iter().chain([(open.texts.as_ref(), TEXT)]);
        for (log, name) in logs.filter_map(|(log, name)| Some((log?, name))) {
            let file = path.join(name);
            if log.is_at(&file) {
                continue;
            }
            let mut options =
                if name == TEXT { private_file_options() } else { fs::OpenOptions::new() };
            // A log of someone else is left alone.
            let copy = options.write(true).create_new(true).open(&file);
            let mut copy = copy.map_err(io("create a log in"))?;
            io::copy(&mut log.bytes(), &mut copy).map_err(io("write a log in"))?;
        }
        open.is_lost = false;
        self.replace_file(PLAN, plan_text(plan)?.as_bytes())?;
        self.write_manifest(manifest)
    }

    /// What was found out about the answers after the run; nothing if nothing was.
    pub fn read_judgements(&self) -> impl Iterator<Item = AnswerJudgement> + use<> {
        let unwritten = self.unwritten_judgements.bytes.clone();
        LogReader::open(&self.file_path(JUDGEMENTS), unwritten).into_iter().flatten()
    }

    /// Remembers what the disk refused of the judgements.
    pub fn keep_unwritten_judgements(&mut self, judgements: Unwritten) {
        self.unwritten_judgements = judgements;
    }

    /// Remembers what the disk refused.
    pub fn keep_unwritten(&mut self, requests: Unwritten, samples: Unwritten) {
        self.unwritten = requests;
        self.unwritten_samples = samples;
    }

    /// Replaces the manifest.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FolderError> {
        self.replace_file(MANIFEST, to_json(manifest).as_bytes())
    }

    /// Writes the numbers.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<(), FolderError> {
        self.replace_file(SUMMARY, to_json(summary).as_bytes())
    }

    /// The numbers as they were written; none if they were not, or cannot be read.
    pub fn read_summary<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.read_file(SUMMARY, MOST_SUMMARY).ok()?).ok()
    }

    /// Makes the file for prompts and answers. Only the user can read it.
    pub fn create_texts(&mut self) -> Result<TextWriter, FolderError> {
        let path = self.file_path(TEXT);
        let file = private_file_options().read(true).append(true).create_new(true).open(&path);
        match file.map(Arc::new) {
            Ok(file) => {
                if let Some(open) = &mut self.open {
                    open.texts = Some(LogFile::new(Arc::clone(&file)));
                }
                Ok(TextWriter { file, path })
            }
            Err(error) => Err(FolderError::Io { action: "create", path, error }),
        }
    }

    pub(crate) fn file_path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn read_file(&self, name: &str, most: u64) -> Result<String, FolderError> {
        let path = self.file_path(name);
        read_text_inside(&path, most).map_err(|error| FolderError::Io {
            action: "read",
            path,
            error,
        })
    }

    fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        if self.open.as_ref().is_some_and(|open| open.is_lost) {
            let error = io::Error::new(io::ErrorKind::NotFound, "its folder was removed");
            return Err(FolderError::Io { action: "write", path: self.file_path(name), error });
        }
        replace_in_folder(&self.path, name, bytes)
    }
}

/// How a file is opened that may hold prompts or answers: one that is new is for the user alone.
pub(crate) fn private_file_options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a folder that must not hold anything yet.
pub(crate) fn create_folder(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(|error| FolderError::Io {
        action: "create",
        path: path.to_owned(),
        error,
    })?;
    RunFolder::check_free(path)
}

/// The parts of a run are there before the whole.
fn is_part(entry: &fs::DirEntry) -> bool {
    entry.file_name() == RunFolder::SHARDS
}

/// What a merge that was stopped can leave: the draft, and files of it that have moved up already.
fn is_merge_leftover(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    name == DRAFT || name == PAGE || NAMES.contains(&name)
}

/// Writes a file whole or not at all: under a temporary name next to it, then renamed.
pub fn replace_in_folder(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
    let (path, temporary) = (folder.join(name), folder.join(format!(".{name}.new")));
    // What an earlier process left there, or a stranger: a link would lead the bytes to another file.
    let _ = fs::remove_file(&temporary);
    let outcome = fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, &path));
    outcome.map_err(|error| {
        // On a full disk only the beginning remains, which is useless.
        let _ = fs::remove_file(&temporary);
        FolderError::Io { action: "write", path, error }
    })
}

/// Reads a plan from any file.
pub fn read_plan(path: &Path) -> Result<Plan, FolderError> {
    check_plan(read_toml(path)?, path)
}

fn check_plan(plan: Plan, path: &Path) -> Result<Plan, FolderError> {
    check_format(&plan.schema, Plan::SCHEMA, path)?;
    Ok(plan)
}

/// Refuses what another version wrote in another form.
fn check_format(found: &str, known: &str, path: &Path) -> Result<(), FolderError> {
    if found == known {
        return Ok(());
    }
    let error = format!("its format is `{found}`, but this version reads `{known}`");
    Err(FolderError::Damaged { path: path.to_owned(), error })
}

/// A plan as a file has it, without its secrets.
pub fn plan_text(plan: &Plan) -> Result<String, FolderError> {
    toml::to_string(&redact_plan(plan)).map_err(|error| FolderError::Damaged {
        path: PathBuf::from(PLAN),
        error: error.to_string(),
    })
}

/// Reads a plan from its text.
pub fn parse_plan(text: &str) -> Result<Plan, FolderError> {
    let path = Path::new(PLAN);
    let plan: Plan = from_toml(text).map_err(|error| FolderError::Damaged {
        path: path.to_owned(),
        error: error.to_string(),
    })?;
    check_plan(plan, path)
}

/// The plan as it may be written: header values and query values may be secrets.
fn redact_plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let hide = |header: &Header| Header { name: header.name.clone(), value: REDACTED.to_owned() };
    plan.target.headers = plan.target.headers.iter().map(hide).collect();
    let exporters = match &mut plan.observe.gpu {
        GpuPlan::Exporters(urls) => urls.as_mut_slice(),
        _ => &mut [],
    };
    for url in plan.observe.metrics_urls.iter_mut().chain(exporters) {
        *url = url_without_secrets(url);
    }
    plan
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    // Our own types have string keys and finite numbers; nothing in them can fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
