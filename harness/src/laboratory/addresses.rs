//! Who has which address on which VLAN: a book without any I/O.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::names::Name;
use crate::net::{Subnet, SubnetError};

/// The addresses of a lab.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    vlans: BTreeMap<Name, Vlan>,
    /// Each machine's VLANs, in the order of its cards.
    machines: BTreeMap<Name, Vec<(Name, Ipv4Addr)>>,
}

#[derive(Clone, Debug)]
struct Vlan {
    subnet: Subnet,
    holders: BTreeMap<Ipv4Addr, Name>,
}

/// A machine's wish for a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) vlan: Name,
    pub(crate) address: Address,
}

/// Which address a card gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The lowest one that is free.
    Next,
    /// This one.
    Fixed(Ipv4Addr),
}

/// Why addresses cannot be given as wished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The subnet does not have such an address, or no more.
    #[error("VLAN `{vlan}`: {error}")]
    Subnet {
        /// The VLAN.
        vlan: Name,
        /// What is wrong.
        error: SubnetError,
    },
    /// Two machines want one address.
    #[error("VLAN `{vlan}`: `{wants}` wants {address}, which `{holds}` has: give one of them another")]
    Taken {
        /// The VLAN.
        vlan: Name,
        /// The address.
        address: Ipv4Addr,
        /// Who has it.
        holds: Name,
        /// Who wants it too.
        wants: Name,
    },
    /// A machine's name is used twice.
    #[error("this lab has a machine `{machine}` already: give the second one another name")]
    SecondMachine {
        /// The name.
        machine: Name,
    },
    /// A machine is plugged twice into one VLAN.
    #[error("`{machine}` is on VLAN `{vlan}` twice: name each VLAN once")]
    SecondCard {
        /// The machine.
        machine: Name,
        /// The VLAN.
        vlan: Name,
    },
    /// A VLAN's subnet cannot change once it is in use.
    #[error(
        "VLAN `{vlan}` is in use with {in_use} already: choose its subnet before the first machine is on it"
    )]
    InUse {
        /// The VLAN.
        vlan: Name,
        /// Its subnet.
        in_use: Subnet,
    },
}

impl Book {
    /// Gives `vlan` this subnet.
    pub(crate) fn choose(&mut self, vlan: &Name, subnet: Subnet) -> Result<(), AddressError> {
        match self.vlans.get(vlan) {
            Some(known) if known.subnet != subnet => Err(AddressError::InUse {
                vlan: vlan.clone(),
                in_use: known.subnet,
            }),
            Some(_) => Ok(()),
            None => {
                self.vlans.insert(
                    vlan.clone(),
                    Vlan {
                        subnet,
                        holders: BTreeMap::new(),
                    },
                );
                Ok(())
            }
        }
    }

    /// Gives each machine's cards their addresses, in order; those that were asked for by number are given first. After an error
    /// nothing has changed.
    pub(crate) fn assign(&mut self, wishes: &[(Name, Vec<Wish>)]) -> Result<(), AddressError> {
        let mut book = self.clone();
        for (machine, cards) in wishes {
            book.enter(machine, cards)?;
        }
        for fixed in [true, false] {
            for (machine, cards) in wishes {
                for wish in cards
                    .iter()
                    .filter(|wish| matches!(wish.address, Address::Fixed(_)) == fixed)
                {
                    book.give(machine, wish)?;
                }
            }
        }
        *self = book;
        Ok(())
    }

    /// The machine's address on each of its VLANs, with the VLAN's subnet, in the order of its cards.
    pub(crate) fn cards(&self, machine: &Name) -> Vec<(Name, Ipv4Addr, Subnet)> {
        let cards = self.machines.get(machine).into_iter().flatten();
        cards
            .map(|(vlan, address)| (vlan.clone(), *address, self.vlans[vlan].subnet))
            .collect()
    }

    /// What every guest's `/etc/hosts` says: `name.vlan` for each card, and `name` for a machine's first one.
    pub(crate) fn hosts(&self) -> Vec<(Ipv4Addr, Vec<String>)> {
        let mut hosts = Vec::new();
        for (machine, cards) in &self.machines {
            for (index, (vlan, address)) in cards.iter().enumerate() {
                let full = format!("{machine}.{vlan}");
                let names = if index == 0 {
                    vec![machine.to_string(), full]
                } else {
                    vec![full]
                };
                hosts.push((*address, names));
            }
        }
        hosts.sort();
        hosts
    }

    fn enter(&mut self, machine: &Name, cards: &[Wish]) -> Result<(), AddressError> {
        if self.machines.contains_key(machine) {
            return Err(AddressError::SecondMachine {
                machine: machine.clone(),
            });
        }
        let mut vlans = Vec::new();
        for wish in cards {
            if vlans.iter().any(|(vlan, _)| *vlan == wish.vlan) {
                return Err(AddressError::SecondCard {
                    machine: machine.clone(),
                    vlan: wish.vlan.clone(),
                });
            }
            vlans.push((wish.vlan.clone(), Ipv4Addr::UNSPECIFIED));
            let next = Subnet::nth_default(self.vlans.len() as u8);
            self.vlans.entry(wish.vlan.clone()).or_insert(Vlan {
                subnet: next,
                holders: BTreeMap::new(),
            });
        }
        self.machines.insert(machine.clone(), vlans);
        Ok(())
    }

    fn give(&mut self, machine: &Name, wish: &Wish) -> Result<(), AddressError> {
        let refused = |error| AddressError::Subnet {
            vlan: wish.vlan.clone(),
            error,
        };
        let Some(vlan) = self.vlans.get_mut(&wish.vlan) else {
            return Ok(());
        };
        let address = match wish.address {
            Address::Next => vlan
                .subnet
                .next_free(|address| vlan.holders.contains_key(&address))
                .map_err(refused)?,
            Address::Fixed(address) => vlan.subnet.check(address).map_err(refused)?,
        };
        if let Some(holds) = vlan.holders.insert(address, machine.clone()) {
            let (vlan, wants) = (wish.vlan.clone(), machine.clone());
            return Err(AddressError::Taken {
                vlan,
                address,
                holds,
                wants,
            });
        }
        let cards = self.machines.entry(machine.clone()).or_default();
        cards
            .iter_mut()
            .filter(|(vlan, _)| *vlan == wish.vlan)
            .for_each(|card| card.1 = address);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn next(vlan: &str) -> Wish {
        Wish {
            vlan: name(vlan),
            address: Address::Next,
        }
    }

    fn fixed(vlan: &str, address: &str) -> Wish {
        Wish {
            vlan: name(vlan),
            address: Address::Fixed(address.parse().unwrap()),
        }
    }

    fn addresses(book: &Book, machine: &str) -> Vec<String> {
        book.cards(&name(machine))
            .iter()
            .map(|(_, address, _)| address.to_string())
            .collect()
    }

    #[test]
    fn addresses_are_given_in_order_around_those_that_were_chosen() {
        let mut book = Book::default();
        let wishes = [
            (name("app"), vec![next("mesh"), next("storage")]),
            (name("db"), vec![next("mesh")]),
            (name("backend"), vec![fixed("mesh", "10.90.0.1")]),
        ];
        book.assign(&wishes).unwrap();
        assert_eq!(addresses(&book, "app"), ["10.90.0.2", "10.90.1.1"]);
        assert_eq!(addresses(&book, "db"), ["10.90.0.3"]);
        assert_eq!(addresses(&book, "backend"), ["10.90.0.1"]);
    }

    #[test]
    fn every_guest_knows_each_name_and_where_it_is() {
        let mut book = Book::default();
        let wishes = [
            (name("db"), vec![next("mesh")]),
            (name("app"), vec![next("mesh"), next("storage")]),
        ];
        book.assign(&wishes).unwrap();
        let hosts: Vec<_> = book
            .hosts()
            .into_iter()
            .map(|(address, names)| format!("{address} {}", names.join(" ")))
            .collect();
        assert_eq!(
            hosts,
            [
                "10.90.0.1 db db.mesh",
                "10.90.0.2 app app.mesh",
                "10.90.1.1 app.storage"
            ]
        );
    }

    #[test]
    fn a_vlan_s_subnet_can_be_chosen_until_it_is_used() {
        let mut book = Book::default();
        let chosen: Subnet = "192.0.2.0/28".parse().unwrap();
        book.choose(&name("mesh"), chosen).unwrap();
        book.assign(&[(name("app"), vec![next("mesh")])]).unwrap();
        assert_eq!(addresses(&book, "app"), ["192.0.2.1"]);
        let late = book.choose(&name("mesh"), "198.51.100.0/24".parse().unwrap());
        assert_eq!(
            late,
            Err(AddressError::InUse {
                vlan: name("mesh"),
                in_use: chosen
            })
        );
    }

    #[test]
    fn what_cannot_be_given_is_refused_and_changes_nothing() {
        let mut book = Book::default();
        book.assign(&[(name("app"), vec![next("mesh")])]).unwrap();
        let before = book.hosts();
        let cases = [
            (
                "taken",
                vec![(name("db"), vec![fixed("mesh", "10.90.0.1")])],
                "`db` wants 10.90.0.1, which `app` has",
            ),
            (
                "outside",
                vec![(name("db"), vec![fixed("mesh", "10.91.0.1")])],
                "10.91.0.1 is not an address for a guest",
            ),
            (
                "same name",
                vec![(name("app"), vec![])],
                "has a machine `app` already",
            ),
            (
                "same name at once",
                vec![(name("db"), vec![]), (name("db"), vec![])],
                "has a machine `db` already",
            ),
            (
                "same VLAN",
                vec![(name("db"), vec![next("mesh"), next("mesh")])],
                "is on VLAN `mesh` twice",
            ),
            (
                "second fails",
                vec![(name("db"), vec![next("mesh")]), (name("app"), vec![])],
                "has a machine `app` already",
            ),
        ];
        for (case, wishes, hint) in cases {
            let message = book.assign(&wishes).unwrap_err().to_string();
            assert!(message.contains(hint), "{case}: {message}");
            assert_eq!(book.hosts(), before, "{case}");
        }
    }
}
