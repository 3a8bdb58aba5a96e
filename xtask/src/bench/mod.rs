//! `cargo xtask bench [--seconds N] [--peers]`: whether the client keeps its budgets.
//!
//! The truth server runs on one core, the client on the other. Each row of goodput stands beside
//! one of the floor client in the same run, so the two meet the same machine. The tables go to
//! stdout and to `benches/results/`.

mod clients;
mod machine;
mod mock;
mod peers;
mod process;
mod scenarios;
mod table;

use std::fs;
use std::path::Path;

use machine::Machine;
use process::Bench;
use table::Table;

type Scenario = fn(&Bench) -> Result<Table, String>;

/// In the order of the report.
const SCENARIOS: [Scenario; 7] = [
    scenarios::closed_loop,
    scenarios::ceiling,
    scenarios::open_loop,
    scenarios::burst,
    scenarios::memory,
    scenarios::start,
    mock::mock,
];

#[expect(clippy::print_stdout, reason = "its result")]
pub(crate) fn bench(args: &[String]) -> Result<(), String> {
    let (seconds, with_peers) = options(args)?;
    let machine = Machine::look()?;
    let bench = Bench::new(seconds, machine.cpus > 1)?;
    let mut report = machine.head(&format!("cargo xtask bench {}", args.join(" ")), &bench.place());
    println!("{report}");
    let peers: &[Scenario] = if with_peers { &[peers::peers] } else { &[] };
    for scenario in SCENARIOS.iter().chain(peers) {
        let section = scenario(&bench)?.render();
        println!("{section}");
        report += &section;
        report.push('\n');
    }
    let folder = Path::new("benches/results");
    let file = folder.join(format!("{}-{}.md", machine.date, machine.slug()));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, report))
        .map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
    println!("written to {}", file.display());
    Ok(())
}

/// Seconds per run, and whether to run the peers.
fn options(args: &[String]) -> Result<(u32, bool), String> {
    let (mut seconds, mut peers) = (10, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--peers" => peers = true,
            "--seconds" => {
                let value = args.next().and_then(|value| value.parse().ok());
                seconds = value.filter(|n| *n > 0).ok_or("--seconds wants a number above 0")?;
            }
            other => return Err(format!("unknown flag `{other}`: --seconds N, --peers")),
        }
    }
    Ok((seconds, peers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options =
            |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(options(""), Ok((10, false)));
        assert_eq!(options("--seconds 2 --peers"), Ok((2, true)));
        assert!(options("--seconds x").is_err());
        assert!(options("--fast").is_err());
    }
}
