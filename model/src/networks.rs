//! Networks that nodes are members of. A node is in a network when its entry gives it an address there, and by
//! nothing else: membership never asks who answers whom.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

use crate::diagnostic::Place;
use crate::fleet::Node;
use crate::names::{NetworkName, NodeName};

/// A network of the fleet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Network {
    /// The addresses it holds.
    pub cidr: Cidr,
    /// Where it is declared.
    pub place: Place,
}

/// A range of addresses, such as `10.90.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    base: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Whether it holds `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                masked(address, self.prefix) == self.base
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// How one node reaches another: by the first network, by name, that both are members of. Looks at the two nodes only.
pub(crate) fn shared<'a>(from: &Node, to: &'a Node) -> Option<Member<'a>> {
    let (network, address) = to
        .networks
        .iter()
        .find(|(network, _)| from.networks.contains_key(*network))?;
    Some(Member {
        node: &to.name,
        network,
        address: *address,
    })
}

/// A node in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    node: &'a NodeName,
    pub(crate) network: &'a NetworkName,
    pub(crate) address: IpAddr,
}

impl Member<'_> {
    /// What the node is called there, such as `database.mesh`. Both names are DNS labels, so that no two members
    /// share a name.
    pub(crate) fn host_name(&self) -> String {
        format!("{}.{}", self.node, self.network)
    }
}

/// Why a text is not a range of addresses. [`CidrError::help`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CidrError {
    /// Not `<address>/<prefix length>`.
    #[error("`{text}` is not a range of addresses")]
    Form {
        /// As written.
        text: String,
    },
    /// Bits are set below the prefix, so that either of the two is mistyped.
    #[error("`{text}` has bits set below its prefix")]
    HostBits {
        /// As written.
        text: String,
        /// The range that holds it.
        range: Cidr,
    },
}

impl CidrError {
    /// What to do.
    pub fn help(&self) -> String {
        match self {
            CidrError::Form { .. } => {
                "write the first address and the prefix length, such as `10.90.0.0/24`".to_owned()
            }
            CidrError::HostBits { range, .. } => format!("write `{range}`, if that is the range you mean"),
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let form = || CidrError::Form {
            text: text.to_owned(),
        };
        let (address, prefix) = text.split_once('/').ok_or_else(form)?;
        let base: IpAddr = address.parse().map_err(|_| form())?;
        // `parse` accepts `+24` and `024`.
        let canonical = |prefix: &u8| prefix.to_string() == text[address.len() + 1..];
        let prefix = prefix
            .parse()
            .ok()
            .filter(canonical)
            .filter(|prefix| *prefix <= bits(base))
            .ok_or_else(form)?;
        let range = Cidr {
            base: masked(base, prefix),
            prefix,
        };
        if range.base != base {
            return Err(CidrError::HostBits {
                text: text.to_owned(),
                range,
            });
        }
        Ok(range)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.base, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address with the bits below `prefix` cleared; `prefix` is at most the address' bits.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let clear = u32::from(bits(address).saturating_sub(prefix));
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(clear).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(clear).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_addresses_that_share_its_prefix() {
        for (range, address, held) in [
            ("10.90.0.0/24", "10.90.0.0", true),
            ("10.90.0.0/24", "10.90.0.255", true),
            ("10.90.0.0/24", "10.90.1.0", false),
            ("10.90.0.7/32", "10.90.0.7", true),
            ("10.90.0.7/32", "10.90.0.6", false),
            ("0.0.0.0/0", "203.0.113.1", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "fe80::1", true),
            ("fd00::/8", "10.0.0.1", false),
        ] {
            let cidr: Cidr = range.parse().unwrap();
            assert_eq!(cidr.contains(address.parse().unwrap()), held, "{range} {address}");
            assert_eq!(cidr.to_string(), range);
        }
    }

    #[test]
    fn another_form_is_refused() {
        for bad in [
            "",
            "10.90.0.0",
            "10.90.0.0/",
            "10.90.0.0/33",
            "fd00::/129",
            "10.90.0.0/024",
            "10.90.0.0/+24",
            "a/8",
        ] {
            assert!(
                matches!(bad.parse::<Cidr>(), Err(CidrError::Form { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn bits_below_the_prefix_are_refused_and_the_help_gives_the_range() {
        let error = "10.90.0.1/24".parse::<Cidr>().unwrap_err();
        assert_eq!(
            error.help(),
            "write `10.90.0.0/24`, if that is the range you mean"
        );
    }
}
