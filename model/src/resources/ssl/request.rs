//! What a component asks.

use super::super::read::Readable;
use crate::access;
use crate::raw::spot::{Keys, Spot};

/// A certificate that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// DNS name in the certificate, in lower case.
    pub domain: String,
}

pub(crate) static REQUEST: Keys = Keys { of: "an `ssl` request", all: &["domain"] };

impl Readable for Request {
    fn read(spot: Spot<'_>) -> Option<Request> {
        let domain = spot.fields(&REQUEST)?.require("domain", "domain = \"app.example.test\"")?;
        let domain = domain.parsed("a domain (a string such as \"app.example.test\")", access::domain)?;
        Some(Request { domain: domain.value })
    }
}
