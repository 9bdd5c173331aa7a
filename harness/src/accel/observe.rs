//! What there is to see: the device, and the probe's guest under each accelerator.

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{AccelError, Accelerator};

/// The program that runs guests.
pub const QEMU: &str = "qemu-system-x86_64";

/// The probe's one page, which stands at the end of its firmware; made from `probe.S`.
pub(super) const PROBE: &[u8] = include_bytes!("probe.bin");

/// QEMU maps firmware in pieces of this size.
const FIRMWARE_BYTES: usize = 64 << 10;

/// What the probe's last instruction makes QEMU end with: `0x20 << 1 | 1`.
const DONE: i32 = 65;

/// Emulation takes 0.1 s. It is not chosen for its speed, so it may take long on a busy host.
const TCG_LIMIT: Duration = Duration::from_secs(30);

/// A KVM that works takes less than 0.1 s.
const KVM_LIMIT: Duration = Duration::from_secs(2);

/// `/dev/kvm`, found out by opening it: permission bits do not tell what a container may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Device {
    Absent,
    Denied { group: String },
    Busy,
    Broken(String),
    Open,
}

/// How the probe's guest fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ran {
    /// It came to its end in this time, QEMU's start included.
    Passed(Duration),
    /// It was ended after this time.
    Hung(Duration),
    /// QEMU ended otherwise.
    Failed { status: String, said: String },
}

/// Both runs; KVM is not tried where its device does not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) kvm: Option<Ran>,
    pub(super) tcg: Ran,
}

/// QEMU by its absolute path, from `PATH`.
pub fn find_qemu() -> Result<PathBuf, AccelError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(QEMU))
        .find(|file| file.is_file())
        .ok_or(AccelError::NoQemu)
}

pub(super) fn device(path: &Path) -> Device {
    match std::fs::File::options().read(true).write(true).open(path) {
        Ok(_) => Device::Open,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Device::Absent,
            io::ErrorKind::PermissionDenied => Device::Denied {
                group: group_of(path),
            },
            io::ErrorKind::ResourceBusy => Device::Busy,
            _ => Device::Broken(error.to_string()),
        },
    }
}

fn group_of(path: &Path) -> String {
    let Ok(file) = std::fs::metadata(path) else {
        return "kvm".to_owned();
    };
    let group = nix::unistd::Group::from_gid(file.gid().into()).ok().flatten();
    group.map_or_else(|| file.gid().to_string(), |group| group.name)
}

/// Runs the probe under emulation, then under KVM if its device opens.
pub(super) fn probe(qemu: &Path, device: &Device) -> Result<Runs, AccelError> {
    let firmware = firmware().map_err(|source| AccelError::Io {
        action: "write the probe",
        source,
    })?;
    let run = |accelerator, limit| {
        run(qemu, accelerator, firmware.path(), limit).map_err(|source| AccelError::Io {
            action: "run QEMU for the probe",
            source,
        })
    };
    let tcg = run(Accelerator::Tcg, TCG_LIMIT)?;
    let kvm = match device {
        Device::Open => Some(run(Accelerator::Kvm, kvm_limit(&tcg))?),
        _ => None,
    };
    Ok(Runs { kvm, tcg })
}

/// A host that is busy now must not condemn its KVM until the next boot.
fn kvm_limit(tcg: &Ran) -> Duration {
    match tcg {
        Ran::Passed(time) => KVM_LIMIT.max(*time * 3),
        _ => KVM_LIMIT,
    }
}

fn firmware() -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&vec![0; FIRMWARE_BYTES - PROBE.len()])?;
    file.write_all(PROBE)?;
    Ok(file)
}

pub(super) fn run(
    qemu: &Path,
    accelerator: Accelerator,
    firmware: &Path,
    limit: Duration,
) -> io::Result<Ran> {
    let started = Instant::now();
    let mut child = Command::new(qemu)
        .args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-machine",
            "pc",
            "-m",
            "16",
            "-no-reboot",
        ])
        .args([
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=1",
            "-accel",
            accelerator.as_str(),
            "-bios",
        ])
        .arg(firmware)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let (ended, wait) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        // QEMU's end closes its stderr, which needs no polling. Nobody listens any more after the limit.
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = stderr.read_to_end(&mut said);
            let _ = ended.send(said);
        });
    }
    let Ok(said) = wait.recv_timeout(limit) else {
        child.kill()?;
        child.wait()?;
        return Ok(Ran::Hung(limit));
    };
    let status = child.wait()?;
    Ok(match status.code() {
        Some(DONE) => Ran::Passed(started.elapsed()),
        _ => Ran::Failed {
            status: status.to_string(),
            said: String::from_utf8_lossy(&said).into_owned(),
        },
    })
}
