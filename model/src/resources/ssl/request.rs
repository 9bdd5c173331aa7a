//! What a component asks.

use super::super::read::Readable;
use crate::access;
use crate::raw::spot::{Fields, Keys};

/// A certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// DNS name in the certificate, in lower case.
    pub domain: String,
}

impl Readable for Request {
    const KEYS: &'static Keys = &Keys {
        of: "an `ssl` request",
        all: &["domain"],
    };

    fn read(fields: &Fields<'_>) -> Option<Request> {
        let domain = fields.require("domain", "domain = \"app.example.test\"")?;
        let domain = domain.parsed("a domain (a string such as \"app.example.test\")", access::domain)?;
        Some(Request { domain: domain.value })
    }
}
