//! A client that only reads and counts: the least CPU a streamed event can cost on this machine.
//!
//! `goodput-floor --port P --streams N --tokens T --seconds S`: a closed loop of N users; prints
//! events, CPU time and the latencies it saw as JSON.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use goodput_bench::{Distribution, Poller, cpu_time, flag};
use goodput_clock::now;
use goodput_model::Nanos;
use serde_json::json;

struct User {
    stream: TcpStream,
    sent: Nanos,
    last_event: Option<Nanos>,
}

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> io::Result<()> {
    let port: u16 = flag("--port", 8300);
    let body = format!(
        r#"{{"max_tokens":{},"messages":[{{"content":"x","role":"user"}}],"model":"m","stream":true}}"#,
        flag("--tokens", 100)
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut poller = Poller::new()?;
    let mut users = Vec::new();
    for number in 0..flag("--streams", 100u64) {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        poller.add(&stream, number)?;
        users.push(User { stream, sent: Nanos::ZERO, last_event: None });
    }
    let (begin, cpu_before) = (now(), cpu_time());
    let end = begin + Nanos::from_millis(1000 * flag("--seconds", 10));
    for user in &mut users {
        user.ask(&request)?;
    }
    let (mut events, mut reads) = (0u64, 0u64);
    let (mut ttft, mut itl) = (Distribution::default(), Distribution::default());
    let mut buffer = vec![0; 65536];
    while now() < end {
        for number in poller.wait(None)? {
            let user = &mut users[number as usize];
            let n = match user.stream.read(&mut buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            let at = now();
            reads += 1;
            let seen = memchr::memmem::find_iter(&buffer[..n], b"data: {").count() as u64;
            if seen > 0 {
                events += seen;
                match user.last_event {
                    None => ttft.push((at - user.sent).0),
                    Some(last) => itl.push((at - last).0),
                }
                user.last_event = Some(at);
            }
            if memchr::memmem::find(&buffer[..n], b"[DONE]").is_some() {
                user.ask(&request)?;
            }
        }
    }
    let cpu = cpu_time() - cpu_before;
    println!(
        "{}",
        json!({
            "events": events, "reads": reads, "seconds": (now() - begin).as_secs(),
            "cpu_s": cpu.as_secs(), "cpu_us_per_event": cpu.as_secs() * 1e6 / events.max(1) as f64,
            "ttft_ms": ttft.summary(), "itl_ms": itl.summary(),
        })
    );
    Ok(())
}

impl User {
    fn ask(&mut self, request: &str) -> io::Result<()> {
        self.sent = now();
        self.last_event = None;
        (&self.stream).write_all(request.as_bytes())
    }
}
