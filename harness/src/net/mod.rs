//! Networks between guests, without privileges: each VLAN is one userspace switch on unix datagram sockets.
//!
//! QEMU's `-netdev dgram` sends one Ethernet frame per datagram and tolerates any start order and missing peers.
//! Measured under software emulation: 21 to 25 MiB/s between two guests, 1.4 to 2 ms round trip.

mod capture;
mod forward;
mod impair;
mod mac;
mod subnet;
mod switch;

pub use forward::{DropReason, Forward, Port, Table};
pub use impair::{Effect, Fate, FaultId, Impairments, Links, Way};
pub use mac::Mac;
pub use subnet::{Subnet, SubnetError};
pub use switch::{Counters, Plug, Switch, SwitchError};
