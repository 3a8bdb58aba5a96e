//! Time that stands still, begins elsewhere, or is wrong on the disk.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use goodput_clock::pause;
use rustix::process::Signal;

use super::peer::{Engine, http_get};
use super::{
    MEASURED, MOCK, SHORT, Uses, check_tool, new_case, number_at, read_summary, start_with_wrapper,
};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, RunningProcess, ScratchFolder, seconds_to_nanos};

/// How long a process stands still.
const PAUSE_S: f64 = 2.0;

/// An offset in seconds, by the seconds since the start of the machine.
type Offset = fn(i64) -> i64;

/// Offsets of the monotonic clock: far ahead, and a minute after the start of the machine.
const OFFSETS: [(&str, Offset); 2] =
    [("far ahead", |_| 4_000_000_000), ("near its zero", |uptime| 60 - uptime)];

/// Steps of the time of day in the middle of a run, in seconds.
const STEPS: [(&str, &str); 3] =
    [("back an hour", "-3600"), ("ahead a day", "+86400"), ("back before 1970", "-2000000000")];

/// Where Debian and Fedora keep the library that shows a process another time of day.
const FAKETIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
];

/// Times of files: the beginning, before it, and far in the future.
const TIMES: [(&str, i64); 3] = [("1970", 0), ("1901", -2_177_452_800), ("2242", 8_583_494_400)];

pub(super) fn cases() -> Vec<Case> {
    // 2 of 4 seconds stood still: more than 5 % of the window, so void.
    let void = CaseBounds::exit(&[5]).within(12.0, 160.0);
    let mut all = vec![
        new_case("clock", "client stopped for 2 s", void, suspend_client),
        new_case("clock", "server stopped for 2 s", CaseBounds::exit(&MEASURED), suspend_server),
        new_case("clock", "record stopped for 2 s", CaseBounds::exit(&[0]), suspend_record),
    ];
    for (name, offset) in OFFSETS {
        let expected = CaseBounds::exit(&MEASURED).within(8.0, 160.0);
        all.push(new_case("clock", format!("monotonic clock {name}"), expected, move |goodput| {
            run_with_offset(goodput, offset)
        }));
    }
    for (name, step) in STEPS {
        let expected = CaseBounds::exit(&MEASURED).within(10.0, 160.0);
        all.push(new_case("clock", format!("time of day {name}"), expected, move |goodput| {
            run_with_clock_step(goodput, step)
        }));
    }
    for (name, unix) in TIMES {
        let expected = CaseBounds::exit(&[0]).within(8.0, 160.0);
        all.push(new_case("clock", format!("files of {name}"), expected, move |goodput| {
            read_old_files(goodput, unix)
        }));
    }
    all
}

/// A load of 40 a second for 4 s.
fn start_load(
    goodput: &Binary,
    scratch: &ScratchFolder,
    url: &str,
) -> Result<RunningProcess, Skip> {
    let words = ["run", url, "--rate", "40", "--duration", "4s", "--json", "--out", "run"];
    Ok(goodput.start(scratch.path(), "run", &[&words[..], &SHORT].concat())?)
}

fn suspend_briefly(process: &RunningProcess) {
    process.signal(Signal::STOP);
    pause(seconds_to_nanos(PAUSE_S));
    process.signal(Signal::CONT);
}

/// What was due is due, late or not; the verdict says what is doubtful.
fn suspend_client(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let running = start_load(goodput, &scratch, &engine.url())?;
    engine.wait_for(30, 20.0)?;
    suspend_briefly(&running);
    let ended = running.wait(20.0)?;
    let found = read_summary(&ended)?;
    let mut observed = Observed::from_process(&ended);
    let due = number_at(&found, "/requests/scheduled");
    observed.check(due == 160.0, || format!("{due} requests scheduled, expected 160"));
    // What rests on instants inside of the stall is cut from latencies, and counted.
    let cut = number_at(&found, "/client/stalls/requests");
    observed.check((60.0..=110.0).contains(&cut), || format!("{cut} requests cut, expected 80"));
    let stall = number_at(&found, "/client/stalls/total_ms");
    observed.check((1_800.0..4_000.0).contains(&stall), || format!("{stall} ms of stalls"));
    observed.check(found["verdict"] == "void", || format!("verdict {}", found["verdict"]));
    Ok(observed)
}

/// A server that stands still is slow, and its requests are due all the same.
fn suspend_server(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["--set", "metrics=off"];
    let engine = Engine::start(goodput, scratch.path(), &words)?;
    let running = start_load(goodput, &scratch, &engine.url())?;
    pause(seconds_to_nanos(1.2));
    suspend_briefly(&engine.process);
    let ended = running.wait(20.0)?;
    let found = read_summary(&ended)?;
    let mut observed = Observed::from_process(&ended);
    let ok = number_at(&found, "/requests/ok");
    observed.check(ok == 160.0, || format!("{ok} of 160 requests are good"));
    let slowest = number_at(&found, "/metrics/ttft/max");
    observed.check(slowest > 1_500.0, || format!("slowest TTFT {slowest} ms"));
    // Those of two of four seconds waited, a second on average.
    let mean = number_at(&found, "/metrics/ttft/mean");
    observed.check((300.0..900.0).contains(&mean), || format!("mean TTFT {mean} ms, 500 expected"));
    Ok(observed)
}

fn suspend_record(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let words = ["record", "--upstream", &engine.url(), "--output", "trace.jsonl"];
    let listen = ["--listen", "127.0.0.1:0", "--tokenizer", "approximate"];
    let mut proxy = goodput.start(scratch.path(), "record", &[&words[..], &listen].concat())?;
    let url = format!("http://{}", proxy.word_after("http://", 20.0)?);
    let running = start_load(goodput, &scratch, &url)?;
    engine.wait_for(30, 20.0)?;
    suspend_briefly(&proxy);
    let load = running.wait(20.0)?;
    let ended = proxy.stop(Signal::INT, 10.0)?;
    let mut observed = Observed::from_process(&ended);
    let ok = number_at(&read_summary(&load)?, "/requests/ok");
    observed.check(ok == 160.0, || format!("{ok} of 160 requests passed"));
    let rows = fs::read_to_string(scratch.join("trace.jsonl"))?.lines().skip(1).count();
    observed.check(rows >= 160, || format!("{rows} rows"));
    Ok(observed)
}

/// A run where the monotonic clock shows something else, reported where it does not.
fn run_with_offset(goodput: &Binary, offset: Offset) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let uptime = fs::read_to_string("/proc/uptime")?;
    let uptime = uptime.split('.').next().and_then(|s| s.parse::<i64>().ok()).unwrap_or(0);
    let offset = offset(uptime).to_string();
    let wrapper = ["unshare", "-rT", "--fork", "--monotonic", &offset];
    check_tool(wrapper[0], &[&wrapper[1..], &["true"]].concat())?;
    let words = ["run", MOCK, "--rate", "40", "--duration", "1s", "--json", "--out", "run"];
    let args = [&words[..], &SHORT].concat();
    let ended = start_with_wrapper(goodput, scratch.path(), &wrapper, &args)?.wait(15.0)?;
    let found = read_summary(&ended)?;
    let mut uses = Uses::default();
    uses.add_ended("run", &MEASURED, &ended);
    let ok = number_at(&found, "/requests/ok");
    uses.check(ok == 40.0, || format!("{ok} of 40 requests are good"));
    let caveats = found["caveats"].to_string();
    uses.check(!caveats.contains("clock_suspicious"), || caveats.clone());
    let median = number_at(&found, "/metrics/ttft/percentiles/50/value");
    uses.check((4.9..50.0).contains(&median), || format!("median TTFT {median} ms, 5 expected"));
    let report = goodput.run(scratch.path(), &["report", "run", "--json"], 10.0)?;
    uses.add_ended("report", &[0], &report);
    uses.check(report.stdout == ended.stdout, || "the report is different".to_owned());
    Ok(uses.into_observed())
}

/// A run during which the time of day steps, as when a machine first hears of the right time. Instants are
/// those of the monotonic clock, so nothing that is measured moves.
fn run_with_clock_step(goodput: &Binary, step: &str) -> Result<Observed, Skip> {
    let library = FAKETIME.into_iter().find(|path| Path::new(path).exists());
    let library = library.ok_or_else(|| Skip::Unavailable("needs libfaketime".to_owned()))?;
    let scratch = ScratchFolder::new()?;
    let offset = scratch.join("offset");
    fs::write(&offset, "+0")?;
    let preload = format!("LD_PRELOAD={library}");
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", offset.display());
    let wrapper = ["env", &preload, &file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let url = engine.url();
    let words = ["run", &url, "--rate", "40", "--duration", "4s", "--json", "--out", "run"];
    let running =
        start_with_wrapper(goodput, scratch.path(), &wrapper, &[&words[..], &SHORT].concat())?;
    engine.wait_for(60, 20.0)?;
    fs::write(&offset, step)?;
    let ended = running.wait(20.0)?;
    let found = read_summary(&ended)?;
    let mut uses = Uses::default();
    uses.add_ended("run", &MEASURED, &ended);
    let ok = number_at(&found, "/requests/ok");
    uses.check(ok == 160.0, || format!("{ok} of 160 requests are good"));
    let slowest = number_at(&found, "/metrics/e2e/max");
    uses.check((5.0..3_000.0).contains(&slowest), || format!("slowest answer {slowest} ms"));
    let report = goodput.run(scratch.path(), &["report", "run", "--json"], 10.0)?;
    uses.add_ended("report", &[0], &report);
    uses.check(report.stdout == ended.stdout, || "the report is different".to_owned());
    Ok(uses.into_observed())
}

/// Sets the times of everything below a folder.
fn set_times(folder: &Path, time: SystemTime) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            set_times(&path, time)?;
        }
        File::open(&path)?.set_modified(time)?;
    }
    Ok(())
}

fn read_old_files(goodput: &Binary, unix: i64) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["run", MOCK, "--rate", "40", "--duration", "500ms", "--out", "runs/one"];
    goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 15.0)?;
    let report = ["report", "runs/one", "--json"];
    let before = goodput.run(scratch.path(), &report, 10.0)?;
    let away = Duration::from_secs(unix.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if unix < 0 { epoch.checked_sub(away) } else { epoch.checked_add(away) };
    let time = time.ok_or_else(|| Skip::Unavailable("no such time".to_owned()))?;
    set_times(&scratch.join("runs"), time)?;
    let mut uses = Uses::default();
    let after = goodput.run(scratch.path(), &report, 10.0)?;
    uses.add_ended("report", &[0], &after);
    uses.check(after.stdout == before.stdout, || "the report is different".to_owned());
    let mut ui = goodput.start(scratch.path(), "ui", &["ui", "runs", "--listen", "127.0.0.1:0"])?;
    let address = ui.word_after("http://", 20.0)?.trim_end_matches('/').to_owned();
    let page = http_get(&address, "/")?;
    uses.check(page.starts_with("HTTP/1.1 200") && page.contains("one"), || {
        format!("missing from the list: {}", page.lines().next().unwrap_or_default())
    });
    uses.add_ended("ui", &[0, 130], &ui.stop(Signal::TERM, 10.0)?);
    Ok(uses.into_observed())
}
