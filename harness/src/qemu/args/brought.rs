//! The command line of a guest that others built.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Args, Card, File, Paths, TRANSLATION_CACHE_MIB, Text};
use crate::accel::Accelerator;
use crate::net::Mac;

/// What a brought machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtSpec {
    /// Its name.
    pub name: String,
    /// Memory, in MiB.
    pub memory_mib: u32,
    /// Processors.
    pub cpus: u8,
    /// What runs it.
    pub accelerator: Accelerator,
    /// The kernel.
    pub kernel: PathBuf,
    /// Its initial file system.
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    pub append: String,
    /// Its disks, in order: `vda`, `vdb` and so on.
    pub disks: Vec<BroughtDisk>,
    /// The card by which the host reaches its SSH.
    pub management: Mac,
    /// Its cards on VLANs, in order.
    pub cards: Vec<Card>,
}

/// A disk that is not written to: what the guest writes is in a temporary file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroughtDisk {
    /// The image.
    pub path: PathBuf,
    /// By this serial the guest may find it. At most 20 bytes; empty for none.
    pub serial: String,
    /// Its format. It is never guessed: a guest could write a header that makes a raw disk look like another.
    pub format: Format,
}

/// The format of a disk's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The bytes of the disk.
    Raw,
    /// QEMU's own.
    Qcow2,
}

/// The arguments with which QEMU runs `machine`.
pub fn brought_args(machine: &BroughtSpec, paths: &Paths) -> Vec<OsString> {
    let mut args = Args::default();
    args.add("-name", [Text(&machine.name)]);
    for alone in ["-nodefaults", "-no-user-config"] {
        args.0.push(alone.into());
    }
    args.add("-display", [Text("none")]);
    args.add("-machine", [Text("q35")]);
    match machine.accelerator {
        Accelerator::Kvm => {
            args.add("-accel", [Text("kvm")]);
            args.add("-cpu", [Text("host")]);
        }
        Accelerator::Tcg => {
            args.add("-accel", [Text(&format!("tcg,tb-size={TRANSLATION_CACHE_MIB}"))]);
            // Others' kernels may need what EPYC lacks under emulation.
            args.add("-cpu", [Text("max")]);
        }
    }
    args.add("-smp", [Text(&machine.cpus.to_string())]);
    args.add("-m", [Text(&machine.memory_mib.to_string())]);
    args.add("-action", [Text("panic=shutdown,reboot=reset,shutdown=poweroff")]);
    args.add("-device", [Text("pvpanic")]);
    args.0.extend(["-kernel".into(), machine.kernel.clone().into()]);
    if let Some(initrd) = &machine.initrd {
        args.0.extend(["-initrd".into(), initrd.into()]);
    }
    args.add("-append", [Text(&machine.append)]);
    args.add("-device", [Text("virtio-rng-pci")]);
    args.channels(paths);
    for (index, disk) in machine.disks.iter().enumerate() {
        let format = match disk.format {
            Format::Raw => "raw",
            Format::Qcow2 => "qcow2",
        };
        let drive = format!("if=none,id=disk{index},format={format},snapshot=on,cache=unsafe,file=");
        args.add("-drive", [Text(&drive), File(&disk.path)]);
        let device = format!("virtio-blk-pci,drive=disk{index},serial={}", disk.serial);
        args.add("-device", [Text(&device)]);
    }
    args.management(machine.management);
    machine
        .cards
        .iter()
        .enumerate()
        .for_each(|(index, card)| args.card(index, card));
    args.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_of_a_brought_machine() {
        let disk = |path: &str, format| BroughtDisk {
            path: path.into(),
            serial: "theirs".to_owned(),
            format,
        };
        let machine = BroughtSpec {
            name: "theirs".to_owned(),
            memory_mib: 512,
            cpus: 2,
            accelerator: Accelerator::Tcg,
            kernel: "/theirs/bzImage".into(),
            initrd: Some("/theirs/initrd".into()),
            append: "console=ttyS0 root=/dev/vda".to_owned(),
            disks: vec![disk("/theirs/a,b", Format::Raw), disk("/theirs/c", Format::Qcow2)],
            management: Mac([0x52, 0, 0, 0, 0, 1]),
            cards: Vec::new(),
        };
        let paths = Paths {
            qmp: "/run/m0.q".into(),
            agent: "/run/m0.a".into(),
            console: "/artifacts/console".into(),
            journal: "/artifacts/journal".into(),
            monitor: "/run/m0.m".into(),
        };
        let args: Vec<_> = brought_args(&machine, &paths)
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        let lines = args.join(" ").replace(" -", "\n-");
        for line in [
            "-cpu max",
            "-smp 2",
            "-m 512",
            "-kernel /theirs/bzImage",
            "-initrd /theirs/initrd",
            "-append console=ttyS0 root=/dev/vda",
            "-drive if=none,id=disk0,format=raw,snapshot=on,cache=unsafe,file=/theirs/a,,b",
            "-drive if=none,id=disk1,format=qcow2,snapshot=on,cache=unsafe,file=/theirs/c",
            "-device virtio-blk-pci,drive=disk1,serial=theirs",
            "-device virtio-net-pci,netdev=management,mac=52:00:00:00:00:01,romfile=",
        ] {
            assert!(lines.lines().any(|other| other == line), "{line}: {lines}");
        }
    }
}
