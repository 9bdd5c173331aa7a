//! The addresses of a VLAN.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 subnet in which the guests of one VLAN live, written `10.90.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    network: Ipv4Addr,
    prefix: u8,
}

/// What can be wrong with a subnet, or with an address in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubnetError {
    /// The text is not an address, a slash and a prefix length.
    #[error(
        "`{text}` is not a subnet: write an IPv4 address and a prefix length of 8 to 30, such as 10.90.0.0/24"
    )]
    Malformed {
        /// The text as given.
        text: String,
    },
    /// Bits beyond the prefix are set.
    #[error("`{text}` has bits set beyond its prefix: write {network}/{prefix}")]
    HostBits {
        /// The text as given.
        text: String,
        /// The address with these bits cleared.
        network: Ipv4Addr,
        /// The prefix length.
        prefix: u8,
    },
    /// An address that no guest can have there.
    #[error("{address} is not an address for a guest in {subnet}: choose one from {} to {}", .subnet.first(), .subnet.last())]
    Outside {
        /// The address.
        address: Ipv4Addr,
        /// The subnet.
        subnet: Subnet,
    },
    /// Every address is taken.
    #[error("no address is left in {subnet}: give the VLAN a shorter prefix")]
    Full {
        /// The subnet.
        subnet: Subnet,
    },
}

impl Subnet {
    /// The subnet a VLAN gets unless another is chosen: 10.90.N.0/24, where N counts the lab's VLANs from 0.
    pub fn nth_default(index: u8) -> Self {
        Self {
            network: Ipv4Addr::new(10, 90, index, 0),
            prefix: 24,
        }
    }

    /// The length of the network part, in bits.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// The lowest address a guest can have.
    pub fn first(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits() + 1)
    }

    /// The highest address a guest can have; the one after it is the broadcast address.
    pub fn last(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network.to_bits() + (u32::MAX >> self.prefix) - 1)
    }

    /// Accepts `address` if a guest can have it.
    ///
    /// # Errors
    /// [`SubnetError::Outside`].
    pub fn check(self, address: Ipv4Addr) -> Result<Ipv4Addr, SubnetError> {
        if (self.first()..=self.last()).contains(&address) {
            Ok(address)
        } else {
            Err(SubnetError::Outside {
                address,
                subnet: self,
            })
        }
    }

    /// The lowest address that `taken` does not hold.
    ///
    /// # Errors
    /// [`SubnetError::Full`].
    pub fn next_free(self, taken: impl Fn(Ipv4Addr) -> bool) -> Result<Ipv4Addr, SubnetError> {
        (self.first().to_bits()..=self.last().to_bits())
            .map(Ipv4Addr::from_bits)
            .find(|address| !taken(*address))
            .ok_or(SubnetError::Full { subnet: self })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, SubnetError> {
        let malformed = || SubnetError::Malformed {
            text: text.to_owned(),
        };
        let (address, prefix) = text.split_once('/').ok_or_else(malformed)?;
        let address: Ipv4Addr = address.parse().map_err(|_| malformed())?;
        let prefix: u8 = prefix.parse().map_err(|_| malformed())?;
        if !(8..=30).contains(&prefix) {
            return Err(malformed());
        }
        let network = Ipv4Addr::from_bits(address.to_bits() & !(u32::MAX >> prefix));
        if network == address {
            Ok(Self { network, prefix })
        } else {
            Err(SubnetError::HostBits {
                text: text.to_owned(),
                network,
                prefix,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn a_subnet_reads_back_as_written() {
        for text in ["10.90.0.0/24", "192.168.4.0/30", "10.0.0.0/8"] {
            assert_eq!(subnet(text).to_string(), text);
        }
    }

    #[test]
    fn a_mistake_in_a_subnet_is_named_with_what_to_write() {
        let cases = [
            ("10.90.0.0", "write an IPv4 address and a prefix length"),
            ("10.90.0/24", "write an IPv4 address and a prefix length"),
            ("10.90.0.0/31", "8 to 30"),
            ("10.90.0.0/x", "8 to 30"),
            ("10.90.0.7/24", "write 10.90.0.0/24"),
        ];
        for (text, hint) in cases {
            let message = text.parse::<Subnet>().unwrap_err().to_string();
            assert!(message.contains(hint), "{text}: {message}");
        }
    }

    #[test]
    fn addresses_are_given_in_order_and_skip_those_taken() {
        let taken = [Ipv4Addr::new(10, 90, 0, 1), Ipv4Addr::new(10, 90, 0, 2)];
        assert_eq!(
            subnet("10.90.0.0/24").next_free(|address| taken.contains(&address)),
            Ok(Ipv4Addr::new(10, 90, 0, 3))
        );
    }

    #[test]
    fn a_full_subnet_says_so() {
        let small = subnet("192.168.4.0/30");
        let taken = [Ipv4Addr::new(192, 168, 4, 1), Ipv4Addr::new(192, 168, 4, 2)];
        assert_eq!(
            small.next_free(|address| taken.contains(&address)),
            Err(SubnetError::Full { subnet: small })
        );
    }

    #[test]
    fn network_and_broadcast_addresses_are_not_for_guests() {
        let mesh = subnet("10.90.0.0/24");
        assert_eq!(
            mesh.check(Ipv4Addr::new(10, 90, 0, 254)),
            Ok(Ipv4Addr::new(10, 90, 0, 254))
        );
        for last in [0, 255] {
            let message = mesh
                .check(Ipv4Addr::new(10, 90, 0, last))
                .unwrap_err()
                .to_string();
            assert_eq!(
                message,
                format!(
                    "10.90.0.{last} is not an address for a guest in 10.90.0.0/24: choose one from 10.90.0.1 to 10.90.0.254"
                )
            );
        }
    }
}
