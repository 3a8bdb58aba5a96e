//! Frozen workloads: sessions written down so that their bodies are the same bytes again.
//!
//! A file is a header and one session on each line. The header holds the hash of all that follows,
//! so a file that was changed is found out.

mod mirror;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use goodput_model::{Nanos, Session, safe_excerpt};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{DatasetError, EntryError, FilePosition};
use crate::input::{BoundedLines, LONGEST, open_text, to_hex, too_long_error};
use crate::object::json_fault;
use mirror::{SessionMirror, SharedTexts};

/// The format's name and version.
const SCHEMA: &str = "goodput.workload/1";

/// What a frozen workload says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenHeader {
    /// Format name and version; set by the writer.
    pub schema: String,
    /// The workload's name.
    pub name: String,
    /// The seed that it was made with.
    pub seed: u64,
    /// Sessions in the file; counted by the writer.
    pub sessions: u64,
    /// Requests in all of them; counted by the writer.
    pub requests: u64,
    /// SHA-256 of all lines behind the header; computed by the writer.
    pub sha256: String,
    /// What else is worth knowing: how it was made.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

impl FrozenHeader {
    /// The beginning of a header: the writer fills in the rest.
    pub fn new(name: &str, seed: u64) -> Self {
        Self { name: name.to_owned(), seed, ..Self::default() }
    }
}

/// Writes a frozen workload. The file has its name only once it is whole.
pub struct FrozenWriter {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
    header: FrozenHeader,
    /// Bytes set aside for the header, which is known last.
    room: usize,
    hash: Sha256,
}

impl FrozenWriter {
    /// Begins a file.
    pub fn create(path: &Path, header: FrozenHeader) -> Result<Self, DatasetError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let widest = FrozenHeader {
            schema: SCHEMA.to_owned(),
            sessions: u64::MAX,
            requests: u64::MAX,
            sha256: "0".repeat(64),
            ..header.clone()
        };
        let room = to_json(path, &widest)?.len();
        // Prompts may be private: only the user may read the file.
        let file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial);
        let file = file.map_err(|error| DatasetError::io(path, "written", &error))?;
        let (out, hash) = (Some(BufWriter::new(file)), Sha256::new());
        let header = FrozenHeader { schema: SCHEMA.to_owned(), sessions: 0, requests: 0, ..header };
        let mut writer = Self { path: path.to_owned(), partial, out, header, room, hash };
        let blank = format!("{:room$}\n", "");
        writer.write_bytes(blank.as_bytes())?;
        Ok(writer)
    }

    /// Writes a session, and when it arrives where the workload says so.
    pub fn write(&mut self, at: Option<Nanos>, session: &Session) -> Result<(), DatasetError> {
        let mut line = to_json(&self.path, &SessionMirror::new(at, session))?;
        line.push('\n');
        if line.len() as u64 > LONGEST {
            return Err(DatasetError::file(&self.path, too_long_error("a session")));
        }
        self.hash.update(line.as_bytes());
        self.header.sessions += 1;
        self.header.requests += session.request_count();
        self.write_bytes(line.as_bytes())
    }

    /// Writes the header and gives the file its name.
    pub fn finish(mut self) -> Result<FrozenHeader, DatasetError> {
        self.header.sha256 = to_hex(&std::mem::take(&mut self.hash).finalize());
        let room = self.room;
        let header = format!("{:room$}\n", to_json(&self.path, &self.header)?);
        let io = |error: std::io::Error| DatasetError::io(&self.path, "written", &error);
        if let Some(mut out) = self.out.take() {
            out.seek(SeekFrom::Start(0)).map_err(io)?;
            out.write_all(header.as_bytes()).map_err(io)?;
            let file = out.into_inner().map_err(|error| io(error.into_error()))?;
            file.sync_all().map_err(io)?;
        }
        std::fs::rename(&self.partial, &self.path).map_err(io)?;
        Ok(std::mem::take(&mut self.header))
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), DatasetError> {
        let Some(out) = &mut self.out else { return Ok(()) };
        out.write_all(bytes).map_err(|error| DatasetError::io(&self.path, "written", &error))
    }
}

impl Drop for FrozenWriter {
    fn drop(&mut self) {
        // An abandoned write leaves no file behind; a failure to remove it changes nothing.
        if self.out.take().is_some() {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

fn to_json(path: &Path, value: &impl Serialize) -> Result<String, DatasetError> {
    serde_json::to_string(value)
        .map_err(|error| DatasetError::file(path, format!("cannot be written: {error}")))
}

/// The sessions of a frozen workload, each with its instant where it has one.
pub type Sessions = Vec<(Option<Nanos>, Session)>;

/// Reads the header alone.
pub fn read_header(path: &Path) -> Result<FrozenHeader, DatasetError> {
    match BoundedLines::new(open_text(path)?)
        .next()
        .map_err(|error| DatasetError::io(path, "read", &error))?
    {
        Some((place, piece)) => {
            piece.and_then(parse_header).map_err(|fault| DatasetError::new(path, place, fault))
        }
        None => Err(DatasetError::file(path, "is empty")),
    }
}

/// Reads a frozen workload, and checks that it is as it was written.
pub fn read_frozen(path: &Path) -> Result<(FrozenHeader, Sessions), DatasetError> {
    let mut lines = BoundedLines::new(open_text(path)?);
    let mut next = |take: &mut dyn FnMut(&str) -> Result<(), EntryError>| {
        let line = lines.next().map_err(|error| DatasetError::io(path, "read", &error))?;
        let Some((place, piece)) = line else { return Ok(false) };
        piece.and_then(&mut *take).map_err(|fault| DatasetError::new(path, place, fault))?;
        Ok(true)
    };
    let mut header = FrozenHeader::default();
    next(&mut |text| {
        header = parse_header(text)?;
        Ok(())
    })?;
    let (mut hash, mut pool, mut sessions) = (Sha256::new(), SharedTexts::default(), Vec::new());
    let mut requests = 0u64;
    while next(&mut |text| {
        hash.update(text.as_bytes());
        hash.update(b"\n");
        let line: SessionMirror<'_> =
            serde_json::from_str(text).map_err(|error| line_fault(text, &error))?;
        let (at, session) = line.into_session(&mut pool)?;
        requests += session.request_count();
        sessions.push((at, session));
        Ok(())
    })? {}
    let found = to_hex(&hash.finalize());
    if found != header.sha256 {
        let what = format!(
            "was changed after it was written: its lines hash to {found}, but its header says {}",
            safe_excerpt(&header.sha256)
        );
        return Err(DatasetError::file(path, EntryError::with_hint(what, CHANGED)));
    }
    if (header.sessions, header.requests) != (sessions.len() as u64, requests) {
        let what = format!(
            "holds {} sessions of {requests} requests, but its header says {} of {}",
            sessions.len(),
            header.sessions,
            header.requests
        );
        return Err(DatasetError::new(
            path,
            FilePosition::Line(1),
            EntryError::with_hint(what, CHANGED),
        ));
    }
    Ok((header, sessions))
}

const CHANGED: &str = "make it again with `goodput workload make`, or take the original";

fn line_fault(text: &str, error: &serde_json::Error) -> EntryError {
    if error.is_data() {
        return EntryError::with_hint(
            format!("no session: {}", safe_excerpt(&error.to_string())),
            CHANGED,
        );
    }
    json_fault(text, error)
}

fn parse_header(text: &str) -> Result<FrozenHeader, EntryError> {
    const HINT: &str = "frozen workloads are written by `goodput workload make`";
    #[derive(Deserialize)]
    struct NamedSchema {
        schema: String,
    }
    let schema = serde_json::from_str::<NamedSchema>(text).map_err(|_| {
        EntryError::with_hint(format!("no field `schema`, expected `{SCHEMA}`"), HINT)
    })?;
    if schema.schema != SCHEMA {
        return Err(EntryError::with_hint(
            EntryError::field("schema", &schema.schema, SCHEMA).what,
            HINT,
        ));
    }
    serde_json::from_str(text).map_err(|error| {
        EntryError::with_hint(format!("no header: {}", safe_excerpt(&error.to_string())), HINT)
    })
}
