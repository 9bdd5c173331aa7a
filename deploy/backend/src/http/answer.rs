//! Outcomes as answers of the protocol. Pure.
//!
//! The statuses are chosen by what OpenTofu and Terraform make of them: 423 with the holder's own bytes is shown as a
//! held lock, and is waited for under `-lock-timeout`; 4xx is not retried, 5xx is.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};

use super::body::BodyError;
use super::gate::Denied;
use super::route::Operation;
use crate::state::{DocumentError, KeyError, Lock, LockError, Refusal};
use crate::store::{Deleted, Locked, StoreError, Unlocked, Written};

/// An answer, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Status code.
    pub(crate) status: StatusCode,
    /// Headers besides those of every answer.
    pub(crate) headers: Vec<(header::HeaderName, HeaderValue)>,
    /// The body; may be empty.
    pub(crate) body: Vec<u8>,
    /// Why it is not what the client hoped for: a line for the log. The programs show their users the status alone.
    pub(crate) reason: Option<String>,
}

impl Answer {
    /// Done, with nothing to say.
    pub(crate) fn done() -> Self {
        Self::new(StatusCode::OK, Vec::new())
    }

    /// A JSON body, exactly these bytes.
    pub(crate) fn json(status: StatusCode, bytes: Vec<u8>) -> Self {
        Self::new(status, bytes).with(header::CONTENT_TYPE, "application/json")
    }

    /// A line of text.
    pub(crate) fn text(status: StatusCode, text: &str) -> Self {
        Self::new(status, format!("{text}\n").into_bytes())
            .with(header::CONTENT_TYPE, "text/plain; charset=utf-8")
    }

    /// The state, or that there is none.
    pub(crate) fn state(bytes: Option<Vec<u8>>) -> Self {
        match bytes {
            Some(bytes) => Self::json(StatusCode::OK, bytes),
            None => Self::text(StatusCode::NOT_FOUND, "there is no state here"),
        }
    }

    /// Permanently moved, with the method and the body kept. Go's client makes a GET of a LOCK or POST after 301 to 303,
    /// and a run then saves nothing and exits 0.
    pub(crate) fn moved(location: &str) -> Self {
        let answer = Self::text(
            StatusCode::PERMANENT_REDIRECT,
            "use the address without extra slashes",
        );
        match HeaderValue::from_str(location) {
            Ok(location) => Self {
                headers: [answer.headers, vec![(header::LOCATION, location)]].concat(),
                ..answer
            },
            Err(_) => Self::text(
                StatusCode::BAD_REQUEST,
                "the address holds what no header may hold",
            ),
        }
    }

    /// Nothing is at this path.
    pub(crate) fn unknown() -> Self {
        Self::text(StatusCode::NOT_FOUND, "nothing is here; states are under /state/")
    }

    /// The method is not one of `allowed`.
    pub(crate) fn not_allowed(allowed: &'static str) -> Self {
        Self::text(
            StatusCode::METHOD_NOT_ALLOWED,
            "use one of the methods that Allow lists",
        )
        .with(header::ALLOW, allowed)
    }

    /// The method asks nothing of a state.
    pub(crate) fn no_operation() -> Self {
        Self::not_allowed(Operation::ALLOW)
    }

    /// The same answer with one header more.
    pub(crate) fn with(mut self, name: header::HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// The same answer with another content type.
    pub(crate) fn content_type(mut self, value: &'static str) -> Self {
        self.headers.retain(|(name, _)| *name != header::CONTENT_TYPE);
        self.with(header::CONTENT_TYPE, value)
    }

    /// The answer for the wire. A state holds secrets, so nothing is to be kept by anybody between.
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response.headers_mut().extend(self.headers);
        response
    }

    fn new(status: StatusCode, body: Vec<u8>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            reason: None,
        }
    }

    fn refused(status: StatusCode, error: &dyn std::error::Error) -> Self {
        let reason = error.to_string();
        Self {
            reason: Some(reason.clone()),
            ..Self::text(status, &reason)
        }
    }

    fn held(lock: Lock) -> Self {
        let reason = format!("the lock is held under {:?}", lock.id().as_str());
        Self {
            reason: Some(reason),
            ..Self::json(StatusCode::LOCKED, lock.into_bytes())
        }
    }
}

impl From<Written> for Answer {
    fn from(written: Written) -> Self {
        match written {
            Written::Stored { .. } | Written::AlreadyStored => Self::done(),
            Written::Held(lock) => Self::held(lock),
            Written::Refused(refusal) => refusal.into(),
        }
    }
}

impl From<Deleted> for Answer {
    fn from(deleted: Deleted) -> Self {
        match deleted {
            Deleted::Gone => Self::done(),
            Deleted::Held(lock) => Self::held(lock),
        }
    }
}

impl From<Locked> for Answer {
    fn from(locked: Locked) -> Self {
        match locked {
            Locked::Taken => Self::done(),
            Locked::Held(lock) => Self::held(lock),
        }
    }
}

impl From<Unlocked> for Answer {
    fn from(unlocked: Unlocked) -> Self {
        match unlocked {
            Unlocked::Released | Unlocked::WasFree => Self::done(),
            Unlocked::Held(lock) => Self::held(lock),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::refused(StatusCode::CONFLICT, &refusal)
    }
}

impl From<KeyError> for Answer {
    fn from(error: KeyError) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<DocumentError> for Answer {
    fn from(error: DocumentError) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<LockError> for Answer {
    fn from(error: LockError) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, &error)
    }
}

impl From<BodyError> for Answer {
    fn from(error: BodyError) -> Self {
        let status = match error {
            BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Stalled => StatusCode::REQUEST_TIMEOUT,
            BodyError::Broken | BodyError::Digest => StatusCode::BAD_REQUEST,
        };
        Self::refused(status, &error)
    }
}

impl From<Denied> for Answer {
    fn from(denied: Denied) -> Self {
        Self::refused(StatusCode::UNAUTHORIZED, &denied).with(
            header::WWW_AUTHENTICATE,
            "Basic realm=\"state\", charset=\"UTF-8\"",
        )
    }
}

impl From<StoreError> for Answer {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Busy | StoreError::Full => StatusCode::SERVICE_UNAVAILABLE,
            StoreError::Damaged { .. } | StoreError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::refused(status, &error)
    }
}
