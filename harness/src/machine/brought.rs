//! Guests that others built: any kernel, initrd and disks, reached by SSH alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{BootEnd, BootError, Machine, Running};
use crate::agent::AgentError;
use crate::exec::{Execute, ExitStatus};
use crate::laboratory::addresses::Address;
use crate::laboratory::{Inner, LabError, brought};
use crate::qemu::{BroughtDisk, Format, Qemu};
use crate::ssh::{Login, Ssh};
use crate::wait::{Deadline, scaled};

/// A stock distribution boots in half a minute under emulation on an idle host. The deadline is for one with other guests on it.
const BOOT_PATIENCE: Duration = Duration::from_secs(300);

/// QEMU's user network accepts a connection at once, and a first packet that comes before the guest's network is lost: a connection
/// that says nothing for so long is made anew.
const GREETING_PATIENCE: Duration = Duration::from_secs(20);

/// The pause between two tries. Each one that reaches the guest costs it a process.
const PAUSE: Duration = Duration::from_secs(1);

/// What to boot, as somebody else built it. Nothing of this library is in it: it needs a network card that gets its address by DHCP, and an
/// SSH server.
#[derive(Clone, Debug)]
pub struct Brought {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: Option<PathBuf>,
    pub(crate) append: String,
    pub(crate) disks: Vec<BroughtDisk>,
}

/// A brought machine that has not started.
#[must_use = "a machine does not run before it is started"]
#[derive(Clone, Debug)]
pub struct BroughtBuilder {
    lab: Arc<Inner>,
    plan: BroughtPlan,
}

/// What was said about a brought machine, unchecked.
#[derive(Clone, Debug)]
pub(crate) struct BroughtPlan {
    pub(crate) name: String,
    pub(crate) brought: Brought,
    pub(crate) login: Login,
    pub(crate) memory_mib: u32,
    pub(crate) cpus: u8,
    pub(crate) cards: Vec<(String, Address)>,
}

impl Brought {
    /// A kernel, as QEMU's `-kernel` takes it. Its console is the first serial port.
    pub fn kernel(kernel: impl Into<PathBuf>) -> Self {
        Self {
            kernel: kernel.into(),
            initrd: None,
            append: "console=ttyS0 panic=-1".to_owned(),
            disks: Vec::new(),
        }
    }

    /// A system of NixOS: the folder that `config.system.build.toplevel` is, with its `kernel`, `initrd`, `init` and `kernel-params`. The
    /// disk that has the same path in its Nix store comes with [`Brought::disk`].
    ///
    /// # Errors
    /// A file that is missing, or cannot be read.
    pub fn nixos(toplevel: &Path) -> std::io::Result<Self> {
        // The system is found by its path in the store, not by a link to it.
        let toplevel = fs::canonicalize(toplevel)?;
        let parameters = fs::read_to_string(toplevel.join("kernel-params"))?;
        let init = toplevel.join("init");
        let brought = Self::kernel(fs::canonicalize(toplevel.join("kernel"))?)
            .initrd(fs::canonicalize(toplevel.join("initrd"))?)
            .append(&format!("init={}", init.display()));
        Ok(brought.append(parameters.trim()))
    }

    /// Its initial file system.
    pub fn initrd(mut self, initrd: impl Into<PathBuf>) -> Self {
        self.initrd = Some(initrd.into());
        self
    }

    /// Adds to the kernel's command line, which begins with `console=ttyS0 panic=-1`.
    pub fn append(mut self, parameters: &str) -> Self {
        if !parameters.is_empty() {
            self.append = format!("{} {parameters}", self.append);
        }
        self
    }

    /// A disk, raw. What the guest writes to it is thrown away at its end: the file stays as it is, and several machines may have it.
    pub fn disk(self, path: impl Into<PathBuf>) -> Self {
        self.with_disk(path.into(), String::new(), Format::Raw)
    }

    /// A disk, raw, with a serial number of at most 20 bytes by which the guest finds it, likewise.
    pub fn disk_with_serial(self, serial: &str, path: impl Into<PathBuf>) -> Self {
        self.with_disk(path.into(), serial.to_owned(), Format::Raw)
    }

    /// A disk in the format qcow2, likewise.
    pub fn qcow2(self, path: impl Into<PathBuf>) -> Self {
        self.with_disk(path.into(), String::new(), Format::Qcow2)
    }

    fn with_disk(mut self, path: PathBuf, serial: String, format: Format) -> Self {
        self.disks.push(BroughtDisk { path, serial, format });
        self
    }
}

impl BroughtBuilder {
    pub(crate) fn new(lab: Arc<Inner>, name: &str, brought: Brought, login: Login) -> Self {
        let plan = BroughtPlan {
            name: name.to_owned(),
            brought,
            login,
            memory_mib: 512,
            cpus: 1,
            cards: Vec::new(),
        };
        Self { lab, plan }
    }

    /// Its memory, in MiB: 512 if nothing is said.
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.plan.memory_mib = memory_mib;
        self
    }

    /// Its processors: one if nothing is said.
    pub fn cpus(mut self, cpus: u8) -> Self {
        self.plan.cpus = cpus;
        self
    }

    /// Plugs it into a VLAN. An address is set aside for it there, which others know it by; it must give it to the card itself, whose hardware
    /// address follows from the two names.
    pub fn on_vlan(mut self, vlan: &str) -> Self {
        self.plan.cards.push((vlan.to_owned(), Address::Next));
        self
    }

    /// Boots it, and returns when a command has run by SSH.
    ///
    /// # Errors
    /// [`LabError`].
    pub async fn start(self) -> Result<Machine, LabError> {
        brought::start(&self.lab, self.plan).await
    }
}

/// Waits until a command runs by SSH.
pub(crate) async fn answers(
    qemu: &Qemu,
    machine: &str,
    ssh_port: u16,
    login: &Login,
) -> Result<Ssh, BootError> {
    let deadline = Deadline::after(BOOT_PATIENCE);
    let asked = async {
        loop {
            let asked = tokio::time::timeout(scaled(GREETING_PATIENCE), ask(ssh_port, login)).await;
            if let Ok(Some(ssh)) = asked {
                return ssh;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let end = match qemu.death().race(deadline.limit(asked)).await {
        Ok(Some(ssh)) => return Ok(ssh),
        Ok(None) => BootEnd::TimedOut,
        Err(death) => BootEnd::Died(death),
    };
    Err(BootError {
        machine: machine.to_owned(),
        waited: deadline.waited(),
        end,
        evidence: qemu.evidence(),
    })
}

async fn ask(ssh_port: u16, login: &Login) -> Option<Ssh> {
    let ssh = Ssh::connect((std::net::Ipv4Addr::LOCALHOST, ssh_port), login)
        .await
        .ok()?;
    let answer = ssh.run("true").await.ok()?;
    (answer.status == ExitStatus::Code(0)).then_some(ssh)
}

/// After a reset: the same anew.
pub(super) async fn answers_again(running: &Running) -> Result<Ssh, BootError> {
    answers(
        &running.qemu,
        running.name.as_str(),
        running.ssh_port,
        &running.login,
    )
    .await
}

/// What only an agent can do was asked of a guest that has none.
pub(super) fn no_agent() -> AgentError {
    AgentError::Setup {
        step: "as asked".to_owned(),
        error: "it has no agent, only SSH; do it by a command".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nixos_system_boots_as_its_own_boot_loader_would_boot_it() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().join("abc-nixos-system-app");
        fs::create_dir(&system).unwrap();
        for file in ["bzImage", "the-initrd"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../bzImage", system.join("kernel")).unwrap();
        std::os::unix::fs::symlink("../the-initrd", system.join("initrd")).unwrap();
        fs::write(system.join("init"), "").unwrap();
        fs::write(system.join("kernel-params"), "loglevel=4 lsm=landlock\n").unwrap();
        let link = folder.path().join("result");
        std::os::unix::fs::symlink(&system, &link).unwrap();

        let brought = Brought::nixos(&link).unwrap().disk("/images/app.img");
        let root = fs::canonicalize(folder.path()).unwrap();
        assert_eq!(brought.kernel, root.join("bzImage"));
        assert_eq!(brought.initrd, Some(root.join("the-initrd")));
        let init = root.join("abc-nixos-system-app/init");
        let expected = format!(
            "console=ttyS0 panic=-1 init={} loglevel=4 lsm=landlock",
            init.display()
        );
        assert_eq!(brought.append, expected);
    }

    #[test]
    fn a_folder_that_is_no_nixos_system_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Brought::nixos(folder.path()).is_err());
    }
}
