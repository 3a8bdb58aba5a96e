//! The two clients: how they are called, and where they say what.

use serde_json::Value;

use super::process::{Bench, TruthProcess, at};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchClient {
    Floor,
    Goodput,
}

/// A load on the truth server.
#[derive(Clone, Copy)]
pub(super) enum BenchLoad {
    /// A number of users.
    Closed(u32),
    /// Requests per second, as a Poisson process.
    Open(u32),
    /// A number of requests at once.
    Burst(u32),
}

/// A load with the server's delays and the tokens of an answer.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) load: BenchLoad,
    pub(super) ttft_ms: u32,
    pub(super) itl_ms: u32,
    pub(super) tokens: u32,
}

/// One run of one client: what it said, what was true, and what it cost.
pub(super) struct ClientRun {
    client: BenchClient,
    said: Value,
    truth: Value,
    cpu_s: f64,
}

impl BenchClient {
    pub(super) const BOTH: [Self; 2] = [Self::Floor, Self::Goodput];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Goodput => "goodput",
        }
    }

    /// Runs against a fresh server.
    pub(super) fn measure(self, bench: &Bench, run: Run) -> Result<ClientRun, String> {
        let server = TruthProcess::start(bench, run.ttft_ms, run.itl_ms)?;
        let ran = bench.run(&self.command(bench, &server, run))?;
        let truth = server.stop()?;
        let said = serde_json::from_str(&ran.stdout)
            .map_err(|error| format!("{} did not print JSON: {error}", self.name()))?;
        Ok(ClientRun { client: self, said, truth, cpu_s: ran.cpu_s })
    }

    pub(super) fn command(self, bench: &Bench, server: &TruthProcess, run: Run) -> Vec<String> {
        let (seconds, tokens) = (bench.seconds, run.tokens);
        match self {
            Self::Floor => {
                let load = match run.load {
                    BenchLoad::Closed(n) | BenchLoad::Burst(n) => format!("--streams {n}"),
                    BenchLoad::Open(rate) => format!("--rate {rate}"),
                };
                let port = server.port();
                let rest = format!("--port {port} --tokens {tokens} --seconds {seconds}");
                floor(&format!("{load} {rest}"))
            }
            Self::Goodput => {
                let load = match run.load {
                    BenchLoad::Closed(n) => {
                        format!("--concurrency {n} --duration {seconds}s --drain 1s")
                    }
                    BenchLoad::Open(rate) => format!("--rate {rate} --duration {seconds}s"),
                    BenchLoad::Burst(n) => format!("--rate inf --num-requests {n}"),
                };
                goodput(
                    bench,
                    server,
                    &format!("{load} --input-tokens 10 --max-tokens {tokens} --json"),
                )
            }
        }
    }
}

/// A call of goodput with one worker and no request ahead of the run.
pub(super) fn goodput(bench: &Bench, server: &TruthProcess, flags: &str) -> Vec<String> {
    let (address, out) = (server.address(), bench.fresh_path());
    let rest = "--model m --workers 1 --no-probe --quiet";
    program("goodput", &format!("run http://{address} {flags} {rest} --out {}", out.display()))
}

/// A call of the floor client.
pub(super) fn floor(flags: &str) -> Vec<String> {
    program("goodput-floor", flags)
}

fn program(name: &str, flags: &str) -> Vec<String> {
    let mut words = vec![crate::published(name).display().to_string()];
    words.extend(flags.split_whitespace().map(str::to_owned));
    words
}

impl ClientRun {
    /// What the server knows.
    pub(super) fn truth(&self, path: &str) -> f64 {
        at(&self.truth, path)
    }

    /// What the client says of a latency: `said("ttft", 99)`.
    pub(super) fn said(&self, metric: &str, percent: u32) -> f64 {
        let path = match self.client {
            BenchClient::Floor => format!("/{metric}_ms/p{percent}"),
            BenchClient::Goodput => format!("/metrics/{metric}/percentiles/{percent}/value"),
        };
        at(&self.said, &path)
    }

    /// Its own lateness, in microseconds.
    pub(super) fn slip_us(&self, which: &str) -> f64 {
        let path = match self.client {
            BenchClient::Floor => format!("/slip_ms/{which}"),
            BenchClient::Goodput => format!("/load/slip_ms/{which}"),
        };
        at(&self.said, &path) * 1e3
    }

    /// A number that only the floor client says.
    pub(super) fn floor_said(&self, path: &str) -> f64 {
        at(&self.said, path)
    }

    /// The latest write of the server, in milliseconds: how far its own truth can be trusted.
    pub(super) fn worst_lateness_ms(&self) -> f64 {
        self.truth("/write_lateness_ms/max")
    }

    /// CPU time of the whole process per token that the server wrote.
    pub(super) fn cpu_us(&self) -> f64 {
        self.cpu_s * 1e6 / self.truth("/events")
    }
}
