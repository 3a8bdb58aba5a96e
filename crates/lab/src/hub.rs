//! Files of the hub: from its cache on this machine, else downloaded if the network is there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_clock::now;
use goodput_model::{Feature, LeftOut, Nanos};
use goodput_tokens::hub::{
    HubCache, Listing, RepoKind, download_path, is_id, listing_path, looks_like_id,
};
use goodput_tokens::{BUILTIN, FILE_NAME, Tokenizer};
use goodput_wire::{DownloadError, download};

use crate::{Failed, Observer};

/// How a dataset of the hub is named: `hf:ORG/NAME[:FILE]`.
pub const PREFIX: &str = "hf:";

/// Where the hub is, unless `HF_ENDPOINT` says otherwise.
const HUB: &str = "https://huggingface.co";

/// Largest files that are fetched: a list, a tokenizer, and a dataset.
const MOST_LIST: u64 = 64 << 20;
const MOST_TOKENIZER: u64 = 256 << 20;
const MOST_DATA: u64 = 64 << 30;

/// How often a long download is heard of.
const WORD: Nanos = Nanos::from_millis(5_000);

/// Ends of names that a dataset's file can have.
const DATA: [&str; 5] = ["json", "jsonl", "csv", "txt", "parquet"];

/// The hub, as the environment describes it.
pub struct Hub {
    cache: Option<HubCache>,
    observer: Arc<dyn Observer>,
}

impl Hub {
    /// As the environment describes it.
    pub fn new(observer: Arc<dyn Observer>) -> Self {
        Self { cache: HubCache::from_vars(read_variable), observer }
    }

    /// The tokenizer that a user names.
    pub fn tokenizer(&self, name: &str) -> Result<Tokenizer, Failed> {
        if let Some(tokenizer) = Tokenizer::builtin(name) {
            return Ok(tokenizer);
        }
        if BUILTIN.contains(&name) {
            let left_out = LeftOut(Feature::Vocabularies);
            return Err(Failed::usage(format!("{name}: {left_out}")).hint(LeftOut::HINT));
        }
        let is_of_hub = !Path::new(name).exists() && looks_like_id(name);
        let path = if is_of_hub {
            self.find_file(RepoKind::Model, name, FILE_NAME).map_err(|failed| {
                failed.or_hint(format!(
                    "name a tokenizer.json, a folder with one, or one of {}",
                    BUILTIN.join(", ")
                ))
            })?
        } else {
            PathBuf::from(name)
        };
        Tokenizer::from_file(&path).map_err(|error| {
            let failed = Failed::usage(error.to_string());
            if is_of_hub {
                let cached = path.display();
                return failed.hint(format!("remove `{cached}` to download it again"));
            }
            failed.hint(error.hint())
        })
    }

    /// The file of a dataset; `name` itself where it is not of the hub.
    pub fn dataset(&self, name: &str) -> Result<PathBuf, Failed> {
        let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(PathBuf::from(name)) };
        let (id, file) = rest.split_once(':').map_or((rest, None), |(id, file)| (id, Some(file)));
        if !is_id(id) {
            return Err(Failed::usage(format!("`{id}` is not a Hugging Face model or dataset id"))
                .hint("write hf:ORG/NAME or hf:ORG/NAME:FILE"));
        }
        if let Some(file) = file {
            return self.find_file(RepoKind::Dataset, id, file);
        }
        let cached = self.cache.as_ref().map(|cache| cache.list_files(RepoKind::Dataset, id));
        let cached: Vec<PathBuf> =
            cached.unwrap_or_default().into_iter().filter(|path| is_data_file(path)).collect();
        match cached.as_slice() {
            [only] => {
                self.note(&format!("using {} from the cache", only.display()));
                Ok(only.clone())
            }
            [] => {
                let listing = self.list_files(RepoKind::Dataset, id)?;
                let files: Vec<&str> = listing.files.iter().map(String::as_str).collect();
                let files: Vec<&str> =
                    files.into_iter().filter(|file| is_data_file(Path::new(file))).collect();
                let file = only_file(id, &files)?;
                self.download(RepoKind::Dataset, id, &listing.commit, &file)
            }
            several => {
                let name = |path: &PathBuf| path_in_snapshot(path)?.to_str().map(str::to_owned);
                let names: Vec<String> = several.iter().filter_map(name).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                only_file(id, &names).map(PathBuf::from)
            }
        }
    }

    /// One file: from the cache, else from the network.
    fn find_file(&self, kind: RepoKind, id: &str, file: &str) -> Result<PathBuf, Failed> {
        if let Some(path) = self.cache.as_ref().and_then(|cache| cache.find(kind, id, file)) {
            return Ok(path);
        }
        let listing = self.list_files(kind, id)?;
        if !listing.files.iter().any(|there| there == file) {
            return Err(Failed::usage(format!(
                "`{id}` has no file named `{file}` on the Hugging Face hub"
            )));
        }
        self.download(kind, id, &listing.commit, file)
    }

    fn list_files(&self, kind: RepoKind, id: &str) -> Result<Listing, Failed> {
        let missing = self.missing_text(id);
        if read_variable("HF_HUB_OFFLINE").is_some_and(|value| !matches!(value.as_str(), "0" | ""))
        {
            return Err(Failed::usage(format!(
                "{missing}, and HF_HUB_OFFLINE forbids downloading it"
            )));
        }
        let path = listing_path(kind, id).ok_or_else(|| {
            Failed::usage(format!("`{id}` is not a Hugging Face model or dataset id"))
        })?;
        self.note(&format!("{missing}: downloading it from the Hugging Face hub"));
        let mut answer = Vec::new();
        http_get(&path, &mut answer, MOST_LIST).map_err(|error| {
            Failed::usage(format!("{missing}, and downloading it failed: {error}")).hint(
                "use a local file (a tokenizer.json, a dataset), or set HF_TOKEN for private repositories",
            )
        })?;
        Listing::parse(&answer).map_err(|error| Failed::usage(error.to_string()))
    }

    fn missing_text(&self, id: &str) -> String {
        match &self.cache {
            Some(cache) => format!("`{id}` is not in the hub's cache ({})", cache.root().display()),
            None => format!("`{id}` is not a file, and no Hugging Face cache exists"),
        }
    }

    /// Downloads a file into the cache, whole or not at all.
    fn download(
        &self,
        kind: RepoKind,
        id: &str,
        commit: &str,
        file: &str,
    ) -> Result<PathBuf, Failed> {
        let cache = self.cache.as_ref().ok_or_else(|| {
            Failed::usage("no folder for downloads is known").hint("set HF_HOME or HOME")
        })?;
        let (Some(place), Some(path)) =
            (cache.file_path(kind, id, commit, file), download_path(kind, id, file))
        else {
            return Err(Failed::usage(format!(
                "`{file}` is not a file name of the Hugging Face hub"
            )));
        };
        let write = |error: io::Error| {
            Failed::usage(format!("cannot write `{}`: {error}", place.display()))
        };
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(write)?;
        }
        let mut part = place.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut out = DownloadFile {
            out: File::create(&part).map_err(write)?,
            bytes: 0,
            next: now() + WORD,
            observer: Arc::clone(&self.observer),
        };
        let most = match kind {
            RepoKind::Model => MOST_TOKENIZER,
            RepoKind::Dataset => MOST_DATA,
        };
        let outcome = http_get(&path, &mut out, most);
        if let Err(error) = outcome {
            let _ = fs::remove_file(&part);
            return Err(Failed::usage(format!("cannot download `{file}` of `{id}`: {error}")));
        }
        fs::rename(&part, &place).map_err(write)?;
        cache.write_ref(kind, id, commit).map_err(write)?;
        self.note(&format!("downloaded {} ({} bytes)", place.display(), out.bytes));
        Ok(place)
    }

    fn note(&self, line: &str) {
        self.observer.note(line.to_owned());
    }
}

fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The name of a cached file below its snapshot.
fn path_in_snapshot(path: &Path) -> Option<&Path> {
    let depth = path.iter().position(|part| part == "snapshots")?;
    let root: PathBuf = path.iter().take(depth + 2).collect();
    path.strip_prefix(root).ok()
}

fn is_data_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| DATA.contains(&extension))
}

/// The only file, or an error that lists them.
fn only_file(id: &str, files: &[&str]) -> Result<String, Failed> {
    match files {
        [only] => Ok((*only).to_owned()),
        [] => Err(Failed::usage(format!("`{id}` has no file in a supported format"))
            .hint(format!("supported file names end in {}", DATA.join(", ")))),
        several => Err(Failed::usage(format!("`{id}` has {} files", several.len())).hint(format!(
            "name one: hf:{id}:FILE, such as {}",
            several.iter().take(5).copied().collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn http_get(path: &str, to: &mut dyn Write, limit: u64) -> Result<u64, String> {
    let origin = read_variable("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned());
    let url = format!("{}{path}", origin.trim_end_matches('/'));
    let token = read_variable("HF_TOKEN");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    tokio::task::LocalSet::new()
        .block_on(&runtime, download(&url, token.as_deref(), to, limit))
        .map_err(|error: DownloadError| error.to_string())
}

/// Says every few seconds how much has come.
struct DownloadFile {
    out: File,
    bytes: u64,
    next: Nanos,
    observer: Arc<dyn Observer>,
}

impl Write for DownloadFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        if now() >= self.next {
            self.next = now() + WORD;
            self.observer.note(format!("{} MB", self.bytes / 1_000_000));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
