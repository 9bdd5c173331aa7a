//! What a switch does with a frame: a pure decision, apart from any socket.

use std::collections::BTreeMap;

use super::Mac;

/// A place where one card is plugged into a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub usize);

/// Where a frame goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forward {
    /// To the one port behind which its destination was seen.
    To(Port),
    /// To every port but the one it came from: a group address, or a destination nobody has heard from yet.
    Flood,
    /// Nowhere.
    Drop(DropReason),
}

/// Why a frame goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// It is too short to hold an Ethernet header (14 bytes).
    Runt,
    /// Its destination stands behind the port it came from.
    Local,
}

/// Which address was last seen behind which port.
#[derive(Clone, Debug, Default)]
pub struct Table {
    seen: BTreeMap<Mac, Port>,
}

impl Table {
    /// Remembers that the sender of `frame` stands behind `from`. A card that moved is known at its new port.
    pub fn learn(&mut self, from: Port, frame: &[u8]) {
        if let Some((_, source)) = addresses(frame)
            && !source.is_group()
        {
            self.seen.insert(source, from);
        }
    }

    /// Decides where `frame`, which came in by `from`, goes.
    pub fn forward(&self, from: Port, frame: &[u8]) -> Forward {
        let Some((destination, _)) = addresses(frame) else {
            return Forward::Drop(DropReason::Runt);
        };
        match self.seen.get(&destination) {
            _ if destination.is_group() => Forward::Flood,
            None => Forward::Flood,
            Some(&port) if port == from => Forward::Drop(DropReason::Local),
            Some(&port) => Forward::To(port),
        }
    }
}

/// Destination and source of an Ethernet frame.
fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let (destination, rest) = frame.split_first_chunk::<6>()?;
    let (source, rest) = rest.split_first_chunk::<6>()?;
    (rest.len() >= 2).then_some((Mac(*destination), Mac(*source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Mac = Mac([0x52, 0, 0, 0, 0, 1]);
    const BOB: Mac = Mac([0x52, 0, 0, 0, 0, 2]);
    const EVERYONE: Mac = Mac([0xff; 6]);

    fn frame(to: Mac, from: Mac) -> Vec<u8> {
        [&to.0[..], &from.0[..], &[8, 0], b"payload"].concat()
    }

    fn table(seen: &[(Mac, Port)]) -> Table {
        let mut table = Table::default();
        for (mac, port) in seen {
            table.learn(*port, &frame(EVERYONE, *mac));
        }
        table
    }

    #[test]
    fn a_frame_goes_where_its_destination_was_last_seen() {
        let (first, second, third) = (Port(0), Port(1), Port(2));
        let both = [(ALICE, first), (BOB, second)];
        let none: [(Mac, Port); 0] = [];
        let moved = [(BOB, second), (BOB, third)];
        let cases = [
            (
                "unknown destination",
                &none[..],
                first,
                frame(BOB, ALICE),
                Forward::Flood,
            ),
            (
                "known destination",
                &both,
                first,
                frame(BOB, ALICE),
                Forward::To(second),
            ),
            ("broadcast", &both, first, frame(EVERYONE, ALICE), Forward::Flood),
            (
                "same port",
                &both,
                second,
                frame(BOB, ALICE),
                Forward::Drop(DropReason::Local),
            ),
            ("moved card", &moved, first, frame(BOB, ALICE), Forward::To(third)),
            (
                "thirteen bytes",
                &both,
                first,
                frame(BOB, ALICE)[..13].to_vec(),
                Forward::Drop(DropReason::Runt),
            ),
            (
                "no byte",
                &both,
                first,
                Vec::new(),
                Forward::Drop(DropReason::Runt),
            ),
        ];
        for (name, seen, from, bytes, expected) in cases {
            assert_eq!(table(seen).forward(from, &bytes), expected, "{name}");
        }
    }

    #[test]
    fn a_group_address_is_never_learned() {
        let mut table = Table::default();
        table.learn(Port(0), &frame(ALICE, EVERYONE));
        assert_eq!(table.forward(Port(1), &frame(EVERYONE, BOB)), Forward::Flood);
        assert!(table.seen.is_empty());
    }
}
