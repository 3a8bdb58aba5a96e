//! TLS by rustls with one provider, named explicitly: with two in the tree the default would panic.

use std::sync::Arc;

use goodput_model::Http;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// What a handshake needs.
#[derive(Debug)]
pub(crate) struct TlsSettings {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Why TLS cannot be used with these settings.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file has no usable certificate.
    #[error("the CA file holds no usable certificate: {0}")]
    BadCertificate(String),
    /// Certificates name hosts, and this is none.
    #[error("`{0}` is not a valid host name for TLS")]
    BadName(String),
    /// rustls refuses.
    #[error("cannot set up TLS: {0}")]
    Rustls(#[from] rustls::Error),
}

pub(crate) fn tls_settings(
    host: &str,
    http: Http,
    cacert: Option<&[u8]>,
    insecure: bool,
) -> Result<TlsSettings, TlsError> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| TlsError::BadName(host.to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let mut config = if insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        let verifier = Arc::new(Trust::new(cacert, provider)?);
        builder.dangerous().with_custom_certificate_verifier(verifier)
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![match http {
        Http::Http1 => b"http/1.1".to_vec(),
        Http::Http2 => b"h2".to_vec(),
    }];
    Ok(TlsSettings { config: Arc::new(config), name })
}

/// The usual verification against the machine's trust store and the user's certificates, and one
/// case more: the very certificate that the user named. `openssl req -x509` makes certificates
/// that are an authority and a server's at once, which the usual rules refuse.
#[derive(Debug)]
struct Trust {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn new(cacert: Option<&[u8]>, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let bad = |error: String| TlsError::BadCertificate(error);
        let mut roots = RootCertStore::empty();
        // Unreadable system certificates are skipped: what cannot be trusted fails the handshake.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let mut named = Vec::new();
        for certificate in cacert.into_iter().flat_map(CertificateDer::pem_slice_iter) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots.add(certificate.clone()).map_err(|error| bad(error.to_string()))?;
            named.push(certificate);
        }
        if cacert.is_some() && named.is_empty() {
            return Err(bad("no PEM block found".to_owned()));
        }
        if roots.is_empty() {
            return Err(bad(
                "no system trust store found; name a certificate with --cacert FILE".to_owned()
            ));
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        Ok(Self { usual, named })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        time: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let usual = self.usual.verify_server_cert(certificate, chain, name, ocsp, time);
        usual.or_else(|error| {
            let is_named = self.named.iter().any(|named| named == certificate);
            if is_named { Ok(ServerCertVerified::assertion()) } else { Err(error) }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Accepts any certificate: `--insecure`.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
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
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
