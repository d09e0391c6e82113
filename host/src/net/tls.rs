//! TLS for both ends: the gate's certificate and key from their files, and whom a client trusts. Called once at a start;
//! no I/O on sockets.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::GateOptions;

/// Why there is no TLS. Each is one line that names the file and the mend.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{what}: cannot read {}: {problem}; {mend}", .file.display())]
    Unreadable {
        /// The key of the configuration, or the option.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What the system, or the reader of PEM, said.
        problem: String,
        /// What to do.
        mend: &'static str,
    },
    /// There is nothing of the kind in a file.
    #[error("{what}: there is no {kind} in {}; {mend}", .file.display())]
    Nothing {
        /// The key of the configuration, or the option.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What should be in it.
        kind: &'static str,
        /// What to do.
        mend: &'static str,
    },
    /// The key is not the certificate's.
    #[error(
        "gate.tls_key: the key in {} does not belong to the certificate in {}; name the two that were made together",
        .key.display(), .certificate.display()
    )]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// What is in a file cannot be used.
    #[error("{what}: {} cannot be used: {problem}; {mend}", .file.display())]
    Unusable {
        /// The key of the configuration, or the option.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        mend: &'static str,
    },
}

const CERTIFICATE_MEND: &str = "it must be a PEM file with the certificate first and then those that vouch for it";
const KEY_MEND: &str = "it must be a PEM file with the certificate's private key, not encrypted";
const AUTHORITY_MEND: &str = "it must be a PEM file with the certificates to trust";

/// What lets clients in by TLS, where the options name a certificate.
pub(super) fn acceptor(options: &GateOptions) -> Result<Option<TlsAcceptor>, TlsError> {
    let (Some(certificate), Some(key)) = (&options.tls_certificate, &options.tls_key) else { return Ok(None) };
    let chain = certificates("gate.tls_certificate", certificate, CERTIFICATE_MEND)?;
    let secret = private_key(key)?;
    let unusable = |what, file: &Path, mend| {
        let file = file.to_owned();
        move |error: rustls::Error| TlsError::Unusable { what, file, problem: error.to_string(), mend }
    };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable("gate.tls_certificate", certificate, CERTIFICATE_MEND))?;
    let config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch { key: key.clone(), certificate: certificate.clone() },
        // Everything else about a key is told in general words.
        rustls::Error::General(_) => unusable("gate.tls_key", key, KEY_MEND)(error),
        _ => unusable("gate.tls_certificate", certificate, CERTIFICATE_MEND)(error),
    })?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn certificates(what: &'static str, file: &Path, mend: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error: pem::Error| unreadable(what, file, &error, mend);
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    let found = found.map_err(unreadable)?;
    if found.is_empty() {
        return Err(TlsError::Nothing { what, file: file.to_owned(), kind: "certificate", mend });
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let what = "gate.tls_key";
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            TlsError::Nothing { what, file: file.to_owned(), kind: "private key", mend: KEY_MEND }
        }
        error => unreadable(what, file, &error, KEY_MEND),
    })
}

fn unreadable(what: &'static str, file: &Path, error: &pem::Error, mend: &'static str) -> TlsError {
    let problem = match error {
        pem::Error::Io(error) => error.to_string(),
        error => error.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    };
    TlsError::Unreadable { what, file: file.to_owned(), problem, mend }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Whom a client takes for the gate that it wants.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Trust").finish_non_exhaustive()
    }
}

impl Trust {
    /// Trusts whoever has a certificate for its name from an authority in the PEM file.
    pub fn authorities(file: &Path) -> Result<Self, TlsError> {
        let what = "--tls-ca";
        let unusable = |problem: rustls::Error| TlsError::Unusable {
            what,
            file: file.to_owned(),
            problem: problem.to_string(),
            mend: AUTHORITY_MEND,
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(what, file, AUTHORITY_MEND)? {
            roots.add(certificate).map_err(unusable)?;
        }
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = builder.map_err(unusable)?.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// Trusts anyone: for trying out, and for gates with a certificate of their own making.
    pub fn anyone() -> Self {
        let provider = provider();
        let verifier = Arc::new(Anyone { provider: Arc::clone(&provider) });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider that comes with the protocol versions knows them")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Self { config: Arc::new(config) }
    }

    pub(super) fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }
}

/// Takes every certificate. That its owner has the key is still looked at.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
