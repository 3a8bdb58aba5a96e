//! Malformed files and extreme numbers, which must be refused or bounded.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use goodput_model::random::{Domain, RandomStream};

use super::{MOCK, SHORT, new_case};
use crate::case::{Case, CaseBounds, Observed, Skip};
use crate::program::{Binary, RunningProcess, ScratchFolder};

/// Makes a file.
type Make = fn(&Path) -> std::io::Result<()>;

/// What is read: `input` is the file.
const TRACE: &[&str] = &["run", MOCK, "--trace", "input", "--dry-run"];
const DATASET: &[&str] =
    &["run", MOCK, "--dataset", "input", "--rate", "5", "--num-requests", "2", "--dry-run"];
const STATS: &[&str] = &["stats", "input"];
const PLAN: &[&str] = &["run", "--plan", "input", "--dry-run"];
const TARGETS: &[&str] = &["compare", "--targets", "input", "--rate", "2", "--dry-run"];
const TRAFFIC: &[&str] = &["plan", "--goodput-rps", "10", "--traffic", "input"];
const PROFILE: &[&str] = &["mock", "--profile", "./input.toml", "--curve", "1"];
const FOREIGN: &[&str] = &["audit", "input"];
const TOKENIZER: &[&str] =
    &["run", MOCK, "--tokenizer", "./input", "--rate", "5", "--num-requests", "2", "--dry-run"];

/// A name, who reads it, what may come of it, seconds and mebibytes, and how it is made.
type OddFile = (&'static str, &'static [&'static str], &'static [i32], (f64, f64), Make);

const FILES: [OddFile; 22] = [
    ("trace of 2^32 tokens", TRACE, &[2], (6.0, 160.0), |f| {
        fs::write(
            f,
            "{\"timestamp\":0,\"input_length\":4294967296,\"output_length\":4294967296,\"hash_ids\":[]}\n",
        )
    }),
    ("trace of 4294967295 tokens", TRACE, &[0, 2], (10.0, 200.0), |f| {
        fs::write(
            f,
            "{\"timestamp\":0,\"input_length\":4294967295,\"output_length\":1,\"hash_ids\":[]}\n",
        )
    }),
    ("trace of a million blocks", TRACE, &[0, 2], (10.0, 300.0), |f| {
        let ids: Vec<String> = (0..1_000_000).map(|n: u32| n.to_string()).collect();
        fs::write(
            f,
            format!(
                "{{\"timestamp\":0,\"input_length\":8,\"output_length\":1,\"hash_ids\":[{}]}}\n",
                ids.join(",")
            ),
        )
    }),
    ("trace of times out of order", TRACE, &[0, 2], (6.0, 160.0), |f| {
        fs::write(f, [9e15, -5.0, 1e308].map(|t| format!("{{\"timestamp\":{t:e},\"input_length\":8,\"output_length\":1,\"hash_ids\":[]}}\n")).concat())
    }),
    ("trace with a line of 80 MB", TRACE, &[2], (10.0, 300.0), |f| {
        write_long_line(f, "{\"timestamp\":0,\"x\":\"")
    }),
    ("trace that is deep", TRACE, &[2], (6.0, 160.0), |f| fs::write(f, "[".repeat(4 << 20))),
    ("dataset with a line of 80 MB", DATASET, &[2], (10.0, 300.0), |f| {
        write_long_line(f, "{\"prompt\":\"")
    }),
    ("dataset that is deep", DATASET, &[2], (6.0, 160.0), |f| {
        fs::write(f, "{\"a\":".repeat(1 << 20))
    }),
    ("dataset of random bytes", DATASET, &[0, 2], (6.0, 160.0), write_random_bytes),
    ("dataset is Parquet, cut", DATASET, &[2], (6.0, 160.0), |f| {
        fs::write(f, b"PAR1\x15\x04\x15\x10\x15\x14")
    }),
    ("dataset is Parquet with a huge footer", DATASET, &[2], (6.0, 160.0), |f| {
        fs::write(f, b"PAR1\xff\xff\xff\x7fPAR1")
    }),
    ("CSV of 200,000 columns", STATS, &[0, 2], (6.0, 300.0), |f| write_many_columns(f)),
    ("CSV as a dataset of 200,000 columns", DATASET, &[0, 2], (6.0, 300.0), |f| {
        write_many_columns(f)
    }),
    ("texts in place of numbers", STATS, &[0, 2], (6.0, 160.0), |f| {
        fs::write(f, "nan\ninf\n-inf\n1e999\n-0\n1e-400\n")
    }),
    ("plan with an unknown key", PLAN, &[2], (6.0, 160.0), |f| {
        fs::write(f, "schema = \"goodput.plan/1\"\nbefore_cmd = \"touch x\"\n")
    }),
    ("plan that is deep", PLAN, &[2], (6.0, 160.0), |f| {
        fs::write(f, format!("a = {}", "[".repeat(1 << 18)))
    }),
    ("plan that is deep in keys", PLAN, &[2], (6.0, 160.0), |f| {
        fs::write(f, format!("{}a = 1", "a.".repeat(1 << 18)))
    }),
    ("targets that are deep", TARGETS, &[2], (6.0, 160.0), |f| {
        fs::write(f, format!("[[target]]\nname = {}", "{a=".repeat(1 << 18)))
    }),
    ("traffic of odd rates", TRAFFIC, &[2], (6.0, 160.0), |f| {
        fs::write(f, "hour,rps\n0,1e308\n1,nan\n2,-1\n")
    }),
    ("profile of random bytes", PROFILE, &[2], (6.0, 160.0), write_random_bytes),
    ("tokenizer that is deep", TOKENIZER, &[2], (6.0, 160.0), |f| {
        fs::write(f, "{\"model\":".repeat(1 << 20))
    }),
    ("result of another tool that is deep", FOREIGN, &[2], (6.0, 160.0), |f| {
        fs::write(f, "{\"a\":".repeat(1 << 20))
    }),
];

/// Who reads what a device, a pipe or a folder takes the place of.
const READERS: [&[&str]; 9] =
    [TRACE, DATASET, STATS, PLAN, TARGETS, TRAFFIC, PROFILE, FOREIGN, TOKENIZER];

/// Numbers on the command line, each refused before anything is sent.
const NUMBERS: [(&str, &[&str]); 12] = [
    ("rate nan", &["--rate", "nan", "--duration", "1s"]),
    ("rate negative", &["--rate=-1", "--duration", "1s"]),
    ("rate zero", &["--rate", "0", "--duration", "1s"]),
    ("duration negative", &["--rate", "1", "--duration=-1s"]),
    ("duration beyond time", &["--rate", "1", "--duration", "99999999999999999999y"]),
    (
        "lengths beyond tokens",
        &["--rate", "1", "--duration", "1s", "--isl", "99999999999999999999"],
    ),
    ("lengths nan", &["--rate", "1", "--duration", "1s", "--isl", "lognormal:nan:nan"]),
    ("lengths backwards", &["--rate", "1", "--duration", "1s", "--isl", "uniform:9:1"]),
    ("percentile 101", &["--rate", "1", "--duration", "1s", "--percentiles", "101"]),
    ("SLO of nan", &["--rate", "1", "--duration", "1s", "--slo", "p99 ttft < nanms"]),
    ("users beyond memory", &["--concurrency", "18446744073709551615", "--duration", "1s"]),
    ("time scale nan", &["--trace", "t", "--time-scale", "nan"]),
];

pub(super) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, words, codes, (seconds, mebibytes), write) in FILES {
        let expected = CaseBounds::exit(codes).within(seconds, mebibytes);
        all.push(new_case("input", name, expected, move |goodput| {
            let scratch = ScratchFolder::new()?;
            write(&scratch.join(input_name(words)))?;
            let ended = goodput.run(scratch.path(), words, 20.0)?;
            let mut observed = Observed::from_process(&ended);
            // An error names the file: it was read, and the verb was not misspelt.
            let is_about = ended.code == Some(0) || ended.stderr.contains("input");
            observed.check(is_about && !ended.stderr.contains("Usage:"), || ended.stderr.clone());
            Ok(observed)
        }));
    }
    let places: [(&str, Make); 5] = [
        ("/dev/zero", |f| std::os::unix::fs::symlink("/dev/zero", f)),
        ("/dev/urandom", |f| std::os::unix::fs::symlink("/dev/urandom", f)),
        ("a terminal", |f| std::os::unix::fs::symlink("/dev/ptmx", f)),
        ("a pipe", |f| Command::new("mkfifo").arg(f).status().map(drop)),
        ("a folder", |f| fs::create_dir(f)),
    ];
    for (name, make) in places {
        let expected = CaseBounds::exit(&[2]).within(6.0, 160.0);
        all.push(new_case("input", format!("{name} to every reader"), expected, move |goodput| {
            read_hostile_input(goodput, make)
        }));
    }
    let expected = CaseBounds::exit(&[2]).within(6.0, 160.0);
    all.push(new_case("input", "numbers on the command line", expected, read_odd_numbers));
    let expected = CaseBounds::exit(&[2]).within(6.0, 200.0);
    all.push(new_case("input", "rate of 1e300", expected, |goodput| run_at_rate(goodput, "1e300")));
    let expected = CaseBounds::exit(&[0, 3, 5]).within(10.0, 160.0);
    all.push(new_case("input", "plan that names another key", expected, use_other_key));
    all
}

/// The file that a use reads.
fn input_name(words: &[&'static str]) -> &'static str {
    words.iter().find(|word| word.contains("input")).copied().unwrap_or("input")
}

fn write_long_line(path: &Path, begin: &str) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(begin.as_bytes())?;
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..80 {
        file.write_all(&piece)?;
    }
    file.write_all(b"\"}\n")
}

fn write_random_bytes(path: &Path) -> std::io::Result<()> {
    let mut random = RandomStream::new(5, Domain::Sampling, 0);
    let bytes: Vec<u8> = (0..1 << 18).flat_map(|_| random.next_bits().to_le_bytes()).collect();
    fs::write(path, bytes)
}

fn write_many_columns(path: &Path) -> std::io::Result<()> {
    let names: Vec<String> = (0..200_000).map(|n| format!("c{n}")).collect();
    fs::write(path, format!("{}\n{}\n", names.join(","), vec!["1"; 200_000].join(",")))
}

/// One path that is not a plain file, given to every verb that takes a path.
fn read_hostile_input(goodput: &Binary, make: Make) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    make(&scratch.join("input"))?;
    make(&scratch.join("input.toml"))?;
    let mut uses = super::Uses::default();
    for words in READERS {
        let ended = goodput.run(scratch.path(), words, 10.0)?;
        uses.add_ended(&words.join(" "), &[2], &ended);
        uses.check(!ended.stderr.contains("Usage:"), || format!("no such use: {words:?}"));
    }
    Ok(uses.into_observed())
}

fn read_odd_numbers(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let mut uses = super::Uses::default();
    for (name, words) in NUMBERS {
        let ended = goodput.run(scratch.path(), &[&["run", MOCK], words].concat(), 10.0)?;
        uses.add_ended(name, &[2], &ended);
    }
    Ok(uses.into_observed())
}

/// A rate that no clock can space.
fn run_at_rate(goodput: &Binary, rate: &str) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["run", MOCK, "--rate", rate, "--duration", "1s", "--timeout", "1s"];
    let ended = goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 15.0)?;
    Ok(Observed::from_process(&ended))
}

/// Where a file chooses the variable and the host, that is said before the first request.
fn use_other_key(goodput: &Binary) -> Result<Observed, Skip> {
    let scratch = ScratchFolder::new()?;
    let words = ["run", MOCK, "--rate", "20", "--duration", "200ms", "--out", "run"];
    goodput.run(scratch.path(), &[&words[..], &SHORT].concat(), 15.0)?;
    let plan = fs::read_to_string(scratch.join("run/plan.toml"))?;
    let host = super::peer::ScriptedServer::start(
        |_, line| line.send_answer("application/json", "{}"),
        "",
    )?;
    let plan = plan.replace(MOCK, &host.url()).replace("OPENAI_API_KEY", "OTHER_SECRET");
    fs::write(scratch.join("evil.toml"), plan)?;
    let words = ["run", "--plan", "evil.toml", "--quiet", "--out", "again"];
    let mut command = goodput.command(scratch.path(), &words);
    command.env("OTHER_SECRET", "other-secret-0123456789");
    let ended = RunningProcess::spawn(command, scratch.path(), "goodput")?.wait(15.0)?;
    let mut observed = Observed::from_process(&ended);
    let warning = "warning: the key in $OTHER_SECRET goes to 127.0.0.1";
    observed.check(ended.stderr.contains(warning), || format!("unsaid: {}", ended.stderr));
    let is_shown = ended.stderr.contains("other-secret-0123456789");
    observed.check(!is_shown, || "its value is on stderr".to_owned());
    Ok(observed)
}
