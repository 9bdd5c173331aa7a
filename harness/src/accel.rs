//! Which accelerator guests run with: KVM where it really runs guests, else emulation, and why.
//!
//! A `/dev/kvm` that opens proves nothing. Under some hypervisors it creates virtual CPUs and then runs guests 20 to
//! 80 times slower than emulation, or not at all. So a guest of one page is run to its end under both and timed, once
//! per boot of the host, and what was found is kept in the cache.

mod decide;
mod observe;

use std::fmt;
use std::path::{Path, PathBuf};

pub use observe::{QEMU, find_qemu};

use crate::cache::{Cache, CacheError, Key};

/// What runs a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The host's processor.
    Kvm,
    /// QEMU's emulation.
    Tcg,
}

impl Accelerator {
    /// The name in QEMU's `-accel` and in `PROVISOR_ACCEL`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The accelerator for guests on this host, with the reason to print once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What to use.
    pub accelerator: Accelerator,
    /// Why, as the end of a sentence: "KVM is slower than emulation: …".
    pub reason: String,
}

/// Why no guest can run, or not as it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AccelError {
    /// QEMU is not installed.
    #[error("{QEMU} is not on PATH; install it: apt-get install --yes qemu-system-x86")]
    NoQemu,
    /// `PROVISOR_ACCEL` has a value that is neither of the two.
    #[error(
        "PROVISOR_ACCEL={0} is not an accelerator; set it to kvm or tcg, or unset it to let it be chosen"
    )]
    Unknown(String),
    /// `PROVISOR_ACCEL` forces one that does not work here.
    #[error("PROVISOR_ACCEL={accelerator} forces an accelerator that does not work here: {reason}; {help}")]
    Forced {
        /// What was forced.
        accelerator: Accelerator,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        help: String,
    },
    /// Neither runs a guest.
    #[error(
        "no accelerator runs a guest: KVM: {kvm}; emulation: {tcg}; reinstall QEMU: apt-get install --yes qemu-system-x86"
    )]
    Neither {
        /// What is wrong with KVM.
        kvm: String,
        /// What is wrong with emulation.
        tcg: String,
    },
    /// The probe could not be run, or its verdict not be kept.
    #[error("cannot {action}: {source}; check the free space and the permissions of the temporary folder")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// The accelerator for this host: what `PROVISOR_ACCEL` forces, else what the probe found.
///
/// The probe takes a fraction of a second, and at most a few seconds where KVM hangs; its verdict is kept for the
/// boot of the host.
pub fn choose() -> Result<Choice, AccelError> {
    let forced = match std::env::var("PROVISOR_ACCEL") {
        Ok(name) => parse(&name)?,
        Err(_) => None,
    };
    Host::here()?.choose(forced)
}

fn parse(name: &str) -> Result<Option<Accelerator>, AccelError> {
    match name {
        "" => Ok(None),
        "kvm" => Ok(Some(Accelerator::Kvm)),
        "tcg" => Ok(Some(Accelerator::Tcg)),
        other => Err(AccelError::Unknown(other.to_owned())),
    }
}

/// What a choice rests on.
struct Host {
    qemu: PathBuf,
    device: PathBuf,
    boot_id: String,
    cache: Cache,
}

impl Host {
    fn here() -> Result<Self, AccelError> {
        Ok(Self {
            qemu: find_qemu()?,
            device: PathBuf::from("/dev/kvm"),
            // Without it, the verdict is kept until the cache is pruned.
            boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            cache: Cache::open()?,
        })
    }

    fn choose(&self, forced: Option<Accelerator>) -> Result<Choice, AccelError> {
        let device = observe::device(&self.device);
        let probe = || observe::probe(&self.qemu, &device);
        if let Some(accelerator) = forced {
            return decide::forced(accelerator, &device, &probe()?);
        }
        let key = self.key(&device);
        let folder = self.cache.entry("accel", &key, &|_| (), |folder| {
            let choice = decide::choose(&device, &probe()?)?;
            write_choice(folder, &choice).map_err(|source| AccelError::Io {
                action: "keep the verdict",
                source,
            })
        })?;
        read_choice(&folder).map_err(|source| AccelError::Io {
            action: "read the verdict",
            source,
        })
    }

    fn key(&self, device: &observe::Device) -> Key {
        let stamp = std::fs::metadata(&self.qemu).and_then(|file| file.modified());
        let device = format!("{device:?} {stamp:?}");
        Key::of([
            ("probe", observe::PROBE),
            ("boot", self.boot_id.as_bytes()),
            ("qemu", self.qemu.as_os_str().as_encoded_bytes()),
            ("device", device.as_bytes()),
        ])
    }
}

const VERDICT: &str = "verdict";

fn write_choice(folder: &Path, choice: &Choice) -> std::io::Result<()> {
    std::fs::write(
        folder.join(VERDICT),
        format!("{}\n{}", choice.accelerator, choice.reason),
    )
}

fn read_choice(folder: &Path) -> std::io::Result<Choice> {
    let text = std::fs::read_to_string(folder.join(VERDICT))?;
    let (name, reason) = text.split_once('\n').unwrap_or((&text, ""));
    let accelerator = if name == Accelerator::Kvm.as_str() {
        Accelerator::Kvm
    } else {
        Accelerator::Tcg
    };
    Ok(Choice {
        accelerator,
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests;
