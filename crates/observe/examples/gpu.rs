//! What the driver tells of this machine's GPUs: facts, then one line per GPU and second.
//!
//! `cargo run -p goodput-observe --example gpu -- 10`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::process::ExitCode;

use goodput_model::Nanos;
use goodput_observe::Nvml;

fn main() -> ExitCode {
    let seconds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let begin = goodput_clock::now();
    let nvml = match Nvml::open(&[]) {
        Ok(nvml) => nvml,
        Err(because) => {
            println!("{because}");
            return ExitCode::FAILURE;
        }
    };
    let opened = goodput_clock::now() - begin;
    println!("driver {}, opened in {:.1} ms", nvml.driver(), opened.as_ms());
    for facts in nvml.facts() {
        println!("{facts:?}");
    }
    for second in 0..=seconds {
        goodput_clock::sleep_until(begin + opened + Nanos::from_millis(1000 * second), || false);
        let at = goodput_clock::now() - begin;
        let looks = nvml.sample(at);
        let took = goodput_clock::now() - begin - at;
        for look in looks {
            println!("took {:.2} ms {look:?}", took.as_ms());
        }
    }
    ExitCode::SUCCESS
}
