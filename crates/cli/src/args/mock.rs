//! Arguments of `goodput mock`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use goodput_sim::{SETTINGS, SettingScope};
use goodput_workload::PRESETS;

use super::value::parse_positive_time;

const MOCK_EXAMPLES: &str = "\
Examples:
  goodput mock --listen 127.0.0.1:8000
      The default profile: 50 ms TTFT, 10 ms ITL
  goodput mock --profile llama-70b-8xh100
      Continuous batching with KV and prefix cache
  goodput mock --fault 500:5% --fault stall=2s:1/100 --fault refuse@30s+5s
      With faults
  goodput mock --ttft lognormal:80ms:0.5 --itl 20ms --slots 16
      With these delays
  goodput mock --profile llama-70b-8xh100 --curve 1,5,10,20,30
      How the profile performs at these rates, in simulated time
  goodput mock --profile llama-8b-1xh200 --show-profile > mine.toml
      A profile to edit
  goodput run mock:ttft=20ms,itl=5ms,slots=4 --rate 10
      The same settings inside a run
  goodput run mock:llama-8b-1xh200,max_num_seqs=64,fault=429:1% --rate 10
      A profile, a changed setting, and a fault inside a run

Delays are fixed (50ms), uniform:40ms:60ms, exp:50ms (mean), or lognormal:50ms:0.5 (median, sigma).
Settings, faults, and profiles: docs/mock.md, docs/profiles.md.";

/// Serve the mock, a simulated engine with an OpenAI API
///
/// The mock models a serving engine and serves chat, completions, embeddings, models, tokenize,
/// health, and /metrics over HTTP/1.1 and HTTP/2. Its timing is known by construction, and it can
/// misbehave on request. Ctrl-C stops it and prints what it did.
#[derive(Debug, Args)]
#[command(after_long_help = MOCK_EXAMPLES)]
pub(crate) struct MockArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    pub(crate) listen: String,

    /// Profile of the engine, or a .toml file
    ///
    /// Profiles: `default` (50 ms TTFT, 10 ms ITL, 128 slots), `fast` (no delays), `demo`, `light`,
    /// `llama-8b-1xh200`, `llama-70b-8xh100`, `cpu-laptop`.
    #[arg(long, value_name = "NAME|FILE", default_value = "default")]
    pub(crate) profile: String,

    /// Change a setting of the profile, such as `max_num_seqs=64`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key_value, long_help = set_help())]
    pub(crate) set: Vec<(String, String)>,

    /// Delay from getting a slot to the first token
    #[arg(long, value_name = "DELAY")]
    pub(crate) ttft: Option<String>,

    /// Delay from one token to the next
    #[arg(long, value_name = "DELAY")]
    pub(crate) itl: Option<String>,

    /// Requests served at the same time; others wait in order of arrival
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<String>,

    /// Name of the model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Name of an adapter to serve in addition to the model; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) lora: Vec<String>,

    /// Seed of everything that is drawn at random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Inject a fault: `KIND[=VALUE][:SHARE][@FROM[+FOR]]`; can be repeated
    #[arg(long, value_name = "FAULT", long_help = fault_help_text())]
    pub(crate) fault: Vec<String>,

    /// Dialect of /metrics: vllm, sglang, tgi, or llamacpp
    #[arg(long, value_name = "DIALECT", default_value = "vllm")]
    pub(crate) metrics: String,

    /// Share of each chat answer to send as reasoning, such as `40%`
    #[arg(long, value_name = "SHARE")]
    pub(crate) reasoning: Option<String>,

    /// Share of the requests with tools that get a call if the choice is free, such as `40%`
    #[arg(long, value_name = "SHARE")]
    pub(crate) tool_calls: Option<String>,

    /// Environment variable that holds the key that requests must carry
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,

    /// Write the true timing of each request to this file, as a request log
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,

    /// PEM file with the certificate chain, to serve https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// PEM file with the key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Print the profile as TOML, as a start for your own
    #[arg(long)]
    pub(crate) show_profile: bool,

    /// Print how the profile performs at these rates (requests per second), in simulated time
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = parse_simulated_rate, conflicts_with = "show_profile")]
    pub(crate) curve: Vec<f64>,

    /// Preset that --curve sends; its sessions count as single requests
    #[arg(long, value_name = "NAME", value_parser = PRESETS, default_value = "chat", requires = "curve")]
    pub(crate) workload: String,

    /// Simulated time per rate of --curve
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time, default_value = "5m", requires = "curve")]
    pub(crate) curve_duration: Duration,

    /// Print the curve as JSON
    #[arg(long, requires = "curve")]
    pub(crate) json: bool,
}

pub(super) fn parse_key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_simulated_rate(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate <= 100_000.0)
        .ok_or_else(|| "a rate is a number of requests per second, as in 1,5,20".to_owned())
}

/// The settings, group by group.
fn set_help() -> String {
    let of = |(scope, heading): (SettingScope, &str)| {
        let own = SETTINGS.iter().filter(|setting| setting.scope == scope);
        let own = own.map(|one| format!("  {}={}  {}", one.key, one.value, one.about));
        format!("Settings of {heading}:\n{}", own.collect::<Vec<_>>().join("\n"))
    };
    let groups = SettingScope::ALL.map(of).join("\n");
    format!("Change a setting of the profile; can be repeated\n\n{groups}")
}

fn fault_help_text() -> String {
    format!(
        "Inject a fault; can be repeated\n\n\
         KIND[=VALUE][:SHARE][@FROM[+FOR]]. SHARE is 10% of the requests or 1/10, every tenth \
         (default: all). @30s+5s limits it to requests that arrive from 30 s after the start, for \
         5 s. Kinds:\n{}",
        goodput_mock::MockFault::forms().collect::<Vec<_>>().join(", ")
    )
}
