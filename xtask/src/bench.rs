//! `cargo xtask bench`: what a streamed event costs, as a ratio to the least it can cost here.
//!
//! The truth server runs on one core, the client under test on the other. Each row is one run of the
//! floor client and one of goodput against fresh servers, so the two meet the same machine.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Streams of each row; answers of 100 tokens, 20 ms apart.
const STREAMS: [u32; 4] = [1, 100, 256, 1000];
const SECONDS: u32 = 10;
const PORT: u16 = 8390;

#[expect(clippy::print_stdout, reason = "its result")]
pub(crate) fn bench() -> Result<(), String> {
    println!("closed loop, 100 tokens per answer, ITL 20 ms, TTFT 50 ms, {SECONDS} s per run");
    println!(
        "server on CPU 0, client on CPU 1; latencies in ms as the client said / as they were\n"
    );
    println!(
        "streams  client   events  CPU us/event  ratio     TTFT p50        TTFT p99        ITL p99"
    );
    for streams in STREAMS {
        let floor = measure(streams, &floor_command(streams), &floor_result)?;
        let ours = measure(streams, &goodput_command(streams), &goodput_result)?;
        floor.print("floor", &floor);
        ours.print("goodput", &floor);
    }
    Ok(())
}

/// One run of one client.
struct Row {
    streams: u32,
    events: f64,
    cpu_us: f64,
    said: [f64; 3],
    truth: [f64; 3],
}

impl Row {
    #[expect(clippy::print_stdout, reason = "its result")]
    fn print(&self, name: &str, floor: &Row) {
        let pairs = self.said.iter().zip(self.truth);
        let latencies: String = pairs
            .fold(String::new(), |line, (said, truth)| line + &format!("  {said:6.2}/{truth:6.2}"));
        println!(
            "{:7}  {name:7} {:7} {:13.2} {:6.2} {latencies}",
            self.streams,
            self.events,
            self.cpu_us,
            self.cpu_us / floor.cpu_us
        );
    }
}

/// What a client says of a run: events and latencies (TTFT p50, TTFT p99, ITL p99).
type Said = (f64, [f64; 3]);

fn measure(streams: u32, client: &[String], read: &dyn Fn(&Value) -> Said) -> Result<Row, String> {
    let server = start_server()?;
    let output = Command::new("taskset")
        .args(["-c", "1", "bash", "-c", "TIMEFORMAT='%U %S'; time \"$@\"", "bash"])
        .args(client)
        .output()
        .map_err(|error| format!("cannot run taskset: {error}"))?;
    let truth = server.wait_with_output().map_err(|error| error.to_string())?;
    let truth: Value = serde_json::from_slice(&truth.stdout).map_err(|error| error.to_string())?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let (events, latencies) = read(&said);
    let number = |path: &str| truth.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let times = String::from_utf8_lossy(&output.stderr);
    let seconds: f64 = times
        .lines()
        .last()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse::<f64>().ok())
        .sum();
    Ok(Row {
        streams,
        events,
        cpu_us: seconds * 1e6 / events,
        said: latencies,
        truth: [number("/ttft_ms/p50"), number("/ttft_ms/p99"), number("/itl_ms/p99")],
    })
}

fn start_server() -> Result<Child, String> {
    let seconds = (SECONDS + 2).to_string();
    let port = PORT.to_string();
    let server = Command::new("taskset")
        .args(["-c", "0", "target/release/goodput-truth", "--port", &port, "--itl-us", "20000"])
        .args(["--seconds", &seconds])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the truth server: {error}"))?;
    // It listens at once; the client's first connection waits in the backlog if need be.
    for _ in 0..100 {
        if std::net::TcpStream::connect(("127.0.0.1", PORT)).is_ok() {
            return Ok(server);
        }
        std::thread::yield_now();
    }
    Ok(server)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn floor_command(streams: u32) -> Vec<String> {
    words(&format!(
        "target/release/goodput-floor --port {PORT} --streams {streams} --tokens 100 --seconds {SECONDS}"
    ))
}

fn floor_result(said: &Value) -> Said {
    let number = |path: &str| said.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    (number("/events"), [number("/ttft_ms/p50"), number("/ttft_ms/p99"), number("/itl_ms/p99")])
}

fn goodput_command(streams: u32) -> Vec<String> {
    let out = std::env::temp_dir().join(format!("goodput-bench-{}-{streams}", std::process::id()));
    let flags = format!(
        "--concurrency {streams} --duration {SECONDS}s --drain 100ms --input-tokens 10 --max-tokens 100"
    );
    let rest = "--model m --workers 1 --no-probe --quiet --json";
    words(&format!(
        "target/release/goodput run http://127.0.0.1:{PORT} {flags} {rest} --out {}",
        out.display()
    ))
}

fn goodput_result(said: &Value) -> Said {
    let number = |path: &str| said.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let percentile = |metric: &str, percent: &str| {
        number(&format!("/metrics/{metric}/percentiles/{percent}/value"))
    };
    // Every gap is an event, and every answer has one event more.
    let events = number("/metrics/itl/n") + number("/metrics/ttft/n");
    (events, [percentile("ttft", "50"), percentile("ttft", "99"), percentile("itl", "99")])
}
