//! What an environment answers.

use serde_json::{Value, json};

use super::super::read::Readable;
use super::{Request, Ssl};
use crate::diagnostic::{Diagnostic, code};
use crate::grants;
use crate::near::did_you_mean;
use crate::node_plan::{GrantKind, GrantPart};
use crate::policy::{self, Asked, ConsumerSide, GrantWanted, Origin};
use crate::raw::spot::{Fields, Keys};
use crate::shape::Leaf;

/// How certificates are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Who signs.
    pub issuer: Issuer,
}

/// Who signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuer {
    /// The fleet's own certificate authority, whose key stays with the deployer.
    InternalCa,
}

/// The contract's result: where the certificate is on the consumer's node. Paths only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Path of the chain, PEM, leaf first.
    pub cert: String,
    /// Path of the private key, PEM.
    pub key: String,
    /// The unit that reads both.
    pub systemd_service: String,
}

pub(crate) const POLICY_EXAMPLE: &str = "ssl = { issuer = \"internal-ca\" }";

impl Issuer {
    /// Every issuer.
    pub const ALL: [Issuer; 1] = [Issuer::InternalCa];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Issuer::InternalCa => "internal-ca",
        }
    }
}

impl Answer {
    /// Where the certificate for a request is.
    pub fn to(origin: &Origin) -> Answer {
        Answer {
            cert: grants::path(origin, "certificate.pem"),
            key: grants::path(origin, "key.pem"),
            systemd_service: "nginx.service".to_owned(),
        }
    }
}

impl Readable for Policy {
    const KEYS: &'static Keys = &Keys {
        of: "an `ssl` policy",
        all: &["issuer"],
    };

    fn read(fields: &Fields<'_>) -> Option<Policy> {
        let spot = fields.require("issuer", "issuer = \"internal-ca\"")?;
        let written = spot.text("an issuer (a string such as \"internal-ca\")")?;
        let issuer = Issuer::ALL.into_iter().find(|issuer| issuer.as_str() == written);
        if issuer.is_none() {
            let message = format!("`ssl` has no issuer `{written}`");
            let help = did_you_mean(written, Issuer::ALL.map(Issuer::as_str), "");
            spot.add(
                Diagnostic::error(code::INVALID_VALUE, message, help).at(&spot.place(), "unknown issuer"),
            );
        }
        issuer.map(|issuer| Policy { issuer })
    }
}

impl policy::Policy for Policy {
    type Of = Ssl;
    type Input = Vec<Leaf<Asked<Request>>>;
    type Outcome = ConsumerSide;

    fn answer(&self, requests: Self::Input) -> ConsumerSide {
        match self.issuer {
            Issuer::InternalCa => {
                let (modules, grants) = requests.into_iter().map(|Leaf(asked)| internal_ca(asked)).unzip();
                ConsumerSide { modules, grants }
            }
        }
    }
}

fn internal_ca(
    Asked {
        origin,
        request: Request { domain },
    }: Asked<Request>,
) -> (Value, GrantWanted) {
    let Answer {
        cert,
        key,
        systemd_service,
    } = Answer::to(&origin);
    let virtual_host = json!({ "sslCertificate": cert, "sslCertificateKey": key });
    let module = json!({ "services": { "nginx": { "virtualHosts": { domain.clone(): virtual_host } } } });
    let files = vec![
        grants::secret_file(GrantPart::PrivateKey, key),
        grants::public_file(GrantPart::CertificateChain, cert),
    ];
    (
        module,
        GrantWanted {
            origin,
            kind: GrantKind::Certificate { domain },
            files,
            units: vec![systemd_service],
        },
    )
}
