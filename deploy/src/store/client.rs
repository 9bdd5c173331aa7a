//! The five requests.

use std::time::Duration;

use base64::Engine as _;
use ureq::http::{HeaderValue, Request, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::error::Place;
use super::{Credentials, Secret, StoreError};
use crate::address::StateAddress;
use crate::lock::{Holder, LockInfo};
use crate::state::{State, StateError};

/// The largest state that is read; a state of 10,000 nodes has about 10 MB.
const LARGEST_STATE: u64 = 512 << 20;

/// A client of one state address.
pub struct Client {
    agent: ureq::Agent,
    address: StateAddress,
    authorization: Option<HeaderValue>,
    patience: Patience,
}

/// How long a request may take, and how often a GET that found no connection is repeated.
#[derive(Clone, Debug)]
pub struct Patience {
    /// Until a connection stands.
    pub connect: Duration,
    /// The whole exchange.
    pub exchange: Duration,
    /// Pauses before each repetition; nothing but a GET is ever repeated.
    pub pauses: Vec<Duration>,
}

/// What is at the address.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// 404, 204, or 200 with an empty body: never written, or lost.
    Absent,
    /// A state, perhaps without resources.
    Held(State),
    /// 200 with something else. Neither absent nor empty: nothing may be written over it.
    Corrupt(StateError),
}

/// The answer to LOCK.
#[derive(Debug, PartialEq, Eq)]
pub enum LockAnswer {
    /// The lock is ours.
    Taken,
    /// 409 or 423: somebody has it.
    Held(Holder),
}

impl Client {
    /// A client for `address`.
    pub fn new(
        address: StateAddress,
        credentials: &Credentials,
        patience: Patience,
    ) -> Result<Client, StoreError> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .allow_non_standard_methods(true)
            .timeout_connect(Some(patience.connect))
            .timeout_global(Some(patience.exchange))
            // A connection of before a restart of the backend would break on its next use.
            .max_idle_connections(0)
            .user_agent(concat!("provisor/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls(credentials)?)
            .build();
        let authorization = authorization(credentials);
        Ok(Client {
            agent: config.new_agent(),
            address,
            authorization,
            patience,
        })
    }

    /// The address it talks to.
    pub fn address(&self) -> &StateAddress {
        &self.address
    }

    /// GET, repeated while no connection comes about and pauses are left.
    pub fn read(&self) -> Result<Read, StoreError> {
        let mut pauses = self.patience.pauses.iter();
        loop {
            match (self.read_once(), pauses.next()) {
                (Err(StoreError::Unreachable { .. } | StoreError::CutOff { .. }), Some(pause)) => {
                    std::thread::sleep(*pause);
                }
                (outcome, _) => return outcome,
            }
        }
    }

    /// GET, once.
    pub fn read_once(&self) -> Result<Read, StoreError> {
        let answer = self.exchange("GET", &self.address.url(), &[])?;
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::NO_CONTENT => Ok(Read::Absent),
            StatusCode::OK if answer.body.is_empty() => Ok(Read::Absent),
            StatusCode::OK => Ok(State::parse(answer.body).map_or_else(Read::Corrupt, Read::Held)),
            _ => Err(self.unwanted("GET", &answer)),
        }
    }

    /// POST of these very bytes under `lock`.
    pub fn write(&self, state: &State, lock: &LockInfo) -> Result<(), StoreError> {
        let answer = self.exchange("POST", &self.address.url_with_lock(&lock.id), state.bytes())?;
        match answer.status {
            StatusCode::OK | StatusCode::CREATED | StatusCode::NO_CONTENT => Ok(()),
            _ => Err(self.unwanted("POST", &answer)),
        }
    }

    /// LOCK. Only 200 is a lock: a server without locks answers 201 or 204 to methods it does not know.
    pub fn lock(&self, info: &LockInfo) -> Result<LockAnswer, StoreError> {
        let answer = self.exchange("LOCK", &self.address.url(), &info.body())?;
        match answer.status {
            StatusCode::OK => Ok(LockAnswer::Taken),
            StatusCode::CONFLICT | StatusCode::LOCKED => Ok(LockAnswer::Held(Holder::read(answer.body))),
            _ => Err(self.unwanted("LOCK", &answer)),
        }
    }

    /// UNLOCK with the body of the LOCK, or of the 423 that told the holder, byte for byte.
    pub fn unlock(&self, body: &[u8]) -> Result<(), StoreError> {
        let answer = self.exchange("UNLOCK", &self.address.url(), body)?;
        match answer.status {
            StatusCode::OK => Ok(()),
            _ => Err(self.unwanted("UNLOCK", &answer)),
        }
    }

    fn exchange(&self, method: &'static str, url: &str, body: &[u8]) -> Result<Answer, StoreError> {
        let shown = self.address.to_string();
        let place = Place {
            method,
            address: &shown,
        };
        let mut request = Request::builder().method(method).uri(url);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let outcome = if body.is_empty() {
            request
                .body(())
                .map_err(ureq::Error::from)
                .and_then(|request| self.agent.run(request))
        } else {
            let request = request.header("Content-Type", "application/json").body(body);
            request
                .map_err(ureq::Error::from)
                .and_then(|request| self.agent.run(request))
        };
        let mut response = outcome.map_err(|error| place.transport(&error))?;
        let location = response
            .headers()
            .get("Location")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let location =
            StateAddress::parse(location).map_or_else(|_| location.to_owned(), |address| address.to_string());
        let body = response
            .body_mut()
            .with_config()
            .limit(LARGEST_STATE)
            .read_to_vec();
        let body = body.map_err(|error| place.transport(&error))?;
        Ok(Answer {
            status: response.status(),
            location,
            body,
        })
    }

    fn unwanted(&self, method: &'static str, answer: &Answer) -> StoreError {
        let shown = self.address.to_string();
        Place {
            method,
            address: &shown,
        }
        .answer(answer.status, &answer.location, &answer.body)
    }
}

impl Default for Patience {
    /// For a person who waits: an address that drops packets is told after 10 seconds, a slow transfer after two minutes.
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(10),
            exchange: Duration::from_secs(120),
            pauses: vec![Duration::from_millis(200), Duration::from_millis(800)],
        }
    }
}

impl Patience {
    /// For polling: short, and never repeated by the client itself.
    pub fn of_a_poll() -> Patience {
        Patience {
            connect: Duration::from_secs(3),
            exchange: Duration::from_secs(10),
            pauses: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Client({})", self.address)
    }
}

struct Answer {
    status: StatusCode,
    location: String,
    body: Vec<u8>,
}

/// Basic credentials, sent with every request and before anybody asks, as OpenTofu does.
fn authorization(credentials: &Credentials) -> Option<HeaderValue> {
    let username = credentials.username.as_deref()?;
    let password = credentials
        .password
        .as_ref()
        .map(Secret::reveal)
        .unwrap_or_default();
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn tls(credentials: &Credentials) -> Result<TlsConfig, StoreError> {
    let Some(pem) = &credentials.ca_certificates else {
        return Ok(TlsConfig::default());
    };
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(pem.as_bytes()) {
        match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => {
                return Err(StoreError::CaCertificates {
                    reason: error.to_string(),
                });
            }
        }
    }
    if certificates.is_empty() {
        return Err(StoreError::CaCertificates {
            reason: "no CERTIFICATE block".to_owned(),
        });
    }
    let roots =
        RootCerts::new_with_certs(&certificates.iter().map(Certificate::to_owned).collect::<Vec<_>>());
    Ok(TlsConfig::builder().root_certs(roots).build())
}
