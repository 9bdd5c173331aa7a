//! Looks at TLS as a client in another guest sees it, with OpenSSL's own client.

use anyhow::Result;
use provisor_harness::exec::{Command, ExitStatus, Output};
use provisor_harness::machine::Machine;

use crate::bootstrap::{DOMAIN, address};

/// Connects from `client` to the website on `server`, trusting the certificates in `ca` and no others, for the name
/// [`DOMAIN`].
pub async fn connect(client: &Machine, server: &Machine, ca: &str) -> Result<Handshake> {
    connect_for(client, server, ca, DOMAIN).await
}

/// As [`connect`], for another name.
pub async fn connect_for(client: &Machine, server: &Machine, ca: &str, name: &str) -> Result<Handshake> {
    let target = format!("{}:443", address(server)?);
    let output = client
        .run(
            Command::new("openssl")
                .args([
                    "s_client",
                    "-connect",
                    &target,
                    "-servername",
                    name,
                    "-verify_hostname",
                    name,
                ])
                .args([
                    "-CAfile",
                    ca,
                    "-no-CApath",
                    "-no-CAstore",
                    "-verify_return_error",
                    "-showcerts",
                ])
                .stdin("Q\n"),
        )
        .await?;
    Ok(Handshake { output })
}

/// What OpenSSL's client said of a connection.
#[derive(Clone, Debug)]
pub struct Handshake {
    output: Output,
}

impl Handshake {
    /// Whether the chain verified, for the name asked for.
    pub fn verified(&self) -> bool {
        self.output.status == ExitStatus::Code(0) && self.text().contains("Verify return code: 0 (ok)")
    }

    /// All that the client printed.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.output.stdout_text(), self.output.stderr_text())
    }

    /// The certificate that was served, leaf first, PEM.
    pub fn chain(&self) -> String {
        self.output.stdout_text()
    }
}

/// SHA-256 fingerprint of the first certificate in `pem`.
pub async fn fingerprint(on: &Machine, pem: impl Into<Vec<u8>>) -> Result<String> {
    let openssl = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256"])
        .stdin(pem);
    Ok(on.run(openssl).check_ok().await?.stdout_text())
}

/// Subject, issuer, names and validity of the first certificate in `pem`.
pub async fn describe(on: &Machine, pem: impl Into<Vec<u8>>) -> Result<String> {
    let openssl = Command::new("openssl")
        .args([
            "x509",
            "-noout",
            "-subject",
            "-issuer",
            "-dates",
            "-ext",
            "subjectAltName",
        ])
        .stdin(pem);
    Ok(on.run(openssl).check_ok().await?.stdout_text())
}
