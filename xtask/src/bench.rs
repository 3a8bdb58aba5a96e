//! `cargo xtask bench [--seconds N] [--peers] [--only NAME]`: whether the client keeps its budgets.
//!
//! The truth server runs on one core, the client on the other. Each row of goodput stands next to
//! one of the floor client in the same run, so the two meet the same machine. The tables go to
//! stdout and to `benches/results/`.

mod clients;
mod machine;
mod mock;
mod peers;
mod process;
mod proxy;
mod scenarios;
mod table;

use std::fs;
use std::path::Path;

use machine::Machine;
use process::Bench;
use table::ReportTable;

type Scenario = fn(&Bench) -> Result<ReportTable, String>;

/// In the order of the report, by name.
const SCENARIOS: [(&str, Scenario); 8] = [
    ("closed-loop", scenarios::closed_loop),
    ("ceiling", scenarios::ceiling),
    ("open-loop", scenarios::open_loop),
    ("burst", scenarios::burst),
    ("memory", scenarios::memory),
    ("start", scenarios::start),
    ("mock", mock::mock),
    ("proxy", proxy::proxy),
];

/// What can be asked of it.
#[derive(Debug, PartialEq, Eq)]
struct BenchOptions {
    /// Of one run.
    seconds: u32,
    with_peers: bool,
    /// The one scenario that is wanted.
    only: Option<String>,
}

#[expect(clippy::print_stdout, reason = "its result")]
pub(crate) fn bench(args: &[String]) -> Result<(), String> {
    let BenchOptions { seconds, with_peers, only } = options(args)?;
    let machine = Machine::look()?;
    let bench = Bench::new(seconds, machine.cpus > 1)?;
    let mut report = machine.head(&format!("cargo xtask bench {}", args.join(" ")), &bench.place());
    println!("{report}");
    let peers: &[(&str, Scenario)] = if with_peers { &[("peers", peers::peers)] } else { &[] };
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for (_, scenario) in SCENARIOS.iter().chain(peers).filter(|(name, _)| is_wanted(name)) {
        let section = scenario(&bench)?.render();
        println!("{section}");
        report += &section;
        report.push('\n');
    }
    // A part of the report must not stand where the whole does.
    if only.is_some() {
        return Ok(());
    }
    let folder = Path::new("benches/results");
    let file = folder.join(format!("{}-{}.md", machine.date, machine.slug()));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, report))
        .map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
    println!("written to {}", file.display());
    Ok(())
}

fn options(args: &[String]) -> Result<BenchOptions, String> {
    let mut found = BenchOptions { seconds: 10, with_peers: false, only: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--peers" => found.with_peers = true,
            "--seconds" => {
                let value = args.next().and_then(|value| value.parse().ok());
                found.seconds =
                    value.filter(|n| *n > 0).ok_or("--seconds wants a number above 0")?;
            }
            "--only" => {
                let name = args.next().filter(|name| SCENARIOS.iter().any(|one| one.0 == *name));
                let names = SCENARIOS.map(|one| one.0).join(", ");
                found.only = Some(name.ok_or(format!("--only wants one of {names}"))?.clone());
            }
            other => {
                return Err(format!("unknown flag `{other}`: --seconds N, --peers, --only NAME"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let usual = || BenchOptions { seconds: 10, with_peers: false, only: None };
        assert_eq!(options(""), Ok(usual()));
        let two = BenchOptions { seconds: 2, with_peers: true, ..usual() };
        assert_eq!(options("--seconds 2 --peers"), Ok(two));
        let one = BenchOptions { only: Some("proxy".to_owned()), ..usual() };
        assert_eq!(options("--only proxy"), Ok(one));
        assert!(options("--seconds x").is_err());
        assert!(options("--only x").is_err());
        assert!(options("--fast").is_err());
    }
}
