//! The truth server as a program.
//!
//! `goodput-truth --port P --ttft-us N --itl-us N [--seconds S]`: prints the address it listens on,
//! serves for S seconds or until its standard input ends, and prints what really happened as JSON.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};

use goodput_bench::{flag_or_default, optional_flag, reserve_descriptors};
use goodput_clock::now;
use goodput_model::Nanos;
use goodput_truth::{Report, Timing, TruthServer, serve_until};

fn main() -> io::Result<()> {
    reserve_descriptors();
    let address = format!("127.0.0.1:{}", flag_or_default("--port", 8300u16));
    let timing = Timing {
        ttft: Nanos::from_micros(flag_or_default("--ttft-us", 50_000)),
        itl: Nanos::from_micros(flag_or_default("--itl-us", 10_000)),
    };
    let report = match optional_flag("--seconds") {
        Some(seconds) => {
            let listener = TcpListener::bind(address)?;
            announce(listener.local_addr()?)?;
            serve_until(listener, timing, now() + Nanos::from_secs_f64(seconds))?
        }
        None => until_input_ends(TruthServer::start(&address, timing)?)?,
    };
    writeln!(io::stdout(), "{}", serde_json::to_string(&report)?)
}

fn until_input_ends(server: TruthServer) -> io::Result<Report> {
    announce(server.address())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    server.stop()
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{address}")?;
    out.flush()
}
