//! What makes a booted guest the machine that was asked for.

use std::net::Ipv4Addr;
use std::time::SystemTime;

use super::{Place, Share, share};
use crate::agent::{Bytes, Interface, Mount, Setup, SetupFile};
use crate::laboratory::addresses::Book;
use crate::names::Name;
use crate::net::Mac;

/// The card by which the host reaches a guest: QEMU's user network, where the guest has this address.
pub(crate) const MANAGEMENT_ADDRESS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 2, 15), 24);

/// What a guest's agent makes of it, at each boot, besides setting its clock. `files` are for the first one only: later it has its own.
pub(crate) fn setup(
    name: &Name,
    management: Mac,
    places: &[Place],
    shares: &[Share],
    book: &Book,
    files: Vec<SetupFile>,
) -> Setup {
    let card = |mac: Mac, address: Ipv4Addr, prefix: u8| Interface {
        mac: mac.0,
        new_mac: None,
        addresses: vec![(address.into(), prefix)],
        gateway: None,
        up: true,
    };
    let (address, prefix) = MANAGEMENT_ADDRESS;
    let interfaces = std::iter::once(card(management, address, prefix)).chain(
        places
            .iter()
            .map(|place| card(place.mac, place.address, place.subnet.prefix())),
    );
    let mounts = shares.iter().enumerate().map(|(index, share)| Mount {
        serial: share::serial(index),
        target: share.guest.clone(),
        fstype: "squashfs".to_owned(),
        read_only: true,
    });
    Setup {
        hostname: Some(name.to_string()),
        hosts: book
            .hosts()
            .into_iter()
            .map(|(address, names)| (address.into(), names))
            .collect(),
        interfaces: interfaces.collect(),
        mounts: mounts.collect(),
        files,
        entropy: Bytes(rand::random::<[u8; 32]>().to_vec()),
        ..Setup::default()
    }
}

/// The host's clock, as a guest is set by it.
pub(super) fn now() -> Option<u64> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since_1970.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::addresses::{Address, Wish};

    #[test]
    fn a_guest_gets_its_name_its_cards_its_neighbours_and_its_shares() {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let wish = |vlan: &str| Wish {
            vlan: name(vlan),
            address: Address::Next,
        };
        let mut book = Book::default();
        book.assign(&[
            (name("db"), vec![wish("mesh")]),
            (name("app"), vec![wish("mesh")]),
        ])
        .unwrap();
        let places = book
            .cards(&name("app"))
            .into_iter()
            .map(|(vlan, address, subnet)| {
                let mac = Mac::of("app", vlan.as_str());
                Place {
                    vlan,
                    mac,
                    address,
                    subnet,
                }
            });
        let share = Share {
            host: "/tools".into(),
            guest: "/opt/tools".to_owned(),
        };
        let management = Mac::of("app", "management");
        let places: Vec<_> = places.collect();
        let setup = setup(&name("app"), management, &places, &[share], &book, Vec::new());

        assert_eq!(setup.hostname.as_deref(), Some("app"));
        let hosts: Vec<_> = setup
            .hosts
            .iter()
            .map(|(address, names)| format!("{address} {}", names.join(" ")))
            .collect();
        assert_eq!(hosts, ["10.90.0.1 db db.mesh", "10.90.0.2 app app.mesh"]);
        let cards: Vec<_> = setup
            .interfaces
            .iter()
            .map(|card| (Mac(card.mac), card.addresses[0]))
            .collect();
        let address = |text: &str, prefix: u8| (text.parse().unwrap(), prefix);
        let mesh = Mac::of("app", "mesh");
        assert_eq!(
            cards,
            [
                (management, address("10.0.2.15", 24)),
                (mesh, address("10.90.0.2", 24))
            ]
        );
        assert_eq!(setup.mounts[0].serial, share::serial(0));
        assert_eq!(setup.mounts[0].target, "/opt/tools");
    }

    #[test]
    fn no_two_guests_get_the_same_entropy() {
        let entropy = || {
            let name: Name = "app".parse().unwrap();
            setup(
                &name,
                Mac::of("app", "management"),
                &[],
                &[],
                &Book::default(),
                Vec::new(),
            )
            .entropy
        };
        assert_ne!(entropy(), entropy());
    }
}
