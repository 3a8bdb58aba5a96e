//! Small real results, made once by the binary, and copied for each attack.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::super::SHORT;
use super::super::peer::Engine;
use crate::case::Skip;
use crate::program::{Binary, ScratchFolder};

/// One folder of each kind, by its name.
pub(super) struct Seeds(ScratchFolder);

/// What is typed for each; `URL` is the server.
const MADE: [(&str, &[&str]); 7] = [
    ("run", &["run", "URL", "--rate", "40", "--duration", "1s", "--slo", "p95 ttft < 900ms"]),
    ("other", &["run", "URL", "--rate", "40", "--duration", "1s", "--seed", "8"]),
    ("series", &["run", "URL", "--rate", "40", "--duration", "500ms", "--repeat", "2"]),
    ("shard", &["run", "URL", "--rate", "40", "--duration", "1s", "--shard", "0/2"]),
    ("shard-1", &["run", "URL", "--rate", "40", "--duration", "1s", "--shard", "1/2"]),
    ("sweep", &["sweep", "URL", "--rates", "20,40", "--no-search", "--duration", "500ms"]),
    ("compare", &["compare", "URL", "URL", "--rate", "20", "--blocks", "3"]),
];

/// Flags that only some verbs have.
const MORE: [(&str, &[&str]); 3] = [
    ("run", &["--out"]),
    ("sweep", &["--warmup", "0s", "--settle", "0s", "--quick", "--out"]),
    ("compare", &["--duration", "500ms", "--warmup", "0s", "--settle", "0s", "--out"]),
];

impl Seeds {
    /// Those in the cell, made when they are first asked for.
    pub(super) fn cached<'a>(cell: &'a OnceCell<Self>, goodput: &Binary) -> Result<&'a Self, Skip> {
        if cell.get().is_none() {
            // No other thread fills it at the same time.
            let _ = cell.set(Self::make(goodput)?);
        }
        cell.get().ok_or_else(|| Skip::Broken("no results to damage".to_owned()))
    }

    fn make(goodput: &Binary) -> Result<Self, Skip> {
        let scratch = ScratchFolder::new()?;
        let engine = Engine::start(goodput, scratch.path(), &[])?;
        for (name, words) in MADE {
            let url = engine.url();
            let words = words.iter().map(|&word| if word == "URL" { url.as_str() } else { word });
            let words: Vec<&str> = words.collect();
            let more = MORE.iter().find(|(verb, _)| *verb == words[0]).map_or(&[][..], |m| m.1);
            let all = [&words[..], &SHORT, more, &[name]].concat();
            let ended = goodput.run(scratch.path(), &all, 30.0)?;
            if !matches!(ended.code, Some(0 | 4 | 5)) {
                return Err(Skip::Broken(format!("{name}: {:?} {}", ended.code, ended.stderr)));
            }
        }
        make_shadow(goodput, &scratch, &engine.url())?;
        Ok(Self(scratch))
    }

    /// A copy of one of them.
    pub(super) fn copy_seed(&self, name: &str, to: &Path) -> Result<(), Skip> {
        Ok(copy_tree(&self.0.join(name), to)?)
    }
}

fn make_shadow(goodput: &Binary, scratch: &ScratchFolder, url: &str) -> Result<(), Skip> {
    let words = ["shadow", "--primary", url, "--candidate", url, "--share", "100%"];
    let flags = ["--by", "request", "--block", "1s", "--listen", "127.0.0.1:0", "--out", "shadow"];
    let mut proxy = goodput.start(scratch.path(), "shadow", &[&words[..], &flags].concat())?;
    let address = proxy.word_after("http://", 20.0)?;
    let url = format!("http://{}", address.trim_end_matches('/'));
    let load = ["run", &url, "--rate", "40", "--duration", "1s", "--out", "load"];
    goodput.run(scratch.path(), &[&load[..], &SHORT].concat(), 30.0)?;
    let ended = proxy.stop(Signal::INT, 20.0)?;
    if ended.code.is_none() {
        return Err(Skip::Broken(format!("shadow: {}", ended.stderr)));
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &place)?;
        } else {
            fs::copy(&path, &place)?;
        }
    }
    Ok(())
}
