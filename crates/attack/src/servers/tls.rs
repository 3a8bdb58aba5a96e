//! TLS: certificates that are not for us, handshakes that are none, and ends without a word.

use std::io::{self, Write};
use std::sync::Arc;

use goodput_clock::pause;
use goodput_model::Nanos;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::peer::{
    Act, CHUNKED, FINISH, PeerConnection, STREAM, TOKEN, When, chunk, close, flood, good_events,
    hold,
};
use super::{CUT, Comes, FIRST, SECONDS, ServerRow};
use crate::program::KEY;
use Comes::{Fails, Passes};

const TLS: Comes = Fails(&["tls"]);
const CA: &[&str] = &["--cacert", "ca.pem"];

/// From the first day of one year to the first day of another.
#[derive(Clone, Copy)]
struct Validity {
    from: i32,
    to: i32,
}

const VALID: Validity = Validity { from: 2020, to: 2120 };
const EXPIRED: Validity = Validity { from: 2001, to: 2002 };
const FUTURE: Validity = Validity { from: 2110, to: 2120 };

type Made<T> = Result<T, Box<dyn std::error::Error>>;

/// An authority and what it vouches for.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// What makes it trusted.
    authority: String,
    root: CertificateDer<'static>,
}

impl Identity {
    fn new(name: &str, valid: Validity) -> Made<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        (params.not_before, params.not_after) =
            (date_time_ymd(valid.from, 1, 1), date_time_ymd(valid.to, 1, 1));
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &authority)?;
        Ok(Self {
            chain: vec![leaf.der().clone()],
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            authority: authority.pem(),
            root: authority.der().clone(),
        })
    }

    /// A certificate that vouches for itself.
    fn self_signed() -> Made<Self> {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
        let root = made.cert.der().clone();
        Ok(Self { chain: vec![root.clone()], key, authority: made.cert.pem(), root })
    }

    fn config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        asks: bool,
    ) -> Made<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)?;
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.root.clone())?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        Ok(builder.with_single_cert(self.chain.clone(), self.key.clone_key())?)
    }

    fn tls_row(&self, name: &'static str, comes: Comes, act: Act) -> Made<ServerRow> {
        let config = self.config(rustls::DEFAULT_VERSIONS, false)?;
        Ok(self.tls_row_with(name, comes, act, config))
    }

    fn tls_row_with(
        &self,
        name: &'static str,
        comes: Comes,
        act: Act,
        config: ServerConfig,
    ) -> ServerRow {
        let mut row = ServerRow::new(name, comes, act);
        row.script.tls = Some(Arc::new(config));
        row.script.authority = Some(self.authority.clone());
        row
    }
}

/// None if certificates cannot be made; their absence is seen in the number of cases.
pub(super) fn tls_rows() -> Vec<ServerRow> {
    let made = || Ok([certificate_rows()?, version_rows()?, handshake_rows()?, stream_rows()?]);
    let made: Made<[Vec<ServerRow>; 4]> = made();
    made.into_iter().flatten().flatten().collect()
}

fn good_answer_act() -> Act {
    close([CHUNKED, &chunk(&good_events()), "0\r\n\r\n"].concat())
}

fn certificate_rows() -> Made<Vec<ServerRow>> {
    let valid = Identity::new("127.0.0.1", VALID)?;
    let (expired, early) =
        (Identity::new("127.0.0.1", EXPIRED)?, Identity::new("127.0.0.1", FUTURE)?);
    let (named, alone) = (Identity::new("elsewhere.test", VALID)?, Identity::self_signed()?);
    Ok(vec![
        valid.tls_row("authority", Passes, good_answer_act())?.with_args(CA).only_from(FIRST),
        valid.tls_row("unknown_authority", TLS, good_answer_act())?.only_from(FIRST),
        expired.tls_row("expired", TLS, good_answer_act())?.with_args(CA).only_from(FIRST),
        expired
            .tls_row("expired_insecure", Passes, good_answer_act())?
            .with_args(&["--insecure"])
            .only_from(FIRST),
        early.tls_row("not_yet_valid", TLS, good_answer_act())?.with_args(CA).only_from(FIRST),
        named.tls_row("wrong_name", TLS, good_answer_act())?.with_args(CA).only_from(FIRST),
        alone.tls_row("self_signed", TLS, good_answer_act())?.only_from(FIRST),
        alone
            .tls_row("self_signed_named", Passes, good_answer_act())?
            .with_args(CA)
            .only_from(FIRST),
        alone
            .tls_row("self_signed_insecure", Passes, good_answer_act())?
            .with_args(&["--insecure"])
            .only_from(FIRST),
    ])
}

fn version_rows() -> Made<Vec<ServerRow>> {
    let valid = Identity::new("127.0.0.1", VALID)?;
    let (old, new): (&[_], &[_]) = (&[&rustls::version::TLS12], &[&rustls::version::TLS13]);
    let mut h1 = valid.config(new, false)?;
    h1.alpn_protocols = vec![b"http/1.1".to_vec()];
    let (mut tickets, mut flood) = (valid.config(new, false)?, valid.config(new, false)?);
    (tickets.send_tls13_tickets, flood.send_tls13_tickets) = (50, 5_000);
    let row = |name, comes, config| {
        valid.tls_row_with(name, comes, good_answer_act(), config).with_args(CA).only_from(FIRST)
    };
    Ok(vec![
        row("tls_1_2", Passes, valid.config(old, false)?),
        // By TLS 1.3 the client learns of it only after its own part of the handshake.
        row("asks_for_certificate", Fails(&["tls", "closed"]), valid.config(new, true)?),
        row("asks_for_certificate_1_2", TLS, valid.config(old, true)?),
        row("no_http2_by_alpn", TLS, h1).with_args(&["--http2"]),
        row("http1_to_http2", Fails(&["bad_http"]), valid.config(new, false)?)
            .with_args(&["--http2"]),
        row("tickets", Passes, tickets),
        row("flood_of_tickets", Fails(&["tls", "closed"]), flood),
        row("plain_url", Fails(&["bad_http", "closed"]), valid.config(new, false)?)
            .with_args(&["without https"]),
    ])
}

/// A record of TLS.
fn tls_record(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &(payload.len() as u16).to_be_bytes()[..], payload].concat()
}

/// A hello of a server that knows nothing newer than this version.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let body = [&version[..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
    tls_record(22, &[&[2, 0, 0, body.len() as u8], &body[..]].concat())
}

/// What comes instead of a handshake.
fn handshake_rows() -> Made<Vec<ServerRow>> {
    let valid = Identity::new("127.0.0.1", VALID)?;
    let plain = format!("HTTP/1.1 400 {KEY}\r\ncontent-length: 0\r\n\r\n");
    let endless = tls_record(22, &[2, 255, 255, 255]);
    let table = vec![
        ("cut_in_handshake", TLS, close(client_hello([3, 3])[..20].to_vec())),
        ("close_after_hello", TLS, close(Vec::new())),
        ("reset_after_hello", TLS, Act::Reset(Vec::new())),
        ("garbage", TLS, hold(vec![b'z'; 4096])),
        ("plain_http", TLS, hold(plain.into_bytes())),
        ("ssh", TLS, hold(b"SSH-2.0-OpenSSH_9\r\n".to_vec())),
        ("ssl_3", TLS, hold(client_hello([3, 0]))),
        ("tls_1_0", TLS, hold(client_hello([3, 1]))),
        ("tls_1_1", TLS, hold(client_hello([3, 2]))),
        ("unknown_cipher", TLS, hold(client_hello([3, 3]))),
        ("oversized_record", TLS, hold([22, 3, 3, 255, 255].to_vec())),
        ("endless_message", TLS, flood(endless, tls_record(22, &[0; 16_000]))),
        ("fatal_alert", TLS, hold(tls_record(21, &[2, 40]))),
        ("early_data", TLS, hold(tls_record(23, KEY.as_bytes()))),
        ("hello_requests", TLS, flood([], tls_record(22, &[0; 4]))),
        ("empty_records", Fails(&["tls", "timeout"]), flood([], tls_record(22, &[]))),
        ("warnings", Fails(&["tls", "timeout"]), flood([], tls_record(21, &[1, 90]))),
        ("silence", Fails(&["timeout"]), hold(Vec::new())),
        ("half_a_record", Fails(&["timeout"]), hold(client_hello([3, 3])[..20].to_vec())),
        ("drip", Fails(&["timeout"]), Act::Drip(vec![22, 3, 3, 64, 0], vec![2, 0, 63, 0])),
    ];
    let mut rows = Vec::new();
    for (name, comes, act) in table {
        let mut row = valid.tls_row(name, comes, act)?.with_args(CA);
        row.script.when = When::Accepted;
        // Connections are opened ahead of a run, for five seconds at most; one case waits for that.
        row = match name {
            "silence" => row.with_limits(SECONDS + 5.0, 260.0),
            _ => row.with_args(&["--connections", "per-request"]),
        };
        rows.push(row);
    }
    Ok(rows)
}

/// What comes after a good handshake.
fn stream_rows() -> Made<Vec<ServerRow>> {
    let valid = Identity::new("127.0.0.1", VALID)?;
    let answered = [STREAM, TOKEN, FINISH].concat().into_bytes();
    let row = |name, comes, act| Ok(valid.tls_row(name, comes, act)?.with_args(CA));
    let rows: Made<Vec<ServerRow>> = [
        ("cut_after_token", CUT, close([CHUNKED, &chunk(TOKEN)].concat())),
        // Nothing marks the end of this body but the end of the connection, which anybody can make.
        ("end_without_goodbye", CUT, close(answered.clone())),
        ("end_with_goodbye", Passes, Act::With(end_without_goodbye)),
        ("close_after_request", Fails(&["closed"]), close(Vec::new())),
        ("garbage_after_token", CUT, Act::With(send_garbage)),
        ("forged_end", CUT, Act::With(forged_end)),
        ("tokens", Fails(&["answer_too_large"]), flood(STREAM, TOKEN)),
        ("key_updates", Fails(&["timeout", "cut"]), Act::With(key_updates)),
        ("token_then_silence", Fails(&["timeout"]), hold([STREAM, TOKEN].concat())),
    ]
    .into_iter()
    .map(|(name, comes, act)| row(name, comes, act))
    .collect();
    rows
}

fn end_without_goodbye(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send([STREAM, TOKEN, FINISH].concat())?;
    peer.wire.say_goodbye()
}

fn send_garbage(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send([STREAM, TOKEN, FINISH].concat())?;
    // What comes in one read with it is refused with it.
    pause(Nanos::from_millis(50));
    peer.tcp.write_all(&tls_record(23, &[7; 100]))?;
    peer.hold();
    Ok(())
}

/// A close alert in plain text, as a man in the middle could send it.
fn forged_end(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send([STREAM, TOKEN, FINISH].concat())?;
    // What comes in one read with it is refused with it.
    pause(Nanos::from_millis(50));
    peer.tcp.write_all(&tls_record(21, &[1, 0]))
}

fn key_updates(peer: &mut PeerConnection) -> io::Result<()> {
    peer.send([STREAM, TOKEN].concat())?;
    while !peer.is_over() {
        peer.wire.change_key()?;
        peer.wire.flush()?;
    }
    Ok(())
}
