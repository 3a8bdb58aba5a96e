//! [`Stand`]: a process of goodput that listens, and what must hold of it at its end.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use goodput_clock::pause;
use goodput_model::Nanos;
use rustix::process::Signal;
use serde_json::Value;

use super::peer::{OriginServer, find_bytes, send_and_receive};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, KEY, RunningProcess, ScratchFolder, files_with_key};

pub(super) const CHAT: &str = "/v1/chat/completions";

/// A user next to an attack waits no longer than this.
pub(super) const SOON_S: f64 = 2.0;

/// Words of prompts and answers. None of them may be written.
const WORDS: [&str; 2] = ["Quetzalcoatl", "Xylophonist"];

pub(super) const BODY: &str =
    r#"{"model":"m","messages":[{"role":"user","content":"Quetzalcoatl"}],"max_tokens":4}"#;

/// What a good upstream says.
pub(super) const GOOD: &str = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Xylophonist"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;

/// A server's good answer.
pub(super) fn good_answer() -> Vec<u8> {
    let length = GOOD.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
    format!("{head}{length}\r\n\r\n{GOOD}").into_bytes()
}

/// A server that answers well, whatever it is asked.
pub(super) fn good_origin() -> std::io::Result<OriginServer> {
    OriginServer::start(|visitor| {
        while visitor.read_request().is_some() && visitor.send_bytes(&good_answer()) {}
    })
}

/// A user's request.
pub(super) fn post_request(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A process under attack.
pub(super) struct Stand {
    pub(super) scratch: ScratchFolder,
    pub(super) process: RunningProcess,
    pub(super) address: SocketAddr,
}

impl Stand {
    /// Starts it and waits until it says after `marker` where it listens.
    pub(super) fn start(
        goodput: &Binary,
        scratch: ScratchFolder,
        args: &[&str],
        marker: &str,
    ) -> Result<Self, Skip> {
        let mut process = goodput.start(scratch.path(), "goodput", args)?;
        let address = parse_address(&process.word_after(marker, 10.0)?)?;
        Ok(Self { scratch, process, address })
    }

    pub(super) fn record(goodput: &Binary, upstream: &str, more: &[&str]) -> Result<Self, Skip> {
        Self::record_draining(goodput, upstream, "500ms", more)
    }

    pub(super) fn record_draining(
        goodput: &Binary,
        upstream: &str,
        drain: &str,
        more: &[&str],
    ) -> Result<Self, Skip> {
        let mut args = vec!["record", "--upstream", upstream, "--listen", "127.0.0.1:0"];
        args.extend(["--output", "trace.jsonl", "--json", "--drain", drain]);
        args.extend(more);
        Self::start(goodput, ScratchFolder::new()?, &args, "listening on http://")
    }

    /// Users next to an attack: each gets the good answer, and soon.
    pub(super) fn check_bystanders(&self, count: usize) -> Vec<String> {
        (0..count).filter_map(|_| self.check_bystander(SOON_S)).collect()
    }

    pub(super) fn check_bystander(&self, limit_s: f64) -> Option<String> {
        let said = send_and_receive(self.address, &post_request(CHAT, BODY), limit_s);
        let is_good = said.status() == Some(200) && said.body() == GOOD.as_bytes();
        (!is_good)
            .then(|| format!("a user next to it, after {:.2} s: {}", said.seconds, said.text()))
    }

    /// Ends it with a signal; what was observed, and what it printed.
    pub(super) fn end(
        self,
        signal: Signal,
    ) -> Result<(Observed, EndedProcess, ScratchFolder), Skip> {
        let ended = self.process.stop(signal, 15.0)?;
        let mut observed = Observed::from_process(&ended);
        for path in files_with_key(self.scratch.path()) {
            observed.faults.push(format!("the key is in {}", path.display()));
        }
        let words = files_with_words(self.scratch.path(), &WORDS);
        observed.faults.extend(words);
        Ok((observed, ended, self.scratch))
    }

    /// Ends a recording, and looks into its trace. `asked`: requests that must be in it.
    pub(super) fn end_recording(
        self,
        signal: Signal,
        asked: Option<u64>,
    ) -> Result<Observed, Skip> {
        let (mut observed, ended, scratch) = self.end(signal)?;
        let trace = fs::read_to_string(scratch.join("trace.jsonl"))?;
        observed.faults.extend(trace_faults(&trace, ended.summary(), asked));
        Ok(observed)
    }
}

/// An address at the beginning of a URL's rest.
pub(super) fn parse_address(word: &str) -> Result<SocketAddr, Skip> {
    let host = word.split('/').next().unwrap_or_default();
    host.parse().map_err(|_| Skip::Broken(format!("no address: {word}")))
}

/// Whole lines, as many as were promised.
fn trace_faults(trace: &str, summary: Option<Value>, asked: Option<u64>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |holds: bool, fault: String| {
        if !holds {
            faults.push(fault);
        }
    };
    let Some(summary) = summary else { return vec!["no summary".to_owned()] };
    let lines: Vec<Option<Value>> =
        trace.lines().map(|line| serde_json::from_str(line).ok()).collect();
    check(trace.ends_with('\n'), "the last line of the trace is not whole".to_owned());
    check(lines.iter().all(Option::is_some), format!("a line is not valid JSON: {trace}"));
    let is_control = |c: char| c.is_control() && c != '\n';
    check(!trace.contains(is_control), "a control character in the trace".to_owned());
    let number = |name: &str| summary[name].as_u64().unwrap_or(u64::MAX);
    let lost: u64 = summary["lost"].as_object().map_or(u64::MAX, |lost| {
        lost.values().map(|count| count.as_u64().unwrap_or_default()).sum()
    });
    let rows = lines.len().saturating_sub(1) as u64;
    check(rows == number("rows"), format!("{rows} lines, but {summary}"));
    let all = rows.saturating_add(lost);
    check(all == number("requests"), format!("{rows} rows do not add up: {summary}"));
    check(
        asked.is_none_or(|asked| asked == number("requests")),
        format!("{asked:?} requests were made, but {summary}"),
    );
    faults
}

/// Every file below `folder` that holds one of these words.
pub(super) fn files_with_words(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found.extend(files_with_words(&path, words));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            let held = words.iter().filter(|word| find_bytes(&bytes, word.as_bytes()).is_some());
            found.extend(held.map(|word| format!("`{word}` is in {}", path.display())));
        }
    }
    found
}

/// A case of a proxy or a listener.
pub(super) fn new_case(
    area: &'static str,
    name: impl Into<String>,
    expected: CaseBounds,
    attack: impl Fn(&Binary) -> Result<Observed, Skip> + 'static,
) -> Case {
    Case { area, name: name.into(), expected, attack: Box::new(attack) }
}

pub(super) fn sleep_ms(millis: u64) {
    pause(Nanos::from_millis(millis));
}
