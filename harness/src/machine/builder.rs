//! What one says about machines before they start.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use super::{MOST_HOT_DISKS, Machine, NewDisk, Share};
use crate::agent::{Bytes, SetupFile};
use crate::image::ImageSpec;
use crate::laboratory::addresses::Address;
use crate::laboratory::{Inner, LabError, start};
use crate::qemu::Display;

/// A machine that has not started. Each method says one more thing about it; [`MachineBuilder::start`] starts it.
#[must_use = "a machine does not run before it is started"]
#[derive(Clone, Debug)]
pub struct MachineBuilder {
    lab: Arc<Inner>,
    plan: Plan,
}

/// Several machines that have not started. What is said about them is said about each.
#[must_use = "machines do not run before they are started"]
#[derive(Clone, Debug)]
pub struct Machines<const N: usize> {
    builders: [MachineBuilder; N],
}

/// What was said about a machine, unchecked.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) image: ImageSpec,
    pub(crate) memory_mib: u32,
    pub(crate) cpus: u8,
    pub(crate) cards: Vec<(String, Address)>,
    pub(crate) shares: Vec<Share>,
    pub(crate) files: Vec<SetupFile>,
    pub(crate) authorized: Vec<String>,
    pub(crate) disks: Vec<NewDisk>,
    pub(crate) hot_disks: u8,
    pub(crate) display: Display,
    pub(crate) from: StartFrom,
}

/// What a machine starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartFrom {
    /// A machine like it, saved when all that starts at boot was up: it is there in half a second. The first time, that machine is made.
    #[default]
    Template,
    /// Its image: it boots.
    Cold,
}

/// A Debian guest with a few services runs in 256 MiB.
const MEMORY_MIB: u32 = 256;

impl MachineBuilder {
    pub(crate) fn new(lab: Arc<Inner>, name: &str) -> Self {
        let plan = Plan {
            name: name.to_owned(),
            image: ImageSpec::debian(),
            memory_mib: MEMORY_MIB,
            cpus: 1,
            cards: Vec::new(),
            shares: Vec::new(),
            files: Vec::new(),
            authorized: Vec::new(),
            from: StartFrom::default(),
            disks: Vec::new(),
            hot_disks: 0,
            display: Display::None,
        };
        Self { lab, plan }
    }

    /// What it boots; plain Debian if nothing is said. The image is made if it is not in the cache.
    pub fn image(mut self, image: &ImageSpec) -> Self {
        self.plan.image = image.clone();
        self
    }

    /// Its memory, in MiB: 256 if nothing is said.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.plan.memory_mib = memory_mib;
        self
    }

    /// Its processors: one if nothing is said.
    pub fn cpus(mut self, cpus: u8) -> Self {
        self.plan.cpus = cpus;
        self
    }

    /// Plugs it into a VLAN, with the lowest address that is free there.
    pub fn on_vlan(mut self, vlan: &str) -> Self {
        self.plan.cards.push((vlan.to_owned(), Address::Next));
        self
    }

    /// Plugs it into a VLAN with this address.
    pub fn on_vlan_at(mut self, vlan: &str, address: Ipv4Addr) -> Self {
        self.plan.cards.push((vlan.to_owned(), Address::Fixed(address)));
        self
    }

    /// Shows it what `host` holds when it starts, read-only, in the folder `guest`.
    pub fn share(mut self, guest: &str, host: impl Into<PathBuf>) -> Self {
        self.plan.shares.push(Share {
            host: host.into(),
            guest: guest.to_owned(),
        });
        self
    }

    /// Writes a file of root's before it is ready, with these permission bits, such as `0o600`.
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>, mode: u32) -> Self {
        self.plan.files.push(SetupFile {
            path: path.to_owned(),
            content: Bytes(content.into()),
            mode,
            uid: 0,
            gid: 0,
        });
        self
    }

    /// Lets the owner of this key, `ssh-ed25519 AAAA…`, log in as root. The harness itself always can.
    pub fn authorize(mut self, public_key: &str) -> Self {
        self.plan.authorized.push(public_key.to_owned());
        self
    }

    /// Gives it an empty disk, which it sees as `/dev/disk/by-id/virtio-NAME`. It takes no space of the host before the guest writes.
    pub fn disk(mut self, name: &str, mebibytes: u64) -> Self {
        self.plan.disks.push(NewDisk {
            name: name.to_owned(),
            mebibytes,
        });
        self
    }

    /// Has room for so many disks, eight at most, that are plugged in while it runs: see [`Machine::add_disk`].
    pub fn hot_disks(mut self, disks: u8) -> Self {
        self.plan.hot_disks = disks.min(MOST_HOT_DISKS);
        self
    }

    /// Gives it a display and a keyboard, for [`Machine::screenshot`], [`Machine::press`] and [`Machine::type_text`]. Its kernel's messages
    /// are shown there too.
    pub fn display(mut self) -> Self {
        self.plan.display = Display::Vga;
        self
    }

    /// Boots it, rather than restoring one like it that has booted before.
    pub fn cold(self) -> Self {
        self.start_from(StartFrom::Cold)
    }

    /// What it starts from: a template if nothing is said. For a test that runs on both.
    pub fn start_from(mut self, from: StartFrom) -> Self {
        self.plan.from = from;
        self
    }

    /// Starts it, and returns when its agent answers and it is set up. A restored machine's services run; those of one that boots
    /// may still be starting.
    ///
    /// # Errors
    /// [`LabError`].
    pub async fn start(self) -> Result<Machine, LabError> {
        let [machine] = Machines { builders: [self] }.start().await?;
        Ok(machine)
    }
}

impl<const N: usize> Machines<N> {
    pub(crate) fn new(builders: [MachineBuilder; N]) -> Self {
        Self { builders }
    }

    /// Says something about each.
    pub fn each(self, say: impl FnMut(MachineBuilder) -> MachineBuilder) -> Self {
        Self {
            builders: self.builders.map(say),
        }
    }

    /// Says something about the one named `name`, if there is one.
    pub fn only(self, name: &str, say: impl FnOnce(MachineBuilder) -> MachineBuilder) -> Self {
        let mut say = Some(say);
        self.each(|builder| match say.take_if(|_| builder.plan.name == name) {
            Some(say) => say(builder),
            None => builder,
        })
    }

    /// What they boot; see [`MachineBuilder::image`].
    pub fn image(self, image: &ImageSpec) -> Self {
        self.each(|builder| builder.image(image))
    }

    /// The memory of each, in MiB; see [`MachineBuilder::memory_mib`].
    pub fn memory_mib(self, memory_mib: u32) -> Self {
        self.each(|builder| builder.memory_mib(memory_mib))
    }

    /// Plugs them all into a VLAN; see [`MachineBuilder::on_vlan`].
    pub fn on_vlan(self, vlan: &str) -> Self {
        self.each(|builder| builder.on_vlan(vlan))
    }

    /// Boots them; see [`MachineBuilder::cold`].
    pub fn cold(self) -> Self {
        self.each(MachineBuilder::cold)
    }

    /// What they start from; see [`MachineBuilder::start_from`].
    pub fn start_from(self, from: StartFrom) -> Self {
        self.each(|builder| builder.start_from(from))
    }

    /// Starts them side by side, and returns when all are ready, in the order of their names.
    ///
    /// # Errors
    /// [`LabError`], with what went wrong for each one that did not start.
    pub async fn start(self) -> Result<[Machine; N], LabError> {
        let Some(lab) = self.builders.first().map(|builder| Arc::clone(&builder.lab)) else {
            return Err(LabError::NoMachines);
        };
        let plans = self.builders.map(|builder| builder.plan);
        let started = start::start(&lab, plans.into()).await?;
        <[Machine; N]>::try_from(started).map_err(|_| LabError::NoMachines)
    }
}
