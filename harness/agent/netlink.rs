//! Interfaces, addresses and routes, told to the kernel by rtnetlink.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::IpAddr;

use crate::sys;
use crate::wire::Interface;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;

const IFLA_ADDRESS: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 0x02;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const IFF_UP: u32 = 1;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const LOOPBACK: u32 = 1;

/// An interface as the kernel lists it.
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) mac: [u8; 6],
}

/// A connection to the kernel's routing tables.
pub(crate) struct Netlink {
    socket: File,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            socket: sys::route_socket()?,
            sequence: 0,
        })
    }

    /// All interfaces with a MAC; the loopback interface has one of zeros.
    pub(crate) fn links(&mut self) -> io::Result<Vec<Link>> {
        let answers = self.request(RTM_GETLINK, NLM_F_DUMP, &link_message(0, LinkState::AsItIs))?;
        Ok(answers.iter().filter_map(|answer| parse_link(answer)).collect())
    }

    pub(crate) fn bring_loopback_up(&mut self) -> io::Result<()> {
        self.request(RTM_NEWLINK, NLM_F_ACK, &link_message(LOOPBACK, LinkState::Up))
            .map(drop)
    }

    /// Gives an interface its MAC, addresses and default route.
    pub(crate) fn configure(&mut self, index: u32, interface: &Interface) -> io::Result<()> {
        self.remove_addresses(index)?;
        if let Some(mac) = interface.new_mac {
            // Many drivers refuse a new MAC while the interface is up.
            let mut message = link_message(index, LinkState::Down);
            attribute(&mut message, IFLA_ADDRESS, &mac);
            self.request(RTM_NEWLINK, NLM_F_ACK, &message)?;
        }
        let state = if interface.up {
            LinkState::Up
        } else {
            LinkState::Down
        };
        self.request(RTM_NEWLINK, NLM_F_ACK, &link_message(index, state))?;
        for (address, prefix) in &interface.addresses {
            let message = address_message(index, *address, *prefix);
            self.request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &message)?;
        }
        if let Some(gateway) = interface.gateway {
            let message = default_route_message(index, gateway);
            self.request(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &message)?;
        }
        Ok(())
    }

    /// Removes the IPv4 addresses; those of IPv6 go when the interface goes down, and the link-local one must stay.
    fn remove_addresses(&mut self, index: u32) -> io::Result<()> {
        let any = [AF_INET, 0, 0, 0, 0, 0, 0, 0];
        for answer in self.request(RTM_GETADDR, NLM_F_DUMP, &any)? {
            if answer.get(4..8) == Some(&index.to_ne_bytes()) {
                self.request(RTM_DELADDR, NLM_F_ACK, &answer)?;
            }
        }
        Ok(())
    }

    /// Sends one request and gives the bodies of all answers, up to the acknowledgement or the end of the dump.
    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let mut message = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(body);
        self.socket.write_all(&message)?;
        let mut answers = Vec::new();
        let mut packet = vec![0; 64 * 1024];
        loop {
            let length = self.socket.read(&mut packet)?;
            for (kind, sequence, body) in messages(&packet[..length]) {
                match kind {
                    _ if sequence != self.sequence => {}
                    NLMSG_DONE => return Ok(answers),
                    NLMSG_ERROR => return acknowledged(body).map(|()| answers),
                    _ => answers.push(body.to_vec()),
                }
            }
        }
    }
}

/// Splits a packet into its messages: kind, sequence number, body.
fn messages(mut packet: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*packet.first_chunk()?) as usize;
        let message = packet.get(..length)?;
        let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
        let sequence = u32::from_ne_bytes(*message.get(8..)?.first_chunk()?);
        packet = packet.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, message.get(16..)?))
    })
}

/// An error message carries the negative error number; zero is the acknowledgement.
fn acknowledged(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(number) => Err(io::Error::from_raw_os_error(-number)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn parse_link(body: &[u8]) -> Option<Link> {
    let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let mut attributes = body.get(16..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        if kind == IFLA_ADDRESS {
            return Some(Link {
                index,
                mac: attributes.get(4..length)?.try_into().ok()?,
            });
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

enum LinkState {
    AsItIs,
    Up,
    Down,
}

/// `struct ifinfomsg`.
fn link_message(index: u32, state: LinkState) -> Vec<u8> {
    let (flags, change) = match state {
        LinkState::AsItIs => (0, 0),
        LinkState::Up => (IFF_UP, IFF_UP),
        LinkState::Down => (0, IFF_UP),
    };
    let mut message = vec![0; 4];
    message.extend(index.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(change.to_ne_bytes());
    message
}

/// `struct ifaddrmsg` and its attributes. IPv6 addresses are usable at once: nobody else has them.
fn address_message(index: u32, address: IpAddr, prefix: u8) -> Vec<u8> {
    let (family, bytes) = family_and_bytes(address);
    let flags = if address.is_ipv6() { IFA_F_NODAD } else { 0 };
    let mut message = vec![family, prefix, flags, 0];
    message.extend(index.to_ne_bytes());
    attribute(&mut message, IFA_LOCAL, &bytes);
    attribute(&mut message, IFA_ADDRESS, &bytes);
    message
}

/// `struct rtmsg` and its attributes: a static unicast route to everywhere, in the main table.
fn default_route_message(index: u32, gateway: IpAddr) -> Vec<u8> {
    const RT_TABLE_MAIN: u8 = 254;
    const RTPROT_STATIC: u8 = 4;
    const RTN_UNICAST: u8 = 1;
    let (family, bytes) = family_and_bytes(gateway);
    let mut message = vec![
        family,
        0,
        0,
        0,
        RT_TABLE_MAIN,
        RTPROT_STATIC,
        0,
        RTN_UNICAST,
        0,
        0,
        0,
        0,
    ];
    attribute(&mut message, RTA_GATEWAY, &bytes);
    attribute(&mut message, RTA_OIF, &index.to_ne_bytes());
    message
}

fn family_and_bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}
