//! How a host is reached: the forms of an address, a user, a host key and an SSH option.
//!
//! The parsers give the text back as it will be used. They refuse what another program would read as something
//! else: an address that starts with `-` is an option to `ssh`, a newline ends a line of its configuration.

use std::net::IpAddr;

use thiserror::Error;

/// Why a text is not what its key takes. [`AccessError::help`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Not a DNS name, an IPv4 or an IPv6 address.
    #[error("`{text}` is not a bare address")]
    Address {
        /// As written.
        text: String,
    },
    /// Neither IPv4 nor IPv6.
    #[error("`{text}` is not an IP address")]
    IpAddress {
        /// As written.
        text: String,
    },
    /// Not a path.
    #[error("`{text}` is not the path of a key file")]
    Identity {
        /// As written.
        text: String,
    },
    /// Not a user name.
    #[error("`{text}` is not a user name")]
    User {
        /// As written.
        text: String,
    },
    /// Not a public key.
    #[error("this is not a host key: {why}")]
    HostKey {
        /// What is missing or too much.
        why: &'static str,
    },
    /// Not `Key=Value`.
    #[error("`{text}` is not an SSH option")]
    SshOption {
        /// As written.
        text: String,
    },
    /// An option that Provisor itself answers for.
    #[error("the SSH option `{key}` is not the operator's to set")]
    OwnedOption {
        /// The option.
        key: &'static str,
        /// Where to say it instead.
        instead: &'static str,
    },
    /// Not a DNS name.
    #[error("`{text}` is not a domain")]
    Domain {
        /// As written.
        text: String,
    },
}

impl AccessError {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            AccessError::Address { .. } => {
                "write a DNS name, an IPv4 address, or an IPv6 address without brackets; the port and the user have \
                 keys of their own"
            }
            AccessError::IpAddress { .. } => "write an IPv4 or IPv6 address, without a prefix length",
            AccessError::Identity { .. } => {
                "write the path of a private key on the machine that deploys, without quotes or line breaks in it"
            }
            AccessError::User { .. } => {
                "use lower-case letters, digits, `_` and `-`, with a letter or `_` first, at most 32 bytes"
            }
            AccessError::HostKey { .. } => {
                "write the type and the key, as in `/etc/ssh/ssh_host_ed25519_key.pub` on the host: \
                 `ssh-ed25519 AAAA…`"
            }
            AccessError::SshOption { .. } => "write it as one word, `Key=Value`, such as `ConnectTimeout=10`",
            AccessError::OwnedOption { instead, .. } => return format!("remove it; {instead}"),
            AccessError::Domain { .. } => {
                "write a DNS name in lower case, such as `app.example.test`: letters, digits and `-` between dots, \
                 without a dot at the end and without `*`"
            }
        }
        .to_owned()
    }
}

/// A bare address: a DNS name, IPv4, or IPv6 without brackets.
pub fn address(text: &str) -> Result<String, AccessError> {
    if text.parse::<IpAddr>().is_ok() || is_dns_name(text) {
        return Ok(text.to_owned());
    }
    Err(AccessError::Address {
        text: text.to_owned(),
    })
}

/// An address in a network.
pub fn ip_address(text: &str) -> Result<IpAddr, AccessError> {
    text.parse().map_err(|_| AccessError::IpAddress {
        text: text.to_owned(),
    })
}

/// The path of a private key file on the machine that deploys.
pub fn identity(text: &str) -> Result<String, AccessError> {
    let unfit = |character: char| character.is_control() || character == '"';
    if text.trim().is_empty() || text.contains(unfit) {
        return Err(AccessError::Identity {
            text: text.escape_default().to_string(),
        });
    }
    Ok(text.to_owned())
}

/// A user on the host.
pub fn user(text: &str) -> Result<String, AccessError> {
    let first = |character: char| character.is_ascii_lowercase() || character == '_';
    let rest = |character: char| first(character) || character.is_ascii_digit() || character == '-';
    let good = text.starts_with(first) && text.chars().all(rest) && text.len() <= 32;
    if good {
        Ok(text.to_owned())
    } else {
        Err(AccessError::User {
            text: text.to_owned(),
        })
    }
}

/// A host's public key, `<type> <base64>`. A comment after it is dropped: it must not count as a change.
pub fn host_key(text: &str) -> Result<String, AccessError> {
    const TYPES: [&str; 5] = [
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
    ];
    let refuse = |why| Err(AccessError::HostKey { why });
    if text.contains(['\n', '\r']) {
        return refuse("it has more than one line");
    }
    let mut words = text.split_ascii_whitespace();
    let (Some(kind), Some(key)) = (words.next(), words.next()) else {
        return refuse("it needs a type and a key");
    };
    if !TYPES.contains(&kind) {
        return refuse("it does not begin with the type of a key");
    }
    let base64 = |character: char| character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=');
    // The encoded length of the type comes first, so that every key begins so.
    if !key.starts_with("AAAA") || !key.chars().all(base64) {
        return refuse("its second word is not a key in base64");
    }
    Ok(format!("{kind} {key}"))
}

/// One option of `ssh`, `Key=Value`.
pub fn ssh_option(text: &str) -> Result<String, AccessError> {
    /// Set from other keys, where a second value would make the fleet's own a lie.
    const OWNED: [(&str, &str); 5] = [
        ("HostName", "the key `address` says it"),
        ("User", "the key `user` says it"),
        ("Port", "the key `port` says it"),
        ("IdentityFile", "the key `identity` says it"),
        ("HostKeyAlias", "a host is known by its deployment name"),
    ];
    let refuse = || {
        Err(AccessError::SshOption {
            text: text.to_owned(),
        })
    };
    let Some((key, value)) = text.split_once('=') else {
        return refuse();
    };
    let word = !key.is_empty() && key.chars().all(|character| character.is_ascii_alphanumeric());
    if !word || value.trim().is_empty() || value.contains(|character: char| character.is_control()) {
        return refuse();
    }
    match OWNED.iter().find(|(owned, _)| owned.eq_ignore_ascii_case(key)) {
        Some((key, instead)) => Err(AccessError::OwnedOption { key, instead }),
        None => Ok(text.to_owned()),
    }
}

/// A DNS name that a certificate can be for: lower case, so that one domain has one form.
pub fn domain(text: &str) -> Result<String, AccessError> {
    if is_dns_name(text) && !text.chars().any(|character| character.is_ascii_uppercase()) {
        return Ok(text.to_owned());
    }
    Err(AccessError::Domain {
        text: text.to_owned(),
    })
}

/// RFC 1123: labels of 1 to 63 letters, digits and hyphens, 253 bytes in all. A last label of digits would be a
/// mistyped IPv4 address.
fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '-')
    };
    let digits = |label: &str| label.chars().all(|character| character.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && !text.rsplit('.').next().is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bare() {
        for good in [
            "192.0.2.1",
            "2001:db8::1",
            "app.example.test",
            "localhost",
            "host-1",
        ] {
            assert_eq!(address(good), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "[2001:db8::1]",
            "root@host",
            "host:22",
            "-oProxyCommand=x",
            "10.0.0.256",
            "a b",
            "a..b",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_identity_fits_on_a_quoted_line() {
        assert_eq!(identity("/root/my keys/id"), Ok("/root/my keys/id".to_owned()));
        for bad in ["", " ", "a\"b", "a\nb"] {
            assert!(identity(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_user_is_a_unix_name() {
        assert_eq!(user("root"), Ok("root".to_owned()));
        assert_eq!(user("_deploy-1"), Ok("_deploy-1".to_owned()));
        for bad in ["", "Root", "1st", "-x", "a b", "a@b"] {
            assert!(user(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_key_is_its_type_and_key_and_its_comment_is_dropped() {
        assert_eq!(
            host_key("ssh-ed25519 AAAAC3Nz"),
            Ok("ssh-ed25519 AAAAC3Nz".to_owned())
        );
        assert_eq!(
            host_key("ssh-ed25519  AAAAC3Nz root@app\t"),
            Ok("ssh-ed25519 AAAAC3Nz".to_owned())
        );
        for bad in [
            "",
            "AAAAC3Nz",
            "ssh-ed25519",
            "app ssh-ed25519 AAAAC3Nz",
            "ssh-ed25519 C3Nz",
            "ssh-rsa AAAA\nx y",
        ] {
            assert!(matches!(host_key(bad), Err(AccessError::HostKey { .. })), "{bad}");
        }
    }

    #[test]
    fn an_ssh_option_is_one_assignment_on_one_line() {
        assert_eq!(
            ssh_option("ConnectTimeout=10"),
            Ok("ConnectTimeout=10".to_owned())
        );
        assert_eq!(
            ssh_option("ProxyCommand=nc -X a=b %h"),
            Ok("ProxyCommand=nc -X a=b %h".to_owned())
        );
        for bad in [
            "",
            "ConnectTimeout",
            "ConnectTimeout 10",
            "=10",
            "A=",
            "A=1\nProxyCommand=x",
            "-o A=1",
        ] {
            assert!(
                matches!(ssh_option(bad), Err(AccessError::SshOption { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_ssh_option_that_a_key_of_the_node_says_is_refused_whatever_its_case() {
        for owned in [
            "HostName=a",
            "user=a",
            "PORT=1",
            "identityfile=a",
            "HostKeyAlias=a",
        ] {
            assert!(
                matches!(ssh_option(owned), Err(AccessError::OwnedOption { .. })),
                "{owned}"
            );
        }
    }

    #[test]
    fn a_domain_has_one_form() {
        let longest_label = format!("{}.test", "a".repeat(63));
        for good in ["app.example.test", "xn--bcher-kva.test", "a.b", &longest_label] {
            assert_eq!(domain(good), Ok(good.to_owned()));
        }
        let long_label = format!("{}.test", "a".repeat(64));
        let long_name = "a.".repeat(126) + "ab";
        for bad in [
            "",
            "App.test",
            "app.test.",
            "*.test",
            "a..b",
            "-a.test",
            "a_b.test",
            "10.0.0.1",
            &long_label,
            &long_name,
        ] {
            assert!(domain(bad).is_err(), "{bad}");
        }
    }
}
