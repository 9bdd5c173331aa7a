//! Hardware addresses of guests, the same in every run.

use std::fmt;

use sha2::{Digest, Sha256};

/// A hardware (Ethernet) address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of `machine`'s card on `network`: a pure function of the two names, so that a log of one run
    /// can be read beside that of another.
    ///
    /// The first byte, 52 (hexadecimal), marks it as locally administered and unicast.
    pub fn of(machine: &str, network: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(machine.as_bytes())
            .chain_update([0])
            .chain_update(network.as_bytes())
            .finalize();
        let mut bytes = [0x52; 6];
        bytes[1..].copy_from_slice(&digest[..5]);
        Self(bytes)
    }

    /// True for broadcast and multicast addresses: frames to them go to everyone.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_card_has_the_same_address_in_every_run() {
        assert_eq!(Mac::of("app", "mesh").to_string(), "52:bd:cf:2c:c8:8e");
    }

    #[test]
    fn every_card_has_its_own_address() {
        let cards = [
            Mac::of("app", "mesh"),
            Mac::of("app", "storage"),
            Mac::of("db", "mesh"),
            Mac::of("appm", "esh"),
        ];
        let distinct = cards.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(distinct.len(), cards.len());
    }

    #[test]
    fn a_card_is_never_a_group() {
        assert!(!Mac::of("app", "mesh").is_group());
        assert!(Mac([0xff; 6]).is_group());
    }
}
