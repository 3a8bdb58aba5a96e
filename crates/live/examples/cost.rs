//! What the proxy costs: added latency, processor time per event and memory per stream, on the loopback.
//!
//! `cargo run --release -p goodput-proxy --example cost [latency|speed|memory]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a measurement for developers"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use goodput_clock::{Timer, now, pin_to};
use goodput_live::{Answered, Limits, ObservedRequest, Proxy, Settings, Upstream, Witness};
use goodput_model::{Api, ConnectionPolicy, Exchange, Http, Nanos};
use goodput_truth::{Timing, TruthServer, instants_in};
use goodput_wire::{Client, Endpoint};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct NoWitness;

impl Witness for NoWitness {
    fn request_seen(&self, _: ObservedRequest) {}
    fn answer_seen(&self, _: Answered) {}
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, word, url] = arguments.as_slice()
        && word == "serve"
    {
        return serve(url);
    }
    match arguments.get(1).map(String::as_str) {
        Some("latency") => latency(),
        Some("speed") => speed(),
        Some("memory") => memory(),
        _ => {
            latency();
            speed();
            memory();
        }
    }
}

/// The proxy, in a process of its own.
fn serve(url: &str) {
    let _ = pin_to(0);
    let settings = Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        upstream: Upstream {
            url: url.parse().unwrap(),
            http: Http::Http1,
            cacert: None,
            insecure: false,
        },
        workers: 1,
        session_header: None,
        keep_text: false,
        limits: Limits::default(),
    };
    let proxy = Proxy::start(settings, Arc::new(NoWitness)).unwrap();
    println!("http://{}", proxy.address());
    let _ = std::io::stdin().read_line(&mut String::new());
}

struct Behind {
    child: Child,
    url: String,
}

impl Behind {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }

    /// Processor time so far, in seconds.
    fn processor(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    }

    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn body(tokens: u32) -> Bytes {
    Bytes::from(format!(
        r#"{{"model":"m","stream":true,"max_tokens":{tokens},"messages":[{{"role":"user","content":"x"}}]}}"#
    ))
}

/// A number of requests, at a rate or all at once.
fn load(url: &str, count: usize, tokens: u32, gap: Nanos) -> Vec<Exchange> {
    let settings = goodput_wire::EndpointSettings {
        url: url.parse().unwrap(),
        api: Api::Chat,
        stream: true,
        http: Http::Http1,
        connections: ConnectionPolicy::Reuse,
        api_key: None,
        headers: Vec::new(),
        cacert: None,
        insecure: false,
        keep_text: true,
    };
    let endpoint = Arc::new(Endpoint::new(&settings).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let client = Rc::new(Client::new(endpoint));
        let timer = Timer::new().unwrap();
        let begin = now();
        let mut tasks = Vec::new();
        for index in 0..count {
            timer.sleep_until(begin + Nanos(gap.0 * index as u64)).await;
            let client = Rc::clone(&client);
            tasks.push(tokio::task::spawn_local(async move {
                let mut exchange = Exchange::default();
                client.send(body(tokens), &mut exchange).await;
                exchange
            }));
        }
        let mut exchanges = Vec::new();
        for task in tasks {
            exchanges.push(task.await.unwrap());
        }
        exchanges
    })
}

/// From the server's write to the client's stamp, for every token, and from request to first token.
fn delays(exchanges: &[Exchange]) -> [Vec<u64>; 2] {
    let mut tokens = Vec::new();
    let mut firsts = Vec::new();
    for exchange in exchanges.iter().skip(exchanges.len() / 5) {
        assert_eq!(exchange.failure, None);
        let written = instants_in(exchange.text.as_deref().unwrap());
        tokens.extend(exchange.chunks.iter().zip(written).map(|(c, w)| c.at.0.saturating_sub(w.0)));
        let stamps = exchange.stamps;
        firsts.push((stamps.first_token.unwrap() - stamps.sent_first.unwrap()).0);
    }
    tokens.sort_unstable();
    firsts.sort_unstable();
    [tokens, firsts]
}

fn latency() {
    let timing = Timing { ttft: Nanos::from_millis(5), itl: Nanos::from_millis(2) };
    let server = TruthServer::start("127.0.0.1:0", timing).unwrap();
    let direct = format!("http://{}", server.address());
    let behind = Behind::start(&direct);
    for round in 0..3 {
        let gap = Nanos::from_millis(2);
        let before = behind.processor();
        let [plain, through] = [&direct, &behind.url].map(|url| delays(&load(url, 1500, 64, gap)));
        let used = behind.processor() - before;
        for (name, which) in [("token", 0), ("request", 1)] {
            let at = |values: &[u64], share: f64| {
                values[((values.len() - 1) as f64 * share) as usize] as f64 / 1000.0
            };
            let line: Vec<_> = [0.5, 0.9, 0.99]
                .iter()
                .map(|share| {
                    let (a, b) = (at(&plain[which], *share), at(&through[which], *share));
                    format!("p{:.0} {a:.0} -> {b:.0} us (+{:.0})", share * 100.0, b - a)
                })
                .collect();
            println!("round {round}, delay of a {name}: {}", line.join(", "));
        }
        println!("round {round}, processor: {:.1} us per event", used * 1e6 / (1500.0 * 64.0));
    }
    drop(behind);
    server.stop().unwrap();
}

fn speed() {
    let timing = Timing { ttft: Nanos(1), itl: Nanos(1) };
    let server = TruthServer::start("127.0.0.1:0", timing).unwrap();
    let behind = Behind::start(&format!("http://{}", server.address()));
    let (before, begin) = (behind.processor(), now());
    let exchanges = load(&behind.url, 32, 20_000, Nanos::ZERO);
    let events: usize = exchanges.iter().map(|exchange| exchange.chunks.len()).sum();
    let (used, took) = (behind.processor() - before, (now() - begin).0 as f64 / 1e9);
    println!(
        "{events} events in {took:.2} s: {:.0} a second, {:.0} a second of its processor",
        events as f64 / took,
        events as f64 / used
    );
    drop(behind);
    server.stop().unwrap();
}

fn memory() {
    let timing = Timing { ttft: Nanos::from_millis(20), itl: Nanos::from_millis(100) };
    let server = TruthServer::start("127.0.0.1:0", timing).unwrap();
    let behind = Behind::start(&format!("http://{}", server.address()));
    load(&behind.url, 10, 2, Nanos::ZERO);
    let before = behind.memory();
    let count = 1000;
    let url = behind.url.clone();
    let loading = std::thread::spawn(move || load(&url, count, 64, Nanos::from_millis(1)));
    goodput_clock::pause(Nanos::from_millis(5000));
    let most = behind.memory();
    loading.join().unwrap();
    let idle = (behind.memory().saturating_sub(before)) as f64 / count as f64 / 1024.0;
    println!("{idle:.1} KiB each when their connections are idle");
    let each = (most - before) as f64 / count as f64 / 1024.0;
    println!("{count} streams of 64 tokens, {each:.1} KiB each");
    drop(behind);
    server.stop().unwrap();
}
