//! Serves the page at `/metrics`.

use std::net::{IpAddr, TcpListener};

use goodput_http::{HttpLimits, HttpReply, HttpRequest, Method, Response, Site, is_host_allowed};
use goodput_model::{MetricsFormat, Nanos};

/// Bytes of a request's head at most.
pub(super) const MOST_HEAD: usize = 8 * 1024;

/// Serves a page until the process ends. A client may take `patience` for its request, and again for
/// the response.
pub(super) fn start_server(
    page: impl Fn(MetricsFormat) -> String + Send + Sync + 'static,
    patience: Nanos,
    listener: TcpListener,
) -> std::io::Result<()> {
    let limits = HttpLimits {
        name: "scrape",
        clients: 8,
        head_bytes: MOST_HEAD,
        body_bytes: 0,
        head_wait: patience,
        wait: patience,
    };
    let address = listener.local_addr()?.ip();
    goodput_http::start_server(MetricsSite { page, address }, limits, listener)
}

struct MetricsSite<P> {
    page: P,
    /// Where it listens.
    address: IpAddr,
}

impl<P: Fn(MetricsFormat) -> String + Send + Sync + 'static> Site for MetricsSite<P> {
    fn check(&self, request: &HttpRequest) -> Result<(), Response> {
        if !matches!(request.method, Method::Get | Method::Head) {
            return Err(Response::text("405 Method Not Allowed").with_header("Allow", "GET, HEAD"));
        }
        // Browsers never leave the name out; some scrapers do.
        let is_ours = |host| is_host_allowed(host, self.address);
        if !request.has_header("host") || request.header("host").is_some_and(is_ours) {
            return Ok(());
        }
        let status = "403 Forbidden";
        let words = format!("{status}: use an address or a name of this machine\n");
        Err(Response::new(status, "text/plain; charset=utf-8", words))
    }

    fn reply(&self, request: &HttpRequest) -> HttpReply {
        let ok = |content_type, body: String| Response::new("200 OK", content_type, body);
        let response = match request.path.as_str() {
            "/metrics" => {
                let accept: Vec<&str> = request.header_values("accept").collect();
                let format = accepted_format(&accept.join(","));
                ok(content_type(format), (self.page)(format))
            }
            "/" => ok(
                "text/plain; charset=utf-8",
                "goodput: the metrics of this run are at /metrics\n".to_owned(),
            ),
            _ => Response::text("404 Not Found"),
        };
        response.into()
    }
}

fn content_type(format: MetricsFormat) -> &'static str {
    match format {
        MetricsFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
        MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
    }
}

/// OpenMetrics where it is named and not less welcome than plain text.
fn accepted_format(accept: &str) -> MetricsFormat {
    let welcome = |kind: &str| {
        let of = |item: &str| {
            let mut parts = item.split(';').map(str::trim);
            let is_meant = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(kind));
            let q = parts
                .find_map(|part| part.strip_prefix("q="))
                .map_or(Some(1.0), |q| q.parse().ok());
            q.filter(|_| is_meant)
        };
        accept.split(',').filter_map(of).fold(0.0_f64, f64::max)
    };
    let open = welcome("application/openmetrics-text");
    if open > 0.0 && open >= welcome("text/plain") {
        MetricsFormat::OpenMetrics
    } else {
        MetricsFormat::Text
    }
}
