//! What can go wrong between us and a backend, told apart by what it means for the state.

use ureq::http::StatusCode;

/// A request that did not do what it is for.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// Nobody listens there: the only answer that lets a bootstrap begin.
    #[error("{method} {address}: the state backend cannot be reached ({reason})")]
    Unreachable {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// What the system says.
        reason: String,
    },
    /// The exchange ended before its answer: a write may or may not have been stored.
    #[error("{method} {address}: no whole answer came ({reason}); look at the state before writing again")]
    CutOff {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// What was seen.
        reason: String,
    },
    /// 401 or 403.
    #[error(
        "{method} {address}: the state backend refuses these credentials ({status}); set TF_HTTP_USERNAME and TF_HTTP_PASSWORD to those of this state"
    )]
    Denied {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// Status code.
        status: u16,
    },
    /// 3xx. OpenTofu would follow it, turn a write into a read and save nothing.
    #[error(
        "{method} {address}: the state backend redirects to {location:?} ({status}), where a write would be lost; give the address that answers itself in TF_HTTP_ADDRESS"
    )]
    Redirected {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// Status code.
        status: u16,
        /// The `Location` header.
        location: String,
    },
    /// 429 or 5xx: it is there and cannot serve now.
    #[error(
        "{method} {address}: the state backend cannot serve ({status}: {head:?}); look at its log, then run again"
    )]
    Failing {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// Status code.
        status: u16,
        /// The first bytes of the body.
        head: String,
    },
    /// Any other status, 409 on a write among them.
    #[error("{method} {address}: unexpected answer {status}: {head:?}; is this the address of a state?")]
    Unexpected {
        /// Method of the request.
        method: &'static str,
        /// Redacted address.
        address: String,
        /// Status code.
        status: u16,
        /// The first bytes of the body.
        head: String,
    },
    /// The CA certificates that were given are none.
    #[error(
        "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM holds no certificate ({reason}); it wants the text of a PEM file"
    )]
    CaCertificates {
        /// What the parser says.
        reason: String,
    },
}

/// The parts every error names.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) method: &'static str,
    pub(super) address: &'a str,
}

impl Place<'_> {
    /// The error of an exchange that brought no answer.
    pub(super) fn transport(self, error: &ureq::Error) -> StoreError {
        let (method, address, reason) = (self.method, self.address.to_owned(), error.to_string());
        if is_unreachable(error) {
            StoreError::Unreachable {
                method,
                address,
                reason,
            }
        } else {
            StoreError::CutOff {
                method,
                address,
                reason,
            }
        }
    }

    /// The error of an answer that is none of those the request is for.
    pub(super) fn answer(self, status: StatusCode, location: &str, body: &[u8]) -> StoreError {
        let (method, address, status) = (self.method, self.address.to_owned(), status.as_u16());
        let head = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        match status {
            300..=399 => StoreError::Redirected {
                method,
                address,
                status,
                location: location.to_owned(),
            },
            401 | 403 => StoreError::Denied {
                method,
                address,
                status,
            },
            429 | 500..=599 => StoreError::Failing {
                method,
                address,
                status,
                head,
            },
            _ => StoreError::Unexpected {
                method,
                address,
                status,
                head,
            },
        }
    }
}

/// Whether no connection came about. A connection that broke is not this: somebody was there.
fn is_unreachable(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
        ureq::Error::Timeout(timeout) => matches!(timeout, ureq::Timeout::Resolve | ureq::Timeout::Connect),
        ureq::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NetworkDown
                | ErrorKind::AddrNotAvailable
        ),
        _ => false,
    }
}
