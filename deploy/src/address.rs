//! The address of a fleet's state: normalised once, shown without secrets, and the name of its working directory.
//!
//! OpenTofu takes an address as it is, and a trailing slash is enough to lose state: a server answers 301, the client
//! turns POST into GET, and the apply exits 0 with nothing saved. So an address is a type that only [`StateAddress::parse`]
//! makes.

use std::fmt;

use sha2::{Digest as _, Sha256};
use ureq::http::Uri;

/// Bytes of a state key that are kept before it is cut and gets a hash; a file name may have 255 bytes, and the paths
/// below the working directory have to fit into 108 bytes where they name sockets.
const KEY_CAP: usize = 80;

/// What a query parameter's name contains when its value is a secret.
const SECRET_WORDS: [&str; 8] = [
    "token",
    "password",
    "passwd",
    "secret",
    "signature",
    "credential",
    "apikey",
    "api_key",
];

/// A normalised `http` or `https` address of one state.
///
/// `Display` and `Debug` are redacted; [`StateAddress::url`] is the form to send.
#[derive(Clone, PartialEq, Eq)]
pub struct StateAddress {
    scheme: Scheme,
    host: String,
    port: Option<u16>,
    path: String,
    query: Option<String>,
    userinfo: Option<Userinfo>,
}

/// User name and password that stood in an address, percent-decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Userinfo {
    /// The user name.
    pub username: String,
    /// The password; empty when there was none.
    pub password: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// Neither `http` nor `https`.
    #[error(
        "the state address {address:?} is not an HTTP address; write http://HOST:PORT/state/FLEET or the https form"
    )]
    NotHttp {
        /// The address, without userinfo.
        address: String,
    },
    /// Not a URL.
    #[error("the state address {address:?} is not a URL ({reason}); write http://HOST:PORT/state/FLEET")]
    Malformed {
        /// The address, without userinfo.
        address: String,
        /// What the parser says.
        reason: String,
    },
}

impl StateAddress {
    /// Parses and normalises: scheme and host in lower case, no default port, no trailing slash, no fragment.
    pub fn parse(text: &str) -> Result<StateAddress, AddressError> {
        let text = text.trim();
        let malformed = |reason: &str| AddressError::Malformed {
            address: without_userinfo(text),
            reason: reason.to_owned(),
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| malformed("no scheme"))?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => {
                return Err(AddressError::NotHttp {
                    address: without_userinfo(text),
                });
            }
        };
        let uri: Uri = format!("{}://{rest}", scheme.name())
            .parse()
            .map_err(|error: ureq::http::uri::InvalidUri| malformed(&error.to_string()))?;
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| malformed("no host"))?
            .to_ascii_lowercase();
        let userinfo = uri
            .authority()
            .and_then(|authority| authority.as_str().rsplit_once('@'))
            .map(|(userinfo, _)| Userinfo::parse(userinfo));
        let port = uri.port_u16().filter(|port| *port != scheme.default_port());
        let path = match uri.path().trim_end_matches('/') {
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        let query = uri.query().filter(|query| !query.is_empty()).map(str::to_owned);
        Ok(StateAddress {
            scheme,
            host,
            port,
            path,
            query,
            userinfo,
        })
    }

    /// The address at which the backend node of a graph serves this fleet's state, derived when the operator gives none;
    /// `address` is bare (a name, IPv4, or IPv6 without brackets).
    pub fn derived(address: &str, port: u16, fleet: &str) -> Result<StateAddress, AddressError> {
        let host = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        StateAddress::parse(&format!("http://{host}:{port}/state/{fleet}"))
    }

    /// The URL to send requests to and to give to OpenTofu: with its whole query, without userinfo.
    ///
    /// It is the lock and the unlock address too: every server we know locks on the state address, by `LOCK` and `UNLOCK`.
    pub fn url(&self) -> String {
        self.render(self.query.clone())
    }

    /// The URL with `ID=<lock id>` in its query, as a write under a lock wants it.
    pub fn url_with_lock(&self, id: &str) -> String {
        let query = match &self.query {
            Some(query) => format!("{query}&ID={id}"),
            None => format!("ID={id}"),
        };
        self.render(Some(query))
    }

    /// What stood before the `@`, if anything did; it is used when no other credentials are given.
    pub fn userinfo(&self) -> Option<&Userinfo> {
        self.userinfo.as_ref()
    }

    /// The state key: a file-safe, injective form of the address without userinfo and query secrets.
    ///
    /// Letters, digits and `.` stand for themselves and every other byte is `_` and two hex digits (`%` would be expanded in
    /// an ssh_config, `${` in a graph). A long key is cut and ends in `-` and a hash, which no short key contains.
    pub fn key(&self) -> String {
        let public = self.render(self.public_query(Hide::Drop));
        let mut key = String::new();
        for byte in public.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' => key.push(byte as char),
                _ => key.push_str(&format!("_{byte:02X}")),
            }
        }
        if key.len() <= KEY_CAP {
            return key;
        }
        let hash = Sha256::digest(public.as_bytes());
        let suffix: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{suffix}", &key[..KEY_CAP])
    }

    fn render(&self, query: Option<String>) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}://{}{port}{}{query}", self.scheme.name(), self.host, self.path)
    }

    fn public_query(&self, hide: Hide) -> Option<String> {
        let shown: Vec<String> = self
            .query
            .as_deref()?
            .split('&')
            .filter_map(|pair| {
                let name = pair.split('=').next().unwrap_or(pair);
                let secret = SECRET_WORDS
                    .iter()
                    .any(|word| name.to_ascii_lowercase().contains(word));
                match (secret, hide) {
                    (false, _) => Some(pair.to_owned()),
                    (true, Hide::Mask) => Some(format!("{name}=xxxxx")),
                    (true, Hide::Drop) => None,
                }
            })
            .collect();
        (!shown.is_empty()).then(|| shown.join("&"))
    }
}

impl fmt::Display for StateAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(self.public_query(Hide::Mask)))
    }
}

impl fmt::Debug for StateAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StateAddress({self})")
    }
}

impl fmt::Debug for Userinfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Userinfo({}:xxxxx)", self.username)
    }
}

#[derive(Clone, Copy)]
enum Hide {
    Mask,
    Drop,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl Userinfo {
    fn parse(text: &str) -> Userinfo {
        let (username, password) = text.split_once(':').unwrap_or((text, ""));
        Userinfo {
            username: percent_decode(username),
            password: percent_decode(password),
        }
    }
}

fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// For errors about text that did not parse: whatever stands before an `@` may be a password.
fn without_userinfo(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        (None, Some((_, rest))) => rest.to_owned(),
        (_, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
