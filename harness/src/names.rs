//! Names of machines and VLANs: both stand in host names, so both are host name labels.

use std::fmt;
use std::str::FromStr;

/// The name of a machine or a VLAN: 1 to 63 of `a-z`, `0-9` and `-`, with a letter first and no `-` last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` cannot name a machine or a VLAN: use 1 to 63 of a-z, 0-9 and `-`, a letter first and no `-` last"
)]
pub struct NameError {
    /// The name as given.
    pub text: String,
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let valid = text.len() <= 63
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && !text.ends_with('-')
            && text.bytes().all(allowed);
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError {
                text: text.to_owned(),
            })
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_host_name_label() {
        let long = "a".repeat(64);
        for good in ["a", "app", "db-2", "x9", &long[..63]] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "App", "2db", "-db", "db-", "a.b", "a_b", "é", "../x", &long] {
            assert_eq!(
                bad.parse::<Name>(),
                Err(NameError { text: bad.to_owned() }),
                "{bad}"
            );
        }
    }
}
