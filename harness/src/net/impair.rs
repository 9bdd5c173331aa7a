//! What faults do to a frame: a pure decision over its way, its length, the time and a seeded generator.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::Port;

/// How long the line of frames before a limited link may be. A frame that would wait longer is lost, as at a router whose buffer
/// is full; so TCP learns of the limit within a quarter of a second.
const LONGEST_LINE: Duration = Duration::from_millis(250);

/// The way of a frame through a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Where it came in.
    pub from: Port,
    /// Where it goes out.
    pub to: Port,
}

/// Which ways a fault lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// All of them.
    Everywhere,
    /// All from and to this port.
    Around(Port),
    /// Both ways between two ports.
    Between(Port, Port),
    /// One way only.
    OneWay(Way),
}

/// What a fault does to the frames on its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Loses all. The guest's card still has its link, as behind a switch whose uplink is cut.
    Cut,
    /// Loses this share of them, each by itself, in hundredths; above 100 is 100.
    Lose {
        /// The share.
        percent: u8,
    },
    /// Lets so many bytes a second through, on each way by itself.
    Limit {
        /// The bytes.
        bytes_per_second: NonZeroU32,
    },
    /// Holds each back, for a time that is spread evenly around `by`. Frames on one way keep their order.
    Delay {
        /// The mean.
        by: Duration,
        /// The time is at most so much shorter or longer.
        jitter: Duration,
    },
}

/// A fault in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// What becomes of a frame. Times count from the switch's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes out then: now, or later.
    Deliver {
        /// When.
        at: Duration,
    },
    /// An effect took it.
    Lost(Effect),
}

/// The faults of one switch.
#[derive(Clone, Debug, Default)]
pub struct Impairments {
    active: BTreeMap<FaultId, Active>,
    last: u64,
}

#[derive(Clone, Debug)]
struct Active {
    links: Links,
    effect: Effect,
    random: Xoshiro256PlusPlus,
    /// Until when each way is taken: by frames on a limited link, or by those a delay holds back.
    taken_until: BTreeMap<Way, Duration>,
    touched: u64,
}

impl Links {
    /// Whether `way` is one of them.
    pub fn hold(self, way: Way) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Around(port) => way.from == port || way.to == port,
            Self::Between(one, other) => {
                (way.from, way.to) == (one, other) || (way.from, way.to) == (other, one)
            }
            Self::OneWay(only) => way == only,
        }
    }
}

impl Impairments {
    /// Adds a fault. What it leaves to chance is drawn from `seed`: the same frames at the same times meet the same fate.
    pub fn add(&mut self, links: Links, effect: Effect, seed: u64) -> FaultId {
        self.last += 1;
        let active = Active {
            links,
            effect,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            taken_until: BTreeMap::new(),
            touched: 0,
        };
        self.active.insert(FaultId(self.last), active);
        FaultId(self.last)
    }

    /// Ends a fault. Frames that it holds back still come late. Answers with how many frames it has lost or held back, if it was in
    /// force.
    pub fn remove(&mut self, fault: FaultId) -> Option<u64> {
        self.active.remove(&fault).map(|active| active.touched)
    }

    /// How many frames a fault in force has lost or held back so far.
    pub fn touched(&self, fault: FaultId) -> Option<u64> {
        self.active.get(&fault).map(|active| active.touched)
    }

    /// Decides what becomes of a frame of `length` bytes that sets out at `now`.
    ///
    /// Cuts come first, then losses, limits and delays, whichever was there first; several delays add up.
    pub fn fate(&mut self, way: Way, length: usize, now: Duration) -> Fate {
        let mut at = now;
        let mut on_way: Vec<_> = self
            .active
            .values_mut()
            .filter(|active| active.links.hold(way))
            .collect();
        on_way.sort_by_key(|active| active.effect.rank());
        for active in on_way {
            match active.pass(way, length, at) {
                Some(passed) => at = passed,
                None => return Fate::Lost(active.effect),
            }
        }
        Fate::Deliver { at }
    }
}

impl Effect {
    /// Whether it leaves anything to chance.
    pub fn is_chance(self) -> bool {
        match self {
            Self::Cut | Self::Limit { .. } => false,
            Self::Lose { percent } => (1..100).contains(&percent),
            Self::Delay { jitter, .. } => !jitter.is_zero(),
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Cut => 0,
            Self::Lose { .. } => 1,
            Self::Limit { .. } => 2,
            Self::Delay { .. } => 3,
        }
    }
}

impl Active {
    /// When a frame that reaches this fault at `at` is through; `None` if it is lost.
    fn pass(&mut self, way: Way, length: usize, at: Duration) -> Option<Duration> {
        let passed = match self.effect {
            Effect::Cut => None,
            Effect::Lose { percent } => (self.random.random_range(0..100) >= percent).then_some(at),
            Effect::Limit { bytes_per_second } => self.line_up(way, length, bytes_per_second, at),
            Effect::Delay { by, jitter } => Some(self.hold_back(way, by, jitter, at)),
        };
        if passed != Some(at) {
            self.touched += 1;
        }
        passed
    }

    fn line_up(
        &mut self,
        way: Way,
        length: usize,
        bytes_per_second: NonZeroU32,
        at: Duration,
    ) -> Option<Duration> {
        let taken_until = self.taken_until.entry(way).or_default();
        let begins = at.max(*taken_until);
        if begins - at > LONGEST_LINE {
            return None;
        }
        let nanoseconds = length as u64 * 1_000_000_000 / u64::from(bytes_per_second.get());
        *taken_until = begins + Duration::from_nanos(nanoseconds);
        Some(*taken_until)
    }

    fn hold_back(&mut self, way: Way, by: Duration, jitter: Duration, at: Duration) -> Duration {
        let spread = match nanoseconds(jitter) {
            0 => 0,
            jitter => self.random.random_range(0..=2 * jitter),
        };
        let late = (at + by + Duration::from_nanos(spread)).saturating_sub(jitter);
        let taken_until = self.taken_until.entry(way).or_default();
        *taken_until = late.max(*taken_until).max(at);
        *taken_until
    }
}

/// A jitter beyond a century is one of a century.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).map_or(u64::MAX / 4, |nanoseconds| nanoseconds.min(u64::MAX / 4))
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => formatter.write_str("cut"),
            Self::Lose { percent } => write!(formatter, "loses {percent} %"),
            Self::Limit { bytes_per_second } => write!(formatter, "limited to {bytes_per_second} bytes/s"),
            Self::Delay { by, jitter } if jitter.is_zero() => write!(formatter, "delayed by {by:?}"),
            Self::Delay { by, jitter } => write!(formatter, "delayed by {by:?} ± {jitter:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
