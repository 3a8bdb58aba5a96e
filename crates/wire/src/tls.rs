//! TLS by rustls with one provider, named explicitly: with two in the tree the default would panic.

use std::sync::Arc;

use goodput_model::Http;
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
    #[error("`{0}` is not a host name that a certificate could be for")]
    BadName(String),
    /// rustls refuses.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

pub(crate) fn settings(
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
        builder.with_root_certificates(roots(cacert)?)
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![match http {
        Http::Http1 => b"http/1.1".to_vec(),
        Http::Http2 => b"h2".to_vec(),
    }];
    Ok(TlsSettings { config: Arc::new(config), name })
}

/// The machine's trust store plus the user's own certificates.
fn roots(cacert: Option<&[u8]>) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    // Unreadable system certificates are skipped: what cannot be trusted then fails the handshake.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = cacert {
        let bad = |error: String| TlsError::BadCertificate(error);
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| bad(error.to_string()))?;
            roots.add(certificate).map_err(|error| bad(error.to_string()))?;
            found = true;
        }
        if !found {
            return Err(bad("no PEM block found".to_owned()));
        }
    }
    Ok(roots)
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
