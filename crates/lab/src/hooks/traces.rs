//! `--traces`: spans of the requests that were traced, to a file or to a collector.
//!
//! They are made from the run folder once the run is over, so none of it runs during the load,
//! and a saved run gives the same spans.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_clock::now;
use goodput_model::Nanos;
use goodput_record::{FolderError, RunFolder};

use goodput_wire::{BaseUrl, Poster, UrlError};
use serde::Deserialize;

use super::otlp::{Resource, ResourceSpans, Scope, ScopeSpans, Span, TracesData};
use super::spans::Spans;
use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::{Interrupt, Patience};

/// Most spans of one document.
const BATCH: usize = 500;

/// How long a collector may take for one document.
const POST_LIMIT: Duration = Duration::from_secs(10);

/// How long it may take for all documents of a run, whose report is printed afterwards.
const EXPORT_LIMIT: Duration = Duration::from_mins(1);

/// How often the user's wish to stop is looked after.
const GLANCE: Duration = Duration::from_millis(50);

/// Where OTLP's traces go at a collector whose URL names no path.
const PATH: &str = "/v1/traces";

/// Where spans go.
#[derive(Debug)]
pub enum Destination {
    /// A file of lines, each a document.
    File(PathBuf),
    /// A collector.
    Collector(BaseUrl),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Collector(url) => f.write_str(&url.shown()),
        }
    }
}

impl Destination {
    /// From what was typed.
    pub fn new(text: &str) -> Result<Self, Failed> {
        if text.starts_with("http://") || text.starts_with("https://") {
            let url = text.parse().map_err(|error: UrlError| {
                Failed::usage(error.to_string()).hint("for example http://localhost:4318")
            })?;
            return Ok(Self::Collector(url));
        }
        if text.contains("://") {
            return Err(Failed::usage(format!("traces cannot be sent to `{text}`"))
                .hint("name a file, or a collector that speaks OTLP over HTTP: http://HOST:4318"));
        }
        let path = PathBuf::from(text);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(Failed::usage(format!("traces cannot be written to `{text}`"))
                .hint("name a file in an existing folder: --traces traces.jsonl"));
        }
        Ok(Self::File(path))
    }
}

/// What became of the spans of a run.
#[derive(Debug, Default)]
pub(super) struct SpanDelivery {
    /// Spans that are there.
    pub(super) taken: u64,
    /// Spans that the collector looked at and did not want.
    pub(super) rejected: u64,
    /// Why, in the words of the first time.
    pub(super) why: String,
    /// Why the others did not get there.
    pub(super) cut: Option<Failed>,
}

impl SpanDelivery {
    /// The same with those of a further run.
    pub(super) fn add(&mut self, more: Self) {
        if self.rejected == 0 {
            self.why = more.why;
        }
        self.taken += more.taken;
        self.rejected += more.rejected;
        self.cut = more.cut;
    }

    /// How many got there, and how many were not wanted. Sending those again would not help.
    pub(super) fn note_delivery(&self, to: &Destination, observer: &dyn Observer) {
        let Self { taken, rejected, .. } = self;
        if *rejected > 0 {
            let why = &self.why;
            observer.warn(format!(
                "traces: {to} accepted {taken} spans and rejected {rejected}: {why}"
            ));
        } else if self.cut.is_none() {
            observer.note(format!("traces: {taken} requests to {to}"));
        }
    }
}

/// Sends the spans of a run on their way; none if it has no traced request. What the destination
/// does not accept is not an error here.
pub(super) fn export_spans(
    folder: &Path,
    to: &Destination,
    wait: &Wait,
) -> Result<Option<SpanDelivery>, FolderError> {
    let folder = RunFolder::open(folder)?;
    let (plan, manifest) = (folder.read_plan()?, folder.read_manifest()?);
    let Some(spans) = Spans::new(&plan, &manifest) else { return Ok(None) };
    let found = folder.read_records()?.filter_map(|record| spans.span_of(&record));
    let documents = Documents { resource: spans.run_resource(), spans: found };
    Ok(Some(match to {
        Destination::File(path) => match add_to_file(path, documents) {
            Ok(taken) => SpanDelivery { taken, ..SpanDelivery::default() },
            Err(error) => {
                let why = format!("cannot write `{}`: {error}", path.display());
                SpanDelivery { cut: Some(Failed::usage(why)), ..SpanDelivery::default() }
            }
        },
        Destination::Collector(url) => post_spans(url, documents, wait),
    }))
}

/// How long a collector is waited for, over all documents of a run.
pub(super) struct Wait {
    end: Nanos,
    patience: Option<Patience>,
}

impl Wait {
    /// Behind a run, whose report is waiting: not long, and not against the user's wish.
    pub(super) fn after_run(interrupt: &Interrupt) -> Self {
        Self { end: now() + EXPORT_LIMIT.into(), patience: Patience::new(interrupt).ok() }
    }

    /// As long as each answer comes in time.
    pub(super) fn unhurried() -> Self {
        Self { end: Nanos(u64::MAX), patience: None }
    }

    /// Why it is over, once it is.
    async fn over_reason(&self) -> &'static str {
        loop {
            if self.patience.as_ref().is_some_and(Patience::has_run_out) {
                return "sending was stopped";
            }
            if now() >= self.end {
                return "it did not finish within one minute";
            }
            tokio::time::sleep(GLANCE).await;
        }
    }
}

/// Spans in documents of a size that a collector takes.
struct Documents<I> {
    resource: Resource,
    spans: I,
}

impl<I: Iterator<Item = Span>> Iterator for Documents<I> {
    /// The document, and how many spans are in it.
    type Item = (Vec<u8>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let spans: Vec<Span> = self.spans.by_ref().take(BATCH).collect();
        if spans.is_empty() {
            return None;
        }
        let scope = Scope { name: "goodput", version: env!("CARGO_PKG_VERSION") };
        let scope_spans = [ScopeSpans { scope, spans: &spans }];
        let document = TracesData {
            resource_spans: [ResourceSpans { resource: &self.resource, scope_spans }],
        };
        // Our own types have string keys; nothing in them can fail.
        Some((serde_json::to_vec(&document).unwrap_or_default(), spans.len() as u64))
    }
}

/// Adds the documents to a file, one to a line: the form that collectors read files in. All of them
/// get there, or none.
fn add_to_file(path: &Path, documents: impl Iterator<Item = (Vec<u8>, u64)>) -> io::Result<u64> {
    let mut file = File::options().append(true).create(true).open(path)?;
    if !file.metadata()?.is_file() {
        // A pipe, or a device: nothing can be taken back.
        return write_lines(&mut file, documents);
    }
    // Runs and processes that go on at once may have one file. Not every disk knows locks.
    let _ = file.lock();
    let before = file.metadata()?.len();
    write_lines(&mut file, documents).inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

fn write_lines(
    file: &mut File,
    documents: impl Iterator<Item = (Vec<u8>, u64)>,
) -> io::Result<u64> {
    let mut all = 0;
    for (mut document, spans) in documents {
        document.push(b'\n');
        file.write_all(&document)?;
        all += spans;
    }
    Ok(all)
}

/// What a collector says about a document that it took.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExportResponse {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    /// A number, or text as OTLP writes numbers of 64 bits.
    rejected_spans: serde_json::Value,
    error_message: String,
}

impl ExportResponse {
    /// How many spans the collector did not want, and why.
    fn parse_rejected(answer: &[u8]) -> Option<(u64, String)> {
        let taken: Self = serde_json::from_slice(answer).ok()?;
        let PartialSuccess { rejected_spans, error_message } = taken.partial_success?;
        let number = rejected_spans.as_u64().or_else(|| rejected_spans.as_str()?.parse().ok())?;
        (number > 0).then_some((number, error_message))
    }
}

/// Hands the documents to a collector, one after the other.
fn post_spans(
    url: &BaseUrl,
    documents: impl Iterator<Item = (Vec<u8>, u64)>,
    wait: &Wait,
) -> SpanDelivery {
    let mut sent = SpanDelivery::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => tokio::task::LocalSet::new()
            .block_on(&runtime, post_documents(url, documents, wait, &mut sent)),
        Err(error) => Err(Failed::internal(error.to_string())),
    };
    sent.cut = outcome.err();
    sent
}

async fn post_documents(
    url: &BaseUrl,
    documents: impl Iterator<Item = (Vec<u8>, u64)>,
    wait: &Wait,
    sent: &mut SpanDelivery,
) -> Result<(), Failed> {
    let shown = url.shown();
    let cut = |taken: u64, why: &str| {
        Failed::target(format!("the collector at {shown} accepted {taken} spans, then {why}"))
    };
    let poster =
        Poster::new(url, PATH, POST_LIMIT).map_err(|error| Failed::target(error.to_string()))?;
    for (document, spans) in documents {
        let answer = tokio::select! {
            biased;
            over = wait.over_reason() => return Err(cut(sent.taken, over)),
            answer = poster.post(document) => answer,
        };
        let answer = answer.map_err(|failure| {
            let why = format!("failed: {}: {}", failure.class, failure.message);
            cut(sent.taken, &why).hint("the collector must accept OTLP over HTTP as JSON")
        })?;
        // One that does not want some may well want the others.
        let (rejected, why) = ExportResponse::parse_rejected(answer.as_bytes()).unwrap_or_default();
        if sent.rejected == 0 {
            sent.why = why;
        }
        sent.rejected += rejected.min(spans);
        sent.taken += spans - rejected.min(spans);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_may_want_some_and_not_others() {
        let rejected = |text: &str| ExportResponse::parse_rejected(text.as_bytes());
        for all in
            ["", "{}", "{\"partialSuccess\":{}}", "{\"partialSuccess\":{\"rejectedSpans\":0}}"]
        {
            assert_eq!(rejected(all), None, "{all}");
        }
        let text = "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}";
        assert_eq!(rejected(text), Some((3, "too old".to_owned())));
        let number = text.replace("\"3\"", "3");
        assert_eq!(rejected(&number), Some((3, "too old".to_owned())));
    }

    #[test]
    fn places_are_known_before_the_load() {
        let bad = |text: &str| Destination::new(text).unwrap_err().to_string();
        assert!(bad("/nowhere/at/all/t.jsonl").contains("cannot be written"));
        assert!(bad("/").contains("cannot be written"));
        assert!(bad("grpc://h:4317").contains("cannot be sent"));
        assert!(bad("http://").contains("not a target"));
        assert!(matches!(Destination::new("t.jsonl"), Ok(Destination::File(_))));
        let url = Destination::new("http://h:4318?key=secret").unwrap();
        assert_eq!(url.to_string(), "http://h:4318?key=[redacted]");
    }

    #[test]
    fn a_file_is_added_to_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, hard] = ["t.jsonl", "link", "hard"].map(|name| folder.path().join(name));
        let lines = |text: &str| vec![(text.as_bytes().to_vec(), 2)].into_iter();
        assert_eq!(add_to_file(&file, lines("one")).unwrap(), 2);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::fs::hard_link(&file, &hard).unwrap();
        assert_eq!(add_to_file(&link, lines("two")).unwrap(), 2);
        for name in [&file, &link, &hard] {
            assert_eq!(std::fs::read_to_string(name).unwrap(), "one\ntwo\n");
        }
        assert_eq!(add_to_file(Path::new("/dev/null"), lines("three")).unwrap(), 2);
        assert!(add_to_file(Path::new("/dev/full"), lines("four")).is_err());
        // Who writes in between stands behind what was there, and waits for its end.
        let (open, path) = (File::options().append(true).open(&file).unwrap(), file.clone());
        open.lock().unwrap();
        let other = std::thread::spawn(move || add_to_file(&path, lines("six")).unwrap());
        // Time to go wrong in; with the lock it does not matter how long.
        goodput_clock::pause(Nanos::from_millis(50));
        (&open).write_all(b"five\n").unwrap();
        drop(open);
        other.join().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\nfive\nsix\n");
    }

    #[test]
    fn a_collector_that_is_silent_is_not_waited_for_longer_than_the_report_can() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let documents = vec![(b"{}".to_vec(), 1); 3].into_iter();
        let wait = Wait { end: now() + Nanos::from_millis(100), patience: None };
        let sent = post_spans(&url, documents, &wait);
        assert_eq!((sent.taken, sent.rejected), (0, 0));
        let said = sent.cut.unwrap().to_string();
        let why = "accepted 0 spans, then it did not finish within one minute";
        assert!(said.contains(why), "{said}");
    }
}
