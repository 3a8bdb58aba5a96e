//! `--metrics-listen`: a page of metrics, and the words about it.

use std::net::SocketAddr;

use goodput_model::MetricsFormat;
use goodput_monitor::metrics::{self, Listen};

use crate::error::Failed;
use crate::output;

/// Shows the runs of one use of a verb.
pub(crate) fn start_metrics_page(address: SocketAddr, quiet: bool) -> Result<Listen, Failed> {
    let listen = Listen::default();
    let own = listen.clone();
    serve_metrics_page(address, quiet, move |format| own.render_page(format))?;
    Ok(listen)
}

/// Serves a page at `/metrics` until the process ends, and says where.
pub(crate) fn serve_metrics_page(
    address: SocketAddr,
    quiet: bool,
    page: impl Fn(MetricsFormat) -> String + Send + Sync + 'static,
) -> Result<(), Failed> {
    let chosen = metrics::serve_metrics(address, page).map_err(|error| {
        Failed::usage(format!("cannot listen on {address} (--metrics-listen): {error}"))
            .hint("use another address of this machine; port 0 picks a free port")
    })?;
    // A port that was left open can be known in no other way.
    if !quiet || address.port() == 0 {
        output::print_note(&format!("metrics of this run: http://{chosen}/metrics"));
    }
    output::warn_if_open(
        chosen,
        "anyone who can connect can read target, model, and figures at /metrics, which has no \
         password",
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_that_is_taken_is_an_error_with_a_hint() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let failed = start_metrics_page(listener.local_addr().unwrap(), true).unwrap_err();
        assert!(failed.to_string().contains("--metrics-listen"), "{failed}");
    }
}
