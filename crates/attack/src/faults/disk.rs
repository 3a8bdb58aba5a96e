//! Disks that are full, cannot be written to, or vanish with the folder on them.

use std::fs;
use std::path::Path;

use goodput_clock::pause;
use rustix::process::Signal;
use serde_json::Value;

use super::peer::Engine;
use super::{
    MEASURED, MOCK, SHORT, Uses, check_tool, new_case, number_at, read_summary, start_with_wrapper,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, RunningProcess, ScratchFolder, seconds_to_nanos};

pub(super) fn cases() -> Vec<Case> {
    let measured = CaseBounds::exit(&MEASURED).within(8.0, 160.0);
    let refused = CaseBounds::exit(&[2]).within(6.0, 160.0);
    let lost = CaseBounds::exit(&[5]).within(8.0, 160.0);
    vec![
        new_case("disk", "full under a run", measured.clone(), run_on_full_disk),
        new_case("disk", "full before a run", refused.clone(), |goodput| {
            let words = ["run", MOCK, "--rate", "20", "--duration", "1s", "--out", "small/run"];
            refuse_writes(goodput, "size=4k", &[&words[..], &SHORT].concat())
        }),
        new_case("disk", "full under record", lost, record_on_full_disk),
        new_case("disk", "full under merge", refused.clone(), merge_on_full_disk),
        new_case("disk", "full under report -o", refused.clone(), |goodput| {
            refuse_writes(
                goodput,
                "size=4k",
                &["report", "run", "--format", "html", "-o", "small/x.html"],
            )
        }),
        new_case("disk", "read-only under a run", refused.clone(), |goodput| {
            let words = ["run", MOCK, "--rate", "20", "--duration", "1s", "--out", "small/run"];
            refuse_writes(goodput, "ro", &[&words[..], &SHORT].concat())
        }),
        new_case("disk", "read-only under report -o", refused, |goodput| {
            refuse_writes(
                goodput,
                "ro",
                &["report", "run", "--format", "parquet", "-o", "small/tables"],
            )
        }),
        new_case(
            "disk",
            "read-only folder is read",
            CaseBounds::exit(&[0, 4, 5]),
            run_in_read_only_folder,
        ),
        new_case("disk", "folder removed in a run", measured.clone(), |goodput| {
            remove_folder_meanwhile(goodput, &|folder| fs::remove_dir_all(folder))
        }),
        new_case("disk", "folder replaced by a file in a run", measured.clone(), |goodput| {
            remove_folder_meanwhile(goodput, &|folder| {
                fs::remove_dir_all(folder)?;
                fs::write(folder, "mine")
            })
        }),
        new_case("disk", "folder moved away in a run", measured, |goodput| {
            remove_folder_meanwhile(goodput, &|folder| {
                fs::rename(folder, folder.with_extension("away"))
            })
        }),
    ]
}

/// goodput with a file system of its own at `small`, mounted with these options.
fn on_small_disk(
    goodput: &Binary,
    scratch: &ScratchFolder,
    options: &str,
    args: &[&str],
) -> Result<RunningProcess, Skip> {
    let mount = format!("mount -t tmpfs -o {options} tmpfs small && exec \"$0\" \"$@\"");
    fs::create_dir_all(scratch.join("small"))?;
    check_tool("unshare", &["-rm", "sh", "-c", "mount -t tmpfs -o size=4k tmpfs /mnt"])?;
    Ok(start_with_wrapper(goodput, scratch.path(), &["unshare", "-rm", "sh", "-c", &mount], args)?)
}

/// A small run to work on.
fn make_run(goodput: &Binary, scratch: &ScratchFolder) -> Result<(), Skip> {
    let words = ["run", MOCK, "--rate", "100", "--duration", "500ms", "--out", "run"];
    let ended = goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 20.0)?;
    match ended.code {
        Some(0 | 5) => Ok(()),
        code => Err(Skip::Broken(format!("{code:?}: {}", ended.stderr))),
    }
}

/// The two halves of one load of 100 requests, in the folders `0` and `1`.
pub(super) fn make_shards(goodput: &Binary, scratch: &ScratchFolder) -> Result<(), Skip> {
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    for shard in ["0/2", "1/2"] {
        let url = engine.url();
        let words = ["run", &url, "--rate", "100", "--duration", "1s", "--shard", shard];
        let args = [&words[..], &SHORT, &["--out", &shard[..1]]].concat();
        let ended = goodput.run(scratch.path(), &args, 20.0)?;
        if !matches!(ended.code, Some(0 | 5)) {
            return Err(Skip::Broken(format!("{:?}: {}", ended.code, ended.stderr)));
        }
    }
    Ok(())
}

/// A use that must fail with a plain word.
fn refuse_writes(goodput: &Binary, options: &str, args: &[&str]) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make_run(goodput, &scratch)?;
    let ended = on_small_disk(goodput, &scratch, options, args)?.wait(15.0)?;
    let mut observed = Observed::from_process(&ended);
    let is_said =
        ["No space left", "Read-only file system"].iter().any(|w| ended.stderr.contains(w));
    observed.check(is_said, || format!("no reason is given: {}", ended.stderr));
    Ok(observed)
}

/// The live report has what the disk refused.
fn run_on_full_disk(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["run", MOCK, "--rate", "400", "--duration", "2s", "--json", "--out", "small/run"];
    let args = [&words[..], &SHORT].concat();
    let ended = on_small_disk(goodput, &scratch, "size=64k", &args)?.wait(20.0)?;
    let found = read_summary(&ended)?;
    let mut observed = Observed::from_process(&ended);
    let (due, ok) = (number_at(&found, "/requests/scheduled"), number_at(&found, "/requests/ok"));
    observed.check(due == 800.0 && ok == due, || format!("{ok} of {due} requests, expected 800"));
    let caveats = found["caveats"].to_string();
    observed.check(caveats.contains("records_lost"), || "no caveat about lost records".to_owned());
    observed.check(found["verdict"] != "valid", || "the verdict is valid".to_owned());
    observed.check(ended.stderr.contains("No space left"), || format!("unsaid: {}", ended.stderr));
    Ok(observed)
}

/// Clients are served whatever the disk does, and the losses are counted.
fn record_on_full_disk(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let words = ["record", "--upstream", &engine.url(), "--output", "small/trace.jsonl", "--json"];
    let listen = ["--listen", "127.0.0.1:0", "--tokenizer", "approximate"];
    let args = [&words[..], &listen].concat();
    let mut proxy = on_small_disk(goodput, &scratch, "size=16k", &args)?;
    let url = format!("http://{}", proxy.word_after("http://", 20.0)?);
    let words = ["run", &url, "--rate", "200", "--duration", "2s", "--json", "--out", "load"];
    let load = goodput.start(scratch.path(), "load", &[&words[..], &SHORT].concat())?.wait(20.0)?;
    let ended = proxy.stop(Signal::INT, 10.0)?;
    let found = read_summary(&load)?;
    let mut observed = Observed::from_process(&ended);
    let ok = number_at(&found, "/requests/ok");
    observed.check(ok == 400.0, || format!("{ok} of 400 requests passed"));
    observed.check(ended.stderr.contains("No space left"), || format!("unsaid: {}", ended.stderr));
    Ok(observed)
}

/// A merge that does not fit leaves nothing; `ls` in its own place says so.
fn merge_on_full_disk(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make_shards(goodput, &scratch)?;
    fs::create_dir_all(scratch.join("small"))?;
    check_tool("unshare", &["-rm", "sh", "-c", "mount -t tmpfs -o size=4k tmpfs /mnt"])?;
    let script = "mount -t tmpfs -o size=8k tmpfs small; \"$0\" \"$@\"; code=$?; \
                  ls -A small | sed 's/^/LEFT /'; exit $code";
    let wrapper = ["unshare", "-rm", "sh", "-c", script];
    let args = ["merge", "0", "1", "--out", "small/whole"];
    let ended = start_with_wrapper(goodput, scratch.path(), &wrapper, &args)?.wait(15.0)?;
    let mut observed = Observed::from_process(&ended);
    observed.check(!ended.stdout.contains("LEFT"), || format!("left: {}", ended.stdout));
    Ok(observed)
}

/// The report of a read-only folder is the same.
fn run_in_read_only_folder(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make_run(goodput, &scratch)?;
    check_tool("unshare", &["-rm", "sh", "-c", "mount -t tmpfs -o size=4k tmpfs /mnt"])?;
    let script = "mount --bind run run && mount -o remount,bind,ro run && exec \"$0\" \"$@\"";
    let wrapper = ["unshare", "-rm", "sh", "-c", script];
    let mut uses = Uses::default();
    for words in [["report", "run", "--json"], ["audit", "run", "--quiet"]] {
        let words = if words[0] == "audit" { &words[..2] } else { &words[..] };
        let plain = goodput.run(scratch.path(), words, 10.0)?;
        let ended = start_with_wrapper(goodput, scratch.path(), &wrapper, words)?.wait(10.0)?;
        uses.add_ended(words[0], &[0, 4, 5], &ended);
        uses.check(ended.stdout == plain.stdout, || format!("{} differs", words[0]));
    }
    Ok(uses.into_observed())
}

/// A run whose folder goes: every request is in the report; what there is of texts is noted.
fn remove_folder_meanwhile(
    goodput: &Binary,
    remove: &dyn Fn(&Path) -> std::io::Result<()>,
) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["run", MOCK, "--rate", "100", "--duration", "2s", "--save-text", "--json"];
    let out = ["--out", "run"];
    let running = goodput.start(scratch.path(), "run", &[&words[..], &out, &SHORT].concat())?;
    let folder = scratch.join("run");
    let log = folder.join("requests.log");
    for _ in 0..500 {
        if fs::metadata(&log).is_ok_and(|log| log.len() > 4096) {
            break;
        }
        pause(seconds_to_nanos(0.01));
    }
    pause(seconds_to_nanos(0.5));
    remove(&folder)?;
    let ended = running.wait(15.0)?;
    let found = read_summary(&ended)?;
    let mut uses = Uses::default();
    uses.add_ended("run", &MEASURED, &ended);
    let (due, ok) = (number_at(&found, "/requests/scheduled"), number_at(&found, "/requests/ok"));
    uses.check(due == 200.0 && ok == due, || format!("{ok} of {due} requests, expected 200"));
    uses.check(ended.stderr.contains("warning"), || format!("no warning: {}", ended.stderr));
    if folder.is_dir() {
        let report = goodput.run(scratch.path(), &["report", "run", "--json"], 10.0)?;
        uses.add_ended("report", &[0], &report);
        let again = report.summary().unwrap_or(Value::Null);
        uses.check(number_at(&again, "/requests/scheduled") == due, || {
            "the folder that was written again has other requests".to_owned()
        });
        let texts = fs::read_to_string(folder.join("text.jsonl")).unwrap_or_default();
        uses.note(format!("{} of 200 texts are left", texts.lines().count()));
    } else {
        uses.check(fs::read(&folder).is_ok_and(|file| file == b"mine"), || {
            "the file that took the folder's name was overwritten".to_owned()
        });
    }
    Ok(uses.into_observed())
}
