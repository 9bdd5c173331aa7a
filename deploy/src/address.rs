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
mod tests {
    use super::*;
    use rstest::rstest;

    fn parse(text: &str) -> StateAddress {
        StateAddress::parse(text).unwrap()
    }

    #[rstest]
    #[case::a_trailing_slash("http://host:8080/state/a/", "http://host:8080/state/a")]
    #[case::several_slashes("http://host/state/a//", "http://host/state/a")]
    #[case::the_default_http_port("http://host:80/s", "http://host/s")]
    #[case::the_default_https_port("https://host:443/s", "https://host/s")]
    #[case::another_schemes_port("https://host:80/s", "https://host:80/s")]
    #[case::case_of_scheme_and_host("HTTP://Host.Example/State", "http://host.example/State")]
    #[case::a_fragment("http://host/s#top", "http://host/s")]
    #[case::an_empty_query("http://host/s?", "http://host/s")]
    #[case::a_query_that_selects("http://host/?type=git&state=a", "http://host/?type=git&state=a")]
    #[case::no_path("http://host", "http://host/")]
    #[case::ipv6("http://[2001:DB8::1]:80/s", "http://[2001:db8::1]/s")]
    #[case::userinfo("http://user:pass@host/s", "http://host/s")]
    #[case::spaces_around(" http://host/s\n", "http://host/s")]
    fn an_address_is_normalised(#[case] given: &str, #[case] url: &str) {
        assert_eq!(parse(given).url(), url);
    }

    #[rstest]
    #[case::another_scheme("ftp://host/s")]
    #[case::a_file("file:///tmp/s")]
    fn other_schemes_are_refused(#[case] given: &str) {
        assert!(matches!(
            StateAddress::parse(given),
            Err(AddressError::NotHttp { .. })
        ));
    }

    #[rstest]
    #[case::no_scheme("host/s")]
    #[case::nothing("")]
    #[case::no_host("http:///s")]
    #[case::a_space("http://ho st/s")]
    fn what_is_no_url_is_refused(#[case] given: &str) {
        assert!(matches!(
            StateAddress::parse(given),
            Err(AddressError::Malformed { .. })
        ));
    }

    #[test]
    fn an_error_shows_no_password() {
        for given in [
            "ftp://u:canary@host/s",
            "http://u:canary@ho st/s",
            "u:canary@host",
        ] {
            assert!(
                !StateAddress::parse(given)
                    .unwrap_err()
                    .to_string()
                    .contains("canary")
            );
        }
    }

    #[test]
    fn display_and_debug_show_no_secret() {
        let address = parse("http://user:canary@host/s?state=a&access_Token=canary");
        assert_eq!(address.to_string(), "http://host/s?state=a&access_Token=xxxxx");
        assert!(!format!("{address:?} {:?}", address.userinfo()).contains("canary"));
        assert_eq!(address.url(), "http://host/s?state=a&access_Token=canary");
    }

    #[test]
    fn userinfo_is_decoded() {
        let address = parse("http://user%40corp:a%2Fb@host/s");
        assert_eq!(
            address.userinfo(),
            Some(&Userinfo {
                username: "user@corp".into(),
                password: "a/b".into()
            })
        );
    }

    #[test]
    fn a_lock_id_joins_an_existing_query() {
        assert_eq!(parse("http://host/s").url_with_lock("1"), "http://host/s?ID=1");
        assert_eq!(
            parse("http://host/s?state=a").url_with_lock("1"),
            "http://host/s?state=a&ID=1"
        );
    }

    #[test]
    fn a_derived_address_brackets_ipv6() {
        let derived = |address| StateAddress::derived(address, 8080, "prod").unwrap().url();
        assert_eq!(derived("192.0.2.1"), "http://192.0.2.1:8080/state/prod");
        assert_eq!(derived("2001:db8::1"), "http://[2001:db8::1]:8080/state/prod");
    }

    #[test]
    fn a_key_is_a_file_name_that_reads_like_the_address() {
        assert_eq!(
            parse("http://192.0.2.1:8080/state/prod").key(),
            "http_3A_2F_2F192.0.2.1_3A8080_2Fstate_2Fprod"
        );
    }

    #[test]
    fn secrets_do_not_change_a_key_and_selectors_do() {
        let key = |text| parse(text).key();
        assert_eq!(key("http://a:b@host/s"), key("http://host/s"));
        assert_eq!(key("http://host/s?token=1"), key("http://host/s?token=2"));
        assert_ne!(key("http://host/s?state=1"), key("http://host/s?state=2"));
        assert_ne!(key("http://host/s"), key("https://host/s"));
        assert_ne!(key("http://host/a_2Fb"), key("http://host/a/b"));
    }

    #[test]
    fn long_addresses_keep_short_keys_apart() {
        let long = |end: &str| parse(&format!("http://host/{}{end}", "a".repeat(300))).key();
        assert!(long("b").len() <= KEY_CAP + 25);
        assert_ne!(long("b"), long("c"));
        let plain = &parse(&format!("http://host/{}", "a".repeat(KEY_CAP))).key()[..KEY_CAP];
        assert!(!plain.contains('-'));
    }

    proptest::proptest! {
        #[test]
        fn different_paths_have_different_keys(one in "[a-zA-Z0-9._~-]{1,60}", two in "[a-zA-Z0-9._~-]{1,60}") {
            let key = |path: &str| parse(&format!("http://host/{path}")).key();
            proptest::prop_assert_eq!(one == two, key(&one) == key(&two));
        }

        #[test]
        fn parsing_what_was_normalised_changes_nothing(path in "(/[a-z0-9._-]{1,8}){0,4}/?", port in 1u16..) {
            let address = parse(&format!("http://host:{port}{path}"));
            proptest::prop_assert_eq!(parse(&address.url()), address);
        }
    }
}
