//! `kill -9` at instants drawn by chance: what was measured is there, and work goes on.

use std::fs;

use goodput_clock::pause;
use goodput_model::random::{Domain, RandomStream};
use rustix::process::Signal;
use serde_json::Value;

use super::peer::Engine;
use super::{MEASURED, SHORT, Uses, new_case, number_at};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, EndedProcess, RunningProcess, ScratchFolder, seconds_to_nanos};

/// Constant arrivals a second, so that a lost second means this number of requests.
const RATE: u64 = 100;

/// Requests that may be in flight at the kill, and those that readiness sends.
const UNDER_WAY: u64 = 8;

/// Codes of a report or an audit of what was left: good, in doubt, or void.
const READ: [i32; 3] = [0, 4, 5];

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for draw in 0..3 {
        let expected = CaseBounds::exit(&READ).within(12.0, 160.0);
        all.push(new_case("kill", format!("run {draw}"), expected, move |goodput| {
            run(goodput, draw)
        }));
    }
    // A sweep that goes on warms its server up for ten seconds, so one of them is enough.
    for (verb, draws) in [("sweep", 1), ("compare", 2)] {
        for draw in 0..draws {
            let expected = CaseBounds::exit(&READ).within(20.0, 160.0);
            all.push(new_case(
                "kill",
                format!("{verb} {draw}, then --resume"),
                expected,
                move |goodput| kill_campaign(goodput, verb, draw),
            ));
        }
    }
    let expected = CaseBounds::exit(&[0]).within(12.0, 160.0);
    all.push(new_case("kill", "record", expected, kill_record));
    let expected = CaseBounds::exit(&READ).within(12.0, 160.0);
    all.push(new_case("kill", "shadow", expected.clone(), kill_shadow));
    all.push(new_case("kill", "merge, ten times", expected, kill_merge));
    all
}

/// Seconds, uniform between two limits.
fn kill_instant(draw: u64, from_s: f64, to_s: f64) -> f64 {
    from_s + (to_s - from_s) * RandomStream::new(9, Domain::Faults, draw).next_unit()
}

/// Waits, kills, and returns how long it had been.
fn kill_after(running: RunningProcess, after_s: f64) -> Result<EndedProcess, Skip> {
    pause(seconds_to_nanos(after_s));
    Ok(running.stop(Signal::KILL, 5.0)?)
}

/// A load of [`RATE`] for longer than it will live.
fn start_load(
    goodput: &Binary,
    scratch: &ScratchFolder,
    url: &str,
    out: &str,
) -> Result<RunningProcess, Skip> {
    let rate = RATE.to_string();
    let words = ["run", url, "--rate", &rate, "--duration", "30s", "--out", out];
    Ok(goodput.start(scratch.path(), out, &[&words[..], &SHORT].concat())?)
}

fn run(goodput: &Binary, draw: u64) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let running = start_load(goodput, &scratch, &engine.url(), "load")?;
    engine.wait_for(20, 20.0)?;
    kill_after(running, kill_instant(draw, 0.2, 1.5))?;
    let came = engine.requests()?;
    let mut uses = Uses::default();
    let report = goodput.run(scratch.path(), &["report", "load", "--json"], 10.0)?;
    uses.add_ended("report", &[0], &report);
    uses.add_ended("audit", &READ, &goodput.run(scratch.path(), &["audit", "load"], 10.0)?);
    let page = ["report", "load", "--format", "html", "-o", "page.html"];
    uses.add_ended("page", &[0], &goodput.run(scratch.path(), &page, 10.0)?);
    let kept =
        report.summary().map_or(0.0, |found| number_at(&found, "/requests/scheduled")) as u64;
    uses.check(came <= kept + RATE + UNDER_WAY, || format!("{kept} of {came} requests are kept"));
    uses.check(kept <= came, || format!("{kept} kept, but only {came} were sent"));
    uses.note(format!("{kept} of {came} kept"));
    Ok(uses.into_observed())
}

fn kill_campaign(goodput: &Binary, verb: &str, draw: u64) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let url = engine.url();
    let words: &[&str] = match verb {
        "sweep" => &["sweep", &url, "--rates", "20,40,60", "--no-search", "--quick"],
        _ => &["compare", &url, &url, "--rate", "40", "--blocks", "3"],
    };
    let more = ["--duration", "500ms", "--warmup", "0s", "--settle", "0s", "--out", "whole"];
    let running = goodput.start(scratch.path(), "first", &[words, &more, &SHORT].concat())?;
    engine.wait_for(4, 20.0)?;
    kill_after(running, kill_instant(10 + draw, 0.1, 1.4))?;
    let mut uses = Uses::default();
    // Of a campaign of which no point is done there is nothing to say yet.
    let codes = [0, 2, 4, 5];
    uses.add_ended("report", &codes, &goodput.run(scratch.path(), &["report", "whole"], 10.0)?);
    let resume = [verb, "--resume", "whole", "--quiet", "--json"];
    let resumed = goodput.run(scratch.path(), &resume, 30.0)?;
    uses.add_ended("resume", &READ, &resumed);
    let state = |found: &Value| found.pointer("/sweep/state").cloned();
    let state = resumed.summary().as_ref().and_then(state);
    uses.check(verb != "sweep" || state == Some("complete".into()), || format!("{state:?}"));
    let again = goodput.run(scratch.path(), &["report", "whole", "--json"], 10.0)?;
    uses.add_ended("report after", &READ, &again);
    uses.check(again.stdout == resumed.stdout, || "report and --resume differ".to_owned());
    Ok(uses.into_observed())
}

fn kill_record(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let words = ["record", "--upstream", &engine.url(), "--output", "trace.jsonl"];
    let listen = ["--listen", "127.0.0.1:0", "--tokenizer", "approximate"];
    let mut proxy = goodput.start(scratch.path(), "record", &[&words[..], &listen].concat())?;
    let address = proxy.word_after("http://", 20.0)?;
    let load = start_load(goodput, &scratch, &format!("http://{address}"), "load")?;
    // The first 32 answers settle the size of blocks; until then nothing is written.
    engine.wait_for(100, 20.0)?;
    kill_after(proxy, kill_instant(20, 1.0, 2.0))?;
    let came = engine.requests()?;
    kill_after(load, 0.0)?;
    let trace = fs::read_to_string(scratch.join("trace.jsonl"))?;
    let mut uses = Uses::default();
    let show = ["workload", "show", "--trace", "trace.jsonl"];
    uses.add_ended("show", &[0], &goodput.run(scratch.path(), &show, 10.0)?);
    let rows = trace.lines().skip(1).count() as u64;
    let is_whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    uses.check(trace.lines().all(is_whole) && trace.ends_with('\n'), || "a cut line".to_owned());
    uses.check(came <= rows + RATE + UNDER_WAY, || format!("{rows} rows of {came} requests"));
    uses.note(format!("{rows} rows of {came}"));
    Ok(uses.into_observed())
}

fn kill_shadow(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let engine = Engine::start(goodput, scratch.path(), &[])?;
    let candidate = Engine::start(goodput, scratch.path(), &[])?;
    let words = ["shadow", "--primary", &engine.url(), "--candidate", &candidate.url()];
    let flags = ["--share", "100%", "--by", "request", "--listen", "127.0.0.1:0", "--out", "out"];
    let mut proxy = goodput.start(scratch.path(), "shadow", &[&words[..], &flags].concat())?;
    let address = proxy.word_after("http://", 20.0)?;
    let load = start_load(goodput, &scratch, &format!("http://{address}"), "load")?;
    candidate.wait_for(50, 20.0)?;
    kill_after(proxy, kill_instant(30, 0.3, 1.2))?;
    let came = candidate.requests()?;
    kill_after(load, 0.0)?;
    let mut uses = Uses::default();
    let report = goodput.run(scratch.path(), &["report", "out", "--json"], 10.0)?;
    uses.add_ended("report", &READ, &report);
    let page = ["report", "out", "--format", "html", "-o", "page.html"];
    uses.add_ended("page", &READ, &goodput.run(scratch.path(), &page, 10.0)?);
    let text = report.summary().map_or(String::new(), |found| found.to_string());
    let pairs = text.split("\"pairs\":").nth(1).and_then(|rest| {
        let digits = rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        digits.parse::<u64>().ok()
    });
    let pairs = pairs.unwrap_or(0);
    uses.check(came <= pairs + RATE + UNDER_WAY, || format!("{pairs} pairs of {came} requests"));
    uses.note(format!("{pairs} pairs of {came}"));
    Ok(uses.into_observed())
}

/// A merge is there as a whole or not at all, and can be begun again.
fn kill_merge(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    super::disk::make_shards(goodput, &scratch)?;
    let mut uses = Uses::default();
    let mut cut = 0;
    for draw in 0..10 {
        let words = ["merge", "0", "1", "--out", "whole"];
        let running = goodput.start(scratch.path(), "merge", &words)?;
        kill_after(running, kill_instant(40 + draw, 0.001, 0.07))?;
        let report = goodput.run(scratch.path(), &["report", "whole", "--json"], 10.0)?;
        uses.add_ended("report", &[0, 2], &report);
        if report.code != Some(0) {
            cut += 1;
            uses.add_ended("merge again", &MEASURED, &goodput.run(scratch.path(), &words, 20.0)?);
        }
        let whole = goodput.run(scratch.path(), &["report", "whole", "--json"], 10.0)?;
        let count =
            whole.summary().map_or(f64::NAN, |found| number_at(&found, "/requests/scheduled"));
        uses.check(count == 100.0, || format!("{count} of 100 requests are in the merge"));
        fs::remove_dir_all(scratch.join("whole"))?;
    }
    uses.note(format!("{cut} were cut"));
    Ok(uses.into_observed())
}
