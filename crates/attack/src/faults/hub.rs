//! A hub (`HF_ENDPOINT`) that misbehaves while a tokenizer or a dataset is fetched from it.

use std::path::{Path, PathBuf};

use goodput_clock::pause;
use goodput_model::Nanos;
use rustix::process::Signal;

use super::new_case;
use super::peer::{HostConnection, Script, ScriptedServer};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, RunningProcess, ScratchFolder, seconds_to_nanos};

/// The token for the hub. It goes to the hub, and nowhere else.
const TOKEN: &str = "hf_ATTACKabcdefghijklmnopqrstuvwxyz";

/// The largest tokenizer there may be, and what may be on its way beyond that.
const MOST_TOKENIZER: u64 = (256 << 20) + (16 << 20);

/// What is asked for.
const TOKENIZER: [&str; 2] = ["--tokenizer", "org/name"];
const DATASET: [&str; 2] = ["--dataset", "hf:org/name"];

/// A name, what is asked for, and what the hub does with a request of this path.
const BEHAVIORS: [(&str, [&str; 2], Script); 14] = [
    ("list without end", TOKENIZER, |_, line| send_endless(line, "[\"x\",")),
    ("list is a web page", TOKENIZER, |_, line| {
        line.send_answer("text/html", "<html>\u{1b}[2J</html>")
    }),
    ("list is deep", TOKENIZER, |_, line| {
        line.send_answer("application/json", &"[".repeat(1 << 20))
    }),
    ("list of the wrong length", TOKENIZER, |_, line| send_short_body(line, LIST)),
    ("list is compressed", TOKENIZER, |_, line| {
        line.send(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08",
        )
    }),
    ("status 500 with control characters", TOKENIZER, |_, line| {
        line.send(b"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 7\r\n\r\n\x1b[2Jxyz")
    }),
    ("redirect in a circle", TOKENIZER, |_, line| send_redirect(line, "/again")),
    ("redirect to a file", TOKENIZER, |_, line| send_redirect(line, "file:///etc/passwd")),
    ("tokenizer is a web page", TOKENIZER, |head, line| {
        serve_listing(head, line, |line| line.send_answer("text/html", "<html>"))
    }),
    ("tokenizer is deep", TOKENIZER, |head, line| {
        serve_listing(head, line, |line| {
            line.send_answer("application/json", &"{\"a\":".repeat(1 << 20))
        })
    }),
    ("tokenizer of the wrong length", TOKENIZER, |head, line| {
        serve_listing(head, line, |line| send_short_body(line, "{}"))
    }),
    ("commit leads elsewhere", TOKENIZER, |_, line| {
        line.send_answer(
            "application/json",
            r#"{"sha":"../../../../evil","siblings":[{"rfilename":"tokenizer.json"}]}"#,
        )
    }),
    ("file leads elsewhere", DATASET, |_, line| {
        line.send_answer(
            "application/json",
            r#"{"sha":"abc","siblings":[{"rfilename":"../../../../evil.jsonl"}]}"#,
        )
    }),
    ("file at the root", DATASET, |_, line| {
        line.send_answer(
            "application/json",
            r#"{"sha":"abc","siblings":[{"rfilename":"/tmp/goodput-evil.jsonl"}]}"#,
        )
    }),
];

const LIST: &str = r#"{"sha":"abc","siblings":[{"rfilename":"tokenizer.json"}]}"#;

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, asked, script) in BEHAVIORS {
        // A list may have 64 MiB.
        let expected = CaseBounds::exit(&[2]).within(8.0, 400.0);
        all.push(new_case("hub", name, expected, move |goodput| {
            expect_refusal(goodput, asked, script)
        }));
    }
    let expected = CaseBounds::exit(&[2]).within(20.0, 160.0);
    all.push(new_case("hub", "tokenizer without end", expected, endless_tokenizer));
    let expected = CaseBounds::exit(&[2]).within(8.0, 160.0);
    all.push(new_case("hub", "redirect elsewhere", expected, token_stays_on_redirect));
    for (name, script) in SLOW {
        let expected = CaseBounds::exit(&[130]).within(3.0, 160.0);
        all.push(new_case("hub", name, expected, move |goodput| {
            interrupt_download(goodput, script)
        }));
    }
    all
}

/// Hubs that keep a user waiting; Ctrl-C must end it.
const SLOW: [(&str, Script); 2] =
    [("silent, then Ctrl-C", hang_after_request), ("drips, then Ctrl-C", drip_answer)];

fn start(
    goodput: &Binary,
    scratch: &ScratchFolder,
    url: &str,
    asked: [&str; 2],
) -> Result<RunningProcess, Skip> {
    let words = ["run", super::MOCK, "--rate", "5", "--num-requests", "2", "--dry-run"];
    let mut command = goodput.command(scratch.path(), &[&words[..], &asked].concat());
    command.env("HF_ENDPOINT", url).env("HF_TOKEN", TOKEN).env("HF_HOME", scratch.join("hf"));
    command.env_remove("HF_HUB_OFFLINE").env_remove("HF_HUB_CACHE");
    Ok(RunningProcess::spawn(command, scratch.path(), "goodput")?)
}

/// An error with a plain word, no token on any stream, and nothing in the cache.
fn expect_refusal(goodput: &Binary, asked: [&str; 2], script: Script) -> Result<Observed, Skip> {
    let (scratch, host) = (ScratchFolder::new()?, ScriptedServer::start(script, "")?);
    let ended = start(goodput, &scratch, &host.url(), asked)?.wait(20.0)?;
    let mut observed = Observed::from_process(&ended);
    observed.check(!host.request_heads().is_empty(), || "the hub was not asked".to_owned());
    observed.check(ended.stderr.contains("error:"), || format!("no error: {}", ended.stderr));
    observed.check(!ended.stderr.contains(TOKEN), || "the token is on stderr".to_owned());
    let left: Vec<PathBuf> = list_files(scratch.path()).into_iter().filter(|f| is_odd(f)).collect();
    observed.check(left.is_empty(), || format!("left: {left:?}"));
    let outside = Path::new("/tmp/goodput-evil.jsonl").exists();
    observed.check(!outside, || "a file outside was written".to_owned());
    Ok(observed)
}

/// Parts of downloads, and whatever a name led to.
fn is_odd(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "part") || path.display().to_string().contains("evil")
}

/// What is larger than any tokenizer may be need not be fetched to its end.
fn endless_tokenizer(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let host = ScriptedServer::start(
        |head, line| serve_listing(head, line, |line| send_endless(line, "{\"a\":1},")),
        "",
    )?;
    let ended = start(goodput, &scratch, &host.url(), TOKENIZER)?.wait(30.0)?;
    let mut observed = Observed::from_process(&ended);
    let sent = host.sent_bytes();
    observed.check(sent < MOST_TOKENIZER, || format!("{} MiB were fetched", sent >> 20));
    let left: Vec<PathBuf> = list_files(scratch.path()).into_iter().filter(|f| is_odd(f)).collect();
    observed.check(left.is_empty(), || format!("left: {left:?}"));
    Ok(observed)
}

/// A redirect to another origin is followed without the token.
fn token_stays_on_redirect(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let other = ScriptedServer::start(|_, line| line.send_answer("application/json", LIST), "")?;
    let there = format!("{}/elsewhere", other.url());
    let hub =
        ScriptedServer::start(|_, line| send_redirect(line, &line.elsewhere.clone()), &there)?;
    let ended = start(goodput, &scratch, &hub.url(), TOKENIZER)?.wait(20.0)?;
    let mut observed = Observed::from_process(&ended);
    let has = |host: &ScriptedServer| host.request_heads().iter().any(|head| head.contains(TOKEN));
    observed.check(has(&hub), || "the hub did not get its token".to_owned());
    observed.check(!has(&other), || "the token went to another host".to_owned());
    observed
        .check(!other.request_heads().is_empty(), || "the redirect was not followed".to_owned());
    Ok(observed)
}

fn interrupt_download(goodput: &Binary, script: Script) -> Result<Observed, Skip> {
    let (scratch, host) = (ScratchFolder::new()?, ScriptedServer::start(script, "")?);
    let running = start(goodput, &scratch, &host.url(), TOKENIZER)?;
    for _ in 0..300 {
        if !host.request_heads().is_empty() {
            break;
        }
        pause(seconds_to_nanos(0.01));
    }
    pause(seconds_to_nanos(0.5));
    // Ended by the signal itself is as good as the code that a shell shows for it.
    let ended = running.stop(Signal::INT, 5.0)?;
    let mut observed = Observed::from_process(&ended);
    if ended.code.is_none() && ended.seconds < 3.0 {
        observed.exit = Some(130);
    }
    Ok(observed)
}

/// Every file below a folder.
fn list_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() { list_files(&path) } else { vec![path] }
        })
        .collect()
}

/// The list of files, and then something else in the place of the file.
fn serve_listing(
    head: &str,
    line: &mut HostConnection,
    file: fn(&mut HostConnection) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if head.starts_with("GET /api/") {
        line.send_answer("application/json", LIST)
    } else {
        file(line)
    }
}

fn send_endless(line: &mut HostConnection, piece: &str) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")?;
    line.flood(piece, 600)
}

/// Ends before the length that it states.
fn send_short_body(line: &mut HostConnection, body: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len() + 9);
    line.send(head.as_bytes())
}

fn send_redirect(line: &mut HostConnection, to: &str) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n");
    line.send(head.as_bytes())
}

/// The head of an answer, and no more.
fn hang_after_request(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\n")?;
    line.hang();
    Ok(())
}

fn drip_answer(_: &str, line: &mut HostConnection) -> std::io::Result<()> {
    line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")?;
    loop {
        line.send(b" ")?;
        pause(Nanos::from_millis(200));
    }
}
