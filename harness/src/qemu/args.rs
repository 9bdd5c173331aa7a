//! QEMU's command line: a pure function of what the machine is and where its files are.

mod brought;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::accel::Accelerator;
use crate::image::AGENT_PORT;
use crate::net::{Mac, Plug};

pub use brought::{BroughtDisk, BroughtSpec, Format, brought_args};

/// How a machine comes to life.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// It boots.
    Cold,
    /// It boots, to be saved when it is up.
    ToSave(Memory),
    /// It waits for the state of one that was saved.
    Restored(Memory),
}

/// Where the memory of a saved machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In a file of its own, which restored machines map copy-on-write: they share what they do not write.
    File(PathBuf),
    /// In the state, with all else.
    InState,
}

/// What a machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Its name.
    pub name: String,
    /// Memory, in MiB.
    pub memory_mib: u32,
    /// Processors. Under emulation a second one makes several guests slower, not faster.
    pub cpus: u8,
    /// What runs it.
    pub accelerator: Accelerator,
    /// The kernel that it boots with, also when it was restored and reboots.
    pub kernel: PathBuf,
    /// The initial file system, which finds the disks and starts the agent.
    pub initrd: PathBuf,
    /// How it comes to life.
    pub start: Start,
    /// Its disks, in order.
    pub disks: Vec<Disk>,
    /// The card by which the host reaches its SSH.
    pub management: Mac,
    /// Its cards on VLANs, in order.
    pub cards: Vec<Card>,
    /// What can be seen of it.
    pub display: Display,
    /// The names of the slots for disks that come while it runs.
    pub hot_slots: Vec<String>,
}

/// Whether a machine has a display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// It has none, and boots the faster.
    #[default]
    None,
    /// A VGA card, whose picture QEMU can save.
    Vga,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// By this serial the guest finds it. At most 20 bytes.
    pub serial: String,
    /// The raw image.
    pub path: PathBuf,
    /// Whether the guest may write to it, and where that goes.
    pub access: Access,
}

/// Whether a disk can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Several machines may share it.
    ReadOnly,
    /// It belongs to one machine. Nothing waits for the host's disk: it need not survive the host.
    Write,
    /// Several machines may share it: what one writes goes to a file of its own in QEMU's temporary folder, and ends with its QEMU.
    CopyOnWrite,
}

/// A card on a VLAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its hardware address.
    pub mac: Mac,
    /// Its cable.
    pub plug: Plug,
}

/// Where a machine's files and sockets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Where QEMU finds somebody listening for its monitor.
    pub qmp: PathBuf,
    /// Where QEMU listens for whoever talks to the guest's agent.
    pub agent: PathBuf,
    /// Where the console is written.
    pub console: PathBuf,
    /// Where the guest's journal is written: what the guest prints on its second terminal.
    pub journal: PathBuf,
    /// Where QEMU listens for a person who wants a monitor of their own.
    pub monitor: PathBuf,
}

/// The translation cache under emulation, in MiB. The default grows to 1 GiB; 128 loses nothing, 64 about 5 %.
pub(crate) const TRANSLATION_CACHE_MIB: u32 = 128;

/// The name of a machine's `index`-th card on a VLAN, by which QEMU's monitor knows its cable.
pub fn card_id(index: usize) -> String {
    format!("vlan{index}")
}

/// The arguments with which QEMU runs `machine`.
pub fn args(machine: &MachineSpec, paths: &Paths) -> Vec<OsString> {
    let mut args = Args::default();
    args.add("-name", [Text(&machine.name)]);
    for alone in ["-nodefaults", "-no-user-config"] {
        args.0.push(alone.into());
    }
    args.add("-display", [Text("none")]);
    args.machine(machine);
    match machine.accelerator {
        Accelerator::Kvm => {
            args.add("-accel", [Text("kvm")]);
            args.add("-cpu", [Text("host")]);
        }
        Accelerator::Tcg => {
            args.add("-accel", [Text(&format!("tcg,tb-size={TRANSLATION_CACHE_MIB}"))]);
            // 0.5 to 0.7 s of a boot faster than `max`.
            args.add("-cpu", [Text("EPYC")]);
        }
    }
    args.add("-smp", [Text(&machine.cpus.to_string())]);
    args.add("-m", [Text(&machine.memory_mib.to_string())]);
    // A panic is a failure, and QEMU ends; a reboot is the guest's good right.
    args.add("-action", [Text("panic=shutdown,reboot=reset,shutdown=poweroff")]);
    args.add("-device", [Text("pvpanic")]);
    args.kernel(machine);
    args.add("-device", [Text("virtio-rng-pci")]);
    args.channels(paths);
    machine
        .disks
        .iter()
        .enumerate()
        .for_each(|(index, disk)| args.disk(index, disk));
    args.management(machine.management);
    machine
        .cards
        .iter()
        .enumerate()
        .for_each(|(index, card)| args.card(index, card));
    if machine.display == Display::Vga {
        args.add("-device", [Text("VGA")]);
    }
    machine
        .hot_slots
        .iter()
        .enumerate()
        .for_each(|(index, slot)| args.hot_slot(index, slot));
    args.0
}

/// A piece of an option's value: a path's commas are doubled, since a single one ends the value.
enum Piece<'a> {
    Text(&'a str),
    Path(&'a Path),
}
use Piece::{Path as File, Text};

#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn add<const N: usize>(&mut self, option: &str, pieces: [Piece<'_>; N]) {
        let mut value = OsString::new();
        for piece in pieces {
            match piece {
                Text(text) => value.push(text),
                File(path) => value.push(doubled_commas(path)),
            }
        }
        self.0.extend([option.into(), value]);
    }

    fn machine(&mut self, machine: &MachineSpec) {
        let (memory, share) = match &machine.start {
            Start::ToSave(Memory::File(path)) => (path, "on"),
            // Private: what a restored guest writes never reaches the file.
            Start::Restored(Memory::File(path)) => (path, "off"),
            _ => return self.add("-machine", [Text("q35")]),
        };
        self.add("-machine", [Text("q35,memory-backend=memory")]);
        let object = format!(
            "memory-backend-file,id=memory,size={}M,share={share},mem-path=",
            machine.memory_mib
        );
        self.add("-object", [Text(&object), File(memory)]);
    }

    fn kernel(&mut self, machine: &MachineSpec) {
        let (kernel, initrd) = (&machine.kernel, &machine.initrd);
        self.0
            .extend(["-kernel".into(), kernel.into(), "-initrd".into(), initrd.into()]);
        // `no_timer_check`: an emulated guest that gets no processor time for a moment takes its timer for broken, and panics.
        // `norandmaps` lets emulation use its translations for more than one process: a boot in 4.2 s rather than 5.6 s.
        // The last console is where programs write to `/dev/console`.
        let screen = match machine.display {
            Display::None => "",
            Display::Vga => "console=tty0 ",
        };
        self.add(
            "-append",
            [
                Text(screen),
                Text("console=ttyS0 norandmaps panic=-1 net.ifnames=0 no_timer_check"),
            ],
        );
        if let Start::Restored(_) = machine.start {
            self.add("-incoming", [Text("defer")]);
        }
    }

    fn channels(&mut self, paths: &Paths) {
        self.add("-chardev", [Text("file,id=console,path="), File(&paths.console)]);
        self.add("-serial", [Text("chardev:console")]);
        self.add("-chardev", [Text("socket,id=qmp,path="), File(&paths.qmp)]);
        self.add("-mon", [Text("chardev=qmp,mode=control")]);
        self.add(
            "-chardev",
            [
                Text("socket,id=monitor,server=on,wait=off,path="),
                File(&paths.monitor),
            ],
        );
        self.add("-mon", [Text("chardev=monitor,mode=control")]);
        self.add("-device", [Text("virtio-serial-pci")]);
        // Journald wants a terminal, and opens it anew for each line: a serial port would be probed each time.
        self.add("-chardev", [Text("file,id=journal,path="), File(&paths.journal)]);
        self.add("-device", [Text("virtconsole,chardev=journal")]);
        self.add(
            "-chardev",
            [
                Text("socket,id=agent,server=on,wait=off,path="),
                File(&paths.agent),
            ],
        );
        self.add(
            "-device",
            [Text(&format!("virtserialport,chardev=agent,name={AGENT_PORT}"))],
        );
    }

    fn disk(&mut self, index: usize, disk: &Disk) {
        let mode = match disk.access {
            Access::ReadOnly => "read-only=on",
            Access::Write => "cache=unsafe,discard=unmap",
            Access::CopyOnWrite => "snapshot=on,cache=unsafe,discard=unmap",
        };
        let drive = format!("if=none,id=disk{index},format=raw,{mode},file=");
        self.add("-drive", [Text(&drive), File(&disk.path)]);
        self.add(
            "-device",
            [Text(&format!(
                "virtio-blk-pci,drive=disk{index},serial={}",
                disk.serial
            ))],
        );
    }

    /// The guest sees nothing of the host's network; the host sees the guest's SSH, at a port that QEMU chooses.
    fn management(&mut self, mac: Mac) {
        self.add(
            "-netdev",
            [Text("user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:0-:22")],
        );
        self.nic("management", mac);
    }

    fn card(&mut self, index: usize, card: &Card) {
        let id = card_id(index);
        self.add(
            "-netdev",
            [
                Text(&format!("dgram,id={id},local.type=unix,local.path=")),
                File(&card.plug.local),
                Text(",remote.type=unix,remote.path="),
                File(&card.plug.remote),
            ],
        );
        self.nic(&id, card.mac);
    }

    /// On q35 a disk can only be plugged in behind a port of its own.
    fn hot_slot(&mut self, index: usize, slot: &str) {
        let port = format!("pcie-root-port,id={slot},chassis={}", index + 1);
        self.add("-device", [Text(&port)]);
    }

    /// Without the boot ROM, which no guest here boots from.
    fn nic(&mut self, netdev: &str, mac: Mac) {
        self.add(
            "-device",
            [Text(&format!(
                "virtio-net-pci,netdev={netdev},mac={mac},romfile="
            ))],
        );
    }
}

fn doubled_commas(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    OsString::from_vec(
        bytes
            .iter()
            .flat_map(|byte| vec![*byte; if *byte == b',' { 2 } else { 1 }])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (MachineSpec, Paths) {
        let disk = |serial: &str, path: &str, access| Disk {
            serial: serial.to_owned(),
            path: path.into(),
            access,
        };
        let card = |vlan: &str, socket: &str| Card {
            mac: Mac::of("app", vlan),
            plug: Plug {
                local: format!("/run/{socket}.m0").into(),
                remote: format!("/run/{socket}").into(),
            },
        };
        let machine = MachineSpec {
            name: "app".to_owned(),
            memory_mib: 320,
            cpus: 1,
            accelerator: Accelerator::Tcg,
            kernel: "/image/kernel".into(),
            initrd: "/image/initrd".into(),
            start: Start::Cold,
            disks: vec![
                disk("root", "/image/root.squashfs", Access::ReadOnly),
                disk("overlay", "/run/a,b/overlay", Access::Write),
                disk("layer", "/image/disk", Access::CopyOnWrite),
            ],
            management: Mac::of("app", "management"),
            cards: vec![card("mesh", "v0"), card("storage", "v1")],
            display: Display::None,
            hot_slots: Vec::new(),
        };
        let paths = Paths {
            qmp: "/run/m0.q".into(),
            agent: "/run/m0.a".into(),
            console: "/artifacts/console".into(),
            journal: "/artifacts/journal".into(),
            monitor: "/run/m0.m".into(),
        };
        (machine, paths)
    }

    fn lines(machine: &MachineSpec, paths: &Paths) -> String {
        let args: Vec<_> = args(machine, paths)
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        args.join(" ").replace(" -", "\n-")
    }

    #[test]
    fn the_command_line_of_a_machine_with_three_disks_and_two_cards() {
        let (machine, paths) = machine();
        let expected = "\
-name app
-nodefaults
-no-user-config
-display none
-machine q35
-accel tcg,tb-size=128
-cpu EPYC
-smp 1
-m 320
-action panic=shutdown,reboot=reset,shutdown=poweroff
-device pvpanic
-kernel /image/kernel
-initrd /image/initrd
-append console=ttyS0 norandmaps panic=-1 net.ifnames=0 no_timer_check
-device virtio-rng-pci
-chardev file,id=console,path=/artifacts/console
-serial chardev:console
-chardev socket,id=qmp,path=/run/m0.q
-mon chardev=qmp,mode=control
-chardev socket,id=monitor,server=on,wait=off,path=/run/m0.m
-mon chardev=monitor,mode=control
-device virtio-serial-pci
-chardev file,id=journal,path=/artifacts/journal
-device virtconsole,chardev=journal
-chardev socket,id=agent,server=on,wait=off,path=/run/m0.a
-device virtserialport,chardev=agent,name=provisor.agent
-drive if=none,id=disk0,format=raw,read-only=on,file=/image/root.squashfs
-device virtio-blk-pci,drive=disk0,serial=root
-drive if=none,id=disk1,format=raw,cache=unsafe,discard=unmap,file=/run/a,,b/overlay
-device virtio-blk-pci,drive=disk1,serial=overlay
-drive if=none,id=disk2,format=raw,snapshot=on,cache=unsafe,discard=unmap,file=/image/disk
-device virtio-blk-pci,drive=disk2,serial=layer
-netdev user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:0-:22
-device virtio-net-pci,netdev=management,mac=MANAGEMENT,romfile=
-netdev dgram,id=vlan0,local.type=unix,local.path=/run/v0.m0,remote.type=unix,remote.path=/run/v0
-device virtio-net-pci,netdev=vlan0,mac=MESH,romfile=
-netdev dgram,id=vlan1,local.type=unix,local.path=/run/v1.m0,remote.type=unix,remote.path=/run/v1
-device virtio-net-pci,netdev=vlan1,mac=STORAGE,romfile=";
        let expected = ["management", "mesh", "storage"]
            .iter()
            .fold(expected.to_owned(), |text, vlan| {
                text.replace(&vlan.to_uppercase(), &Mac::of("app", vlan).to_string())
            });
        assert_eq!(lines(&machine, &paths), expected);
    }

    #[test]
    fn only_the_machine_that_is_saved_writes_the_memory_that_others_map() {
        let (machine, paths) = machine();
        let memory = || Memory::File("/template/memory".into());
        let line = |start| {
            lines(
                &MachineSpec {
                    start,
                    ..machine.clone()
                },
                &paths,
            )
        };
        let object = |share| {
            format!(
                "-machine q35,memory-backend=memory\n\
                 -object memory-backend-file,id=memory,size=320M,share={share},mem-path=/template/memory\n"
            )
        };
        let saving = line(Start::ToSave(memory()));
        assert!(
            saving.contains(&object("on")) && !saving.contains("-incoming"),
            "{saving}"
        );
        let restored = line(Start::Restored(memory()));
        assert!(
            restored.contains(&object("off")) && restored.contains("\n-incoming defer\n"),
            "{restored}"
        );
        let whole = line(Start::Restored(Memory::InState));
        assert!(
            whole.contains("-machine q35\n") && whole.contains("\n-incoming defer\n"),
            "{whole}"
        );
    }

    #[test]
    fn the_cpu_model_follows_the_accelerator() {
        let (machine, paths) = machine();
        let line = lines(
            &MachineSpec {
                accelerator: Accelerator::Kvm,
                ..machine
            },
            &paths,
        );
        assert!(line.contains("-accel kvm\n-cpu host\n"), "{line}");
    }

    #[test]
    fn a_display_and_slots_are_there_on_demand_only() {
        let (machine, paths) = machine();
        let more = MachineSpec {
            display: Display::Vga,
            hot_slots: vec!["hot0".to_owned(), "hot1".to_owned()],
            ..machine.clone()
        };
        let (before, after) = (lines(&machine, &paths), lines(&more, &paths));
        let added: Vec<_> = after
            .lines()
            .filter(|line| !before.lines().any(|other| other == *line))
            .collect();
        let expected = [
            "-append console=tty0 console=ttyS0 norandmaps panic=-1 net.ifnames=0 no_timer_check",
            "-device VGA",
            "-device pcie-root-port,id=hot0,chassis=1",
            "-device pcie-root-port,id=hot1,chassis=2",
        ];
        assert_eq!(added, expected);
    }
}
