//! A machine: what one says about it before it starts, and what one does with it while it runs.

mod boot;
mod brought;
mod builder;
mod clock;
mod control;
mod disks;
mod ending;
mod keys;
mod link;
mod looks;
mod memory;
mod point;
mod power;
mod run;
mod setup;
mod share;
mod terminal;
mod waits;
mod way;

use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use boot::{BootEnd, BootError};
pub use brought::{Brought, BroughtBuilder};
pub use builder::{MachineBuilder, Machines, StartFrom};
pub use clock::Skew;
pub use control::ControlError;
pub use disks::Full;
pub use looks::Response;
pub use point::{Point, PointError};
pub use power::RebootError;
pub use run::{MachineRun, RunError};
pub use share::ShareError;
pub use terminal::Terminal;

pub(crate) use boot::{Arrival, boot};
pub(crate) use brought::{BroughtPlan, answers};
pub(crate) use builder::Plan;
pub(crate) use disks::{MOST_HOT_DISKS, NewDisk, hot_slot};
pub(crate) use link::Link;
pub(crate) use memory::pss_mib;
pub(crate) use setup::{MANAGEMENT_ADDRESS, setup};
pub(crate) use share::{Share, pack as pack_share, serial as share_serial};
use way::Way;

use tokio::sync::watch;

use crate::accel::Accelerator;
use crate::console::{Console, Cursor};
use crate::death::{DeathWatch, Evidence};
use crate::laboratory::addresses::Book;
use crate::names::Name;
use crate::net::{Mac, Subnet};
use crate::qemu::{self, Qemu};
use crate::qmp::{Qmp, QmpError};
use crate::ssh::{Login, Ssh, SshError};
use crate::timeline::Timeline;

/// A running guest. Clones are the same guest.
///
/// Commands run by the guest's agent, on a channel of their own that needs no network; [`Machine::ssh`] runs them by SSH.
/// The guest dies with its lab.
#[derive(Clone, Debug)]
pub struct Machine {
    running: Arc<Running>,
    /// How long its waits last.
    patience: Duration,
    /// The test itself has ended it.
    expected: Arc<AtomicBool>,
}

/// How long a wait lasts that does not say: a service's start under emulation on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);

/// A guest's place on a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) vlan: Name,
    pub(crate) mac: Mac,
    pub(crate) address: Ipv4Addr,
    pub(crate) subnet: Subnet,
}

/// Whether a card's cable is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cable {
    In,
    Out,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) name: Name,
    pub(crate) accelerator: Accelerator,
    pub(crate) qemu: Qemu,
    pub(crate) agent_port: std::path::PathBuf,
    pub(crate) journal: std::path::PathBuf,
    pub(crate) monitor: std::path::PathBuf,
    pub(crate) link: watch::Sender<Link>,
    pub(crate) ssh_port: u16,
    pub(crate) login: Login,
    pub(crate) host_key: String,
    pub(crate) management: Mac,
    pub(crate) places: Vec<Place>,
    pub(crate) shares: Vec<Share>,
    pub(crate) ready_after: Duration,
    pub(crate) timeline: Timeline,
    pub(crate) book: Arc<Mutex<Book>>,
    /// How many points to go back to it has.
    pub(crate) points: std::sync::atomic::AtomicUsize,
}

impl Machine {
    /// A guest that is set up. Its link is kept on the current tokio runtime.
    pub(crate) fn new(running: Running) -> Self {
        let resets = running.qemu.resets();
        let running = Arc::new(running);
        tokio::spawn(link::keep(Arc::downgrade(&running), resets));
        Self {
            running,
            patience: PATIENCE,
            expected: Arc::default(),
        }
    }

    /// Its name, which is also its host name.
    pub fn name(&self) -> &str {
        self.running.name.as_str()
    }

    /// Its address on `vlan`, if it is on it.
    pub fn address(&self, vlan: &str) -> Option<Ipv4Addr> {
        self.running
            .places
            .iter()
            .find(|place| place.vlan.as_str() == vlan)
            .map(|place| place.address)
    }

    /// Time from its start to the answer of its agent: the boot, without the making of its image.
    pub fn ready_after(&self) -> Duration {
        self.running.ready_after
    }

    /// What it costs the host now, in MiB: QEMU's proportional set size.
    ///
    /// # Errors
    /// QEMU is gone, or belongs to somebody else.
    pub fn pss_mib(&self) -> std::io::Result<f64> {
        memory::pss_mib(self.pid())
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.running.qemu.pid()
    }

    /// Its console.
    pub fn console(&self) -> &Console {
        self.running.qemu.console()
    }

    /// The place on its console where the next output will stand: take it before the action whose output is waited for.
    pub fn console_cursor(&self) -> Cursor {
        self.console().cursor()
    }

    /// The file with its journal.
    pub fn journal(&self) -> &std::path::Path {
        &self.running.journal
    }

    /// The socket of a monitor of its QEMU that nobody uses: a person may.
    pub fn monitor_socket(&self) -> &std::path::Path {
        &self.running.monitor
    }

    /// From now on it lives for as long as the answer is open somewhere.
    pub(crate) async fn give_away(&self) -> std::io::Result<std::os::fd::OwnedFd> {
        self.running.qemu.give_away().await
    }

    /// Sees its death.
    pub fn death(&self) -> &DeathWatch {
        self.running.qemu.death()
    }

    /// What a failure shows of it, as of now: the end of its console, what QEMU said, where the rest is.
    pub fn evidence(&self) -> Evidence {
        self.running.qemu.evidence()
    }

    /// The port of 127.0.0.1 that leads to its SSH.
    pub fn ssh_port(&self) -> u16 {
        self.running.ssh_port
    }

    /// The public half of its SSH host key, `ssh-ed25519 AAAA…`.
    pub fn host_key(&self) -> &str {
        &self.running.host_key
    }

    /// A new SSH connection to it, as root. Its sshd starts a second or two after the machine is ready:
    /// [`Machine::wait_for_open_port`] tells.
    ///
    /// # Errors
    /// [`SshError`]: it cannot be reached, or is not who it should be.
    pub async fn ssh(&self) -> Result<Ssh, SshError> {
        Ssh::connect((Ipv4Addr::LOCALHOST, self.running.ssh_port), &self.running.login).await
    }

    /// Plugs the cable of its card on `vlan` in or out. A machine that is not on it has no cable there.
    pub(crate) async fn set_link(&self, vlan: &Name, cable: Cable) -> Result<(), QmpError> {
        let index = self.running.places.iter().position(|place| place.vlan == *vlan);
        let Some(index) = index else { return Ok(()) };
        let (name, up) = (qemu::card_id(index), cable == Cable::In);
        self.monitor()
            .execute(qapi::qmp::set_link { name, up })
            .await
            .map(drop)
    }

    fn monitor(&self) -> &Qmp {
        self.running.qemu.monitor()
    }

    fn note(&self, event: impl std::fmt::Display) {
        self.running.timeline.note(self.name(), event);
    }
}

impl Running {
    fn next_point(&self) -> usize {
        self.points.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
