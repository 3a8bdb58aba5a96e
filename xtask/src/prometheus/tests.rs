//! The check itself, against pages made here and served by a few lines.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use goodput_mock::faults::{Faults, MockFault};
use goodput_mock::metrics::{FinishReason, Finished, Gauges, MetricNames, MockMetrics};
use goodput_model::Nanos;

use super::*;

/// A page with 200 tokens on it, and everything a page can have.
fn page(dialect: MetricNames) -> String {
    let faults: Vec<MockFault> = ["503:1/10", "cut"].map(|text| text.parse().unwrap()).to_vec();
    let faults = Faults::new(faults, 1);
    let mut metrics = MockMetrics::new(16, faults.labels());
    let ms = Nanos::from_millis;
    for _ in 0..8 {
        metrics.count_connect();
        metrics.count_arrival();
        metrics.add_prefill(100, 16, ms(10), ms(50));
        metrics.add_first_token(ms(60));
        for _ in 1..25 {
            metrics.add_tokens(1, ms(10));
            metrics.count_event(Some(ms(2)));
        }
        metrics.add_finished(&Finished {
            reason: FinishReason::Length,
            e2e: ms(300),
            prefill: ms(50),
            decode: ms(240),
            prompt_tokens: 100,
            cached_tokens: 16,
            output_tokens: 25,
            max_tokens: Some(25),
            n: 1,
        });
    }
    metrics.count_refusal(503);
    metrics.note_scrape(ms(2_000));
    let gauges = Gauges {
        running: 3,
        waiting: 1,
        kv_blocks_used: 5,
        kv_blocks_total: 10,
        prefix_queries: 800,
        prefix_hits: 128,
        preemptions: 1,
        steps: 200,
        spec_drafted: 10,
        spec_accepted: 5,
    };
    metrics.render(dialect, &gauges, "org/model \"7B\" \\ \n next")
}

/// Serves one page to every client until it is dropped.
struct Served {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(page: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let _ = stream.read(&mut [0; 4096]);
                let length = page.len();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n";
                let rest = format!("Connection: close\r\nContent-Length: {length}\r\n\r\n{page}");
                let _ = stream.write_all(format!("{head}{rest}").as_bytes());
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // One more connection wakes it.
        let _ = std::net::TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn only_what_is_forced_is_forgiven() {
    let said = format!("vllm:a_total {COLON}\n{}\n\n", FORCED[0]);
    assert_eq!(complaints(&said), Vec::<&str>::new());
    let ours = format!("mock:a {COLON}");
    assert_eq!(complaints(&ours), [ours.as_str()]);
    assert_eq!(complaints("vllm:a no help text"), ["vllm:a no help text"]);
}

#[test]
#[ignore = "gets and runs Prometheus: cargo test -p xtask prometheus -- --ignored"]
fn promtool_reads_every_page() {
    let tools = Tools::find().unwrap();
    for ((dialect, name), known) in MetricNames::NAMES.into_iter().zip(DIALECTS) {
        assert_eq!(name, known);
        lint(&tools, &page(dialect)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(lint(&tools, "# TYPE a counter\na 1\n").unwrap_err().contains("a no help text"));
    assert!(lint(&tools, "a{b=\"c} 1\n").is_err());
}

#[test]
#[ignore = "gets and runs Prometheus: cargo test -p xtask prometheus -- --ignored"]
fn prometheus_scrapes_a_page() {
    let tools = Tools::find().unwrap();
    let served = Served::new(page(MetricNames::Vllm));
    scrape(&tools, &served.address, ("vllm:generation_tokens_total", 200)).unwrap();
}
