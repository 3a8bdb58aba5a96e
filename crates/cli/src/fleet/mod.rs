//! Several clients that send one load: who is who, a common start, and one result.
//!
//! Every client is started with the same words. Client 0 (`first`) decides what is measured and when,
//! and merges; the others (`other`) do as they are told, and keep what they measured whatever
//! happens to it.

mod first;
mod launch;
mod other;
mod totals;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_fleet::{FleetError, Token, detect};
use goodput_model::{Plan, Shard, ShardFacts};

pub(crate) use first::First;
pub(crate) use launch::fleet;
pub(crate) use other::Other;

use crate::args::{ShardArgs, ShardName};
use crate::error::Failed;

/// Where clients meet, where nobody says which port.
const PORT: u16 = 8470;

/// The variable that holds the word that all clients of a fleet know.
const TOKEN: &str = "GOODPUT_FLEET_TOKEN";

/// What this client has to do with others.
pub(crate) enum Part {
    /// There are none.
    Whole,
    /// It sends its shard, and nobody waits for anybody.
    Alone(Shard),
    /// It leads.
    First(First),
    /// It is led.
    Other(Other),
}

/// Where and with whom.
struct Meeting {
    shard: Shard,
    /// Host and port.
    at: String,
    token: Option<Token>,
    join_within: Duration,
}

impl Part {
    /// Which part of the load it sends.
    pub(crate) fn shard(&self) -> Shard {
        match self {
            Self::Whole => Shard::WHOLE,
            Self::Alone(shard) => *shard,
            Self::First(First(meeting)) | Self::Other(Other(meeting)) => meeting.shard,
        }
    }

    /// By what was typed, and by the environment.
    pub(crate) fn of(args: &ShardArgs) -> Result<Self, Failed> {
        let (shard, host) = match args.shard {
            None => return Ok(Self::Whole),
            Some(ShardName::Is(shard)) => (shard, None),
            Some(ShardName::Auto) => {
                let found = detect(|name| std::env::var(name).ok()).map_err(launch::failed)?;
                let port = found.rendezvous_port.unwrap_or(PORT);
                let host = found.rendezvous_host.map(|host| host_and_port(&host, port));
                if found.shard.is_part() && host.is_none() && args.rendezvous.is_none() {
                    return Err(Failed::usage(format!(
                        "{} says which client this is, and not where client 0 is",
                        found.by
                    ))
                    .hint("--rendezvous HOST:PORT says it"));
                }
                (found.shard, host)
            }
        };
        if !shard.is_part() {
            return Ok(Self::Whole);
        }
        let at: Option<String> = args.rendezvous.clone().or(host);
        let Some(at) = at else { return Ok(Self::Alone(shard)) };
        let at = with_port(at);
        let meeting = Meeting { shard, at, token: token()?, join_within: args.join_within };
        Ok(if shard.index() == 0 {
            Self::First(First(meeting))
        } else {
            Self::Other(Other(meeting))
        })
    }
}

/// The folder of one part among the parts of a run.
fn part(parts: &Path, rank: u32) -> PathBuf {
    parts.join(format!("{rank:04}"))
}

/// What lies beside the parts while they are made: who finds it shares the disk of client 0.
fn mark(parts: &Path, fleet: &str) -> PathBuf {
    parts.join(format!(".fleet-{}", fleet.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-")))
}

/// A shard of this plan that waits for nobody.
pub(crate) fn alone(shard: Shard, plan: &Plan) -> Result<ShardFacts, Failed> {
    check(plan, shard)?;
    if plan.measure.until.is_some() {
        return Err(Failed::usage("each client would end by itself, by what it alone has seen")
            .hint("--rendezvous HOST:PORT of client 0, who then ends it for all"));
    }
    Ok(ShardFacts { shard, fleet: None, clock: None })
}

/// What cannot be sent in parts.
fn check(plan: &Plan, shard: Shard) -> Result<(), Failed> {
    if plan.target.url.starts_with("mock") {
        return Err(Failed::usage("each client would have a simulated engine of its own")
            .hint("start one with `goodput mock --listen 127.0.0.1:8000` and give its address"));
    }
    // Users can be fewer than clients; a client that may have nothing under way would wait for ever.
    match plan.load.mode.cap().filter(|cap| *cap < shard.of()) {
        None => Ok(()),
        Some(cap) => Err(Failed::usage(format!(
            "{cap} at once cannot be dealt out to {} clients",
            shard.of()
        ))
        .hint("--max-concurrency takes at least one for each client")),
    }
}

fn with_port(at: String) -> String {
    let has_port = at.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    if has_port { at } else { host_and_port(&at, PORT) }
}

/// An address of IPv6 has colons of its own.
fn host_and_port(host: &str, port: u16) -> String {
    let is_bare = host.contains(':') && !host.starts_with('[');
    if is_bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The addresses of a meeting place.
fn resolve(at: &str) -> Result<Vec<SocketAddr>, Failed> {
    let found = at.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    found.map_err(|error| {
        Failed::usage(format!("cannot find `{at}`: {error}"))
            .hint("--rendezvous takes host:port of client 0")
    })
}

fn token() -> Result<Option<Token>, Failed> {
    match std::env::var(TOKEN) {
        Ok(text) => Token::new(&text).map(Some).map_err(|error| said(&error)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failed::usage(format!("{TOKEN} is no text"))),
    }
}

/// What a meeting cannot do, in words for the terminal.
fn said(error: &FleetError) -> Failed {
    let failed = Failed::usage(goodput_report::plain(&error.to_string()));
    match error.hint() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_place_has_a_port() {
        let cases = [
            ("node1", "node1:8470"),
            ("node1:9000", "node1:9000"),
            ("10.0.0.1", "10.0.0.1:8470"),
            ("[::1]:9", "[::1]:9"),
            ("[::1]", "[::1]:8470"),
            ("fe80::1", "[fe80::1]:8470"),
        ];
        for (typed, meant) in cases {
            assert_eq!(with_port(typed.to_owned()), meant);
        }
    }
}
