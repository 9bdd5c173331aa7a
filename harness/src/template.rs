//! Templates: a machine that has booted once, saved to be restored many times.
//!
//! A template is a folder of the cache, shared by all test processes: the memory of the machine, the state of its devices, its disk.
//! Restored machines map the memory and the disk copy-on-write. Its key is made of all that went in: the image, the kernel, the
//! initrd with the agent, QEMU, and QEMU's whole command line but for the names of files.
//!
//! What differs between the machines that are restored from one template is set by the agent when they wake up (see [`wake_up`]):
//! hardware addresses, machine id, host name, clock, entropy. What a disk that is not the machine's own holds may be another thing
//! when it is restored, as long as it has the same size.

mod make;
mod restore;

use std::path::{Path, PathBuf};

use crate::accel::Accelerator;
use crate::agent::Setup;
use crate::cache::{Cache, CacheError, Key, Progress};
use crate::image::{Image, ROOT_SERIAL};
use crate::machine::BootError;
use crate::net::{Mac, Plug};
use crate::qemu::{self, Access, Card, Disk, LaunchError, MachineSpec, Memory, Paths, Start};
use crate::qmp::QmpError;

pub(crate) use make::Maker;
pub(crate) use restore::restore;

/// `PROVISOR_TEMPLATES=off` boots every machine, as `cold()` does for one.
pub const TEMPLATES_VARIABLE: &str = "PROVISOR_TEMPLATES";

/// A machine that was saved.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    folder: PathBuf,
    key: Key,
}

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("{0}")]
    Launch(Box<LaunchError>),
    #[error("{0}")]
    Boot(Box<BootError>),
    #[error(transparent)]
    Monitor(#[from] QmpError),
    #[error("QEMU could not save the machine: {reason}")]
    Save { reason: String },
    #[error("cannot write {}: {source}; check its permissions and the free space", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

const MEMORY: &str = "memory";
const STATE: &str = "state";
const DISK: &str = "disk";

/// Part of every key: raise it when the same parts should give another template.
const MAKER: &str = "1";

/// The file memory of a template (128 MiB of 256 in use), its disk (20 MB) and room to spare.
const NEED: u64 = 600_000_000;

impl Template {
    /// The template for a machine like `spec`: from the cache, or made now, which takes a boot. However many processes ask at once, one
    /// makes it.
    ///
    /// Blocks; call it on a thread of a tokio runtime that may block.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub(crate) fn obtain(
        cache: &Cache,
        image: &Image,
        spec: &MachineSpec,
        maker: &Maker,
        progress: Progress<'_>,
    ) -> Result<Self, TemplateError> {
        let key = key(spec, &maker.qemu);
        let folder = cache.entry("template", &key, progress, |folder| {
            cache.require_space(NEED)?;
            progress(
                "makes a template of this machine: it boots once, and then restoring it takes half a second",
            );
            let made = maker.make(image, spec, folder);
            tokio::runtime::Handle::current().block_on(made)
        })?;
        Ok(Self { folder, key })
    }

    /// Its key.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The machine `spec` when it is restored: it maps the template's memory, and writes on top of the template's disk.
    pub(crate) fn restores(&self, spec: &MachineSpec) -> MachineSpec {
        let mut restored = spec.clone();
        restored.start = Start::Restored(self.memory());
        for disk in &mut restored.disks {
            if disk.access == Access::CopyOnWrite {
                disk.path = self.folder.join(DISK);
            }
        }
        restored
    }

    fn memory(&self) -> Memory {
        let file = self.folder.join(MEMORY);
        if file.is_file() {
            Memory::File(file)
        } else {
            Memory::InState
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.join(STATE)
    }
}

/// What makes a restored guest the machine that `setup` would make of a booted one: its cards are found by the hardware addresses of the
/// template, and it gets a machine id of its own.
pub(crate) fn wake_up(mut setup: Setup) -> Setup {
    for (index, interface) in setup.interfaces.iter_mut().enumerate() {
        interface.new_mac = Some(interface.mac);
        interface.mac = card_mac(index).0;
    }
    setup.machine_id = Some(format!("{:032x}", rand::random::<u128>()));
    setup
}

/// The hardware address of a template's `index`-th card; the first one is for the host.
fn card_mac(index: usize) -> Mac {
    Mac::of("template", &index.to_string())
}

/// The machine that is saved in `folder` for machines like `spec`: nothing of it is anybody's own.
fn template_of(spec: &MachineSpec, folder: &Path, sockets: &Path, memory: Memory) -> MachineSpec {
    let disk = |(index, disk): (usize, &Disk)| match (disk.access, disk.serial.as_str()) {
        (_, ROOT_SERIAL) => disk.clone(),
        (Access::CopyOnWrite, _) => Disk {
            path: folder.join(DISK),
            access: Access::Write,
            ..disk.clone()
        },
        _ => Disk {
            path: blank(folder, index),
            ..disk.clone()
        },
    };
    let card = |index: usize| Card {
        mac: card_mac(index + 1),
        plug: Plug {
            local: sockets.join(index.to_string()),
            remote: sockets.join("nobody"),
        },
    };
    MachineSpec {
        name: "template".to_owned(),
        start: Start::ToSave(memory),
        disks: spec.disks.iter().enumerate().map(disk).collect(),
        management: card_mac(0),
        cards: (0..spec.cards.len()).map(card).collect(),
        ..spec.clone()
    }
}

/// An empty disk in the place of one whose content comes later.
fn blank(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("blank{index}"))
}

/// The files of the machine that is saved.
fn paths(folder: &Path, sockets: &Path) -> Paths {
    Paths {
        qmp: sockets.join("q"),
        agent: sockets.join("a"),
        console: folder.join("console"),
        journal: folder.join("journal"),
        monitor: sockets.join("m"),
    }
}

fn key(spec: &MachineSpec, qemu: &Path) -> Key {
    let nowhere = Path::new("");
    let saved = template_of(spec, nowhere, nowhere, Memory::File(MEMORY.into()));
    let args = qemu::args(&saved, &paths(nowhere, nowhere));
    let stamp = std::fs::metadata(qemu).and_then(|file| file.modified());
    let sizes: Vec<_> = spec.disks.iter().map(size_of).collect();
    let host = match spec.accelerator {
        // The guest sees the host's processor.
        Accelerator::Kvm => std::fs::read_to_string("/proc/cpuinfo").map(|info| processor(&info)),
        Accelerator::Tcg => Ok(String::new()),
    };
    let facts = format!("{stamp:?} {sizes:?} {}", host.unwrap_or_default());
    let mut parts = vec![
        ("maker", MAKER.as_bytes()),
        ("qemu", qemu.as_os_str().as_encoded_bytes()),
        ("facts", facts.as_bytes()),
    ];
    parts.extend(args.iter().map(|arg| ("argument", arg.as_encoded_bytes())));
    Key::of(parts)
}

fn size_of(disk: &Disk) -> u64 {
    std::fs::metadata(&disk.path).map_or(0, |file| file.len())
}

/// Model and features of the first processor.
fn processor(info: &str) -> String {
    let known = |line: &&str| {
        ["model name", "microcode", "flags"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    info.lines().filter(known).take(3).collect()
}

#[cfg(test)]
mod tests;
