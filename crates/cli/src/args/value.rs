//! Parsers of values that several flags take.

use std::path::Path;
use std::time::Duration;

use goodput_model::{Delay, closest_name, parse_duration};

/// A time such as `90s`. A number without a unit is seconds.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; write `90s`, `2m`, or `500ms`"))
}

/// A time above zero.
pub(super) fn parse_positive_time(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        time if time.is_zero() => Err("must be longer than zero".to_owned()),
        time => Ok(time),
    }
}

/// A delay as [`Delay`] reads it. A number without a unit is seconds.
pub(super) fn parse_delay(text: &str) -> Result<Delay, String> {
    let is_number = text.parse::<f64>().is_ok_and(|number| number > 0.0);
    if is_number { format!("{text}s").parse() } else { text.parse() }
}

/// A percentile such as `99` or `p99`.
pub(super) fn parse_percentile(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.strip_prefix(['p', 'P']).unwrap_or(text).parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent),
        _ => Err("a percentile is between 0 and 100".to_owned()),
    }
}

/// A server's URL. `localhost:8000` means http://localhost:8000.
#[expect(clippy::unnecessary_wraps, reason = "clap expects a parser that can fail")]
pub(super) fn parse_url(text: &str) -> Result<String, String> {
    Ok(if is_address(text) { format!("http://{text}") } else { text.to_owned() })
}

/// A server's URL, or `mock[:SETTINGS]`.
pub(super) fn parse_target(text: &str) -> Result<String, String> {
    let name = text.split(':').next().unwrap_or(text);
    let is_misspelled = name != "mock" && !text.contains("://") && !is_address(text);
    if is_misspelled && closest_name(name, ["mock"]).is_some() {
        return Err("did you mean `mock`?".to_owned());
    }
    parse_url(text)
}

/// A target or the folder of a result, with or without `NAME=`.
pub(super) fn parse_side(text: &str) -> Result<String, String> {
    if Path::new(text).exists() || text.starts_with("mock:") {
        return Ok(text.to_owned());
    }
    match text.split_once('=') {
        Some((name, address)) if is_address(address) => Ok(format!("{name}=http://{address}")),
        Some(_) => Ok(text.to_owned()),
        None => parse_target(text),
    }
}

/// Whether a text without a scheme can only be the address of an HTTP server: it has a port, and not
/// that of HTTPS, or it is this machine.
fn is_address(text: &str) -> bool {
    let authority = text.split(['/', '?']).next().unwrap_or(text);
    let is_host = |host: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match address {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_name),
        }
    };
    match authority.rsplit_once(':') {
        _ if text.contains("://") => false,
        Some(("mock", _)) => false,
        Some((host, port)) => {
            is_host(host) && port.parse::<u16>().is_ok_and(|port| port != 0 && port != 443)
        }
        None => authority == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_seconds() {
        assert_eq!(parse_time("10").unwrap(), Duration::from_secs(10));
        assert_eq!(parse_time("1.5").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_time("2m").unwrap(), Duration::from_mins(2));
        assert_eq!(parse_positive_time("0").unwrap_err(), "must be longer than zero");
        assert!(parse_time("ten").unwrap_err().contains("`90s`"));
        assert!(
            parse_time("-1").is_err() && parse_time("nan").is_err() && parse_time("inf").is_err()
        );
        assert_eq!(parse_delay("2").unwrap(), Delay::Fixed(Duration::from_secs(2)));
        assert_eq!(parse_delay("exp:5s").unwrap(), Delay::Exponential(Duration::from_secs(5)));
    }

    #[test]
    fn percentiles_with_and_without_p() {
        for (text, expected) in [("99", 99.0), ("p99.9", 99.9), (" P50", 50.0)] {
            assert_eq!(parse_percentile(text).unwrap(), expected);
        }
        for text in ["", "p", "0", "p100", "pp50", "101"] {
            assert!(parse_percentile(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_http() {
        for address in ["localhost", "localhost:8000", "127.0.0.1:8000", "host:8000/v1", "[::1]:80"]
        {
            assert_eq!(parse_target(address).unwrap(), format!("http://{address}"));
        }
        let unchanged =
            ["http://h:1", "https://h", "mock", "mock:8000", "example.org", "h:443", "u:p@h:80"];
        for text in unchanged {
            assert_eq!(parse_target(text).unwrap(), text);
        }
        for text in ["mok", "mcok", "mok:slots=4"] {
            assert_eq!(parse_target(text).unwrap_err(), "did you mean `mock`?");
        }
    }

    #[test]
    fn sides_have_names() {
        let table = [
            ("a=localhost:8000", "a=http://localhost:8000"),
            ("h:1", "http://h:1"),
            ("mock:time_factor=1.05", "mock:time_factor=1.05"),
            ("new=mock:time_factor=1.05", "new=mock:time_factor=1.05"),
            ("runs/baseline", "runs/baseline"),
        ];
        for (text, expected) in table {
            assert_eq!(parse_side(text).unwrap(), expected);
        }
    }
}
