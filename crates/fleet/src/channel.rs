//! One connection: TLS 1.3, and a proof by each end that it has the token.
//!
//! ```text
//! rank ↔ rank 0   TLS 1.3; rank 0 has a key that it made for this start
//! rank → rank 0   greeting: version; proof
//! rank 0 → rank   proof                           (or refused: another version, another token)
//! rank → rank 0   hello: rank, N, host
//! ```
//!
//! A proof is HMAC-SHA-256, with a key from the token, over what TLS exports for this connection and
//! the role of who proves (RFC 8446, 7.5). It fits no other connection and no other role: a process that
//! stands between two ends has a connection with each, and the proof of one is worth nothing in the
//! other. So it does not matter whose key rank 0 shows, and no certificates are needed (RFC 7250).

use std::io;
use std::sync::Arc;

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ConnectionCommon, DigitallySignedStruct, PeerIncompatible, ServerConfig,
    SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::frame::{FrameError, LARGEST_PLAIN, read_message, write_message};
use crate::message::{Bytes32, Greeting, Hello, HelloAnswer, clip_text};
use crate::{PROTOCOL, Refusal, Token};

/// Letters of a version that are shown.
const VERSION: usize = 64;
/// Letters of a host's name that are kept.
const HOST: usize = 256;

const RANK: &[u8] = b"EXPORTER-goodput-fleet-rank";
const COORDINATOR: &[u8] = b"EXPORTER-goodput-fleet-coordinator";

/// An encrypted connection whose peer has not proved its identity yet.
#[derive(Debug)]
pub(crate) struct Channel<S> {
    pub(crate) stream: TlsStream<S>,
    /// What the proofs are made over, for each role.
    rank: Bytes32,
    coordinator: Bytes32,
}

/// Why two did not come together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelFailure {
    #[error("{0}")]
    Refused(Refusal),
    #[error("the process at that address has a different token")]
    Impostor,
    #[error("{0}")]
    Frame(#[from] FrameError),
}

impl From<io::Error> for ChannelFailure {
    fn from(error: io::Error) -> Self {
        Self::Frame(error.into())
    }
}

/// How rank 0 speaks TLS: with a key of its own for every start.
pub(crate) fn server_config() -> io::Result<Arc<ServerConfig>> {
    let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| io::Error::other("cannot get random bytes for a key"))?;
    let pair = PrivatePkcs8KeyDer::from(pair.as_ref());
    let key = provider::sign::any_eddsa_type(&pair).map_err(io::Error::other)?;
    let public = key.public_key().map(|key| CertificateDer::from(key.to_vec()));
    let certified = Arc::new(CertifiedKey::new(public.into_iter().collect(), key));
    let mut config = ServerConfig::builder_with_provider(provider::default_provider().into())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    // No connection follows from another.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Takes any key of rank 0 that it can sign with: the proofs say who it is.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// What the proofs of a rank and of rank 0 are made over.
fn export_keys<T>(connection: &ConnectionCommon<T>) -> io::Result<(Bytes32, Bytes32)> {
    let of = |label| connection.export_keying_material([0; 32], label, None);
    of(RANK).and_then(|rank| Ok((rank, of(COORDINATOR)?))).map_err(io::Error::other)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Channel<S> {
    /// The rank's side of TLS.
    pub(crate) async fn connect(stream: S) -> io::Result<Self> {
        let provider = Arc::new(provider::default_provider());
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyKey(provider)))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        // It does not cover names, so none is sent.
        config.enable_sni = false;
        let name = ServerName::from(std::net::Ipv4Addr::UNSPECIFIED);
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (rank, coordinator) = export_keys(stream.get_ref().1)?;
        Ok(Self { stream: stream.into(), rank, coordinator })
    }

    /// The side of rank 0.
    pub(crate) async fn accept(stream: S, config: &Arc<ServerConfig>) -> io::Result<Self> {
        let stream = TlsAcceptor::from(Arc::clone(config)).accept(stream).await?;
        let (rank, coordinator) = export_keys(stream.get_ref().1)?;
        Ok(Self { stream: stream.into(), rank, coordinator })
    }

    /// Proves to rank 0 that this rank has the token, and hears the same; says who it is then.
    pub(crate) async fn join(
        &mut self,
        token: &Token,
        version: &str,
        hello: &Hello,
    ) -> Result<(), ChannelFailure> {
        let stream = &mut self.stream;
        let greeting = Greeting { goodput_fleet: PROTOCOL, version: version.to_owned() };
        write_message(stream, &greeting).await?;
        write_message(stream, &HelloAnswer::Proof(token.prove(&self.rank))).await?;
        match read_message(stream, LARGEST_PLAIN).await? {
            HelloAnswer::Proof(proof) if token.verify(&self.coordinator, &proof) => {}
            HelloAnswer::Proof(_) => return Err(ChannelFailure::Impostor),
            HelloAnswer::Refused(refusal) => {
                return Err(ChannelFailure::Refused(shorten_refusal(refusal)));
            }
        }
        Ok(write_message(stream, &Hello { host: clip_text(&hello.host, HOST), ..hello.clone() })
            .await?)
    }

    /// The side of rank 0, which runs this version: who has come.
    pub(crate) async fn admit_rank(
        &mut self,
        token: &Token,
        version: &str,
    ) -> Result<Hello, ChannelFailure> {
        let stream = &mut self.stream;
        let greeting: Greeting = read_message(stream, LARGEST_PLAIN).await?;
        if greeting.goodput_fleet != PROTOCOL || greeting.version != version {
            let (coordinator, rank) = (version.to_owned(), clip_text(&greeting.version, VERSION));
            return send_refusal(
                stream,
                Refusal::Version { protocol: PROTOCOL, coordinator, rank },
            )
            .await;
        }
        let HelloAnswer::Proof(proof) = read_message(stream, LARGEST_PLAIN).await? else {
            return Err(FrameError::Garbage.into());
        };
        // The rank first: who has no token gets nothing that could be tried against a list of words.
        if !token.verify(&self.rank, &proof) {
            return send_refusal(stream, Refusal::Token).await;
        }
        write_message(stream, &HelloAnswer::Proof(token.prove(&self.coordinator))).await?;
        let hello: Hello = read_message(stream, LARGEST_PLAIN).await?;
        Ok(Hello { host: clip_text(&hello.host, HOST), ..hello })
    }
}

/// A refusal of one who has proved nothing yet: its words are cut.
fn shorten_refusal(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Version { protocol, coordinator, rank } => Refusal::Version {
            protocol,
            coordinator: clip_text(&coordinator, VERSION),
            rank: clip_text(&rank, VERSION),
        },
        other => other,
    }
}

async fn send_refusal<T>(
    stream: &mut (impl AsyncWrite + Unpin),
    why: Refusal,
) -> Result<T, ChannelFailure> {
    write_message(stream, &HelloAnswer::Refused(why.clone())).await?;
    Err(ChannelFailure::Refused(why))
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn hello() -> Hello {
        Hello { rank: 1, of: 2, host: "h".repeat(1000) }
    }

    /// Two ends of one connection: the rank's and that of rank 0.
    async fn connected() -> (Channel<DuplexStream>, Channel<DuplexStream>) {
        let (left, right) = tokio::io::duplex(8192);
        let config = server_config().unwrap();
        let (rank, coordinator) =
            tokio::join!(Channel::connect(left), Channel::accept(right, &config));
        (rank.unwrap(), coordinator.unwrap())
    }

    type Outcome = (Result<(), ChannelFailure>, Result<Hello, ChannelFailure>);

    fn meet(rank: &str, coordinator: &str, version: &str) -> Outcome {
        let (ours, theirs) = (Token::new(rank).unwrap(), Token::new(coordinator).unwrap());
        wait(async {
            let ((mut rank, mut coordinator), hello) = (connected().await, hello());
            tokio::join!(
                rank.join(&ours, version, &hello),
                coordinator.admit_rank(&theirs, "1.0.0")
            )
        })
    }

    #[test]
    fn those_with_one_token_come_together() {
        let (rank, coordinator) = meet("a-token-of-some-length", "a-token-of-some-length", "1.0.0");
        rank.unwrap();
        let hello = coordinator.unwrap();
        assert_eq!((hello.rank, hello.of, hello.host.len()), (1, 2, HOST));
    }

    #[test]
    fn another_token_is_refused_at_both_ends() {
        let (rank, coordinator) = meet("0123456789abcdef", "0123456789abcdeg", "1.0.0");
        assert!(matches!(rank, Err(ChannelFailure::Refused(Refusal::Token))));
        assert!(matches!(coordinator, Err(ChannelFailure::Refused(Refusal::Token))));
    }

    #[test]
    fn another_version_is_refused_and_both_are_named() {
        let (rank, _) = meet("0123456789abcdef", "0123456789abcdef", "1.0.1");
        let Err(ChannelFailure::Refused(refusal)) = rank else { panic!("{rank:?}") };
        assert_eq!(
            refusal.to_string(),
            "rank 0 runs goodput 1.0.0 (protocol 2), this is goodput 1.0.1 (protocol 2)"
        );
    }

    #[test]
    fn both_ends_export_the_same_and_no_two_connections_do() {
        let ends = || wait(async { connected().await });
        let ((rank, coordinator), (other, _)) = (ends(), ends());
        assert_eq!((rank.rank, rank.coordinator), (coordinator.rank, coordinator.coordinator));
        let all = [rank.rank, rank.coordinator, other.rank, other.coordinator];
        assert!((0..4).all(|one| (0..one).all(|two| all[one] != all[two])));
    }

    #[test]
    fn one_who_takes_any_token_is_not_the_coordinator() {
        let token = Token::new("0123456789abcdef").unwrap();
        let joined = wait(async {
            let (mut rank, mut rogue) = connected().await;
            let impostor = async {
                let _: Greeting = read_message(&mut rogue.stream, LARGEST_PLAIN).await.unwrap();
                let proof: HelloAnswer =
                    read_message(&mut rogue.stream, LARGEST_PLAIN).await.unwrap();
                // The rank's own proof does not prove a coordinator.
                write_message(&mut rogue.stream, &proof).await.unwrap();
                // And who it is was not said.
                let rest = read_message::<Hello>(&mut rogue.stream, LARGEST_PLAIN).await;
                assert!(rest.is_err(), "{rest:?}");
            };
            let joining = async {
                let joined = rank.join(&token, "1.0.0", &hello()).await;
                drop(rank);
                joined
            };
            tokio::join!(joining, impostor).0
        });
        assert!(matches!(joined, Err(ChannelFailure::Impostor)), "{joined:?}");
    }
}
