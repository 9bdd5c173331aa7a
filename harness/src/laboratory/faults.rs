//! Faults on purpose: each begins with a call and a line on the timeline, and ends with another call and another line.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Inner, LabError, Vlan};
use crate::machine::{Cable, Machine};
use crate::names::Name;
use crate::net::{self, Effect, FaultId, Switch, Way};
use crate::qmp::QmpError;

/// Links of one VLAN, to put a fault on.
///
/// The frames of one link, in one direction, keep their order whatever the fault. Faults add up: of a link that loses frames and delays
/// them, those that are not lost come late.
#[must_use = "nothing is wrong with the links until a fault is put on them"]
#[derive(Debug)]
pub struct Links<'a> {
    lab: &'a Arc<Inner>,
    vlan: String,
    which: Which,
    seed: Option<u64>,
}

/// A fault in force. It ends when it is healed or dropped, and at the latest with its lab.
#[must_use = "a fault heals when it is dropped"]
pub struct Fault {
    lab: Weak<Inner>,
    number: u64,
    what: String,
    cause: Cause,
    healed: bool,
}

/// The links, by the machines at their ends.
#[derive(Clone, Debug)]
enum Which {
    Everywhere,
    Around(String),
    Between(String, String),
    OneWay { from: String, to: String },
}

enum Cause {
    Switch { vlan: Name, fault: FaultId },
    Unplugged { machine: Machine, vlan: Name },
}

impl<'a> Vlan<'a> {
    /// Cuts two machines off each other, both ways. Their cards keep their links: frames just do not arrive.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn cut(&self, one: &Machine, other: &Machine) -> Result<Fault, LabError> {
        self.between(one, other).cut().await
    }

    /// Cuts one machine off all others.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn isolate(&self, machine: &Machine) -> Result<Fault, LabError> {
        self.around(machine).cut().await
    }

    /// Pulls the cable out of a machine's card: the guest sees that its link is down.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`], [`LabError::Monitor`].
    pub async fn unplug(&self, machine: &Machine) -> Result<Fault, LabError> {
        let vlan: Name = self.name().parse()?;
        if machine.address(vlan.as_str()).is_none() {
            return Err(not_on(machine.name(), &vlan));
        }
        set_link(machine, &vlan, Cable::Out).await?;
        let what = format!("`{}` is unplugged from {vlan}", machine.name());
        let machine = machine.clone();
        Ok(Fault::begin(self.lab(), what, Cause::Unplugged { machine, vlan }))
    }

    /// All links of the VLAN, also those of machines that come later.
    pub fn everywhere(&self) -> Links<'a> {
        self.links(Which::Everywhere)
    }

    /// All links from and to a machine.
    pub fn around(&self, machine: &Machine) -> Links<'a> {
        self.links(Which::Around(machine.name().to_owned()))
    }

    /// The link between two machines, both ways.
    pub fn between(&self, one: &Machine, other: &Machine) -> Links<'a> {
        self.links(Which::Between(one.name().to_owned(), other.name().to_owned()))
    }

    /// The link from one machine to another, and not back.
    pub fn one_way(&self, from: &Machine, to: &Machine) -> Links<'a> {
        let (from, to) = (from.name().to_owned(), to.name().to_owned());
        self.links(Which::OneWay { from, to })
    }

    fn links(&self, which: Which) -> Links<'a> {
        Links {
            lab: self.lab(),
            vlan: self.name().to_owned(),
            which,
            seed: None,
        }
    }
}

impl Links<'_> {
    /// Chooses what chance is drawn from. Without it the seed follows from the fault itself, so it is the same in every run; it stands on
    /// the timeline.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Lets nothing through.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn cut(self) -> Result<Fault, LabError> {
        self.impair(Effect::Cut)
    }

    /// Holds each frame back for so long. A round trip takes twice as much longer, if both ways are delayed.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn delay(self, by: Duration) -> Result<Fault, LabError> {
        self.jittered_delay(by, Duration::ZERO).await
    }

    /// Holds each frame back for a time that is spread evenly from `by` less `jitter` to `by` and `jitter`.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn jittered_delay(self, by: Duration, jitter: Duration) -> Result<Fault, LabError> {
        self.impair(Effect::Delay { by, jitter })
    }

    /// Loses so many of a hundred frames, each by itself.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn lose(self, percent: u8) -> Result<Fault, LabError> {
        self.impair(Effect::Lose { percent })
    }

    /// Lets so many bytes a second through, on each link and in each direction by itself. Zero is a cut.
    ///
    /// # Errors
    /// [`LabError::NotOnVlan`].
    pub async fn limit(self, bytes_per_second: u32) -> Result<Fault, LabError> {
        let limit = |bytes_per_second| Effect::Limit { bytes_per_second };
        self.impair(NonZeroU32::new(bytes_per_second).map_or(Effect::Cut, limit))
    }

    fn impair(self, effect: Effect) -> Result<Fault, LabError> {
        let vlan: Name = self.vlan.parse()?;
        let what = format!("{} on {vlan}: {effect}", self.which);
        let seed = self.seed.unwrap_or_else(|| seed_of(&what));
        let put = |switch: &Switch| {
            let links = self.which.on(switch, &vlan)?;
            Ok::<_, LabError>(switch.impair(links, effect, seed))
        };
        let fault = self.lab.on_switch(&vlan, put)??;
        let what = if effect.is_chance() {
            format!("{what} (seed {seed})")
        } else {
            what
        };
        Ok(Fault::begin(self.lab, what, Cause::Switch { vlan, fault }))
    }
}

impl Fault {
    /// Ends it. What it holds back still comes late.
    ///
    /// # Errors
    /// [`LabError::Monitor`], for a cable that cannot be plugged in again.
    pub async fn heal(mut self) -> Result<(), LabError> {
        self.healed = true;
        let Some(lab) = self.lab.upgrade() else {
            return Ok(());
        };
        if let Cause::Unplugged { machine, vlan } = &self.cause {
            set_link(machine, vlan, Cable::In).await?;
        }
        self.end(&lab, "healed");
        Ok(())
    }

    /// How many frames it has lost or held back so far: more than zero, if it has bitten. An unplugged cable counts none.
    pub fn frames(&self) -> u64 {
        let Cause::Switch { vlan, fault } = &self.cause else {
            return 0;
        };
        let Some(lab) = self.lab.upgrade() else { return 0 };
        let state = lab.state();
        let switch = state.switches.get(vlan);
        switch
            .and_then(|switch| switch.touched(*fault))
            .unwrap_or_default()
    }

    fn begin(lab: &Arc<Inner>, what: String, cause: Cause) -> Self {
        lab.timeline.note("lab", format_args!("fault: {what}"));
        let mut state = lab.state();
        state.numbered_faults += 1;
        let number = state.numbered_faults;
        state.faults.insert(number, what.clone());
        Self {
            lab: Arc::downgrade(lab),
            number,
            what,
            cause,
            healed: false,
        }
    }

    /// Takes it off its switch and off the list of those in force.
    fn end(&self, lab: &Inner, how: &str) {
        let touched = {
            let mut state = lab.state();
            if state.faults.remove(&self.number).is_none() {
                // The lab has told of it at its end.
                return;
            }
            match &self.cause {
                Cause::Switch { vlan, fault } => {
                    state.switches.get(vlan).and_then(|switch| switch.heal(*fault))
                }
                Cause::Unplugged { .. } => None,
            }
        };
        let what = &self.what;
        match touched {
            Some(touched) => lab
                .timeline
                .note("lab", format_args!("{how}: {what}; it met {touched} frames")),
            None => lab.timeline.note("lab", format_args!("{how}: {what}")),
        }
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let Some(lab) = self.lab.upgrade().filter(|_| !self.healed) else {
            return;
        };
        if let Cause::Unplugged { machine, vlan } = &self.cause {
            let (machine, vlan) = (machine.clone(), vlan.clone());
            // A machine that cannot be reached any more needs no cable.
            lab.background
                .spawn(async move { drop(set_link(&machine, &vlan, Cable::In).await) });
        }
        self.end(&lab, "healed, since it was dropped");
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fault({})", self.what)
    }
}

impl Inner {
    /// At the lab's end: tells of the faults that nobody has healed.
    pub(super) fn tell_of_faults(&self) {
        let left = std::mem::take(&mut self.state().faults);
        for what in left.values() {
            self.timeline
                .note("lab", format_args!("still in force at the end: {what}"));
        }
    }
}

impl Which {
    fn on(&self, switch: &Switch, vlan: &Name) -> Result<net::Links, LabError> {
        let port = |machine: &String| switch.port(machine).ok_or_else(|| not_on(machine, vlan));
        Ok(match self {
            Self::Everywhere => net::Links::Everywhere,
            Self::Around(machine) => net::Links::Around(port(machine)?),
            Self::Between(one, other) => net::Links::Between(port(one)?, port(other)?),
            Self::OneWay { from, to } => net::Links::OneWay(Way {
                from: port(from)?,
                to: port(to)?,
            }),
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere => formatter.write_str("all"),
            Self::Around(machine) => write!(formatter, "`{machine}` and all others"),
            Self::Between(one, other) => write!(formatter, "`{one}` and `{other}`"),
            Self::OneWay { from, to } => write!(formatter, "`{from}` to `{to}`"),
        }
    }
}

async fn set_link(machine: &Machine, vlan: &Name, cable: Cable) -> Result<(), LabError> {
    let set = machine.set_link(vlan, cable).await;
    set.map_err(|error: QmpError| LabError::Monitor {
        machine: machine.name().to_owned(),
        error,
        evidence: Box::new(machine.evidence()),
    })
}

fn not_on(machine: &str, vlan: &Name) -> LabError {
    LabError::NotOnVlan {
        machine: machine.to_owned(),
        vlan: vlan.to_string(),
    }
}

fn seed_of(what: &str) -> u64 {
    let digest = Sha256::digest(what);
    digest
        .iter()
        .take(8)
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
