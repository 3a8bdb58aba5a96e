//! The canary: a server of known timing inside the process, measured during the load by the same code.

use std::io;
use std::sync::Arc;

use goodput_engine::Canary;
use goodput_model::{Api, Nanos, Planned, Request};
use goodput_truth::{Timing, TruthServer, instants_in};
use goodput_wire::{Endpoint, EndpointSettings, RequestFormat};

/// Five answers a second, over before the next begins.
const EVERY: Nanos = Nanos::from_millis(200);
const TIMING: Timing = Timing { ttft: Nanos::from_millis(20), itl: Nanos::from_millis(5) };
const TOKENS: u32 = 4;

/// Starts the server; it stops when dropped.
pub fn start_canary() -> io::Result<(TruthServer, Canary)> {
    let server = TruthServer::start("127.0.0.1:0", TIMING)?;
    let endpoint = canary_endpoint(&server, true)?;
    let request = Request::prompt("x", Planned::new("canary", 1, Some(TOKENS)));
    let body = RequestFormat::new(Api::Chat, "canary", true).encode(&[], &request);
    Ok((server, Canary { endpoint, body, every: EVERY, truth: instants_in }))
}

/// The way to a truth server.
pub fn canary_endpoint(server: &TruthServer, keep_text: bool) -> io::Result<Arc<Endpoint>> {
    let url = format!("http://{}", server.address());
    let url = url.parse().map_err(io::Error::other)?;
    let settings = EndpointSettings { keep_text, ..EndpointSettings::new(url) };
    Ok(Arc::new(Endpoint::new(&settings).map_err(io::Error::other)?))
}
